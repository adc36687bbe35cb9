"""The promises of the project about itself."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import kit
from kit import errors
from tests import environment
from tests.unit.printed_collections import printed_collections
from tests.unit.text_branches import text_branches


def test_environment_yml_has_the_versions_of_the_lock():
    assert environment.FILE.read_text() == environment.render(), "run: make lock"


def test_the_lock_pins_by_hash_and_names_no_host():
    text = (environment.ROOT / "requirements.lock").read_text()
    pinned = re.findall(r"^[a-z0-9].*==.*$", text, re.MULTILINE)
    assert len(pinned) > 100
    assert text.count("--hash=sha256:") >= len(pinned)
    assert "://" not in text


def test_make_soak_runs_each_file_that_has_a_long_form():
    asked = subprocess.run(["make", "--dry-run", "soak"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (command,) = [line for line in asked.splitlines() if "OFFRAMP_SOAK=1" in line]
    run = [ROOT / word for word in command.split() if word.startswith("tests/")]
    assert all(each.exists() for each in run)
    texts = {file: file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py")}
    asking = {file for file, text in texts.items() if re.search(r"^from tests\.soak import ", text, re.MULTILINE)}
    helpers = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in asking if file.name[:5] != "test_"]
    asking |= {file for file, text in texts.items() if any(f"from {helper} import" in text for helper in helpers)}
    long = [file for file in asking if file.name.startswith("test_")]
    assert len(long) > 40
    assert [file for file in long if not any(file.is_relative_to(each) for each in run)] == []


def test_every_slow_test_finds_its_fixtures():
    """Nothing is set up: this says within seconds what ``make test`` would say after minutes."""
    asked = [sys.executable, "-m", "pytest", "-q", "-m", "slow", "--setup-plan", "-p", "no:cacheprovider"]
    planned = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    assert planned.returncode == 0, planned.stdout[-5_000:]


def test_every_public_name_is_there():
    for name in kit.__all__:
        assert getattr(kit, name) is not None


def test_every_error_has_an_exit_code_of_its_own():
    def below(kind: type) -> list[type]:
        return [kind, *(each for child in kind.__subclasses__() for each in below(child))]

    # An error inside the consumer (``driver.Rebalancing``) is shown to no one.
    tree = [kind for kind in below(errors.OfframpError) if kind.__module__ == errors.__name__]
    codes = [kind.exit_code for kind in tree]
    assert len(tree) > 20
    assert len(codes) == len(set(codes))
    assert 0 not in codes
    for kind in tree:
        assert re.search(rf"{kind.__name__}\s+(exit code )?{kind.exit_code}\b", errors.__doc__), kind


ROOT = Path(kit.__file__).parents[1]
WRITERS = {
    "kit/moves/group/raised_offsets.py",
    "kit/moves/group/toggle.py",
    "kit/moves/locks/held_locks.py",
    "kit/moves/locks/kafka_lock.py",
    "kit/kraft/move/hand_back.py",
    "kit/kraft/move/unregister.py",
    "kit/moves/protocol/group_configs.py",
    "kit/moves/locks/lease.py",
    "kit/moves/locks/lease_requests.py",
    "kit/engine/lock.py",
    "kit/moves/offsets/group_deleter.py",
    "kit/moves/offsets/kafka.py",
    "kit/moves/offsets/requests.py",
    "kit/moves/offsets/zookeeper.py",
    "kit/moves/znodes/deleter.py",
}
"""Every file that writes to a cluster, beside the rooms whose whole purpose it is."""
MAY_WRITE = ("kit/consumer/", "kit/lab/", "kit/kraft/rehearsal_lab.py", "kit/demo/")
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
    "ApiVersionsRequest", "ConsumerGroupDescribeRequest", "DescribeAclsRequest", "DescribeClusterRequest",
    "DescribeConfigsRequest", "DescribeGroupsRequest", "DescribeShareGroupOffsetsRequest",
    "DescribeLogDirsRequest", "DescribeProducersRequest", "DescribeQuorumRequest", "FetchRequest",
    "FetchSnapshotRequest", "FindCoordinatorRequest", "ListGroupsRequest", "ListOffsetsRequest", "MetadataRequest",
    "OffsetFetchRequest", "SaslAuthenticateRequest", "SaslBytesRequest", "ShareGroupDescribeRequest",
    "StreamsGroupDescribeRequest", "TopicRequest",  # the last is a part of DescribeProducersRequest
}  # fmt: skip
"""Requests of Kafka's protocol that change nothing; any other counts as a write."""
NO_CLUSTER = {
    ("kit/history/files.py", "delete"),  # files of a history
    ("kit/health/hours.py", "delete"),
    ("kit/health/hours.py", "set"),  # a setting of Spark
    ("kit/history/upkeep.py", "delete"),
    ("kit/profile/security/token_sources.py", "Request"),  # to the issuer of tokens
    ("kit/kraft/rehearsal.py", "delete"),  # a znode of the lab's own ZooKeeper
}


