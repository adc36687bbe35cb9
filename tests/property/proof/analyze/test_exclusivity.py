"""A truthful history is found clean, one fault put into it is found, of the right kind; on Spark as on polars.

Many small histories, each a group of its own, are judged together: a proof costs the same for one as for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from pyspark.sql import SparkSession

from kit.proof.analyze.consumption_intervals import EVICTION_MS
from kit.proof.verify import Proof, prove
from kit.tables import schema as tables
from tests.generators.histories import History, arrow, by_hand, ended, frames, losing, stale, truthful, two_systems
from tests.soak import IS_SOAK, first

N_HISTORIES = 250
Made = list[tuple[History, Any]]


def many(strategy: Callable[[str], st.SearchStrategy[Any]], name: str) -> Made:
    """Histories drawn from a strategy, one group each."""
    made: Made = []

    @settings(
        max_examples=N_HISTORIES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        made.append(data.draw(strategy(f"{name}-{len(made)}")))

    collect()
    assert len(made) >= N_HISTORIES
    return made


def proof_of(made: Made, with_owners: bool = True, **options: Any) -> tuple[Proof, dict[str, dict[str, Any]]]:
    """The proof of all of them, and its summary by group."""
    given_frames = frames([history for history, _ in made])
    owners = given_frames["owner_history"] if with_owners else None
    # The simulation's clocks are one clock.
    proof = prove(given_frames["consumption"], given_frames["production"], owners, tolerance_ms=0, **options)
    return proof, {row["group_id"]: row for row in proof.summary.to_dicts()}


class ByGroup:
    """The rows of each group, taken apart once: a filter for each of hundreds of groups took longer than the proof."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._parts = {str(key): part for (key,), part in frame.partition_by("group_id", as_dict=True).items()}
        self._none = frame.clear()

    def __getitem__(self, group_id: str) -> pl.DataFrame:
        return self._parts.get(group_id, self._none)


@pytest.fixture(scope="module")
def true_histories() -> Made:
    return [(ended(history, run), run) for history, run in many(truthful, "true")]


@pytest.fixture(scope="module")
def stale_histories() -> Made:
    return many(stale, "stale")


@pytest.fixture(scope="module")
def losing_histories() -> Made:
    return many(losing, "losing")


@pytest.fixture(scope="module")
def doubled_histories() -> Made:
    return [(two_systems(ended(history, run)), run) for history, run in many(truthful, "doubled")]


@pytest.fixture(scope="module")
def true_proof(true_histories) -> tuple[Proof, dict[str, dict[str, Any]]]:
    return proof_of(true_histories)


def test_a_truthful_history_is_clean(true_histories, true_proof):
    proof, summary = true_proof
    assert proof.sentences.filter(~pl.col("finding").is_in(["tail", "rewind"])).is_empty(), proof.describe()
    for history, run in true_histories:
        row = summary[history.group_id]
        assert (row["is_exclusive"], row["is_complete"]) == (True, True)
        assert (row["overlaps"], row["doubtful_overlaps"], row["unowned"]) == (0, 0, 0)
        assert (row["lost"], row["unread"], row["open_stall_ms"]) == (0, 0, None)
        assert (row["duplicates_stale"], row["duplicates_tail"] + row["duplicates_rewind"]) == (0, run.tails)
        assert row["records"] == len(history.hand_outs) == len(run.log) + run.tails
    assert sum(row["duplicates_tail"] for row in summary.values()) > N_HISTORIES / 4


def test_without_owners_a_truthful_history_is_never_blamed_and_seldom_doubted(true_histories):
    _, summary = proof_of(true_histories, with_owners=False)
    assert all(row["is_exclusive"] is not False for row in summary.values())
    assert all(row["unowned"] is None for row in summary.values())
    doubted = sum(row["is_exclusive"] is None for row in summary.values())
    assert doubted < N_HISTORIES / 4


