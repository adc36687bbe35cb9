"""Checks of topics' settings and names, and of replicas before a roll."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from kit.kraft.analyze import topic_settings
from kit.kraft.analyze.preflight_checks import CONTROLLERS, PreflightFacts, Problem, by_topic, check, few, unread
from kit.tables.conditions import BLOCK, WARN

_LEGAL = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}\Z")


def odd_configs(facts: PreflightFacts) -> Iterator[Problem]:
    """Z11: settings that end a broker which starts, that KRaft refuses with the next change, or of no topic."""
    configs = facts.items_of("config").filter(pl.col("entity").str.starts_with("topics/") | (pl.col("entity") == ""))
    names = set(facts.items_of("topic")["entity"])
    is_listed = "" not in names  # A row without a topic: the topics can't be listed.
    orphans = set[str]()
    for entity, key, value, error, is_refused in (
        configs.select("entity", "item", "value", "error", "is_refused").sort("entity", "item").iter_rows()
    ):
        topic = entity.removeprefix("topics/")
        if error is not None:
            problem = Problem(
                f"topic {topic}" if topic else "topics",
                f"{error}.",
                "Write the znode in the format that brokers write.",
            )
            is_unread = not entity or is_refused
            yield unread(problem.subject, problem.sentence, is_refused=is_refused) if is_unread else problem
            continue
        wrong = topic_settings.wrong(key, value)
        if wrong is not None and (topic in names or key in topic_settings.KNOWN):
            yield _odd_config(topic, key, value, wrong)
        if topic not in names:
            orphans.add(topic)
    for topic in sorted(orphans):
        gone = f"/config/topics/{topic} exists, but the topic does not. The first full sync deletes this znode."
        unknown = f"/config/topics/{topic} exists, but whether the topic exists could not be read."
        advice = "Save these settings if you need them, and delete the znode."
        yield Problem(f"topic {topic}", gone, advice) if is_listed else unread(f"topic {topic}", unknown)


def _odd_config(topic: str, key: str, value: str | None, wrong: str) -> Problem:
    """Brokers of 3.9 ignore a setting that they don't know; a wrong value of one that they know ends them."""
    is_known = key in topic_settings.KNOWN
    ends = "In ZooKeeper or migration mode, a broker that starts now ends with an error. " if is_known else ""
    return Problem(
        f"topic {topic}",
        f"{topic} is set to {key}={value}: {wrong}. {ends}In KRaft mode, every later change of "
        "this topic's settings would be refused.",
        f"Remove {key} from the topic with kafka-configs.",
        severity=BLOCK if is_known else None,
    )


def odd_names(facts: PreflightFacts) -> Iterator[Problem]:
    """Z19: names of topics that KRaft doesn't take, and the block of producer ids."""
    for topic in facts.items_of("topic")["entity"].unique().sort():
        if topic == "__cluster_metadata" or (topic and not _LEGAL.match(topic)):
            yield Problem(f"topic {topic}", f"KRaft does not accept the topic name {topic!r}.", _COPY_FIRST)
    wrong = facts.items_of("producer_ids").filter(pl.col("error").is_not_null())
    for error, is_refused in wrong.select("error", "is_refused").iter_rows():
        problem = Problem("/latest_producer_id_block", f"{error}.", "Restart a broker: it writes the znode again.")
        yield unread(problem.subject, problem.sentence, is_refused=True) if is_refused else problem


def not_healthy(facts: PreflightFacts) -> Iterator[Problem]:
    """A06: partitions that a roll of brokers would take offline."""
    yield from facts.unparsed()
    partitions = facts.copied_partitions
    known = partitions.filter(pl.col("error").is_null())
    refused = set(partitions.filter(pl.col("is_refused"))["topic"])
    for topic, numbers, _ in by_topic(partitions.filter(pl.col("error").is_not_null())):
        sentence = f"The ISR of {topic} could not be read: partitions {few(numbers)}."
        yield unread(f"topic {topic}", sentence, is_refused=topic in refused)
    n_in_sync = pl.col("isr").list.len()
    kinds = {
        "offline": pl.col("leader").is_null(),
        "under-replicated": pl.col("leader").is_not_null() & (n_in_sync < pl.col("replicas").list.len()),
    }
    for condition, applies in kinds.items():
        for topic, numbers_, _ in by_topic(known.filter(applies)):
            yield Problem(
                f"topic {topic}",
                f"{topic} has {condition} partitions: {few(numbers_)}.",
                "Start the missing brokers, and wait until every replica is in sync.",
            )
    yield from _below_min(facts, known)


def _below_min(facts: PreflightFacts, known: pl.DataFrame) -> Iterator[Problem]:
    rows = facts.items_of("config").filter(
        pl.col("item") == "min.insync.replicas", pl.col("entity").str.starts_with("topics/")
    )
    least = rows.select(topic=pl.col("entity").str.slice(7), least=pl.col("value").cast(pl.Int64, strict=False))
    short = known.join(least, on="topic").filter(pl.col("isr").list.len().cast(pl.Int64) < pl.col("least"))
    for topic, numbers_, _ in by_topic(short):
        yield Problem(
            f"topic {topic}",
            f"{topic} has partitions with fewer replicas in sync than min.insync.replicas: {few(numbers_)}.",
            "Start the missing brokers, and wait until every replica is in sync.",
        )


_COPY_FIRST = "Copy its records to a topic with a legal name, and move its clients there. Then delete it."
_READ = ("control", "partitions", "items")
CHECKS = (
    check("Z11", WARN, CONTROLLERS, "Every setting of a topic is one that 3.9 takes.", "ZooKeeper", odd_configs, _READ),
    check(
        "Z19",
        WARN,
        CONTROLLERS,
        "Names of topics are legal, and the producer ids can be read.",
        "ZooKeeper",
        odd_names,
        _READ,
    ),
    check("A06", BLOCK, CONTROLLERS, "Every replica is in sync.", "ZooKeeper", not_healthy, _READ),
)
