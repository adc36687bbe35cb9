"""The end of a move: what is kept of ZooKeeper, what is said to stay, and the flag given back before it has ended."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest

from kit.engine.model.performer import Outcome, StepState, WriteAttempt
from kit.errors import InputError, NothingToDo, RunError
from kit.kraft.move.archive import ARCHIVE, ArchiveActor, ListActor
from kit.kraft.move.compare import CompareActor
from kit.kraft.move.end_steps import archive_step, finalise_step, list_step, return_flag_step
from kit.kraft.move.finalise import FinaliseActor
from kit.kraft.move.leftovers import leftovers
from kit.kraft.move.orders import NodeOperator
from kit.kraft.move.parameters import OrderParameters
from kit.kraft.move.plan import _refuse_detours
from kit.kraft.move.problems import flag_problem, without_flag
from kit.kraft.move.recipes import parameters_of
from kit.kraft.move.return_flag import ReturnFlagActor
from kit.kraft.move.step_maker import StepMaker
from kit.kraft.move.steps import compare_step
from tests.kraft_records import diff, difference, node
from tests.unit.kraft.move.move_plans import (
    CLUSTER,
    DEPLOYER,
    NOTHING_OPEN,
    WELL,
    WORDS,
    Report,
    cluster_with,
    in_phase,
    stand,
)
from tests.unit.saved_cluster import saved_cluster
from tests.unit.zookeeper_in_memory import ZookeeperInMemory

AT = {3000: "host:9093", 3001: "b:9093", 3002: "c:9093"}
THREE = replace(WORDS, controllers={str(number): address for number, address in AT.items()})


# The archive


@pytest.fixture
def hands(tmp_path):
    made = NodeOperator(CLUSTER, DEPLOYER, folder=tmp_path)
    made.read_state = lambda words: in_phase("kraft")
    return made


def test_zookeepers_content_is_a_file_of_the_run_with_its_sum_in_the_evidence(hands, tmp_path):
    actor = ArchiveActor(hands, save=lambda cluster, path: saved_cluster().write(path))
    step = archive_step("01-archive", WORDS)
    assert actor.check(step).ok
    assert actor.act(step, None) == []
    found, data = actor.verify(step), (tmp_path / ARCHIVE).read_bytes()
    assert found.ok
    assert found.evidence["sha256"] == hashlib.sha256(data).hexdigest()
    assert dict(found.evidence["counts"]) == saved_cluster().counts
    actor.act(step, None)  # The run was cut off behind it: what was saved before the end stays.
    assert (tmp_path / ARCHIVE).read_bytes() == data
    (tmp_path / ARCHIVE).write_bytes(data[:200])
    with pytest.raises(InputError, match="it was cut"):
        actor.verify(step)


def test_an_archive_that_lacks_a_znode_ends_the_run_before_the_end(hands):
    hidden = saved_cluster()
    errors = ["NoAuthError"] + [None] * (hidden.znodes.num_rows - 1)
    at = hidden.znodes.schema.get_field_index("error")
    hidden = replace(hidden, znodes=hidden.znodes.set_column(at, hidden.znodes.schema.field(at), [errors]))
    actor = ArchiveActor(hands, save=lambda cluster, path: hidden.write(path))
    step = archive_step("01-archive", WORDS)
    actor.act(step, None)
    assert actor.verify(step).sentence == "ZooKeeper's content was not read completely: NoAuthError (1 error in all)"


def test_nothing_is_archived_without_a_run(hands):
    hands.folder = None
    with pytest.raises(RunError, match="no run was started"):
        ArchiveActor(hands).act(archive_step("01", WORDS), None)


# Differences and leftovers


def test_values_that_differ_are_a_file_of_the_run_with_its_sum_in_the_evidence(hands, tmp_path):
    found = diff(
        difference("topic", "equal"), difference("config", "diverged", item="b"), difference("quota", "expected")
    )
    hands.reads = replace(WELL, diff=lambda cluster: found)
    verified = CompareActor(hands).compared(compare_step("02-compare", WORDS), "the same")
    assert not verified.ok
    kept, data = verified.evidence["differences"], (tmp_path / "differences-02-compare.parquet").read_bytes()
    assert dict(kept) == {
        "file": "differences-02-compare.parquet",
        "sha256": hashlib.sha256(data).hexdigest(),
        "rows": 2,
    }
    assert dict(verified.evidence["counts"]) == {"equal": 1, "diverged": 1, "expected": 1}
    assert pl.read_parquet(data)["verdict"].to_list() == ["diverged", "expected"]
    hands.reads = WELL
    assert CompareActor(hands).compared(compare_step("02-compare", WORDS), "the same").ok


ZNODES = (
    "/brokers/topics/orders", "/brokers/topics/shop", "/config/topics/orders", "/config/users/ann",
    "/config/users/bob", "/consumers/old", "/controller", "/hbase", "/kafka-acl", "/migration", "/offramp/locks",
    "/zookeeper",
)  # fmt: skip


@pytest.fixture
def zookeeper():
    return ZookeeperInMemory(dict.fromkeys(ZNODES, b""))


def test_the_rest_is_reported_by_kind_with_who_may_delete_it(zookeeper):
    assert {each.kind: each.count for each in leftovers(zookeeper)} == {
        "topics": 2,
        "entities with settings, quotas or SCRAM credentials": 3,
        "znodes of Kafka's control": 2,
        "groups of old consumers": 1,
        "znodes of offramp": 1,
        "znodes that are not Kafka's": 1,
    }
    told = {each.kind: each.sentence for each in leftovers(zookeeper)}
    assert told["topics"].startswith("2 topics. ")
    assert told["znodes that are not Kafka's"].startswith("1 znode that is not Kafka's. ")
    assert told["topics"].endswith("May be deleted by the operator of ZooKeeper, together with all znodes of Kafka")
    assert "the owner of the group" in told["groups of old consumers"]


def test_an_uncountable_rest_is_unknown_and_not_nothing(zookeeper):
    zookeeper.root.at("/brokers/topics").is_closed = True
    first = leftovers(zookeeper)[0]
    assert (first.kind, first.count) == ("topics", None)
    assert first.sentence.startswith("an unknown number of topics.")


def test_the_list_is_in_the_evidence(hands, zookeeper):
    hands.cluster = cluster_with(zookeeper=zookeeper)
    found = ListActor(hands).verify(list_step("04-list", WORDS))
    assert found.ok
    assert [row["count"] for row in found.evidence["stays"]] == [2, 3, 2, 1, 1, 1]
    assert found.sentence.startswith("In ZooKeeper stay: 2 topics.")


# The flag


def half_done(*lacking: int, leader: int = 3000, state: str = "MIGRATION", silent: tuple[int, ...] = ()):
    """Three controllers in KRaft mode, some without the flag."""
    nodes = [
        node(
            "controller",
            node_id=it,
            address=where,
            has_flag=it not in lacking,
            is_leader=it == leader,
            voters=tuple(AT),
            error="gone" if it in silent else None,
        )
        for it, where in AT.items()
    ]
    facts = in_phase("kraft").facts
    return stand(replace(facts, nodes=(node("broker", mode="kraft"), *nodes), zk_state=state))


def test_a_finalising_that_was_stopped_in_state_1_can_be_reversed_by_a_plan_to_kraft_mode():
    whole, half = half_done(), half_done(3001, 3002)
    with pytest.raises(NothingToDo, match="already"):
        _refuse_detours(CLUSTER, whole, "kraft")
    cluster = SimpleNamespace(
        name="production", profile=SimpleNamespace(kraft=SimpleNamespace(ids=AT, addresses=tuple(AT.values())))
    )
    _refuse_detours(cluster, half, "kraft")
    first, second = StepMaker(replace(THREE, to_phase="return the flag"), DEPLOYER, half).steps()
    words = parameters_of(first)
    assert (first.kind, words.nodes, words.to_mode) == ("return the flag", (3001, 3002), "migration")
    assert first.undo is None
    assert second.kind == "compare"


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (half_done(3001), None),
        (half_done(3001, state="POST_MIGRATION"), "log is POST_MIGRATION, not MIGRATION"),
        (half_done(3000, 3001), "controller 3000, which is active, runs without the migration flag"),
        (half_done(3001, silent=(3002,)), "controller 3002 at c:9093 does not answer"),
        (half_done(3001, leader=9), "no controller leads the quorum"),
    ],
)
def test_the_flag_is_given_back_only_while_the_active_controller_has_it(now, told):
    found = flag_problem(now, AT)
    assert found == told if told is None else told in found
    assert 3001 in without_flag(now, AT)


def actor_on(world: dict) -> ReturnFlagActor:
    """``world``: which controllers lack the flag, who leads, what the log says, what an order brings about."""

    def look(words):
        return half_done(*world["lacking"], state=world["state"], silent=tuple(world.get("silent", ())))

    def order(words, role, number, action, modes):
        world["orders"].append((role, number, action, modes))
        world["lacking"].discard(number)
        world.get("silent", set()).discard(number)
        world["state"] = world.get("then", world["state"])
        return None, "done"

    def wait_until(words, problem, report):
        assert problem(look(words)) is None
        return look(words)

    hands = SimpleNamespace(read_state=look, order=order, wait_until=wait_until, cluster=CLUSTER, **NOTHING_OPEN)
    hands.instruction_problem = lambda *given: None
    return ReturnFlagActor(hands)


STEP = return_flag_step(
    "01-return-flag", OrderParameters.made_from(replace(THREE, to_phase="return the flag"), nodes=(3001, 3002))
)


def test_the_flag_is_given_back_one_by_one_and_once():
    world = {"lacking": {3001, 3002}, "state": "MIGRATION", "orders": []}
    actor, report = actor_on(world), Report()
    assert actor.check(STEP).ok
    assert actor.state(STEP) == StepState.NOT_DONE
    outcomes = actor.act(STEP, report)
    assert world["orders"] == [("controller", number, "restart", ("finalised", "migration")) for number in (3001, 3002)]
    assert {each.outcome for each in outcomes} == {Outcome.CONFIRMED}
    assert actor.state(STEP) == StepState.DONE
    assert actor.verify(STEP).ok
    assert {each.outcome for each in actor.act(STEP, report)} == {Outcome.UNCHANGED}
    assert report.attempted == ["controller 3001", "controller 3002"]


def test_one_that_was_ordered_and_did_not_come_back_is_started_first():
    """A run that is resumed: 3002 was ordered, and is down; nothing else is taken down meanwhile."""
    world = {"lacking": {3001, 3002}, "silent": {3002}, "state": "MIGRATION", "orders": []}
    actor = actor_on(world)
    assert actor.check(STEP).ok
    actor.act(STEP, Report())
    assert [number for _, number, *_ in world["orders"]] == [3002, 3001]
    world = {"lacking": {3001}, "silent": {3002}, "state": "MIGRATION", "orders": []}
    with pytest.raises(RunError, match="controller 3001 is not restarted: controller 3002 at c:9093 does not answer"):
        actor_on(world)._restart(parameters_of(STEP), 3001, Report())
    for silent, told in (({3001, 3002}, "controller 3001 at b:9093"), ({3000}, "controller 3000 at host:9093")):
        world = {"lacking": {3001, 3002}, "silent": silent, "state": "MIGRATION", "orders": []}
        assert told in actor_on(world).check(STEP).sentence


def test_once_it_is_finalised_no_flag_is_given_back():
    world = {"lacking": {3001, 3002}, "state": "MIGRATION", "then": "POST_MIGRATION", "orders": []}
    with pytest.raises(RunError, match="the migration is finalised"):
        actor_on(world).act(STEP, Report())
    assert len(world["orders"]) == 1
    world = {"lacking": {3001}, "state": "POST_MIGRATION", "orders": []}
    assert not actor_on(world).check(STEP).ok
    with pytest.raises(RunError, match="The run stopped"):
        actor_on(world).act(STEP, Report())
    assert world["orders"] == []


def finalising(*lacking: int, silent: tuple[int, ...] = ()) -> tuple[FinaliseActor, list[int]]:
    """Controllers that lose the flag by an order, and answer then; who was ordered."""
    without, down, ordered = set(lacking), set(silent), list[int]()

    def look(words):
        return half_done(*without, leader=3002, silent=tuple(down))

    def order(words, role, number, action, modes):
        ordered.append(number)
        without.add(number)
        down.discard(number)
        return None, "done"

    hands = SimpleNamespace(read_state=look, order=order, cluster=CLUSTER, **NOTHING_OPEN)
    hands.wait_until = lambda words, problem, report: None
    return FinaliseActor(hands), ordered


FINALISE = finalise_step(
    "03-finalise", OrderParameters.made_from(replace(THREE, to_phase="finalised"), nodes=(3000, 3001, 3002))
)


@pytest.mark.parametrize(
    ("lacking", "silent", "expected"),
    [
        ((), (), [3000, 3001, 3002]),
        ((3000,), (3001,), [3001, 3002]),
        ((), (3001,), [3001, 3000, 3002]),
        ((3000,), (3001, 3002), [3001, 3002]),
    ],
)
def test_a_controller_that_is_down_is_ordered_before_one_that_is_up(lacking, silent, expected):
    actor, ordered = finalising(*lacking, silent=silent)
    actor.act(FINALISE, Report())
    assert ordered == expected


def test_no_controller_is_taken_down_while_another_one_does_not_answer():
    """It had lost its flag, and died since: nobody orders it any more, and the quorum would have no majority."""
    actor, ordered = finalising(3000, silent=(3000,))
    with pytest.raises(RunError, match="controller 3001 is not restarted: controller 3000 does not answer"):
        actor.act(replace(FINALISE, parameters={**FINALISE.parameters, "nodes": (3001, 3002)}), Report())
    assert ordered == []


@pytest.mark.parametrize(("lacking", "has_come"), [((3000, 3001), True), ((3000,), False)])
def test_an_order_that_was_not_seen_is_settled_before_the_next_controller_is_restarted(lacking, has_come):
    actor, _ = finalising(*lacking)
    asked = list[bool]()
    attempt = WriteAttempt("controller 3001", False, None, Outcome.UNKNOWN)
    actor.hands.cancel_open_orders = lambda words, report, is_so: asked.append(is_so(attempt))
    actor.act(FINALISE, Report())
    assert asked == [has_come]


def test_finalising_ends_when_another_controller_lost_its_flag():
    """The deployer takes the active one for the first."""
    actor, ordered = finalising()
    order = actor.hands.order
    actor.hands.order = lambda words, role, number, *how: order(words, role, 3002, *how)
    actor.hands.wait_until = lambda words, problem, report: problem(actor.hands.read_state(words))
    with pytest.raises(RunError, match="controller 3000 was to be restarted, but controller 3002 now runs without the"):
        actor.act(FINALISE, Report())
    assert ordered == [3002]


def test_the_flag_is_not_given_back_behind_the_back_of_a_deployer_that_takes_another_controller():
    world = {"lacking": {3001, 3002}, "state": "MIGRATION", "orders": []}
    actor = actor_on(world)
    order = actor.hands.order
    actor.hands.order = lambda words, role, number, *how: order(words, role, 3002, *how)
    with pytest.raises(RunError, match="controller 3001 was to be restarted, but controller 3002 now runs with the"):
        actor.act(STEP, Report())
    assert len(world["orders"]) == 1


def test_the_flag_is_not_given_back_with_a_file_that_was_edited():
    world = {"lacking": {3001, 3002}, "state": "MIGRATION", "orders": []}
    actor = actor_on(world)
    actor.hands.edited_problem = lambda words, role, numbers, mode: f"controller-{numbers[0]}.{mode} was edited"
    with pytest.raises(RunError, match=r"controller 3001 is not restarted: controller-3001\.migration was edited"):
        actor.act(STEP, Report())
    assert world["orders"] == []
