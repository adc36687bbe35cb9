"""A login that may not describe a topic: what the login can't see is neither deleted nor taken for sound."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from typer.testing import CliRunner

from kit.cli.main import app
from kit.clients.cluster import Cluster, connect
from kit.engine.model.states import RunState
from kit.errors import LockLost, NothingToDo, ReadError, RunError, TargetBusy, UnsafePlan
from kit.groups.read.coordinator import LOCK_GROUPS
from kit.groups.read.topics import TopicSight, fetch_sight, fetch_undescribable
from kit.groups.snapshot import observe, verify_read
from kit.kraft.move.sync import sync_problem
from kit.kraft.status import broker_addresses, read_facts
from kit.lab import Lab
from kit.lab.process import wait_until
from kit.lab.servers.security import SCRAM_ITERATIONS, USER
from kit.moves.locks.kafka_lock import KafkaLock, LockGroups, fetch_locks, lock_group, remove_members
from kit.moves.locks.lease import TOPIC
from kit.moves.offsets.delete_groups import DeleteGroupsRequest, performer, plan_delete_groups
from kit.moves.offsets.inputs import PlanOptions
from kit.moves.offsets.other_cluster import OtherCluster, plan_copy_to_cluster
from kit.moves.offsets.plan import Reset, plan_copy, plan_delete, plan_reset, select
from kit.profile import load_profile
from kit.protocol.checks import check_group
from kit.protocol.facts import Answers, Request
from kit.protocol.verdicts import read_facts as read_protocol_facts
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.offset_operations import OffsetOperations
from tests.servers.raw_member import RawMember, assignment, subscription
from tests.servers.tuned_lab import TunedLab

SEEN, HIDDEN, GROUP = "seen", "secret-topic", "both-topics"
BOB = "bob"
AUTHORIZER = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": f"User:ANONYMOUS;User:{USER}",
}
OFFSETS = {(SEEN, 0): 3, (HIDDEN, 0): 7}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """One broker with an authorizer: alice sees all, bob sees all but what a test denies him."""
    with TunedLab(AUTHORIZER, secured=True) as running, pytest.MonkeyPatch.context() as patch:
        running.create_topics({SEEN: 1, HIDDEN: 1})
        running.produce(SEEN, 10)
        running.produce(HIDDEN, 10)
        how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, SCRAM_ITERATIONS)
        password = running.security.password.encode()
        for future in running.admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(BOB, how, password)]
        ).values():
            future.result(SECONDS)
        for name, secret in running.secrets.items():
            patch.setenv(name, secret)
        yield running


def connected(lab: Lab, user: str) -> Cluster:
    file = lab.folder / f"{user}.toml"
    file.write_text(lab.profile_toml().replace(f'"{USER}"', f'"{user}"'), encoding="utf-8")
    assert f'"{user}"' in file.read_text()
    return connect(load_profile(file=file), SECONDS)


@pytest.fixture(scope="module")
def alice(lab) -> Iterator[Cluster]:
    with connected(lab, USER) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def bob(lab) -> Iterator[Cluster]:
    with connected(lab, BOB) as cluster:
        yield cluster


@pytest.fixture
def denied(lab, bob) -> Iterator[None]:
    """Deny bob to describe the hidden topic."""
    deny(lab, bob, ResourceType.TOPIC, HIDDEN)
    yield
    allow(lab, bob)


def deny(lab: Lab, bob: Cluster, kind: ResourceType, name: str) -> None:
    how = (ResourcePatternType.LITERAL, f"User:{BOB}", "*", AclOperation.DESCRIBE, AclPermissionType.DENY)
    for future in lab.admin.create_acls([AclBinding(kind, name, *how)]).values():
        future.result(SECONDS)
    wait_until(lambda: not fetch_sight(bob.broker_client).is_whole, "the rule known to the broker", SECONDS)


def allow(lab: Lab, bob: Cluster) -> None:
    every = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, f"User:{BOB}", None, AclOperation.ANY, AclPermissionType.ANY
    )
    for future in lab.admin.delete_acls([every]).values():
        future.result(SECONDS)
    wait_until(lambda: fetch_sight(bob.broker_client) == TopicSight(), "nothing hidden", SECONDS)


@pytest.fixture
def operations(alice, bob, tmp_path) -> tuple[OffsetOperations, OffsetOperations]:
    """Return the operations of alice and bob; the group has an offset of each topic."""
    made = []
    for cluster in (alice, bob):
        each = OffsetOperations(cluster, tmp_path / str(len(made)))
        each.performer = performer(cluster)
        made.append(each)
    for (topic, partition), offset in OFFSETS.items():
        made[0].commit(GROUP, topic, {partition: offset})
    return made[0], made[1]


def plan(cluster: Cluster, group: str = GROUP):
    return plan_delete_groups(cluster, DeleteGroupsRequest((group,)), "ann", datetime.now(UTC))


def test_a_login_that_sees_all_is_known_to_see_all(alice, bob):
    assert fetch_sight(alice.broker_client) == fetch_sight(bob.broker_client) == TopicSight()


def test_a_hidden_topic_is_named_and_is_not_a_deleted_one(bob, denied):
    assert fetch_sight(bob.broker_client) == TopicSight((HIDDEN,))
    assert fetch_undescribable(bob.broker_client, [SEEN, HIDDEN, "never-made"]) == {HIDDEN}


def test_without_the_right_on_the_cluster_the_sight_is_not_known_and_refuses(lab, alice, bob, operations):
    deny(lab, bob, ResourceType.BROKER, "kafka-cluster")
    try:
        sight = fetch_sight(bob.broker_client)
        assert sight.is_whole is None
        with pytest.raises(UnsafePlan, match=r"visible_topics.*not known"):
            plan(bob)
    finally:
        allow(lab, bob)


def test_no_plan_deletes_a_group_with_offsets_that_are_hidden(bob, operations, denied):
    mine, his = operations
    assert his.offsets("kafka", GROUP) == {(SEEN, 0): 3}  # The answer has no word about the hidden one.
    with pytest.raises(UnsafePlan, match=f"visible_topics.*{HIDDEN}"):
        plan(bob)
    assert mine.offsets("kafka", GROUP) == OFFSETS


def test_no_exclusive_write_joins_a_group_with_offsets_that_are_hidden(bob, operations, denied):
    """While the member is in the group, the coordinator keeps old offsets of its topics alone."""
    options = PlanOptions("ann", datetime.now(UTC), allow_backwards=True, is_exclusive=True)
    with pytest.raises(UnsafePlan, match=f"visible_topics.*{HIDDEN}"):
        plan_reset(bob, "kafka", select(groups=GROUP), Reset("offset", 1), options)


def test_a_copy_to_another_cluster_names_the_topics_that_are_hidden_on_either_side(bob, kraft_lab, operations, denied):
    for topic in (SEEN, HIDDEN):
        kraft_lab.create_topic(topic, 1)
        kraft_lab.produce(topic, 10)
    file = kraft_lab.folder / "other-side.toml"
    file.write_text(kraft_lab.profile_toml(), encoding="utf-8")
    chosen, options = select(groups=GROUP), PlanOptions("ann", datetime.now(UTC), new_groups=True)
    with connect(load_profile(file=file), SECONDS) as other:
        made = plan_copy_to_cluster(bob, other, chosen, OtherCluster(by="timestamp"), options)
        assert any(f"Cluster {bob.name}: The login may not describe 1 topic: '{HIDDEN}'" in it for it in made.risks)
        OffsetOperations(other, kraft_lab.folder).commit("back", HIDDEN, {0: 3})
        with pytest.raises(NothingToDo, match=f"the login may not describe '{HIDDEN}'"):
            plan_copy_to_cluster(other, bob, select(groups="back"), OtherCluster(by="timestamp"), options)


def test_no_move_to_kraft_takes_a_hidden_topic_for_one_in_sync(alice, bob, denied):
    def found(cluster: Cluster) -> str | None:
        brokers = broker_addresses(cluster)
        return sync_problem(cluster, read_facts(cluster, brokers), brokers)

    assert found(alice) is None
    told = (
        f"broker 1 does not report {HIDDEN}-0, so their leaders and ISRs are unknown. Offramp's login needs the right"
    )
    assert found(bob).startswith(f"{told} DESCRIBE on topic {HIDDEN}. ")


def test_a_right_that_was_lost_after_the_plan_stops_the_deletion(lab, bob, operations):
    mine, his = operations
    made = plan(bob)
    deny(lab, bob, ResourceType.TOPIC, HIDDEN)
    try:
        result = his.run(made).act()
        assert result.state == RunState.FAILED
        assert HIDDEN in result.sentence
        assert mine.offsets("kafka", GROUP) == OFFSETS
    finally:
        allow(lab, bob)


def test_a_hidden_offset_that_came_after_the_plan_stops_the_deletion(lab, bob, operations):
    """All that the login sees is as the plan has it."""
    mine, his = operations
    mine.commit("later", SEEN, {0: 3})
    made = plan(bob, "later")
    deny(lab, bob, ResourceType.TOPIC, HIDDEN)
    try:
        mine.commit("later", HIDDEN, {0: 7})
        result = his.run(made).act()
        assert (result.state, HIDDEN in result.sentence) == (RunState.FAILED, True)
        assert mine.offsets("kafka", "later") == OFFSETS
    finally:
        allow(lab, bob)


def test_a_login_that_sees_all_deletes_the_group_and_brings_it_back(alice, operations):
    mine, _ = operations
    run = mine.run(plan(alice))
    run.act().raise_unless(RunState.VERIFIED)
    assert mine.offsets("kafka", GROUP) == {}
    run.undo().raise_unless(RunState.UNDONE)
    assert mine.offsets("kafka", GROUP) == OFFSETS


def test_plans_and_exports_name_the_hidden_topic(lab, alice, bob, operations, denied, tmp_path):
    options = PlanOptions("ann", datetime.now(UTC), new_groups=True)
    for cluster, is_told in ((bob, True), (alice, False)):
        copied = plan_copy(cluster, "kafka", "kafka", select(groups=[GROUP]), options, {GROUP: "copied"})
        assert any(HIDDEN in risk for risk in copied.risks) is is_told
        file, user = tmp_path / f"{is_told}.jsonl", BOB if is_told else USER
        words = ["plan", "offsets", "export", str(file), "--store", "kafka", "--group", GROUP]
        said = CliRunner().invoke(app, [*words, "--profile-file", str(lab.folder / f"{user}.toml")])
        assert said.exit_code == (12 if is_told else 0), said.output
        assert (HIDDEN in said.output) is is_told


def test_a_listing_names_the_topics_that_it_could_not_see(lab, bob, denied, operations):
    for command in (["groups"], ["groups", "--groups", GROUP], ["lag"], ["lag", "-g", GROUP]):
        for user, is_told in ((BOB, True), (USER, False)):
            said = CliRunner().invoke(app, [*command, "--profile-file", str(lab.folder / f"{user}.toml")])
            assert said.exit_code == (0 if GROUP in command else 12), said.output  # A secured group is not readable.
            assert (f"The login may not describe 1 topic: '{HIDDEN}'" in said.stderr) is is_told, (command, user)


def test_a_listing_of_all_groups_names_the_right_without_which_groups_are_hidden(lab, alice, bob, operations):
    """Kafka leaves them out, without an error."""
    commands = [["groups"], ["groups", "--idle"], ["lag"], ["lag", "-g", GROUP], ["export", "--once", "--no-times"]]
    deny(lab, bob, ResourceType.BROKER, "kafka-cluster")
    try:
        for command in commands:
            for user in (BOB, USER):
                said = CliRunner().invoke(app, [*command, "--profile-file", str(lab.folder / f"{user}.toml")])
                is_told = user == BOB and GROUP not in command
                assert ("Groups may be missing here: without DESCRIBE on the cluster" in said.stderr) is is_told, (
                    command
                )
        assert "everything that the login can see was read. Groups may be missing" in verify_read(seen(bob))
        assert verify_read(seen(alice)).endswith("everything was read.")
        options = PlanOptions("ann", datetime.now(UTC), new_groups=True)
        for chosen, is_told in ((select(topics=[SEEN]), True), (select(groups=[GROUP]), False)):
            copied = plan_reset(bob, "kafka", chosen, Reset("latest"), options)
            assert any("Groups may be missing" in risk for risk in copied.risks) is is_told
    finally:
        allow(lab, bob)


def seen(cluster: Cluster):
    """A snapshot without ZooKeeper's group, which is protected."""
    return observe(cluster, GROUP)


