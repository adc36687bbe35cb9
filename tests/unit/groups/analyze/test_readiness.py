"""Store parity, stages of KIP-125's path, and blockers."""

from __future__ import annotations

from typing import Any

import polars as pl

from kit.analyze import group_parity, store_parity
from kit.groups import views
from kit.groups.snapshot import Snapshot
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
from tests.generators.snapshots import snapshot_of, with_each_group


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


def snapshot(
    members: list[Member],
    mode: str | None = None,
    groups: list[Group] | None = None,
    mode_error: str | None = None,
    **rows: list[Any],
) -> Snapshot[pl.DataFrame]:
    given: dict[str, list[Any]] = {
        "groups": [group(ZOOKEEPER)] if groups is None else groups,
        "members": members,
        "migration_states": [MigrationState("g", mode, 0, 1, mode_error)] if mode or mode_error else [],
        **rows,
    }
    return snapshot_of(given)


def stages_of(groups: dict[str, Snapshot[pl.DataFrame]]) -> dict[str, tuple[str, str | None]]:
    """The stage and the mode in effect of each group."""
    rows = views.readiness(with_each_group(groups)).select("group_id", "stage", "effective_mode")
    return {name: (stage, mode) for name, stage, mode in rows.iter_rows()}


STAGES: dict[str, tuple[list[Member], str | None, tuple[str, str | None]]] = {
    "no member": ([], None, ("empty", None)),
    "no member, toggled": ([], "kafka", ("empty", None)),
    "old only": ([old()], None, ("OZKCC", "zookeeper")),
    "first canary": ([old(), *enabled()], None, ("canary MEZKCC", "zookeeper")),
    "toggled too early": ([old(), *enabled()], "kafka", ("canary MEZKCC", "zookeeper")),
    "all enabled": (enabled(), None, ("all MEZKCC", "zookeeper")),
    "all enabled, told zookeeper": (enabled(), "zookeeper", ("all MEZKCC", "zookeeper")),
    "a line break is not exactly kafka": (enabled(), "kafka\n", ("all MEZKCC", "zookeeper")),
    "case counts": (enabled(), "KAFKA", ("all MEZKCC", "zookeeper")),
    "toggled": (enabled(), "kafka", ("Kafka coordination", "kafka")),
    "second canary": ([*enabled(), plain()], "kafka", ("canary KC", "kafka")),
    "done": ([plain()], None, ("all KC", "kafka")),
    "done, whatever the znode says": ([plain()], "zookeeper", ("all KC", "kafka")),
    "old and plain": ([old(), plain()], None, ("unsafe mix", "zookeeper")),
    "plain in Z mode": ([*enabled(), plain()], None, ("unsafe mix", "zookeeper")),
    "old joins K mode": ([old(), *enabled(), plain()], "kafka", ("unsafe mix", "zookeeper")),
}


def test_stage_follows_from_flavours_and_mode() -> None:
    found = stages_of({name: snapshot(members, mode) for name, (members, mode, _) in STAGES.items()})
    assert found == {name: expected for name, (*_, expected) in STAGES.items()}


def test_counts_leave_embedded_consumers_out() -> None:
    (row,) = views.readiness(snapshot([old(), *enabled("g_n1"), *enabled("g_n2"), plain()], "kafka")).to_dicts()
    assert (row["n_ozkcc"], row["n_mezkcc"], row["n_kc"], row["mode"]) == (1, 2, 1, "kafka")


def test_a_member_whose_migration_is_unknown_leaves_mode_and_stage_unknown() -> None:
    hidden = Member("g", ZOOKEEPER, "g_x", None, None, None, None, None, None, None)
    found = stages_of({"beside": snapshot([hidden, *enabled()], "kafka"), "alone": snapshot([hidden], "zookeeper")})
    assert found == {"beside": ("unknown", None), "alone": ("unknown", "zookeeper")}


def test_an_unreadable_mode_is_unknown_unless_an_old_member_decides_it() -> None:
    hidden = "no authentication"
    found = stages_of({"new": snapshot(enabled(), mode_error=hidden), "old": snapshot([old()], mode_error=hidden)})
    assert found == {"new": ("unknown", None), "old": ("OZKCC", "zookeeper")}


def test_an_unreadable_group_is_not_called_empty() -> None:
    unread = snapshot([], groups=[group(KAFKA, error="timed out")])
    assert stages_of({"g": unread}) == {"g": ("unknown", None)}
    assert list(blockers_of(unread)) == ["unreadable_group"]


def test_next_step_names_the_blockers_first() -> None:
    rows = views.readiness(with_each_group({"clear": snapshot(enabled()), "blocked": snapshot([old()], "kafka")}))
    clear, blocked = (rows.row(by_predicate=pl.col("group_id") == name, named=True) for name in ("clear", "blocked"))
    assert (clear["n_blockers"], clear["next_step"]) == (
        0,
        "Set migration/mode to kafka: Kafka's assignment then is in force.",
    )
    assert blocked["n_blockers"] == 1
    assert blocked["next_step"].startswith("First clear 1 blocker. Then: Replace one old consumer")


