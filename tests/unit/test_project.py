"""What the project promises about itself."""

from __future__ import annotations

import ast
import re
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


READS_ONLY = ("read", "offsets_topic", "metadata_log", "zookeeper_files.py", "cluster.py", "logs")
WRITES = {
    "alter_consumer_group_offsets", "commit", "create", "create_async", "create_topics", "delete", "delete_async",
    "delete_groups", "delete_topics", "ensure_path", "ensure_path_async", "produce", "reconfig", "set", "set_acls",
    "set_acls_async", "set_async", "transaction",
}  # fmt: skip


@pytest.mark.parametrize("room", READS_ONLY)
def test_what_reads_calls_nothing_that_writes_to_a_cluster(room):
    place = Path(kit.__file__).parent / room
    for file in [place] if place.is_file() else sorted(place.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WRITES:
                is_event = node.func.attr == "set" and not node.args  # threading.Event().set()
                assert is_event, f"{file}:{node.lineno} calls {node.func.attr}"


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
