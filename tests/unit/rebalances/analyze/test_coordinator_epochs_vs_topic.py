"""Logs of the coordinators of KIP-848 groups against the topic: epochs and who joined."""

from __future__ import annotations

import polars as pl

from kit.rebalances.analyze.logs_vs_topic import source_differences
from kit.tables import schema as tables
from tests.unit.rebalances.analyze.records import ALONE, JOINED, LEFT, epoch, gone, logged, member, stored_epochs

NO_GENERATIONS = pl.DataFrame(tables.GROUP_GENERATIONS.schema.empty_table())
TOPIC = [*ALONE, *JOINED, *LEFT]


def bumped(number: int, *joined: str) -> list[tuple]:
    said = [("member_joining", {"member_id": member_id}) for member_id in joined]
    said.append(("epoch_bumped", {"generation": number}))
    return [("broker", 10 * number, kind, {"source": "broker", **facts}) for kind, facts in said]


LOGS = [*bumped(1, "a"), *bumped(2, "b"), *bumped(3)]


def found(lines: list[tuple], records: list[dict]) -> list[tuple[str, str | None]]:
    return (
        source_differences(logged(*lines), NO_GENERATIONS, stored_epochs(*records)).select("finding", "consumer").rows()
    )


def sentences(lines: list[tuple], records: list[dict]) -> list[str]:
    return source_differences(logged(*lines), NO_GENERATIONS, stored_epochs(*records))["sentence"].to_list()


def test_logs_and_topic_that_agree():
    assert found(LOGS, TOPIC) == []
    assert found(bumped(2, "b"), TOPIC) == []


def test_an_epoch_that_is_not_in_the_topic():
    assert sentences([*LOGS, *bumped(4)], TOPIC) == [
        (
            "Group g: epoch 4 is in the coordinator's log, but not in the topic: it was never stored, or the "
            "topic was read too early."
        )
    ]
    assert found(LOGS, [row for row in TOPIC if (row["kind"], row.get("epoch")) != ("group_epoch", 2)]) == [
        ("not_stored", None)
    ]


def test_compacted_records_are_no_difference():
    compacted = [row for row in TOPIC if row["kind"] != "group_epoch" or row["epoch"] == 3]
    assert found([*LOGS, *bumped(1, "x")], compacted) == []
    assert found([*bumped(1, "x"), *bumped(2, "b")], TOPIC) == []


def test_an_epoch_that_no_log_reports_of():
    lines = [*bumped(1, "a"), *bumped(3)]
    assert sentences(lines, TOPIC) == ["Group g: epoch 2 is in the topic, but in none of the given coordinators' logs."]
    assert found(bumped(1, "a"), TOPIC) == []


def test_a_member_that_joined_and_has_no_record():
    lines = [*bumped(1, "a"), *bumped(2, "b", "x"), *bumped(3)]
    assert found(lines, TOPIC) == [("unknown_member", "x")]
    assert found(lines, [*TOPIC, *gone("x")]) == []


def test_a_group_that_was_deleted_is_not_compared():
    deleted = [*TOPIC, *gone("b"), {"kind": "group_epoch", "is_tombstone": True}, member("x"), *epoch(1)]
    assert found([*LOGS, *bumped(9, "y")], deleted) == []


def test_a_group_with_a_record_that_can_not_be_decoded_is_not_compared():
    assert found([*LOGS, *bumped(9)], [*TOPIC, {"kind": "member", "member_id": "c", "error": "version 9"}]) == []
