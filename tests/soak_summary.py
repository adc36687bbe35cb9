"""``make soak``: run the long form of the tests, keep each outcome, and end with one summary of all scenes.

This module is the command, and the pytest plugin that the command loads. Each test that ends adds a line to
``build/soak/<tree>.jsonl``. On the same tree the next ``make soak`` runs only the tests that have not passed.
To begin again, delete ``build/soak``.
"""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from io import StringIO
from itertools import groupby
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import pytest
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

FOLDER = Path("build/soak")
WAITING = ("tests/servers/test_incident.py", "tests/interop/test_migration.py", "tests/servers/test_burrow.py")
"""Files that measure a pace or a time, and hardly use the processor: they run beside each other, after most files."""
ALONE = ("tests/servers/test_time_lag_truth.py", "tests/servers/test_kraft_nodes.py")
"""Files that measure a pace or a time, and use the processor: they run last, one at a time."""
FINISHED = {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED}
PASSED, FLAKY, FAILED, SKIPPED = "passed", "passed after a failure", "failed", "skipped"
GREEN = "No test failed."


@dataclass(frozen=True)
class Outcome:
    """``test``: file and name. ``figures``: see ``tests.soak.report``. ``reason``: of a failure, or of a skip."""

    test: str
    state: str
    seconds: float
    figures: dict[str, Any]
    reason: str

    @property
    def file(self) -> str:
        return self.test.partition("::")[0]

    @property
    def scene(self) -> str:
        """The test without its parameters."""
        return self.test.partition("::")[2].partition("[")[0].removeprefix("test_").replace("_", " ")


def load(file: Path) -> list[Outcome]:
    """Return the last outcome of each test, by file. A line that a dying process cut off is left out."""
    found: dict[str, Outcome] = {}
    for line in file.read_text("utf-8").splitlines() if file.exists() else ():
        with suppress(json.JSONDecodeError):
            new = Outcome(**json.loads(line))
            before = found.get(new.test, new).state
            found[new.test] = replace(new, state=FLAKY) if (before, new.state) == (FAILED, PASSED) else new
    return sorted(found.values(), key=lambda each: each.file)


# The plugin


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak-outcomes", type=Path, help="file of outcomes: tests that passed don't run again")


def pytest_configure(config: pytest.Config) -> None:
    file, worker = config.getoption("--soak-outcomes"), getattr(config, "workerinput", None)
    if worker is not None and file is not None:
        config.pluginmanager.register(Soak(None, worker["passed"]))
    elif file is not None:
        config.pluginmanager.register(Soak(file, {each.test for each in load(file) if each.state in (PASSED, FLAKY)}))


