"""Evidence: complete, of fixed types, and every edit of it is seen."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from dataclasses import replace

import pytest

from kit.engine.execution.run import Run, start_run
from kit.engine.model import journal as journals
from kit.engine.model.event import COLUMNS, EVENT_SCHEMA, to_row
from kit.engine.model.journal import Entry, Journal, create_run
from kit.engine.model.plan import OLDER_FORMATS
from kit.engine.model.record import list_runs, load_run
from kit.engine.model.states import MOVES, RunState, moved
from kit.errors import EvidenceError, IllegalMove, PlanError, StalePlan
from tests.models.engine import Killed, ModelRun, Time, approve_plan, make_plan


@pytest.fixture
def done(tmp_path):
    world = ModelRun(tmp_path)
    world.run.act()
    return world


def lines_of(world):
    return (world.folder / "events.jsonl").read_bytes().split(b"\n")


def put(world, lines):
    (world.folder / "events.jsonl").write_bytes(b"\n".join(lines))


def rechained(lines):
    """Edit like a forger, and make the chain right again."""
    before, new = None, []
    for line in lines[:-1]:
        data = json.loads(line)
        data["previous"] = data["previous"] if before is None else before
        new.append(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode())
        before = hashlib.sha256(new[-1]).hexdigest()
    return [*new, b""]


def test_a_run_leaves_everything_behind(done):
    assert sorted(path.name for path in done.folder.iterdir()) == [
        "approval.json",
        "events.jsonl",
        "plan.json",
        "report.html",
        "verdict.json",
    ]
    assert re.fullmatch(r"20261121T120000Z-toggle-shop-orders-[0-9a-f]{4}", done.folder.name)
    record = load_run(done.folder)
    assert (record.state, record.plan, record.notes) == (RunState.VERIFIED, done.plan, ())
    acted = [
        (event.item, event.outcome, event.before, event.after) for event in record.events if event.event == "acted"
    ]
    assert acted == [(item, "CONFIRMED", '"old"', '"new"') for item in ("i00", "i01", "i10", "i11")]
    verified = [event for event in record.events if event.event == "verified"]
    assert [json.loads(event.details) for event in verified] == [{"end": 100}] * 2
    assert all(event.duration_ms is not None for event in verified)
    opened = next(event for event in record.events if event.event == "opened")
    assert {"python", "offramp"} <= set(json.loads(opened.details)["versions"])


def test_a_run_is_seen_once_it_is_whole(tmp_path):
    """Whoever lists the runs while one is being made sees none, or one that can be read."""
    seen = []
    time = Time()

    def looking():
        seen.append(list_runs(tmp_path))
        return time.clock.now()

    plan = make_plan((2,))
    folder = start_run(plan, approve_plan(plan), tmp_path, clock=replace(time.clock, now=looking))
    assert len(seen) > 3
    assert set(seen) == {()}
    (row,) = list_runs(tmp_path)
    assert (row.run_id, row.state, row.error) == (folder.name, "APPROVED", None)


def test_every_line_has_all_columns_with_one_type_each(done):
    types = {"string": str, "bigint": int}
    for line in lines_of(done)[:-1]:
        row = json.loads(line)
        assert list(row) == list(COLUMNS)
        assert all(value is None or type(value) is types[COLUMNS[name]] for name, value in row.items())
    never_null = {"run_id", "seq", "at", "monotonic_ms", "event", "state", "previous"}
    assert all(to_row(event)[name] is not None for event in load_run(done.folder).events for name in never_null)
    assert EVENT_SCHEMA.startswith("run_id string, seq bigint, at string, monotonic_ms bigint, event string")


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (lambda lines: [lines[0].replace(b"Ann", b"Eve"), *lines[1:]], "line 2 does not follow"),
        (lambda lines: [*lines[:5], *lines[6:]], "line 6 does not follow"),
        (lambda lines: [*lines[:5], lines[6], lines[5], *lines[7:]], "line 6 does not follow"),
        (lambda lines: lines[1:], "line 1 does not follow"),
        (lambda lines: [*lines[:-3], lines[-1]], "the last lines were removed"),
        (lambda lines: [*lines[:-3], lines[-2].replace(b"Every", b"Almost every"), b""], "does not follow"),
        (lambda lines: [*lines[:-2], lines[-2].replace(b"Every", b"Almost every"), b""], "not the verdict on these"),
        (lambda lines: [*lines[:3], b"{", *lines[4:]], "line 4 is not JSON"),
        (lambda lines: [*lines[:3], b'{"seq":4}', *lines[4:]], "line 4 does not have the columns"),
        (lambda lines: [*lines[:3], lines[3].replace(b'"seq":4', b'"seq":"4"'), *lines[4:]], "line 4: seq is a str"),
        (lambda lines: [*lines[:3], lines[3].replace(b'"seq":4', b'"seq":true'), *lines[4:]], "line 4: seq is a bool"),
        (lambda lines: [b""], "is empty"),
        (lambda lines: rechained([lines[0].replace(b"Ann", b"Eve"), *lines[1:]]), "not the verdict on these events"),
        (lambda lines: rechained([it.replace(b'"ACTING"', b'"STALE"') for it in lines]), "CHECKING can't become STALE"),
        (lambda lines: rechained([*lines[:4], lines[4].replace(b"OBSERVING", b"APPROVED"), *lines[5:]]), "line 5"),
    ],
)
def test_edited_events_are_detected(done, forge, said):
    put(done, forge(lines_of(done)))
    with pytest.raises(EvidenceError, match=said):
        load_run(done.folder)
    with pytest.raises(EvidenceError, match=said):
        done.process().undo()
    assert done.is_all_done


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("plan.json", "old", "odd", "was edited"),
        ("approval.json", "Bob", "Eve", "was edited"),
        ("verdict.json", "VERIFIED", "UNDONE", "verdict.json was edited"),
        ("report.html", "VERIFIED", "UNDONE", "report.html was edited"),
    ],
)
def test_an_edited_file_is_detected(done, name, old, new, said):
    path = done.folder / name
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(EvidenceError, match=said):
        load_run(done.folder)


def test_files_of_another_run_are_detected(tmp_path, done):
    other = ModelRun(tmp_path / "other", (1,))
    other.run.act()
    for name, said in (("plan.json", "not the plan that"), ("approval.json", "approvals are not")):
        folder = shutil.copytree(done.folder, tmp_path / name / done.folder.name)
        shutil.copy(other.folder / name, folder / name)
        with pytest.raises(EvidenceError, match=said):
            load_run(folder)
    renamed = shutil.copytree(done.folder, tmp_path / "renamed")
    with pytest.raises(EvidenceError, match="line 1 does not follow"):
        load_run(renamed)


def test_a_torn_last_line_is_tolerated_reported_and_replaced(tmp_path):
    world = ModelRun(tmp_path)
    world.hazard.arm(30, world.kill)
    with pytest.raises(Killed):
        world.run.act()
    record = load_run(world.folder)
    assert record.is_at_work
    assert record.notes == (
        f"""The last line is incomplete, because its writer ended within it: '{{"run_id": "{record.run_id[:-1]}'.""",
    )
    world.process().resume()
    after = load_run(world.folder)
    assert (after.state, after.notes) == (RunState.VERIFIED, ())
    torn = [event for event in after.events if event.event == "torn_line"]
    assert record.run_id[:-1] in torn[0].details


def test_a_missing_verdict_and_one_of_before_are_reported(tmp_path):
    world = ModelRun(tmp_path)
    world.run.request_stop("Cid")
    world.run.act()
    world.hazard.arm(6, world.kill)
    with pytest.raises(Killed):
        world.process().resume()
    assert "the run continued after it" in load_run(world.folder).notes[1]
    world.process().resume()
    (world.folder / "verdict.json").unlink()
    assert load_run(world.folder).notes == ("The run ended VERIFIED, and verdict.json is missing.",)


def test_a_damaged_folder_is_a_row_with_its_error(tmp_path, done):
    (tmp_path / "20990101T000000Z-empty").mkdir()
    (tmp_path / "notes.txt").write_text("no run")
    (tmp_path / ".cache").mkdir()
    copy = shutil.copytree(done.folder, tmp_path / "20000101T000000Z-copy")
    rows = list_runs(tmp_path)
    assert [row.run_id for row in rows] == [copy.name, done.folder.name, "20990101T000000Z-empty"]
    assert "line 1 does not follow" in rows[0].error
    assert "events.jsonl" in rows[2].error
    assert (rows[1].state, rows[1].kind, rows[1].subject, rows[1].approved_by) == (
        "VERIFIED",
        "toggle",
        "shop.orders",
        "Bob",
    )


def test_a_root_that_is_no_folder(tmp_path):
    assert list_runs(tmp_path / "none") == ()
    (tmp_path / "file").touch()
    with pytest.raises(EvidenceError, match="can't be read"):
        list_runs(tmp_path / "file")


def test_one_writer_at_a_time(tmp_path):
    world = ModelRun(tmp_path)
    with (
        Journal(world.folder, world.time.clock),
        pytest.raises(EvidenceError, match="another process is writing"),
    ):
        Journal(world.folder, world.time.clock)
    with pytest.raises(EvidenceError, match="can't be opened"):
        Journal(tmp_path / "none", world.time.clock)


def test_a_secret_in_an_error_is_redacted_and_that_is_reported(tmp_path):
    world = ModelRun(tmp_path)
    with Journal(world.folder, world.time.clock) as journal:
        journal.append(Entry("acted", "s0", "password=x", "REFUSED", error="password=x: ran x --password=hunter2 -v"))
        journal.append(Entry("verified", "s0", sentence="password=x", details='{"reset-password":"kafka"}'))
    first, second = load_run(world.folder).events[-2:]
    assert (first.error, first.withheld, first.item) == ("password=x: ran x --password=*** -v", "error", "password=x")
    assert (second.details, second.withheld) == ('{"reset-password":"kafka"}', None)
    assert "hunter2" not in (world.folder / "events.jsonl").read_text()


def test_text_that_is_no_unicode_is_kept_readable(tmp_path):
    world = ModelRun(tmp_path)
    with Journal(world.folder, world.time.clock) as journal:
        journal.append(Entry("failed", error="\udcff\u2028\nnext"))
    assert load_run(world.folder).events[-1].error == "\\udcff\u2028\nnext"


def test_a_line_is_durable_before_anyone_hears_of_it(tmp_path, monkeypatch):
    world, heard = ModelRun(tmp_path), []
    synced = []
    monkeypatch.setattr(journals.os, "fsync", lambda file: synced.append(len(heard)))
    with Journal(world.folder, world.time.clock, heard.append) as journal:
        for _ in range(3):
            journal.append(Entry("waiting"))
    assert synced == [0, 1, 2]


def test_a_full_disk_ends_it_and_the_next_writer_continues_after_the_last_whole_line(tmp_path, monkeypatch):
    world = ModelRun(tmp_path)
    write = journals.os.write
    with Journal(world.folder, world.time.clock) as journal:

        def half(file, data):
            if len(data) < 40:
                raise OSError(28, "No space left on device")
            return write(file, data[:-30])

        monkeypatch.setattr(journals.os, "write", half)
        with pytest.raises(EvidenceError, match="No space left"):
            journal.append(Entry("waiting", sentence="lost"))
        monkeypatch.undo()
        journal.append(Entry("waiting", sentence="kept"))
    assert [event.sentence for event in load_run(world.folder).events if event.event == "waiting"] == ["kept"]


def test_the_table_of_moves_is_whole_and_an_illegal_move_names_the_legal_ones():
    assert set(MOVES) == set(RunState)
    reached, todo = set(), {RunState.PLANNED}
    while todo:
        state = todo.pop()
        reached.add(state)
        todo |= MOVES[state] - reached
    assert reached == set(RunState)
    for old in RunState:
        for new in RunState:
            if new in MOVES[old]:
                assert moved(old, new) == new
            else:
                with pytest.raises(IllegalMove, match=f"{old} can't become {new}; from there it goes to: "):
                    moved(old, new)
    with pytest.raises(IllegalMove, match="goes to: FAILED, OBSERVING, STOPPED, UNDOING, VERIFYING"):
        moved(RunState.ACTING, RunState.VERIFIED)


def test_a_run_of_an_older_version_reports_what_it_could_not_have_proven(tmp_path):
    plan = make_plan(format=1)
    assert "way_back_s" not in plan.to_json()
    folder = create_run(plan, approve_plan(plan), tmp_path, Time().clock)
    (note,) = load_run(folder).notes
    assert note.startswith(
        "The run's plan is of format 1. A plan of that format does not prove: that each step did what"
    )


@pytest.mark.parametrize("older", OLDER_FORMATS)
@pytest.mark.parametrize("verb", ["act", "resume", "undo"])
def test_a_plan_of_an_older_format_is_read_and_never_acted_on(tmp_path, older, verb):
    plan = make_plan(format=older)
    folder = create_run(plan, approve_plan(plan), tmp_path, Time().clock)
    assert load_run(folder).plan == plan
    world = ModelRun(tmp_path / "today")
    with pytest.raises(PlanError, match="This version shows the plan, but neither executes nor undoes it"):
        getattr(Run(folder, world.performer, world.lock, clock=world.time.clock), verb)()
    assert world.cluster.writes == []


def test_a_journal_that_calls_a_stale_run_void_is_read(tmp_path):
    world = ModelRun(tmp_path)
    world.cluster.members += 1
    with pytest.raises(StalePlan):
        world.run.act()
    put(world, rechained([line.replace(b'"STALE"', b'"VOID"') for line in lines_of(world)]))
    (world.folder / "verdict.json").unlink()
    assert load_run(world.folder).state is RunState.STALE
