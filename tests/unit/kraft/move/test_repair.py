"""A manual rollback leaves damage: which damage is found, in which order, what no plan repairs, and when to fail
over.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kit.engine.model.performer import StepState
from kit.errors import NothingToDo, PlanError, RunError
from kit.kraft.move import gates, hand_back, problems, repair
from kit.kraft.move.controllers import StopActor
from kit.kraft.move.fail_over import FailOverActor
from kit.kraft.move.hand_back import HandBackActor
from kit.kraft.move.orders import NodeOperator
from kit.kraft.move.parameters import HandBackParameters, OrderParameters, StopParameters
from kit.kraft.move.plan import _refuse_detours
from kit.kraft.move.recipes import parameters_of
from kit.kraft.move.repair import RepairActor, damages, first_damage
from kit.kraft.move.step_maker import StepMaker
from kit.kraft.move.steps import (
    HANDED_BACK_S,
    REPAIRS,
    consent_of,
    fail_over_step,
    hand_back_step,
    repair_step,
    stop_step,
)
from kit.profile import KraftSettings
from tests.kraft_records import SOUND, control, hides, holds, node, plain
from tests.unit.kraft.move.move_plans import (
    CLUSTER,
    DEPLOYER,
    NOTHING_OPEN,
    PROFILE,
    WELL,
    WORDS,
    Report,
    cluster_with,
    in_phase,
    look_at,
    metadata,
    partition,
    saved_znode,
    stand,
)
from tests.unit.zookeeper_in_memory import ZookeeperInMemory

OFFSET = {"has_migration": True, "checkpoint": 142, "checkpoint_epoch": 7}
SILENT = node("controller", error="refused", is_listening=False)
IN_ZOOKEEPER = node("broker", mode="zookeeper", has_flag=False)
UNREACHABLE = node("controller", error="timed out")
MUTE = node("controller", error="host:9093: DescribeQuorum: CLUSTER_AUTHORIZATION_FAILED", is_listening=True)
"""It runs, and refuses offramp: for what it does to ZooKeeper that is as good as an answer."""


def handed(to_phase: str, **changed: bool) -> HandBackParameters:
    return HandBackParameters.made_from(replace(WORDS, to_phase=to_phase), **changed)


def stale(**changed):
    return replace(plain(), **OFFSET, **changed)


def left(controls, *nodes, state=None, **facts):
    """Nobody's log says that a migration is in progress."""
    return stand(replace(SOUND, control=controls, nodes=nodes, registrations=(), zk_state=state, **facts))


CLAIM, MIGRATION, EPOCH, BROKERS = REPAIRS
PLACES = {1: "host:9092", 2: "b:9092"}
OTHER_CONTROLLER = "broker 1 names controller 2, but broker 1 holds /controller"


def epoch_of_a_partition(epoch: int) -> dict[str, bytes]:
    return {"/brokers/topics/orders/partitions/0/state": b'{"controller_epoch": %d}' % epoch}


