"""Checks of topics and partitions, as ZooKeeper has them: what the copy to KRaft waits for, aborts on or invents."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from kit.kraft.analyze.phase import MIGRATION, POST_MIGRATION
from kit.kraft.analyze.preflight_checks import (
    CONTROLLERS,
    PreflightFacts,
    Problem,
    by_topic,
    check,
    few,
    unread,
    unread_znode,
)
from kit.tables.conditions import BLOCK, WARN
from kit.text.quantity import quantity

_ELECT = (
    "Let ZooKeeper's controller elect leaders: while every broker runs, delete /controller once. Then run the "
    "preflight again."
)
_RESTORE = (
    "Restore the znode from ZooKeeper's snapshots: offramp znodes. Do not delete the znode: no other place holds the "
    "topic's replica lists."
)


def unknown_replicas(facts: PreflightFacts) -> Iterator[Problem]:
    """Z01: a broker id that a replica list names and no broker has: the controllers wait for it for ever."""
    assert facts.control is not None
    if facts.facts.zk_state in (MIGRATION, POST_MIGRATION):
        return  # Everything is copied, and brokers in KRaft mode leave /brokers/ids.
    if (refused := facts.control.refused("/brokers/ids")) is not None:
        yield unread("/brokers/ids", f"{refused}.", is_refused=True)
        return
    yield from facts.unparsed()
    named = facts.copied_partitions.select(
        "topic", "partition", pl.concat_list("replicas", "adding", "removing").alias("id")
    )
    zombies = named.explode("id").filter(pl.col("id").is_not_null() & ~pl.col("id").is_in(facts.control.brokers))
    for number, topic, partition, n_partitions in (
        zombies.unique()
        .sort("topic", "partition")
        .group_by("id", maintain_order=True)
        .agg(pl.col("topic").first(), pl.col("partition").first(), pl.len().alias("n"))
        .sort("id")
        .iter_rows()
    ):
        yield Problem(
            f"broker {number}",
            f"Broker {number} is in the replica lists of {quantity(n_partitions, 'partition')} "
            f"(for example {topic}-{partition}), but not in /brokers/ids. The controllers would wait forever for "
            "this broker.",
            "Start that broker, or move its replicas to other brokers with kafka-reassign-partitions.",
        )


def broken_topics(facts: PreflightFacts) -> Iterator[Problem]:
    """Z04: a topic's znode that keeps the copy from beginning: controllers fail to see which brokers they wait for."""
    elect = facts.elected_anew(_ELECT)
    topics = facts.items_of("topic")
    wrong = topics.filter(pl.col("error").is_not_null())
    for topic, error, is_refused in wrong.select("entity", "error", "is_refused").iter_rows():
        if not topic or is_refused:
            yield unread(f"topic {topic}" if topic else "topics", f"{error}.", is_refused=is_refused)
        else:
            yield Problem(
                f"topic {topic}",
                f"{error}. The copy never begins, or aborts.",
                _RESTORE,
            )
    for topic in topics.filter(pl.col("error").is_null() & pl.col("value").is_null())["entity"].sort():
        yield Problem(f"topic {topic}", f"/brokers/topics/{topic} has no topic_id, so the copy never begins.", elect)
    ids = topics.filter(pl.col("value").is_not_null()).group_by("value").agg(pl.col("entity").sort())
    for topic_id, names in ids.filter(pl.col("entity").list.len() > 1).sort("value").iter_rows():
        yield Problem(
            f"topic {names[1]}",
            f"The topics {', '.join(names)} have the same id {topic_id}.",
            "Find out which znode was written manually, and restore it from ZooKeeper's snapshots: offramp znodes",
        )


def odd_states(facts: PreflightFacts) -> Iterator[Problem]:
    """Z05: a state that is missing or reports something that KRaft would take as it is. One problem per topic and
    kind."""
    assert facts.partitions is not None
    elect = facts.elected_anew(_ELECT)
    in_isr = pl.col("isr").list.set_difference(pl.col("replicas")).list.len() == 0
    known = pl.col("error").is_null()
    kinds = {
        "without a readable state, for which KRaft assumes a leader and an ISR of all replicas": ~known,
        "without a leader": known & pl.col("leader").is_null(),
        "with an empty ISR": known & (pl.col("isr").list.len() == 0),
        "with an ISR that names a broker without a replica": known & ~in_isr,
        "whose leader has not finished the recovery from an unclean election": known & (pl.col("recovery") > 0),
    }
    for condition, applies in kinds.items():
        partitions = facts.partitions.filter(applies)
        refusals = dict(partitions.filter(pl.col("is_refused")).select("topic", "error").iter_rows())
        for topic, numbers_, _ in by_topic(partitions):
            problem = Problem(f"topic {topic}", f"{topic} has partitions {condition}: {few(numbers_)}.", elect)
            is_refused = topic in refusals
            yield unread(f"topic {topic}", f"{refusals[topic]}.", is_refused=True) if is_refused else problem


def half_done(facts: PreflightFacts) -> Iterator[Problem]:
    """Z06: operations under way, which the copy loses or leaves half done."""
    assert facts.control is not None
    assert facts.partitions is not None
    yield from facts.unparsed()
    wait = "Wait until the reassignment or election has ended, then run the preflight again."
    queues = [each for each in facts.control.problem_rows if each.path.startswith("/admin/")]
    yield from map(unread_znode, queues)
    for topic in facts.control.pending_deletions:
        yield Problem(
            f"topic {topic}",
            f"The deletion of topic {topic} is pending. After the move its data would stay on disk in folders with "
            "the suffix -stray.",
            "Start the brokers that hold its replicas, and wait until the topic is deleted. If one of these brokers "
            f"can't return, continue; after the move, delete the folders {topic}-….-stray on the other brokers.",
        )
    if facts.control.n_reassignments:
        yield Problem(
            "/admin",
            "A reassignment or an election of preferred leaders is in progress in /admin. It would not be copied.",
            wait,
        )
    moving = (pl.col("adding").list.len() > 0) | (pl.col("removing").list.len() > 0)
    for topic, numbers_, _ in by_topic(facts.partitions.filter(moving)):
        yield Problem(f"topic {topic}", f"Replicas of {topic} are being moved: partitions {few(numbers_)}.", wait)


_READ = ("control", "partitions", "items")
CHECKS = (
    check(
        "Z01",
        BLOCK,
        CONTROLLERS,
        "Every broker id in a replica list is registered.",
        "ZooKeeper",
        unknown_replicas,
        _READ,
    ),
    check("Z04", BLOCK, CONTROLLERS, "Every topic's znode can be copied.", "ZooKeeper", broken_topics, _READ),
    check(
        "Z05",
        WARN,
        CONTROLLERS,
        "Every partition has a leader and an ISR of its replicas.",
        "ZooKeeper",
        odd_states,
        _READ,
    ),
    check(
        "Z06", WARN, CONTROLLERS, "No deletion, reassignment or election is under way.", "ZooKeeper", half_done, _READ
    ),
)