KINDS = (ast.Call, ast.ImportFrom, ast.Attribute, ast.ClassDef)
"""The nodes that the tests of the product's source examine."""


@cache
def nodes_of(path: str) -> list[ast.AST]:
    """The module of a file of the product, and its nodes of these kinds."""
    module = ast.parse(FILES[path].read_text(encoding="utf-8"))
    return [module, *(node for node in ast.walk(module) if isinstance(node, KINDS))]


def writes_in(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each call that writes to a cluster, and of each request that does."""
    for node in nodes:
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
    elif isinstance(node, ast.Call) and _name_of(node.func) == "messages_of":
        name = node.args[0]
        yield f"{name.value}Request" if isinstance(name, ast.Constant) else ast.unparse(node)


def _name_of(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def test_only_writers_write_to_a_cluster():
    found = {(path, name) for path in FILES if not path.startswith(MAY_WRITE) for _, name in writes_in(nodes_of(path))}
    assert {path for path, _ in found - NO_CLUSTER} == WRITERS
    assert found >= NO_CLUSTER


def test_modules_that_write_to_a_cluster_are_protected_by_the_contract():
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
        "asked, answered = messages_of('AlterPartition', 'kit.clients')",
        "asked, answered = messages_of(name, 'kit.clients')",
        "MetadataRequest(topics=['orders'])",
        "MetadataRequest(topics=['orders'], allow_auto_topic_creation=True)",
    ],
)
def test_a_write_is_seen(source: str):
    assert list(writes_in(ast.walk(ast.parse(source))))


@pytest.mark.parametrize(
    "source",
    [
        "event.set()",
        "client.get_async('/a').get()",
        "from kafka.protocol.consumer import OffsetFetchRequest",
        "from kit.moves.offsets.delete_groups import DeleteGroupsRequest",
        "asked, answered = messages_of('ConsumerGroupDescribe', 'kit.groups.read')",
        "MetadataRequest(topics=None, allow_auto_topic_creation=False)",
    ],
)
def test_a_read_is_no_write(source: str):
    assert not list(writes_in(ast.walk(ast.parse(source))))


ERRORS = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
BARE = re.compile(r"(it|its|they|them|those|that|he|she)\b", re.IGNORECASE)


def test_no_message_of_an_error_begins_with_a_pronoun():
    """Whoever reads the message alone, in a scheduler's mail, can't know what ``it`` was."""
    messages = [(place, text) for _, place, text in raised() if not text.startswith("{")]
    assert len(messages) > 200
    assert [(place, text) for place, text in messages if BARE.match(text)] == []


ONE_REMEDY = {
    "ApprovalError", "AuthenticationFailed", "ChildEnded", "HandOverError", "IllegalMove", "NotFound", "ProfileError",
    "SetupError", "StalePlan", "TargetBusy", "UnsafePlan", "WrongCluster",
}  # fmt: skip
"""Errors after which somebody has to do something that only the place which raises them knows."""
NOT_HELD = {
    "ConnectError, ReadError, PartialRead, HistoryError, EvidenceError, OfframpError": "what to do is the same for"
    " each, by the table of docs/reference.md; the message says what failed and why",
    "InputError, PlanError, LabError": "the message says what was wrong beside what is right, or shows a log",
    "RunError, StepFailed, LockLost, Stopped": "they end a run, whose state and evidence name resume and undo",
    "NothingToDo, OutputClosed": "nothing is to be done",
    "StoresDiffer": "the verb prints each value and its cause, and docs/kraft.md has a remedy for each cause",
}
VERBS = (
    "add approve ask check choose compare continue correct create do execute find follow get give go import "
    "install make move name plan put read repair run see select set sign start stop take try type undo use wait "
    "write"
)
ACTION = re.compile(
    rf"\bofframp [a-z]|\bmake setup\b|([:;,.] |\b(and|or|then) )({VERBS.replace(' ', '|')})\b"
    r"|\bmust\b|\bneeds?\b|\bhas to\b|\b(goes to|begins from): |[:;] {call}$",
    re.IGNORECASE,
)
"""The form of an action, at the latest in the last words, or what another function passes as the last."""
LEFT = {"kit/rebalances/logs/lines.py"}
"""Spark's condition after the path that was given: the path is what is wrong."""


def test_a_message_of_an_error_that_has_a_remedy_reports_what_to_do():
    held = [(place, text) for kind, place, text in raised() if kind in ONE_REMEDY]
    assert len(held) > 70
    told = [(place, text) for place, text in held if place not in LEFT and text not in ("{}", "{call}")]
    assert [(place, text) for place, text in told if not ACTION.search(text)] == []


def test_each_class_of_errors_is_held_to_report_what_to_do_or_has_a_reason_why_not():
    unheld = [name for names in NOT_HELD for name in names.split(", ")]
    assert sorted([*ONE_REMEDY, *unheld]) == sorted(ERRORS)


def raised() -> Iterator[tuple[str, str, str]]:
    """Each error that is made: its class, the file, and its message with ``{}`` for what is in it."""
    for path in FILES:
        module, *nodes = nodes_of(path)
        assert isinstance(module, ast.Module)
        known = {
            node.targets[0].id: node.value.value
            for node in module.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        }
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS and node.args:
                yield node.func.id, path, _text(node.args[0], known)


def test_no_part_of_a_message_has_lost_its_f():
    """A literal beside an f-string that has a name of its module in braces."""
    for path in FILES:
        nodes = list(ast.walk(nodes_of(path)[0]))
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        parts = [part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values]
        texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        assert [text for text in texts if names.intersection(re.findall(r"\{(\w+)\}", text))] == [], path


def _text(node: ast.AST, known: Mapping[str, str]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, known) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, known)
    if isinstance(node, ast.Name):
        return known.get(node.id, "{}")
    if isinstance(node, ast.IfExp):
        return _text(node.body, known)
    return "{call}" if isinstance(node, ast.Call) else "{}"


