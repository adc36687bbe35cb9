"""Metadata records: fields by version, tags, unknown types, cut values, secrets."""

from __future__ import annotations

import json
import math
import struct

import pytest

from kit.kraft.metadata_log import records as records_
from kit.kraft.metadata_log.batches import read_batches
from kit.kraft.metadata_log.records import RECORD_TYPES, parse_value, read_records
from kit.kraft.metadata_log.rows import record_batches
from kit.kraft.metadata_log.secrets import is_secret_config
from kit.kraft.metadata_log.transactions import with_transactions
from tests import metadata_records as written
from tests.coordinator_records import compact, tags, uvarint


def test_every_type_of_3_9_and_4_1_is_known():
    assert sorted(RECORD_TYPES) == [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 14, 15, *range(17, 29)]
    assert RECORD_TYPES[28].name == "ClearElr"  # since 4.1
    assert {key: each.versions for key, each in RECORD_TYPES.items() if each.versions != "0"} == {
        0: "0-3",
        3: "0-2",
        5: "0-2",
        17: "0-2",
    }


def test_a_registration_byte_by_byte():
    """Version 2 has ``isMigratingZkBroker`` second and no log dirs."""
    message = struct.pack(">i", 3) + b"\x01" + bytes(16) + struct.pack(">q", 135)
    message += uvarint(2) + compact("PLAINTEXT") + compact("h") + struct.pack(">Hh", 39092, 0) + tags()
    message += uvarint(1) + compact(None) + b"\x01\x00" + tags()
    found = parse_value(written.framed(0, 2, message))
    assert found.error is None
    assert found.body == {
        "brokerId": 3,
        "isMigratingZkBroker": True,
        "incarnationId": "A" * 22,
        "brokerEpoch": 135,
        "endPoints": [{"name": "PLAINTEXT", "host": "h", "port": 39092, "securityProtocol": 0}],
        "features": [],
        "rack": None,
        "fenced": True,
        "inControlledShutdown": False,
    }


@pytest.mark.parametrize(
    ("version", "has"),
    [
        (0, {"fenced"}),
        (1, {"fenced", "inControlledShutdown"}),
        (2, {"fenced", "inControlledShutdown", "isMigratingZkBroker"}),
        (3, {"fenced", "inControlledShutdown", "isMigratingZkBroker", "logDirs"}),
    ],
)
def test_each_version_has_its_own_fields(version, has):
    octets = written.broker(1, version=version, **({"logDirs": [written.uuid(1)]} if version == 3 else {}))
    optional = {"fenced", "inControlledShutdown", "isMigratingZkBroker", "logDirs"}
    assert set(parse_value(octets).body) & optional == has


def test_a_change_has_only_the_fields_that_are_there():
    assert parse_value(written.change(1, 7)).body == {"partitionId": 7, "topicId": written.uuid(1)}
    whole = parse_value(written.change(1, 7, isr=[2, 1], leader=-1, eligibleLeaderReplicas=[], directories=[]))
    assert whole.body["isr"] == [2, 1]
    assert whole.body["leader"] == -1
    assert (whole.body["eligibleLeaderReplicas"], whole.body["directories"]) == ([], [])


def test_a_tagged_field_that_is_its_default_is_as_none():
    octets = written.value("PartitionChange", {"partitionId": 0, "topicId": written.uuid(1), "leader": -2})
    assert "leader" not in parse_value(octets).body


def test_a_tag_of_a_newer_kafka_is_passed_over():
    message = struct.pack(">b", 1) + tags({3: b"later", 200: b""})
    assert parse_value(written.framed(21, 0, message)).body == {"zkMigrationState": 1}


def test_a_tagged_field_must_have_its_size():
    message = struct.pack(">i", 0) + bytes(16) + tags({1: bytes(5)})
    found = parse_value(written.framed(5, 0, message))
    assert found.body is None
    assert found.error == "the field leader is 4 bytes long, and should be 5"


def test_numbers_that_json_has_not():
    values = (math.inf, -math.inf, math.nan, 1.5)
    found = [parse_value(written.quota({"user": "a"}, "k", each)).body["value"] for each in values]
    assert found == ["Infinity", "-Infinity", "NaN", 1.5]


@pytest.mark.parametrize(
    ("octets", "told", "is_known"),
    [
        (written.framed(29, 0, b"later"), "type 29 of a record is not known", False),
        (written.framed(2, 9, b"later"), "version 9 of Topic is not known", False),
        (written.framed(2, 0, b""), "the value ends too early", True),
        (written.framed(20, 0, b"\0"[:0]), "the value ends too early", True),
        (written.framed(20, 0, b"\0more"), "4 bytes follow the fields", True),
        (written.framed(2, 0, uvarint(0) + bytes(16) + tags()), "the field name is null", True),
        (written.framed(2, 0, compact(b"\xff") + bytes(16) + tags()), "the field name is no UTF-8", True),
        (written.framed(20, 0, b"\0", frame=0), "version 0 of a record's frame is not known", True),
        (b"", "the value ends too early", True),
        (written.framed(2**31, 0, b""), "the record's type or version is no number of 16 bits", True),
        (written.framed(2, 40_000, b""), "the record's type or version is no number of 16 bits", True),
        (b"\xff" * 20, "the value has a number that never ends", True),
        (None, "the record has no value", True),
    ],
)
def test_an_unreadable_log_has_a_reason(octets, told, is_known):
    found = parse_value(octets)
    assert (found.error, found.body, found.is_known) == (told, None, is_known)
    assert found.raw == (None if is_known else octets)


def test_a_number_of_elements_that_is_nonsense_costs_nothing():
    message = compact("a") + compact("b") + uvarint(2**32 - 1) + b"\0"
    assert parse_value(written.framed(10, 0, message)).error == "the value ends too early"


