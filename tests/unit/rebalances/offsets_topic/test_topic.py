"""Records of ``__consumer_offsets`` decoded: every version, cut, unknown, tombstones; what the account says of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from pyspark import cloudpickle

from kit.errors import InputError, PartialRead
from kit.profile import load_profile
from kit.rebalances.offsets_topic import OffsetsTopic, read_offsets_topic, tasks, verify_offsets_topic
from kit.rebalances.offsets_topic.commits import commit_rows
from kit.rebalances.offsets_topic.epochs import epoch_rows
from kit.rebalances.offsets_topic.fetching import PartitionRange, Records, reader_settings
from kit.rebalances.offsets_topic.generations import generation_rows
from kit.rebalances.offsets_topic.keys import UNREADABLE, parse_keys
from kit.rebalances.offsets_topic.partition_summary import Tally, unread
from kit.rebalances.offsets_topic.selection import Selection
from kit.tables import schema as tables
from tests import coordinator_records as written

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TOPIC_ID = {0: bytes(range(16))}
CLICKS, ORDERS, GONE = bytes(range(16)), bytes(range(16, 32)), bytes.fromhex("ab99643fbf7e4f0a9d2d1b7a3c5e7f90")
NAMES = {CLICKS: "clicks", ORDERS: "orders"}


def records(*pairs: tuple[bytes | None, bytes | None], written_ms: int = 1000) -> Records:
    """Keys and values at offsets 0, 1 … of partition 3."""
    return Records(
        np.full(len(pairs), 3, np.int64),
        np.arange(len(pairs), dtype=np.int64),
        np.full(len(pairs), written_ms, np.int64),
        pa.array([key for key, _ in pairs], pa.binary()),
        pa.array([value for _, value in pairs], pa.binary()),
    )


def commits(*pairs: tuple[bytes | None, bytes | None]) -> list[dict]:
    batch = records(*pairs)
    found = commit_rows(batch, parse_keys(batch.keys))
    found.validate(full=True)
    assert found.schema == tables.OFFSET_COMMITS.schema
    return found.to_pylist()


def generations(*pairs: tuple[bytes | None, bytes | None]) -> list[dict]:
    batch = records(*pairs)
    return generation_rows(batch, parse_keys(batch.keys)).to_pylist()


def epochs(*pairs: tuple[bytes | None, bytes | None]) -> list[dict]:
    batch = records(*pairs)
    return epoch_rows(batch, parse_keys(batch.keys), NAMES).to_pylist()


def of_value(value: bytes | None) -> dict:
    (row,) = commits((written.commit_key("g", "t", 0), value))
    return row


def of_group(value: bytes | None) -> list[dict]:
    return generations((written.group_key("g"), value))


def ms(at: int) -> datetime:
    return EPOCH + timedelta(milliseconds=at)


@pytest.mark.parametrize("key_version", [0, 1])
@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_version_of_an_offset_commit(key_version, version):
    key = written.commit_key("group-ü", "some.topic", 7, key_version)
    value = written.commit_value(version, 2**40, "mé", 1_700_000_000_123, 5, 1_800_000_000_000)
    (row,) = commits((key, value))
    assert row == {
        "partition": 3,
        "offset": 0,
        "written_at": ms(1000),
        "group_id": "group-ü",
        "topic": "some.topic",
        "topic_partition": 7,
        "committed_offset": 2**40,
        "leader_epoch": 5 if version >= 3 else None,
        "metadata": "mé",
        "committed_at": ms(1_700_000_000_123),
        "expires_at": ms(1_800_000_000_000) if version == 1 else None,
        "value_version": version,
        "is_tombstone": False,
        "error": None,
    }


def test_the_bytes_of_a_real_broker_4_1():
    row = of_value(bytes.fromhex("0004000000000021d4a8ffffffff010000019964f2d83600"))
    assert (row["committed_offset"], row["leader_epoch"], row["metadata"]) == (2217128, None, None)
    assert row["committed_at"] == ms(1758335260726)


@pytest.mark.parametrize("length", [0, 1, 126, 127, 128, 4096, 20_000])
def test_long_metadata_and_a_topic_id(length):
    value = written.commit_value(4, 9, "x" * length, 5000, fields=TOPIC_ID | {1: b"", 300: b"y" * 200})
    row = of_value(value)
    assert (row["metadata"], row["committed_at"], row["error"]) == ("x" * length or None, ms(5000), None)


def test_a_tombstone_has_nothing_but_its_key():
    row = of_value(None)
    assert (row["is_tombstone"], row["group_id"], row["topic_partition"]) == (True, "g", 0)
    unknown = ("committed_offset", "metadata", "committed_at", "value_version", "leader_epoch", "error")
    assert [row[name] for name in unknown] == [None] * len(unknown)


def test_unknown_times_are_null():
    row = of_value(written.commit_value(1, 9, "", -1, expires_ms=-1))
    assert (row["committed_at"], row["expires_at"]) == (None, None)
    assert of_value(written.commit_value(3, 9, "", 2**62))["committed_at"] is None


@pytest.mark.parametrize("version", [-1, 5, 12])
def test_an_unknown_version_of_a_commit_is_a_row_that_reports_it(version):
    value = version.to_bytes(2, "big", signed=True) + bytes(40)
    row = of_value(value)
    assert row["committed_offset"] is None
    assert row["is_tombstone"] is False
    assert "ends too early" in row["error"] if version == -1 else f"value of version {version}," in row["error"]


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_a_value_cut_anywhere_is_reported(version):
    value = written.commit_value(version, 9, "some metadata", 5, 1, 6, TOPIC_ID)
    for length in range(len(value)):
        row = of_value(value[:length])
        assert (row["error"], row["committed_offset"]) == ("the value ends too early", None), length


def test_metadata_that_is_no_text_costs_only_itself():
    value = written.commit_value(3, 9, "ab").replace(b"ab", b"\xff\xfe")
    good = written.commit_value(3, 10, "ab")
    first, second = commits((written.commit_key("g", "t", 0), value), (written.commit_key("g", "t", 1), good))
    assert (first["metadata"], first["committed_offset"]) == (None, 9)
    assert first["error"] == "the commit's metadata is no UTF-8"
    assert (second["metadata"], second["error"]) == ("ab", None)


def test_keys_that_cant_be_decoded():
    whole = written.commit_key("group", "topic", 1)
    cut = [whole[:length] for length in range(len(whole))]
    odd = [b"", None, b"\xff\xff", whole.replace(b"group", b"gr\xffup"), b"\0\1\xff\xff" + whole[4:]]
    odd += [written.group_key("group")[:-1], b"\0\2\0\1\xff", written.group_key("group", 3)[:-1], b"\0\6\0\1\xff"]
    odd += [written.member_key(8, "group", "member")[:-1], written.member_key(5, "group", "m")[:-1] + b"\xff"]
    value = written.commit_value(3, 1)
    keys = parse_keys(records(*((key, value) for key in [*cut, *odd, whole])).keys)
    assert keys.kind.tolist() == [UNREADABLE] * (len(cut) + len(odd)) + [1]
    assert commits(*((key, value) for key in [*odd, whole]))[0]["group_id"] == "group"


MEMBERS = (
    written.Member("m-1", written.subscription(["b", "a"]), written.assignment({"a": [1, 0], "b": [2]}), "c1", "/h1"),
    written.Member("m-2", written.subscription(["a"], 1), written.assignment({}, 1), "c2", "h2", "static", 7, 8),
)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_version_of_a_generation(version):
    first, second = of_group(written.group_value(version, 17, MEMBERS, leader="m-2", state_ms=4000))
    for row in (first, second):
        assert (row["generation"], row["protocol_type"], row["protocol"]) == (17, "consumer", "range")
        assert (row["leader_id"], row["n_members"], row["is_tombstone"], row["error"]) == ("m-2", 2, False, None)
        assert row["state_at"] == (ms(4000) if version >= 2 else None)
    assert (first["member_id"], first["client_id"], first["client_host"]) == ("m-1", "c1", "h1")
    assert (first["subscribed"], first["assigned"]) == (["a", "b"], ["a-0", "a-1", "b-2"])
    assert (second["subscribed"], second["assigned"]) == (["a"], [])
    assert second["group_instance_id"] == ("static" if version >= 3 else None)
    assert (second["rebalance_timeout_ms"], second["session_timeout_ms"]) == (7 if version >= 1 else None, 8)


def test_a_group_without_members_and_one_that_is_gone():
    (empty,) = of_group(written.group_value(3, 4, protocol=None))
    assert (empty["generation"], empty["n_members"], empty["member_id"], empty["protocol"]) == (4, 0, None, None)
    (gone,) = of_group(None)
    assert (gone["is_tombstone"], gone["group_id"], gone["generation"], gone["n_members"]) == (True, "g", None, None)


def test_members_of_another_protocol_have_unknown_partitions():
    member = written.Member("connect-1", b"\1\2\3", b"\4")
    (row,) = of_group(written.group_value(3, 1, [member], protocol_type="connect"))
    assert (row["member_id"], row["subscribed"], row["assigned"], row["error"]) == ("connect-1", None, None, None)


def test_a_member_whose_assignment_is_odd():
    bad = written.Member("bad", written.subscription(["a"]), b"\0\0\0\0\0\5\1")
    odd, good = of_group(written.group_value(3, 1, [bad, MEMBERS[0]]))
    assert "can't be decoded" in odd["error"]
    assert good["error"] is None


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_a_generation_cut_anywhere_is_one_row_that_reports_it(version):
    value = written.group_value(version, 17, MEMBERS, leader="m-2")
    for length in range(len(value)):
        (row,) = of_group(value[:length])
        assert row["error"] == "the value ends too early", length
        assert (row["member_id"], row["generation"]) == (None, None)


def test_an_unknown_version_of_a_generation():
    (row,) = of_group(b"\0\5" + bytes(30))
    assert row["error"] == "the record of a group has a value of version 5, which this offramp can't read"


STATES = {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS", 9: "9 unknown"}
CURRENT = written.current_value(7, 6, 1, {CLICKS: [10, 2], ORDERS: [0]}, {CLICKS: [3]}, {0: b"\5"})
OF_MEMBERS = {
    5: written.member_value("c", "/h", "static", ["clicks", "orders"], "uniform", {0: b"as a classic one"}),
    7: written.target_value({ORDERS: [1, 0], CLICKS: []}),
    8: CURRENT,
}
OF_GROUPS = {3: written.epoch_value(7, {0: bytes(8)}), 6: written.epoch_value(6)}
ALL_KINDS = [(written.group_key("g", kind), value) for kind, value in OF_GROUPS.items()]
ALL_KINDS += [(written.member_key(kind, "g", "m"), value) for kind, value in OF_MEMBERS.items()]


def told(row: dict) -> dict:
    """Return what is not null, beside the place."""
    return {name: value for name, value in row.items() if value is not None and name not in ("offset", "written_at")}


def test_every_kind_of_record_of_a_group_of_the_new_protocol():
    common = {"partition": 3, "group_id": "g", "is_tombstone": False}
    assert [told(row) for row in epochs(*ALL_KINDS)] == [
        common | {"kind": "group_epoch", "epoch": 7},
        common | {"kind": "target_epoch", "epoch": 6},
        common
        | {"kind": "member", "member_id": "m", "client_id": "c", "client_host": "h"}
        | {"group_instance_id": "static", "assignor": "uniform"},
        common | {"kind": "target_assignment", "member_id": "m", "assigned": ["orders-0", "orders-1"]},
        common
        | {"kind": "current_assignment", "member_id": "m", "epoch": 7, "previous_epoch": 6}
        | {
            "state": "UNREVOKED_PARTITIONS",
            "assigned": ["clicks-10", "clicks-2", "orders-0"],
            "revoking": ["clicks-3"],
        },
    ]


def test_a_member_that_reports_little():
    (row,) = epochs((written.member_key(5, "g", "m"), written.member_value(topics=())))
    assert (row["client_host"], row["group_instance_id"], row["assignor"]) == ("127.0.0.1", None, None)


@pytest.mark.parametrize(("state", "name"), STATES.items())
def test_states_have_kafkas_names(state, name):
    (row,) = epochs((written.member_key(8, "g", "m"), written.current_value(1, 0, state, {}, {})))
    assert (row["state"], row["assigned"], row["revoking"]) == (name, [], [])


def test_a_topic_that_is_gone_is_reported_by_its_id():
    (row,) = epochs((written.member_key(7, "g", "m"), written.target_value({GONE: [0], CLICKS: [1]})))
    assert row["assigned"] == ["clicks-1", "q5lkP79-TwqdLRt6PF5_kA-0"] == sorted(row["assigned"])


def test_tombstones_of_the_new_protocol_have_nothing_but_their_keys():
    rows = epochs(*((key, None) for key, _ in ALL_KINDS))
    assert all(row["is_tombstone"] and row["error"] is None and row["epoch"] is None for row in rows)
    assert [row["member_id"] for row in rows] == [None, None, "m", "m", "m"]


@pytest.mark.parametrize(("key", "value"), ALL_KINDS)
def test_an_epoch_cut_anywhere_is_a_row_that_reports_it(key, value):
    for length in range(len(value)):
        (row,) = epochs((key, value[:length]))
        assert row["error"] == "the value ends too early", length
        assert (row["epoch"], row["assigned"], row["is_tombstone"]) == (None, None, False)


@pytest.mark.parametrize(("key", "value"), ALL_KINDS)
def test_an_unknown_version_of_an_epoch(key, value):
    (row,) = epochs((key, b"\0\1" + value[2:]))
    assert row["error"].endswith(" has a value of version 1, which this offramp can't read")
    assert f"{key[1]} ConsumerGroup" in row["error"]


names = st.text(st.characters(codec="utf-8"), max_size=20)
ints64 = st.integers(-(2**63), 2**63 - 1)
commit = st.tuples(
    names,
    names,
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 4),
    ints64,
    names,
    st.integers(-1, 10**13),
    st.booleans(),
)


@given(st.lists(commit, max_size=40))
@settings(max_examples=60, deadline=None)
def test_random_commits_come_back(wanted):
    pairs = []
    for group, topic, partition, version, offset, metadata, at_ms, is_tombstone in wanted:
        value = written.commit_value(version, offset, metadata, at_ms, fields=TOPIC_ID if offset % 2 else None)
        pairs.append((written.commit_key(group, topic, partition), None if is_tombstone else value))
    found = commits(*pairs)
    assert len(found) == len(wanted)
    for row, (group, topic, partition, version, offset, metadata, at_ms, is_tombstone) in zip(found, wanted):
        assert (row["group_id"], row["topic"], row["topic_partition"]) == (group, topic, partition)
        assert row["error"] is None
        if is_tombstone:
            assert row["is_tombstone"]
            continue
        assert (row["value_version"], row["committed_offset"], row["metadata"]) == (version, offset, metadata or None)
        assert row["committed_at"] == (None if at_ms < 0 else ms(at_ms))


keys_like = st.one_of(
    st.none(),
    st.binary(max_size=30),
    st.builds(lambda kind, rest: b"\0" + bytes([kind]) + rest, st.integers(0, 26), st.binary(max_size=30)),
    st.just(written.commit_key("g", "t", 0)),
    st.just(written.group_key("g")),
    st.sampled_from([key for key, _ in ALL_KINDS]),
)
values_like = st.one_of(
    st.none(),
    st.binary(max_size=60),
    st.builds(lambda kind, rest: b"\0" + bytes([kind]) + rest, st.integers(0, 6), st.binary(max_size=80)),
    st.sampled_from([value for _, value in ALL_KINDS]),
    st.builds(
        lambda at, octet: bytes(octet if at == n else each for n, each in enumerate(WHOLE)),
        st.integers(0, 120),
        st.integers(0, 255),
    ),
)
WHOLE = written.group_value(3, 17, MEMBERS, leader="m-2")


@given(st.lists(st.tuples(keys_like, values_like), max_size=30))
@settings(max_examples=100, deadline=None)
def test_no_bytes_fail_and_every_record_is_counted(pairs):
    batch = records(*pairs)
    row = counted(batch)
    assert row.n_records == len(pairs)
    counts = (row.n_commits, row.n_generations, row.n_epochs, row.n_unsupported, row.n_filtered, row.n_unreadable)
    assert row.n_records == sum(counts)


def counted(batch: Records, selection: Selection = Selection()):  # noqa: B008
    tally = Tally()
    keys = parse_keys(batch.keys)
    asked = selection.of(batch, keys)
    rows = commit_rows(batch, asked), generation_rows(batch, asked), epoch_rows(batch, asked, {})
    tally.add(batch, keys, asked, *rows)
    return tally.row(PartitionRange(3, 0, len(batch)), len(batch))


def mixed() -> Records:
    value, group = written.commit_value(3, 1), written.group_value(3, 1, MEMBERS)
    return records(
        (written.commit_key("a", "t", 0), value),
        (written.commit_key("a", "t", 0), None),
        (written.commit_key("b", "t", 0), b"\0\x09"),
        (written.group_key("a"), group),
        (written.group_key("b"), None),
        (written.group_key("b"), group[:-1]),
        (written.group_key("a", 4), b"\0\0"),
        (written.group_key("a", 4), None),
        (written.group_key("a", 99), b"\0\0"),
        (written.group_key("a", 3), b"\0\1"),
        (written.member_key(8, "b", "m"), CURRENT),
        (written.member_key(5, "b", "m"), None),
        (b"\0", value),
    )


def test_the_account_names_what_was_not_understood():
    row = counted(mixed())
    assert (row.n_records, row.n_commits, row.n_generations, row.n_tombstones) == (13, 3, 3, 3)
    assert (row.n_epochs, row.n_errors, row.n_unsupported, row.n_filtered, row.n_unreadable) == (3, 3, 3, 0, 1)
    assert row.others == ("4 ConsumerGroupPartitionMetadata: 2", "99 unknown: 1")
    assert set(row.problems) == {
        "the record of a commit has a value of version 9, which this offramp can't read: 1",
        "the value ends too early: 1",
        "the key can't be decoded: 1",
        "a record of type 3 ConsumerGroupMetadata has a value of version 1, which this offramp can't read: 1",
    }


@pytest.mark.parametrize(
    ("selection", "counts"),
    [
        (Selection("a"), (2, 1, 1)),
        (Selection("a|b", 1000, 1001), (3, 3, 3)),
        (Selection(None, 1001), (0, 0, 0)),
        (Selection(None, None, 1000), (0, 0, 0)),
        (Selection("."), (3, 3, 3)),
        (Selection("a."), (0, 0, 0)),
    ],
)
def test_only_the_groups_and_times_asked_for(selection, counts):
    row = counted(mixed(), selection)
    assert (row.n_commits, row.n_generations, row.n_epochs) == counts
    assert row.n_filtered == 9 - sum(counts)
    assert row.n_unsupported + row.n_unreadable == 4


def test_a_record_of_unknown_time_is_of_no_time():
    batch = records((written.commit_key("a", "t", 0), None), written_ms=-1)
    assert counted(batch, Selection(until_ms=10)).n_commits == 0
    assert commit_rows(batch, parse_keys(batch.keys)).to_pylist()[0]["written_at"] is None


def test_verifying_reports_what_was_not_read():
    good = tables.OFFSETS_PARTITIONS.from_rows([counted(records((written.commit_key("a", "t", 0), None)))])
    said = verify_offsets_topic(OffsetsTopic(None, None, None, pl.DataFrame(good)))
    assert said.startswith(
        "1 of 1 partition, 1 record: 1 offset commit, 0 group generations, 0 records of KIP-848 groups, "
        "1 tombstone among them"
    )
    rows = [counted(mixed()), unread(4, "no leader", PartitionRange(4, 0, 9))]
    with pytest.raises(PartialRead, match=r"1 of 2 partitions.*Partition 4: no leader\..*the key can't be decoded: 1"):
        verify_offsets_topic(OffsetsTopic(None, None, None, pl.DataFrame(tables.OFFSETS_PARTITIONS.from_rows(rows))))


def test_no_secret_goes_to_spark(tmp_path, monkeypatch):
    """A task of Spark gets the place of a secret, and reads it, or reports what is missing where it runs."""
    (tmp_path / "offramp.toml").write_text(
        """[clusters.c]\nbootstrap_servers = "127.0.0.1:1"\n[clusters.c.security.kafka]\nprotocol = "SASL_PLAINTEXT"
