"""A broker that is gone for good: what forbids to end its registration, and what becomes of the request.

What a real controller does: ``tests/interop/test_kraft_hands.py``.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kit.engine.model.performer import Outcome, StepState
from kit.errors import ConnectError, InputError, NothingToDo, ReadError, RunError
from kit.kraft.move import gates
from kit.kraft.move.cluster_state import READS, MoveReads
from kit.kraft.move.gate_inputs import GateInputs
from kit.kraft.move.parameters import UnregisterParameters
from kit.kraft.move.plan import KraftPlanRequest, _refuse_unregistered
from kit.kraft.move.recipes import parameters_of
from kit.kraft.move.step_maker import StepMaker
from kit.kraft.move.steps import consent_of, unregister_step, unregistered
from kit.kraft.move.unregister import (
    UnregisterActor,
    UnregisterBrokerRequest,
    goes_on_problem,
    gone_problem,
    replicas_problem,
)
from tests.kraft_records import SOUND, broker, control, node
from tests.unit.kraft.move.move_plans import CLUSTER, DEPLOYER, WELL, WORDS, Report, cluster_with, in_phase, stand
from tests.unit.zookeeper_in_memory import ZookeeperInMemory

GOAL = "unregister broker 7"
LEFT = stand(replace(SOUND, registrations=(broker(), broker(node_id=7, is_fenced=True))))
"""Broker 1 runs; of broker 7 the registration is left."""
OVER = stand(replace(SOUND, registrations=(broker(),)))
STEP = unregister_step("01-unregister", UnregisterParameters.made_from(replace(WORDS, to_phase=GOAL), nodes=(7,)))


@pytest.mark.parametrize("goal", ["unregister broker", "unregister broker -1", "unregister broker ٣", "unregister 3"])
def test_only_a_number_names_a_broker(goal):
    assert unregistered(goal) is None
    with pytest.raises(InputError, match="there is no phase"):
        KraftPlanRequest(goal)
    assert unregistered(GOAL) == 7
    KraftPlanRequest(GOAL)


def test_the_plan_names_the_broker_and_so_does_the_approver():
    words = replace(WORDS, to_phase=GOAL)
    (step,) = StepMaker(words, DEPLOYER, LEFT).steps()
    assert (step.kind, parameters_of(step).nodes, step.changes[0].item) == (
        "unregister a broker",
        (7,),
        "broker 7",
    )
    assert consent_of(GOAL, "production").subject == "unregister broker 7 production"
    with pytest.raises(
        NothingToDo, match="broker 9 is not registered with the controllers; registered: brokers 1 and 7"
    ):
        _refuse_unregistered(LEFT, 9)


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (LEFT, None),
        (stand(replace(SOUND, registrations=(broker(), broker(node_id=7, is_fenced=False)))), "is not fenced"),
        (stand(replace(LEFT.facts, control=control(brokers=(1, 7)))), "is in /brokers/ids"),
        (stand(replace(LEFT.facts, nodes=(*SOUND.nodes, node("broker", node_id=7))), (1, 7)), "answers: stop it first"),
        (
            stand(replace(LEFT.facts, nodes=(*SOUND.nodes, node("broker", node_id=7, mode=None, error="x"))), (1, 7)),
            None,
        ),
    ],
)
def test_a_broker_that_may_run_keeps_its_registration(now, told):
    found = gone_problem(now, 7)
    assert found == told if told is None else told in found


def reads_of(*lists) -> MoveReads:
    """Topic ``t`` has a partition for each list of replicas."""
    return replace(WELL, replicas=lambda cluster, facts: {("t", number): each for number, each in enumerate(lists)})


def test_a_broker_that_has_replicas_keeps_its_registration():
    assert replicas_problem(CLUSTER, SOUND, 7, reads_of([1, 2], [])) is None
    told = "partitions t-0 and t-2 have a replica on broker 7. First move"
    assert replicas_problem(CLUSTER, SOUND, 7, reads_of([1, 7], [2], [7])).startswith(told)
    many = reads_of(*[[7]] * 8)
    assert "t-4 have a replica on broker 7 and 3 more" in replicas_problem(CLUSTER, SOUND, 7, many)


def test_while_controllers_wait_zookeeper_reports_who_has_replicas_and_no_one_is_fenced():
    waits = stand(replace(in_phase("controllers").facts, registrations=(broker(node_id=7, is_fenced=False),)))
    assert (waits.phase, gone_problem(waits, 7)) == ("controllers", None)
    assert goes_on_problem(waits, WORDS.controller_addresses) is None
    zookeeper = ZookeeperInMemory({"/brokers/topics/t": b'{"version":1,"partitions":{"0":[1],"1":[7,1]}}'})
    cluster = cluster_with(zookeeper=zookeeper)
    assert "partition t-1 has a replica on broker 7" in replicas_problem(cluster, waits.facts, 7, READS)
    zookeeper.root.at("/brokers/topics").is_closed = True
    with pytest.raises(ReadError, match="can't be listed"):
        replicas_problem(cluster, waits.facts, 7, READS)


def test_the_gates_of_such_a_plan_ask_about_that_broker(tmp_path):
    look = GateInputs(CLUSTER, LEFT, tmp_path, 7, reads_of([1, 7]))
    asked = {each.rule.check_id: each.problem(look) for each in gates.GATES["unregister broker"][-2:]}
    assert asked["is_gone"] is None
    assert "have" in asked["no_replicas"] or "has" in asked["no_replicas"]
    assert not any(each.rule.can_be_overridden for each in gates.GATES["unregister broker"])


def actor_on(answer, now=LEFT, then=OVER) -> tuple[UnregisterActor, list[int]]:
    """``answer``: the controller's error code, or what is raised instead; ``then``: what is seen after it."""
    seen, asked = [now], list[int]()

    def ask(settings, address, question):
        asked.append(question.keywords["number"])
        seen[0] = then
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(error_code=answer, error_message=None)

    hands = SimpleNamespace(cluster=CLUSTER, read_state=lambda words: seen[0], reads=reads_of([1]))

    def wait_until(words, problem, report):
        assert problem(seen[0]) is None

    hands.wait_until = wait_until
    return UnregisterActor(hands, ask), asked


