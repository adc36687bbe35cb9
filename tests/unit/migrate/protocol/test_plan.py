"""What a plan of protocols consists of, by two observations of a group."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kit.errors import InputError, NothingToDo, PlanError, UnsafePlan
from kit.migrate.group.deploy import Manual
from kit.migrate.group.group_state import CLASSIC, CONSUMER, MemberState
from kit.migrate.protocol.plan import ProtocolPlanRequest, plan_from
from kit.migrate.protocol.state import ProtocolState, stage_of
from kit.migrate.recipes import refuse_altered

PARTITIONS = 6


def group(*protocols: str, **other: object) -> ProtocolState:
    """One member per protocol; each has its share of the partitions."""
    members = tuple(
        MemberState(
            f"m{number}",
            f"c{number}",
            protocol,
            "127.0.0.1",
            frozenset(("t", each) for each in range(number, PARTITIONS, len(protocols))),
            None,
        )
        for number, protocol in enumerate(protocols)
    )
    state = ProtocolState(
        group_id="orders",
        observed_at=datetime(2026, 11, 28, tzinfo=UTC),
        stage=stage_of(protocols),
        effective_mode="kafka",
        mode=None,
        mode_version=None,
        members=members,
        embedded={},
        owners={},
        kafka_state="Stable" if protocols else "Empty",
        coordinator=1,
        offsets={},
        threads={},
        subscribed={"t": PARTITIONS},
        blockers={},
        group_type=CONSUMER if CONSUMER in protocols else CLASSIC,
    )
    return replace(state, **other)  # type: ignore[arg-type]


def plan(now: ProtocolState, to: str, **wishes: object):
    made = plan_from(now, now, "cluster", Manual(), ProtocolPlanRequest("orders", to, **wishes), "ann")  # type: ignore[arg-type]
    refuse_altered(made)
    return made


def test_a_canary_a_soak_and_the_others():
    made = plan(group(CLASSIC, CLASSIC, CLASSIC), CONSUMER)
    assert [step.step_id for step in made.steps] == ["01-replace-canary", "02-soak-consumer", "03-replace-consumer"]
    first, _, last = (step.parameters for step in made.steps)
    assert (first["before"], first["after"]) == ({CLASSIC: 3}, {CONSUMER: 1, CLASSIC: 2})
    assert (last["after"], first["members"], last["members"]) == ({CONSUMER: 3}, ("m0",), ("m1", "m2"))
    assert made.steps[0].title == "Replace 1 classic member of orders by consumer-protocol member"
    assert all(risk.startswith("If the run is undone: ") for risk in made.risks[-2:])


def test_back_without_a_canary_and_with_what_the_way_back_costs():
    made = plan(group(CONSUMER, CONSUMER, CONSUMER), CLASSIC)
    (step,) = made.steps
    assert (step.parameters["before"], step.parameters["after"]) == ({CONSUMER: 3}, {CLASSIC: 3})
    assert "every member rebalances at once" in made.risks[-2]
    assert made.risks[-1].startswith("KAFKA-21117")


def test_a_group_that_another_operator_left_half_way_is_moved_on_without_a_second_canary():
    (step,) = plan(group(CLASSIC, CONSUMER, CLASSIC), CONSUMER, members=("m2",)).steps
    assert step.parameters["members"] == ("m2", "m0")


@pytest.mark.parametrize(
    ("now", "to", "error"),
    [
        (group(), CONSUMER, PlanError),
        (group(CLASSIC, "unknown"), CONSUMER, PlanError),
        (group(CLASSIC, CLASSIC), CLASSIC, NothingToDo),
        (group(CLASSIC, CLASSIC, kafka_state="PreparingRebalance"), CONSUMER, UnsafePlan),
        (group(CLASSIC, CONSUMER, group_epoch=7, assignment_epoch=6), CONSUMER, UnsafePlan),
        (group(CLASSIC, CONSUMER, group_epoch=7, assignment_epoch=7, member_epochs={"m1": 6}), CONSUMER, UnsafePlan),
    ],
)
def test_groups_that_are_not_moved(now, to, error):
    with pytest.raises(error):
        plan(now, to)


def test_unknown_protocols_and_members_are_refused():
    with pytest.raises(InputError, match="there is no protocol 'newer'; there are classic and consumer"):
        ProtocolPlanRequest("orders", "newer")
    with pytest.raises(PlanError, match="group orders has no member m9"):
        plan(group(CLASSIC, CLASSIC), CONSUMER, members=("m9",))