UNDECODED = control(checkpoint=None, **holds("/migration", "the value is empty"))
"""Under KRaft's claim: whether a copy was completed is not known."""
FOUND = [
    ("nothing", left(plain(), IN_ZOOKEEPER), []),
    ("an offset", left(stale(), IN_ZOOKEEPER, SILENT), [MIGRATION]),
    ("an offset, fresh controllers", left(stale(), IN_ZOOKEEPER, node("controller")), [MIGRATION]),
    ("null", left(plain(has_migration=True, **holds("/migration", "no JSON")), IN_ZOOKEEPER), [MIGRATION]),
    (
        "one that may not be read",
        left(plain(has_migration=None, **hides("/migration")), IN_ZOOKEEPER),
        [],
    ),
    (
        "an epoch that may not be read",
        left(plain(controller_epoch=None, **hides("/controller_epoch")), IN_ZOOKEEPER),
        [],
    ),
    (
        "one that can't be decoded under a claim",
        left(UNDECODED, node("broker"), replace(SILENT, is_leader=None)),
        [CLAIM, BROKERS],
    ),
    ("nothing copied, nobody there", left(plain(has_migration=True), IN_ZOOKEEPER, SILENT), [MIGRATION]),
    ("controllers wait", left(plain(has_migration=True), IN_ZOOKEEPER, node("controller"), state="PRE_MIGRATION"), []),
    ("a claim, nobody there", left(control(), node("broker"), SILENT), [CLAIM, BROKERS]),
    ("a claim, and a bomb", left(control(), node("broker"), node("controller"), state="PRE_MIGRATION"), [CLAIM]),
    (
        "the copy is under way",
        left(control(checkpoint=None), node("broker"), node("controller"), state="PRE_MIGRATION"),
        [],
    ),
    ("a low epoch", left(plain(max_state_epoch=9), IN_ZOOKEEPER), [EPOCH]),
    ("no epoch", left(plain(controller_epoch=None), IN_ZOOKEEPER), [EPOCH]),
    ("a controller that brokers ignore", replace(left(plain(), IN_ZOOKEEPER), ignored="broker 1 names 2"), [EPOCH]),
    ("a claim, and controllers out of reach", left(control(), node("broker"), UNREACHABLE), [CLAIM]),
    ("nothing copied, and controllers out of reach", left(plain(has_migration=True), IN_ZOOKEEPER, UNREACHABLE), []),
    ("left in migration mode", left(plain(), node("broker"), SILENT), [BROKERS]),
    ("in migration mode, controllers that refuse", left(plain(), node("broker"), MUTE), []),
    ("a claim of controllers that refuse", left(control(checkpoint=None), node("broker"), MUTE), []),
    ("controllers wait, and refuse", left(plain(has_migration=True), IN_ZOOKEEPER, MUTE), []),
    ("all of it", left(stale(max_state_epoch=9), node("broker"), SILENT), [MIGRATION, EPOCH, BROKERS]),
    ("a migration that continues", stand(), []),
    ("a migration that is over", in_phase("finalised"), []),
]


@pytest.mark.parametrize(("now", "expected"), [each[1:] for each in FOUND], ids=[each[0] for each in FOUND])
def test_each_damage_is_found_in_the_order_of_its_repair(now, expected):
    assert [each.plan for each in damages(now)] == expected


@pytest.mark.parametrize(
    ("answers", "ignored", "n_asked"), [((1,), None, 1), ((2, 1), None, 2), ((2,) * 3, OTHER_CONTROLLER, 3)]
)
def test_an_election_that_brokers_learn_of_is_no_damage(answers, ignored, n_asked):
    named, slept = list(answers), []
    reads = replace(WELL, metadata=lambda cluster, address: metadata(PLACES, controller=named.pop(0)))
    cluster = cluster_with(zookeeper=ZookeeperInMemory(epoch_of_a_partition(2)))
    found = repair.for_repair(left(plain(), IN_ZOOKEEPER), cluster, reads, slept.append)
    assert (found.ignored, found.control.max_state_epoch, len(answers) - len(named)) == (ignored, 2, n_asked)


def test_brokers_are_those_that_any_of_them_knows():
    """The one that began last knows nobody; another one is down."""
    knows = {"a:9092": {}, "b:9092": {1: "a:9092"}}

    def ask(cluster, address):
        if address not in knows:
            raise OSError("refused")
        return metadata(knows[address])

    profile = replace(PROFILE, bootstrap_servers="c:9092, a:9092,b:9092")
    assert repair.known_brokers(cluster_with(profile=profile), replace(WELL, metadata=ask)) == {1: "a:9092"}


