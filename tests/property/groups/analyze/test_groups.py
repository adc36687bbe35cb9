"""An analysis keeps its invariants, whatever was read."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from kit import analyze
from kit.tables import schema as tables
from tests.generators.random_snapshots import ANALYSES, Names, Rows, member_shares_of, polars_frames, snapshots
from tests.soak import IS_SOAK

always = settings(max_examples=60 if IS_SOAK else 20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seldom = settings(always, max_examples=25 if IS_SOAK else 10)


def _lag_of(rows: Rows) -> pl.DataFrame:
    return ANALYSES["partition_lag"](polars_frames(rows))


@always
@given(snapshots())
def test_lag_is_never_negative_and_null_only_where_an_input_is(rows: Rows) -> None:
    key = ("group_id", "store", "topic", "partition")
    counted = {tuple(getattr(each, name) for name in key): each.unfinished for each in rows["committed_offsets"]}
    for row in _lag_of(rows).iter_rows(named=True):
        committed, start, end = (row[name] for name in ("committed_offset", "log_start_offset", "log_end_offset"))
        assert (row["lag"] is None) == (committed is None or end is None)
        assert (row["expired_unread"] is None) == (committed is None or start is None)
        assert (row["lag_retained"] is None) == (None in (committed, start, end))
        assert all(row[name] is None or row[name] >= 0 for name in ("lag", "lag_retained", "expired_unread"))
        count = counted.get(tuple(row[name] for name in key))
        assert row["lag"] is None or row["lag"] == (max(0, row["lag_raw"]) if count is None else count)


@always
@given(snapshots())
def test_a_missing_value_is_explained(rows: Rows) -> None:
    for row in _lag_of(rows).iter_rows(named=True):
        assert row["committed_offset"] is not None or row["has_no_commit"] or row["error"]
        assert (row["log_end_offset"] is not None and row["log_start_offset"] is not None) or row["error"]
        assert not (row["has_no_commit"] and row["committed_offset"] is not None)


@always
@given(snapshots())
def test_each_partition_is_counted_once_per_store(rows: Rows) -> None:
    keys = _lag_of(rows).select("group_id", "store", "topic", "partition")
    assert keys.is_duplicated().sum() == 0
    considered = {(row.group_id, row.topic, row.partition) for row in rows["ownership"] + rows["committed_offsets"]}
    assert considered <= {(row[0], *row[2:]) for row in keys.rows()} | _without_a_store(rows) | _left_with_nothing(rows)


def _without_a_store(rows: Rows) -> set[tuple[str, str, int]]:
    """Keys of groups whose only trace is an offset row that says nothing."""
    told = {row.group_id for row in rows["committed_offsets"] if row.committed_offset is not None or row.error}
    seen = told | {row.group_id for row in rows["ownership"] + rows["subscriptions"]}
    return {(row.group_id, row.topic, row.partition) for row in rows["committed_offsets"] if row.group_id not in seen}


def _left_with_nothing(rows: Rows) -> set[tuple[str, str, int]]:
    """Keys of offset rows without an offset, in a store that their group has left."""
    stale = set(ANALYSES["stale_stores"](polars_frames(rows)).select("group_id", "store").iter_rows())
    silent = [row for row in rows["committed_offsets"] if row.committed_offset is None]
    return {(row.group_id, row.topic, row.partition) for row in silent if (row.group_id, row.store) in stale}


@always
@given(snapshots())
def test_totals_are_the_sums_of_their_parts(rows: Rows) -> None:
    every = _lag_of(rows)
    lag = every.filter(~pl.col("is_stale"))
    for rollup in (analyze.member_lag, analyze.group_lag, analyze.topic_lag):
        totals = rollup(every)
        assert totals["n_partitions"].sum() == len(lag)
        for name in ("lag", "lag_retained", "expired_unread"):
            assert totals[name].sum() == lag[name].sum()
        assert totals["n_without_commit"].sum() == lag["has_no_commit"].sum()
        assert totals["n_unknown"].sum() == lag["lag"].is_null().sum()
        known = totals["n_partitions"] - totals["n_unknown"]
        assert ((known > 0) == totals["lag"].is_not_null()).all()


@always
@given(snapshots())
def test_shares_add_up_to_what_is_owned(rows: Rows) -> None:
    frames = polars_frames(rows)
    owned = {(r.group_id, r.source, r.member_id, r.topic, r.partition) for r in rows["ownership"] if r.member_id}
    shares, balance = member_shares_of(frames), ANALYSES["group_balance"](frames)
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
        shared = {(r.group_id, r.source) for r in rows["ownership"] if r.is_shared}
        if (group_id, source) in shared:
            assert group["fair_share"].is_null().all()  # Several members read each partition.
        elif known <= set(group["member_id"]):
            assert group["fair_share"].sum() == pytest.approx(size, abs=1e-9)


@always
@given(snapshots(), st.sets(st.sampled_from(Names.of(0).members)))
def test_canary_and_rest_are_the_whole(rows: Rows, canary: set[str]) -> None:
    shares = member_shares_of(polars_frames(rows))
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
