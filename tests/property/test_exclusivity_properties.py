"""A truthful history is found clean, and one fault put into it is found, of the right kind."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.analyze.turns import EVICTION_MS
from kit.proof import Proof, prove
from tests.property.histories import History, ended, losing, stale, truthful, two_systems

often = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def proof_of(history: History, with_owners: bool = True, **options: Any) -> Proof:
    frames = history.frames()
    owners = frames["owner_history"] if with_owners else None
    return prove(frames["consumption"], frames["production"], owners, **options)


@often
@given(truthful())
def test_a_truthful_history_is_clean(made: Any) -> None:
    history, run = made
    proof = proof_of(ended(history, run))
    (row,) = proof.summary.to_dicts()
    assert row["is_exclusive"] is True, proof.told()
    assert (row["overlaps"], row["doubtful_overlaps"], row["unowned"]) == (0, 0, 0)
    assert (row["lost"], row["unread"], row["is_complete"]) == (0, 0, True)
    assert (row["duplicates_stale"], row["duplicates_tail"] + row["duplicates_rewind"]) == (0, run.tails)
    assert row["records"] == len(history.hand_outs) == len(run.log) + run.tails


@often
@given(truthful())
def test_without_owners_a_truthful_history_is_never_blamed(made: Any) -> None:
    history, run = made
    (row,) = proof_of(ended(history, run), with_owners=False).summary.to_dicts()
    assert row["is_exclusive"] is not False
    assert row["unowned"] is None
    assert row["duplicates_tail"] + row["duplicates_rewind"] == run.tails


@often
@given(stale(), st.booleans())
def test_a_stale_owner_is_found(made: Any, with_owners: bool) -> None:
    history, member = made
    proof = proof_of(history, with_owners)
    (row,) = proof.summary.to_dicts()
    assert row["is_exclusive"] is False
    assert row["overlaps"] >= 1
    involved = set(proof.overlaps["consumer"]) | set(proof.overlaps["successor"])
    assert member in involved
    assert row["is_complete"]
    if with_owners:
        assert set(proof.unowned_hand_outs["consumer"]) == {member}
        assert member in set(proof.overlaps.filter("is_certain")["consumer"])


@often
@given(losing(), st.booleans())
def test_lost_records_are_found_and_nothing_else(made: Any, with_owners: bool) -> None:
    history, gone = made
    proof = proof_of(history, with_owners)
    (row,) = proof.summary.to_dicts()
    assert row["lost"] == len(gone)
    assert row["is_complete"] is False
    assert row["is_exclusive"] is not False
    found = {offset for low, high in _ranges(proof.lost) for offset in range(low, high + 1)}
    assert gone <= found
    assert found - gone <= set(range(1000)) - {row.offset for row in history.produced}


@often
@given(truthful(), st.booleans())
def test_a_second_system_is_found(made: Any, with_owners: bool) -> None:
    history, run = made
    run.produce(4, 0)
    proof = proof_of(two_systems(ended(history, run)), with_owners)
    assert proof.summary["is_exclusive"].to_list() == [False]
    if with_owners:
        (unowned,) = proof.unowned_hand_outs.filter(consumer="kc")["is_registered"].unique().to_list()
        assert unowned is False


@often
@given(truthful())
def test_pauses_and_hand_overs_are_those_of_the_history(made: Any) -> None:
    history, run = made
    proof = proof_of(ended(history, run))
    rows = sorted(history.hand_outs, key=lambda row: (row.at_ms, row.offset))
    changes = [(old, new) for old, new in zip(rows, rows[1:]) if old.consumer != new.consumer]
    assert len(proof.handovers) == len(changes)
    assert sorted(proof.handovers["pause_ms"]) == sorted(new.at_ms - old.at_ms for old, new in changes)
    produced = {row.offset: row.at_ms for row in history.produced}
    seen, longest = {rows[0].offset}, 0
    for old, new in zip(rows, rows[1:]):
        if new.offset not in seen:
            longest = max(longest, new.at_ms - max(old.at_ms, produced[new.offset]))
        seen.add(new.offset)
    assert proof.pauses["longest_ms"].to_list() == [longest]
    assert (proof.pauses["waiting"].to_list(), proof.pauses["open_ms"].to_list()) == ([0], [None])


@often
@given(truthful())
def test_the_clock_skew_and_the_eviction_time_only_forgive(made: Any) -> None:
    history, run = made
    ended(history, run)
    for options in ({"clock_skew_ms": 10}, {"eviction_ms": EVICTION_MS // 2}):
        (row,) = proof_of(history, False, **options).summary.to_dicts()
        assert row["is_exclusive"] is not False


def _ranges(lost: pl.DataFrame) -> list[tuple[int, int]]:
    return lost.filter(fate="lost").select("first_offset", "last_offset").rows()