def test_nothing_damaged_is_nothing_to_do():
    with pytest.raises(NothingToDo, match="has nothing to repair"):
        first_damage(CLUSTER, in_phase("dual write"), WELL)


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"control": control(has_migration=False)}, "Find out which client deleted /migration"),
        (
            {"nodes": (node("broker"), node("controller", has_flag=False))},
            "Set the migration flag on it before you restart",
        ),
        ({"zk_state": "POST_MIGRATION"}, "Restart each of them in KRaft mode"),
        ({"control": plain(controller_id=None), "zk_state": None}, "no broker holds /controller.*Restart one of them"),
        (
            {"control": plain(controller_id=None, **hides("/controller")), "zk_state": None},
            "/controller: it can't be read.*is unknown",
        ),
        (
            {"control": plain(controller_id=None, **holds("/controller", "its brokerid is 'None'")), "zk_state": None},
            "/controller: its brokerid is 'None'. No broker can decode this.*delete the znode: a broker then becomes",
        ),
    ],
)
def test_damage_that_no_plan_repairs_is_refused_with_what_to_do(facts, told):
    with pytest.raises(PlanError, match=told):
        first_damage(CLUSTER, stand(replace(SOUND, **facts)), WELL)


def test_a_broker_that_ended_is_to_be_started_manually():
    reads = replace(WELL, replicas=lambda cluster, facts: {("orders", 0): (1, 3)})
    others = left(plain(), node("broker"), SILENT)
    with pytest.raises(PlanError, match="broker 3 holds replicas and is not registered"):
        first_damage(CLUSTER, others, reads)
    first, rest = first_damage(CLUSTER, left(stale(), node("broker"), SILENT), reads)
    assert [first.plan, *(each.plan for each in rest)] == [MIGRATION, BROKERS], "a znode is repaired without them"
    with pytest.raises(PlanError, match="broker 3 holds replicas and is not registered"):
        first_damage(CLUSTER, in_phase("zookeeper"), reads)


@pytest.mark.parametrize("to", ["controllers", "dual write", "kraft", "zookeeper"])
def test_no_phase_is_planned_on_a_stale_migration(to):
    with pytest.raises(PlanError, match=r"delete from ZooKeeper each topic.*plan kraft --repair"):
        _refuse_detours(CLUSTER, left(stale(), IN_ZOOKEEPER, SILENT), to)


def test_brokers_left_in_migration_mode_are_not_called_there_already():
    with pytest.raises(
        PlanError,
        match=r"broker 1 runs in migration mode, which no plan requested\. To repair it: offramp plan kraft --repair",
    ):
        _refuse_detours(CLUSTER, left(plain(), node("broker"), SILENT), "zookeeper")


@pytest.mark.parametrize(
    ("plan", "gate", "now", "told"),
    [
        (CLAIM, "controllers_gone", left(control(), node("broker"), SILENT), "start the controllers"),
        (
            CLAIM,
            "log_known",
            left(control(), node("broker"), node("controller"), log_read_at=None, log_error="no leader"),
            "no leader",
        ),
        (CLAIM, "stopped", left(control(), node("broker"), UNREACHABLE), "--override stopped:host:9093"),
        (CLAIM, "log_known", left(control(), node("broker"), MUTE, log_read_at=None), "only super.users have rights"),
        (EPOCH, "controllers_silent", left(plain(), node("broker"), MUTE), "still runs. Stop"),
        (CLAIM, "no_kraft_mode", left(control(), node("broker", mode="kraft"), SILENT), "hangs without controllers"),
        (
            CLAIM,
            "nothing_synced",
            left(control(checkpoint_epoch=1), node("broker"), node("controller")),
            "Restore the topics' znodes from ZooKeeper's snapshots",
        ),
        (
            CLAIM,
            "controllers_gone",
            left(UNDECODED, node("broker"), replace(SILENT, is_leader=None)),
            "whether the controllers' disks still hold the migration",
        ),
        (MIGRATION, "controller_ids", None, "name every controller"),
        (EPOCH, "controllers_silent", left(plain(), node("broker"), node("controller")), "still runs. Stop"),
        (BROKERS, "controllers_silent", left(plain(), node("broker"), node("controller")), "still runs. Stop"),
        ("fail over", "three_controllers", stand(), "has no majority"),
        ("fail over", "phase", in_phase("controllers"), "begins in 'dual write' or 'kraft'"),
    ],
)
def test_an_unsafe_plan_is_refused_by_its_gate(plan, gate, now, told):
    look = look_at(now) if now is not None else look_at(stand(), kraft=KraftSettings())
    (found,) = [found for each in gates.GATES[plan] if each.rule.check_id == gate for found in each.found(look)]
    assert found.is_blocking
    assert told in found.sentence