def test_control_records_have_names_and_fields():
    octets = written.control(0, "LeaderChange", {"leaderId": 3, "voters": [{"voterId": 3}]})
    octets += written.control(1, "KRaftVersion", {"kRaftVersion": 1})
    voter = {"voterId": 3, "endpoints": [{"name": "C", "host": "h", "port": 1}]}
    octets += written.control(2, "Voters", {"voters": [voter]})
    found = list(read_records(octets, "a.log"))
    assert [(each.offset, each.name, each.api_key, each.file) for each in found] == [
        (0, "LeaderChange", None, "a.log"),
        (1, "KRaftVersion", None, "a.log"),
        (2, "Voters", None, "a.log"),
    ]
    assert found[0].body == {"version": 0, "leaderId": 3, "voters": [{"voterId": 3}], "grantingVoters": []}
    assert found[2].body["voters"][0]["kRaftVersionFeature"] == {"minSupportedVersion": 0, "maxSupportedVersion": 0}


def test_a_control_record_of_another_kind_is_unknown():
    octets = written.batch(4, [b"\0\0"], keys=[struct.pack(">hh", 0, 77)], is_control=True)
    (found,) = read_records(octets)
    assert (found.offset, found.is_known, found.error) == (4, False, "type 77 of a control record is not known")


def test_partitions_of_one_size_are_cut_at_once_and_those_of_another_form_are_not_mistaken():
    """Same number of bytes, other lists; and a tag where the last byte says there is none."""
    some = [
        written.partition(1, 0, (1, 2, 3)),
        written.partition(1, 1, (1, 2, 3), isr=[3]),
        written.partition(1, 2, (1, 2, 3), isr=[3], addingReplicas=[7], removingReplicas=[8]),
        written.partition(1, 3, (1, 2, 3), isr=[1, 2], addingReplicas=[7]),
        written.partition(1, 4, (1, 2, 3), leaderRecoveryState=1),
        written.partition(1, 5, (9,)),
    ]
    first = [parse_value(each).body for each in some]
    again = [parse_value(each).body for each in reversed(some)]
    assert first == again[::-1]
    assert [each["isr"] for each in first] == [[1, 2, 3], [3], [3], [1, 2], [1, 2, 3], [9]]
    assert [each["addingReplicas"] for each in first] == [[], [], [7], [7], [], []]
    assert first[4]["leaderRecoveryState"] == 1
    assert parse_value(some[0] + b"\0").error == "1 byte follows the fields"
    assert parse_value(some[0][:-1]).error == "the value ends too early"


def test_no_secret_of_a_credential_leaves_the_decoder():
    found = parse_value(written.credential("alice", b"hush-hush"))
    assert found.body == {
        "name": "alice",
        "mechanism": 1,
        "salt": "***",
        "storedKey": "***",
        "serverKey": "***",
        "iterations": 4096,
    }
    assert parse_value(written.credential("alice", b"")).body["salt"] == ""


def test_a_credential_of_a_newer_version_keeps_no_bytes():
    octets = written.framed(11, 1, written.credential("alice", b"hush-hush")[3:])
    found = parse_value(octets)
    assert (found.error, found.raw) == ("version 1 of UserScramCredential is not known", None)


@pytest.mark.parametrize(
    ("kind", "key", "is_secret"),
    [
        (2, "retention.ms", False),
        (2, "anything.else", False),
        (4, "log.cleaner.threads", False),
        (4, "leader.replication.throttled.rate", False),
        (4, "ssl.keystore.password", True),
        (4, "listener.name.external.ssl.keystore.password", True),
        (4, "listener.name.external.ssl.keystore.location", False),
        (4, "listener.name.external.scram-sha-512.sasl.jaas.config", True),
        (4, "listener.name.external.max.connections.per.ip", False),
        (4, "sasl.jaas.config", True),
        (64, "retention.ms", True),
        (4, "my.own.plugin", True),
        (4, "password.encoder.secret", True),
    ],
)
def test_a_broker_s_setting_is_shown_when_kafka_knows_it_as_no_password(kind, key, is_secret):
    assert is_secret_config(kind, key) == is_secret
    found = parse_value(written.config(kind, "", key, "hush"))
    assert found.body["value"] == ("***" if is_secret else "hush")
    assert parse_value(written.config(kind, "", key, None)).body["value"] is None


def table(octets: bytes):
    return [row for each in record_batches(with_transactions(read_records(octets, "f"))) for row in each.to_pylist()]


def test_rows_of_records():
    known, later, control = table(
        written.batch(0, [written.topic("orders", 1), written.framed(29, 1, b"x")], first_ms=1_000)
        + written.control(2, "SnapshotFooter")
    )
    assert json.loads(known["body"]) == {"name": "orders", "topicId": written.uuid(1)}
    assert (known["offset"], known["api_key"], known["version"], known["name"]) == (0, 2, 0, "Topic")
    assert known["written_at"].isoformat() == "1970-01-01T00:00:01+00:00"
    assert (later["api_key"], later["version"], later["name"], later["body"]) == (29, 1, None, None)
    assert later["raw"] == written.framed(29, 1, b"x")
    assert (control["api_key"], control["name"], control["transaction"]) == (None, "SnapshotFooter", "none")


def test_a_time_that_no_calendar_has_is_unknown():
    (row,) = table(written.batch(0, [written.value("NoOp")], first_ms=2**61))
    assert row["written_at"] is None
    assert next(read_batches(written.batch(0, [b""], first_ms=2**61))).records[0][1] == 2**61


def test_readers_are_made_once():
    assert records_._reader("record", 2, 0) is records_._reader("record", 2, 0)