@pytest.mark.parametrize("options", [{"clock_skew_ms": 10}, {"eviction_ms": EVICTION_MS // 2}])
def test_the_clock_skew_and_a_shorter_eviction_time_only_forgive(true_histories, options):
    _, summary = proof_of(true_histories, with_owners=False, **options)
    assert all(row["is_exclusive"] is not False for row in summary.values())


def test_intervals_follow_one_another_in_a_truthful_history(true_histories, true_proof):
    proof, _ = true_proof
    found = ByGroup(proof.consumption_intervals.sort("first_at_ms", "last_at_ms", "first_offset"))
    for history, _ in true_histories:
        intervals = found[history.group_id].to_dicts()
        assert sum(interval["records"] for interval in intervals) == len(history.hand_outs)
        assert all(before["last_at_ms"] <= after["first_at_ms"] for before, after in pairwise(intervals))


@pytest.mark.parametrize("with_owners", [True, False])
def test_a_stale_owner_is_found(stale_histories, with_owners):
    proof, summary = proof_of(stale_histories, with_owners)
    certain = ByGroup(proof.overlaps.filter("is_certain"))
    unowned = ByGroup(proof.unowned_consumption) if with_owners else None
    for history, member in stale_histories:
        row = summary[history.group_id]
        assert (row["is_exclusive"], row["is_complete"]) == (False, True)
        overlaps = certain[history.group_id]
        assert member in set(overlaps["consumer"]) | set(overlaps["successor"])
        if unowned is not None:
            assert member in set(overlaps["consumer"])
            assert set(unowned[history.group_id]["consumer"]) == {member}


@pytest.mark.parametrize("with_owners", [True, False])
def test_lost_records_are_found_and_nothing_else(losing_histories, with_owners):
    proof, summary = proof_of(losing_histories, with_owners)
    lost = ByGroup(proof.lost)
    for history, gone in losing_histories:
        row = summary[history.group_id]
        assert (row["lost"], row["unread"], row["is_complete"]) == (len(gone), 0, False)
        assert row["is_exclusive"] is not False
        ranges = lost[history.group_id].select("first_offset", "last_offset").rows()
        produced = {record.offset for record in history.produced}
        assert {offset for low, high in ranges for offset in range(low, high + 1)} & produced == gone


@pytest.mark.parametrize("with_owners", [True, False])
def test_a_second_system_is_found(doubled_histories, with_owners):
    proof, summary = proof_of(doubled_histories, with_owners)
    for history, _ in doubled_histories:
        times = [row.at_ms for row in history.hand_outs if row.consumer == "kc"]
        is_crossed = any(min(times) < row.at_ms < max(times) for row in history.hand_outs if row.consumer != "kc")
        assert summary[history.group_id]["is_exclusive"] is not is_crossed
    assert sum(row["is_exclusive"] is False for row in summary.values()) > N_HISTORIES / 2
    if with_owners:
        assert not proof.unowned_consumption.is_empty()
        assert set(proof.unowned_consumption.select("consumer", "is_registered").rows()) == {("kc", False)}


def test_stalls_and_hand_overs_are_those_of_the_history(true_histories, true_proof):
    proof, _ = true_proof
    handovers, stalls = ByGroup(proof.handovers), ByGroup(proof.stalls)
    for history, _ in true_histories:
        rows = sorted(history.hand_outs, key=lambda row: (row.at_ms, row.offset))
        changes = [(old, new) for old, new in pairwise(rows) if old.consumer != new.consumer]
        assert sorted(handovers[history.group_id]["gap_ms"]) == sorted(new.at_ms - old.at_ms for old, new in changes)
        produced = {row.offset: row.at_ms for row in history.produced}
        first: dict[int, int] = {}
        for row in rows:
            first.setdefault(row.offset, row.at_ms)
        ends = sorted((at_ms, offset) for offset, at_ms in first.items())
        longest = max(
            (at - max(before, produced[offset]) for (before, _), (at, offset) in pairwise(ends)), default=None
        )
        found = stalls[history.group_id].select("longest_ms", "waiting", "open_ms")
        assert found.rows() == [(longest, 0, None)]


@pytest.fixture(scope="module")
def all_histories(true_histories, stale_histories, losing_histories, doubled_histories) -> list[History]:
    drawn = [
        history
        for made in (true_histories, stale_histories, losing_histories, doubled_histories)
        for history, _ in made
    ]
    return [*drawn, *by_hand().values()]


@pytest.mark.slow
@pytest.mark.parametrize("with_owners", first([False, True]))
def test_spark_and_polars_agree(spark: SparkSession, all_histories: list[History], with_owners: bool) -> None:
    """The long form takes all histories, else every eighth is taken."""
    rows = arrow(all_histories if IS_SOAK else all_histories[::8])
    if not with_owners:
        del rows["owner_history"]
    spark_frames = {
        name: spark.createDataFrame(table, schema=getattr(tables, name.upper()).spark_row_schema)
        for name, table in rows.items()
    }
    expected = prove(**{name: pl.DataFrame(table) for name, table in rows.items()})
    found = prove(**spark_frames)
    for each in fields(Proof):
        mine, theirs = getattr(expected, each.name), getattr(found, each.name)
        if mine is not None:
            assert theirs.schema == mine.schema
            assert _sorted(theirs) == _sorted(mine)
            assert len(mine) > 10
    assert (found.unowned_consumption is not None) == with_owners


@pytest.fixture(scope="module")
def all_frames(all_histories) -> dict[str, pl.DataFrame]:
    return frames(all_histories)


@pytest.fixture(scope="module")
def all_proofs(all_frames) -> Proof:
    return prove(**all_frames)


def test_the_order_of_rows_does_not_matter(all_frames, all_proofs):
    backwards = prove(**{name: frame.reverse() for name, frame in all_frames.items()})
    for each in fields(Proof):
        assert _sorted(getattr(backwards, each.name)) == _sorted(getattr(all_proofs, each.name))


def test_nothing_gives_empty_tables_of_the_same_shape(all_frames, all_proofs):
    none = prove(**{name: frame.clear() for name, frame in all_frames.items()})
    for each in fields(Proof):
        assert getattr(none, each.name).is_empty()
        assert getattr(none, each.name).schema == getattr(all_proofs, each.name).schema


def _sorted(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    return sorted(frame.rows(), key=lambda row: tuple((value is None, str(value)) for value in row))
