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
            "During dual write, Kafka 3.9.1 does not report an error when the last quota of a client, an IP or a "
            f"user's client is removed (for example {entities[0]}). ZooKeeper keeps the quota, and other changes "
            "made at that moment may be lost, too.",
            "Remove none of these quotas until the migration is finalised. If you must, make a fail-over of the "
            "controllers afterwards.",
        )


def deleted_user(facts: PreflightFacts) -> Iterator[Problem]:
    """``ScramDelta`` of 3.9.1 and 4.1.1: after a removal, a node that reads the log again may lose others."""
    assert facts.items is not None
    credentials = facts.items.filter(pl.col("kind") == "scram", pl.col("error").is_null())
    for mechanism, n_users in sorted(credentials.group_by("item").len().iter_rows()):
        if n_users > 1:
            yield Problem(
                f"{n_users:,} users with {mechanism}",
                f"{n_users:,} users have {mechanism} credentials. If one credential is removed, a controller or "
                "KRaft broker of 3.9.1 that restarts later may lose other credentials. During dual write it then "
                "removes them from ZooKeeper, too.",
                "Do not remove a SCRAM credential. To lock a user out, set a random password instead.",
            )


def client_metrics(facts: PreflightFacts) -> Iterator[Problem]:
    """A client-metrics setting stops dual write at the next election."""
    assert facts.kraft_items is not None
    configs = facts.kraft_items.filter(pl.col("kind") == "config", pl.col("entity").str.contains("^client-metrics/"))
    for entity in configs["entity"].unique().sort():
        sentence = f"{entity} is set. Dual write stalls after the next election of a controller of 3.9.1."
        yield Problem(
            entity, sentence, "Delete this setting with kafka-configs. Set it again after the migration is finalised."
        )


def no_state(facts: PreflightFacts) -> Iterator[Problem]:
    """``ZkTopicMigrationClient`` of 3.9.1: the znode of a topic names a partition before there is its state."""
    assert facts.partitions is not None
    if facts.facts.zk_state != MIGRATION:
        return  # Z05 reports it: the copy invents a state.
    stateless = facts.partitions.filter(pl.col("error").is_null(), pl.col("leader_epoch").is_null())
    for topic, numbers_, _ in by_topic(stateless):
        yield Problem(
            f"topic {topic}",
            f"{topic} has partitions without a state znode: {few(numbers_)}. That is normal for a moment while "
            "partitions are added. If a controller of 3.9.1 is elected in this state, dual write stalls.",
            "Run the command again. If the finding remains, create the state znode manually: docs/kraft.md, "
            "Partitions without a"
            " state znode.",
        )


def failed_dirs(facts: PreflightFacts) -> Iterator[Problem]:
    """KAFKA-16431: a failed log dir stops a broker in migration mode."""
    for broker in facts.brokers:
        n_dirs = len(entries(broker.get("log.dirs")))
        if n_dirs > 1 and not broker.get("process.roles"):
            sentence = f"{broker.name} has {n_dirs} log.dirs. A broker in migration mode stops when one of them fails."
            yield Problem(
                broker.name,
                sentence,
                "Check the health of the disks before the move, and keep the phase dual write short.",
            )


def policies(facts: PreflightFacts) -> Iterator[Problem]:
    """KAFKA-19026: an AlterConfigPolicy gets other arguments from a KRaft controller."""
    for broker in facts.brokers:
        policy = broker.get("alter.config.policy.class.name")
        if policy:
            sentence = (
                f"{broker.name} has the policy {policy}. A KRaft controller calls it with other arguments "
                "than a broker does."
            )
            yield Problem(broker.name, sentence, "Use 3.9.2 with alter.config.policy.kraft.compatibility.enable=true.")


def dynamic_quorum(facts: PreflightFacts) -> Iterator[Problem]:
    """With bootstrap servers only, the test whether all controllers are ready examines an empty "
    "list (read, not run)."""
    for node in facts.settings:
        if node.get(BOOTSTRAP) and not node.get("controller.quorum.voters"):
            sentence = (
                f"{node.name} has a dynamic quorum. With it, Kafka does not detect a controller without the "
                "migration flag."
            )
            yield Problem(node.name, sentence, "Use a static quorum for the migration: set controller.quorum.voters.")


CHECKS = (
    check("last_quota", WARN, ANY, "There is no quota whose removal fails.", "ZooKeeper", last_quota, ("items",)),
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
        "There is no client-metrics setting.",
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
