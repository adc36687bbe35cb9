"""A log that is read by columns says the same as one that is read record by record."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings, strategies as st
from polars.testing import assert_frame_equal

from kit.kraft.metadata_log import bulk, read_log
from kit.kraft.metadata_log.bulk import NeedsRecordReader
from kit.kraft.metadata_log.log import MetadataLog
from kit.kraft.metadata_log.replay import Step
from tests import metadata_records as written
from tests.soak import IS_SOAK

NO_OP = written.value("NoOp")
BEGIN, END, ABORT = (written.value(f"{each}Transaction") for each in ("Begin", "End", "Abort"))


class RandomRecords:
    """Records that fit what is before them; with ``chaos`` some that don't."""

    def __init__(self, seed: int, chaos: float) -> None:
        self.random, self.chaos = random.Random(seed), chaos
        self.topics: dict[int, list[int]] = {}
        self.n_topics = 0

    def values(self, count: int) -> Iterator[bytes]:
        while count > 0:
            some = self.some()
            count -= len(some)
            yield from some

    def some(self) -> list[bytes]:
        chance, known = self.random, [each for each, partitions in self.topics.items() if partitions]
        if chance.random() < self.chaos:
            return [chance.choice([self.stray, self.torn])()]
        kind = chance.choices(["topic", "change", "remove", "other"], [6, 12, 1, 2])[0]
        if kind == "topic" or not known:
            return self.topic()
        number = chance.choice(known)
        if kind == "change":
            return [self.change(number, chance.choice(self.topics[number])) for _ in range(chance.randint(1, 6))]
        if kind == "remove":
            del self.topics[number]
            return [written.value("RemoveTopic", {"topicId": written.uuid(number)})]
        return [chance.choice([NO_OP, written.config(2, "t", "k", "v"), written.broker(1), written.credential("a")])]

    def topic(self) -> list[bytes]:
        self.n_topics += 1
        number = self.n_topics
        self.topics[number] = list(range(self.random.choice([0, 1, 3, 40, 90])))
        version = self.random.randint(0, 2)
        found = [written.topic(f"t{number % 7}-{number}", number)]
        found += [self.partition(number, each, version) for each in self.topics[number]]
        is_one = self.random.random() < 0.2
        return [BEGIN, *found, END] if is_one else found

    def brokers(self, most: int = 4) -> list[int]:
        return [self.random.choice([0, 1, 2, 3, 70_000, 2**31 - 1]) for _ in range(self.random.randint(0, most))]

    def partition(self, topic: int, number: int, version: int) -> bytes:
        replicas = self.brokers() if self.random.random() < 0.2 else [1, 2, 3]
        body = {"partitionId": number, "topicId": written.uuid(topic), "replicas": replicas, "isr": replicas[::-1]}
        body |= {
            "leader": self.random.choice([-1, 1, 2]),
            "leaderEpoch": 3,
            "partitionEpoch": self.random.randint(0, 9),
        }
        if self.random.random() < 0.1:
            body |= {"addingReplicas": self.brokers(2), "removingReplicas": self.brokers(2), "leaderRecoveryState": 1}
        if version > 0:
            body["directories"] = [written.uuid(each) for each in range(len(replicas))]
        if version > 1 and self.random.random() < 0.2:
            body["eligibleLeaderReplicas"] = self.brokers(2)
        return written.value("Partition", body, version)

    def change(self, topic: int, number: int) -> bytes:
        fields = {
            "isr": self.brokers(3),
            "leader": self.random.choice([-2, -1, 1, 2]),
            "replicas": self.brokers(3),
            "removingReplicas": self.brokers(2),
            "addingReplicas": self.random.choice([None, self.brokers(2)]),
            "leaderRecoveryState": self.random.choice([-1, 0, 1]),
            "directories": [written.uuid(7)],
            "lastKnownElr": self.brokers(2),
        }
        named = self.random.sample(sorted(fields), self.random.randint(0, 3))
        return written.change(topic, number, **{each: fields[each] for each in named})

    def stray(self) -> bytes:
        """Return records of a topic that is not there, or of earlier values."""
        number = self.random.randint(1, self.n_topics + 2)
        twice = self.partition(number, 0, 2), self.change(number, 1_000), written.topic("again", number)
        return self.random.choice([*twice, written.value("RemoveTopic", {"topicId": written.uuid(number)})])

    def torn(self) -> bytes:
        whole = self.partition(1, 0, 2)
        newer = written.framed(3, 9, b"later")
        return self.random.choice(
            [whole[:-3], whole + b"x", b"\2" + whole[1:], newer, BEGIN, END, ABORT, written.value("ClearElr")]
        )

    def log(self, folder: Path) -> None:
        """Some segments, often behind a checkpoint; seldom with a gap or a batch that is compressed."""
        segments, at = {}, self.random.choice([0, 0, 7])
        if at:
            checkpoint = written.checkpoint(*self.values(self.random.choice([1, 150])))
            (folder / f"{at:020}-{1:010}.checkpoint").write_bytes(checkpoint)
        for _ in range(self.random.randint(1, 3)):
            values = list(self.values(self.random.choice([1, 30, 300])))
            base, octets = at, b""
            while values:
                some, values = values[: (cut := self.random.choice([1, 9, 200]))], values[cut:]
                codec = "gzip" if self.random.random() < self.chaos else "none"
                octets += written.batch(at, some, 2, codec=codec)
                at += len(some) + (self.random.random() < self.chaos / 10)
            segments[base] = octets
        for base, octets in segments.items():
            (folder / f"{base:020}.log").write_bytes(octets)


