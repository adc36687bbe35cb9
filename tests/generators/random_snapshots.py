"""Random snapshots of small groups, and every analysis as a function of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import narwhals as nw
import polars as pl
from hypothesis import strategies as st

from kit import analyze
from kit.tables import schema as tables
from kit.tables.groups import (
    KAFKA,
    ZOOKEEPER,
    Broker,
    CommittedOffset,
    Group,
    LogOffset,
    Member,
    MigrationState,
    Ownership,
    Subscription,
    TopicPartition,
)

Rows = dict[str, list[Any]]


class Frames(dict[str, Any]):
    """The tables of one snapshot by name. What several analyses build on is made once, and kept by Spark."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        super().__init__(tables)
        self._kept: dict[Callable[[Frames], Any], Any] = {}

    def once(self, analysis: Callable[[Frames], Any]) -> Any:
        if analysis not in self._kept:
            made = analysis(self)
            self._kept[analysis] = made if isinstance(made, pl.DataFrame | pl.LazyFrame) else made.cache()
        return self._kept[analysis]


TABLES = (
    tables.BROKERS,
    tables.TOPIC_PARTITIONS,
    tables.GROUPS,
    tables.MEMBERS,
    tables.SUBSCRIPTIONS,
    tables.OWNERSHIP,
    tables.COMMITTED_OFFSETS,
    tables.LOG_OFFSETS,
    tables.MIGRATION_STATES,
)
READINESS = ("groups", "members", "ownership", "committed_offsets", "migration_states")
TOPICS = ("subscriptions", "topic_partitions")


def _lag(frames: Frames) -> Any:
    names = ("committed_offsets", "log_offsets", "ownership", *TOPICS, "groups")
    return analyze.partition_lag(*(frames[name] for name in names), frames.once(STALE))


def member_shares_of(frames: Frames) -> Any:
    return analyze.member_shares(*(frames[name] for name in ("members", "ownership", *TOPICS)))


def _take(analysis: Callable[..., Any], *names: str) -> Callable[[Frames], Any]:
    return lambda frames: analysis(*(frames[name] for name in names))


def _findings(frames: Frames) -> Any:
    names = ("groups", "members", "ownership", *TOPICS, "committed_offsets")
    return analyze.ownership_findings(*(frames[name] for name in names), frames.once(STALE))


def _group_lag(frames: Frames) -> Any:
    return analyze.group_lag(frames.once(_lag))


def _group_balance(frames: Frames) -> Any:
    return analyze.group_balance(frames.once(member_shares_of))


STALE = _take(analyze.stale_stores, "committed_offsets", "members", "groups")
OWNERS = _take(analyze.partition_owners, "ownership", "members", *TOPICS)
READY = _take(analyze.readiness, *READINESS, *TOPICS)


def _summary(frames: Frames) -> Any:
    return analyze.group_summary(
        groups=frames["groups"],
        readiness=frames.once(READY),
        group_lag=frames.once(_group_lag),
        group_balance=frames.once(_group_balance),
        ownership_findings=frames.once(_findings),
        partition_owners=frames.once(OWNERS),
        stale_stores=frames.once(STALE),
        members=frames["members"],
    )


def _idle(frames: Frames) -> Any:
    """Times and names are made of what the frames have: offsets, members."""
    offsets, members = (nw.from_native(frames[name]) for name in ("committed_offsets", "members"))
    day = 86_400_000
    written = offsets.with_columns(written_ms=nw.when(nw.col("partition") < 2).then(nw.col("partition") * 5 * day))
    seen = members.group_by("group_id", "source").agg(n=nw.len())
    seen = seen.select(
        "group_id", store="source", committed_ms=nw.lit(None, nw.Int64), present_ms=nw.col("n") * 2 * day
    )
    is_some = members.select("group_id", "source", "member_id", "session_id").filter(
        nw.col("member_id").str.ends_with("_1")
    )
    tables = (frames["groups"], is_some.to_native(), written.to_native(), frames["topic_partitions"])
    return analyze.idle_groups(*tables, frames.once(_group_lag), 10 * day, seen.to_native())


