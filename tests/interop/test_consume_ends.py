"""Every end of ``offramp consume``, of every flavour: what is committed was taken, and the member is gone at once.

The taker keeps its own account: the lines that it read. It is held against what both stores have afterwards.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kit.clients.consumer_protocol import EMBEDDED_RACK
from kit.consumer import KafkaConsumer, Stream, ZookeeperConsumer
from kit.lab import Lab
from kit.lab.process import wait_until
from tests.soak import IS_SOAK, Record, first, report

"""Every end with every flavour; without it some with one only. A Kafka consumer has no time-out."""
COMMAND = [str(Path(sys.executable).with_name("offramp")), "consume"]
RECORDS = 10
READ = 4
SECONDS = 120.0
"""A busy machine takes its time to start a process, and to rebalance a group."""
FLAVOURS = ["ozkcc", "mezkcc", "mezkcc-kafka", "kc"]
OLD = FLAVOURS[:3]
Pair = tuple[str, int]


@dataclass(frozen=True)
class End:
    """``act`` makes it end and returns what the taker read; ``n_taken`` is what every store must have of it."""

    name: str
    code: int
    words: str
    act: Callable[[subprocess.Popen[bytes], Path], bytes]
    options: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    partitions: int = 1
    n_taken: int | None = None
    flavours: tuple[str, ...] = tuple(FLAVOURS)
    file_bytes: int | None = None
    output: str = ""
    settings: tuple[str, ...] = field(default=("-X", "auto.commit.interval.ms=100"))


def lines(process: subprocess.Popen[bytes], count: int) -> bytes:
    """Return so many lines, and not an octet more."""
    assert process.stdout is not None
    return b"".join(process.stdout.readline() for _ in range(count))


def reads_all(process: subprocess.Popen[bytes], got: Path) -> bytes:
    assert process.stdout is not None
    return process.stdout.read()


def closes(process: subprocess.Popen[bytes], got: Path) -> bytes:
    found = lines(process, READ)
    assert process.stdout is not None
    process.stdout.close()
    return found


def signalled(number: int) -> Callable[[subprocess.Popen[bytes], Path], bytes]:
    """While the taker reads nothing: the next record is in the pipe, and may yet be read or not."""

    def act(process: subprocess.Popen[bytes], got: Path) -> bytes:
        found = lines(process, READ)
        process.send_signal(number)
        process.wait(SECONDS)
        return found

    return act


def waits(process: subprocess.Popen[bytes], got: Path) -> bytes:
    process.wait(SECONDS)
    return got.read_bytes() if got.exists() else b""


def child(script: str) -> tuple[str, ...]:
    """Reads with the shell's ``read``: an octet at a time, never more than its line."""
    return (
        "--",
        "sh",
        "-c",
        f'n=0; while [ $n -lt {READ} ] && read -r line; do echo "$line" >> $0; n=$((n+1)); done; {script}',
    )


ENDS = [
    End("limit", 0, "", reads_all, ("--max-messages", "2"), n_taken=2),
    End("limit-of-threads", 0, "", reads_all, ("--max-messages", "7", "--threads", "3"), partitions=4, n_taken=7),
    End("closed", 26, "the reader of the output closed it (4 were delivered", closes, n_taken=READ),
    End("sigterm", 0, "", signalled(signal.SIGTERM), n_taken=READ),
    End("sigint", 0, "", signalled(signal.SIGINT), n_taken=READ, flavours=("mezkcc",)),
    End("child-fails", 27, "sh ended with exit code 3", waits, command=child("exit 3"), n_taken=READ),
    End("child-is-killed", 27, "sh was ended by SIGKILL", waits, command=child("sleep 1; kill -9 $$"), n_taken=READ),
    End("child-is-content", 0, "sh closed its input", waits, command=child("exit 0"), n_taken=READ, flavours=("kc",)),
    End(
        "nothing-fits", 25, "/dev/full can't be written", reads_all, ("--consumption-file", "/dev/full"),
        n_taken=0, flavours=("ozkcc",),
    ),
    End("disk-full", 25, "can't be written", reads_all, ("--consumption-file", "{}/notes"), file_bytes=400),
    End("events-full", 25, "so rebalances can't be "
    "recorded", reads_all, ("--events-file", "/dev/full"), flavours=("ozkcc", "kc")),
    End("output-full", 25, "no record can be written to the output: No space "
    "left", waits, output="/dev/full", n_taken=0),
    End(
        "time-out", 0, "no record for 6 s", reads_all, ("-X", "consumer.timeout.ms=6000"),
        partitions=2, n_taken=2 * RECORDS, flavours=tuple(OLD),
    ),
]  # fmt: skip


