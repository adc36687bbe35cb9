"""The ways in which a run or its way back went wrong once, each led into manually; the judge examines every write.

``test_adversary_mistakes.py`` leads into them again with the mistakes put back.
"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from kit.engine.execution.run import RunResult
from kit.engine.model.states import RunState
from kit.errors import OfframpError, TargetBusy
from kit.moves.group.group_state import KC, MEZKCC, OZKCC
from kit.moves.group.replacement import ReplaceParameters, replace_step
from kit.moves.group.toggle import mode_path
from kit.tables.groups import KAFKA, ZOOKEEPER
from tests.adversary import moves
from tests.adversary.deployers import Manner, instruction
from tests.adversary.plans import forged, of_group
from tests.adversary.process import Process
from tests.adversary.scene import begin, move_plan, record, scene, strike_at, toggle_plan
from tests.adversary.world import ContestedCluster
from tests.adversary.znodes import LOST

OLD, ENABLED = (OZKCC,) * 3, (MEZKCC,) * 3
DAYS_90 = timedelta(days=90).total_seconds()


def all_to_kc(world: ContestedCluster, name: str) -> None:
    """Other operators or tools continued with the group, soundly, to the end of the path."""
    for one in list(world.groups[name].members):
        world.replace_member(name, one.member_id, KC)
    world.set_toggle(name, KAFKA)
    world.settle()


@pytest.mark.parametrize("later_s", [600.0, DAYS_90])
def test_undo_after_others_continued_starts_no_member(later_s: float) -> None:
    """A1: stopped when all were MEZKCCs; then the group went to KCs. Undo would start OZKCCs beside them."""
    with scene(("orders", OLD, None), ("other", OLD, None)) as world:
        process = begin(world, move_plan(world, "orders", "all MEZKCC"))
        strike_at(world, "event acted", moves.stops, nth=3)
        process.work("act")
        assert record(process).state == RunState.STOPPED
        world.strike = None
        all_to_kc(world, "orders")
        world.time.seconds += later_s
        again = world.again(process)
        again.work("undo")
        assert record(again).state != RunState.UNDONE
        assert world.groups["orders"].mix.counts == {KC: 3}


def test_undo_of_a_verified_run_beside_others_work_starts_no_member() -> None:
    """A1, within the validity of its approval."""
    with scene(("orders", OLD, None)) as world:
        process = begin(world, move_plan(world, "orders", "all MEZKCC"))
        process.work("act")
        assert record(process).state == RunState.VERIFIED
        all_to_kc(world, "orders")
        world.again(process).work("undo", world.approve(record(process).plan))
        assert world.groups["orders"].mix.counts == {KC: 3}


def test_undo_of_a_verified_run_is_done_where_no_one_came_between() -> None:
    with scene(("orders", OLD, None)) as world:
        process = begin(world, move_plan(world, "orders", "all KC"))
        process.work("act")
        world.settle()
        again = world.again(process)
        again.work("undo", world.approve(record(process).plan))
        assert record(again).state == RunState.UNDONE
        assert world.groups["orders"].mix.counts == {OZKCC: 3}


@pytest.mark.parametrize("seed", range(8))
def test_a_plan_with_other_parameters_writes_nothing(seed: int) -> None:
    """A3."""
    with scene(("orders", ENABLED, None), ("other", ENABLED, None)) as world:
        world.rng.seed(seed)
        plan = move_plan(world, "orders", "Kafka coordination" if seed % 2 else "canary KC")
        try:
            plan = forged(plan, ["other"], world.rng)
        except OfframpError:
            return  # It can't even be made.
        process = world.start(plan, is_forged=True)
        if process is not None:
            process.work("act")


def test_a_step_that_acts_on_another_group_writes_nothing() -> None:
    """A3: it says ``orders``; its parameters say ``other``."""
    with scene(("orders", OLD, None), ("other", OLD, None)) as world:
        plan = move_plan(world, "orders", "canary MEZKCC")
        plan = replace(plan, steps=(of_group(plan.steps[0], "other"), *plan.steps[1:]))
        process = world.start(plan, is_forged=True)
        if process is not None:
            process.work("act")


@pytest.mark.parametrize(("old", "new"), [(KC, OZKCC), (OZKCC, KC)])
def test_a_plan_of_a_mix_that_reads_twice_starts_no_member(old: str, new: str) -> None:
    """Consistent with itself, approved, and senseless: old consumers and plain Kafka consumers are never beside."""
    with scene(("orders", (old,) * 3, KAFKA if old == KC else None)) as world:
        plan = move_plan(world, "orders", "all MEZKCC")
        words = ({old: 3}, {old: 2, new: 1}, instruction("orders", old, new), True)
        try:
            plan = replace(plan, steps=(replace_step("01-senseless", ReplaceParameters("orders", *words)),))
        except OfframpError:
            return  # It can't even be made.
        process = world.start(plan)
        if process is not None:
            process.work("act")
        assert world.groups["orders"].mix.counts == {old: 3}


@pytest.mark.parametrize("name", ["reset-password", "auth.secret", "rotate-credentials", "user_api-key"])
def test_a_name_like_a_secret_prevents_no_exit(name: str) -> None:
    """B4: all back at once, of groups with any name; and a way there whose evidence names it."""
    with scene((name, ENABLED, None), ("other", ENABLED, None)) as world:
        there = begin(world, toggle_plan(world, KAFKA, name, "other"))
        there.work("act")
        assert record(there).state == RunState.VERIFIED
        world.settle()
        back = begin(world, toggle_plan(world, ZOOKEEPER, name, "other", wave=0))
        back.work("act")
        assert record(back).state == RunState.VERIFIED


@pytest.mark.parametrize("manner", [Manner.SLOW, Manner.FAILS_LATE])
def test_nothing_is_undone_while_another_client_may_still_do_it(manner: Manner) -> None:
    """B8: a person was asked and took long; the counts look as before."""
    with scene(("orders", OLD, None)) as world:
        process = begin(world, move_plan(world, "orders", "canary MEZKCC"))
        world.manners = (manner,)
        process.work("act")
        world.manners = (Manner.PROMPT,)
        world.settle()
        again = world.again(process)
        again.work("undo")
        state = record(again).state
        while world.open_orders:
            world.finish_late(world.open_orders[0])
        if state == RunState.UNDONE:
            assert world.groups["orders"].mix.counts == {OZKCC: 3}


@pytest.mark.parametrize("move", [moves.stops, moves.ends_session, moves.expires, moves.interrupts])
def test_an_order_that_was_given_is_reported_however_the_waiting_ends(move: moves.Move) -> None:
    with scene(("orders", OLD, None)) as world:
        process = begin(world, move_plan(world, "orders", "canary MEZKCC"))
        world.manners = (Manner.SLOW,)
        strike_at(world, "replaced", move)
        process.work("act")
        outcomes = {each.outcome for each in record(process).acted(record(process).plan.steps[0]).outcomes}
        assert outcomes == {"UNKNOWN"}


def test_an_order_is_not_given_twice_while_the_first_is_open() -> None:
    """Resumed after a person took long: the same swap is asked for again only after the first was undone."""
    with scene(("orders", OLD, None)) as world:
        process = begin(world, move_plan(world, "orders", "canary MEZKCC"))
        world.manners = (Manner.SLOW,)
        process.work("act")
        world.manners = (Manner.PROMPT,)
        again = world.again(process)
        again.work("resume", world.approve(record(process).plan))


def test_an_order_that_another_tool_executed_is_called_off_first() -> None:
    """Whoever was asked may still start one: resumed, the run continues to its next order after that is called off."""
    with scene(("orders", OLD, None)) as world:
        process = begin(world, move_plan(world, "orders", "all MEZKCC"))
        world.manners = (Manner.SLOW,)
        process.work("act")
        world.manners = (Manner.PROMPT,)
        world.replace_member("orders", world.orders[0].replacement.member, MEZKCC)
        world.settle()
        world.again(process).work("resume", world.approve(record(process).plan))


@pytest.mark.parametrize("nth", range(1, 14))
def test_a_member_that_came_while_offsets_were_raised_is_seen(nth: int) -> None:
    """Raising takes a request and more per partition; nobody is started beside a KC that came meanwhile."""

    def adds(world: ContestedCluster, process, rng) -> None:
        world.replace_member("orders", None, KC)

    with scene(("orders", ENABLED, None)) as world:
        process = begin(world, move_plan(world, "orders", "canary MEZKCC"))
        strike_at(world, "examine orders" if nth < 7 else "get /consumers/orders/offsets/orders/0", adds, nth % 7 + 1)
        process.work("act")


def test_the_undo_replaces_whom_the_run_had_started_and_no_other_client() -> None:
    """Also of an order that was executed and told as failed: who was there before the run stays."""

    def fails(world: ContestedCluster, process, rng) -> None:
        world.manners = (Manner.FAILS_DONE,)

    with scene(("orders", (MEZKCC, MEZKCC, KC), KAFKA)) as world:
        there = {each.member_id for each in world.groups["orders"].members if each.flavour == KC}
        process = begin(world, move_plan(world, "orders", "all KC"))
        strike_at(world, "event acted", fails)
        process.work("act")
        world.strike, world.manners = None, (Manner.PROMPT,)
        again = world.again(process)
        again.work("undo")
        assert record(again).state == RunState.UNDONE
        assert {each.member_id for each in world.groups["orders"].members if each.flavour == KC} == there


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_nothing_is_written_after_the_approval_ran_out(nth: int) -> None:
    """C10: in the midst of a step of four."""
    with scene(("orders", (OZKCC,) * 4, None)) as world:
        process = begin(world, move_plan(world, "orders", "all MEZKCC"))
        strike_at(world, "event acted", moves.expires, nth=nth)
        process.work("act")
        assert record(process).state in (RunState.STOPPED, RunState.FAILED)


@pytest.mark.parametrize("at", ["get /consumers/orders/migration/mode", "examine orders"])
@pytest.mark.parametrize("nth", range(1, 6))
def test_another_tools_toggle_is_not_undone(at: str, nth: int) -> None:
    """C11: somebody set it to the same, at any point of the run; it is theirs."""

    def toggles(world: ContestedCluster, process, rng) -> None:
        world.set_toggle("orders", KAFKA)

    with scene(("orders", ENABLED, None)) as world:
        process = begin(world, move_plan(world, "orders", "Kafka coordination"))
        strike_at(world, at, toggles, nth)
        process.work("act")
        world.strike = None
        if world.foreign["orders"] and record(process).state not in (RunState.STALE, RunState.APPROVED):
            world.again(process).work("undo", world.approve(record(process).plan))
            assert world.tree.text(mode_path("orders")) == KAFKA


@pytest.mark.parametrize("end", [moves.kills, moves.interrupts, moves.ends_session])
@pytest.mark.parametrize("mode", [None, ZOOKEEPER])
def test_a_toggle_that_was_written_before_a_crash_is_undone(mode: str | None, end: moves.Move) -> None:
    """It was written and not read back: only what was noted before the write shows that it is this run's."""
    with scene(("orders", ENABLED, mode)) as world:
        process = begin(world, move_plan(world, "orders", "Kafka coordination"))

        def ends(world: ContestedCluster, process, rng) -> None:
            world.strike = after_write

        def after_write(process, what: str) -> None:
            if world.tree.text(mode_path("orders")) == KAFKA:
                world.strike = None
                end(world, process, world.rng)

        strike_at(world, "event attempted", ends)
        process.work("act")
        world.settle()
        again = world.again(process)
        again.work("undo", world.approve(record(process).plan))
        assert record(again).state == RunState.UNDONE
        assert world.tree.text(mode_path("orders")) == mode