COPYING = left(control(checkpoint=None), node("broker"), node("controller"), state="PRE_MIGRATION")
ABORTED = replace(COPYING, facts=replace(COPYING.facts, n_aborted=1))


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (in_phase("controllers"), None),
        (COPYING, "the copy from ZooKeeper is in progress: KRaft controller 3000 holds /controller"),
        (ABORTED, None),
        (stand(), None),
    ],
)
def test_no_rollback_begins_while_the_copy_is_under_way(now, told):
    (gate,) = [each for each in gates.GATES["zookeeper"] if each.rule.check_id == "no_copy"]
    (found,) = gate.found(look_at(now))
    assert found.is_blocking is (told is not None)
    assert told is None or told in found.sentence


def test_the_rollback_of_an_aborted_copy_gives_the_claim_back_and_compares_nothing():
    steps = list(StepMaker(replace(WORDS, to_phase="zookeeper"), DEPLOYER, ABORTED).steps())
    assert [each.kind for each in steps] == ["stop controllers", "hand back", "roll brokers", "wipe controllers"]
    words = [parameters_of(each) for each in steps[:2]]
    assert [(each.has_claim, each.is_aborted) for each in words] == [(True, True)] * 2


def test_a_copy_without_a_leader_is_a_damage_that_no_log_is_asked_about():
    now = left(control(checkpoint=None), node("broker"), replace(node("controller"), is_leader=False), log_read_at=None)
    assert [each.plan for each in damages(now)] == [CLAIM]
    for name in ("log_known", "controllers_gone"):
        (gate,) = [each for each in gates.GATES[CLAIM] if each.rule.check_id == name]
        assert [each.is_blocking for each in gate.found(look_at(now))] == [False]


@pytest.mark.parametrize(
    ("end", "told"), [(90, None), (70, "controllers are behind the active controller: controller 3002 by 30")]
)
def test_a_broker_in_sync_lets_no_controller_far_behind_lead(end, told):
    reads = replace(WELL, voter_ends=lambda *at: {3000: 100, 3001: 99, 3002: end})
    assert problems.behind_problem(CLUSTER, stand(), reads) == (told and f"{told} records")


def steps_of(to_phase, now):
    return [step.kind for step in StepMaker(replace(WORDS, to_phase=to_phase), DEPLOYER, now).steps()]


def test_controllers_that_run_are_stopped_before_the_znode_is_repaired():
    fresh = left(stale(), IN_ZOOKEEPER, node("controller"))
    assert steps_of(MIGRATION, fresh) == ["stop controllers", "repair ZooKeeper", "wipe controllers"]
    assert steps_of(MIGRATION, left(stale(), IN_ZOOKEEPER, SILENT)) == ["repair ZooKeeper"]
    assert steps_of(BROKERS, left(plain(), node("broker"), SILENT)) == ["roll brokers"]
    assert steps_of("fail over", stand()) == ["fail over"]


def test_the_typed_text_names_the_damage_and_the_cluster():
    assert [consent_of(each, "production").subject for each in (*REPAIRS, "fail over")] == [
        "repair /controller production",
        "repair /migration production",
        "repair /controller_epoch production",
        "repair brokers production",
        "fail over production",
    ]