class Soak:
    """Leaves out the tests that passed before, and keeps the outcomes of the others. A worker has no file."""

    def __init__(self, file: Path | None, passed: set[str]) -> None:
        self._file, self._passed = file, passed
        self._phases: dict[str, list[pytest.TestReport]] = defaultdict(list)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """All workers leave out the same tests, also a worker that replaces one that crashed."""
        node.workerinput["passed"] = self._passed

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in self._passed])
        items[:] = [item for item in items if item.nodeid not in self._passed]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the outcome when the test has ended. If its worker crashed, the last report is of no phase."""
        if self._file is None:
            return
        self._phases[report.nodeid].append(report)
        if report.when not in ("setup", "call"):
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(_outcome(report.nodeid, self._phases.pop(report.nodeid)))) + "\n")


def _outcome(name: str, phases: Sequence[pytest.TestReport]) -> Outcome:
    worst = max(phases, key=lambda each: (PASSED, SKIPPED, FAILED).index(each.outcome))
    reason = worst.longrepr[2] if isinstance(worst.longrepr, tuple) else worst.longreprtext
    seconds, figures = sum(each.duration for each in phases), dict(phases[-1].user_properties)
    return Outcome(name, worst.outcome, seconds, figures, "" if worst.passed else reason)


# The summary


def summary(outcomes: Sequence[Outcome], width: int) -> str:
    """Return a table: a row per file, a row per test that reported something, and the totals."""
    table = Table(box=MARKDOWN)
    table.add_column("Scene", overflow="fold")
    table.add_column("What was done", overflow="fold")
    for header in ("Records", "Lost", "Twice", "Longest pause", "Outcome", "Time"):
        table.add_column(header, justify="left" if header == "Outcome" else "right")
    for file, of_file in groupby(outcomes, lambda each: each.file):
        in_file = list(of_file)
        table.add_row(file.removeprefix("tests/"), "", "", "", "", "", *_ends(in_file))
        reported = sorted((each for each in in_file if each.figures), key=lambda each: each.scene)
        for scene, of_scene in groupby(reported, lambda each: each.scene):
            cases = list(of_scene)
            done = dict.fromkeys(each.figures["done"] for each in cases if "done" in each.figures)
            table.add_row(f"· {scene}", "; ".join(done), *_figures(cases), *_ends(cases))
    table.add_row("Total", "", *_figures(outcomes), *_ends(outcomes))
    text = StringIO()
    Console(file=text, width=width, markup=False, highlight=False).print(table)
    return text.getvalue().strip()


def _figures(outcomes: Sequence[Outcome]) -> list[str]:
    """Counts add up; of pauses the longest one counts. No cell has a figure that no test reported."""
    known = {
        name: [each.figures[name] for each in outcomes if name in each.figures] for name in ("records", "lost", "twice")
    }
    pauses = [each.figures["longest_pause_ms"] for each in outcomes if "longest_pause_ms" in each.figures]
    counts = [f"{sum(values):,}" if values else "" for values in known.values()]
    return [*counts, f"{max(pauses) / 1000:,.1f} s" if pauses else ""]


def _ends(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    states = Counter(each.state for each in outcomes)
    time = timedelta(seconds=round(sum(each.seconds for each in outcomes)))
    return ", ".join(f"{n:,} {state}" for state, n in states.items()), str(time)


def details(outcomes: Sequence[Outcome]) -> str:
    """Return the reasons of skips, then each failure and each text that a test reported."""
    skips = Counter(each.reason.removeprefix("Skipped: ") for each in outcomes if each.state == SKIPPED)
    texts = [(each.test, each.reason) for each in outcomes if each.state == FAILED]
    texts += [(each.test, each.figures["details"]) for each in outcomes if "details" in each.figures]
    lines = [f"- {n} skipped: {reason}" for reason, n in skips.items()]
    return "\n".join([*lines, *(f"\n## {test}\n\n```\n{text}\n```" for test, text in texts)])


# The command


def tree() -> str:
    """Return the commit, and a hash of every file that git does not ignore."""
    names = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    held = hashlib.sha256()
    for path in sorted({Path(name) for name in names if Path(name).is_file()}):
        held.update(f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return f"{_git('rev-parse', '--short', 'HEAD').strip()}-{held.hexdigest()[:12]}"


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


def run(given: Sequence[str], file: Path) -> list[int]:
    """Return the exit codes of pytest: of most files, of ``WAITING``, of ``ALONE``."""
    waiting, alone = ([each for each in files if _is_in(each, given)] for files in (WAITING, ALONE))
    most = [*given, *(f"--deselect={each}" for each in (*waiting, *alone))]
    command = [sys.executable, "-m", "pytest", "-p", "tests.soak_summary", f"--soak-outcomes={file}", "--timeout=3600"]
    command += ["--dist", "loadfile", "--no-loadscope-reorder"]
    codes: list[int] = []
    for n_at_once, words in ((3, most), (len(waiting), waiting), (1, alone)):
        if words and set(codes) <= FINISHED:
            codes.append(subprocess.run([*command, "-n", str(n_at_once), *words]).returncode)
    return codes


def _is_in(file: str, given: Sequence[str]) -> bool:
    return any(Path(file).is_relative_to(path) for path in given)


def verdict(codes: Sequence[int], outcomes: Sequence[Outcome], is_same_tree: bool) -> str:
    if not is_same_tree:
        return "Files changed while the soak ran: the outcomes are not of one tree."
    if not set(codes) <= FINISHED:
        return "The soak is not complete. Run make soak again: it runs the tests that have not passed."
    has_failed = pytest.ExitCode.TESTS_FAILED in codes or {FAILED, FLAKY} & {each.state for each in outcomes}
    return "A test failed." if has_failed else GREEN


def main(given: Sequence[str]) -> int:
    name = tree()
    file = FOLDER / f"{name}.jsonl"
    FOLDER.mkdir(parents=True, exist_ok=True)
    print(f"[soak] tree {name}: {sum(each.state == PASSED for each in load(file))} tests passed before", flush=True)
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C ends pytest; the summary follows.
    codes, outcomes = run(given, file), load(file)
    said, report = verdict(codes, outcomes, tree() == name), file.with_suffix(".md")
    report.write_text(f"# Soak of {name}\n\n{said}\n\n{summary(outcomes, 1000)}\n\n{details(outcomes)}\n", "utf-8")
    print(f"\n{summary(outcomes, get_terminal_size().columns)}\n\n[soak] {said} Report: {report}")
    return int(said != GREEN)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