mechanism = "PLAIN"\nusername = "u"\npassword = { env = "THE_PASSWORD" }"""
    )
    monkeypatch.setenv("THE_PASSWORD", "hush-hush")
    reading = tasks.Reading(load_profile(file=tmp_path / "offramp.toml"), "t", (PartitionRange(0, 0, 9),), Selection())
    assert "hush-hush" in reader_settings(reading.profile).values()
    by_task = [task(reading) for task in (tasks.account, tasks.commits, tasks.generations)]
    for task in (*by_task, tasks.epochs(reading, NAMES)):
        sent = cloudpickle.dumps(task)
        assert b"THE_PASSWORD" in sent
        assert b"hush" not in sent
    monkeypatch.delenv("THE_PASSWORD")
    (batch,) = tasks.account(reading)([pa.record_batch({"id": [0]})])
    (row,) = batch.to_pylist()
    assert row["error"].startswith("where the topic is read, no consumer can be made: the environment variable")
    assert row["n_records"] is None


def test_an_argument_that_is_wrong_is_named_before_anything_is_read():
    with pytest.raises(InputError, match="is not a regular expression"):
        read_offsets_topic(None, None, group_pattern="(")
    with pytest.raises(InputError, match="since 2026-01-01 00:00:00 has no time zone"):
        read_offsets_topic(None, None, since=datetime(2026, 1, 1))
