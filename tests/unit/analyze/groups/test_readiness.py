"""Store parity, stages of KIP-125's path, and blockers."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from kit.analyze import blockers, group_parity, readiness, store_parity
from kit.tables import schema as tables
from kit.tables.groups import (
    KAFKA,
    ZOOKEEPER,
    CommittedOffset,
    Group,
    Member,
    MigrationState,
    Ownership,
    Subscription,
    TopicPartition,
)


def committed(partition: int, store: str, offset: int | None, error: str | None = None) -> CommittedOffset:
    return CommittedOffset("g", store, "t", partition, offset, None, None, None, None, None, error)


def both(partition: int, zookeeper: int, kafka: int) -> list[CommittedOffset]:
    return [committed(partition, ZOOKEEPER, zookeeper), committed(partition, KAFKA, kafka)]


def group(source: str, state: str | None = None, error: str | None = None) -> Group:
    return Group("g", source, state, None, None, None, None, error)


def old(name: str = "g_old", error: str | None = None) -> Member:
    return Member("g", ZOOKEEPER, name, None, None, None, None, False, None, None, error)


def enabled(name: str = "g_new") -> list[Member]:
    """A MEZKCC and the consumer embedded in it."""
    embedded = Member("g", KAFKA, f"{name}-uuid", name, None, None, None, None, None, None)
    return [Member("g", ZOOKEEPER, name, None, None, None, None, True, None, None), embedded]


def plain(name: str = "kc-uuid") -> Member:
    return Member("g", KAFKA, name, "kc", None, None, None, None, None, None)


def tables_of(
    members: list[Member],
    mode: str | None = None,
    groups: list[Group] | None = None,
    mode_error: str | None = None,
    **rows: list[Any],
) -> dict[str, pl.DataFrame]:
    given: dict[str, list[Any]] = {
        "groups": [group(ZOOKEEPER)] if groups is None else groups,
        "members": members,
        "migration_states": [MigrationState("g", mode, 0, 1, mode_error)] if mode or mode_error else [],
        **rows,
    }
    names = ("groups", "members", "ownership", "committed_offsets", "migration_states", "subscriptions")
    declared = {table.name: table for table in tables.ALL}
    return {name: pl.from_arrow(declared[name].from_rows(given.get(name, []))) for name in (*names, "topic_partitions")}


def stage_of(frames: dict[str, pl.DataFrame]) -> tuple[str, str | None]:
    (row,) = readiness(**frames).to_dicts()
    return row["stage"], row["effective_mode"]


@pytest.mark.parametrize(
    ("members", "mode", "expected"),
    [
        pytest.param([], None, ("empty", None), id="no member"),
        pytest.param([], "kafka", ("empty", None), id="no member, toggled"),
        pytest.param([old()], None, ("OZKCC", "zookeeper"), id="old only"),
        pytest.param([old(), *enabled()], None, ("canary MEZKCC", "zookeeper"), id="first canary"),
        pytest.param([old(), *enabled()], "kafka", ("canary MEZKCC", "zookeeper"), id="toggled too early"),
        pytest.param(enabled(), None, ("all MEZKCC", "zookeeper"), id="all enabled"),
        pytest.param(enabled(), "zookeeper", ("all MEZKCC", "zookeeper"), id="all enabled, told zookeeper"),
        pytest.param(enabled(), "kafka\n", ("all MEZKCC", "zookeeper"), id="a line break is not exactly kafka"),
        pytest.param(enabled(), "KAFKA", ("all MEZKCC", "zookeeper"), id="case counts"),
        pytest.param(enabled(), "kafka", ("Kafka coordination", "kafka"), id="toggled"),
        pytest.param([*enabled(), plain()], "kafka", ("canary KC", "kafka"), id="second canary"),
        pytest.param([plain()], None, ("all KC", "kafka"), id="done"),
        pytest.param([plain()], "zookeeper", ("all KC", "kafka"), id="done, whatever the znode says"),
        pytest.param([old(), plain()], None, ("unsafe mix", "zookeeper"), id="old and plain"),
        pytest.param([*enabled(), plain()], None, ("unsafe mix", "zookeeper"), id="plain in Z mode"),
        pytest.param([old(), *enabled(), plain()], "kafka", ("unsafe mix", "zookeeper"), id="old joins K mode"),
    ],
)
def test_stage_follows_from_flavours_and_mode(members: list[Member], mode: str | None, expected: Any) -> None:
    assert stage_of(tables_of(members, mode)) == expected


def test_counts_leave_embedded_consumers_out() -> None:
    (row,) = readiness(**tables_of([old(), *enabled("g_n1"), *enabled("g_n2"), plain()], "kafka")).to_dicts()
    assert (row["n_ozkcc"], row["n_mezkcc"], row["n_kc"], row["mode"]) == (1, 2, 1, "kafka")


def test_a_member_whose_migration_is_unknown_leaves_mode_and_stage_unknown() -> None:
    hidden = Member("g", ZOOKEEPER, "g_x", None, None, None, None, None, None, None)
    assert stage_of(tables_of([hidden, *enabled()], "kafka")) == ("unknown", None)
    assert stage_of(tables_of([hidden], "zookeeper")) == ("unknown", "zookeeper")


def test_an_unreadable_mode_is_unknown_unless_an_old_member_decides_it() -> None:
    assert stage_of(tables_of(enabled(), mode_error="no authentication")) == ("unknown", None)
    assert stage_of(tables_of([old()], mode_error="no authentication")) == ("OZKCC", "zookeeper")


def test_an_unreadable_group_is_not_called_empty() -> None:
    frames = tables_of([], groups=[group(KAFKA, error="timed out")])
    assert stage_of(frames) == ("unknown", None)
    assert codes(frames) == ["unreadable_group"]


def test_next_step_names_the_blockers_first() -> None:
    clear = readiness(**tables_of(enabled())).row(0, named=True)
    assert (clear["n_blockers"], clear["next_step"]) == (
        0,
        "Set migration/mode to kafka: Kafka's assignment then is in force.",
    )
    blocked = readiness(**tables_of([old()], "kafka")).row(0, named=True)
    assert blocked["n_blockers"] == 1
    assert blocked["next_step"].startswith("First clear 1 blocker. Then: Replace one old consumer")


def codes(frames: dict[str, pl.DataFrame]) -> list[str]:
    return sorted(blockers(**frames)["blocker"])


def sentence_of(frames: dict[str, pl.DataFrame], code: str) -> str:
    found = blockers(**frames).filter(pl.col("blocker") == code)
    return str(found["sentence"].item())


def test_a_group_in_order_has_no_blocker() -> None:
    offsets = [*both(0, 5, 5), *both(1, 9, 9)]
    assert codes(tables_of(enabled(), groups=[group(KAFKA, "Stable")], committed_offsets=offsets)) == []
    assert codes(tables_of([old()], committed_offsets=[committed(0, ZOOKEEPER, 5)])) == []
    assert codes(tables_of([old(), *enabled()], committed_offsets=offsets)) == []


def test_unsafe_mix_says_who_is_there_and_what_to_stop() -> None:
    sentence = sentence_of(tables_of([old(), plain()]), "unsafe_mix")
    assert sentence == (
        "Group g: 1 plain Kafka consumer runs beside 1 old and 0 migration-enabled consumers under ZooKeeper's"
        " assignment: partitions are read twice. Stop the plain Kafka consumers before anything else."
    )


@pytest.mark.parametrize("state", ["PreparingRebalance", "CompletingRebalance", "Unknown"])
def test_a_kafka_group_that_is_not_stable_blocks(state: str) -> None:
    assert codes(tables_of(enabled(), groups=[group(KAFKA, state)])) == ["group_not_stable"]


@pytest.mark.parametrize("state", ["Stable", "Empty", None])
def test_a_settled_kafka_group_does_not_block(state: str | None) -> None:
    assert codes(tables_of(enabled(), groups=[group(KAFKA, state)])) == []


def test_old_consumers_with_offsets_in_kafka_block_step_one() -> None:
    in_both = tables_of([old()], committed_offsets=both(0, 5, 5))
    assert codes(in_both) == ["commits_to_kafka"]
    told = sentence_of(in_both, "commits_to_kafka")
    assert "Kafka holds offsets of 1 partition" in told
    assert "One look can't tell whether they are committed there or left over" in told
    left_over = tables_of([old()], committed_offsets=[*both(0, 9, 5), *both(1, 9, 9)])
    assert "Kafka holds offsets of 1 partition" in sentence_of(left_over, "commits_to_kafka")
    assert codes(tables_of([old()], committed_offsets=both(0, 9, 5))) == []
    only_kafka = tables_of([old()], committed_offsets=[committed(0, KAFKA, 5)])
    assert codes(only_kafka) == ["commits_to_kafka", "kafka_ahead"]


def test_kafka_ahead_of_zookeeper_is_a_poisoned_checkpoint() -> None:
    frames = tables_of(enabled(), committed_offsets=[*both(0, 5, 284), *both(1, 9, 9), *both(2, 7, 6)])
    assert codes(frames) == ["kafka_ahead"]
    assert "for 1 partition, by up to 279 records: an old consumer" in sentence_of(frames, "kafka_ahead")


def test_kafka_ahead_does_not_matter_once_all_are_plain_consumers() -> None:
    assert codes(tables_of([plain()], committed_offsets=both(0, 5, 284))) == []


def test_a_toggle_that_an_old_member_holds_back_blocks() -> None:
    frames = tables_of([old(), *enabled()], "kafka")
    assert codes(frames) == ["not_migration_enabled"]


def test_an_inexact_mode_blocks_and_is_quoted() -> None:
    frames = tables_of(enabled(), "Kafka")
    assert codes(frames) == ["inexact_mode"]
    assert "holds 'Kafka', which counts as zookeeper" in sentence_of(frames, "inexact_mode")


def test_unreadable_registration_and_mode_block() -> None:
    assert codes(tables_of([old(error="not JSON")])) == ["unreadable_registration"]
    assert "member g_old has a registration" in sentence_of(
        tables_of([old(error="not JSON")]), "unreadable_registration"
    )
    assert codes(tables_of(enabled(), mode_error="no authentication")) == ["unreadable_mode"]


def test_unowned_partitions_block_once_per_group() -> None:
    frames = tables_of(
        [old()],
        ownership=[Ownership("g", ZOOKEEPER, "t", 0, "g_old", "g_old-0", None, None)],
        subscriptions=[Subscription("g", ZOOKEEPER, "g_old", "t", 1)],
        topic_partitions=[TopicPartition("t", each, False, 1, 1, (1,), (1,)) for each in range(3)],
    )
    assert codes(frames) == ["unowned_partitions"]
    assert "nobody owns 2 subscribed partitions, first t-1. " in sentence_of(frames, "unowned_partitions")


# -- parity ----------------------------------------------------------------------------------------------------------


def parity_of(offsets: list[CommittedOffset], groups: list[Group] | None = None) -> list[tuple[Any, ...]]:
    failed = None if groups is None else pl.from_arrow(tables.GROUPS.from_rows(groups))
    parity = store_parity(pl.from_arrow(tables.COMMITTED_OFFSETS.from_rows(offsets)), failed)
    columns = ["partition", "zookeeper_offset", "kafka_offset", "difference", "verdict"]
    return parity.sort("partition").select(columns).rows()


OFFSETS = [
    *both(0, 5, 5),
    *both(1, 5, 284),
    *both(2, 9, 6),
    committed(3, ZOOKEEPER, 4),
    committed(4, KAFKA, 4),
    committed(5, ZOOKEEPER, 4),
    committed(5, KAFKA, None, "UNSTABLE_OFFSET_COMMIT"),
    committed(6, KAFKA, None),
]


def test_every_verdict() -> None:
    assert parity_of(OFFSETS) == [
        (0, 5, 5, 0, "equal"),
        (1, 5, 284, 279, "kafka_ahead"),
        (2, 9, 6, -3, "zookeeper_ahead"),
        (3, 4, None, None, "missing_in_kafka"),
        (4, None, 4, None, "missing_in_zookeeper"),
        (5, 4, None, None, "unknown"),
    ]


def test_what_a_failed_group_lacks_is_unknown() -> None:
    rows = parity_of([*both(0, 5, 5), committed(3, ZOOKEEPER, 4)], [group(KAFKA, error="timed out")])
    assert [row[-1] for row in rows] == ["equal", "unknown"]
    assert [row[-1] for row in parity_of([committed(4, KAFKA, 4)], [group(KAFKA, error="timed out")])] == [
        "missing_in_zookeeper"
    ]


def test_parity_of_a_group_counts_verdicts_and_keeps_the_largest_differences() -> None:
    parity = store_parity(pl.from_arrow(tables.COMMITTED_OFFSETS.from_rows(OFFSETS)))
    assert group_parity(parity).row(0) == ("g", 6, 1, 1, 1, 1, 1, 1, 279, 3)


def test_a_group_in_one_store_has_no_difference() -> None:
    parity = store_parity(pl.from_arrow(tables.COMMITTED_OFFSETS.from_rows([committed(3, ZOOKEEPER, 4)])))
    row = group_parity(parity).row(0, named=True)
    assert (row["max_kafka_ahead"], row["max_zookeeper_ahead"], row["n_missing_in_kafka"]) == (None, None, 1)