def test_stopped_for_a_repair_they_are_not_started_again_by_an_undo():
    step = stop_step("01", StopParameters.made_from(replace(WORDS, to_phase=MIGRATION), nodes=(3000,)))
    assert "would damage the repaired znodes" in step.cannot_be_undone
    with pytest.raises(PlanError, match="repairs no znode"):
        repair_step("01", handed("kraft"))


def test_the_controllers_of_a_migration_are_not_stopped_by_a_repair():
    words = handed(CLAIM)
    assert "so /migration belongs to them" in StopActor(SimpleNamespace())._not_yet(words, stand())
    assert StopActor(SimpleNamespace())._not_yet(words, stand(replace(SOUND, zk_state="PRE_MIGRATION"))) is None


HELD = {
    "/controller": saved_znode("{}", owner=9),
    "/controller_epoch": saved_znode("7"),
    "/migration": saved_znode("{}"),
}


@pytest.mark.parametrize(
    ("plan", "owner", "told", "deleted"),
    [
        (MIGRATION, 9, None, ["/migration"]),
        (EPOCH, 9, None, ["/controller"]),
        (CLAIM, 0, None, ["/controller", "/migration"]),
        (MIGRATION, 0, "KRaft's", None),
        (EPOCH, 0, "KRaft's", None),
        (CLAIM, 9, "a broker's", None),
    ],
)
def test_only_the_damage_that_was_approved_is_written(plan, owner, told, deleted):
    actor, words = RepairActor(SimpleNamespace()), handed(plan)
    held = {**HELD, "/controller": saved_znode("{}", owner=owner)}
    problem = actor._odd(words, held)
    assert problem is None if told is None else told in problem
    if deleted is not None:
        assert list(actor._deleted(words, held)) == deleted
    assert "no broker holds /controller" in actor._odd(words, {})


def test_an_epoch_that_is_no_number_counts_as_none():
    assert [hand_back._epoch_of(each) for each in (HELD, {}, {"/controller_epoch": saved_znode("x")})] == [7, 0, 0]


def test_the_content_of_a_znode_that_is_gone_is_nothing():
    assert hand_back._held({}, "/migration") == {}
    assert hand_back._held(HELD | {"/migration": saved_znode("")}, "/migration") == {}


@pytest.mark.parametrize(
    ("epoch", "highest", "told"),
    [(7, 7, None), (7, None, None), (7, 9, "/controller_epoch is 7, below the epoch 9"), (None, 3, "is None, below")],
)
def test_a_claim_that_another_tool_deleted_is_no_hand_back_where_the_epoch_was_not_raised(epoch, highest, told):
    """A run that continues after somebody deleted both znodes in a shell: brokers would be rolled without leaders."""
    held = {} if epoch is None else {"/controller_epoch": str(epoch).encode()}
    held |= {} if highest is None else epoch_of_a_partition(highest)
    cluster = cluster_with(zookeeper=ZookeeperInMemory(held))
    actor = HandBackActor(SimpleNamespace(read_state=lambda words: left(plain(), IN_ZOOKEEPER), cluster=cluster))
    step = hand_back_step("01", handed("zookeeper", has_claim=True))
    if told is None:
        assert [each.outcome for each in actor.act(step, None)] == ["UNCHANGED"]
    else:
        with pytest.raises(RunError, match=f"{told}.*offramp plan kraft --repair"):
            actor.act(step, None)


def mending(now, reads=WELL) -> tuple[RepairActor, object]:
    hands = NodeOperator(cluster_with(zookeeper=ZookeeperInMemory()), DEPLOYER, reads=reads)
    hands.read_state = lambda words: now
    return RepairActor(hands), repair_step("01", handed(MIGRATION))


def test_a_damage_that_is_gone_is_not_repaired_again():
    actor, step = mending(left(stale(), IN_ZOOKEEPER, SILENT))
    assert actor.check(step).ok
    assert actor.state(step) == StepState.NOT_DONE
    actor, step = mending(left(plain(), IN_ZOOKEEPER, SILENT))
    assert "'repair /migration' would repair no longer exists" in actor.check(step).sentence
    assert actor.state(step) == StepState.DONE
    actor, step = mending(left(control(), node("broker"), SILENT))
    assert "has claimed /controller since" in actor.check(step).sentence


