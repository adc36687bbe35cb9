"""A snapshot has what the lab knows: produced, delivered, committed, owned."""

from __future__ import annotations

import json

import polars as pl
import pytest
from kazoo.client import KazooClient

from kit import collect, connect, observe, of_group
from kit.errors import NotFound, PartialRead
from kit.groups import views
from kit.groups.snapshot import verify_read
from kit.profile import load_profile
from tests.servers.awaiting import SECONDS, awaited
from tests.soak import first

OLD_VERSIONS = ("1.1.1", "0.10.2.2", "0.8.2.2")


@pytest.fixture(scope="session")
def profile(lab):
    path = lab.folder / "offramp.toml"
    path.write_text(lab.profile_toml())
    return load_profile(file=path)


@pytest.fixture(scope="session")
def cluster(profile):
    with connect(profile) as connected:
        yield connected


@pytest.fixture
def zookeeper(lab):
    client = KazooClient(lab.zookeeper_connect)
    client.start(SECONDS)
    yield client
    client.stop()
    client.close()


def by_partition(frame: pl.DataFrame, column: str) -> dict[tuple[str, int], object]:
    return {(row["topic"], row["partition"]): row[column] for row in frame.to_dicts()}


def handed_out(*members) -> dict[tuple[str, int], int]:
    """The next offset of each partition by the consumers' own files."""
    following: dict[tuple[str, int], int] = {}
    for record in (record for member in members for record in member.records()):
        key = (record["topic"], record["partition"])
        following[key] = max(following.get(key, 0), record["offset"] + 1)
    return following


def last_reader(*members) -> dict[tuple[str, int], str]:
    """Return who delivered the newest record of each partition."""
    records = sorted((record for member in members for record in member.records()), key=lambda each: each["offset"])
    return {(record["topic"], record["partition"]): record["consumer"] for record in records}


def owners(snapshot) -> dict[tuple[str, int], object]:
    """Consumer ids: of an old member its id, of a new one its client id."""
    of_kafka = snapshot.members.filter(source="kafka").select("member_id", "client_id")
    clients = dict(of_kafka.iter_rows())
    owned = by_partition(snapshot.ownership, "member_id")
    return {pair: clients.get(member_id, member_id) for pair, member_id in owned.items()}


def committed(snapshot, store: str) -> dict[tuple[str, int], object]:
    return by_partition(snapshot.committed_offsets.filter(store=store), "committed_offset")


def awaited_snapshot(cluster, group: str, read, is_right, what: str):
    """The first snapshot of the group of which ``read`` gives what is right."""
    taken = []

    def newest():
        taken[:] = [of_group(observe(cluster), group)]
        return read(taken[0])

    awaited(newest, is_right, what)
    return taken[0]


@pytest.mark.parametrize("version", first(OLD_VERSIONS))
def test_an_old_group_of_two_jvms_is_read_as_they_report_it(lab, cluster, version):
    topic, group = f"truth-{version}", f"truth-group-{version}"
    lab.create_topic(topic, 7)
    produced = lab.produce(topic, 700)
    first = lab.start_old_consumer(group, topic, threads=2, version=version)
    second = lab.start_old_consumer(group, topic, threads=1, version=version)
    members = (first, second)
    awaited(lambda: sum(handed_out(*members).values()), lambda count: count == 700, "700 records delivered")
    ids = {member.consumer_id for member in members}
    awaited_snapshot(cluster, group, owners, lambda found: len(found) == 7 and set(found.values()) == ids, "two owners")
    more = lab.produce(topic, 70)
    snapshot = awaited_snapshot(
        cluster,
        group,
        lambda taken: (committed(taken, "zookeeper"), owners(taken)),
        lambda found: (
            found == (handed_out(*members), last_reader(*members)) and sum(handed_out(*members).values()) == 770
        ),
        "770 records committed, and each partition owned by the member that read its last record",
    )
    ends = by_partition(snapshot.log_offsets.filter(topic=topic), "log_end_offset")
    assert ends == {(topic, partition): count + more[partition] for partition, count in produced.items()}

    if version != "0.8.2.2":  # has no rebalance listener to tell it
        assert by_partition(snapshot.ownership, "thread_id") == first.group_assignment() == second.group_assignment()

    assert set(snapshot.members["member_id"]) == ids
    threads = dict(zip(snapshot.subscriptions["member_id"], snapshot.subscriptions["n_threads"]))
    assert threads == {first.consumer_id: 2, second.consumer_id: 1}
    assert views.lag(snapshot)["lag"].to_list() == [0] * 7

    for member in members:
        member.pause()
    lab.produce(topic, 70)
    lag = views.lag(of_group(observe(cluster), group))
    assert by_partition(lag, "lag") == {(topic, partition): 10 for partition in range(7)}
    assert verify_read(snapshot).startswith("Snapshot")
    for member in members:
        member.stop()


