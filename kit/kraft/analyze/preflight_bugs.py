"""Known bugs of Kafka 3.9.1 that this cluster can provoke, by what it has.

A node's release can't be asked for: ``inter.broker.protocol.version`` shows 3.9, not which patch of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from kit.kraft.analyze.node_settings import BOOTSTRAP, entries
from kit.kraft.analyze.phase import MIGRATION
from kit.kraft.analyze.preflight_checks import ANY, PreflightFacts, Problem, by_topic, check, few
from kit.tables.conditions import WARN


def last_quota(facts: PreflightFacts) -> Iterator[Problem]:
    """A dual write of the removal of the last quota fails with a NullPointerException, and is not tried again."""
    assert facts.items is not None
    quotas = facts.items.filter(pl.col("kind") == "quota", pl.col("error").is_null())
    at_risk = quotas.filter(pl.col("entity").str.contains(r"^(clients|ips)/|/clients/"))
    if at_risk.height:
        entities = at_risk["entity"].unique().sort()
        yield Problem(
            f"{len(entities):,} client, IP and user-client quotas",
            f"During dual write, removing the last quota of a client, an IP or a user's client ({entities[0]} is one) "
            "fails in silence in 3.9.1: ZooKeeper keeps it, and other changes of that moment may be lost, too.",
            "Remove no such quota until the migration is finalised; else fail over the controllers afterwards.",
        )


def deleted_user(facts: PreflightFacts) -> Iterator[Problem]:
    """``ScramDelta`` of 3.9.1 and 4.1.1: after a removal, a node that reads the log again may lose others."""
    assert facts.items is not None
    credentials = facts.items.filter(pl.col("kind") == "scram", pl.col("error").is_null())
    for mechanism, n_users in sorted(credentials.group_by("item").len().iter_rows()):
        if n_users > 1:
            yield Problem(
                f"{n_users:,} users with {mechanism}",
                f"{n_users:,} users have {mechanism} credentials: when one is removed, a controller or KRaft broker "
                "of 3.9.1 that is restarted later may forget others, and remove them from ZooKeeper during dual write.",
                "Remove no SCRAM credential: in its place set a random password and keep it nowhere.",
            )


def client_metrics(facts: PreflightFacts) -> Iterator[Problem]:
    """A client-metrics setting stops dual write at the next election."""
    assert facts.kraft_items is not None
    configs = facts.kraft_items.filter(pl.col("kind") == "config", pl.col("entity").str.contains("^client-metrics/"))
    for entity in configs["entity"].unique().sort():
        sentence = f"{entity} is set: after the next election of a controller of 3.9.1 dual write is stalled."
        yield Problem(entity, sentence, "Delete it with kafka-configs until the migration is finalised.")


def no_state(facts: PreflightFacts) -> Iterator[Problem]:
    """``ZkTopicMigrationClient`` of 3.9.1: the znode of a topic names a partition before there is its state."""
    assert facts.partitions is not None
    if facts.facts.zk_state != MIGRATION:
        return  # Z05 reports it: the copy invents a state.
    stateless = facts.partitions.filter(pl.col("error").is_null(), pl.col("leader_epoch").is_null())
    for topic, numbers_, _ in by_topic(stateless):
        yield Problem(
            f"topic {topic}",
            f"{topic} has partitions without a state znode: {few(numbers_)}. That is so for a moment while partitions "
            "are added; a controller of 3.9.1 that is elected now never gets on, and dual write is stalled.",
            "Run the command again. If it stays, make the state znode manually: docs/kraft.md, Partitions without a"
            " state znode.",
        )


def failed_dirs(facts: PreflightFacts) -> Iterator[Problem]:
    """KAFKA-16431: a failed log dir stops a broker in migration mode."""
    for broker in facts.brokers:
        n_dirs = len(entries(broker.get("log.dirs")))
        if n_dirs > 1 and not broker.get("process.roles"):
            sentence = f"{broker.name} has {n_dirs} log.dirs: in migration mode it stops when one fails."
            yield Problem(broker.name, sentence, "Examine the disks' health first, and keep this phase short.")


def policies(facts: PreflightFacts) -> Iterator[Problem]:
    """KAFKA-19026: an AlterConfigPolicy gets other arguments from a KRaft controller."""
    for broker in facts.brokers:
        policy = broker.get("alter.config.policy.class.name")
        if policy:
            sentence = f"{broker.name} has the policy {policy}, which gets other arguments from a KRaft controller."
            yield Problem(broker.name, sentence, "Use 3.9.2 with alter.config.policy.kraft.compatibility.enable=true.")


def dynamic_quorum(facts: PreflightFacts) -> Iterator[Problem]:
    """With bootstrap servers only, the test whether all controllers are ready examines an empty "
    "list (read, not run)."""
    for node in facts.settings:
        if node.get(BOOTSTRAP) and not node.get("controller.quorum.voters"):
            sentence = f"{node.name} has a dynamic quorum: nothing notices a controller without the flag."
            yield Problem(node.name, sentence, "Use controller.quorum.voters for a migration.")


CHECKS = (
    check("last_quota", WARN, ANY, "No quota is there whose removal fails.", "ZooKeeper", last_quota, ("items",)),
    check(
        "deleted_user",
        WARN,
        ANY,
        "No mechanism has SCRAM credentials of several users.",
        "ZooKeeper",
        deleted_user,
        ("items",),
    ),
    check(
        "client_metrics",
        WARN,
        ANY,
        "No client-metrics setting is there.",
        "the metadata log",
        client_metrics,
        ("kraft_items",),
    ),
    check(
        "no_state",
        WARN,
        ANY,
        "In dual write every partition has a state znode.",
        "ZooKeeper",
        no_state,
        ("partitions",),
    ),
    check(
        "KAFKA-16431",
        WARN,
        ANY,
        "Every broker has one log dir.",
        "DescribeConfigs",
        failed_dirs,
        ("brokers",),
        ("log.dirs",),
    ),
    check("KAFKA-19026", WARN, ANY, "No broker has an AlterConfigPolicy.", "DescribeConfigs", policies, ("brokers",)),
    check(
        "dynamic_quorum",
        WARN,
        ANY,
        "No node has a dynamic quorum.",
        "DescribeConfigs, files",
        dynamic_quorum,
        ("brokers",),
    ),
)
