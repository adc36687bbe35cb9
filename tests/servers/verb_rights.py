"""The Kafka ACLs of ``docs/security.md`` for each verb, and what is said without any one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tests.servers.sasl_lab import CLUSTER, OFFSETS, Right

GROUP, MOVING = "watched", "moving"
DESCRIBE_CLUSTER: Right = ("Describe", "Broker", CLUSTER)
DESCRIBE_TOPICS: Right = ("Describe", "Topic", "*")
DESCRIBE_GROUPS: Right = ("Describe", "Group", "*")
READ_TOPICS: Right = ("Read", "Topic", "*")
ALTER_GROUP: Right = ("AlterConfigs", "Group", MOVING)
READ_OFFSETS_TOPIC: Right = ("Read", "Topic", "__consumer_offsets")
CONFIGS_OF_CLUSTER: Right = ("DescribeConfigs", "Broker", CLUSTER)
CONFIGS_OF_TOPICS: Right = ("DescribeConfigs", "Topic", "*")
LOCK_NAMES: Right = ("Describe", "Group", "offramp.lock.")
LOCK_TOPIC: Right = ("Describe", "Topic", "offramp.lock")
OBSERVED: Mapping[Right, str] = {
    DESCRIBE_CLUSTER: "without DESCRIBE on the cluster, Kafka hides groups",
    DESCRIBE_GROUPS: "the login lacks DESCRIBE on the group",
    DESCRIBE_TOPICS: "The login may not describe",
}
"""The set *observe*: right → what is said without it."""
UNDOABLE = dict(zip(OFFSETS, ("Whether the login can see every topic is not known", "READ on topic", "READ on group")))
RUNS = "--runs"
"""A verb with it gets a folder of its own."""


PROTOCOL = ("plan", "protocol", "-g", MOVING, "--to", "consumer", "--clients-ready", "--observe", "1")
DESCRIBED: Mapping[Right, str] = {DESCRIBE_TOPICS: "the login lacks DESCRIBE on the topic"}
PLANNED = {**DESCRIBED, DESCRIBE_GROUPS: "the login lacks DESCRIBE on the group"}
"""Plans of groups in ZooKeeper."""


class Verb(NamedTuple):
    """``said``: each right that the verb needs → what its output says without this right alone."""

    words: tuple[str, ...]
    said: Mapping[Right, str]
    exit_code: int = 0


VERBS = {
    "groups": Verb(("groups",), OBSERVED),
    "lag": Verb(("lag", "--outlook", "--over-s", "1"), {
        **OBSERVED,
        CONFIGS_OF_TOPICS: "the login lacks DESCRIBE_CONFIGS on the topic",
        CONFIGS_OF_CLUSTER: "not before",  # Optional: one bound is left.
    }),
    "lock show": Verb(("lock", "show"), {
        LOCK_NAMES: "lacks DESCRIBE on Group with the prefix offramp.lock.",
        LOCK_TOPIC: "lacks DESCRIBE on Topic offramp.lock",
    }),
    "plan offsets reset": Verb(("plan", "offsets", "reset", "-g", GROUP, "--to", "20", RUNS), UNDOABLE),
    "groups --idle": Verb(("groups", "--idle", "--offsets-topic"), {
        **OBSERVED, READ_OFFSETS_TOPIC: "the login lacks READ on the topic",
    }),
    "lag in records": Verb(("lag",), OBSERVED),
    "lag --time": Verb(("lag", "--time"), OBSERVED),
    "lag --time by records": Verb(("lag", "--time", "--method", "record"), {
        DESCRIBE_CLUSTER: OBSERVED[DESCRIBE_CLUSTER],
        DESCRIBE_GROUPS: OBSERVED[DESCRIBE_GROUPS],
        READ_TOPICS: "the login lacks READ on the topic",
    }),
    "watch": Verb(("watch", "--count", "1"), {
        **OBSERVED, DESCRIBE_CLUSTER: "some groups may be hidden from this login",
    }),
    "export": Verb(("export", "--once", "--no-times"), OBSERVED),
    "ownership": Verb(("ownership",), OBSERVED),
    "readiness": Verb(("readiness",), OBSERVED),
    "protocol check": Verb(("protocol", "check", "-g", GROUP, "--offsets-topic"), {
        DESCRIBE_GROUPS: "Kafka hides each group that the login may not DESCRIBE",
        CONFIGS_OF_CLUSTER: "Grant the login DESCRIBE_CONFIGS on the cluster",
        READ_OFFSETS_TOPIC: "the login lacks READ on the topic",
    }),
    "plan offsets copy": Verb(
        ("plan", "offsets", "copy", "-g", GROUP, "--to-group", "other", "--from", "kafka", "--to", "kafka", RUNS),
        UNDOABLE,
    ),
    "plan offsets delete": Verb(
        ("plan", "offsets", "delete", "-g", GROUP, "--override", "kept_elsewhere", RUNS), UNDOABLE
    ),
    "plan delete-groups": Verb(("plan", "delete-groups", "-g", GROUP, RUNS), UNDOABLE),
    "plan offsets export": Verb(("plan", "offsets", "export", "{file}.jsonl", "-g", GROUP), {
        DESCRIBE_CLUSTER: "Whether the login can see every topic is not known",
        DESCRIBE_GROUPS: OBSERVED[DESCRIBE_GROUPS],
        DESCRIBE_TOPICS: "a login needs DESCRIBE on the group and on their topics",
    }),
    "lock break": Verb(("lock", "break", GROUP, "--run", "none"), {
        LOCK_NAMES: "lacks DESCRIBE on Group with the prefix offramp.lock.",
        LOCK_TOPIC: "lacks DESCRIBE on Topic offramp.lock",
    }, exit_code=8),
    "snapshot": Verb(("snapshot", "--history", "{file}"), OBSERVED),
    "plan protocol": Verb((*PROTOCOL, RUNS), {
        **DESCRIBED,
        DESCRIBE_GROUPS: "Kafka hides each group that the login may not DESCRIBE",
        CONFIGS_OF_CLUSTER: "Grant the login DESCRIBE_CONFIGS on the cluster",
        READ_OFFSETS_TOPIC: "This login can't read __consumer_offsets",
    }),
    "plan protocol with configs": Verb((*PROTOCOL, "--group-config", "consumer.session.timeout.ms=45000", RUNS), {
        **DESCRIBED,
        DESCRIBE_GROUPS: "does not have DESCRIBE on group 'moving'",
        CONFIGS_OF_CLUSTER: "Grant the login DESCRIBE_CONFIGS on the cluster",
        ALTER_GROUP: "ALTER_CONFIGS on group 'moving'",
    }),
}  # fmt: skip
WITH_ZOOKEEPER = {
    "plan group": Verb(
        ("plan", "group", "-g", MOVING, "--to", "Kafka coordination", "--min-stable", "0", "--observe", "1", RUNS),
        PLANNED,
    ),
    "plan fleet": Verb(("plan", "fleet", "--to", "kafka", "--min-stable", "0", RUNS), PLANNED),
}

ELSEWHERE = {
    "connect": "tests/servers/test_connect.py grants the rights one by one",
    "plan offsets import": "as plan offsets reset, from a file",
    "plan kraft": "tests/servers/test_kraft_plan_rights.py, tests/interop/test_kraft_secured.py",
    "kraft status": "tests/servers/test_secured_kraft.py",
    "kraft preflight": "tests/servers/test_secured_kraft.py",
    "kraft diff": "tests/servers/test_secured_kraft.py",
    "kraft save": "as kraft preflight",
    "kraft watch": "as kraft status and kraft diff",
    "rebalances": "reads as groups --idle --offsets-topic does",
    "report": "tests/servers/test_rights.py, in the long form: half a minute each",
    "plan show": "the rights of the plan's command",
    "act": "tests/servers/test_rights.py",
    "resume": "as act",
    "undo": "tests/servers/test_rights.py, test_undo_rights.py",
    "consume": "tests/servers/test_rights.py, test_znode_rights.py",
}
"""Verbs of the page that are not in this table, and where their rights are tried, or why they are not."""


def weaker(right: Right) -> tuple[Right, ...]:
    """Return the rest of a right that is taken away: READ includes DESCRIBE, which is a right of its own."""
    operation, resource, name = right
    return (("Describe", resource, name),) if operation == "Read" else ()
