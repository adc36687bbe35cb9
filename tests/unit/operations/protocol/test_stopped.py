"""Plans that stop all members, and their steps on a group that another operator changes in the midst."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from kit.engine.model.performer import ActedRecord, ItemOutcome, Outcome, StepState, WriteAttempt
from kit.errors import InputError, PlanError, RunError
from kit.moves.group.deploy import Command, Manual, MemberReplacement
from kit.moves.group.group_state import CLASSIC, CONSUMER, MemberState, PartitionOffsets
from kit.moves.protocol.plan import Observed, ProtocolPlanRequest, plan_from
from kit.moves.protocol.stop_and_start import StoppedActor
from kit.moves.protocol.stopped import StoppedParameters, in_places, place_of, stop_step
from tests.models.protocol_groups import group
from tests.reporting import Permissive
from tests.unit.operations.protocol.test_plan import plan

OFFSETS = {("t", 0): PartitionOffsets(None, None, 7, 0, 9)}


def of(*protocols: str, offsets=OFFSETS):
    return replace(group(*protocols), offsets=offsets)


class Deployed(Manual):
    """Executes each order at once on a group that exists in this process alone."""

    def __init__(self, *protocols: str) -> None:
        self.protocols, self.orders, self.called_off = list(protocols), list[MemberReplacement](), list[str]()

    def replace(self, replacement, tell) -> str:
        self.orders.append(replacement)
        if replacement.to_flavour:
            self.protocols.append(replacement.to_flavour)
        else:
            self.protocols.pop()
        return super().replace(replacement, tell)

    def countermand(self, replacement, tell) -> None:
        super().countermand(replacement, self.called_off.append)


def steps(to: str = CONSUMER, *protocols: str):
    made = plan(of(*(protocols or (CLASSIC, CLASSIC))), to, how="stopped", quiet_s=0.01, step_timeout_s=0.2)
    return made.steps[:2]


def actor(deployed: Deployed, offsets=OFFSETS) -> StoppedActor:
    return StoppedActor(None, deployed, poll_s=0.01, read=lambda *_: of(*deployed.protocols, offsets=offsets))  # type: ignore[arg-type]


def test_a_plan_stops_all_and_starts_all_and_refuses_a_canary():
    made = plan(of(CONSUMER, CLASSIC, CONSUMER), CONSUMER, how="stopped")
    stop, start, soak, _ = made.steps
    assert [step.step_id for step in made.steps] == [
        "01-stop-all",
        "02-start-all",
        "03-soak-consumer",
        "04-prove-ownership",
    ]
    assert [change.before for change in stop.changes] == [CONSUMER, CLASSIC, CONSUMER]
    assert (stop.title, start.title) == ("Stop all 3 members of orders", "Start 3 consumer-protocol members of orders")
    assert start.parameters["offsets"] == {"t-0": 7}
    assert soak.kind == "soak"
    for wishes in ({"canary": 2}, {"members": ("m0",)}):
        with pytest.raises(InputError, match="all members stop"):
            ProtocolPlanRequest("orders", CONSUMER, how="stopped", **wishes)
    with pytest.raises(InputError, match="rolling or stopped"):
        ProtocolPlanRequest("orders", CONSUMER, how="fast")


def test_each_order_only_stops_or_only_starts_and_names_the_place():
    (stop, start), deployed = steps(), Deployed(CLASSIC, CLASSIC)
    made = actor(deployed)
    assert made.check(stop).ok
    made.act(stop, Permissive())
    assert made.verify(stop).ok
    assert made.check(start).ok
    made.act(start, Permissive())
    assert made.verify(start).ok
    assert [(it.member, it.from_flavour, it.to_flavour) for it in deployed.orders] == [
        ("m0", CLASSIC, ""),
        ("m1", CLASSIC, ""),
        ("m0", "", CONSUMER),
        ("m1", "", CONSUMER),
    ]


def test_no_member_is_started_while_another_operator_has_one_in_the_group_or_an_offset_is_gone():
    _, start = steps()
    deployed = Deployed(CLASSIC)
    assert not actor(deployed).check(start).ok
    with pytest.raises(RunError, match=r"at most 2 consumer-protocol members: m0\. Another operator"):
        actor(deployed).act(start, Permissive())
    for offsets in ({}, {("t", 0): PartitionOffsets(None, None, 6, 0, 9)}):
        checked = actor(Deployed(), offsets).check(start)
        assert (checked.ok, "the committed offset of t-0 was 7 when the plan was made" in checked.sentence) == (
            False,
            True,
        )
    assert deployed.orders == []


def test_an_order_without_a_result_is_cancelled_before_the_next_one_and_no_member_is_started_twice():
    """The run was killed after it had ordered the first start: that member has come meanwhile."""
    _, start = steps()
    deployed, item = Deployed(CONSUMER), "member 1 of 2"
    attempt = WriteAttempt(item, False, {"stops": "", "of": "", "starts": CONSUMER, "beside": ()}, Outcome.UNKNOWN)
    report = Permissive(ActedRecord(start.step_id, (ItemOutcome(item, Outcome.UNKNOWN),), (attempt,)))
    made = actor(deployed)
    assert made.state(start, report.acted) == StepState.PARTLY
    assert made.check(start).ok
    made.act(start, report)
    assert len(deployed.called_off) == 1
    assert deployed.protocols == [CONSUMER, CONSUMER]


def test_an_undo_stops_no_member_that_the_run_did_not_start():
    _, start = steps()
    deployed = Deployed(CONSUMER, CONSUMER)
    acted = ActedRecord(start.step_id, (ItemOutcome("member 1 of 2", Outcome.CONFIRMED),))
    with pytest.raises(RunError, match=r"has 2 members, and this run started 1: m0, m1\. No member is stopped"):
        actor(deployed).undo(start, acted, Permissive())
    assert deployed.orders == []


def test_an_undo_of_a_stop_starts_members_of_the_former_protocols_in_their_places():
    (stop, _), deployed = steps(CONSUMER, CONSUMER, CLASSIC), Deployed(CONSUMER)
    acted = ActedRecord(stop.step_id, (ItemOutcome("member 2 of 2", Outcome.CONFIRMED),))
    actor(deployed).undo(stop, acted, Permissive())
    assert [(it.member, it.from_flavour, it.to_flavour) for it in deployed.orders] == [("m1", "", CLASSIC)]


def test_members_that_were_restarted_since_the_plan_are_stopped_by_their_new_ids():
    (stop, _), deployed = steps(), Deployed(CLASSIC, CLASSIC)
    state = of(CLASSIC, CLASSIC)
    restarted = replace(state, members=tuple(replace(it, member_id=f"{it.member_id}-again") for it in state.members))
    made = StoppedActor(None, deployed, poll_s=0.01, read=lambda *_: restarted if deployed.protocols else of())  # type: ignore[arg-type]
    made.act(stop, Permissive())
    assert [order.member for order in deployed.orders] == ["m0-again", "m1-again"]


@pytest.mark.parametrize(
    ("members", "taken"),
    [
        ([("m1", "x", "h9")], {"member 2": "m1"}),
        ([("n1", "c", "h3"), ("n2", "c", "h2")], {"member 2": "n2", "member 3": "n1"}),
        ([("n1", "c", "h9"), ("n2", "other", "h1")], {"member 1": "n2", "member 2": "n1"}),
        ([("n1", "app-3", "h9")], {"member 3": "n1"}),
        ([("n1", "x", "y"), ("n2", "x", "y")], {"member 1": "n1", "member 2": "n2"}),
    ],
)
def test_a_member_has_the_place_of_its_id_or_its_host_or_its_client_id(members, taken):
    """Each place is on a host of its own. The client id of two places is the same."""
    known = [("m0", "c", "h1"), ("m1", "c", "h2"), ("m3", "app-3", "h3")]
    places = {
        f"member {number}": {"member": member, "client_id": client_id, "host": host, "protocol": CLASSIC}
        for number, (member, client_id, host) in enumerate(known, 1)
    }
    states = [MemberState(member, client_id, CONSUMER, host, frozenset(), None) for member, client_id, host in members]
    assert {item: each.member_id for item, each in in_places(places, states).items()} == taken


def test_a_start_that_is_tried_again_starts_a_member_where_none_runs():
    """The first of three starts failed: its place is empty, not that of the last one."""
    made = plan(of(CLASSIC, CLASSIC), CONSUMER, how="stopped", quiet_s=0.01, step_timeout_s=0.2)
    start, second = made.steps[1], of(CONSUMER, CONSUMER).members[1]
    one = replace(of(CONSUMER), members=(replace(second, member_id="started"),))
    deployed = Deployed(CONSUMER)
    read = lambda *_: one if len(deployed.protocols) == 1 else of(*deployed.protocols)  # noqa: E731
    StoppedActor(None, deployed, poll_s=0.01, read=read).act(start, Permissive())  # type: ignore[arg-type]
    assert [(order.member, order.to_flavour) for order in deployed.orders] == [("m0", CONSUMER)]


@pytest.mark.parametrize(("session_ms", "quiet_s"), [(None, 60.0), (45_000, 60.0), (300_000, 300.0)])
@pytest.mark.parametrize("how", ["rolling", "stopped"])
def test_a_group_has_to_be_quiet_for_as_long_as_a_killed_member_is_visible(how, session_ms, quiet_s):
    now, request = of(CLASSIC, CLASSIC), ProtocolPlanRequest("orders", CONSUMER, how=how)
    made = plan_from(Observed(now, now, session_ms=session_ms), "cluster", Manual(), request, "ann")
    assert made.steps[0].parameters["quiet_s"] == quiet_s


@pytest.mark.parametrize("client_id", ["my app", "--all"])
def test_nothing_is_ordered_of_a_command_that_would_refuse_one_of_the_members(client_id):
    (stop, _), state = steps(), of(CLASSIC, CLASSIC)
    odd = replace(state, members=(state.members[0], replace(state.members[1], client_id=client_id)))
    command = Command(["deploy", "{client_id}"], 1.0)
    parameters = replace(StoppedParameters.of(stop), places=tuple(map(place_of, odd.members)))
    planned = stop_step("stop", replace(parameters, instruction=command.instruction("", "", "")))
    checked = StoppedActor(None, command, read=lambda *_: odd).check(planned)  # type: ignore[arg-type]
    assert (checked.ok, repr(client_id) in checked.sentence) == (False, True)


@pytest.mark.parametrize(
    ("instance_id", "how", "session_ms", "is_refused"),
    [("i-1", "stopped", 300_000, True), ("i-1", "stopped", 45_000, False), (None, "stopped", 300_000, False),
     ("i-1", "rolling", 300_000, False)],
)  # fmt: skip
def test_static_members_do_not_stop_in_a_step_that_is_shorter_than_their_session(
    instance_id, how, session_ms, is_refused
):
    """Consumption would have stopped when the step fails."""
    state = of(CLASSIC, CLASSIC)
    members = tuple(replace(each, instance_id=instance_id) for each in state.protocol.members)
    now = replace(state, protocol=replace(state.protocol, members=members))
    request = ProtocolPlanRequest("orders", CONSUMER, how=how)
    with pytest.raises(PlanError, match="--step-timeout") if is_refused else nullcontext():
        plan_from(Observed(now, now, session_ms=session_ms), "cluster", Manual(), request, "ann")


def test_members_that_do_not_leave_in_time_fail_the_step():
    (stop, _), deployed = steps(), Deployed(CLASSIC, CLASSIC)
    made = StoppedActor(None, Manual(), poll_s=0.01, read=lambda *_: of(*deployed.protocols))  # type: ignore[arg-type]
    with pytest.raises(RunError, match=r"after 0.2 s the group has 2 classic members, not no member"):
        made.act(stop, Permissive())