def refuse(*_: object) -> None:
    raise NeedsRecordReader


def plainly(folder: Path) -> MetadataLog:
    with patch.object(Step, "_by_columns", refuse):
        return read_log(folder)


def assert_same(one: MetadataLog, other: MetadataLog) -> None:
    for name in ("files", "partitions", "items", "nodes"):
        assert_frame_equal(getattr(one, name), getattr(other, name), check_row_order=name != "partitions")
    assert str(one) == str(other)
    assert one.image.topics == other.image.topics
    assert vars(one.image) == vars(other.image)
    assert_frame_equal(one.partitions, other.partitions)


@settings(max_examples=60 if IS_SOAK else 20, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([0.0, 0.0, 0.01, 0.05]),
    st.sampled_from([1, 16]),
    st.sampled_from([100, 5_000, 60_000, 2**23]),
)
def test_any_log(seed, chaos, few, part_bytes):
    with (
        tempfile.TemporaryDirectory() as name,
        patch.object(bulk, "_FEW", few),
        patch.object(bulk, "_PART_BYTES", part_bytes),
    ):
        RandomRecords(seed, chaos).log(Path(name))
        log = read_log(name)
        assert chaos or log.image.folded is not None
        assert_same(log, plainly(Path(name)))


def test_a_topic_s_partitions_are_there_when_asked_for(tmp_path):
    values = [
        written.topic("a", 1),
        *(written.partition(1, each) for each in range(100)),
        written.change(1, 5, leader=2),
    ]
    written.write_log(tmp_path, {0: written.segment(*values, per_batch=50)})
    log = read_log(tmp_path)
    assert (log.image.folded is not None, log.image.n_partitions, len(log.image.heads[written.uuid(1)].partitions)) == (
        True,
        100,
        0,
    )
    assert log.image.topics[written.uuid(1)].partitions[5].leader == 2
    assert (log.image.folded, log.image.n_partitions) == (None, 100)


@pytest.mark.parametrize("part_bytes", [1, 1_000, 20_000, 2**23])
@pytest.mark.parametrize("n_padding", [0, 10, 61, 50_000])
def test_a_file_is_read_in_parts(tmp_path, part_bytes, n_padding):
    """A batch of it may be longer, and behind it may be room that no one wrote to."""
    parts = [written.partition(1, each) for each in range(600)]
    octets = written.segment(written.topic("a", 1), *parts, written.change(1, 5, leader=2), per_batch=200)
    written.write_log(tmp_path, {0: octets + bytes(n_padding)})
    with patch.object(bulk, "_PART_BYTES", part_bytes):
        log = read_log(tmp_path)
    assert (log.image.folded is None) == (n_padding == 10)
    assert log.files.select("n_records", "first_offset", "last_offset").row(0) == (602 + (n_padding == 10), 0, 601)
    assert_same(log, plainly(tmp_path))


def test_an_epoch_beyond_its_32_bits_is_read_plainly(tmp_path):
    values = [written.topic("a", 1), written.partition(1, 0, partitionEpoch=2**31 - 1), written.change(1, 0, leader=2)]
    written.write_log(tmp_path, {0: written.segment(*values)})
    log = read_log(tmp_path)
    assert log.partitions["partition_epoch"].to_list() == [2**31]
    assert_same(log, plainly(tmp_path))


@pytest.mark.parametrize("bits", [0x01, 0xFF])
def test_a_log_with_damage_is_read_plainly(tmp_path, bits):
    octets = bytearray(written.segment(written.topic("a", 1), *(written.partition(1, each) for each in range(100))))
    octets[len(octets) // 2] ^= bits
    written.write_log(tmp_path, {0: bytes(octets)})
    assert read_log(tmp_path).image.folded is None
    assert_same(read_log(tmp_path), plainly(tmp_path))


@settings(max_examples=40 if IS_SOAK else 15, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.1]), st.sampled_from([1, 100]))
def test_batches_that_are_built_alike_or_nearly(seed, share, at_once):
    """The batches have as many bytes and records each; in some the same records are in another order."""
    chance, values, octets = random.Random(seed), list[bytes](), b""
    for number in range(1, 31):
        parts = [written.partition(number, at, [1, 2, 3][: 1 + at % 3]) for at in range(70)]
        if chance.random() < share:
            chance.shuffle(parts)
        some = [written.topic(f"topic-{number:02}", number), *parts]
        octets += written.batch(len(values), some, deltas_ms=[0, chance.randint(-5, 5)])
        values += some
    with tempfile.TemporaryDirectory() as name, patch.object(bulk, "_AT_ONCE", at_once):
        written.write_log(Path(name), {0: octets})
        log = read_log(name)
        assert log.image.folded is not None
        assert_same(log, plainly(Path(name)))
