"""A step that takes longer than two seconds is reported on a terminal, and its line is cleared; no other reader
sees it.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable
from contextlib import nullcontext, redirect_stderr
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

import kit.health.idle  # noqa: F401  # If it were first imported in a test, it would keep a stand-in.
from kit import history
from kit.cli import report
from kit.cli.main import app
from kit.engine.execution.run import Run
from kit.errors import LabError
from kit.groups.read.topics import TopicSight
from kit.groups.report import run_report
from kit.health import live, sources as health
from kit.kraft import rehearsal, watch as kraft_watch
from kit.lab.process import wait_until
from kit.profile import load_profile
from kit.rebalances import offsets_topic
from kit.terminal import progress, terminal
from tests.limits import lower


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    lower(monkeypatch, progress, _PATIENCE_S=0.01)


def replaced(monkeypatch, stand_ins: dict[str, Callable[..., Any]]) -> None:
    """Let functions of the product, by their full names, do something else.

    A verb takes words alone: no argument of it reaches what it calls.
    """
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(name, stand_in)


def test_a_long_wait_is_reported_and_its_line_goes():
    with redirect_stderr(Screen()) as screen, progress.waiting("reading\x1b[2J"):
        wait_until(lambda: " s" in screen.getvalue(), "its line", 10)
    assert re.match(r"\rreading\\x1b\[2J … \d+ s", screen.getvalue())
    assert screen.getvalue().endswith("\r\x1b[K")


def test_progress_is_reported():
    with redirect_stderr(Screen()) as screen, progress.waiting("reading") as at:
        at("cell 3 of 9\x1b[2J")
        # The first line may come before what it is at.
        line = re.compile(r"reading, cell 3 of 9\\x1b\[2J … \d+ s")
        wait_until(lambda: line.search(screen.getvalue()), "its line", 10)


def test_nothing_is_reported_without_a_terminal():
    before = threading.active_count()
    with redirect_stderr(io.StringIO()) as told, progress.waiting("reading"):
        assert threading.active_count() == before
    assert told.getvalue() == ""


def test_a_report_that_takes_long_reports_it(monkeypatch, tmp_path, profile):
    screen = Screen()

    def made(*_):
        wait_until(lambda: "the report on fake is being made" in screen.getvalue(), "its line", 10)
        return SimpleNamespace(notebook="n", html="h", latest="l", outcome={"read_errors": 0})

    replaced(monkeypatch, {"kit.groups.report.run_report": made})
    with redirect_stderr(screen):
        report.report(output=tmp_path, profile=profile, profile_file=None, pattern=".*", history="", keep=None)


OPERATIONS, OFFSETS = "kit.operations.operations:Operations", "kit.moves.offsets.plan:"
SLOW = {
    "plan group g --to OZKCC": f"{OPERATIONS}.make_plan",
    "plan fleet --to kafka": f"{OPERATIONS}.make_plan",
    "plan kraft --to controllers": f"{OPERATIONS}.make_plan",
    "plan delete-groups g": f"{OPERATIONS}.make_plan",
    "plan delete-znodes g": f"{OPERATIONS}.make_plan",
    "plan show 1234": f"{OPERATIONS}.dry_run",
    "plan list --runs runs": "kit.operations.verbs.runs:list_plans",
    "plan offsets copy --from kafka --to zookeeper -g g": f"{OFFSETS}plan_copy",
    "plan offsets reset --store kafka --to latest -g g": f"{OFFSETS}plan_reset",
    "plan offsets import file --store kafka": f"{OFFSETS}plan_import",
    "plan offsets delete --store kafka -g g": f"{OFFSETS}plan_delete",
    "plan offsets export file --store kafka -g g": f"{OFFSETS}export_offsets",
    "runs --runs runs": "kit.operations.verbs.runs:list_runs",
    "act 1234": "kit.engine.execution.run:Run.act",
    "resume run": "kit.engine.execution.run:Run.resume",
    "undo run": "kit.engine.execution.run:Run.undo",
    "groups": "kit.groups.snapshot:observe",
    "readiness": "kit.views:blockers",
    "ownership": "kit.views:findings",
    "lag": "kit.views:lag",
    "groups --idle": "kit.groups.snapshot:observe",
    "groups --idle ": "kit.health.idle:idle_groups",
    "groups --idle --history folder": "kit.history.here:HistoryHere.load",
    "groups --idle --history s3a://folder": "kit.spark.session:spark_session",
    "lag --time": "kit.health.sources:time_lag",
    "lag --outlook": "kit.groups.snapshot:observe",
    "snapshot --history s3a://folder": "kit.spark.session:spark_session",
    "snapshot --history folder": "kit.history.here:HistoryHere.append",
    "watch": "kit.health.live:Polls.take",
    "znodes --path /": "kit.kraft.read.znode_tree:fetch_znodes",
    "znodes file": "kit.kraft.zookeeper_history:read_zookeeper_files",
    "rebalances -g g": "kit.rebalances.sources:read_rebalances",
    "kraft status": "kit.kraft.status:kraft_status",
    "kraft preflight": "kit.kraft.preflight:kraft_preflight",
    "kraft preflight --from file": "kit.kraft.preflight:preflight_of",
    "kraft diff": "kit.kraft.both_stores:kraft_diff",
    "kraft save file": "kit.kraft.preflight:save_metadata",
    "kraft rehearse file": "kit.kraft.rehearsal:rehearse",
    "kraft watch --history folder": "kit.kraft.watch:observe",
    "kraft report --history folder": "kit.kraft.watch:KraftHistory.soak",
    "history info folder": "kit.history.here:HistoryHere.days",
    "history info s3a://folder": "kit.history:Upkeep.days",
    "history info s3a://other": "kit.spark.session:spark_session",
    "history expire folder --days 3": "kit.history:Upkeep.days",
    "history expire folder --days 4": "kit.history:Upkeep.__init__",
    "history hours folder ": "kit.health.hours:Hours.__init__",
    "groups --idle --history s3a://other": "kit.history:History.__init__",
    "snapshot --history s3a://other": "kit.history:History.__init__",
    "watch --history s3a://folder": "kit.history:History.__init__",
    "history compact folder": "kit.history:Upkeep.compact",
    "history hours folder": "kit.health.hours:Hours.make",
    "history report folder": "kit.health.report:run_health_report",
    "report": "kit.groups.report:run_report",
}
"""Verb → what of it can take long. Two rows of a verb differ by a blank."""
CONNECTING = [
    "plan fleet --to kafka", "watch", "groups", "lag --time", "lag --outlook", "kraft status", "kraft diff", "znodes",
]  # fmt: skip

LOADED = (health, history, kraft_watch, live, offsets_topic, rehearsal, run_report)
"""A module that a verb loads while its parts are replaced would keep what replaced them."""


class Waited(Exception):
    """The line was seen."""


def _slowed(screen: Screen):
    def slow(*arguments, **named):
        try:
            wait_until(lambda: re.search(r"\r\S.* … \d+ s$", screen.getvalue()), "its line", 3)
        except LabError:
            raise AssertionError("nothing was told") from None
        raise Waited

    return slow


@pytest.fixture
def stand_in(monkeypatch, profile):
    """Replace what the verbs do before the slow part, at once."""
    cluster = SimpleNamespace(
        name="production",
        zookeeper=object(),
        cluster_id="id",
        broker_client=SimpleNamespace(run=lambda *_: TopicSight()),
        profile=load_profile(),
    )
    taken = SimpleNamespace(groups=None, members=None, migration_states=None)
    run = SimpleNamespace(
        state=None, has_written=True, is_at_work=False, is_badly_signed=False, run_id="run", notes=(), events=()
    )
    chosen = SimpleNamespace(record=run, run_id="run", request_stop=lambda who: None)
    for verb in ("act", "resume", "undo"):
        vars(chosen)[verb] = lambda *_, verb=verb: getattr(Run, verb)(chosen)
    operations = "kit.operations.operations.Operations"
    answers = {
        "kit.clients.cluster.connect": nullcontext(cluster),
        "kit.groups.snapshot.observe": taken,
        "kit.views.lag": pl.DataFrame({"is_stale": [False]}),
        "kit.health.sources.seen_at_ms": 0,
        "kit.spark.session.spark_session": None,
        "kit.kraft.metadata_file.load_metadata": SimpleNamespace(counts={}),
        "kit.kraft.move.rehearsals.sha256_of": "0" * 64,
        "kit.kraft.verbs.kraft._about": "",
        "kit.operations.verbs.operate.show_plan": None,
        **dict.fromkeys(
            f"{name}.__init__" for name in ("kit.history.Upkeep", "kit.health.hours.Hours", "kit.history.History")
        ),
        **dict.fromkeys(f"{operations}.{name}" for name in ("plan", "newer_approval")),
        **dict.fromkeys((f"{operations}.{name}" for name in ("begin", "run")), chosen),
    }
    stand_ins = {name: lambda *_, answer=answer, **__: answer for name, answer in answers.items()}
    made = {f"{operations}.__init__": lambda self, *_, **named: vars(self).update(cluster=cluster)}
    replaced(monkeypatch, stand_ins | made)


@pytest.mark.parametrize("words", SLOW)
def test_a_verb_that_takes_long_reports_it(words, stand_in, monkeypatch):
    screen = Screen()
    module, _, name = SLOW[words].partition(":")
    replaced(monkeypatch, {f"{module}.{name}": _slowed(screen)})
    with redirect_stderr(screen), pytest.raises(Waited):
        app(words.split(), standalone_mode=False)
    assert screen.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize("words", CONNECTING)
def test_a_cluster_that_does_not_answer_is_waited_for_aloud(words, stand_in, monkeypatch):
    screen = Screen()
    replaced(monkeypatch, {"kit.clients.cluster.connect": _slowed(screen)})
    with redirect_stderr(screen), pytest.raises(Waited):
        app(words.split(), standalone_mode=False)


IMPATIENT = [
    "groups", "lag", "lag --time", "lag --outlook", "groups --idle", "readiness", "ownership", "watch", "lock show",
    "export --once", "snapshot --history kept", "report", "protocol check", "plan group g --to OZKCC",
    "plan fleet --to kafka", "plan delete-groups g", "plan delete-znodes g", "plan show 12345678",
    "plan offsets reset --store kafka --to latest -g g",
]  # fmt: skip
PATIENT = ["act 12345678", "resume run", "undo run", "approve 12345678", "export", "plan kraft --to controllers"]


@pytest.mark.parametrize("words", [*IMPATIENT, *PATIENT])
def test_a_server_that_restarts_is_waited_for_by_runs_alone(words, profile, monkeypatch):
    asked = list[bool]()

    def connect(profile, timeout_s=10.0, is_patient=True):
        asked.append(is_patient)
        raise Waited

    replaced(monkeypatch, {"kit.clients.cluster.connect": connect, "kit.groups.report.connect": connect})
    with pytest.raises(Waited):
        app(words.split(), standalone_mode=False)
    assert asked == [words in PATIENT]


def test_output_meanwhile_has_a_line_of_its_own(capsys):
    with redirect_stderr(Screen()) as screen, progress.waiting("compacting"):
        wait_until(lambda: " s" in screen.getvalue(), "its line", 10)
        terminal.say("2026-11-22")
    assert re.search(r"\rcompacting … 0 s\r\x1b\[K2026-11-22\n", screen.getvalue())