@dataclass
class Stores:
    """The offsets of a group in ZooKeeper and Kafka."""

    lab: Lab
    zookeeper: KazooClient
    admin: AdminClient

    def in_zookeeper(self, group: str, topic: str, partitions: int) -> dict[int, int]:
        found = {}
        for number in range(partitions):
            try:
                found[number] = int(self.zookeeper.get(f"/consumers/{group}/offsets/{topic}/{number}")[0])
            except NoNodeError:
                continue
        return found

    def in_kafka(self, group: str) -> dict[int, int]:
        (asked,) = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
        return {each.partition: each.offset for each in asked.result().topic_partitions if each.offset >= 0}

    def members(self, group: str) -> list[str]:
        """Return the members of both coordinations."""
        try:
            registered = self.zookeeper.get_children(f"/consumers/{group}/ids")
        except NoNodeError:
            registered = []
        described = self.described(group)
        assert described.state != ConsumerGroupState.UNKNOWN
        return [*registered, *(member.client_id for member in described.members)]

    def described(self, group: str) -> ConsumerGroupDescription:
        return self.admin.describe_consumer_groups([group])[group].result()


@pytest.fixture(scope="module")
def stores(lab: Lab) -> Iterator[Stores]:
    client = KazooClient(lab.zookeeper_connect)
    client.start(15)
    yield Stores(lab, client, AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0}))
    client.stop()
    client.close()


def prepare(stores: Stores, flavour: str, name: str, partitions: int) -> str:
    """A topic with records, which is also the group's name; the toggle where the flavour says."""
    topic = f"ends-{flavour}-{name}"
    stores.lab.create_topic(topic, partitions)
    stores.lab.produce(topic, RECORDS * partitions)
    if flavour == "mezkcc-kafka":
        stores.zookeeper.create(f"/consumers/{topic}/migration/mode", b"kafka", makepath=True)
    return topic


@pytest.mark.parametrize("flavour", FLAVOURS if IS_SOAK else ["mezkcc", "kc"])
def test_every_end_commits_what_was_taken_and_leaves(
    stores: Stores, tmp_path: Path, flavour: str, record_property: Record
) -> None:
    profile = tmp_path / "offramp.toml"
    profile.write_text(stores.lab.profile_toml())
    ends = [end for end in ENDS if flavour in end.flavours or (IS_SOAK and end.name != "time-out")]
    report(record_property, f"{flavour}: {len(ends)} ends")
    # All at once: they wait far more than they work.
    running = [(end, start(stores, profile, flavour, end, tmp_path)) for end in ends]
    wrong = []
    for end, (process, topic, got) in running:
        taken = account(end.act(process, got))
        said = process.communicate(timeout=SECONDS)[1].decode()
        wrong += [f"{flavour} {end.name}: {each}" for each in judge(stores, flavour, end, process, topic, taken, said)]
    assert not wrong, "\n".join(wrong)


def start(
    stores: Stores, profile: Path, flavour: str, end: End, folder: Path
) -> tuple[subprocess.Popen[bytes], str, Path]:
    topic = prepare(stores, flavour, end.name, end.partitions)
    got = folder / f"{end.name}.got"
    options = ["--flavour", flavour.partition("-")[0], "-g", topic, "-t", topic, "--from-beginning", "--json"]
    more = [each.format(folder) for each in (*end.options, *end.settings)]
    command = [*end.command, str(got)] if end.command else []
    limit = end.file_bytes
    process = subprocess.Popen(
        [*COMMAND, "--profile-file", str(profile), *options, *more, *command],
        stdin=subprocess.DEVNULL,
        stdout=open(end.output, "wb") if end.output else subprocess.PIPE,  # noqa: SIM115
        stderr=subprocess.PIPE,
        bufsize=0,
        preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None,
    )
    return process, topic, got


def account(read: bytes) -> dict[int, set[int]]:
    """Partition → offsets that the taker read."""
    found: dict[int, set[int]] = defaultdict(set)
    for line in read.splitlines():
        record = json.loads(line)
        found[record["partition"]].add(record["offset"])
    return found