def test_offsets_in_both_stores_and_a_wildcard_are_read_as_the_member_has_them(lab, cluster):
    lab.create_topic("both-a", 2)
    lab.create_topic("both-b", 3)
    lab.produce("both-a", 20)
    lab.produce("both-b", 30)
    member = lab.start_old_consumer("truth-both", "~both-.*", threads=2, offsets="both")
    awaited(lambda: len(member.records()), lambda count: count == 50, "all records delivered")
    expected = {("both-a", p): 10 for p in range(2)} | {("both-b", p): 10 for p in range(3)}
    snapshot = awaited_snapshot(
        cluster,
        "truth-both",
        lambda taken: (committed(taken, "zookeeper"), committed(taken, "kafka"), set(owners(taken).values())),
        lambda found: found == (expected, expected, {member.consumer_id}),
        "all committed to both stores by the owner",
    )
    assert set(views.parity(snapshot)["verdict"]) == {"equal"}
    assert set(snapshot.groups["source"]) == {"zookeeper", "kafka"}
    assert snapshot.members["pattern"].to_list() == ["white_list"]
    assert sorted(snapshot.subscriptions["topic"]) == ["both-a", "both-b"]
    assert set(views.lag(snapshot)["member_id"]) == {member.consumer_id}
    member.stop()


def test_a_new_group_is_read_as_its_members_report_it(lab, cluster):
    lab.create_topic("truth-new", 4)
    lab.produce("truth-new", 40)
    member = lab.start_new_consumer("truth-new-group", "truth-new")
    console = lab.start_console_consumer("truth-new-group", "truth-new")
    awaited(lambda: sum(handed_out(member, console).values()), lambda count: count == 40, "all records delivered")

    def is_right(found) -> bool:
        offsets, owned = found
        mine = {pair for pair, owner in owned.items() if owner == member.consumer_id}
        both = set(owned.values()) == {member.consumer_id, console.consumer_id}
        return offsets == handed_out(member, console) and len(owned) == 4 and both and mine == member.partitions()

    snapshot = awaited_snapshot(
        cluster,
        "truth-new-group",
        lambda taken: (committed(taken, "kafka"), owners(taken)),
        is_right,
        "all committed, and owned by the members that say so",
    )
    group = snapshot.groups.to_dicts()[0]
    assert (group["source"], group["state"], group["protocol_type"], group["coordinator"]) == (
        "kafka",
        "Stable",
        "consumer",
        1,
    )
    assert group["protocol"] == "range"
    assert by_partition(views.lag(snapshot), "lag") == {("truth-new", p): 0 for p in range(4)}
    for each in (member, console):
        each.stop()


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b'{"version":1,"subscription":{"malformed":1},"pattern":"static","timestamp":1795236694925}', "32-bit"),
        (b"malformed", "not JSON"),
        (b"", "empty"),
        (b'{"version":1,"pattern":"static","timestamp":"1"}', "no 'subscription'"),
    ],
)
def test_a_malformed_registration_is_a_row_with_an_error(cluster, zookeeper, payload, said):
    group = f"malformed-{said[:3].strip()}".replace(" ", "")
    zookeeper.create(f"/consumers/{group}/ids/{group}_host-1", payload, ephemeral=True, makepath=True)
    everything = observe(cluster)
    snapshot = of_group(everything, group)
    (member,) = snapshot.members.to_dicts()
    assert said in member["error"]
    with pytest.raises(PartialRead, match=f"lab/{group}/{group}_host-1"):
        verify_read(snapshot)
    others = everything.members.filter(pl.col("group_id").str.starts_with("truth-"))
    assert others["error"].null_count() == len(others)
    blocking = collect(views.blockers(snapshot))
    assert group in set(blocking["group_id"])


