"""A log holds earlier values: a row per record that set one, and how far the copy out of ZooKeeper goes."""

from __future__ import annotations

import polars as pl

from kit.kraft.metadata_log import read_log
from kit.kraft.metadata_log.earlier import earlier_values
from kit.text.fingerprints import Fingerprints
from tests import metadata_records as written

QUOTA = {"entity": [{"entityType": "user", "entityName": "a"}], "key": "producer_byte_rate", "remove": 0}


def quota(value: float, removed: bool = False) -> bytes:
    return written.value("ClientQuota", QUOTA | {"value": value, "remove": removed})


def change(leader: int) -> bytes:
    return written.value("PartitionChange", {"partitionId": 0, "topicId": written.uuid(1), "leader": leader})


COPIED = written.value("ZkMigrationState", {"zkMigrationState": 1})
COPY = [written.topic("a", 1), written.partition(1, 0), quota(1.0), COPIED]
LATER = [quota(2.0), quota(0.0, removed=True), change(2), quota(3.0)]


def test_every_record_that_set_a_value_and_none_of_others(tmp_path):
    log = read_log(written.write_log(tmp_path, {0: written.segment(*COPY, *LATER)}))
    found = earlier_values(log, {("quota", "users/a"), ("partition", "a")})
    assert found.items.select("value", "offset").rows() == [("1", 2), ("2", 4), ("3", 7)]
    assert found.partitions.select("leader", "offset").rows()[-1] == (2, 6)
    assert found.copied_until == 3
    assert earlier_values(log, {("quota", "users/b"), ("partition", "b")}).items.is_empty()


def test_a_checkpoint_has_forgotten_the_copy(tmp_path):
    checkpoints = {(4, 1): written.checkpoint(*COPY)}
    log = read_log(written.write_log(tmp_path, {4: written.segment(quota(2.0), base_offset=4)}, checkpoints))
    found = earlier_values(log, {("quota", "users/a")})
    assert found.items["value"].to_list() == ["2"]
    assert found.copied_until is None


def test_mechanisms_of_which_a_credential_was_removed(tmp_path):
    removed = written.value("RemoveUserScramCredential", {"name": "alice", "mechanism": 1})
    log = read_log(written.write_log(tmp_path, {0: written.segment(COPIED, removed)}))
    assert earlier_values(log, ()).removed_mechanisms == {"SCRAM-SHA-256"}


def test_a_secret_has_the_fingerprint_that_it_has_in_the_log(tmp_path):
    def password(value: str) -> bytes:
        body = {"resourceType": 4, "resourceName": "1", "name": "ssl.key.password", "value": value}
        return written.value("Config", body)

    hide = Fingerprints()
    log = read_log(
        written.write_log(tmp_path, {0: written.segment(password("first"), COPIED, password("second"))}), hide
    )
    found = earlier_values(log, {("config", "brokers/1")})
    assert found.items["value"].to_list() == [hide("first"), hide("second")]
    assert log.items.filter(pl.col("kind") == "config")["value"].to_list() == [hide("second")]
