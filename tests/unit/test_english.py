"""Sentences for people use the field's words: none of the words and phrases below, which a reader has to guess at.

Read are the string literals, the docstrings and the help of the product, the notebooks, the README and the docs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

import kit

ROOT = Path(kit.__file__).parents[1]

BANNED = {
    r"look(s|ed|ing)?": "observation, poll (of a watch); read, examine, search for; appear",
    r"tell(s|ing)?|told": "report, show, describe; distinguish",
    r"mend(s|ed|ing)?": "repair, correct",
    r"anew|again and again": "again; repeatedly",
    r"ways? back|(take|takes|taken|took|taking) back": (
        "undo (of a run); rollback (a plan to an earlier stage or phase)"
    ),
    r"stands?|standing|stood": "is, state; stalled",
    r"(some|no|any|every)body": "another operator or tool, no active members, each client; the noun",
    r"(falls?|falling|fell|fallen) behind": "lag is growing",
    r"carr(y|ies|ied|ying)( it| them)? out": "execute",
    r"(come|comes|came) to (an end|nothing)": "finish, end; have no effect",
    r"(another|foreign|other) hands?|by hand": "another operator or tool; manually",
    r"the others": "the noun",
    r"of late": "recent",
    r"wish(es|ed)?": "request",
    r"(is|are|was|were) over(?= ?[.,;:)]|$)": "ended, expired",
    r"hand(s|ed|ing)? (out|over)": "deliver",
    r"with(held|holds|hold)": "redact",
    r"at rest": "idle, without pending orders",
    r"go(es|ing)? on|went on": "continue, be in progress",
    r"hurts?|suffers?|spared": "a word that says what happens",
    r"all is well": "what was verified",
}
"""Pattern of what is not written → what is written in its place."""

_BANNED = re.compile("|".join(rf"\b(?:{pattern})\b" for pattern in BANNED), re.IGNORECASE)
_CODE = re.compile(
    r"```[\s\S]*?```|``[^`]+``|`[^`]+`|\]\([^)]*\)|\.\w+\(|^\s*(?:>>>|\.\.\.) .*$|^ {4,}\w+(?:, \w+)*:(?= )",
    re.MULTILINE,
)
"""Code, links' targets, doctests, and names of arguments: names are free."""


def found_in(text: str) -> list[str]:
    """The banned words of a text of more than one word; names in code don't count.

    >>> found_in("Nobody mends it."), found_in("``look`` reads, as `tell` does"), found_in("standing")
    (['Nobody', 'mends'], [], [])
    """
    if not re.search(r"\w\s+\w", text.strip()):
        return []
    return [match[0] for match in _BANNED.finditer(_CODE.sub(" ", text))]


def literals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each string of a module; what is filled in is ``{}``."""
    parts = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in node.values}
            yield node.lineno, "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)  # type: ignore[misc]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.lineno, node.value


def texts(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the line (of a notebook the cell) and the text of everything in a file that a person reads."""
    if file.suffix == ".py":
        yield from literals(ast.parse(file.read_text(encoding="utf-8")))
    elif file.suffix == ".ipynb":
        for number, cell in enumerate(nbformat.read(file, as_version=4).cells):
            if cell.cell_type == "markdown":
                yield number, cell.source
            else:
                yield from ((number, text) for _, text in literals(ast.parse(cell.source)))
    else:
        code = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
        page = code.sub(lambda block: "\n" * block[0].count("\n"), file.read_text(encoding="utf-8"))
        yield from enumerate(page.splitlines(), 1)


def rooms() -> dict[str, list[Path]]:
    """Each room of the code, the notebooks, and each page, with its files. Templates of log lines are left out."""
    found: dict[str, list[Path]] = {}
    for file in sorted([*(ROOT / "kit").rglob("*.py"), *(ROOT / "widgets").rglob("*.py")]):
        if file.parent.name != "wordings":
            parts = file.relative_to(ROOT).parts
            found.setdefault("/".join(parts[:2]), []).append(file)
    found["notebooks"] = sorted((ROOT / "notebooks").rglob("*.ipynb"))
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        found[str(page.relative_to(ROOT))] = [page]
    return found


ROOMS = rooms()


def banned(room: str) -> list[str]:
    where = [(file.relative_to(ROOT), line, found_in(text)) for file in ROOMS[room] for line, text in texts(file)]
    return [f"{file}:{line}: {', '.join(words)}" for file, line, words in where if words]


@pytest.mark.parametrize("room", ROOMS)
def test_no_banned_word_is_in(room):
    assert banned(room) == [], BANNED


CLAUSE = re.compile(
    r"(what|who|whose|whom|of|so (many|much)|how|which|where|when|why|whether|that|those|such|as)\b", re.I
)
"""The beginnings of clauses and fragments, with which no docstring and no test name begins."""


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring, also of attributes and constants."""
    for node in ast.walk(tree):
        for statement in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                yield statement.lineno, str(statement.value.value).strip()


def test_no_docstring_begins_with_a_clause():
    files = [file for room in ("kit", "widgets", "tests") for file in sorted((ROOT / room).rglob("*.py"))]
    begun = [
        f"{file.relative_to(ROOT)}:{line}: {text[:60]}"
        for file in files
        for line, text in docstrings(ast.parse(file.read_text(encoding="utf-8")))
        if CLAUSE.match(text)
    ]
    assert begun == []


def test_no_test_name_begins_with_a_clause_or_has_a_banned_word():
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in (ROOT / "tests").rglob("test_*.py"))
    functions = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    names = {node.name.removeprefix("test_") for node in functions if node.name.startswith("test_")}
    sentences = {name: name.replace("_", " ") for name in names}
    assert [name for name, text in sentences.items() if CLAUSE.match(text) or found_in(text)] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("somebody else set it; go on by hand", ["somebody", "go on", "by hand"]),
        ("the pause is over", ["is over"]),
        ("the lag is over 100 records", []),
        ("understands a standalone tool", []),
    ],
)
def test_words_are_found_as_words(text, words):
    assert found_in(text) == words
