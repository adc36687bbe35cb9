"""Offsets that a group left behind in a store that none of its members reads any more."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.groups.analyze.coverage import unreadable_groups
from kit.groups.analyze.flavours import with_flavours
from kit.groups.analyze.parity import group_parity, store_parity
from kit.tables.groups import KAFKA, ZOOKEEPER


@nw.narwhalify
def stale_stores(committed_offsets: FrameT, members: FrameT, groups: FrameT, parity: FrameT | None = None) -> FrameT:
    """Groups with offsets in a store that is surely not in use; where one observation can't determine, the group is
    left out.

    ``zookeeper``: every member is a plain Kafka consumer, which never reads there. ``kafka``: every member is an old
    consumer, and ZooKeeper's offset is ahead for some partition and behind for none, so no member commits to Kafka. A
    group without members, one with migration-enabled ones (they may commit to both), and one that could not be read
    have no stale store. ``parity``: rows of ``kit.analyze.group_parity``, where they are known already.

    Columns: group_id, store; a group at most once.

    >>> import polars as pl
    >>> from kit.tables import schema as tables
    >>> from kit.tables.groups import CommittedOffset, Member
    >>> frames = tables.COMMITTED_OFFSETS.from_rows([CommittedOffset("g", "zookeeper", "t", 0, 7, *[None] * 5)])
    >>> members = tables.MEMBERS.from_rows([Member("g", "kafka", "m", "c", *[None] * 6)])
    >>> stale_stores(pl.DataFrame(frames), pl.DataFrame(members), pl.DataFrame(tables.GROUPS.from_rows([]))).rows()
    [('g', 'zookeeper')]
    """
    rows = _kinds(members).join(unreadable_groups(groups), on="group_id", how="left")
    rows = rows.filter(nw.col("group_error").is_null())
    if parity is None:
        # Only these can have a stale store, and of a large cluster most are none of them.
        in_zookeeper = committed_offsets.filter(nw.col("store") == ZOOKEEPER).select("group_id").unique()
        candidates = committed_offsets.join(in_zookeeper, on="group_id", how="semi")
        parity = nw.from_native(group_parity(store_parity(candidates, groups)))
    rows = rows.join(parity, on="group_id", how="inner")
    held = nw.col("n_partitions") - nw.col("n_missing_in_zookeeper") - nw.col("n_unknown")
    is_left_in_kafka = nw.col("n_kafka_ahead") + nw.col("n_missing_in_zookeeper") + nw.col("n_unknown") == 0
    store = (
        nw.when((nw.col("n_other") == 0) & (nw.col("n_ozkcc") == 0) & (held > 0))
        .then(nw.lit(ZOOKEEPER))
        .when((nw.col("n_other") == 0) & (nw.col("n_kc") == 0) & (nw.col("n_zookeeper_ahead") > 0) & is_left_in_kafka)
        .then(nw.lit(KAFKA))
    )
    return rows.select("group_id", store=store).filter(~nw.col("store").is_null())


def _kinds(members: FrameT) -> FrameT:
    """Per group with members: n_kc, n_ozkcc, n_other."""
    is_kc = (nw.col("flavour") == "KC").fill_null(False)
    is_ozkcc = (nw.col("flavour") == "OZKCC").fill_null(False)
    flags = {"n_kc": is_kc, "n_ozkcc": is_ozkcc, "n_other": ~is_kc & ~is_ozkcc}
    counted = with_flavours(members).with_columns(**{name: flag.cast(nw.Int64) for name, flag in flags.items()})
    return counted.group_by("group_id").agg(*[nw.col(name).sum() for name in flags])


def in_use(committed_offsets: FrameT, stale: FrameT) -> FrameT:
    """The offsets of stores that may be in use; ``stale``: rows of :func:`stale_stores`."""
    return committed_offsets.join(stale, on=["group_id", "store"], how="anti")
