"""A move to KRaft: from where which plan leads where, what each gate refuses, and what nobody can forge."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from typer.testing import CliRunner

from kit.cli.main import app
from kit.engine.lock import ClusterLock
from kit.engine.model.approval import refuse_unless_genuine
from kit.engine.model.clock import Clock
from kit.engine.model.observation import Observation
from kit.engine.model.plan import Consent, parse_plan
from kit.engine.model.values import parse_json, readable
from kit.errors import ApprovalError, InputError, NothingToDo, PlanError, RunError, UnsafePlan
from kit.kraft.analyze.phase import state
from kit.kraft.move import end_steps, gates, hand_back, performer, plan as planning, problems, steps
from kit.kraft.move.cluster_state import ClusterState
from kit.kraft.move.overrides import OLD_CONSUMERS, STOPPED, of_group, of_node, takes_second_person
from kit.kraft.move.parameters import RollParameters, StopParameters
from kit.kraft.move.performer import _came_late
from kit.kraft.move.plan import KraftPlanRequest, _describe_mixed, _refuse_detours
from kit.kraft.move.recipes import parameters_of
from kit.kraft.move.step_maker import StepMaker
from kit.kraft.move.steps import REPAIRS, consent_of, roll_step
from kit.kraft.preflight import Preflight
from kit.kraft.status import KraftStatus
from kit.kraft.watch import KraftHistory, KraftObservation
from kit.moves.locks.run_lock import RunLock
from kit.operations.kinds import refuse_altered
from kit.operations.operations import Operations
from kit.profile import ApprovalSettings, KraftSettings
from kit.tables.conditions import Condition, raise_if_unsafe
from tests.kraft_records import SOUND, broker, control, diff, difference, hides, holds, node, plain
from tests.models.engine import make_plan
from tests.unit.cli.opened import find_open
from tests.unit.kraft.move.move_plans import (
    CLUSTER,
    DEPLOYER,
    WELL,
    WORDS,
    approved,
    cluster_with,
    in_phase,
    look_at,
    members,
    metadata,
    partition,
    plan_to,
    saved_znode,
    stand,
)

CONTROLLERS = {3000: "host:9093"}
"""The controllers of the sound dual write that the tests of phases have: one broker in migration mode."""


def made(to_phase: str, now: ClusterState) -> list[tuple[str, str, tuple[int, ...]]]:
    words = replace(WORDS, to_phase=to_phase, all_brokers={str(it): at for it, at in now.brokers.items()})
    parts = [(step, step.parameters) for step in StepMaker(words, DEPLOYER, now).steps()]
    return [(step.kind, f"{it['from_mode']}>{it['to_mode']}", it["nodes"]) for step, it in parts]


def test_each_plan_has_the_steps_of_its_phase():
    assert made("controllers", in_phase("zookeeper")) == [("start controllers", ">migration", (3000,))]
    assert made("dual write", in_phase("controllers")) == [
        ("roll brokers", "zookeeper>migration", (1,)),
        ("compare", ">", ()),
    ]
    assert made("kraft", in_phase("dual write")) == [("roll brokers", "migration>kraft", (1,)), ("compare", ">", ())]
    assert made("finalised", in_phase("kraft")) == [
        ("archive ZooKeeper", ">", ()),
        ("compare", ">", ()),
        ("finalise", "migration>finalised", (3000,)),
        ("list what stays", ">", ()),
    ]


def test_the_rollback_from_each_phase_is_one_plan():
    end = [
        ("stop controllers", "migration>", (3000,)),
        ("hand back", ">", ()),
        ("roll brokers", "migration>zookeeper", (1,)),
        ("wipe controllers", ">", (3000,)),
    ]
    assert made("zookeeper", in_phase("dual write")) == [("compare", ">", ()), *end]
    first = ("roll brokers", "kraft>migration", (1,))
    assert made("zookeeper", in_phase("kraft")) == [first, ("compare", ">", ()), *end]
    assert made("zookeeper", in_phase("controllers")) == [end[0], end[1], end[3]]


def test_zookeepers_controller_goes_last_and_the_last_begins_the_copy():
    nodes = tuple(node("broker", mode="zookeeper", has_flag=False, node_id=number) for number in (1, 2, 3))
    facts = replace(in_phase("controllers").facts, nodes=(*nodes, node("controller")))
    facts = replace(facts, control=plain(has_migration=True, controller_id=1, brokers=(1, 2, 3)))
    first, last, _ = StepMaker(replace(WORDS, to_phase="dual write"), DEPLOYER, stand(facts, (1, 2, 3))).steps()
    assert (parameters_of(first).nodes, parameters_of(last).nodes) == ((2, 3), (1,))
    assert first.undo is not None
    assert last.undo is None
    assert "copy begins" in last.cannot_be_undone


@pytest.mark.parametrize(
    ("here", "to", "error", "told"),
    [
        ("zookeeper", "dual write", PlanError, "The next plan must go to 'controllers'"),
        ("controllers", "kraft", PlanError, "The next plan must go to 'dual write'"),
        ("dual write", "finalised", PlanError, "The next plan must go to 'kraft'"),
        ("dual write", "controllers", PlanError, "no rollback to the phase 'controllers'"),
        ("finalised", "zookeeper", PlanError, "can't be undone"),
        ("finalised", "kraft", PlanError, "can't be undone"),
        ("kraft", "kraft", NothingToDo, "already"),
        ("zookeeper", "zookeeper", NothingToDo, "already"),
    ],
)
def test_a_plan_that_leads_nowhere_is_refused_by_name(here, to, error, told):
    with pytest.raises(error, match=told):
        _refuse_detours(CLUSTER, in_phase(here), to)


def test_an_unknown_phase_is_planned_to_nowhere():
    facts = replace(SOUND, zk_state=None, control=control())
    with pytest.raises(PlanError, match="so no plan can be made"):
        _refuse_detours(CLUSTER, stand(facts), "kraft")
    hidden = replace(SOUND, zk_state=None, control=control(**hides("/controller")))
    with pytest.raises(PlanError, match=r"/controller: it can't be read: .* needs the right READ there"):
        _refuse_detours(CLUSTER, stand(hidden), "kraft")


def test_a_phase_has_to_be_one():
    with pytest.raises(InputError, match="there is no phase 'P4'"):
        KraftPlanRequest("P4")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"zk_state": "PRE_MIGRATION"}, "log is PRE_MIGRATION"),
        ({"control": control(is_controller_persistent=False, controller_id=1)}, "held by 1"),
        ({"control": control(controller_id=3001)}, "held by 3001"),
        ({"control": control(checkpoint_epoch=4)}, "epoch 4"),
        ({"control": control(checkpoint=None, checkpoint_epoch=None)}, "epoch None"),
        ({"nodes": (node("broker"), node("controller", has_flag=False))}, "without the migration flag"),
        ({"nodes": (node("broker"), node("controller", is_leader=None))}, "no controller leads"),
        ({"nodes": (node("broker"), node("controller", voters=(3000, 3001)))}, "the profile names"),
        ({"nodes": (node("broker"), node("controller", node_id=3001, voters=(3000,)))}, "Correct the ids"),
        ({"nodes": (node("broker"),)}, "does not answer"),
        ({"log_read_at": None, "log_error": "denied"}, "denied"),
    ],
)
def test_dual_write_is_not_believed_from_one_fact(changed, told):
    assert problems.dual_write_problem(stand(), CONTROLLERS) is None
    assert told in problems.dual_write_problem(stand(replace(SOUND, **changed)), CONTROLLERS)


@pytest.mark.parametrize(
    ("mode", "changed", "told"),
    [
        ("migration", {"nodes": ()}, "does not answer"),
        ("kraft", {}, "runs in migration mode, not kraft"),
        ("migration", {"control": control(brokers=())}, "not in /brokers/ids"),
        ("migration", {"registrations": ()}, "not registered"),
        ("migration", {"registrations": (broker(is_migrating=False),)}, "another mode"),
        ("migration", {"registrations": (broker(is_fenced=True),)}, "fenced"),
        ("kraft", {"nodes": (node("broker", mode="kraft"),)}, "still in /brokers/ids"),
    ],
)
def test_a_broker_is_well_only_if_all_report_it(mode, changed, told):
    assert problems.broker_problem(stand(), 1, "migration") is None
    assert told in problems.broker_problem(stand(replace(SOUND, **changed)), 1, mode)


def gate(to_phase: str, name: str, look) -> object:
    (found,) = [found for each in gates.GATES[to_phase] if each.rule.check_id == name for found in each.found(look)]
    return found


def found_by_preflight(check_id: str, severity: str, is_met: bool | None):
    seen = look_at(in_phase("dual write"))
    row = Condition(check_id, severity, "controllers", "user ann", is_met, "It is malformed.", "Delete it.", "x")
    vars(seen)["preflight"] = Preflight("production", [row], ())
    return seen


@pytest.mark.parametrize("to_phase", ["zookeeper", "repair brokers"])
@pytest.mark.parametrize(
    ("row", "is_met"),
    [
        (("Z09", "block", False), False),
        (("Z10", "block", False), False),
        (("Z09", "warn", False), True),
        (("Z07", "block", False), False),
        (("Z08", "block", False), False),
        (("Z08", "warn", None), True),
        (("Z11", "block", False), False),
        (("Z11", "warn", False), True),
        (("Z12", "block", False), True),
        (("Z09", "block", True), True),
        (("Z10", "block", None), False),
    ],
)
def test_no_broker_is_restarted_beside_a_znode_that_ends_it(to_phase, row, is_met):
    """In ZooKeeper and in migration mode a broker applies settings, quotas, credentials and ACLs when it starts."""
    found = gate(to_phase, "brokers_start", found_by_preflight(*row))
    assert found.is_met is is_met
    assert is_met or f"{row[0]} It is malformed. Delete it" in found.sentence


@pytest.mark.parametrize(
    ("n_answering", "to_phase", "is_met"),
    [
        (0, "zookeeper", False),
        (1, "zookeeper", False),
        (1, "repair /controller", False),
        (1, "repair /migration", False),
        (0, "repair /migration", True),
        (2, "zookeeper", True),
    ],
)
def test_without_a_leader_few_controllers_that_answer_do_not_report_the_voters(n_answering, to_phase, is_met):
    """Two of three are left to ``controller_ids``, which waits for their election."""
    controllers = KraftSettings(controllers="3000@a:1,3001@b:1,3002@c:1")
    nodes = [
        node("controller", address=at, is_leader=False, **({} if number < n_answering else SILENT))
        for number, at in enumerate(("a:1", "b:1", "c:1"))
    ]
    seen = look_at(stand(replace(SOUND, nodes=(node("broker"), *nodes))), kraft=controllers)
    found = gate(to_phase, "voters_known", seen)
    assert found.is_met is is_met
    assert gate(to_phase, "controller_ids", seen).is_met is (n_answering < 2)


SILENT = {"error": "refused", "is_listening": False}


def test_no_plan_to_kraft_mode_while_old_members_live():
    zookeeper = members(orders=["orders_a", "orders_b"])
    found = gate("kraft", "old_consumers", look_at(in_phase("dual write"), zookeeper=zookeeper))
    assert found.is_blocking
    assert not found.can_be_overridden
    assert "orders (2)" in found.sentence
    assert "offramp plan group orders --to 'all KC'" in found.sentence


@pytest.mark.parametrize(
    ("group", "told"),
    [
        ("a b; rm -rf ~", "offramp plan group 'a b; rm -rf ~' --to 'all KC'"),
        ("$(date)'", """offramp plan group '$(date)'"'"'' --to 'all KC'"""),
        ("--help", "offramp plan group --to 'all KC' -- --help"),
    ],
)
def test_a_command_to_copy_takes_a_group_as_one_argument_whatever_its_name(group, told):
    look = look_at(in_phase("dual write"), zookeeper=members(**{group: ["a"]}))
    assert told in gate("kraft", "old_consumers", look).sentence


def test_a_broker_that_is_registered_and_was_not_asked_is_named():
    facts = replace(SOUND, registrations=(broker(), broker(node_id=7)))
    found = gate("kraft", "every_broker", look_at(stand(facts)))
    assert "broker 7 is registered" in found.sentence
    assert "then end its registration: offramp plan kraft --unregister 7" in found.sentence


def test_partitions_out_of_sync_are_reported_with_the_commands_that_help():
    unled = metadata({1: "host:9092"}, partition(leader=None))
    reads = replace(WELL, metadata=lambda cluster, address: unled)
    told = gate("kraft", "in_sync", look_at(stand(), reads=reads)).sentence
    assert told.startswith(
        "broker 1 reports: these partitions have no leader or no full ISR: orders-0. Start the missing brokers"
    )
    assert "kafka-topics.sh --bootstrap-server host:9092,b:9092 --describe --under-replicated-partitions" in told
    assert "kafka-reassign-partitions.sh --bootstrap-server host:9092,b:9092" in told


def test_a_broker_that_was_killed_is_not_to_be_started_before_zookeeper_has_forgotten_it():
    silent = node("broker", mode=None, error="no answer")
    told = {
        listed: gate(
            "zookeeper", "every_broker", look_at(stand(replace(SOUND, nodes=(silent,), control=held)))
        ).sentence
        for listed, held in ((True, control(brokers=(1,))), (False, control(brokers=())))
    }
    assert all("broker 1 does not answer: start it" in each for each in told.values())
    assert "NodeExistsException" in told[True]
    assert "NodeExistsException" not in told[False]


def test_controllers_need_ids_that_no_broker_has():
    assert (
        "name every controller with its id"
        in gate("kraft", "controller_ids", look_at(stand(), kraft=KraftSettings(controllers="host:9093"))).sentence
    )
    clash = look_at(stand(), kraft=KraftSettings(controllers="1@host:9093"))
    assert gate("kraft", "controller_ids", clash).is_blocking


def test_brokers_that_moved_before_the_copy_are_rolled_back_once_no_controller_can_begin_it():
    nodes = (node("broker"), node("broker", mode="zookeeper", has_flag=False, node_id=2), node("controller"))
    facts = replace(in_phase("controllers").facts, nodes=nodes)
    assert made("zookeeper", stand(facts, (1, 2))) == [
        ("stop controllers", "migration>", (3000,)),
        ("hand back", ">", ()),
        ("roll brokers", "migration>zookeeper", (1,)),
        ("wipe controllers", ">", (3000,)),
    ]


def test_if_every_broker_has_moved_no_one_is_restarted_to_begin_the_copy():
    facts = in_phase("controllers").facts
    assert not gate("dual write", "left_to_move", look_at(stand(facts))).is_blocking
    moved = stand(replace(facts, nodes=(node("broker"), node("controller"))))
    assert (
        "the copy begins as soon as the controllers find what they wait for"
        in gate("dual write", "left_to_move", look_at(moved)).sentence
    )


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ({"has_migration": False}, "another chroot"),
        ({"has_migration": None, **hides("/migration")}, "NoAuthError"),
        ({"has_migration": True, **holds("/migration", "its version is '1', not 0")}, "its version is '1', not 0"),
        ({"has_migration": True, "checkpoint": 7}, "the checkpoint 7, so it belongs to another attempt"),
    ],
)
def test_controllers_wait_only_where_migration_is_as_they_make_it(held, told):
    facts = in_phase("controllers").facts
    assert not gate("dual write", "waiting", look_at(stand(facts))).is_blocking
    found = gate("dual write", "waiting", look_at(stand(replace(facts, control=replace(plain(), **held)))))
    assert told in found.sentence


def test_finalising_needs_every_broker_in_kraft_mode():
    assert not gate("finalised", "all_in_kraft_mode", look_at(in_phase("kraft"))).is_blocking
    fenced = replace(in_phase("kraft").facts, registrations=(broker(is_fenced=True, is_migrating=False),))
    for now in (in_phase("dual write"), stand(fenced)):
        assert gate("finalised", "all_in_kraft_mode", look_at(now)).is_blocking


def test_the_files_of_an_undo_are_asked_for_before_the_way_forward(tmp_path):
    (tmp_path / "broker-1.migration.properties").write_text("broker.id=1\n")
    look = look_at(
        in_phase("controllers"),
        kraft=KraftSettings(controllers="3000@host:9093", settings_dir=tmp_path),
        deploy=SimpleNamespace(nodes=SimpleNamespace(kind="command")),
    )
    assert "broker-1.zookeeper.properties can't be read" in gate("dual write", "settings_zookeeper", look).sentence
    assert "broker 1 in zookeeper mode, not" in gate("kraft", "settings_migration", look).sentence


def test_finalising_asks_for_a_history_of_observations(tmp_path):
    unwatched = gate("finalised", "soak", look_at(in_phase("kraft")))
    assert unwatched.is_blocking
    assert "[clusters.production.kraft] history_dir" in unwatched.sentence
    empty = gate("finalised", "soak", look_at(in_phase("kraft"), kraft=KraftSettings(history_dir=tmp_path)))
    assert empty.is_met is None
    assert "there is no history of observations" in empty.sentence


def test_a_soak_is_of_the_cluster_that_answers_and_not_of_a_name(tmp_path):
    now = in_phase("kraft")
    for cluster_id in ("old", "abc"):
        history = KraftHistory(tmp_path / cluster_id)
        for minutes, epoch in ((0, 8), (1, 9), (2, 9)):
            facts = replace(now.facts, cluster="production", cluster_id=cluster_id, at=datetime.now(UTC))
            facts = replace(facts, at=facts.at - timedelta(minutes=2 - minutes))
            made = replace(state(facts), kraft_epoch=epoch)
            history.append(
                KraftObservation(KraftStatus("production", made, (), facts), diff(difference("topic", "equal")))
            )
    settings = KraftSettings(history_dir=tmp_path / "old", soak_hours=0.01)
    assert "no observation of it" in gate("finalised", "soak", look_at(now, kraft=settings)).sentence
    settings = replace(settings, history_dir=tmp_path / "abc")
    assert gate("finalised", "soak", look_at(now, name="staging", kraft=settings)).is_met


def test_an_overridden_soak_is_on_record_with_what_it_lacked():
    found = [gate("finalised", "soak", look_at(in_phase("kraft")))]
    with pytest.raises(UnsafePlan, match="soak: the profile names no history of observations"):
        raise_if_unsafe(found)
    assert "no history of observations" in raise_if_unsafe(found, ["soak"])["soak"]


@pytest.mark.parametrize("to_phase", sorted(gates.GATES))
def test_every_plan_asks_for_the_rights_of_a_rollback(to_phase):
    first = [each.rule for each in gates.GATES[to_phase][:2]]
    assert [each.check_id for each in first] == ["zookeeper_writes", "zookeeper_sees"]
    assert not any(each.can_be_overridden for each in first)


def test_only_these_gates_can_be_overridden():
    rules = [(to, each.rule) for to, all_ in gates.GATES.items() for each in all_ if each.rule.can_be_overridden]
    assert {(to, rule.check_id, rule.overridden_by) for to, rule in rules} == {
        ("controllers", "preflight_known", "operator"),
        ("controllers", "in_sync", "operator"),
        ("controllers", "disks_wiped", "operator"),
        ("controllers", "rehearsed", "second person"),
        ("dual write", "low_epoch", "operator"),
        ("dual write", "preflight_known", "operator"),
        ("kraft", "old_consumers", "second person"),
        ("finalised", "soak", "second person"),
        ("zookeeper", "voters_known", "operator"),
        ("zookeeper", "brokers_start", "operator"),
        ("repair brokers", "brokers_start", "operator"),
        ("zookeeper", "R03_known", "operator"),
        ("repair /controller", "voters_known", "operator"),
        ("repair /controller", "controllers_gone", "operator"),
        ("repair /migration", "voters_known", "operator"),
        ("repair /migration", "controller_ids", "operator"),
        *((to, "stopped", "second person") for to in ("controllers", "zookeeper", *REPAIRS)),
    }
    for _, rule in rules:
        assert takes_second_person([rule.check_id]) is (
            rule.overridden_by == "second person" and rule not in (OLD_CONSUMERS, STOPPED)
        )
    assert takes_second_person([of_group("shop").check_id])
    assert takes_second_person([of_node("host:9093").check_id])


def test_the_typed_text_names_the_phase_and_the_cluster():
    assert plan_to("finalised").subject == "finalise production"
    assert plan_to("zookeeper").subject == "roll back production"
    assert plan_to("kraft").subject == "move to kraft production"
    assert plan_to("kraft").digest == parse_plan(parse_json(readable(plan_to("kraft").to_json())), "x").digest


def test_finalising_takes_a_second_person_and_an_hour_whatever_the_profile_allows():
    plan = plan_to("finalised")
    approval = approved(plan)
    refuse_unless_genuine(approval, plan, ApprovalSettings())
    with pytest.raises(ApprovalError, match="the 1 hours that a plan of this kind allows"):
        approved(plan, hours=2)
    with pytest.raises(ApprovalError, match="another person has to approve it"):
        approved(plan, approver="Ann")
    with pytest.raises(ApprovalError, match="under one login"):
        approved(plan, login="ann")
    assert approved(plan_to("kraft"), hours=4, approver="Ann", login="ann")


@pytest.mark.parametrize(
    "changed",
    [
        {"consent": None},
        {"consent": Consent("finalise production")},
        {"consent": Consent("finalise production", second_person=True)},
        {"consent": consent_of("finalised", "staging")},
        {"targets": ("cluster xyz",)},
    ],
)
def test_a_plan_that_asks_less_of_its_approval_is_refused(changed):
    refuse_altered(plan_to("finalised"))
    with pytest.raises(PlanError, match="altered or forged"):
        refuse_altered(plan_to("finalised", **changed))


def test_a_finalising_step_is_in_no_other_plan():
    final = plan_to("finalised").steps[2]
    words = replace(parameters_of(final), to_phase="kraft")
    forged = plan_to("kraft", steps=(end_steps.finalise_step("01-finalise", words),))
    with pytest.raises(PlanError, match="finalises a plan to 'kraft'"):
        refuse_altered(forged)


def test_a_plan_back_cannot_be_undone_once_control_was_handed_back():
    kinds = {step.kind: step.cannot_be_undone is None for step in plan_to("zookeeper").steps}
    assert kinds == {
        "roll brokers": False,  # The last one of that kind: to ZooKeeper mode.
        "compare": True,
        "stop controllers": True,
        "hand back": False,
        "wipe controllers": False,
    }
    assert (
        plan_to("zookeeper")
        .steps[0]
        .undo.startswith("The brokers that this step restarted are restarted in kraft mode")
    )


def test_no_broker_skips_a_mode():
    with pytest.raises(PlanError, match="a broker can't go from 'zookeeper' to 'kraft' mode"):
        roll_step("01", RollParameters.made_from(WORDS, nodes=(1,), from_mode="zookeeper", to_mode="kraft"))


SAVED = {"/controller": saved_znode("{}"), "/controller_epoch": saved_znode("7"), "/migration": saved_znode("{}")}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"/controller": saved_znode("{}", owner=9)}, "no KRaft controller wrote that"),
        ({"/controller_epoch": saved_znode("x")}, "no number"),
        ({"/migration": None}, "ZooKeeper has no /migration"),
    ],
)
def test_znodes_that_are_not_as_a_migration_leaves_them_are_not_written(changed, told):
    assert hand_back._odd(SAVED, has_claim=True) is None
    znodes = {path: each for path, each in {**SAVED, **changed}.items() if each is not None}
    assert told in hand_back._odd(znodes, has_claim=True)


def test_no_one_is_stopped_before_every_broker_knows_its_controller():
    """The early SIGTERM: five answers of each broker, and three seconds."""
    now = stand(replace(SOUND, control=plain()))
    clock, asked, names = [0.0], [], {"controller": 1}

    def ask(cluster, address):
        asked.append(address)
        return metadata({1: "host:9092", 2: "b:9092"}, controller=names["controller"])

    hands = SimpleNamespace(still_for=lambda key, value: clock[0], reads=replace(WELL, metadata=ask))
    actor = SimpleNamespace(hands=hands, cluster=CLUSTER)
    assert "less than 3 s" in hand_back.handed_back_problem(actor, WORDS, now)
    clock[0] = 3.0
    assert hand_back.handed_back_problem(actor, WORDS, now) is None
    assert len(asked) == 5
    left = stand(replace(SOUND, control=plain(has_migration=True)))
    assert "/migration exists" in hand_back.handed_back_problem(actor, WORDS, left)
    assert "no broker holds /controller" in hand_back.handed_back_problem(actor, WORDS, stand())
    names["controller"] = 2
    told = "broker 1 names controller 2, but broker 1 holds /controller"
    assert hand_back.handed_back_problem(actor, WORDS, now) == told


def operations(tmp_path, kind: type[Operations] = Operations) -> Operations:
    return kind(cluster_with(zookeeper=MagicMock()), tmp_path)


def test_a_move_holds_the_whole_cluster_and_a_group_its_group(tmp_path):
    desk, move = operations(tmp_path), plan_to("kraft")
    assert type(desk._lock(move)) is ClusterLock
    assert type(desk._lock(replace(make_plan(), kind="group migration"))) is RunLock
    assert desk._performer(move).cluster_id == "abc"


def plan_kraft(monkeypatch, tmp_path, *words, plan=None, error=None):
    """The verb, on a cluster for which a plan or an error is there already."""
    asked = []

    class Made(Operations):
        def make_plan(self, request, overrides=(), made_by=None):
            asked.append((request, tuple(overrides)))
            if error is not None:
                raise error
            return self.save_plan(plan)

    desk = operations(tmp_path, Made)
    find_open(monkeypatch, desk)
    return CliRunner().invoke(app, ["plan", "kraft", *words]), asked


def test_the_verb_keeps_the_plan_and_reports_how_it_is_approved(monkeypatch, tmp_path):
    plan = plan_to("zookeeper")
    words = ("--to", "zookeeper", "--node-timeout", "60", "--override", "R03_known")
    ended, asked = plan_kraft(monkeypatch, tmp_path, *words, plan=plan)
    assert ended.exit_code == 0, ended.output
    ((request, overrides),) = asked
    assert (request.to_phase, request.node_timeout_s, overrides) == ("zookeeper", 60.0, ("R03_known",))
    assert "approval: by a person who types 'roll back production'" in ended.stdout
    assert "cannot be undone: from then on ZooKeeper's controller changes metadata" in ended.stdout
    assert f"approve it: offramp approve {plan.digest[:8]}" in ended.stderr
    assert operations(tmp_path).plan(plan.digest[:8]) == plan


def test_a_repair_and_a_fail_over_are_asked_for_by_their_options(monkeypatch, tmp_path):
    for option, wanted in (
        ("--repair", "repair"),
        ("--fail-over", "fail over"),
        ("--unregister=3", "unregister broker 3"),
    ):
        ended, ((request, _),) = plan_kraft(monkeypatch, tmp_path, option, plan=plan_to("zookeeper"))
        assert ended.exit_code == 0, ended.output
        assert request.to_phase == wanted


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--to", "P4"), "there is no phase 'P4'"),
        (
            ("--to", "kraft", "--node-timeout", "nan"),
            "--node-timeout (in Python: node_timeout_s) must be more than 0 s",
        ),
        (("--to", "kraft", "--way-back", "nan"), "the time limit of an undo is more than 0 h"),
        (("--to", "kraft", "--way-back", "-1"), "the time limit of an undo is more than 0 h"),
        (("--to", "kraft", "--way-back", "inf"), "the time limit of an undo is more than 0 h"),
    ],
)
def test_impossible_requests_are_refused_before_a_cluster_is_asked(monkeypatch, tmp_path, words, told):
    ended, asked = plan_kraft(monkeypatch, tmp_path, *words, error=AssertionError("it was asked"))
    assert (ended.exit_code, asked) == (2, [])
    assert told in ended.stderr


@pytest.mark.parametrize(
    ("words", "error", "exit_code", "told"),
    [
        (("--to", "P4"), None, 2, "there is no phase 'P4'; the phases are controllers, dual write, kraft"),
        (("--to", "kraft"), UnsafePlan("shop (1) lives"), 15, "offramp: shop (1) lives"),
        (("--to", "kraft"), NothingToDo("it is there already"), 14, "offramp: it is there already"),
        ((), None, 2, "give one of --to PHASE, --repair, --fail-over and --unregister"),
        (("--to", "kraft", "--repair"), None, 2, "give one of --to PHASE, --repair, --fail-over and --unregister"),
        (("--repair",), NothingToDo("nothing to repair"), 14, "offramp: nothing to repair"),
    ],
)
def test_the_verb_refuses_in_one_line_and_keeps_nothing(monkeypatch, tmp_path, words, error, exit_code, told):
    ended, _ = plan_kraft(monkeypatch, tmp_path, *words, error=error)
    assert ended.exit_code == exit_code
    assert told in ended.stderr
    assert "Traceback" not in ended.output
    assert list(tmp_path.iterdir()) == []


# Orders that came after the cancellation


def test_a_plan_reports_that_brokers_are_in_different_modes():
    nodes = (node("broker"), node("broker", node_id=2, mode="kraft", address="b:9092"), node("controller"))
    (risk,) = _describe_mixed(stand(replace(SOUND, nodes=nodes), (1, 2)))
    assert "broker 1 is in migration mode and broker 2 is in kraft mode" in risk
    assert list(_describe_mixed(in_phase("kraft"))) == []


@pytest.mark.parametrize("to", ["zookeeper", "controllers"])
def test_a_broker_that_came_into_migration_mode_after_the_rollback_is_named_by_the_next_plan(to):
    now = in_phase("zookeeper")
    now = replace(now, facts=replace(now.facts, nodes=(node("broker"),)))
    with pytest.raises(
        PlanError,
        match=r"broker 1 runs in migration mode, which no plan requested\. To repair it: offramp plan kraft --rep",
    ):
        _refuse_detours(CLUSTER, now, to)


def test_a_controller_that_started_after_the_rollback_is_named_by_the_next_plan():
    now = in_phase("zookeeper")
    late = node("controller", is_leader=None)
    now = replace(now, facts=replace(now.facts, nodes=(*now.facts.nodes, late), log_read_at=None))
    with pytest.raises(PlanError, match=r"controller host:9093 still runs\. A cancelled start was executed late"):
        _refuse_detours(CLUSTER, now, "zookeeper")
    _refuse_detours(CLUSTER, now, "controllers")


@pytest.mark.parametrize(
    ("to_phase", "nodes", "mode", "told"),
    [
        ("zookeeper", (), "migration", "broker 1 is in migration mode"),
        ("dual write", (1,), "migration", None),
        ("dual write", (1,), "kraft", "broker 1 is in kraft mode"),
        ("zookeeper", (), None, None),
    ],
)
def test_an_order_of_another_run_that_came_late_has_to_be_one_of_this_plan_too(to_phase, nodes, mode, told):
    modes = {"from_mode": "zookeeper", "to_mode": "migration"}
    words = RollParameters.made_from(replace(WORDS, to_phase=to_phase), nodes=nodes, **modes)
    plan = SimpleNamespace(steps=[roll_step("01", words)], observed={"broker modes": Observation({"1": "zookeeper"})})
    now = stand(replace(SOUND, nodes=(node("broker", mode=mode, error=None if mode else "silent"),)))
    assert _came_late(plan, now) == told


def test_a_step_names_the_files_of_its_nodes_alone():
    files = (
        "broker-1.migration",
        "broker-1.kraft",
        "broker-1.zookeeper",
        "broker-2.kraft",
        "controller-3000.migration",
    )
    settings = {f"{name}.properties": name for name in files}
    roll, compare = StepMaker(WORDS, DEPLOYER, in_phase("dual write"), settings).steps()
    assert set(parameters_of(roll).settings.values()) == {"broker-1.migration", "broker-1.kraft"}
    assert compare.parameters["settings"] == {}


def test_an_order_of_another_run_that_came_late_ends_this_one_before_its_first_write():
    at = [0.0]
    clock = Clock(monotonic=lambda: at[0], sleep=lambda seconds: at.append(at.pop() + seconds))
    reads = replace(WELL, facts=lambda cluster, brokers: replace(SOUND, nodes=(node("broker"),)))
    plan = SimpleNamespace(
        steps=[steps.stop_step("01", StopParameters.made_from(replace(WORDS, to_phase="zookeeper"), nodes=()))],
        observed={"broker modes": Observation({"1": "zookeeper"})},
    )
    acting = performer.performer(CLUSTER, DEPLOYER, print, clock, Path("runs"), reads=reads)
    with pytest.raises(RunError, match="an order of run 7a was executed late: broker 1 is in migration mode"):
        acting.settle(plan, "7a", lambda: None)


def test_a_plan_holds_what_its_approver_vouches_for_the_modes_and_each_file(tmp_path):
    for number in (1, 2):
        (tmp_path / f"broker-{number}.kraft.properties").write_text(f"node.id={number}\nprocess.roles=broker\n")
    nodes = (node("broker"), node("broker", node_id=2, mode="kraft", address="b:9092"), node("controller"))
    now = stand(replace(SOUND, nodes=nodes), (1, 2))
    look = look_at(now, kraft=KraftSettings(controllers="3000@host:9093", settings_dir=tmp_path))
    made = planning._plan(look, DEPLOYER, "kraft", KraftPlanRequest("kraft"), "ann")
    assert made.risks[0].startswith("The brokers are in different modes")
    assert list(parameters_of(made.steps[0]).settings) == ["broker-1.kraft.properties"]
    assert set(made.observed["settings files"].value) == {"broker-1.kraft.properties", "broker-2.kraft.properties"}