MAY_PATCH = {
    # A verb of the command line takes strings alone. It connects, asks Spark and starts a lab by itself.
    "tests/property/history/faults.py": {"kit.spark.session.spark_session"},
    "tests/unit/cli/conftest.py": {"kit.clients.cluster.connect", "name"},
    "tests/unit/cli/opened.py": {"kit.operations.verbs.operations.open_operations"},
    "tests/unit/cli/test_progress.py": {"name"},
    "tests/unit/kraft/move/test_overrides.py": {"kit.kraft.rehearsal.rehearse"},
    "tests/unit/kraft/test_kraft_watch.py": {"kit.kraft.watch.observe"},
    # The real function is called, and its arguments are recorded.
    "tests/unit/cli/test_never_cut.py": {"kit.terminal.listing.print_table"},
    "tests/unit/rebalances/logs/test_foreign.py": {"kit.rebalances.logs.known_text._with_kinds"},
    # The functions describe this machine and its user. No argument could.
    "tests/browser/test_chromium.py": {"tests.browser.chromium.as_root", "tests.browser.chromium.ways"},
    "tests/unit/lab/java/test_jars.py": {"kit.lab.java.jars.all_checksums", "kit.lab.java.resolver.resolve"},
    "tests/unit/lab/java/test_java.py": {"kit.spark.java.bundled_java", "kit.spark.java.trust_options"},
    "tests/unit/widgets/group/test_model.py": {"kit.engine.model.approval.system_user"},
    # Many functions read one toy cluster.
    "tests/models/offsets.py": {"module.name"},
    "tests/property/groups/read/test_hostile_znodes.py": {"whole_cluster.name"},
    # No input makes this function fail.
    "tests/unit/widgets/test_wizard.py": {"widgets.run.html.progress"},
    # Constants alone: ``lower`` checks that they are numbers.
    "tests/limits.py": {"module.name"},
}
"""File → the functions of modules that it may replace. Give a function what it needs as a parameter instead."""