def test_znodes_that_hold_something_else_are_rows_with_errors(cluster, zookeeper):
    root = "/consumers/odd"
    for path, data in [
        ("ids", b""),
        ("owners/odd-topic/0", b"nobody"),
        ("owners/odd-topic/1", b"odd_host-1-0"),
        ("offsets/odd-topic/0", b"twelve"),
        ("offsets/odd-topic/1", b"12"),
        ("offsets/odd-topic/zero", b"12"),
        ("migration/mode", b"kafka\n"),
    ]:
        zookeeper.create(f"{root}/{path}", data, makepath=True)
    snapshot = of_group(observe(cluster), "odd")
    owners = snapshot.ownership.sort("partition").to_dicts()
    assert [row["member_id"] for row in owners] == [None, "odd_host-1"]
    assert "holds 'nobody'" in owners[0]["error"]
    offsets = snapshot.committed_offsets.sort("partition").to_dicts()
    assert [row["committed_offset"] for row in offsets] == [None, 12]
    assert "holds 'twelve'" in offsets[0]["error"]
    assert offsets[1]["version"] == 0
    assert offsets[1]["mzxid"] > 0
    assert snapshot.migration_states["mode"].to_list() == ["kafka\n"]
    assert views.readiness(snapshot)["effective_mode"].to_list() == [None]
    ends = snapshot.log_offsets.filter(topic="odd-topic")
    assert ends["error"].str.contains("no broker knows").all()
    zookeeper.delete(root, recursive=True)


def test_a_topic_deleted_between_the_reads_has_unknown_ends(lab, cluster):
    from kit.clients.brokers import fetch_log_offsets, fetch_metadata

    lab.create_topic("vanishing", 2)
    rows = [row for row in fetch_metadata(cluster.broker_client).topic_partitions if row.topic == "vanishing"]
    assert [row.log_end_offset for row in fetch_log_offsets(cluster.broker_client, rows)] == [0, 0]
    lab.admin.delete_topics(["vanishing"])["vanishing"].result(SECONDS)
    # The broker forgets the topic's metadata first and its log a moment later.
    awaited(
        lambda: [(row.log_end_offset, row.error) for row in fetch_log_offsets(cluster.broker_client, rows, 5)],
        lambda found: all(end is None and "deleted while" in (error or "") for end, error in found),
        "the end of the log",
    )


def test_an_unknown_group_is_not_found(cluster):
    with pytest.raises(NotFound, match="nosuch"):
        of_group(observe(cluster), "nosuch")


def test_reading_leaves_no_watch_behind(lab, cluster):
    def sessions_with_watches() -> str:
        return lab.servers.zookeeper.command("wchc")

    session = f"{cluster.zookeeper.client_id[0]:#x}"
    cluster.zookeeper.exists("/controller", watch=lambda event: None)
    assert session in sessions_with_watches()
    with connect(cluster.profile) as another:
        observe(another)
        assert f"{another.zookeeper.client_id[0]:#x}" not in sessions_with_watches()


def test_a_server_without_multiread_gives_the_same(lab, zookeeper):
    from kit.clients.multiread import supports_multiread
    from kit.groups.read.zookeeper import fetch_consumers
    from kit.lab.servers.zookeeper import ZooKeeper

    assert supports_multiread(zookeeper)
    old_server = ZooKeeper(lab.supervisor, version="3.4", name="zookeeper-3.4")
    old_server.start()
    registration = json.dumps({"version": 1, "subscription": {"t": 1}, "pattern": "static", "timestamp": "1"}).encode()
    tree = {
        "ids/plain_host-1": registration,
        "owners/t/0": b"plain_host-1-0",
        "offsets/t/0": b"41",
        "offsets/t/1": b"no number",
        "migration/mode": b"zookeeper",
    }
    trees = []
    for client in (zookeeper, KazooClient(old_server.connect)):
        client.start(SECONDS)
        for path, data in tree.items():
            client.create(f"/consumers/plain/{path}", data, makepath=True)
        trees.append(fetch_consumers(client, lambda group_id: group_id == "plain"))
    assert not supports_multiread(client)
    client.stop()
    zookeeper.delete("/consumers/plain", recursive=True)
    new, old = trees
    assert old.registrations == new.registrations
    varying = {"czxid", "mzxid", "committed_at", "registered_at", "session_id", "mode_mzxid"}
    for name in ("groups", "members", "ownership", "committed_offsets", "migration_states"):
        columns = [column for column in getattr(new, name).values if column not in varying]
        assert list(getattr(old, name).rows(*columns)) == list(getattr(new, name).rows(*columns))
        assert len(getattr(new, name)) > 0
    old_server.process.stop()
