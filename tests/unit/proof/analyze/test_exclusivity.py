"""Hand-made histories of which the verdict is known."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from kit import analyze
from kit.proof.verify import Proof, prove
from tests.generators.histories import START_MS, History, by_hand, frames


@pytest.fixture(scope="module")
def written() -> dict[str, History]:
    return by_hand()


@pytest.fixture(scope="module")
def proof(written) -> Proof:
    """The proof of all written histories by their offsets alone: each is a group."""
    rows = frames(list(written.values()))
    return prove(rows["consumption"], rows["production"])


def proof_of(history: History, with_owners: bool = False, **options) -> Proof:
    rows = history.frames()
    owners = rows["owner_history"] if with_owners else None
    return prove(rows["consumption"], rows["production"], owners, **options)


def verdict_of(history: History, with_owners: bool = False, **options) -> dict:
    (row,) = proof_of(history, with_owners, **options).summary.to_dicts()
    return row


def intervals_of(proof: Proof, name: str) -> list[tuple]:
    columns = ("consumer", "first_at_ms", "last_at_ms", "first_offset", "last_offset", "records")
    found = proof.consumption_intervals.filter(group_id=name).sort("first_at_ms", "first_offset")
    intervals = found.select(columns).rows()
    return [(who, first - START_MS, last - START_MS, *rest) for who, first, last, *rest in intervals]


@pytest.mark.parametrize(
    ("name", "is_exclusive", "overlaps", "doubtful"),
    [
        ("quick there and back", True, 0, 0),
        ("there and back within a ms", True, 0, 0),
        ("killed", True, 0, 0),
        ("stale after a stop", False, 1, 0),
        ("stale by one record in the next ms", False, 1, 0),
        ("stale with other offsets", False, 1, 0),
        ("stale while the successor idles", None, 0, 1),
        ("same offsets side by side", False, 1, 0),
        ("slow second reader", False, 1, 0),
        ("second system from the beginning", False, 1, 0),
        ("lost and unread", True, 0, 0),
        ("rewound", True, 0, 0),
        ("stuck", True, 0, 0),
        ("tail read exactly", None, 0, 1),
    ],
)
def test_the_offsets_alone_decide(proof, name, is_exclusive, overlaps, doubtful):
    (row,) = proof.summary.filter(group_id=name).to_dicts()
    assert (row["is_exclusive"], row["overlaps"], row["doubtful_overlaps"]) == (is_exclusive, overlaps, doubtful)
    assert row["unowned"] is None


def test_intervals_of_a_quick_change_of_owners(proof):
    assert intervals_of(proof, "quick there and back") == [
        ("a", 1000, 1009, 0, 9, 10),
        ("b", 1010, 1010, 10, 10, 1),
        ("a", 1011, 1059, 11, 59, 49),
    ]


def test_a_stale_owner_s_interval_continues_across_its_successor_s(proof):
    assert intervals_of(proof, "stale after a stop") == [("a", 1000, 7020, 0, 39, 40), ("b", 7000, 7044, 25, 59, 35)]
    (row,) = proof.overlaps.filter(group_id="stale after a stop").to_dicts()
    assert (row["consumer"], row["successor"], row["records"]) == ("a", "b", 10)
    assert (row["began_at_ms"], row["last_at_ms"]) == (START_MS + 7000, START_MS + 7020)


def test_the_successor_is_named_though_the_offsets_differ(proof):
    (row,) = proof.overlaps.filter(group_id="stale with other offsets").to_dicts()
    assert (row["consumer"], row["successor"], row["records"]) == ("a", "b", 5)


def test_within_the_clock_skew_nothing_is_claimed(written):
    proof = proof_of(written["stale by one record in the next ms"], clock_skew_ms=1)
    assert proof.summary["is_exclusive"].to_list() == [True]
    assert proof.duplicates["cause"].to_list() == ["tail"]


@pytest.mark.parametrize(
    ("name", "ranges"),
    [
        ("killed", [(20, 29, 10, "a", "b", "tail", "a")]),
        ("stale after a stop", [(25, 29, 5, "a", "b", "tail", "a"), (30, 39, 10, "b", "a", "stale", "a")]),
        ("rewound", [(20, 29, 10, "a", "a", "rewind", "a")]),
        ("quick there and back", []),
    ],
)
def test_duplicates_with_their_cause(proof, name, ranges):
    columns = ("first_offset", "last_offset", "records", "consumer", "again", "cause", "cause_consumer")
    assert proof.duplicates.filter(group_id=name).sort("first_offset").select(columns).rows() == ranges


def test_the_window_of_a_tail(proof):
    (row,) = proof.duplicates.filter(group_id="killed").to_dicts()
    times = ("first_at_ms", "last_at_ms", "again_first_at_ms", "again_last_at_ms")
    assert [row[name] - START_MS for name in times] == [1020, 1029, 7000, 7009]


def test_lost_is_below_the_last_delivery_unread_above(proof):
    columns = ("status", "first_offset", "last_offset", "records")
    expected = [("lost", 10, 11, 2), ("lost", 41, 41, 1), ("unread", 50, 59, 10)]
    assert proof.lost.filter(group_id="lost and unread").sort("first_offset").select(columns).rows() == expected
    assert proof.summary.filter(group_id="lost and unread")["is_complete"].to_list() == [False]


def test_a_given_end_makes_unread_records_lost(written):
    history = written["lost and unread"]
    ends = pl.DataFrame({"topic": [history.topic], "partition": [0], "log_end_offset": [55]}).cast(
        {"partition": pl.Int32}
    )
    found = (
        proof_of(history, ends=ends).lost.sort("first_offset").select("status", "first_offset", "last_offset").rows()
    )
    assert found == [("lost", 10, 11), ("lost", 41, 41), ("lost", 50, 54), ("unread", 55, 59)]


def test_a_partition_that_no_one_ever_read_is_there():
    history = History("half")
    history.produce(0, 0, 1)
    history.produce(5, 0, 1, 2, partition=1)
    history.hand_out("a", 10, 0, 1)
    proof = proof_of(history)
    rows = proof.verdict.sort("partition").to_dicts()
    assert [(row["records"], row["lost"], row["unread"], row["open_stall_ms"]) for row in rows] == [
        (2, 0, 0, None),
        (0, 0, 3, 5),
    ]
    assert "waiting" not in set(proof.sentences["finding"])


def test_offsets_that_hold_no_record_are_not_missed():
    history = History("markers")
    history.produce(0, 0, 1, 3, 4)
    history.hand_out("a", 10, 0, 1)
    history.hand_out("b", 5000, 3, 4)
    assert verdict_of(history)["is_complete"] is True
    history.hand_out("a", 5001, 3)
    assert verdict_of(history)["is_exclusive"] is False


def test_a_range_of_lost_records_goes_across_a_marker():
    history = History("across")
    history.produce(0, 0, 1, 2, 4, 5, 7)
    history.hand_out("a", 10, 0, 5, 7)
    assert proof_of(history).lost.select("first_offset", "last_offset", "records").rows() == [(1, 4, 3)]


def test_a_partition_without_a_reader_is_shown_by_its_open_stall(written):
    proof = proof_of(written["stuck"])
    rows = {row["partition"]: row for row in proof.stalls.to_dicts()}
    assert rows[0]["waiting"] == 50
    assert rows[0]["open_ms"] == 9005 - 109
    assert (rows[1]["waiting"], rows[1]["open_ms"]) == (0, None)
    assert proof.sentences["finding"].to_list() == ["waiting"]
    assert proof.describe() == "Group stuck: t-stuck-0: not delivered when the history ended: 50."


def test_a_stall_counts_only_while_there_was_something_to_read():
    history = History("stall")
    history.produce(0, 0)
    history.produce(900, 1)
    history.hand_out("a", 10, 0)
    history.hand_out("b", 1000, 1)
    proof = proof_of(history)
    (stall,) = proof.stalls.to_dicts()
    assert (stall["longest_ms"], stall["longest_from_ms"] - START_MS, stall["longest_until_ms"] - START_MS) == (
        100,
        900,
        1000,
    )
    (change,) = proof.handovers.to_dicts()
    assert (change["consumer"], change["successor"], change["gap_ms"], change["waited_ms"]) == ("a", "b", 990, 100)


def test_a_change_of_owners_without_known_production(written):
    rows = analyze.handovers(written["killed"].frames()["consumption"]).to_dicts()
    assert [(row["gap_ms"], row["waited_ms"]) for row in rows] == [(7000 - 1029, None)]


def test_a_group_that_delivered_nothing_has_no_verdict(written):
    rows = written["killed"].frames()
    assert prove(rows["consumption"].clear(), rows["production"]).summary.is_empty()


def owned(
    history: History, *ownership: tuple[str | None, int, int | None], watch: tuple[int, int] = (0, 20_000)
) -> History:
    """The history with owner znodes, of registered members, watched from and until."""
    mine = replace(history, lives=[])
    for member in {consumer for consumer, _, _ in ownership if consumer} | {"a", "b"}:
        mine.register(member)
    for consumer, from_ms, until_ms in ownership:
        mine.own(consumer, from_ms, until_ms)
    mine.watch(*watch)
    return mine


def test_the_owner_history_proves_a_stale_owner_that_offsets_only_suspect(written):
    history = owned(written["stale while the successor idles"], ("a", 900, 6900), ("b", 6950, None))
    proof = proof_of(history, True)
    (row,), (unowned,) = proof.summary.to_dicts(), proof.unowned_consumption.to_dicts()
    assert (row["is_exclusive"], row["overlaps"], row["doubtful_overlaps"], row["unowned"]) == (False, 1, 0, 30)
    assert (unowned["consumer"], unowned["first_offset"], unowned["last_offset"], unowned["records"]) == (
        "a",
        30,
        59,
        30,
    )
    assert unowned["is_registered"]


def test_the_owner_history_clears_a_member_that_took_over_again(written):
    ownership = [("a", 900, 7900), ("b", 7950, 8500), ("a", 8600, None)]
    for name in ("tail read exactly", "stale while the successor idles"):
        assert verdict_of(owned(written[name], *ownership[:2], ("a", 8600, None)), True)["overlaps"] == 0
    row = verdict_of(owned(written["tail read exactly"], *ownership), True)
    assert (row["is_exclusive"], row["doubtful_overlaps"], row["unowned"]) == (True, 0, 0)


def test_the_owner_history_proves_a_stale_owner_whose_offsets_jump(written, proof):
    """Without it, whoever returns elsewhere than to its own next record has taken over."""
    history = written["quick there and back"]
    assert proof.summary.filter(group_id="quick there and back")["is_exclusive"].to_list() == [True]
    row = verdict_of(owned(history, ("a", 900, None)), True, tolerance_ms=0)
    assert (row["is_exclusive"], row["overlaps"], row["unowned"]) == (False, 1, 1)


def test_the_tolerance_is_of_both_ends(written):
    ownership = [("a", 900, 1000), ("b", 7040, None)]
    history = owned(written["killed"], *ownership)
    assert verdict_of(history, True, tolerance_ms=40)["unowned"] == 0
    assert verdict_of(history, True, tolerance_ms=29)["unowned"] == 11


def test_nothing_is_claimed_of_times_that_were_not_watched(written):
    ownership = [("a", 900, 6900), ("b", 6950, None)]
    history = owned(written["stale while the successor idles"], *ownership, watch=(0, 9000))
    row = verdict_of(history, True)
    assert (row["is_exclusive"], row["overlaps"], row["doubtful_overlaps"], row["unowned"]) == (None, 0, 1, 0)


def test_nothing_is_claimed_while_an_unreadable_znode_was_there(written):
    ownership = [("a", 900, 6900), ("b", 6950, 9300), (None, 9400, None)]
    row = verdict_of(owned(written["stale while the successor idles"], *ownership), True)
    assert (row["is_exclusive"], row["doubtful_overlaps"], row["unowned"]) == (None, 1, 0)


def test_a_kafka_consumer_may_read_without_an_owner_znode():
    """In Kafka's mode plain consumers are members: their hand-outs are listed, and break nothing."""
    history = History("mixed")
    history.produce(0, *range(20))
    history.hand_out("a", 100, *range(10))
    history.hand_out("kc", 200, *range(10, 20))
    proof = proof_of(owned(history, ("a", 50, 150)), True)
    assert proof.summary["is_exclusive"].to_list() == [True]
    assert proof.unowned_consumption.select("consumer", "records", "is_registered").rows() == [("kc", 10, False)]


def test_sentences_name_what_is_wrong(written, proof):
    told = proof_of(written["stale after a stop"]).describe().splitlines()
    assert told == [
        "Group stale after a stop: t-stale after a stop-0: delivered after another member had begun: 10.",
        "Group stale after a stop: t-stale after a stop-0: delivered by two members at once: 10.",
        "Group stale after a stop: t-stale after a stop-0: read again by a successor, an uncommitted tail: 5.",
    ]
    assert proof.sentences.filter(group_id="quick there and back").is_empty()


def test_the_result_of_with_intervals_is_in_for_the_consumption(written):
    consumption = written["stale after a stop"].frames()["consumption"]
    intervals = analyze.with_intervals(consumption)
    for analysis in (analyze.overlaps, analyze.duplicates, analyze.consumption_intervals):
        assert analysis(intervals).sort(pl.all()).equals(analysis(consumption).sort(pl.all()))
