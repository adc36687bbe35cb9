"""Groups of both protocols on a cluster that has no ZooKeeper: members, assignment and lag in the same tables."""

from __future__ import annotations

import json
from functools import partial

import polars as pl
import pytest
from confluent_kafka import TopicCollection
from typer.testing import CliRunner

from kit import connect, observe, spark_session
from kit.analyze import epoch_rebalances
from kit.cli.main import app
from kit.clients.broker_client import Deadline
from kit.consumer.kafka.consumer import KafkaConsumer
from kit.groups import views
from kit.groups.read import consumer_group_describe, coordinator
from kit.groups.snapshot import verify_read
from kit.lab import NewMember
from kit.lab.process import wait_until
from kit.lab.topics import QUIET
from kit.profile import load_profile
from kit.rebalances.offsets_topic import read_offsets_topic, verify_offsets_topic

NEW = {"group.protocol": "consumer"}
TOPIC, OTHER = "both-protocols", "another-topic"
PARTITIONS = 6
SECONDS = 90.0


@pytest.fixture(scope="module")
def cluster(kraft_lab):
    """Connected by a profile without ZooKeeper; its topics hold ten records per partition."""
    kraft_lab.create_topics({TOPIC: PARTITIONS, OTHER: 2})
    kraft_lab.produce(TOPIC, 10 * PARTITIONS)
    path = kraft_lab.folder / "offramp.toml"
    path.write_text(kraft_lab.profile_toml())
    profile = load_profile(file=path)
    assert profile.zookeeper_connect is None
    with connect(profile) as connected:
        yield connected


@pytest.fixture(scope="module")
def members(kraft_lab, cluster):
    """Two members of each protocol; each group has read everything and committed."""
    kinds = {"proto-classic": ("range", {}), "proto-consumer": ("", NEW)}
    wanted = [
        NewMember(group, [TOPIC], f"{group}-{name}", assignor, settings=settings)
        for group, (assignor, settings) in kinds.items()
        for name in ("first", "second")
    ]
    every = kraft_lab.start_new_consumers(wanted)
    started = {group: [member for member in every if member.group == group] for group in kinds}
    for group, mine in started.items():
        wait_until(partial(is_settled, cluster, group, mine), f"{group}: two owners, everything read", SECONDS)
    return started


def is_settled(cluster, group: str, members) -> bool:
    """The coordinator has heard from every member that it owns what it was given, and that it read everything."""
    return (
        lags(cluster, group) == [0] * PARTITIONS
        and owners(cluster, group) == {member.consumer_id: held_now(member) for member in members}
        and all(map(held_now, members))
        and state(cluster, group) == "Stable"
    )


def test_the_verbs_of_a_move_report_that_there_is_no_zookeeper_any_more(kraft_lab, cluster):
    """Kafka 4: nobody is reported to name one."""
    controller = kraft_lab.servers.brokers[0].controller
    alone, whole = kraft_lab.folder / "alone.toml", kraft_lab.folder / "whole.toml"
    alone.write_text(kraft_lab.profile_toml())
    whole.write_text(f'{kraft_lab.profile_toml()}\n[clusters.lab.kraft]\ncontrollers = "{controller}"\n')
    for file, told in ((alone, "of Kafka 4 or later, which has no ZooKeeper mode"), (whole, "records no move")):
        for words in (["preflight"], ["diff"], ["save", str(kraft_lab.folder / "never.save")]):
            said = CliRunner().invoke(app, ["kraft", *words, "--profile-file", str(file)])
            assert said.exit_code == 2, said.output
            assert told in said.output.replace("\n", " ")
            assert "zookeeper_connect" not in said.output
    status = CliRunner().invoke(app, ["kraft", "status", "--profile-file", str(whole)])
    assert status.exit_code == 0, status.output
    assert "Cluster lab: phase no ZooKeeper." in status.output


