"""``make soak`` keeps each outcome, runs again what has not passed, and ends with one table of all scenes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from kit.lab.process import wait_until
from tests import soak, soak_summary
from tests.soak_summary import FAILED, FLAKY, GREEN, PASSED, SKIPPED, Outcome

ROOT = Path(soak_summary.__file__).parents[1]
SCENES = """
import os, pathlib, signal
import pytest
from tests import soak

@pytest.mark.parametrize("n", [1, 2])
def test_the_toggle(n, record_property):
    soak.report(record_property, records=500)
    soak.report(record_property, "50 toggles", records=1000 * n, lost=0, twice=n, longest_pause_ms=100.0 * n)

def test_a_disk():
    pytest.skip("no disk")

def test_that_is_interrupted():
    if not os.path.exists("build/begun"):
        pathlib.Path("build/begun").touch()
        signal.pause()

def test_that_fails_at_first():
    assert os.path.exists("build/repaired"), "not repaired"
"""


def outcome(test: str, state: str = PASSED, seconds: float = 1.0, reason: str = "", **figures: object) -> Outcome:
    return Outcome(f"tests/{test}", state, seconds, figures, reason)


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]


def test_the_table_has_a_row_per_file_and_per_test_with_figures_and_the_totals() -> None:
    toggles = "interop/test_toggles.py::test_to_and_fro[{}]"
    figures = {"done": "50 toggles", "records": 1000, "lost": 0}
    outcomes = [
        outcome(toggles.format(1), seconds=3600, **figures, longest_pause_ms=200.0),
        outcome(toggles.format(2), FAILED, 60, **figures, longest_pause_ms=1200.0),
        outcome("interop/test_toggles.py::test_of_the_rest"),
        outcome("property/test_walks.py::test_walks", FLAKY, done="25 walks"),
    ]
    header, _, *rows = cells(soak_summary.summary(outcomes, 1000))
    assert header == ["Scene", "What was done", "Records", "Lost", "Twice", "Longest pause", "Outcome", "Time"]
    assert rows == [
        ["interop/test_toggles.py", "", "", "", "", "", "2 passed, 1 failed", "1:01:01"],
        ["· to and fro", "50 toggles", "2,000", "0", "", "1.2 s", "1 passed, 1 failed", "1:01:00"],
        ["property/test_walks.py", "", "", "", "", "", "1 passed after a failure", "0:00:01"],
        ["· walks", "25 walks", "", "", "", "", "1 passed after a failure", "0:00:01"],
        ["Total", "", "2,000", "0", "", "1.2 s", "2 passed, 1 failed, 1 passed after a failure", "1:01:02"],
    ]


def test_a_narrow_table_wraps_its_cells() -> None:
    file = "property/" + "long_name_" * 9
    table = soak_summary.summary([outcome(f"{file}::test_b", done="a long account " * 20)], 100)
    assert max(map(len, table.splitlines())) <= 100
    assert table.count("account") == 20
    assert file in "".join(row[0] for row in cells(table))


def test_a_failure_a_skip_and_a_text_are_in_the_details() -> None:
    outcomes = [
        outcome("test_a.py::test_b[1]", FAILED, reason="assert 1 == 2"),
        outcome("test_a.py::test_c", SKIPPED, reason="Skipped: no disk"),
        outcome("test_a.py::test_d", details="medians"),
    ]
    text = soak_summary.details(outcomes)
    assert text.startswith("- 1 skipped: no disk\n")
    assert "## tests/test_a.py::test_b[1]\n\n```\nassert 1 == 2\n```" in text
    assert "## tests/test_a.py::test_d\n\n```\nmedians\n```" in text


def test_the_last_outcome_counts_and_a_failure_is_not_forgotten(tmp_path: Path) -> None:
    runs = [outcome("a", FAILED), outcome("b", FAILED), outcome("c", SKIPPED), outcome("b"), outcome("c"), outcome("d")]
    whole = "".join(json.dumps(asdict(each)) + "\n" for each in runs)
    file = tmp_path / "outcomes.jsonl"
    file.write_text(whole[:-5])
    states = {"tests/a": FAILED, "tests/b": FLAKY, "tests/c": PASSED}
    assert {each.test: each.state for each in soak_summary.load(file)} == states
    file.write_text(whole[:-5] + whole)
    assert {each.test: each.state for each in soak_summary.load(file)} == states | {"tests/d": PASSED}
    assert soak_summary.load(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("codes", "states", "is_same_tree", "words"),
    [
        ([0, 0], [PASSED, SKIPPED], True, GREEN),
        ([5, 5], [PASSED], True, GREEN),
        ([1, 0], [PASSED], True, "A test failed"),  # A process was left behind.
        ([0, 0], [PASSED, FLAKY], True, "A test failed"),
        ([2], [PASSED], True, "not complete"),
        ([0, 0], [PASSED], False, "Files changed"),
    ],
)
def test_the_verdict(codes: list[int], states: list[str], is_same_tree: bool, words: str) -> None:
    outcomes = [outcome(str(number), state) for number, state in enumerate(states)]
    assert words in soak_summary.verdict(codes, outcomes, is_same_tree)


def test_files_that_have_a_turn_of_their_own_exist() -> None:
    files = (*soak_summary.WAITING, *soak_summary.ALONE)
    assert [each for each in files if not (ROOT / each).exists()] == []


def test_only_known_figures_are_recorded() -> None:
    recorded: dict[str, object] = {}
    soak.report(recorded.__setitem__, "3 kills", lost=0)
    assert recorded == {"done": "3 kills", "lost": 0}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "test_scenes.py").write_text(SCENES)
    (tmp_path / ".gitignore").write_text("__pycache__/\nbuild/\n")
    monkeypatch.chdir(tmp_path)
    identity = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "First"]):
        subprocess.run(["git", *words], check=True)
    return tmp_path


def test_another_tree_has_another_name(repository: Path) -> None:
    before = soak_summary.tree()
    (repository / "build").mkdir()
    (repository / "build/log").touch()
    assert soak_summary.tree() == before
    (repository / "new.py").touch()
    with_a_file = soak_summary.tree()
    (repository / "test_scenes.py").write_text("")
    assert len({before, with_a_file, soak_summary.tree()}) == 3


@pytest.mark.slow
def test_an_interrupted_soak_continues_and_its_table_has_all_runs(repository: Path) -> None:
    """Ctrl-C reaches every process of the terminal."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    command = [sys.executable, "-m", "tests.soak_summary", "test_scenes.py"]

    def begin() -> subprocess.Popen[str]:
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)

    interrupted = begin()
    wait_until((repository / "build/begun").exists, "the test that waits", 60)
    wait_until(lambda: count(repository) == 3, "outcomes of the tests before it", 60)
    os.killpg(interrupted.pid, signal.SIGINT)
    printed, _ = interrupted.communicate()
    assert (interrupted.returncode, "[soak] The soak is not complete." in printed) == (1, True), printed
    printed, _ = begin().communicate()
    assert " 2 tests passed before" in printed
    assert "[soak] A test failed." in printed
    (repository / "build/repaired").touch()
    printed, _ = begin().communicate()
    assert " 3 tests passed before" in printed
    assert "[soak] A test failed." in printed, "a failure is not forgotten on its tree"
    table = cells("\n".join(line for line in printed.splitlines() if line.startswith("|")))
    assert [row[:-1] for row in table[2:]] == [
        ["test_scenes.py", "", "", "", "", "", "3 passed, 1 skipped, 1 passed after a failure"],
        ["· the toggle", "50 toggles", "3,000", "0", "3", "0.2 s", "2 passed"],
        ["Total", "", "3,000", "0", "3", "0.2 s", "3 passed, 1 skipped, 1 passed after a failure"],
    ]
    (report,) = (repository / "build/soak").glob("*.md")
    assert "- 1 skipped: no disk" in report.read_text()


def count(repository: Path) -> int:
    """Return how many outcomes are kept."""
    return sum(len(soak_summary.load(file)) for file in (repository / "build/soak").glob("*.jsonl"))