@pytest.mark.parametrize("nth", range(1, 9))
def test_a_wave_that_found_one_toggled_comes_back_to_an_end(nth: int) -> None:
    """C11: of two groups another operator or tool had toggled one meanwhile; the way back leaves that and has ended."""

    def toggles(world: ContestedCluster, process, rng) -> None:
        world.set_toggle("other", ZOOKEEPER)

    with scene(("orders", ENABLED, KAFKA), ("other", ENABLED, KAFKA)) as world:
        process = begin(world, toggle_plan(world, ZOOKEEPER, "orders", "other", wave=0))
        strike_at(world, "get /consumers/", toggles, nth)
        process.work("act")
        world.strike = None
        world.settle()
        if record(process).state in (RunState.STALE, RunState.APPROVED):
            return
        again = world.again(process)
        found = again.work("undo", world.approve(record(process).plan))
        assert isinstance(found, RunResult)
        world.judge.at_rest(again, found.sentence)
        assert found.state == RunState.UNDONE, world.story


def test_a_lock_in_kafka_that_is_lost_between_two_waves_ends_the_run() -> None:
    with scene(("orders", ENABLED, None), ("shop", ENABLED, None)) as world:
        world.locks_in_kafka = True
        process = begin(world, toggle_plan(world, KAFKA, "orders", "shop"))
        strike_at(world, "event verified", moves.ends_session)
        process.work("act")
        assert record(process).state == RunState.STOPPED
        assert world.tree.text(mode_path("orders")) == KAFKA
        assert world.tree.text(mode_path("shop")) is None


