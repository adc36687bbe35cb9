"""Payloads of metadata znodes, as brokers of 3.9.1 wrote them, and what is no such payload."""

from __future__ import annotations

import json
from functools import partial

import pytest
from hypothesis import given, settings, strategies as st

from kit.kraft.read import metadata_values as values
from kit.kraft.read.metadata_values import BadValue, StateValue

TOKEN = {
    "issueTimestamp": 1795419480077,
    "renewers": ["User%3Aalice"],
    "tokenRequester": "User%3Aadmin",
    "tokenId": "_vbwJTlJSEa5vUplkcTfug",
    "owner": "User%3Aadmin",
    "expiryTimestamp": 1795505880077,
    "maxTimestamp": 1796024280077,
    "version": 3,
}
TOPIC = (
    b'{"partitions":{"0":[2,1],"1":[1]},"topic_id":"TagI8kQCTZiu9_b92Np0VA","adding_replicas":{"0":[3]},"version":3}'
)


def test_a_topic():
    topic = values.topic_value(TOPIC)
    assert topic.topic_id == "TagI8kQCTZiu9_b92Np0VA"
    assert topic.replicas == {0: (2, 1), 1: (1,)}
    assert topic.adding == {0: (3,)}
    assert topic.removing == {}


def test_a_state():
    data = b'{"controller_epoch":1,"leader":-1,"version":1,"leader_epoch":4,"isr":[1,2],"leader_recovery_state":1}'
    assert values.state_value(data) == StateValue(None, 4, 1, (1, 2), 1)


def test_an_acl_is_reported_as_kraft_reports_it():
    entry = {"principal": "User:al*ce", "permissionType": "Deny", "host": "*", "operation": "DescribeConfigs"}
    assert values.acl_value(json.dumps({"version": 1, "acls": [entry]}).encode()) == [
        '["User:al*ce","*","DESCRIBE_CONFIGS","DENY"]'
    ]


def test_a_token_has_its_principals_decoded():
    told = json.loads(values.token_value(json.dumps(TOKEN).encode()))
    assert told["owner"] == "User:admin"
    assert told["renewers"] == ["User:alice"]
    assert told["expirationTimestamp"] == TOKEN["expiryTimestamp"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", None),
        (b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}', "1000"),
        (b'{"version":1,"broker":-1,"block_start":"2000","block_end":"2999"}', "2000"),
    ],
)
def test_the_next_producer_id(data, expected):
    """A broker's block was given out; KRaft writes the one to come."""
    assert values.next_producer_id(data) == expected


def test_a_credential_reports_its_iterations_alone():
    assert values.scram_value("salt=YQ==,stored_key=Yg==,server_key=Yw==,iterations=4096") == "iterations=4096"


@pytest.mark.parametrize(
    "text", ["", "iterations=1", "salt=!,stored_key=Yg==,server_key=Yw==,iterations=1", "salt=secret"]
)
def test_a_bad_credential_is_never_quoted(text):
    with pytest.raises(BadValue) as problem:
        values.scram_value(text)
    assert "secret" not in str(problem.value)


@pytest.mark.parametrize(
    ("parse", "data", "said"),
    [
        (values.topic_value, b"", "the value is empty"),
        pytest.param(values.topic_value, b"[" * 100_000, "no JSON object", id="deep"),
        (values.topic_value, b'{"partitions":{}}', "partitions is empty"),
        (values.topic_value, b'{"partitions":{"00":[1]}}', "'00'"),
        (values.topic_value, b'{"partitions":{"0":[true]}}', "no list of broker ids"),
        (values.topic_value, b'{"partitions":{"0":[1]},"topic_id":"short"}', "topic_id"),
        (values.state_value, b'{"leader":1.5}', "leader"),
        (values.config_value, b'{"version":2,"config":{}}', "not 1"),
        (values.config_value, b'{"version":1,"config":{"a":1}}', "must be a map of text"),
        (values.acl_value, b'{"version":1,"acls":[{"principal":"alice","host":"*","operation":"Read",'
                           b'"permissionType":"Allow"}]}', "no Type:name"),
        (values.acl_value, b'{"version":1,"acls":[7]}', "lacks"),
        (values.token_value, b'{"owner":7}', "must be text"),
        (values.next_producer_id, b'{"block_start":"x","block_end":"9"}', "no numbers"),
    ],
)  # fmt: skip
def test_content_that_no_broker_wrote_is_refused_with_its_reason(parse, data, said):
    with pytest.raises(BadValue, match=said):
        parse(data)


MIGRATION = {
    "version": 0,
    "kraft_controller_id": 3000,
    "kraft_controller_epoch": 7,
    "kraft_metadata_offset": 142,
    "kraft_metadata_epoch": 7,
}
"""Each case below was given to the decoders of Kafka 3.9.1 (MigrationZNode, ControllerZNode)."""