def lags(cluster, group: str) -> list[int | None]:
    return views.lag(observe(cluster, group)).sort("partition")["lag"].to_list()


def owners(cluster, group: str) -> dict[str, set[tuple[str, int]]]:
    """Client id (of members that have one of their own) → what the coordinator says it owns."""
    snapshot = observe(cluster, group)
    client_ids = dict(zip(snapshot.members["member_id"], snapshot.members["client_id"]))
    owned: dict[str, set[tuple[str, int]]] = {}
    for row in snapshot.ownership.to_dicts():
        owned.setdefault(client_ids[row["member_id"]], set()).add((row["topic"], row["partition"]))
    return owned


def held_now(member) -> set[tuple[str, int]]:
    """A member's own word after its last callback, taken or given."""
    told = [event for event in member.events() if event.name in ("ASSIGN", "REVOKE")]
    return {(topic, partition) for topic, numbers in told[-1].value().items() for partition in numbers}


@pytest.mark.parametrize(
    ("group", "group_type", "protocol"),
    [("proto-classic", "classic", "range"), ("proto-consumer", "consumer", "uniform")],
)
def test_both_kinds_of_groups_are_read_whole(cluster, members, group, group_type, protocol):
    snapshot = observe(cluster, group)
    verify_read(snapshot)
    (row,) = snapshot.groups.to_dicts()
    assert (row["state"], row["group_type"], row["protocol_type"]) == ("Stable", group_type, "consumer")
    assert (row["protocol"], row["coordinator"], row["error"]) == (protocol, 1, None)
    assert sorted(snapshot.members["client_id"]) == [f"{group}-first", f"{group}-second"]
    assert set(snapshot.members["client_host"]) == {"127.0.0.1"}
    assert set(snapshot.subscriptions["topic"]) == {TOPIC}
    assert set(snapshot.subscriptions["member_id"]) == set(snapshot.members["member_id"])
    assert owners(cluster, group) == {member.consumer_id: held_now(member) for member in members[group]}
    assert set.union(*owners(cluster, group).values()) == {(TOPIC, partition) for partition in range(PARTITIONS)}


def test_lag_of_both_groups(kraft_lab, cluster, members):
    one_process = members["proto-classic"][0]
    one_process.pause()
    try:
        kraft_lab.produce(TOPIC, 3 * PARTITIONS)
        assert {group: lags(cluster, group) for group in members} == dict.fromkeys(members, [3] * PARTITIONS)
    finally:
        one_process.resume()


def consumer(lab, group: str, **settings) -> KafkaConsumer:
    return KafkaConsumer({**QUIET, "bootstrap.servers": lab.bootstrap_servers, "group.id": group, **NEW, **settings})


def state(cluster, group: str) -> str:
    return observe(cluster, group).groups["state"][0]


