"""The lab's servers and consumers do what the tests built on them rely on."""

from __future__ import annotations

import json

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kit.errors import InputError, LabError
from kit.lab import Lab, NewMember, OldMember, faults
from kit.lab.members.python import PythonMember
from kit.lab.process import wait_until
from tests.soak import first

OLD_VERSIONS = ("1.1.1", "0.10.2.2", "0.8.2.2")


@pytest.fixture
def zookeeper(lab):
    client = KazooClient(lab.zookeeper_connect)
    client.start(15)
    yield client
    client.stop()
    client.close()


def owners(client, group, topic):
    """(topic, partition) → thread id; nothing while a rebalance takes the znodes away between two reads."""
    path = f"/consumers/{group}/owners/{topic}"
    try:
        return {(topic, int(name)): client.get(f"{path}/{name}")[0].decode() for name in client.get_children(path)}
    except NoNodeError:
        return {}


def test_servers_answer_under_one_cluster_id(lab, zookeeper):
    kept = json.loads(zookeeper.get("/cluster/id")[0])
    assert kept["id"] == lab.cluster_id
    assert zookeeper.get_children("/brokers/ids") == ["1"]
    assert "Mode: standalone" in lab.servers.zookeeper.command("srvr")


def test_produce_spreads_evenly_and_numbers_on(lab):
    lab.create_topic("lab-even", 3)
    assert lab.produce("lab-even", 10) == {0: 4, 1: 3, 2: 3}
    assert lab.produce("lab-even", 3) == {0: 1, 1: 1, 2: 1}


@pytest.mark.parametrize("version", first(OLD_VERSIONS))
def test_old_consumer_owns_and_delivers_everything(lab, zookeeper, version):
    topic, group = f"lab-old-{version}", f"lab-old-group-{version}"
    lab.create_topic(topic, 5)
    lab.produce(topic, 100)
    first = lab.start_old_consumer(group, topic, threads=2, version=version)
    wait_until(lambda: len(first.records()) == 100, "all records delivered", 30)
    second = lab.start_old_consumer(group, topic, threads=1, version=version)
    wait_until(lambda: len({o.rpartition("-")[0] for o in owners(zookeeper, group, topic).values()}) == 2, "both", 30)
    wait_until(lambda: len(owners(zookeeper, group, topic)) == 5, "five owners", 30)

    assert set(zookeeper.get_children(f"/consumers/{group}/ids")) == {first.consumer_id, second.consumer_id}
    assert sorted((r["partition"], r["offset"]) for r in first.records()) == sorted(
        (partition, offset) for partition in range(5) for offset in range(20)
    )
    assert set(first.records()[0]) == {"at_ms", "consumer", "topic", "partition", "offset"}
    if version == "0.8.2.2":
        assert first.group_assignment() is None
        assert first.events("NOLISTENER")
    else:
        wait_until(lambda: first.group_assignment() == owners(zookeeper, group, topic), "the listener's word", 30)
        assert len(first.partitions()) == 4
        assert len(second.partitions()) == 1
    first.stop()
    second.stop()
    assert first.process.exit_code == 143


@pytest.mark.parametrize("offsets", ["zookeeper", "kafka", "both"])
def test_old_consumer_keeps_offsets_where_the_setting_is(lab, zookeeper, offsets):
    topic, group = f"lab-offsets-{offsets}", f"lab-offsets-group-{offsets}"
    lab.create_topic(topic, 1)
    lab.produce(topic, 12)
    consumer = lab.start_old_consumer(group, topic, offsets=offsets)
    wait_until(lambda: len(consumer.records()) == 12, "all records delivered", 30)
    consumer.process.tell("commit")
    wait_until(lambda: bool(consumer.events("COMMITTED")), "the commit", 30)
    consumer.stop()
    path = f"/consumers/{group}/offsets/{topic}/0"
    in_zookeeper = zookeeper.get(path)[0] if zookeeper.exists(path) else None
    assert in_zookeeper == (None if offsets == "kafka" else b"12")
    listed = {found.group_id for found in lab.admin.list_consumer_groups().result(20).valid}
    assert (group in listed) == (offsets != "zookeeper")


def test_several_members_share_a_process_and_one_leaves_at_its_limit(lab, zookeeper):
    lab.create_topic("lab-shared", 4)
    lab.produce("lab-shared", 40)
    goes, stays = lab.start_old_consumers(
        [OldMember("lab-goes", "lab-shared", limit=7), OldMember("lab-stays", "~lab-sha.*", threads=3)]
    )
    wait_until(lambda: bool(goes.events("STOP")) and len(stays.records()) == 40, "one gone, one done", 30)
    assert len(goes.records()) == 7
    assert zookeeper.get_children("/consumers/lab-goes/ids") == []
    assert stays.partitions() == {("lab-shared", partition) for partition in range(4)}
    stays.stop()


