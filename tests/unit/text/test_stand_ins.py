"""Random text in a secret's place: of the same form, and nothing of the secret."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, strategies as st

from kit.clients.znode_secrets import shown_data
from kit.kraft.read.metadata_values import BadValue, scram_value
from kit.text.stand_ins import stand_in

CREDENTIAL = "salt=c2FsdHNhbHQ=,stored_key=c3RvcmVka2V5c3RvcmVk,server_key=c2VydmVya2V5c2VydmVy,iterations=8192"
ENCIPHERED = (
    "encryptedPassword:aHVzaC1odXNoLWh1c2g=,initializationVector:dmVjdG9ydmVjdG9ydg==,cipherAlgorithm:"
    "AES/CBC/PKCS5Padding,keyLength:128,keyFactoryAlgorithm:PBKDF2WithHmacSHA512,salt:c2FsdA==,iterations:4096,"
    "passwordLength:14"
)


def test_a_credential_can_be_parsed_as_before():
    found = stand_in(CREDENTIAL)
    assert scram_value(found) == "iterations=8192"
    parts = [each.partition("=")[2] for each in CREDENTIAL.split(",")[:3]]
    assert not any(part[:8] in found for part in parts)


def test_an_enciphered_password_keeps_how_it_was_enciphered():
    found = dict(each.split(":", 1) for each in stand_in(ENCIPHERED).split(","))
    before = dict(each.split(":", 1) for each in ENCIPHERED.split(","))
    same = {"cipherAlgorithm", "keyLength", "keyFactoryAlgorithm", "iterations", "passwordLength"}
    assert {key for key in before if before[key] == found[key]} == same
    for key in ("encryptedPassword", "initializationVector", "salt"):
        assert len(base64.b64decode(found[key], validate=True)) == len(base64.b64decode(before[key]))


@pytest.mark.parametrize("broken", ["salt=!!,stored_key=YQ==", CREDENTIAL + ",x=1", CREDENTIAL[:-4] + "many", "hush"])
def test_an_unparsable_text_stays_unparsable(broken):
    with pytest.raises(BadValue):
        scram_value(broken)
    with pytest.raises(BadValue):
        scram_value(stand_in(broken))


@given(st.text(min_size=40))
def test_only_the_structure_of_a_long_secret_stays(secret):
    found = stand_in(secret)
    assert len(found) == len(secret)
    kept = [new for old, new in zip(secret, found) if new == old and not new.isascii()]
    assert kept == []


def test_in_znodes_broken_ones_too_no_secret_stays_and_the_rest_does():
    whole = json.dumps({"version": 1, "config": {"SCRAM-SHA-256": CREDENTIAL, "producer_byte_rate": "7"}}).encode()
    shown = json.loads(shown_data("/config/users/ann", whole, stand_in))
    assert shown["config"]["producer_byte_rate"] == "7"
    assert "c3RvcmVka2V5" not in shown["config"]["SCRAM-SHA-256"]
    for path in ("/config/users/ann", "/config/brokers/1", "/delegation_token/tokens/x"):
        cut = shown_data(path, whole[:-9], stand_in)
        assert b"c3RvcmVka2V5" not in cut
        with pytest.raises(json.JSONDecodeError):
            json.loads(cut)