def judge(
    stores: Stores,
    flavour: str,
    end: End,
    process: subprocess.Popen[bytes],
    topic: str,
    taken: Mapping[int, set[int]],
    said: str,
) -> Iterator[str]:
    if process.returncode != end.code:
        yield f"exit code {process.returncode}, not {end.code}: {said}"
    if end.words not in said or "Traceback" in said:
        yield f"it says {said!r}"
    if members := stores.members(topic):
        yield f"{members} are still members"
    kept = {"ZooKeeper": stores.in_zookeeper(topic, topic, end.partitions)} if flavour != "kc" else {}
    kept |= {"Kafka": stores.in_kafka(topic)} if flavour != "ozkcc" else {}
    for store, offsets in kept.items():
        for number, offset in offsets.items():
            if missing := set(range(offset)) - taken.get(number, set()):
                yield f"{store} has {offset} for partition {number}, but {sorted(missing)} were never taken"
        if end.n_taken is not None and sum(offsets.values()) != end.n_taken:
            yield f"{store} has {offsets}, but {end.n_taken} were taken: {dict(taken)}: {said}"


@pytest.mark.parametrize(
    ("assignor", "waits_for"), [("range", "wait-unassign-call"), ("cooperative-sticky", "wait-assign-call")]
)
def test_a_kafka_consumer_that_ends_before_it_answers_a_rebalance_commits(
    stores: Stores, tmp_path: Path, assignor: str, waits_for: str
) -> None:
    """librdkafka hears of the rebalance while the taker keeps the consumer waiting; no poll comes before the end."""
    topic = prepare(stores, "kc", f"before-it-answers-{assignor}", 1)
    profile, log = tmp_path / "offramp.toml", tmp_path / "log"
    profile.write_text(stores.lab.profile_toml())
    settings = {
        "partition.assignment.strategy": assignor,
        "heartbeat.interval.ms": 100,
        "debug": "cgrp",
        "log_level": 7,
    }
    options = ["--flavour", "kc", "-g", topic, "-t", topic, "--from-beginning", "--json", "--max-messages", "2"]
    options += [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
    command = [*COMMAND, "--profile-file", str(profile), *options]
    with log.open("wb") as said, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, bufsize=0) as process:
        taken = lines(process, 1)
        begin = log.stat().st_size
        other = stores.lab.start_new_consumer(topic, topic, assignor=assignor, wait=False)
        wait_until(lambda: waits_for in log.read_text()[begin:], "librdkafka hears of the rebalance", SECONDS)
        taken += reads_all(process, tmp_path)
    assert process.returncode == 0, log.read_text()
    assert account(taken) == {0: {0, 1}}
    try:
        wait_until(lambda: len(other.records()) >= RECORDS - 2, "the other one has the rest", SECONDS)
    finally:
        other.stop()
    assert [record["offset"] for record in other.records()] == list(range(2, RECORDS)), log.read_text()


class BadRecordError(Exception):
    """The error that an application raises."""


def zookeeper_config(lab: Lab, flavour: str, group: str) -> dict[str, str]:
    config = {"group.id": group, "zookeeper.connect": lab.zookeeper_connect, "auto.offset.reset": "smallest"}
    if flavour != "ozkcc":
        config["offsets.storage"] = "kafka"
        config["coordination.migration.enabled"] = "true"
        config["coordination.migration.bootstrap.servers"] = lab.bootstrap_servers
    return config


def fails_at_the_fifth(consumer: ZookeeperConsumer, stream: Stream) -> None:
    for number, _ in enumerate(stream):
        if number == READ:
            raise BadRecordError


def breaks_at_the_fifth(consumer: ZookeeperConsumer, stream: Stream) -> None:
    """Raise at the fifth record: whether it was dealt with is unknown."""
    for number, _ in enumerate(stream):
        if number == READ:
            break


def closes_its_generator(consumer: ZookeeperConsumer, stream: Stream) -> None:
    records = iter(stream)
    for _ in range(READ + 1):
        next(records)
    records.close()  # type: ignore[attr-defined]


def gives_the_fifth_back(consumer: ZookeeperConsumer, stream: Stream) -> None:
    for number, _ in enumerate(stream):
        if number == READ:
            stream.give_back()
            break


def says_that_it_has_the_fourth(consumer: ZookeeperConsumer, stream: Stream) -> None:
    for _ in range(READ):
        next(stream)
    stream.taken()