def patches_in(tree: ast.Module) -> Iterator[str]:
    """Yield each replaced function of a module of the project, and each patch that does not name what it replaces."""
    known = _imports(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            *owner, name, _ = node.args
            if not isinstance(name, ast.Constant):
                yield ".".join(map(ast.unparse, (*owner, name)))
                continue
            first, *rest = [part for each in owner for part in ast.unparse(each).split(".")] or [""]
            *module, function = filter(None, [known.get(first, first), *rest, *str(name.value).split(".")])
            if not function.isupper() and _is_module(".".join(module)):
                yield ".".join([*module, function])


def _is_module(name: str) -> bool:
    place = ROOT / name.replace(".", "/")
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


def _imports(tree: ast.Module) -> dict[str, str]:
    """Name → what it is, of everything that a file imports."""
    names = dict[str, str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            names |= {each.asname or each.name.partition(".")[0]: each.name.partition(".")[0] for each in node.names}
    return names


def test_no_test_replaces_a_function_of_a_module():
    texts = {file: file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py")}
    patching = {file: set(patches_in(ast.parse(text))) for file, text in texts.items() if "setattr" in text}
    assert {str(file.relative_to(ROOT)): names for file, names in patching.items() if names} == MAY_PATCH


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('from kit.kraft import status\nmonkeypatch.setattr(status, "look", f)', ["kit.kraft.status.look"]),
        ('import kit.health.hours\npatch.setattr(kit.health.hours, "f", f)', ["kit.health.hours.f"]),
        ('monkeypatch.setattr("kit.clients.cluster.connect", f)', ["kit.clients.cluster.connect"]),
        ("monkeypatch.setattr(name, f)", ["name"]),
        ("monkeypatch.setattr(module, name, f)", ["module.name"]),
        ('from kit.rebalances.logs import scan\nmonkeypatch.setattr(scan, "BLOCK", 5)', []),
        ('from kit.history.store import Reading\nmonkeypatch.setattr(Reading, "looks", f)', []),
        ('from kit.engine.model import files\nmonkeypatch.setattr(files.os, "fsync", f)', []),
        ('import sys\nmonkeypatch.setattr(sys, "argv", [])', []),
        ('monkeypatch.setattr(toy, "look", f)', []),
    ],
)
def test_a_patch_of_a_function_is_seen(source: str, found: list[str]):
    assert list(patches_in(ast.parse(source))) == found


@pytest.mark.parametrize(
    "source",
    [
        'f"brokers {sorted(them)} do not answer"',
        'f"{list(words.nodes)!r}"',
        'f"in /brokers/ids: {control.brokers}"',
        'f"{[it.address for it in running]}"',
        'def told():\n    wrong = {it: 1 for it in them}\n    return f"in another mode: {wrong}"',
        'def told():\n    if missing := set(them) - {1}:\n        return f"{missing}"',
    ],
)
def test_a_printed_collection_is_seen(source):
    assert len(printed_collections(ast.parse(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        'f"{len(them)}"',
        "f\"{', '.join(sorted(them))}\"",
        'def told():\n    them = [1]\n    return f"{named(them, one)}"',
    ],
)
def test_a_text_made_from_another_is_none(source):
    assert printed_collections(ast.parse(source)) == []


def test_no_sentence_of_the_product_prints_a_collection():
    """Lists stand in sentences as people write them."""
    found = {path: printed_collections(nodes_of(path)[0]) for path in FILES}
    assert {path: lines for path, lines in found.items() if lines} == {}


MAY_ASK_TEXTS = {
    ("kit/history/files.py", "str(error)"): "Spark names the file and the types, or a task's error, in its text alone",
    (
        "kit/kraft/rehearsal_causes.py",
        "row.sentence",
    ): "ranks what was found as a fact by how many words of a controller's log it has",
}
"""File and message → why its text is asked. What clients, Spark and Kafka print is no message of the project."""


def test_no_branch_depends_on_the_text_of_a_message():
    """Facts before sentences: a problem has a kind. Whoever names a topic could choose the branch by its name."""
    branches = [(path, source) for path in FILES for _, source in text_branches(nodes_of(path)[0])]
    allowed = {
        (path, text): any(text in source for place, source in branches if place == path) for path, text in MAY_ASK_TEXTS
    }
    assert all(allowed.values()), "take it from the list"
    assert [
        each for each in branches if not any(each[0] == path and text in each[1] for path, text in MAY_ASK_TEXTS)
    ] == []


@pytest.mark.parametrize(
    "source",
    [
        'if "the right READ" in sentence: pass',
        'if "NoAuth" not in str(error): pass',
        "if NO_MEMBER in reason: pass",
        'if row.sentence.startswith(f"{path}:"): pass',
        'if self._last_error.endswith("lost"): pass',
        "_GAP.fullmatch(record.error)",
        "if any(each in row.sentence for each in names): pass",
        'if problem == "not read": pass',
        'if "gone" in (node.error or "").lower(): pass',
        'rows.filter(pl.col("error").str.contains("NoAuth"))',
        'if "x" in row["detail"]: pass',
    ],
)
def test_a_branch_on_a_text_is_seen(source: str):
    assert len(list(text_branches(ast.parse(source)))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "if pair in errors: pass",
        "if each.error is not None: pass",
        "if problem.kind in (REFUSED, ACCESS_LIST): pass",
        'rows.filter(pl.col("error").is_not_null())',
        'rows["error"].count()',
        'if finding == "owned_twice": pass',
        'if "Adding" in line: pass',
    ],
)
def test_a_branch_on_a_fact_is_none_on_a_text(source: str):
    assert not list(text_branches(ast.parse(source)))
