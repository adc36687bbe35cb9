"""Find the reason why a value differs in both stores, by its earlier values in the metadata log."""

from __future__ import annotations

from collections.abc import Collection

import narwhals as nw
from narwhals.typing import FrameT

from kit.kraft.analyze.diff import (
    DELETED_TOPIC,
    DELETED_USER,
    FAILED_WRITE,
    HAND_EDIT,
    ITEM_KEY,
    MADE_AGAIN,
    NO_STATE,
    NOT_COPIED,
    item_values,
    partition_values,
)


@nw.narwhalify
def with_causes(
    differences: FrameT,
    earlier_partitions: FrameT,
    earlier_items: FrameT,
    copied_until: int | None,
    removed_mechanisms: Collection[str] = (),
) -> FrameT:
    """``metadata_diff`` with the causes that only the history of the values shows.

    Args:
        differences: ``tables.METADATA_DIFFERENCES``.
        earlier_partitions, earlier_items: ``tables.METADATA_PARTITIONS``, ``METADATA_ITEMS``, one row per record that
            set a value of what diverged.
        copied_until: the last offset of the copy out of ZooKeeper; None: what was before is not fully known.
        removed_mechanisms: SCRAM mechanisms of which the log removes a user's credential.

    ``cause`` of a diverged value:
        ``deleted_topic``: a setting that a deleted topic had: a controller of 3.9 that was restarted since remembers
        it, and writes it to ZooKeeper when it is elected.
        ``deleted_user``: ZooKeeper lacks a SCRAM credential, and another user's of that mechanism was removed: a
        controller of 3.9 that was restarted since may have forgotten it (``ScramDelta``), and removes it from
        ZooKeeper when it is elected.
        ``made_again``: ZooKeeper lacks a topic whose name another one had before: a controller of 3.9 that is elected
        creates what is new before it deletes what is gone, by name.
        ``hand_edit``: KRaft has not changed the value since the copy, or it never had what ZooKeeper holds: no
        controller wrote that.
        ``failed_write``: ZooKeeper holds what KRaft had before its last change: that change did not arrive (or
        an operator set the old value again).
        Null: not known. Of what ZooKeeper lacks and KRaft made since the copy, nothing shows a write that failed from
        a manual deletion.
    """
    value = "zookeeper_value"
    columns = [*ITEM_KEY, value]
    partitions, items = partition_values(earlier_partitions, value), item_values(earlier_items, value)
    earlier = nw.concat([each.select(*columns, "offset") for each in (partitions, items)])
    rows = differences.join(
        earlier.group_by(*columns).agg(nw.col("offset").max().alias("held_at")), on=columns, how="left"
    )
    rows = _with_remade(_with_creations(rows), earlier_items)
    was_held = ~nw.col("held_at").is_null()
    is_of_deleted = (nw.col("held_at") < nw.col("created_at")) | (nw.col("cause") == NOT_COPIED)
    is_untouched = nw.col("offset") <= (-1 if copied_until is None else copied_until)
    is_foreign = ~nw.col(value).is_null() & ~was_held & nw.lit(copied_until is not None)
    cause = (
        nw.when((nw.col("verdict") != "diverged") | (nw.col("cause") == NO_STATE).fill_null(False))
        .then(nw.col("cause"))
        .when(was_held & is_of_deleted.fill_null(False))
        .then(nw.lit(DELETED_TOPIC))
        .when((nw.col("cause") == NOT_COPIED).fill_null(False))
        .then(nw.col("cause"))
        .when(_is_missing() & nw.col("is_remade"))
        .then(nw.lit(MADE_AGAIN))
        .when(_is_forgotten(removed_mechanisms))
        .then(nw.lit(DELETED_USER))
        .when(is_foreign | (is_untouched & ~nw.col("kraft_value").is_null()).fill_null(False))
        .then(nw.lit(HAND_EDIT))
        .when(was_held & nw.col("cause").is_null())
        .then(nw.lit(FAILED_WRITE))
        .otherwise(nw.col("cause"))
    )
    return rows.with_columns(cause=cause).drop("held_at", "created_at", "is_remade")


def _is_missing() -> nw.Expr:
    return nw.col("zookeeper_value").is_null() & ~nw.col("kraft_value").is_null()


def _is_forgotten(mechanisms: Collection[str]) -> nw.Expr:
    return (nw.col("kind") == "scram") & _is_missing() & nw.col("item").is_in(sorted(mechanisms))


def _with_creations(rows: FrameT) -> FrameT:
    """``created_at`` of a topic's settings: the record that made the topic, as it is now."""
    topics = rows.filter(nw.col("kind") == "topic")
    named = nw.concat_str([nw.lit("topics/"), nw.col("entity")])
    creations = topics.select(nw.lit("config").alias("kind"), named.alias("entity"), created_at=nw.col("offset"))
    return rows.join(creations, on=["kind", "entity"], how="left")


def _with_remade(rows: FrameT, earlier_items: FrameT) -> FrameT:
    """``is_remade``: of a topic and its partitions: another topic had the name before."""
    ids = earlier_items.filter(nw.col("kind") == "topic").group_by("entity")
    both = ids.agg(first=nw.col("value").min(), last=nw.col("value").max()).filter(nw.col("first") != nw.col("last"))
    remade = both.select("entity", is_remade=nw.lit(True))
    is_of_topic = nw.col("kind").is_in(["topic", "partition"])
    rows = rows.join(remade, on="entity", how="left")
    return rows.with_columns(is_remade=nw.col("is_remade").fill_null(False) & is_of_topic)