@pytest.mark.parametrize("code", [0, 102])
def test_the_registration_is_ended_once(code):
    actor, asked = actor_on(code)
    report = Report()
    assert (actor.check(STEP).ok, actor.state(STEP)) == (True, StepState.NOT_DONE)
    assert [each.outcome for each in actor.act(STEP, report)] == [Outcome.CONFIRMED]
    assert (asked, report.attempted, actor.state(STEP), actor.verify(STEP).ok) == (
        [7],
        ["broker 7"],
        StepState.DONE,
        True,
    )
    assert [each.outcome for each in actor.act(STEP, report)] == [Outcome.UNCHANGED]
    assert asked == [7]


def test_a_refusal_is_reported_and_an_answer_that_did_not_come_is_unknown():
    actor, _ = actor_on(31, then=LEFT)
    (refused,) = actor.act(STEP, Report())
    assert (refused.outcome, "CLUSTER_AUTHORIZATION_FAILED" in refused.error) == (Outcome.REFUSED, True)
    actor, _ = actor_on(ConnectError("timed out"), then=LEFT)
    (unknown,) = actor.act(STEP, Report())
    assert (unknown.outcome, "timed out" in unknown.error) == (Outcome.UNKNOWN, True)
    assert not actor.verify(STEP).ok


def test_a_broker_that_came_back_since_the_plan_is_left_alone():
    back = stand(replace(LEFT.facts, control=control(brokers=(1, 7))))
    actor, asked = actor_on(0, now=back)
    assert not actor.check(STEP).ok
    with pytest.raises(RunError, match="broker 7 stays registered: broker 7 is in /brokers/ids"):
        actor.act(STEP, Report())
    assert asked == []


def test_the_request_is_kafkas():
    """By the protocol's guide: API 64, version 0, one int32 and no tagged field."""
    request = UnregisterBrokerRequest(broker_id=7, min_version=0, max_version=0)
    assert request.API_KEY == 64
    assert request.encode(version=0)[-5:] == b"\x00\x00\x00\x07\x00"