@pytest.mark.parametrize(
    ("plan", "told"), [(MIGRATION, None), (EPOCH, "broker 1 reports: orders-0 has no leader (1 partition in all)")]
)
def test_a_partition_without_leader_waits_for_the_epoch_not_for_migration(plan, told):
    unled = metadata({1: "host:9092"}, partition(leader=None), controller=1)
    actor, _ = mending(left(plain(), IN_ZOOKEEPER, SILENT), replace(WELL, metadata=lambda cluster, address: unled))
    actor.hands.still_for = lambda key, value: HANDED_BACK_S
    found = actor.verify(repair_step("01", handed(plan)))
    assert (found.ok, found.sentence) == (
        told is None,
        told or ("/migration is repaired, and a broker holds /controller"),
    )


THREE = {"3000": "host:9093", "3001": "b:9093", "3002": "c:9093"}
FAIL = OrderParameters.made_from(replace(WORDS, to_phase="fail over", controllers=THREE), nodes=(3000,))


@pytest.fixture
def failing():
    """The active controller is 3000 until it is ordered to restart; then 3001 is."""
    orders, leads = [], {"now": 3000}

    def order(words, role, number, action, modes):
        orders.append((role, number, action))
        leads["now"] = 3001
        return None, "done"

    def look(words):
        at = {3000: "host:9093", 3001: "b:9093", 3002: "c:9093"}
        nodes = [
            node("controller", node_id=it, address=where, is_leader=it == leads["now"], voters=tuple(at))
            for it, where in at.items()
        ]
        return stand(replace(SOUND, nodes=(node("broker"), *nodes)))

    def wait_until(words, problem, report):
        assert problem(look(words)) is None
        return look(words)

    given = {"order": order, "read_state": look, "wait_until": wait_until}
    hands = SimpleNamespace(**given, cluster=CLUSTER, folder=None, **NOTHING_OPEN)
    hands.instruction_problem = lambda *given: None
    return FailOverActor(hands), orders


def test_the_active_controller_is_restarted_once(failing):
    actor, orders = failing
    step, report = fail_over_step("01", FAIL), Report()
    assert actor.check(step).ok
    assert actor.state(step) == StepState.NOT_DONE
    (outcome,) = actor.act(step, report)
    assert (outcome.outcome, orders, report.attempted) == (
        "CONFIRMED",
        [("controller", 3000, "restart")],
        ["controller 3000"],
    )
    assert actor.state(step) == StepState.DONE
    assert actor.verify(step).sentence == "controller 3001 is active, and dual write continues"
    (again,) = actor.act(step, report)
    assert (again.outcome, len(orders)) == ("UNCHANGED", 1)
    assert not actor.check_back(step, None).ok


def test_the_active_controller_is_not_restarted_with_a_file_that_was_edited(failing):
    actor, orders = failing
    actor.hands.edited_problem = lambda words, role, numbers, mode: f"controller-{numbers[0]}.{mode} was edited"
    report = Report()
    with pytest.raises(RunError, match=r"controller 3000 is not restarted: controller-3000\.migration was edited"):
        actor.act(fail_over_step("01", FAIL), report)
    assert (orders, report.attempted) == ([], [])


def test_a_fail_over_offers_no_undo_that_would_wait_for_the_old_controller():
    step = fail_over_step("01", FAIL)
    assert (step.undo, step.cannot_be_undone) == (
        None,
        "there is nothing to undo: the active controller is not a setting",
    )


def test_parameters_of_a_repair_are_read_back_from_its_step():
    step = repair_step("01", handed(EPOCH))
    assert parameters_of(step).to_phase == EPOCH