def _other_lag(frames: Frames) -> Any:
    """Another snapshot's lag: of the owners of then."""
    return _lag(Frames({**frames, "ownership": frames["later_ownership"]}))


ANALYSES: dict[str, Callable[[Frames], Any]] = {
    "partition_lag": _lag,
    "partition_lag without groups": _take(
        analyze.partition_lag, "committed_offsets", "log_offsets", "ownership", *TOPICS
    ),
    "lag_definitions": lambda frames: analyze.lag_definitions(frames.once(_lag)),
    "lag_explained": lambda frames: analyze.lag_explained(frames.once(_lag)),
    "member_lag": lambda frames: analyze.member_lag(frames.once(_lag)),
    "group_lag": _group_lag,
    "topic_lag": lambda frames: analyze.topic_lag(frames.once(_lag)),
    "partition_owners": OWNERS,
    "ownership_findings": _take(
        analyze.ownership_findings, "groups", "members", "ownership", *TOPICS, "committed_offsets"
    ),
    "member_flavours": _take(analyze.member_flavours, "members"),
    "member_shares": member_shares_of,
    "thread_shares": _take(analyze.thread_shares, "members", "ownership", "subscriptions"),
    "group_balance": _group_balance,
    "canary_share": lambda frames: analyze.canary_share(
        frames.once(member_shares_of), [f"e{n}-g0_0" for n in range(0, 200, 2)]
    ),
    "group_summary": _summary,
    "finding_summary": lambda frames: analyze.finding_summary(frames.once(_findings)),
    "idle_groups": _idle,
    "lag_change": lambda frames: analyze.lag_change(
        frames.once(_group_lag), analyze.group_lag(frames.once(_other_lag))
    ),
    "partition_progress": lambda frames: analyze.partition_progress(frames.once(_lag), frames.once(_other_lag)),
    "canary_share of no one": lambda frames: analyze.canary_share(frames.once(member_shares_of), []),
    "broker_load": _take(analyze.broker_load, "topic_partitions", "brokers"),
    "topic_skew": _take(analyze.topic_skew, "topic_partitions", "brokers"),
    "stickiness": _take(analyze.stickiness, "ownership", "later_ownership"),
    "stale_stores": STALE,
    "store_parity": _take(analyze.store_parity, "committed_offsets", "groups"),
    "group_parity": lambda frames: analyze.group_parity(analyze.store_parity(frames["committed_offsets"])),
    "blockers": _take(analyze.blockers, *READINESS, *TOPICS),
    "readiness": READY,
    "protocol_stages": _take(analyze.protocol_stages, "groups", "members"),
}


# -- random snapshots ------------------------------------------------------------------------------------------------

ERRORS = st.sampled_from([None, None, None, "NOT_COORDINATOR", "no authentication"])
OFFSETS = st.one_of(st.none(), st.integers(0, 30), st.sampled_from([2**31, 2**52]))
PARTITIONS = st.integers(0, 3)
SOURCES = st.sampled_from([ZOOKEEPER, KAFKA])


@dataclass(frozen=True)
class Names:
    """The names in the tables of one snapshot; the prefix keeps snapshots apart when they are put together."""

    topics: tuple[str, ...]
    groups: tuple[str, ...]
    members: tuple[str, ...]
    brokers: tuple[int, ...]

    @staticmethod
    def of(number: int) -> Names:
        groups = tuple(f"e{number}-g{n}" for n in range(2))
        members = tuple(f"{group}_{n}" for group in groups for n in range(2))
        return Names(
            tuple(f"e{number}-t{n}" for n in range(2)),
            groups,
            (*members, f"{groups[0]}_0-kc", *(f"k-{member}" for member in members)),
            tuple(number * 10 + n for n in range(4)),
        )


