"""The docs say what is: paths, names, commands, settings and tables in them are held against the code."""

from __future__ import annotations

import ast
import re
import shlex
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kit import errors
from kit.cli.main import app
from kit.moves.group import rules as group_rules
from kit.profile import load_profile
from kit.rebalances.analyze.findings import log_findings
from kit.rebalances.analyze.logs_vs_topic import source_differences
from tests import docs
from tests.docs import ROOT

PAGES = [page for page in docs.PAGES if page.name != "CHANGELOG.md"]  # It reports names as they were.
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)?(?:#([^)\s]+))?\)")
PATH = re.compile(r"(?:kit|widgets|tests|notebooks|docs)/[\w./*-]*")
NAME = re.compile(r"(?:kit|widgets|tests)(?:\.\w+)+")
PLACEHOLDER = re.compile(r"[A-Z]+|<.*>|…")


def fenced(language: str) -> Iterator[Any]:
    for page in PAGES:
        for number, block in enumerate(FENCE.findall(page.read_text(encoding="utf-8"))):
            if block[0] == language:
                yield pytest.param(block[1], id=f"{page.name}-{number}")


def spans(page: Path) -> list[str]:
    return SPAN.findall(FENCE.sub("", page.read_text(encoding="utf-8")))


pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@pages
def test_parts_made_from_the_code_are_as_they_would_be_made_now(page):
    text = page.read_text(encoding="utf-8")
    assert text == docs.render(text), "run: python -m tests.docs"


def test_each_part_that_can_be_made_is_on_one_page():
    made = [name for page in PAGES for name in docs.MADE.findall(page.read_text(encoding="utf-8"))]
    assert sorted(made) == sorted(docs.BLOCKS)


# Paths and names


@pages
def test_each_path_in_code_marks_is_there(page):
    missing = [path for span in spans(page) for path in _missing(span)]
    assert missing == []


def _missing(span: str) -> Iterator[str]:
    path, _, name = span.partition(":")
    if not PATH.fullmatch(path):
        return
    found = sorted(ROOT.glob(path.rstrip("/")))
    if not found or (name and name not in _definitions(found[0])):
        yield span


@cache
def _definitions(file: Path) -> frozenset[str]:
    return frozenset(_defined(ast.parse(file.read_text(encoding="utf-8")).body))


def _defined(body: list[ast.stmt], before: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield before + node.name
            yield from _defined(node.body, f"{before}{node.name}.")
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        yield from (before + target.id for target in targets if isinstance(target, ast.Name))


@pages
def test_each_name_of_a_package_in_code_marks_can_be_imported(page):
    names = [found[0] for span in spans(page) if (found := NAME.match(span))]
    assert [name for name in names if not _is_there(name)] == []


def _is_there(name: str) -> bool:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            there = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        return _has(there, parts[end:])
    return False


def _has(thing: Any, names: list[str]) -> bool:
    for name in names:
        if not hasattr(thing, name):
            return False
        thing = getattr(thing, name)
    return True


@pages
def test_each_link_leads_somewhere(page):
    links = LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    assert [link for link in links if "://" not in link[0] and not _leads(page, *link)] == []


def _leads(page: Path, target: str, anchor: str) -> bool:
    there = page.parent / target if target else page
    return there.exists() and (not anchor or anchor in _anchors(there))


def _anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}  # GitHub makes them so.


def test_the_site_has_each_page_once():
    listed = re.findall(r"[\w/.-]+\.md$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))


# Examples


@pytest.mark.parametrize("text", list(fenced("python")))
def test_python_in_the_docs_parses_and_its_names_are_there(text):
    tree = ast.parse(textwrap.dedent(text))
    wanted = [f"{node.module}.{each.name}" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
              for each in node.names]  # fmt: skip
    wanted += [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    assert [name for name in wanted if NAME.fullmatch(name) and not _is_there(name)] == []


def commands() -> list[str]:
    """Each ``offramp …`` of the docs, in blocks for a shell and in code marks."""
    lines = [line for block in fenced("sh") for line in block.values[0].splitlines()]
    marked = [span for page in PAGES for span in spans(page)]
    found = [part for text in [*lines, *marked] for part in re.split(r"&&|(?=\bofframp\s)", text)]
    return sorted({part.strip() for part in found if part.startswith("offramp ")})


def test_there_are_commands_in_the_docs():
    assert len(commands()) > 20


@pytest.mark.parametrize("command", commands())
def test_each_command_in_the_docs_is_one(command):
    verb: Any = typer.main.get_command(app)
    words = shlex.split(command.replace("\\|", "|"), comments=True)[1:]
    words = words[: words.index("|")] if "|" in words else words
    while words and hasattr(verb, "get_command") and not PLACEHOLDER.fullmatch(words[0]) and words[0][0] != "-":
        assert words[0] in verb.list_commands(None), f"{verb.name} has no {words[0]}"
        verb = verb.get_command(None, words.pop(0))
    own = words[: words.index("--")] if "--" in words else words
    known = {option for parameter in verb.params for option in parameter.opts} | {"--help"}
    unknown = [word for word in own if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in known]
    assert unknown == []


def test_each_option_in_the_docs_is_one_of_some_verb():
    known = set(_options(typer.main.get_command(app))) | {"--help", "--"}
    marked = {span.split()[0].partition("=")[0] for page in PAGES for span in spans(page) if span.startswith("--")}
    assert marked - known == set()


def _options(verb: Any) -> Iterator[str]:
    yield from (option for parameter in verb.params for option in parameter.opts)
    if hasattr(verb, "get_command"):
        for name in verb.list_commands(None):
            yield from _options(verb.get_command(None, name))


def test_each_environment_variable_and_make_target_in_the_docs_is_there():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    code = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "kit").rglob("*.py"))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [name for name in set(re.findall(r"\bOFFRAMP_[A-Z_]+", text)) if name not in code + makefile] == []
    targets = set(re.findall(r"[`\n]make ([a-z]+)", text))
    assert len(targets) > 5
    assert [target for target in targets if f"\n{target}:" not in makefile] == []


SETTINGS = [block for block in fenced("toml") if block.values[0].startswith("[clusters")]


@pytest.mark.parametrize("text", SETTINGS)
def test_settings_in_the_docs_make_a_profile(text, tmp_path, monkeypatch):
    monkeypatch.setenv("KAFKA_PASSWORD", "told")
    (tmp_path / "ca.pem").write_text("")
    cluster = "" if "bootstrap_servers" in text else '[clusters.production]\nbootstrap_servers = "k:9092"\n'
    file = tmp_path / "offramp.toml"
    file.write_text(cluster + re.sub(r"(ssh-ed25519|ecdsa-sha2-nistp256) AAAA…", _new_key, text))
    assert load_profile("production", file).name == "production"


def _new_key(shown: re.Match[str]) -> str:
    """Keys are cut short in the docs."""
    key = Ed25519PrivateKey.generate() if shown[1] == "ssh-ed25519" else ec.generate_private_key(ec.SECP256R1())
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def test_there_are_settings_in_the_docs():
    assert len(SETTINGS) >= 3


# All of a kind


def test_the_map_has_each_room_once():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `([\w/.]+)` \|", text, re.MULTILINE)
    rooms = [room.replace(".", "/") for floor in docs.layers() for room in floor]
    assert sorted(path.removesuffix(".py") for path in told) == sorted(rooms), "each room is a row of the first table"


def test_the_table_of_errors_has_each_of_them_and_what_to_do_next():
    tree = {kind.__name__: kind.exit_code for kind in vars(errors).values() if isinstance(kind, type)}
    assert {name: number for name, number, _ in docs.error_tree()} == tree
    assert docs.NEXT.keys() == tree.keys()


def test_the_table_of_rights_has_each_command_once_and_no_other():
    text = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`offramp .+?) \|", text, re.MULTILINE)
    rows = [command for cell in cells for command in re.findall(r"`offramp ([^`]+)`", cell)]
    assert sorted(rows) == sorted(_commands(typer.main.get_command(app)))


def _commands(verb: Any, name: str = "") -> Iterator[str]:
    """The names of all commands below ``verb`` that are not groups of commands."""
    if not hasattr(verb, "get_command"):
        yield name
        return
    for each in verb.list_commands(None):
        yield from _commands(verb.get_command(None, each), f"{name} {each}".strip())


def test_each_rule_for_a_group_is_explained():
    text = (ROOT / "docs/migration.md").read_text(encoding="utf-8")
    assert [rule.check_id for rule in group_rules.RULES if f"`{rule.check_id}`" not in text] == []


def test_each_command_in_a_text_of_the_code_and_in_a_notebook_is_one():
    notebooks = (file.read_text(encoding="utf-8") for file in (ROOT / "notebooks").rglob("*.ipynb"))
    found = {match for text in (*_texts(), *notebooks) for match in re.findall(r"`offramp ([a-z][a-z-]*)\b", text)}
    assert len(found) > 10
    assert found - set(typer.main.get_command(app).list_commands(None)) == set()


def test_each_message_that_the_docs_explain_is_one_of_the_code():
    page = (ROOT / "docs/how-to/troubleshooting.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`.+?) \|", page, re.MULTILINE)
    named = [span for cell in cells for span in SPAN.findall(cell) if not re.fullmatch(r"[A-Z_]+", span)]
    texts = "\n".join(_texts())
    assert len(named) > 10
    assert [message for message in named if message not in texts] == []


def _texts() -> Iterator[str]:
    """Each text in the code, with ``{}`` for what is in it."""
    for file in (ROOT / "kit").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_the_rules_are_found_in_each_module():
    assert docs.rules().count("| group |") > 10
    assert docs.rules().count("| fleet |") > 1
    assert docs.rules().count("| offsets |") > 5
    assert docs.rules().count("| delete-groups |") > 1


def test_each_finding_about_rebalances_is_explained():
    text = (ROOT / "docs/rebalances.md").read_text(encoding="utf-8")
    promised = " ".join([log_findings.__doc__ or "", source_differences.__doc__ or ""])
    kinds = re.findall(
        r"``([a-z_]+)``", promised.replace("``epoch_differences``", "").replace("``coordinator_differences``", "")
    )
    assert len(kinds) > 15
    assert [kind for kind in kinds if f"`{kind}`" not in text] == []


MAP = {
    "a column of lag": ("kit/groups/analyze/lag.py", "lag_retained="),
    "a broker's log line": ("kit/rebalances/logs/wordings/broker.py", "member_joining|"),
    "the write of the toggle": ("kit/moves/group/toggle.py", "client.set_async("),
    "the heat map's colours": ("kit/groups/show/charts.py", "symlog"),
    "a fault in the lab": ("kit/lab/faults.py", "def kill("),
    "what `offramp groups` prints": ("kit/groups/analyze/summary.py", "def group_summary("),
    "how long an approval holds": ("kit/operations/operations.py", "VALID_FOR ="),
    "an approval that expired": ("kit/engine/model/approval.py", "the approval expired"),
    "which znodes are read under": ("kit/groups/read/zookeeper.py", "def _fetch_groups("),
    "counts as stuck": ("kit/health/analyze/burrow.py", '"STALL",'),
    "a metric of `offramp export`": ("kit/health/export/metrics.py", "offramp_consumer_group"),
    "a check of the preflight": ("kit/kraft/analyze/preflight.py", "*preflight_topics.CHECKS"),
    "brokers are rolled": ("kit/kraft/move/step_maker.py", "def _last_apart("),
    "a record type of the metadata log": ("kit/kraft/metadata_log/make_record_types.py", '"record_types.json"'),
}
"""The words that a new owner searches for: what the file that the map names has to hold."""


@pytest.mark.parametrize(("what", "there"), MAP.items(), ids=MAP)
def test_the_map_alone_leads_to_the_file(what, there):
    file, text = there
    line = next(line for line in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines() if what in line)
    assert re.findall(r"`(kit/[\w/]+\.py)", line)[0] == file
    assert text in (ROOT / file).read_text(encoding="utf-8")
