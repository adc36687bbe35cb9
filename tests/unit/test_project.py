"""What the project promises about itself."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import kit
from kit import errors
from tests import environment


def test_environment_yml_has_the_versions_of_the_lock():
    assert environment.FILE.read_text() == environment.render(), "run: make lock"


def test_the_lock_pins_by_hash_and_names_no_host():
    text = (environment.ROOT / "requirements.lock").read_text()
    pinned = re.findall(r"^[a-z0-9].*==.*$", text, re.MULTILINE)
    assert len(pinned) > 100
    assert text.count("--hash=sha256:") >= len(pinned)
    assert "://" not in text


def test_every_public_name_is_there():
    for name in kit.__all__:
        assert getattr(kit, name) is not None


def test_every_error_has_an_exit_code_of_its_own():
    def below(kind: type) -> list[type]:
        return [kind, *(each for child in kind.__subclasses__() for each in below(child))]

    # What the consumer tells itself (``driver.Rebalancing``) is no error that anybody is shown.
    tree = [kind for kind in below(errors.OfframpError) if kind.__module__ == errors.__name__]
    codes = [kind.exit_code for kind in tree]
    assert len(tree) > 20
    assert len(codes) == len(set(codes))
    assert 0 not in codes
    for kind in tree:
        assert re.search(rf"{kind.__name__}\s+(exit code )?{kind.exit_code}\b", errors.__doc__), kind


ROOT = Path(kit.__file__).parents[1]
WRITERS = {
    "kit/migrate/group/raised_offsets.py",
    "kit/migrate/group/toggle.py",
    "kit/migrate/kraft/hand_back.py",
    "kit/migrate/lock.py",
    "kit/migrate/offsets/group_deleter.py",
    "kit/migrate/offsets/kafka.py",
    "kit/migrate/offsets/requests.py",
    "kit/migrate/offsets/zookeeper.py",
}
"""Every file that writes to a cluster, beside the rooms whose whole purpose it is."""
MAY_WRITE = ("kit/consumer/", "kit/lab/", "kit/demo/")
FILES = {str(file.relative_to(ROOT)): file for room in ("kit", "widgets") for file in (ROOT / room).rglob("*.py")}

WRITES = {
    # kazoo, with what its transactions queue
    "create", "create_async", "delete", "delete_async", "ensure_path", "ensure_path_async", "reconfig",
    "reconfig_async", "set", "set_acls", "set_acls_async", "set_async", "set_data", "transaction",
    # the consumers, producers and admin clients of both libraries
    "abort_transaction", "alter_configs", "alter_consumer_group_offsets", "alter_group_offsets",
    "alter_partition_reassignments", "alter_replica_log_dirs", "alter_user_scram_credentials", "commit",
    "commit_async", "create_acls", "create_partitions", "create_topics", "delete_acls", "delete_consumer_groups",
    "delete_group_offsets", "delete_groups", "delete_records", "delete_topics", "elect_leaders",
    "incremental_alter_configs", "produce", "remove_group_members", "reset_configs", "reset_group_offsets",
    "send_offsets_to_transaction", "store_offsets", "update_features",
}  # fmt: skip
READ_REQUESTS = {
    "ApiVersionsRequest", "ConsumerGroupDescribeRequest", "DescribeConfigsRequest", "DescribeGroupsRequest",
    "DescribeLogDirsRequest", "DescribeQuorumRequest", "FetchRequest", "FetchSnapshotRequest",
    "FindCoordinatorRequest", "ListGroupsRequest", "ListOffsetsRequest", "MetadataRequest", "OffsetFetchRequest",
}  # fmt: skip
"""Requests of Kafka's protocol that change nothing; any other counts as a write."""
NO_CLUSTER = {
    ("kit/history/files.py", "delete"),  # files of a history
    ("kit/history/hours.py", "delete"),
    ("kit/history/hours.py", "set"),  # a setting of Spark
    ("kit/history/upkeep.py", "delete"),
    ("kit/rehearsal.py", "delete"),  # a znode of the lab's own ZooKeeper
}