def test_an_undo_with_a_hidden_topic_changes_nothing_and_can_be_tried_again(lab, bob, operations):
    """A topic that the login may not describe was taken for a deleted one, and its offset was not committed again."""
    mine, his = operations
    run = his.run(plan(bob))
    run.act().raise_unless(RunState.VERIFIED)
    deny(lab, bob, ResourceType.TOPIC, HIDDEN)
    try:
        with pytest.raises(RunError, match=f"READ on topic '{HIDDEN}'.*nothing was undone"):
            run.undo()
    finally:
        allow(lab, bob)
    assert run.record.state == RunState.VERIFIED
    run.undo().raise_unless(RunState.UNDONE)
    assert mine.offsets("kafka", GROUP) == OFFSETS


def test_an_offset_of_a_hidden_topic_in_zookeeper_does_not_count_as_a_deleted_topics(alice, bob, lab, denied):
    path = f"/consumers/{GROUP}/offsets/{HIDDEN}/0"
    alice.zookeeper.create(path, b"5", makepath=True)
    try:
        with pytest.raises(ReadError, match=f"may not describe '{HIDDEN}'"):
            plan_delete(bob, "zookeeper", select(groups=[GROUP]), PlanOptions("ann", datetime.now(UTC)))
    finally:
        alice.zookeeper.delete(path)