def test_a_member_of_any_kind_is_replaced_and_the_rest_of_its_process_stay(lab, zookeeper):
    lab.create_topic("lab-replaced", 4)
    old = lab.start_old_consumers([OldMember(f"lab-old-{each}", "lab-replaced") for each in ("goes", "stays")])
    new = lab.start_new_consumers([NewMember(f"lab-new-{each}", ["lab-replaced"]) for each in ("goes", "stays")])
    python = lab.start_python_members(
        [PythonMember("mezkcc", f"lab-python-{each}", ["lab-replaced"]) for each in ("goes", "stays")]
    )
    for goes, stays in (old, new, python):
        said = lab.replace(goes.group, goes.consumer_id, "KC")
        started = lab.consumers(goes.group)[-1]
        assert said == f"{goes.consumer_id} stopped, {started.consumer_id} started"
        assert goes.has_left
        assert not stays.has_left
        before = len(stays.records())
        lab.produce("lab-replaced", 4)
        wait_until(lambda: len(stays.records()) == before + 4, "the one that stays reading on", 30)  # noqa: B023
        started.stop()
        lab.replace(stays.group, stays.consumer_id, "KC")
        assert not stays.process.running, "a process without members would continue"
        lab.consumers(stays.group)[-1].stop()
    assert zookeeper.get_children("/consumers/lab-old-goes/ids") == []


def test_new_console_and_paced(lab):
    lab.create_topic("lab-new", 4)
    producer = lab.start_producer("lab-new", rate=200)
    two = lab.start_new_consumers([NewMember("lab-new-group", ["lab-new"]) for _ in range(2)])
    console = lab.start_console_consumer("lab-console-group", "lab-new")
    wait_until(lambda: len(producer.acknowledged()) >= 100, "a hundred records", 30)
    producer.stop()
    written = {(row["partition"], row["offset"]) for row in producer.acknowledged()}
    assert {row["number"] for row in producer.acknowledged()} == set(range(len(written)))

    def read(*consumers):
        return {(row["partition"], row["offset"]) for consumer in consumers for row in consumer.records()}

    wait_until(lambda: read(*two) == written and read(console) == written, "all of them read", 30)
    wait_until(lambda: {len(consumer.partitions()) for consumer in two} == {2}, "two partitions each", 30)
    assert len(list(lab.consumption.glob("lab-new-group*.jsonl"))) == 2
    for consumer in (*two, console):
        consumer.stop()


def test_member_that_reads_to_the_end_leaves_an_empty_group(lab):
    lab.create_topic("lab-end", 2)
    lab.produce("lab-end", 20)
    consumer = lab.start_new_consumer("lab-end-group", "lab-end", until_end=True)
    wait_until(lambda: not consumer.process.running, "its end", 30)
    assert consumer.process.exit_code == 0
    assert len(consumer.records()) == 20


def test_expired_session_rebalances(lab, zookeeper):
    lab.create_topic("lab-expire", 2)
    settings = {"zookeeper.session.timeout.ms": "2000"}
    consumer = lab.start_old_consumer("lab-expire-group", "lab-expire", settings=settings)
    before = len(consumer.events("BEG"))
    faults.expire_session(lab, consumer)
    wait_until(lambda: len(consumer.events("BEG")) > before, "its next rebalance", 30)
    wait_until(lambda: len(owners(zookeeper, "lab-expire-group", "lab-expire")) == 2, "both partitions", 30)
    consumer.stop()


def test_wrong_settings_fail_at_once_with_the_log(lab):
    with pytest.raises(LabError, match=r"(?s)ended with exit code 3.*No such strategy"):
        lab.start_old_consumer("lab-bad", "lab-bad-topic", assignor="No such strategy")


def test_wrong_arguments():
    with pytest.raises(InputError, match="brokers=0"):
        Lab(brokers=1, zookeeper_version="3.4")
    with pytest.raises(InputError, match="racks"):
        Lab(brokers=2, racks=["one"])


def test_old_zookeeper_server():
    with Lab(brokers=0, zookeeper_version="3.4") as old:
        assert "Zookeeper version: 3.4.10" in old.servers.zookeeper.command("srvr")
        assert old.profile_toml() == f'[clusters.lab]\nzookeeper_connect = "{old.zookeeper_connect}"\n'