@pytest.mark.parametrize("is_applied", [False, True])
def test_a_lock_in_kafka_whose_leave_is_lost_ends_with_its_session(is_applied: bool) -> None:
    def loses(world: ContestedCluster, process: Process, rng: random.Random) -> None:
        process.client.loses = (is_applied, LOST)

    with scene(("orders", OLD, None)) as world:
        world.locks_in_kafka = True
        process = begin(world, move_plan(world, "orders", "canary MEZKCC"))
        strike_at(world, "leave", loses)
        process.work("act")
        assert record(process).state == RunState.VERIFIED
        world.strike = None
        later = begin(world, move_plan(world, "orders", "all MEZKCC"))
        later.work("act")
        assert record(later).state == (RunState.VERIFIED if is_applied else RunState.APPROVED)
        if not is_applied:
            world.settle()
            world.again(later).work("resume")
        assert record(later).state == RunState.VERIFIED


@pytest.mark.parametrize("in_kafka", [False, True])
def test_a_killed_process_keeps_its_lock_until_its_session_ends(in_kafka: bool) -> None:
    with scene(("orders", OLD, None)) as world:
        world.locks_in_kafka = in_kafka
        process = begin(world, move_plan(world, "orders", "canary MEZKCC"))
        strike_at(world, "event acted", moves.kills)
        process.work("act")
        world.strike = None
        assert isinstance(world.again(process).work("resume"), TargetBusy)
        world.settle()
        world.again(process).work("resume")
        assert record(process).state == RunState.VERIFIED
