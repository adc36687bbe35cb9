"""Files of folders that other people can write to: a FIFO, a dangling link or deep JSON is one row with its error."""

from __future__ import annotations

import json
import os
import re
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kit.engine.model.approval import load_approval, save_approval
from kit.engine.model.event import parse_chain
from kit.engine.model.expiry import time_in
from kit.engine.model.journal import Journal, taken_request
from kit.engine.model.plan import load_plan, save_plan
from kit.engine.model.record import list_runs, load_run
from kit.engine.model.states import RunState
from kit.engine.model.values import parse_json
from kit.engine.runs_folder import list_plans, load_approvals
from kit.errors import ApprovalError, EvidenceError, HistoryError, InputError, PlanError
from kit.groups.read.znode_lives import load_owner_history
from kit.kraft.move import rehearsals
from kit.kraft.settings_files import read_settings_folder
from kit.moves.offsets.files import load_offsets
from kit.presentation import notebook_files
from kit.proof import consumption
from kit.text.regular_file import read_regular
from tests.models.engine import ModelRun

DEEP = "[" * 100_000
LEVELS = "[" * 101 + "]" * 101
DEADLINE_S = 30


def as_fifo(path: Path) -> None:
    os.mkfifo(path)


def as_dangling(path: Path) -> None:
    path.symlink_to(path.parent / "gone")


def as_loop(path: Path) -> None:
    path.symlink_to(path)


def as_folder(path: Path) -> None:
    path.mkdir()


def as_deep(path: Path) -> None:
    path.write_text(DEEP)


def as_levels(path: Path) -> None:
    path.write_text(LEVELS)


PLANTED = [as_fifo, as_dangling, as_loop, as_folder, as_deep, as_levels]


def in_time(call, *args):
    """Return what the call returns or raises; a call that hangs fails the test, and ends with the process."""
    ended = []

    def run():
        try:
            ended.append((call(*args), None))
        except Exception as error:  # noqa: BLE001 - raised again by the test's own thread
            ended.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(DEADLINE_S)
    assert ended, f"{call} did not return within {DEADLINE_S} s"
    value, error = ended[0]
    if error is not None:
        raise error
    return value


@pytest.fixture
def site(tmp_path):
    """A run that ended, and its plan with an approval beside it."""
    world = ModelRun(tmp_path / "runs")
    world.run.act()
    record = world.run.record
    folder = world.folder.parent / "plans"
    folder.mkdir(exist_ok=True)
    file = folder / f"{record.plan.digest[:12]}.json"
    save_plan(record.plan, file)
    save_approval(record.approvals[0], file.with_suffix(".approval.json"))
    return world


@pytest.mark.parametrize("plant", PLANTED)
def test_no_planted_plan_ends_the_listing_of_the_rest(site, plant):
    root = site.folder.parent
    plant(root / "plans" / "0000.json")
    bad, good = in_time(list_plans, root)
    assert (bad.plan, bad.kind) == ("0000", None)
    assert str(root / "plans" / "0000.json") in bad.error
    assert (good.subject, good.error) == (site.run.record.plan.subject, None)
    with pytest.raises(PlanError, match=r"0000\.json"):
        in_time(load_plan, root / "plans" / "0000.json")


@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_approval_is_a_problem_of_its_plan(site, plant):
    root = site.folder.parent
    (approved,) = in_time(list_plans, root)
    planted = root / "plans" / f"{approved.plan}.approval-2.json"
    plant(planted)
    (row,) = in_time(list_plans, root)
    assert str(planted) in row.error
    with pytest.raises(ApprovalError):
        in_time(load_approvals, root / "plans" / f"{approved.plan}.json")
    with pytest.raises(ApprovalError):
        in_time(load_approval, planted)


@pytest.mark.parametrize("plant", PLANTED)
@pytest.mark.parametrize("name", ["plan.json", "approval.json", "events.jsonl", "verdict.json", "report.html"])
def test_no_planted_file_of_a_run_ends_the_listing_of_runs(tmp_path, site, plant, name):
    other = ModelRun(tmp_path / "runs", targets=("other",))
    (site.folder / name).unlink()
    plant(site.folder / name)
    rows = {row.run_id: row for row in in_time(list_runs, site.folder.parent)}
    assert rows[other.folder.name].error is None
    row = rows[site.folder.name]
    is_missing = name == "verdict.json" and plant in (as_dangling, as_loop)
    assert is_missing or str(site.folder) in row.error
    if not is_missing:
        with pytest.raises(EvidenceError):
            in_time(load_run, site.folder)