def test_states_have_kafkas_spelling(kraft_lab, cluster):
    """A member that is reported to give partitions up and doesn't poll keeps its group ``Reconciling``."""
    group = "proto-states"
    with consumer(kraft_lab, group) as first, consumer(kraft_lab, group, **{"client.id": "second"}) as second:
        first.subscribe([TOPIC])
        wait_until(lambda: (first.poll(0.02), len(first.assignment()) == PARTITIONS)[1], "all assigned", SECONDS)
        wait_until(lambda: (first.poll(0.02), state(cluster, group) == "Stable")[1], "a stable group", SECONDS)
        second.subscribe([TOPIC])
        wait_until(lambda: (second.poll(0.02), state(cluster, group) == "Reconciling")[1], "a change", SECONDS)
        reconciling = observe(cluster, group)
        assert len(reconciling.members) == 2
        # The first member keeps a partition until it hears that it shall give it up. Then Kafka describes no owner:
        # nothing has two owners.
        owned = sorted(reconciling.ownership["partition"])
        assert reconciling.ownership["member_id"].n_unique() == 1
        verify_read(reconciling)
        moved = lambda: (first.poll(0.02), second.poll(0.02), len(second.assignment()) == PARTITIONS // 2)[2]  # noqa: E731
        wait_until(moved, "the change done", SECONDS)
        kept = sorted(each.partition for each in first.assignment())
        assert owned in (list(range(PARTITIONS)), kept)
        wait_until(lambda: (moved(), state(cluster, group) == "Stable")[1], "a stable group again", SECONDS)
        assert {len(each) for each in owners(cluster, group).values()} == {PARTITIONS // 2}
    wait_until(lambda: state(cluster, group) == "Empty", "an empty group", SECONDS)
    assert len(observe(cluster, group).members) == 0


def test_a_member_with_an_instance_id_two_topics_and_a_pattern(kraft_lab, cluster):
    group = "proto-static"
    static = {"group.instance.id": "instance-1", "client.id": "static-1"}
    with consumer(kraft_lab, group, **static) as member, consumer(kraft_lab, group) as by_pattern:
        member.subscribe([TOPIC, OTHER])
        by_pattern.subscribe([f"^{OTHER}$"])
        both = lambda: (member.poll(0.02), by_pattern.poll(0.02), member.assignment() and by_pattern.assignment())[2]  # noqa: E731
        wait_until(lambda: bool(both()), "both assigned", SECONDS)
        snapshot = observe(cluster, group)
    rows = {row["client_id"]: row for row in snapshot.members.to_dicts()}
    first, second = rows["static-1"], rows["rdkafka"]
    assert (first["group_instance_id"], first["pattern"]) == ("instance-1", None)
    assert second["group_instance_id"] is None
    assert f"^{OTHER}$" in second["pattern"]
    topics = {row["member_id"]: set() for row in (first, second)}
    for row in snapshot.subscriptions.to_dicts():
        topics[row["member_id"]].add(row["topic"])
    assert topics == {first["member_id"]: {TOPIC, OTHER}, second["member_id"]: {OTHER}}
    verify_read(snapshot)


def test_other_clients_report_the_same(kraft_lab, cluster, members):
    """confluent-kafka's description of the group, member by member."""
    found = kraft_lab.admin.describe_consumer_groups(["proto-consumer"])["proto-consumer"].result(30)
    described = {
        each.member_id: {(at.topic, at.partition) for at in each.assignment.topic_partitions} for each in found.members
    }
    snapshot = observe(cluster, "proto-consumer")
    read: dict[str, set[tuple[str, int]]] = {member_id: set() for member_id in snapshot.members["member_id"]}
    for row in snapshot.ownership.to_dicts():
        read[row["member_id"]].add((row["topic"], row["partition"]))
    assert read == described
    assert len(read) == 2


def test_the_command_line_shows_the_group(kraft_lab, cluster, members):
    path = kraft_lab.folder / "offramp.toml"
    result = CliRunner().invoke(app, ["ownership", "--group", "proto-consumer", "--json", "--profile-file", str(path)])
    assert result.exit_code == 0, result.output
    assert {row["partition"] for row in json.loads(result.stdout)} == set(range(PARTITIONS))


@pytest.fixture(scope="module")
def spark():
    session = spark_session()
    yield session
    session.stop()


def described(cluster, group: str):
    """ConsumerGroupDescribe's answer as it came."""
    request = consumer_group_describe.describe_request([group])
    ((_, error, found),) = coordinator.described(
        cluster.broker_client.run(cluster.broker_client.ask, request, 1, Deadline(30))
    )
    assert error == 0
    return found


def listed(assignment) -> list[str]:
    return sorted(f"{each.topic_name}-{number}" for each in assignment.topic_partitions for number in each.partitions)


def stored_epochs(spark, cluster, group: str) -> pl.DataFrame:
    topic = read_offsets_topic(spark, cluster.profile, group)
    assert verify_offsets_topic(topic)
    epochs = pl.DataFrame(topic.epochs.toArrow())
    assert len(epochs) == topic.partitions["n_epochs"].sum()
    return epochs.sort("partition", "offset")


def test_the_epochs_stored_are_those_the_coordinator_describes(kraft_lab, cluster, spark):
    group = "proto-epochs"
    static = {"group.instance.id": "instance-2", "client.id": "static-2"}
    with consumer(kraft_lab, group, **static) as first, consumer(kraft_lab, group) as second:
        first.subscribe([TOPIC, OTHER])
        wait_until(lambda: (first.poll(0.02), len(first.assignment()) == PARTITIONS + 2)[1], "all assigned", SECONDS)
        second.subscribe([TOPIC])
        both = lambda: (first.poll(0.02), second.poll(0.02), second.assignment() and state(cluster, group))[2]  # noqa: E731
        wait_until(lambda: both() == "Stable", "a stable group of two", SECONDS)
        told = described(cluster, group)
        records = stored_epochs(spark, cluster, group)
        rows = epoch_rebalances(records).rows(named=True)
        check_command(kraft_lab, group, rows)  # before a member leaves, which may be one more epoch
    assert records["error"].null_count() == len(records)
    last = {(row["kind"], row["member_id"]): row for row in records.rows(named=True)}
    assert last["group_epoch", None]["epoch"] == told.group_epoch
    assert last["target_epoch", None]["epoch"] == told.assignment_epoch
    for each in told.members:
        member, current = last["member", each.member_id], last["current_assignment", each.member_id]
        assert (current["epoch"], current["state"], current["revoking"]) == (each.member_epoch, "STABLE", [])
        assert current["assigned"] == listed(each.assignment)
        assert last["target_assignment", each.member_id]["assigned"] == listed(each.target_assignment)
        known = (each.client_id, each.client_host.removeprefix("/"), each.instance_id)
        assert (member["client_id"], member["client_host"], member["group_instance_id"]) == known
    (later,) = (each for each in told.members if each.client_id != "static-2")
    assert rows[-1]["members"] == sorted(each.member_id for each in told.members)
    assert (rows[-1]["joined"], rows[-1]["left"]) == ([later.member_id], [])
    assert rows[-1]["moved"] == listed(later.assignment)


def check_command(kraft_lab, group: str, rows: list[dict]) -> None:
    """Without any log it reports the same epochs, and of no other group."""
    path = kraft_lab.folder / "offramp.toml"
    result = CliRunner().invoke(app, ["rebalances", "--group", group, "--json", "--profile-file", str(path)])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert [(row["generation"], row["members"]) for row in told["stored"]] == [
        (row["generation"], row["members"]) for row in rows
    ]
    assert len(told["sentences"]) == len(rows)
    assert all(f"Group {group}: epoch" in sentence for sentence in told["sentences"])


def test_a_deleted_topic_is_reported_by_its_id(kraft_lab, cluster, spark):
    group, topic = "proto-gone", "deleted-later"
    kraft_lab.create_topics({topic: 1})
    described = kraft_lab.admin.describe_topics(TopicCollection([topic]))[topic].result(30)
    topic_id = str(described.topic_id).replace("+", "-").replace("/", "_")  # Kafka writes it so, librdkafka doesn't
    with consumer(kraft_lab, group) as member:
        member.subscribe([topic])
        wait_until(lambda: (member.poll(0.02), len(member.assignment()) == 1)[1], "its partition", SECONDS)
    before = stored_epochs(spark, cluster, group)
    for future in kraft_lab.admin.delete_topics([topic]).values():
        future.result(30)
    wait_until(lambda: topic not in kraft_lab.admin.list_topics(timeout=10).topics, "the topic gone", SECONDS)
    after = stored_epochs(spark, cluster, group)
    assert {each for row in before["assigned"].drop_nulls() for each in row} == {f"{topic}-0"}
    assert {each for row in after["assigned"].drop_nulls() for each in row} == {f"{topic_id}-0"}
