"""Fingerprints of secrets: two stores are compared by them, and none shows anything."""

from __future__ import annotations

import pickle
import re

import pytest

from kit.clients.znode_secrets import shown_data
from kit.kraft.metadata_log import read_log
from kit.text.fingerprints import Fingerprints
from tests import metadata_records as written

BASE64 = {"hush": "aHVzaA==", "other": "b3RoZXI="}


def test_a_secret_has_one_fingerprint_as_long_as_the_object_lives():
    one, other = Fingerprints(), Fingerprints()
    assert one("hush") == one("hush") != one("hush ")
    assert one("hush") != other("hush")
    assert re.fullmatch(r"hmac:[0-9a-f]{16}", one("\ud800"))


def test_its_key_is_never_written_down():
    one = Fingerprints()
    assert repr(one) == "Fingerprints()"
    with pytest.raises(TypeError, match="never written down"):
        pickle.dumps(one)


@pytest.mark.parametrize(("in_zookeeper", "are_equal"), [("hush", True), ("other", False)])
def test_a_credential_of_both_stores(tmp_path, in_zookeeper, are_equal):
    hide, part = Fingerprints(), BASE64[in_zookeeper]
    text = f"salt={part},stored_key={part},server_key={part},iterations=4096"
    znode = shown_data("/config/users/al", f'{{"version":1,"config":{{"SCRAM-SHA-256":"{text}"}}}}'.encode(), hide)
    folder = written.write_log(tmp_path / "log", {0: written.segment(written.credential("al", b"hush"))})
    (item,) = read_log(folder, hide).items.filter(kind="scram").to_dicts()
    assert item["is_secret"]
    assert item["value"].count("hmac:") == 3
    assert (item["value"].encode() in znode) is are_equal
    assert b"aHVzaA" not in znode
    assert read_log(folder).items.filter(kind="scram")["value"].to_list() == ["iterations=4096"]


def test_a_password_of_a_broker_and_its_record(tmp_path):
    folder = written.write_log(
        tmp_path / "log", {0: written.segment(written.config(4, "1", "ssl.key.password", "hush"))}
    )
    hide = Fingerprints()
    log = read_log(folder, hide)
    assert log.items.filter(kind="config").select("value", "is_secret").rows() == [(hide("hush"), True)]
    assert "hush" not in str(log.records.to_dicts())
    assert read_log(folder).items.filter(kind="config").select("value", "is_secret").rows() == [(None, True)]