def commits_after_the_fourth(consumer: ZookeeperConsumer, stream: Stream) -> None:
    for _ in range(READ):
        next(stream)
    consumer.commit_offsets()


LOOPS = [
    fails_at_the_fifth,
    breaks_at_the_fifth,
    closes_its_generator,
    gives_the_fifth_back,
    says_that_it_has_the_fourth,
    commits_after_the_fourth,
]


@pytest.mark.parametrize("flavour", first(OLD))
def test_a_loop_that_is_left_commits_what_was_dealt_with(stores: Stores, flavour: str) -> None:
    for loop in LOOPS:
        topic = prepare(stores, flavour, loop.__name__, 1)
        with suppress(BadRecordError), ZookeeperConsumer(zookeeper_config(stores.lab, flavour, topic)) as consumer:
            (stream,) = consumer.create_message_streams({topic: 1})[topic]
            loop(consumer, stream)
        assert stores.in_zookeeper(topic, topic, 1) == {0: READ}, loop.__name__
        assert flavour == "ozkcc" or stores.in_kafka(topic) == {0: READ}, loop.__name__


@pytest.mark.parametrize("joins", first([True, False]), ids=lambda joins: "joins-late" if joins else "never-joins")
def test_a_member_that_leaves_while_it_joins_commits_to_kafka_if_it_gets_in(
    stores: Stores, caplog: pytest.LogCaptureFixture, joins: bool
) -> None:
    """Another member delays the join. ZooKeeper gets the last offset at once; Kafka gets it too, or a warning shows."""
    topic = prepare(stores, "mezkcc", f"while-it-joins-{joins}", 1)
    other = Consumer(
        {
            "bootstrap.servers": stores.lab.bootstrap_servers,
            "group.id": topic,
            "client.id": f"{topic}_other-{'1' * 13}-0a0b0c0d",
            "partition.assignment.strategy": "range",
            "heartbeat.interval.ms": 100,
            "client.rack": EMBEDDED_RACK,
            "enable.auto.commit": False,
        }
    )
    other.subscribe([topic])
    wait_until(lambda: bool(other.poll(0.1) or other.assignment()), "the other one is in the Kafka group", SECONDS)
    config = zookeeper_config(stores.lab, "mezkcc", topic)
    consumer = ZookeeperConsumer(config | {"auto.commit.interval.ms": "600000"})
    (stream,) = consumer.create_message_streams({topic: 1})[topic]
    for _ in range(READ):
        next(stream)
    stream.taken()
    wait_until(lambda: stores.described(topic).state == ConsumerGroupState.PREPARING_REBALANCING, "it joins", SECONDS)
    leaving = threading.Thread(target=consumer.shutdown)
    leaving.start()
    wait_until(lambda: stores.in_zookeeper(topic, topic, 1) == {0: READ}, "ZooKeeper has the last commit", SECONDS)
    while joins and leaving.is_alive():
        other.poll(0.1)
    leaving.join()
    other.close()
    assert stores.in_kafka(topic) == ({0: READ} if joins else {})
    assert ("stopped without a commit to kafka" in caplog.text) is not joins


@pytest.mark.parametrize(("batch", "committed"), [(1, READ), (3, 3)])
def test_an_exception_beside_a_kafka_consumer_commits_what_was_dealt_with(
    stores: Stores, batch: int, committed: int
) -> None:
    """A batch that was not dealt with to its end counts for nothing."""
    topic = prepare(stores, "kc", f"library-{batch}", 1)
    config = {"bootstrap.servers": stores.lab.bootstrap_servers, "group.id": topic, "auto.offset.reset": "earliest"}
    dealt_with = 0
    with suppress(BadRecordError), KafkaConsumer(config) as consumer:
        consumer.subscribe([topic])
        while True:
            for _ in consumer.consume(batch, SECONDS):
                if dealt_with == READ:
                    raise BadRecordError
                dealt_with += 1
    assert stores.in_kafka(topic) == {0: committed}


def test_an_orderly_end_of_a_kafka_consumer_commits_all(stores: Stores) -> None:
    topic = prepare(stores, "kc", "orderly", 1)
    config = {"bootstrap.servers": stores.lab.bootstrap_servers, "group.id": topic, "auto.offset.reset": "earliest"}
    with KafkaConsumer(config) as consumer:
        consumer.subscribe([topic])
        assert len(consumer.consume(READ, SECONDS)) == READ
    assert stores.in_kafka(topic) == {0: READ}