@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_journal_is_refused_by_its_writer(site, plant):
    (site.folder / "events.jsonl").unlink()
    plant(site.folder / "events.jsonl")
    if plant in (as_deep, as_levels):  # A line without its end was torn off: it is replaced and reported.
        (site.folder / "events.jsonl").write_text(f"{LEVELS}\n{DEEP}\n")
    with pytest.raises(EvidenceError, match=r"events\.jsonl|line 1"):
        in_time(Journal, site.folder, site.time.clock)


@pytest.mark.parametrize("deep", [DEEP, LEVELS], ids=["100,000 levels", "101 levels"])
def test_a_deep_line_or_a_deep_detail_is_named(site, deep):
    with pytest.raises(EvidenceError, match="line 1 is not JSON: the JSON is nested too deeply"):
        parse_chain(deep.encode() + b"\n", "run")
    file = site.folder / "events.jsonl"
    lines = file.read_bytes().splitlines()
    last = json.loads(lines[-1]) | {
        "event": "acted",
        "outcome": "CONFIRMED",
        "item": "i",
        "step_id": "s0",
        "before": deep,
    }
    file.write_bytes(b"\n".join([*lines[:-1], json.dumps(last, separators=(",", ":")).encode(), b""]))
    with pytest.raises(EvidenceError, match=f"line {len(lines)}: before is not JSON: the JSON is nested too deeply"):
        load_run(site.folder)


def test_a_hundred_levels_are_read():
    text = "[" * 100 + "]" * 100
    assert json.dumps(parse_json(text)) == text
    with pytest.raises(ValueError, match="too deeply"):
        parse_json(LEVELS)
    with pytest.raises(ValueError, match="too deeply"):
        parse_json('{"a":' * 101 + "1" + "}" * 101)


@pytest.mark.parametrize("plant", [as_fifo, as_dangling, as_loop, as_deep, as_levels])
def test_a_planted_stop_is_heard_once_and_never_hangs_a_run(tmp_path, plant):
    world = ModelRun(tmp_path)
    plant(world.folder / "stop.json")
    who, at = in_time(taken_request, world.folder)
    assert "could not be read" in who
    assert at <= datetime.now(UTC)
    assert in_time(taken_request, world.folder) is None
    plant(world.folder / "stop.json")
    in_time(world.run.act)
    assert not os.path.lexists(world.folder / "stop.json")
    assert load_run(world.folder).state in (RunState.VERIFIED, RunState.STOPPED)


@pytest.mark.parametrize("plant", [as_fifo, as_loop, as_folder])
def test_a_planted_mark_of_an_expiry_is_a_refusal(tmp_path, plant):
    plant(tmp_path / "a.seen")
    with pytest.raises(EvidenceError, match=r"a\.seen can't be read"):
        in_time(time_in, tmp_path / "a.seen")


OTHERS = {
    "server.properties": (lambda path: read_settings_folder(path.parent), InputError),
    "offsets.jsonl": (lambda path: load_offsets(path, "cluster"), InputError),
    "owners.jsonl": (load_owner_history, HistoryError),
    "consumed.jsonl": (lambda path: consumption.load_consumption(path.parent, "orders"), HistoryError),
    "rehearsed.json": (lambda path: rehearsals.newest(path.parent.parent, "cluster"), EvidenceError),
}


@pytest.mark.parametrize("plant", [as_fifo, as_dangling, as_folder])
@pytest.mark.parametrize("name", OTHERS)
def test_files_of_other_readers_are_refused_in_their_kind_of_error(tmp_path, plant, name):
    call, refusal = OTHERS[name]
    path = tmp_path / "rehearsals" / name
    path.parent.mkdir()
    plant(path)
    with pytest.raises(refusal, match=re.escape(str(path))):
        in_time(call, path)


@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_notebook_differs(tmp_path, plant):
    plant(tmp_path / "copy.ipynb")
    assert in_time(notebook_files._cells, tmp_path / "copy.ipynb") is None


def test_a_device_is_no_file():
    with pytest.raises(OSError, match="not a regular file"):
        read_regular(Path("/dev/zero"))