@pytest.mark.parametrize("changed", [{}, {"kraft_metadata_offset": -9}, {"kraft_metadata_offset": 2**63 - 1}, {"x": 1}])
def test_the_migration_znode_is_read_as_controllers_decode_it(changed):
    held = MIGRATION | changed
    numbers = {key: value for key, value in held.items() if key.startswith("kraft_")}
    assert values.migration_value(json.dumps(held).encode()) == numbers
    assert values.migration_value(json.dumps(held).encode() + b" and more") == numbers


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"null", b"[]", b"{", *(
        json.dumps({key: value for key, value in (MIGRATION | changed).items() if value != ""}).encode()
        for changed in (
            *({key: ""} for key in MIGRATION),
            {"version": 1},
            {"version": "0"},
            {"kraft_metadata_offset": 3.0},
            {"kraft_metadata_offset": None},
            {"kraft_controller_id": 3_000_000_000},
        )
    )],
)  # fmt: skip
def test_a_migration_that_no_controller_decodes_is_refused(data):
    with pytest.raises(BadValue):
        values.migration_value(data)


HELD = (
    b'"version":0,"kraft_controller_id":1,"kraft_controller_epoch":1,"kraft_metadata_epoch":1,"kraft_metadata_offset":5'
)


@pytest.mark.parametrize(
    ("data", "is_read"),
    [
        (b'{%s,"x":NaN}', False),
        (b'{%s,"x":-Infinity}', False),
        (b'{%s,"x":"\xff"}', False),
        (b"\xc2\xa0{%s}", False),
        (b"\x0b{%s}", False),
        (b" \t\r\n{%s}", True),
        (b"{%s} \xff", True),
        (b'{%s,"x":1e999}', True),
        (b'{%s,"version":1}', False),
    ],
)
def test_json_of_python_that_kafka_does_not_take_is_refused(data, is_read):
    """``MigrationZNode.decode`` of 3.9.1 was given each of these."""
    if is_read:
        assert values.migration_value(data % HELD)["kraft_metadata_offset"] == 5
    else:
        with pytest.raises(BadValue):
            values.migration_value(data % HELD)


@pytest.mark.parametrize(
    ("data", "epoch"),
    [
        (b'{"version":1,"brokerid":1,"timestamp":"1"}', None),
        (b'{"version":2,"brokerid":1,"timestamp":"1","kraftControllerEpoch":-1}', -1),
        (b'{"version":9,"brokerid":1}', None),
    ],
)
def test_a_controller_of_any_version_is_read(data, epoch):
    assert values.controller_value(data) == {"brokerid": 1, "kraftControllerEpoch": epoch}


@pytest.mark.parametrize(
    "data",
    [b"", b"x", b"7", b"{}", b'{"brokerid":"1"}', b'{"brokerid":1,"kraftControllerEpoch":null}'],
)
def test_a_controller_that_kafka_does_not_decode_is_refused(data):
    with pytest.raises(BadValue):
        values.controller_value(data)


@pytest.mark.parametrize("text", ["", "x", "nan", "inf", "1_000", "1e999"])
def test_a_text_is_no_quota(text):
    with pytest.raises(BadValue, match="no number"):
        values.quota_value("request_percentage", text)


@pytest.mark.parametrize("key", ["producer_byte_rate", "consumer_byte_rate", "connection_creation_rate"])
@pytest.mark.parametrize("text", ["", "fast", "1.5", "1000.0", " 5", "9223372036854775808", "1_000"])
def test_brokers_read_some_quotas_as_whole_numbers(key, text):
    with pytest.raises(BadValue, match=key):
        values.quota_value(key, text)
    assert values.quota_value(key, "+1000") == "1000"


@pytest.mark.parametrize(
    ("name", "is_broker", "is_host"),
    [
        ("<default>", True, True),
        ("1", True, True),
        ("one", False, True),
        ("2147483648", False, True),
        ("10.0.0.1", False, True),
        ("fe80::1", False, True),
        ("no host", False, False),
    ],
)
def test_names_that_brokers_can_read(name, is_broker, is_host):
    assert (values.is_broker_name(name), values.is_host_name(name)) == (is_broker, is_host)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "version",
        "partitions",
        "topic_id",
        "leader",
        "isr",
        "config",
        "acls",
        "owner",
        "renewers",
        "block_start",
        "broker",
    ]
)
PARSERS = [
    values.topic_value,
    values.state_value,
    values.config_value,
    values.acl_value,
    values.token_value,
    values.next_producer_id,
    values.migration_value,
    values.controller_value,
]


def problem_of(parse, data) -> str | None:
    try:
        parse(data)
    except BadValue as problem:
        return str(problem)
    return None


@settings(max_examples=60)
@given(st.binary(max_size=30) | st.dictionaries(KEYS, JSON).map(lambda held: json.dumps(held).encode()))
def test_any_payload_is_read_or_refused(data):
    for parse in PARSERS:
        assert problem_of(parse, data) != ""


@settings(max_examples=60)
@given(st.text(max_size=30))
def test_any_text_is_a_quota_or_a_credential_or_refused(text):
    for parse in (
        partial(values.quota_value, "consumer_byte_rate"),
        partial(values.quota_value, "x"),
        values.scram_value,
    ):
        assert problem_of(parse, text) != ""
