"""What a plan of protocols consists of, by two observations of a group."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kit.errors import InputError, NothingToDo, PlanError, UnsafePlan
from kit.migrate.group.deploy import Manual
from kit.migrate.group.group_state import CLASSIC, CONSUMER, MemberState
from kit.migrate.protocol.plan import ProtocolPlanRequest, parse_configs, plan_from
from kit.migrate.protocol.state import ProtocolState
from kit.migrate.recipes import refuse_altered
from kit.protocol.read import GroupProtocol, ProtocolMember

PARTITIONS = 6


def group(*protocols: str | None, state: str = "Stable", epochs: tuple[int, ...] = ()) -> ProtocolState:
    """One member per protocol; each has its share of the partitions. ``epochs``: group, assignment, then members."""
    shares = [
        tuple(("t", each) for each in range(number, PARTITIONS, len(protocols))) for number in range(len(protocols))
    ]
    of = dict(enumerate(epochs[2:]))
    described = tuple(
        ProtocolMember(f"m{n}", f"c{n}", "127.0.0.1", None, each, of.get(n), ("t",), None, shares[n], shares[n])
        for n, each in enumerate(protocols)
    )
    kind = CONSUMER if CONSUMER in protocols else CLASSIC
    at = dict(zip(("epoch", "assignment_epoch"), epochs))
    protocol = GroupProtocol("orders", kind, "consumer", state, "range", 1, members=described, **at)
    return ProtocolState(
        group_id="orders",
        observed_at=datetime(2026, 11, 28, tzinfo=UTC),
        stage=str(protocol.stage),
        effective_mode="kafka",
        mode=None,
        mode_version=None,
        members=tuple(
            MemberState(f"m{n}", f"c{n}", each or "unknown", "127.0.0.1", frozenset(shares[n]), None)
            for n, each in enumerate(protocols)
        ),
        embedded={},
        owners={},
        kafka_state=state,
        coordinator=1,
        offsets={},
        threads={},
        subscribed={"t": PARTITIONS},
        blockers={},
        protocol=protocol,
    )


def plan(now: ProtocolState, to: str, proven_from: int | None = 7, before: dict | None = None, **wishes: object):
    request = ProtocolPlanRequest("orders", to, **wishes)  # type: ignore[arg-type]
    made = plan_from(now, now, proven_from, before or {}, "cluster", Manual(), request, "ann")
    refuse_altered(made)
    return made


def test_a_canary_a_soak_and_the_others():
    made = plan(group(CLASSIC, CLASSIC, CLASSIC), CONSUMER)
    assert [step.step_id for step in made.steps] == [
        "01-replace-canary",
        "02-soak-consumer",
        "03-replace-consumer",
        "04-prove-ownership",
    ]
    first, _, last, proof = (step.parameters for step in made.steps)
    assert (first["before"], first["after"]) == ({CLASSIC: 3}, {CONSUMER: 1, CLASSIC: 2})
    assert (last["after"], first["members"], last["members"]) == ({CONSUMER: 3}, ("m0",), ("m1", "m2"))
    assert proof == {"group": "orders", "since": 7}
    assert made.steps[0].title == "Replace 1 classic member of orders by consumer-protocol member"
    assert all(risk.startswith("If the run is undone: ") for risk in made.risks[-2:])


def test_back_without_a_canary_and_with_what_the_way_back_costs():
    made = plan(group(CONSUMER, CONSUMER, CONSUMER), CLASSIC)
    step, _ = made.steps
    assert (step.parameters["before"], step.parameters["after"]) == ({CONSUMER: 3}, {CLASSIC: 3})
    assert "every member rebalances at once" in made.risks[-2]
    assert made.risks[-1].startswith("KAFKA-21117")


def test_a_group_that_another_operator_left_half_way_is_moved_on_without_a_second_canary():
    step, _ = plan(group(CLASSIC, CONSUMER, CLASSIC), CONSUMER, members=("m2",)).steps
    assert step.parameters["members"] == ("m2", "m0")


@pytest.mark.parametrize(
    ("now", "to", "error"),
    [
        (group(), CONSUMER, PlanError),
        (group(CLASSIC, None), CONSUMER, PlanError),
        (group(CLASSIC, CLASSIC), CLASSIC, NothingToDo),
        (group(CLASSIC, CLASSIC, state="PreparingRebalance"), CONSUMER, UnsafePlan),
        (group(CLASSIC, CONSUMER, epochs=(7, 6, 6, 6)), CONSUMER, UnsafePlan),
        (group(CLASSIC, CONSUMER, epochs=(7, 7, 7, 6)), CONSUMER, UnsafePlan),
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


def test_a_plan_without_the_log_of_the_coordinator_says_that_it_proves_nothing():
    made = plan(group(CLASSIC, CLASSIC), CONSUMER, proven_from=None)
    assert [step.kind for step in made.steps] == ["replace", "soak", "replace"]
    assert "can't read __consumer_offsets" in made.risks[-1]


def test_configs_of_the_group_are_set_before_the_first_member_is_replaced():
    wanted = {"consumer.session.timeout.ms": "45000", "consumer.heartbeat.interval.ms": "5000"}
    before = {"consumer.session.timeout.ms": None, "consumer.heartbeat.interval.ms": "5000"}
    made = plan(group(CLASSIC, CLASSIC), CONSUMER, before=before, configs=wanted)
    first = made.steps[0]
    assert [step.kind for step in made.steps][:2] == ["set group configs", "replace"]
    assert [(each.item, each.before, each.after) for each in first.changes] == [
        ("consumer.session.timeout.ms", None, "45000")
    ]
    assert made.observed["group_configs"].value == before


@pytest.mark.parametrize(
    "text", ["consumer.session.timeout.ms", "consumer.session.timeout.ms=", "session.timeout.ms=1"]
)
def test_a_config_of_another_form_is_refused(text):
    with pytest.raises(InputError, match="is no group config: write NAME=VALUE"):
        parse_configs([text])
