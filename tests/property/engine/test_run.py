"""Whatever hits a run, wherever: resumed or undone it ends verified, and nothing is written twice or unapproved."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from kit.engine.model.journal import EVENTS
from kit.engine.model.record import load_run
from kit.engine.model.states import RunState
from kit.errors import OfframpError
from tests.models.engine import FAULTS, Killed, ModelRun, approve_plan
from tests.soak import IS_SOAK

AT_EVENTS = {"kill", "interrupt", "press_stop", "lose_lock"}
ENDS = {RunState.VERIFIED, RunState.UNDONE, RunState.STALE}


@contextmanager
def world(shape=(2, 2), **changed):
    memory = Path("/dev/shm")
    root = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    try:
        yield ModelRun(root, shape, **changed)
    finally:
        shutil.rmtree(root)


def attempt(world, verb):
    """One process: what ends it is either told, or it is dead."""
    approval = approve_plan(world.plan, now=world.time.clock.now())
    run = world.process()
    with suppress(OfframpError, Killed, KeyboardInterrupt, ZeroDivisionError):
        getattr(run, verb)(approval)


def state_of(world) -> RunState:
    """The run's state by the last whole line of its journal. ``judge`` loads and checks the whole record."""
    lines = (world.folder / EVENTS).read_bytes().splitlines(keepends=True)
    return RunState(json.loads(next(line for line in reversed(lines) if line.endswith(b"\n")))["state"])


def go_on(world, choice):
    """Until it has ended; a cluster that changed in the midst leaves only the way back."""
    for _ in range(4):
        state = state_of(world)
        if state in ENDS:
            return state
        verb = "act" if state == RunState.APPROVED else choice
        attempt(world, verb)
        choice = "undo" if world.cluster.members != 3 else choice
    return state_of(world)


def judge(world, state):
    assert world.cluster.wrongs == []
    forward = Counter(item for item, _, new in world.cluster.writes if new == "new")
    assert all(count == 1 for count in forward.values()), forward
    if state == RunState.VERIFIED:
        assert world.is_all_done
    else:
        assert state in (RunState.UNDONE, RunState.STALE)
        assert world.is_all_back
    if state == RunState.STALE:
        assert world.cluster.writes == []
    record = load_run(world.folder)
    assert record.state == state
    recorded = Counter(event.item for event in record.events if (event.event, event.outcome) == ("acted", "CONFIRMED"))
    assert all(recorded[item] <= 1 for item in recorded)


def points_of(shape, fault):
    """Between two lines of the journal too, for what can happen there."""
    with world(shape) as one:
        one.run.act()
        assert one.is_all_done
        return [at for at, name in enumerate(one.hazard.points) if fault in AT_EVENTS or not name.startswith("event")]


@pytest.mark.parametrize(("fault", "turn"), [("kill", 0), *((fault, 1) for fault in FAULTS)])
def test_a_fault_at_every_point_of_a_run(fault, turn):
    """Resumed at every other point and undone at those between; after a kill both at all of them.

    Faults other than a kill hit every second point; in the long form every point.
    """
    ends = Counter()
    points = points_of((2, 1), fault)
    every = 1 if IS_SOAK or fault == "kill" else 2
    for number, point in enumerate(points[::every]):
        choice = ("resume", "undo")[(number + turn) % 2]
        with world((2, 1)) as one:
            one.hazard.arm(point, getattr(one, fault))
            attempt(one, "act")
            one.hazard.armed = None
            state = go_on(one, choice)
            judge(one, state)
            ends[state] += 1
    assert ends[RunState.VERIFIED] + ends[RunState.UNDONE] > ends.total() / 2, ends


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(0, 3), min_size=1, max_size=3).filter(any).map(tuple),
    faults=st.lists(st.tuples(st.sampled_from(FAULTS), st.integers(0, 80)), min_size=1, max_size=4),
    choice=st.sampled_from(["resume", "undo"]),
    on_failure=st.sampled_from(["stop", "undo"]),
)
def test_faults_on_faults_also_while_resuming_and_undoing(shape, faults, choice, on_failure):
    with world(shape, on_failure=on_failure) as one:
        verb = "act"
        for fault, point in faults:
            one.hazard.arm(point, getattr(one, fault))
            attempt(one, verb)
            state = state_of(one)
            if state in ENDS:
                break
            verb = "act" if state == RunState.APPROVED else choice
        one.hazard.armed = None
        judge(one, go_on(one, "undo" if one.cluster.members != 3 else choice))


@settings(max_examples=30, deadline=None)
@given(point=st.integers(0, 80), fault=st.sampled_from(FAULTS), shape=st.sampled_from([(2, 2), (1, 0, 2)]))
def test_a_verified_run_is_undone_through_any_fault(point, fault, shape):
    with world(shape) as one:
        one.run.act()
        one.hazard.arm(point, getattr(one, fault))
        attempt(one, "undo")
        one.hazard.armed = None
        attempt(one, "undo")
        judge(one, RunState.UNDONE)