def test_a_lock_in_kafka_needs_two_rights_and_another_login_can_break_it(lab, alice, bob):
    """Each missing right is named with the command that grants it."""
    lock, other = KafkaLock(LockGroups(alice)), KafkaLock(LockGroups(bob))
    lock.acquire(["orders"], "run-1")
    with pytest.raises(TargetBusy, match="run run-1"):
        other.acquire(["orders"], "run-2")
    (held,) = [each for each in fetch_locks(bob) if each.group_id == lock_group("orders")]
    remove_members(bob, held.group_id, [each.member_id for each in held.members])
    with pytest.raises(LockLost):
        lock.assert_held()
    lock.release()
    for kind, name, pattern, granted in (
        (ResourceType.TOPIC, TOPIC, ResourcePatternType.LITERAL, "--operation Read --topic offramp.lock"),
        (
            ResourceType.GROUP,
            LOCK_GROUPS,
            ResourcePatternType.PREFIXED,
            "--group offramp.lock. --resource-pattern-type",
        ),
    ):
        how = (f"User:{BOB}", "*", AclOperation.READ, AclPermissionType.DENY)
        for future in lab.admin.create_acls([AclBinding(kind, name, pattern, *how)]).values():
            future.result(SECONDS)
        awaited(lambda: refused(other), lambda why, granted=granted: granted in why, "the refusal")
    allow(lab, bob)


def refused(lock: KafkaLock) -> str:
    try:
        lock.acquire(["orders"], "run-2")
    except RunError as error:
        return str(error)
    finally:
        lock.release()
    return "not refused"


def test_a_move_to_the_consumer_protocol_needs_the_right_on_each_topic_of_the_group(alice, bob, denied):
    """The check k848_rights: once the group is converted, bob could not describe it at all."""
    group = "protocol-of-hidden"
    RawMember(group, subscription([SEEN, HIDDEN]), assignment()).join(alice.broker_client)
    answers = Answers(clients_ready=True, rights_granted=True, monitoring=())
    met = {}
    for name, cluster in (("alice", alice), ("bob", bob)):
        facts = read_protocol_facts(cluster, group.__eq__)
        every = check_group(facts, facts.groups[group], Request(answers=answers))
        met[name] = [(each.is_met, HIDDEN in each.sentence) for each in every if each.check_id == "k848_rights"]
    assert met == {"alice": [(True, False)], "bob": [(False, True)]}