def _rows(row: type, key: tuple[str, ...], **columns: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Up to eight rows of a class, no key twice; columns that aren't given are null."""
    given_columns = {each.name: columns.get(each.name, st.none()) for each in fields(row)}
    return st.lists(
        st.builds(row, **given_columns), max_size=8, unique_by=lambda made: tuple(getattr(made, name) for name in key)
    )


def strategies(names: Names) -> dict[str, st.SearchStrategy[list[Any]]]:
    groups, topics, members = map(st.sampled_from, (names.groups, names.topics, names.members))
    broker = st.sampled_from(names.brokers)
    replicas = st.lists(broker, unique=True, max_size=3).map(tuple)
    member = {"group_id": groups, "source": SOURCES, "member_id": members}
    place = {"group_id": groups, "topic": topics, "partition": PARTITIONS}
    ownership = _rows(
        Ownership,
        ("group_id", "source", "topic", "partition", "member_id"),
        **place,
        source=SOURCES,
        member_id=st.one_of(st.none(), members),
        thread_id=st.one_of(st.none(), members.map(lambda name: f"{name}-0")),
        error=ERRORS,
        is_shared=st.sampled_from([None, None, False, True]),
    )
    return {
        "brokers": _rows(Broker, ("broker_id",), broker_id=broker, host=st.sampled_from(["a", None]), error=ERRORS),
        "topic_partitions": _rows(
            TopicPartition,
            ("topic", "partition"),
            topic=topics,
            partition=PARTITIONS,
            is_internal=st.booleans(),
            leader=st.one_of(st.none(), broker),
            replicas=replicas,
            isr=replicas,
            error=ERRORS,
        ),
        "groups": _rows(
            Group,
            ("group_id", "source"),
            group_id=groups,
            source=SOURCES,
            state=st.sampled_from([None, "Stable", "Empty", "PreparingRebalance"]),
            error=ERRORS,
        ),
        "members": _rows(
            Member,
            ("group_id", "source", "member_id"),
            **member,
            client_id=st.one_of(st.none(), members),
            in_migration_ids=st.sampled_from([True, True, False, None]),
            error=ERRORS,
        ),
        "subscriptions": _rows(
            Subscription,
            ("group_id", "source", "member_id", "topic"),
            **member,
            topic=topics,
            n_threads=st.integers(0, 7),
        ),
        "ownership": ownership,
        "later_ownership": ownership,
        "committed_offsets": _rows(
            CommittedOffset,
            ("group_id", "store", "topic", "partition"),
            **place,
            store=SOURCES,
            committed_offset=OFFSETS,
            error=ERRORS,
            unfinished=st.one_of(st.none(), st.none(), st.integers(0, 30)),
        ),
        "log_offsets": _rows(
            LogOffset,
            ("topic", "partition"),
            topic=topics,
            partition=PARTITIONS,
            log_start_offset=OFFSETS,
            log_end_offset=OFFSETS,
            error=ERRORS,
        ),
        "migration_states": _rows(
            MigrationState,
            ("group_id",),
            group_id=groups,
            mode=st.sampled_from([None, "kafka", "kafka", "zookeeper", "kafka\n"]),
            error=ERRORS,
        ),
    }


def snapshots(number: int = 0) -> st.SearchStrategy[Rows]:
    return st.fixed_dictionaries(strategies(Names.of(number)))


def arrow(rows: Rows) -> Frames:
    found = {table.name: table.from_rows(rows[table.name]) for table in TABLES}
    return Frames(found | {"later_ownership": tables.OWNERSHIP.from_rows(rows["later_ownership"])})


def polars_frames(rows: Rows) -> Frames:
    return Frames({name: pl.from_arrow(table) for name, table in arrow(rows).items()})


def nothing() -> Rows:
    return {name: [] for name in strategies(Names.of(0))}