def blockers_of(snapshot: Snapshot[pl.DataFrame]) -> dict[str, str]:
    """The sentence of each blocker of group g."""
    rows = views.blockers(snapshot).sort("blocker").select("blocker", "sentence").rows()
    assert len(rows) == len(dict(rows)), rows
    return dict(rows)


def blockers_of_each(groups: dict[str, Snapshot[pl.DataFrame]]) -> dict[str, list[str]]:
    """The blockers of each group."""
    found = views.blockers(with_each_group(groups)).sort("blocker").group_by("group_id", maintain_order=True)
    return {name: [] for name in groups} | {name: rows["blocker"].to_list() for (name,), rows in found}


def test_a_group_in_order_has_no_blocker() -> None:
    offsets = [*both(0, 5, 5), *both(1, 9, 9)]
    groups = {
        "new": snapshot(enabled(), groups=[group(KAFKA, "Stable")], committed_offsets=offsets),
        "old": snapshot([old()], committed_offsets=[committed(0, ZOOKEEPER, 5)]),
        "canary": snapshot([old(), *enabled()], committed_offsets=offsets),
    }
    assert blockers_of_each(groups) == {"new": [], "old": [], "canary": []}


def test_unsafe_mix_reports_who_is_there_and_what_to_stop() -> None:
    assert blockers_of(snapshot([old(), plain()]))["unsafe_mix"] == (
        "Group g: 1 plain Kafka consumer runs beside 1 old and 0 migration-enabled consumers under ZooKeeper's"
        " assignment: partitions are read twice. Stop the plain Kafka consumers before anything else."
    )


def test_a_kafka_group_that_is_not_stable_blocks_and_one_that_settled_does_not() -> None:
    unstable, settled = ("PreparingRebalance", "CompletingRebalance", "Unknown"), ("Stable", "Empty", None)
    groups = {str(state): snapshot(enabled(), groups=[group(KAFKA, state)]) for state in (*unstable, *settled)}
    expected = {str(state): ["group_not_stable"] if state in unstable else [] for state in (*unstable, *settled)}
    assert blockers_of_each(groups) == expected


def test_old_consumers_with_offsets_in_kafka_block_step_one() -> None:
    told = blockers_of(snapshot([old()], committed_offsets=both(0, 5, 5)))
    assert list(told) == ["commits_to_kafka"]
    assert "Kafka holds offsets of 1 partition" in told["commits_to_kafka"]
    assert "One observation can't determine whether they are committed there or left over" in told["commits_to_kafka"]
    left_over = snapshot([old()], committed_offsets=[*both(0, 9, 5), *both(1, 9, 9)])
    assert "Kafka holds offsets of 1 partition" in blockers_of(left_over)["commits_to_kafka"]
    behind = snapshot([old()], committed_offsets=both(0, 9, 5))
    only_kafka = snapshot([old()], committed_offsets=[committed(0, KAFKA, 5)])
    assert blockers_of_each({"behind": behind, "only": only_kafka}) == {
        "behind": [],
        "only": ["commits_to_kafka", "kafka_ahead"],
    }


def test_kafka_ahead_of_zookeeper_is_a_poisoned_checkpoint() -> None:
    told = blockers_of(snapshot(enabled(), committed_offsets=[*both(0, 5, 284), *both(1, 9, 9), *both(2, 7, 6)]))
    assert list(told) == ["kafka_ahead"]
    assert "for 1 partition, by up to 279 records: an old consumer" in told["kafka_ahead"]


def test_kafka_ahead_does_not_matter_once_all_are_plain_consumers() -> None:
    assert blockers_of(snapshot([plain()], committed_offsets=both(0, 5, 284))) == {}


def test_a_toggle_that_an_old_member_holds_back_blocks() -> None:
    assert list(blockers_of(snapshot([old(), *enabled()], "kafka"))) == ["not_migration_enabled"]


def test_an_inexact_mode_blocks_and_is_quoted() -> None:
    told = blockers_of(snapshot(enabled(), "Kafka"))
    assert list(told) == ["inexact_mode"]
    assert "holds 'Kafka', which counts as zookeeper" in told["inexact_mode"]


def test_unreadable_registration_and_mode_block() -> None:
    told = blockers_of(snapshot([old(error="not JSON")]))
    assert list(told) == ["unreadable_registration"]
    assert "member g_old has a registration" in told["unreadable_registration"]
    assert list(blockers_of(snapshot(enabled(), mode_error="no authentication"))) == ["unreadable_mode"]


def test_unowned_partitions_block_once_per_group() -> None:
    told = blockers_of(
        snapshot(
            [old()],
            ownership=[Ownership("g", ZOOKEEPER, "t", 0, "g_old", "g_old-0", None, None)],
            subscriptions=[Subscription("g", ZOOKEEPER, "g_old", "t", 1)],
            topic_partitions=[TopicPartition("t", each, False, 1, 1, (1,), (1,)) for each in range(3)],
        )
    )
    assert list(told) == ["unowned_partitions"]
    assert "no member owns 2 subscribed partitions, first t-1. " in told["unowned_partitions"]


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


def test_figures_that_a_failed_group_lacks_are_unknown() -> None:
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
