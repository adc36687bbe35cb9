"""``docs/races.md`` and its protocol explain every race and mistake in the code; the names there exist."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
PAGES = ("docs/races.md", "docs/evidence/kip-125-mistakes.md")
PAGE = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
SIMULATED = ROOT / "tests/property/consumer/test_simulation_races.py"
MODULES = {path.stem for path in (ROOT / "kit/consumer/zookeeper").glob("*.py")}


def rows(letter: str) -> dict[str, str]:
    """The page's table rows by their number; ``D12, D13`` is two."""
    lines = re.findall(rf"^\| ({letter}\d+(?:, {letter}\d+)*) \|(.*)$", PAGE, re.MULTILINE)
    return {number: row for numbers, row in lines for number in numbers.split(", ")}


def mentions(letter: str, folders: Iterable[str]) -> set[str]:
    texts = (path.read_text(encoding="utf-8") for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return {number for text in texts for number in re.findall(rf"\b{letter}[1-9]\d?\b", text)}


def names_of_code() -> list[tuple[str, str]]:
    named = re.findall(r"`([a-z_]+)\.([A-Za-z_]+)`", PAGE)
    return sorted({(module, name) for module, name in named if module in MODULES and name not in ("py", "until")})


def test_every_race_and_mistake_that_is_mentioned_is_explained() -> None:
    folders = ("kit/consumer", "kit/groups/read", "tests/simulation", "tests/property/consumer")
    assert list(rows("R")) == [f"R{number}" for number in range(1, 26)]
    assert mentions("R", folders) <= rows("R").keys()
    assert mentions("D", folders) <= rows("D").keys()
    assert mentions("I", ("kit/consumer",)) <= rows("I").keys()


def test_every_test_that_is_named_exists() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    files = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    for number, row in rows("R").items():
        last = row.rstrip(" |").rpartition("|")[2]
        for name in re.findall(r"test_\w+\.py", last):
            assert name in files, (number, name)
        for name in re.findall(r"\b(test_\w+)\b(?!\.py)", last):
            assert f"def {name}(" in sources, (number, name)
        for name in re.findall(r"`(r\d\d)`", last):
            assert f"def test_{name}_" in SIMULATED.read_text(encoding="utf-8"), (number, name)


@pytest.mark.parametrize(("module", "name"), names_of_code())
def test_the_code_that_is_named_exists(module: str, name: str) -> None:
    source = (ROOT / f"kit/consumer/zookeeper/{module}.py").read_text(encoding="utf-8")
    assert hasattr(import_module(f"kit.consumer.zookeeper.{module}"), name) or f"def {name}(" in source
