"""Plans of many groups: what they consist of, and the brake between two waves."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, repeat
from types import SimpleNamespace

import pytest

from kit.engine.model.observation import differences
from kit.errors import InputError, RunError
from kit.moves.group.circuit_breaker import CircuitBreakerParameters
from kit.moves.group.deploy import Manual
from kit.moves.group.group_state import CLASSIC, CONSUMER
from kit.moves.group.replace import ReplaceActor
from kit.moves.group.replacement import KIND as REPLACE
from kit.moves.group.soak import SoakActor, SoakParameters, soak_step
from kit.moves.protocol.brake import BrakeActor, brake_step
from kit.moves.protocol.fleet import ProtocolFleetRequest, merged
from kit.moves.protocol.performer import Readings
from kit.moves.protocol.plan import Observed, ProtocolPlanRequest, plan_from
from kit.operations.kinds import refuse_altered
from kit.protocol.checks import CHECKS
from tests.models.protocol_groups import group
from tests.unit.moves.fleet.one_mezkcc import one_mezkcc

EACH = ProtocolPlanRequest("", CONSUMER)
STEP = brake_step("03-brake", CircuitBreakerParameters(1, ("orders",), 60.0, 10, 500.0))


def test_a_plan_of_many_groups_is_the_plans_of_its_groups_with_a_brake_between_waves():
    seen = Observed(group(CLASSIC, CLASSIC), group(CLASSIC, CLASSIC), 7)
    requests = [ProtocolPlanRequest(name, CONSUMER) for name in "abc"]
    plans = [plan_from(seen, "cluster", Manual(), each, "ann") for each in requests]
    single = plans[0]
    made = merged(plans, ProtocolFleetRequest(EACH, pattern=".*", wave=2), 500.0, n_left=4)
    one = [step.kind for step in single.steps]
    assert [step.kind for step in made.steps] == [*one, *one, "brake between waves", *one]
    assert [step.step_id[:3] for step in made.steps] == [f"{number:02d}-" for number in range(1, len(made.steps) + 1)]
    assert made.risks.count(single.risks[0]) == 1
    assert made.risks[-1] == "Not moved: 4 groups. Run: offramp protocol check"
    refuse_altered(made)
    assert "brake between waves" not in {
        step.kind for step in merged(plans, ProtocolFleetRequest(EACH, pattern=".*", pause_s=0.0), 500.0, 0).steps
    }


def test_a_dry_run_reads_all_groups_at_once_and_a_run_reads_its_group_again_for_each_check():
    """Each reading of one group lists all groups of the cluster: one per step would take hours at 10,000 groups."""
    seen, names = Observed(group(CLASSIC, CLASSIC), group(CLASSIC, CLASSIC), 7), ["a", "b", "c"]
    plans = [plan_from(seen, "c", Manual(), ProtocolPlanRequest(name, CONSUMER), "ann") for name in names]
    plan = merged(plans, ProtocolFleetRequest(EACH, pattern=".*"), 500.0, n_left=0)
    for is_dry, expected in ((True, [names]), (False, [names, "a", "a", "b", "b", "c", "c"])):
        asked: list[object] = []

        def read(cluster, name, asked=asked):
            asked.append(name)
            return replace(seen.now, group_id=name)

        def read_all(cluster, wanted, asked=asked):
            asked.append(list(wanted))
            return {name: replace(seen.now, group_id=name) for name in wanted}

        readings = Readings(is_dry, read, read_all)
        assert differences(plan.observed, readings.observe(SimpleNamespace(), plan)) == ()
        actor = ReplaceActor(SimpleNamespace(), Manual(), print, read=readings.read)
        first = {each.parameters["group"]: each for each in reversed(plan.steps) if each.kind == REPLACE}
        for _ in range(2):
            assert all(actor.check(each).ok for each in first.values())
        assert sorted(map(str, asked)) == sorted(map(str, expected))


def test_a_check_that_warns_of_many_groups_is_one_risk():
    rules = {check.rule.check_id: check.rule for check in CHECKS}
    warned = [rules["k848_session"].found(None, f"Unknown of {name}.", subject=name) for name in "ab"]
    warned += [rules["k848_rack"].found(False, "Far.", subject=name) for name in "ab"]
    seen = Observed(group(CLASSIC, CLASSIC), group(CLASSIC, CLASSIC), 7, checked=tuple(warned))
    requests = [ProtocolPlanRequest(name, CONSUMER) for name in "ab"]
    plans = [plan_from(seen, "c", Manual(), each, "ann", is_warned=False) for each in requests]
    risks = merged(plans, ProtocolFleetRequest(EACH, pattern=".*"), 500.0, 0, warned).risks
    assert risks[:2] == (
        "k848_session (unknown): Unknown of a. 1 more group has this warning. Run: offramp protocol check",
        "k848_rack: Far.",
    )
    assert risks[2:] == plans[0].risks
    assert warned[0].described in plan_from(seen, "c", Manual(), requests[0], "ann").risks


@pytest.mark.parametrize(
    "wishes",
    [
        {},
        {"groups": ("a",), "pattern": ".*"},
        {"groups": ("a", "a")},
        {"groups": ("a",), "wave": 0},
        {"groups": ("a",), "pause_s": -1.0},
        {"groups": ("a",), "max_read_ms": 0.0},
        {"groups": ("a",), "each": replace(EACH, members=("m",))},
        {"groups": ("a",), "each": replace(EACH, configs={"consumer.session.timeout.ms": "45000"})},
    ],
)
def test_a_request_that_makes_no_sense_is_refused(wishes):
    with pytest.raises(InputError):
        ProtocolFleetRequest(**{"each": EACH, **wishes})


def brake(*epochs: int) -> BrakeActor:
    """A minute passes between two observations; the members lag behind their group in the last one if negative."""
    looks = iter(
        {"orders": group(CONSUMER, CONSUMER, epochs=(abs(each), abs(each), abs(each), each)).protocol}
        for each in epochs
    )
    times = count(0, 60)
    clock = SimpleNamespace(monotonic=lambda: float(next(times)))
    observed = repeat(one_mezkcc(700, 1.0, kafka=10))
    return BrakeActor(SimpleNamespace(), clock, lambda cluster, groups: next(observed), lambda *_: next(looks))  # type: ignore[arg-type]


def test_a_group_that_keeps_rebalancing_ends_the_run_and_is_named():
    made = brake(7, 9, 10)
    assert [made.verify(STEP).ok for _ in range(2)] == [False, True]
    with pytest.raises(RunError, match="the epoch of group orders rose 3 times"):
        made.verify(STEP)


def test_the_next_wave_waits_until_the_groups_are_stable():
    made = brake(7, -7, 7)
    assert [made.verify(STEP).ok for _ in range(3)] == [False, False, True]


def test_epochs_before_a_resume_do_not_count():
    made = brake(7, 12, 12)
    assert not made.verify(STEP).ok
    assert made.check(STEP).ok
    assert [made.verify(STEP).ok for _ in range(2)] == [False, True]


def test_a_soak_that_is_checked_again_watches_for_the_whole_time_again():
    """A run that was stopped in the midst of a soak is resumed later: nobody watched the members meanwhile."""
    times, state = iter([0.0, 7200.0, 7260.0]), replace(group(CONSUMER, CONSUMER), offsets={})
    clock = SimpleNamespace(monotonic=lambda: next(times))
    actor = SoakActor(SimpleNamespace(), clock, lambda cluster, name: state)  # type: ignore[arg-type]
    step = soak_step("02-soak", SoakParameters("orders", CONSUMER, soak_s=60.0, lag_tolerance=1000))
    assert [actor.check(step).ok, actor.verify(step).ok] == [True, False]
    assert [actor.check(step).ok, actor.verify(step).ok] == [True, False]
    with pytest.raises(RunError, match="after 60 s: the lag of its partitions is not known"):
        actor.verify(step)
