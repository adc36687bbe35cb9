"""A plan of protocols is made from two observations of a group."""

from __future__ import annotations

import pytest

from kit.errors import InputError, NothingToDo, PlanError, UnsafePlan
from kit.moves.group.deploy import Manual
from kit.moves.group.group_state import CLASSIC, CONSUMER
from kit.moves.protocol.plan import Observed, ProtocolPlanRequest, parse_configs, plan_from
from kit.moves.protocol.state import ProtocolState
from kit.operations.kinds import refuse_altered
from kit.protocol.checks import CHECKS
from kit.tables.conditions import ASK, BLOCK, WARN
from tests.models.protocol_groups import group


def plan(
    now: ProtocolState, to: str, proven_from: int | None = 7, before: dict | None = None, checked=(), **wishes: object
):
    request = ProtocolPlanRequest("orders", to, **wishes)  # type: ignore[arg-type]
    seen = Observed(now, now, proven_from, before or {}, tuple(checked))
    made = plan_from(seen, "cluster", Manual(), request, "ann")
    refuse_altered(made)
    return made


def test_a_canary_a_soak_and_the_rest():
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


def test_back_without_a_canary_and_with_what_the_undo_costs():
    made = plan(group(CONSUMER, CONSUMER, CONSUMER), CLASSIC)
    step, _ = made.steps
    assert (step.parameters["before"], step.parameters["after"]) == ({CONSUMER: 3}, {CLASSIC: 3})
    assert "every member rebalances at once" in made.risks[-1]


def test_the_size_of_a_canary_is_no_rule_where_no_member_changes_first():
    with pytest.raises(UnsafePlan, match="canary_size"):
        plan(group(CLASSIC, CLASSIC), CONSUMER, canary=2)
    for now, to in ((group(CONSUMER, CONSUMER), CLASSIC), (group(CLASSIC, CONSUMER), CONSUMER)):
        assert [step.kind for step in plan(now, to, canary=2).steps] == ["replace", "prove ownership"]


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


def test_a_plan_without_the_log_of_the_coordinator_reports_that_it_proves_nothing():
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


def finding(check_id: str, severity: str, is_met: bool | None):
    rule = next(each.rule for each in CHECKS if each.rule.check_id == check_id)
    return rule.found(is_met, "What was found.", subject="orders", remedy="Do this.", severity=severity)


def test_a_check_that_forbids_or_is_not_answered_refuses_the_plan_and_a_warning_is_a_risk():
    now = group(CLASSIC, CLASSIC)
    for check_id, severity, is_met in (("k848_policy", BLOCK, False), ("k848_clients", ASK, None)):
        with pytest.raises(UnsafePlan, match=rf"{check_id}.*What was found. Do this."):
            plan(now, CONSUMER, checked=[finding(check_id, severity, is_met)])
    made = plan(now, CONSUMER, checked=[finding("k848_static", WARN, False), finding("k848_policy", BLOCK, True)])
    assert "k848_static: What was found. Do this." in made.risks