def writes_in(source: str) -> Iterator[tuple[int, str]]:
    """Where a source calls what writes to a cluster, or knows a request that does: line, name."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_event = node.func.attr == "set" and not node.args  # threading.Event().set()
            if node.func.attr in WRITES and not is_event:
                yield node.lineno, node.func.attr
        if isinstance(node, ast.Call) and _name_of(node.func) == "MetadataRequest":
            told = {each.arg: each.value for each in node.keywords}
            allows = told.get("allow_auto_topic_creation")
            if not (isinstance(allows, ast.Constant) and allows.value is False):
                yield node.lineno, "MetadataRequest that may create topics"
        for name in _requests_of_the_protocol(node):
            if name not in READ_REQUESTS:
                yield node.lineno, name


def _requests_of_the_protocol(node: ast.AST) -> Iterator[str]:
    """Classes of requests that are imported from kafka-python, read from its modules, or made from a definition."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kafka.protocol"):
        yield from (each.name for each in node.names if each.name.endswith("Request"))
    elif isinstance(node, ast.Attribute) and node.attr.endswith("Request"):
        yield node.attr
    elif isinstance(node, ast.ClassDef) and "ApiMessage" in map(_name_of, node.bases) and node.name.endswith("Request"):
        yield node.name


def _name_of(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def test_only_writers_write_to_a_cluster():
    found = {
        (path, name)
        for path, file in FILES.items()
        if not path.startswith(MAY_WRITE)
        for _, name in writes_in(file.read_text(encoding="utf-8"))
    }
    assert {path for path, _ in found - NO_CLUSTER} == WRITERS
    assert found >= NO_CLUSTER


def test_what_writes_to_a_cluster_is_protected_by_the_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    protected = {name for each in contracts for name in each.get("protected_modules", ())}
    assert {path.removesuffix(".py").replace("/", ".") for path in WRITERS} <= protected


@pytest.mark.parametrize(
    "source",
    [
        "client.set('/a', b'')",
        "client.delete_async('/a').get()",
        "admin.delete_consumer_groups(['g'])",
        "from kafka.protocol.admin.groups import DeleteGroupsRequest",
        "from kafka.protocol.consumer import OffsetFetchRequest, OffsetCommitRequest as Read",
        "from kafka import protocol\nprotocol.admin.IncrementalAlterConfigsRequest(resources=[])",
        "class AlterPartitionRequest(ApiMessage): pass",
        "MetadataRequest(topics=['orders'])",
        "MetadataRequest(topics=['orders'], allow_auto_topic_creation=True)",
    ],
)
def test_a_write_is_seen(source: str):
    assert list(writes_in(source))


@pytest.mark.parametrize(
    "source",
    [
        "event.set()",
        "client.get_async('/a').get()",
        "from kafka.protocol.consumer import OffsetFetchRequest",
        "from kit.migrate.offsets.delete_groups import DeleteGroupsRequest",
        "MetadataRequest(topics=None, allow_auto_topic_creation=False)",
    ],
)
def test_a_read_is_no_write(source: str):
    assert not list(writes_in(source))


ERRORS = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
BARE = re.compile(r"(it|its|they|them|those|that|he|she)\b", re.IGNORECASE)
BEHIND_A_STEP = ("execution",)
"""What is raised there is told behind ``step 's1': ``, so there is something for a pronoun to mean."""


def test_no_message_of_an_error_begins_with_a_pronoun():
    """Whoever reads the message alone, in a scheduler's mail, can't know what ``it`` was."""
    root = Path(kit.__file__).parent
    files = [file for file in root.rglob("*.py") if file.parent.name not in BEHIND_A_STEP]
    messages = [
        (file.name, begin) for file in files for begin in _beginnings(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert len(messages) > 200
    assert [(file, begin) for file, begin in messages if BARE.match(begin)] == []


def _beginnings(tree: ast.AST) -> Iterator[str]:
    """The literal beginnings of the messages of the project's errors."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS and node.args:
            first = node.args[0]
            part = first.values[0] if isinstance(first, ast.JoinedStr) else first
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value
