"""Every analysis over random snapshots: the same rows on Spark and on polars, and what must always hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from kit import analyze, tables
from kit.model import (
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
Frames = dict[str, Any]
N_SNAPSHOTS = 80
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
    return analyze.partition_lag(*(frames[name] for name in names))


def _shares(frames: Frames) -> Any:
    return analyze.member_shares(*(frames[name] for name in ("members", "ownership", *TOPICS)))


def _take(analysis: Callable[..., Any], *names: str) -> Callable[[Frames], Any]:
    return lambda frames: analysis(*(frames[name] for name in names))


ANALYSES: dict[str, Callable[[Frames], Any]] = {
    "partition_lag": _lag,
    "partition_lag without groups": _take(
        analyze.partition_lag, "committed_offsets", "log_offsets", "ownership", *TOPICS
    ),
    "member_lag": lambda frames: analyze.member_lag(_lag(frames)),
    "group_lag": lambda frames: analyze.group_lag(_lag(frames)),
    "topic_lag": lambda frames: analyze.topic_lag(_lag(frames)),
    "partition_owners": _take(analyze.partition_owners, "ownership", "members", *TOPICS),
    "ownership_findings": _take(
        analyze.ownership_findings, "groups", "members", "ownership", *TOPICS, "committed_offsets"
    ),
    "member_flavours": _take(analyze.member_flavours, "members"),
    "member_shares": _shares,
    "thread_shares": _take(analyze.thread_shares, "members", "ownership", "subscriptions"),
    "group_balance": lambda frames: analyze.group_balance(_shares(frames)),
    "canary_share": lambda frames: analyze.canary_share(_shares(frames), [f"e{n}-g0_0" for n in range(0, 200, 2)]),
    "canary_share of no one": lambda frames: analyze.canary_share(_shares(frames), []),
    "broker_load": _take(analyze.broker_load, "topic_partitions", "brokers"),
    "topic_skew": _take(analyze.topic_skew, "topic_partitions", "brokers"),
    "stickiness": _take(analyze.stickiness, "ownership", "later_ownership"),
    "store_parity": _take(analyze.store_parity, "committed_offsets", "groups"),
    "group_parity": lambda frames: analyze.group_parity(analyze.store_parity(frames["committed_offsets"])),
    "blockers": _take(analyze.blockers, *READINESS, *TOPICS),
    "readiness": _take(analyze.readiness, *READINESS, *TOPICS),
}


# -- random snapshots ------------------------------------------------------------------------------------------------

ERRORS = st.sampled_from([None, None, None, "NOT_COORDINATOR", "no authentication"])
OFFSETS = st.one_of(st.none(), st.integers(0, 30), st.sampled_from([2**31, 2**52]))
PARTITIONS = st.integers(0, 3)
SOURCES = st.sampled_from([ZOOKEEPER, KAFKA])


@dataclass(frozen=True)
class Names:
    """What the tables of one snapshot refer to; the prefix keeps snapshots apart when they are put together."""

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


def _strategies(names: Names) -> dict[str, st.SearchStrategy[list[Any]]]:
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
    return st.fixed_dictionaries(_strategies(Names.of(number)))


def arrow(rows: Rows) -> Frames:
    found = {table.name: table.from_rows(rows[table.name]) for table in TABLES}
    return found | {"later_ownership": tables.OWNERSHIP.from_rows(rows["later_ownership"])}


def polars_frames(rows: Rows) -> Frames:
    return {name: pl.from_arrow(table) for name, table in arrow(rows).items()}


# -- equal on Spark and polars ---------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def many() -> Rows:
    """Many random snapshots put together: a Spark job costs the same for one as for all of them."""
    together: Rows = {name: [] for name in _strategies(Names.of(0))}

    @settings(max_examples=N_SNAPSHOTS, derandomize=True, database=None, phases=[Phase.generate])
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        for name, rows in data.draw(snapshots(len(counted))).items():
            together[name] += rows
        counted.append(1)

    counted: list[int] = []
    collect()
    assert len(counted) >= N_SNAPSHOTS
    return together


@pytest.fixture(scope="session")
def spark_frames(spark: SparkSession, many: Rows) -> Frames:
    return {name: _stamped(spark, name, rows) for name, rows in arrow(many).items()}


@pytest.fixture(scope="session")
def empty_spark_frames(spark: SparkSession) -> Frames:
    return {name: _stamped(spark, name, rows) for name, rows in arrow(_nothing()).items()}


def _stamped(spark: SparkSession, name: str, rows: Any) -> DataFrame:
    """As stored: with snapshot_id and observed_at, which the polars frames here don't have."""
    table = tables.OWNERSHIP if name == "later_ownership" else next(table for table in TABLES if table.name == name)
    stamped = table.stamp(rows, "s1", datetime(2026, 1, 1, tzinfo=UTC))
    return spark.createDataFrame(stamped).cache()


