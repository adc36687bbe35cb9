"""Numbers, names and JSON out of znodes: what the protocols can hold, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from kit.clients.paths import group_path, is_znode_name
from kit.clients.values import is_text, json_in, shown
from kit.consumer.zookeeper.brokers import plaintext_brokers
from kit.consumer.zookeeper.znodes import GroupZnodes
from kit.engine.lock import escaped
from kit.engine.model.values import parse_json
from kit.errors import ConnectError, InputError
from kit.groups.read.owner_history import OwnerWatch
from kit.moves.group.toggle import mode_path
from kit.moves.offsets.moves import Stored
from kit.moves.offsets.resets import parse_reset
from kit.moves.offsets.zookeeper import ZookeeperWriter, offset_path, parents_of
from kit.text.numbers import INT32_MAX, INT64_MAX, offset_in, partition_in
from tests.generators import hostile
from tests.models.zookeeper import FakeClient, Node

TRAPS = ["", "²", "٣", "१", "x", "-1", "+1", " 1", "1 ", "1_0", "1e3", "0x1", "1.0", "9" * 19, "9" * 5_000, str(2**63)]


@pytest.mark.parametrize("text", TRAPS)
def test_a_wrong_text_is_no_offset(text):
    assert offset_in(text) is None


@given(st.integers(0, INT64_MAX), st.integers(0, 30))
def test_offsets_are_whole_numbers_up_to_64_bits(number, zeros):
    assert offset_in("0" * zeros + str(number)) == number


@given(st.integers(0, INT32_MAX + 10))
def test_partitions_are_whole_numbers_up_to_32_bits(number):
    assert partition_in(str(number)) == (number if number <= INT32_MAX else None)
    assert partition_in("0" + str(number)) is None


@pytest.mark.parametrize("text", ["²", "+²", "-²m", "9" * 30, "+" + "9" * 30, "9" * 5_000])
def test_a_reset_is_no_trap_either(text):
    with pytest.raises(InputError):
        parse_reset(text)


@pytest.mark.parametrize(
    "data", [None, b"", b"\xff", b"[" * 100_000, b'{"a":' * 100_000, b"1" * 5_000, "{}".encode("utf-16")]
)
def test_json_that_is_none(data):
    assert json_in(data) is None


def test_json_that_is_nested_too_deeply_is_an_error_of_the_text():
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 100_000)


@given(hostile.texts())
def test_text_that_can_be_stored_can_be_encoded(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        assert not is_text(text)
    else:
        assert is_text(text)


def test_the_shown_text_is_short():
    assert len(shown(b"\x00" * 1_000_000)) < 500
    assert shown("abc") == "'abc'"


def test_names_that_zookeeper_takes_are_paths():
    assert list(map(group_path, hostile.ZNODES)) == [f"/consumers/{name}" for name in hostile.ZNODES]


REFUSED = [name for name in hostile.TEXTS if name not in hostile.ZNODES]


@pytest.mark.parametrize("name", [*REFUSED, "a/b", "x/../y", "/", "..", ".", "", "a\x00b", "\ud83d"])
def test_a_group_that_no_znode_can_be_never_becomes_part_of_a_path(name):
    """``/consumers/a/b`` is another group's."""
    assert not is_znode_name(name)
    client = FakeClient(Node())
    for make in (
        group_path,
        mode_path,
        lambda it: offset_path((it, "orders", 0)),
        lambda it: parents_of((it, "orders", 0)),
        lambda it: OwnerWatch(client, it),
        lambda it: GroupZnodes(client, it, "me", print, print, print, True, True, 1),
    ):
        with pytest.raises(InputError, match="can't be the name of a znode"):
            make(name)
    writer, key = ZookeeperWriter(client), (name, "orders", 0)
    assert "can't be the name of a znode" in writer.read([key])[key].error
    assert "can't be the name of a znode" in writer.write({key: Stored(1)}, {key: Stored()})[key].error
    assert "/orders/0" not in str(client.asked)


@given(hostile.groups(), hostile.groups())
def test_each_group_has_a_lock_of_its_own(one, other):
    assert is_znode_name(escaped(one))
    assert (escaped(one) == escaped(other)) is (one == other)


@pytest.mark.parametrize(
    "data", [b"[]", b"5", b"\xff", b"[" * 100_000, b'{"host":1}', b'{"host":"a","port":"x","endpoints":5}', b"null"]
)
def test_a_broker_whose_registration_reports_nothing_has_no_address(data):
    ids = Node(children={"1": Node(data)})
    with pytest.raises(ConnectError, match="PLAINTEXT"):
        plaintext_brokers(FakeClient(Node(children={"brokers": Node(children={"ids": ids})})))
    ids.children["2"] = Node(b'{"host":"kafka-2","port":9092}')
    assert plaintext_brokers(FakeClient(Node(children={"brokers": Node(children={"ids": ids})}))) == "kafka-2:9092"


def test_a_reset_to_an_offset_is_one():
    assert parse_reset("42").value == 42
    assert parse_reset("-5").value == -5