def _nothing() -> Rows:
    return {name: [] for name in _strategies(Names.of(0))}


def _sorted(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    return sorted(frame.rows(), key=lambda row: tuple((value is None, str(value)) for value in row))


@pytest.mark.parametrize("name", ANALYSES)
def test_spark_and_polars_agree(name: str, many: Rows, spark_frames: Frames) -> None:
    expected = ANALYSES[name](polars_frames(many))
    found = pl.from_arrow(ANALYSES[name](spark_frames).toArrow())
    assert len(expected) > 10
    assert found.schema == expected.schema
    assert _sorted(found) == _sorted(expected)


@pytest.mark.parametrize("name", ANALYSES)
def test_empty_tables_give_an_empty_table_of_the_same_shape(name: str, many: Rows) -> None:
    found = ANALYSES[name](polars_frames(_nothing()))
    assert found.is_empty()
    assert found.schema == ANALYSES[name](polars_frames(many)).schema


@pytest.mark.parametrize("name", ["topic_skew", "partition_lag", "group_balance"])
def test_empty_tables_give_no_row_on_spark_either(name: str, empty_spark_frames: Frames) -> None:
    assert ANALYSES[name](empty_spark_frames).isEmpty()


@pytest.mark.parametrize("name", ANALYSES)
def test_a_lazy_frame_stays_lazy_and_gives_the_same_rows(name: str, many: Rows) -> None:
    eager = polars_frames(many)
    lazy = ANALYSES[name]({name: frame.lazy() for name, frame in eager.items()})
    assert isinstance(lazy, pl.LazyFrame)
    assert _sorted(lazy.collect()) == _sorted(ANALYSES[name](eager))


@pytest.mark.parametrize("name", ANALYSES)
def test_the_order_of_rows_does_not_matter(name: str, many: Rows) -> None:
    backwards = {table: rows[::-1] for table, rows in many.items()}
    assert _sorted(ANALYSES[name](polars_frames(backwards))) == _sorted(ANALYSES[name](polars_frames(many)))


# -- what always holds -----------------------------------------------------------------------------------------------

always = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seldom = settings(always, max_examples=25)


def _lag_of(rows: Rows) -> pl.DataFrame:
    return ANALYSES["partition_lag"](polars_frames(rows))


@always
@given(snapshots())
def test_lag_is_never_negative_and_null_only_where_an_input_is(rows: Rows) -> None:
    for row in _lag_of(rows).iter_rows(named=True):
        committed, start, end = (row[name] for name in ("committed_offset", "log_start_offset", "log_end_offset"))
        assert (row["lag"] is None) == (committed is None or end is None)
        assert (row["lost"] is None) == (committed is None or start is None)
        assert (row["lag_retained"] is None) == (None in (committed, start, end))
        assert all(row[name] is None or row[name] >= 0 for name in ("lag", "lag_retained", "lost"))
        assert row["lag"] is None or row["lag"] == max(0, row["lag_raw"])


@always
@given(snapshots())
def test_a_missing_value_is_explained(rows: Rows) -> None:
    for row in _lag_of(rows).iter_rows(named=True):
        assert row["committed_offset"] is not None or row["uncommitted"] or row["error"]
        assert (row["log_end_offset"] is not None and row["log_start_offset"] is not None) or row["error"]
        assert not (row["uncommitted"] and row["committed_offset"] is not None)


@always
@given(snapshots())
def test_each_partition_is_counted_once_per_store(rows: Rows) -> None:
    keys = _lag_of(rows).select("group_id", "store", "topic", "partition")
    assert keys.is_duplicated().sum() == 0
    considered = {(row.group_id, row.topic, row.partition) for row in rows["ownership"] + rows["committed_offsets"]}
    assert considered <= {(row[0], *row[2:]) for row in keys.rows()} | _without_a_store(rows)


def _without_a_store(rows: Rows) -> set[tuple[str, str, int]]:
    """Keys of groups whose only trace is an offset row that says nothing."""
    told = {row.group_id for row in rows["committed_offsets"] if row.committed_offset is not None or row.error}
    seen = told | {row.group_id for row in rows["ownership"] + rows["subscriptions"]}
    return {(row.group_id, row.topic, row.partition) for row in rows["committed_offsets"] if row.group_id not in seen}


@always
@given(snapshots())
def test_totals_are_the_sums_of_their_parts(rows: Rows) -> None:
    lag = _lag_of(rows)
    for rollup in (analyze.member_lag, analyze.group_lag, analyze.topic_lag):
        totals = rollup(lag)
        assert totals["n_partitions"].sum() == len(lag)
        for name in ("lag", "lag_retained", "lost"):
            assert totals[name].sum() == lag[name].sum()
        assert totals["n_uncommitted"].sum() == lag["uncommitted"].sum()
        known = totals["n_partitions"] - totals["n_unknown"] - totals["n_uncommitted"]
        assert ((known > 0) == totals["lag"].is_not_null()).all()


@always
@given(snapshots())
def test_shares_add_up_to_what_is_owned(rows: Rows) -> None:
    frames = polars_frames(rows)
    owned = {(r.group_id, r.source, r.member_id, r.topic, r.partition) for r in rows["ownership"] if r.member_id}
    shares, balance = _shares(frames), ANALYSES["group_balance"](frames)
    assert shares["n_partitions"].sum() == len(owned)
    assert balance["n_partitions"].sum() == len(owned)
    assert balance["n_members"].sum() == len(shares)
    assert (balance.filter(pl.col("n_partitions") > 0)["max_over_mean"] >= 1).all()
    for (group_id, source), group in shares.group_by("group_id", "source"):
        subscribed = {
            r.topic for r in rows["subscriptions"] if (r.group_id, r.source) == (group_id, source) and r.n_threads
        }
        size = sum(1 for r in rows["topic_partitions"] if r.topic in subscribed and r.replicas)
        known = {r.member_id for r in rows["subscriptions"] if (r.group_id, r.source) == (group_id, source)}
        if known <= set(group["member_id"]):
            assert group["fair_share"].sum() == pytest.approx(size, abs=1e-9)


@always
@given(snapshots(), st.sets(st.sampled_from(Names.of(0).members)))
def test_canary_and_rest_are_the_whole(rows: Rows, canary: set[str]) -> None:
    shares = _shares(polars_frames(rows))
    canaries = analyze.canary_share(shares, canary)
    assert (canaries["canary_partitions"] + canaries["rest_partitions"] == canaries["n_partitions"]).all()
    assert canaries["n_partitions"].sum() == shares["n_partitions"].sum()
    assert canaries["n_canaries"].sum() == shares["member_id"].is_in(list(canary)).sum()
    assert canaries.filter(pl.col("n_canaries") == 0)["share_ratio"].null_count() == (canaries["n_canaries"] == 0).sum()


@seldom
@given(snapshots())
def test_every_known_group_has_one_stage_and_a_next_step(rows: Rows) -> None:
    frames = polars_frames(rows)
    ready = ANALYSES["readiness"](frames)
    known = {row.group_id for name in ("groups", "members", "migration_states") for row in rows[name]}
    assert sorted(ready["group_id"]) == sorted(known)
    assert set(ready["stage"]) <= set(analyze.STAGES)
    assert ready["next_step"].null_count() == 0
    assert ready["n_blockers"].sum() == len(ANALYSES["blockers"](frames).filter(pl.col("group_id").is_in(list(known))))


@seldom
@given(snapshots())
def test_every_finding_and_blocker_is_a_sentence_that_names_its_group(rows: Rows) -> None:
    frames = polars_frames(rows)
    for name in ("ownership_findings", "blockers"):
        for row in ANALYSES[name](frames).iter_rows(named=True):
            assert row["sentence"].startswith(f"Group {row['group_id']}: ")
            assert row["sentence"].endswith(".")


@always
@given(snapshots())
def test_sticky_counts_cover_both_snapshots(rows: Rows) -> None:
    same = analyze.stickiness(*[pl.from_arrow(tables.OWNERSHIP.from_rows(rows["ownership"]))] * 2)
    assert (same["n_moved"] + same["n_gained"] + same["n_lost"]).sum() == 0
    assert set(same["stickiness"].drop_nulls()) <= {1.0}
    both = ANALYSES["stickiness"](polars_frames(rows))
    keys = {(r.group_id, r.source, r.topic, r.partition) for r in rows["ownership"] + rows["later_ownership"]}
    counted = both.select(pl.sum_horizontal("n_kept", "n_moved", "n_gained", "n_lost", "n_unknown")).to_series()
    assert counted.sum() <= len(keys)
    assert (both["n_partitions"] == both["n_kept"] + both["n_moved"] + both["n_lost"]).all()


@always
@given(snapshots())
def test_parity_has_one_verdict_per_partition(rows: Rows) -> None:
    frames = polars_frames(rows)
    parity = analyze.store_parity(frames["committed_offsets"], frames["groups"])
    assert parity.select("group_id", "topic", "partition").is_duplicated().sum() == 0
    assert set(parity["verdict"]) <= set(analyze.VERDICTS)
    totals = analyze.group_parity(parity)
    counts = totals.select(pl.sum_horizontal(*[f"n_{verdict}" for verdict in analyze.VERDICTS])).to_series()
    assert (counts == totals["n_partitions"]).all()
    both = parity.filter(pl.col("difference").is_not_null())
    assert ((both["difference"] > 0) == (both["verdict"] == "kafka_ahead")).all()
