"""Find the kind of consumer of each member, in KIP-125's words."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.tables.groups import KAFKA, ZOOKEEPER

FLAVOURS = {
    "OZKCC": "old ZooKeeper consumer",
    "MEZKCC": "migration-enabled ZooKeeper consumer, which embeds a Kafka consumer (EKC)",
    "KC": "plain Kafka consumer",
}
"""The meaning of the stages' names, for their first mention."""


@nw.narwhalify
def member_flavours(members: FrameT) -> FrameT:
    """Members → the same members with their flavour.

    By KIP-125, Zookeeper State and step 2 of the listener's global view.

    Columns:
        group_id, source, member_id: the key.
        client_id: as the member describes.
        flavour: ``OZKCC``: in ``ids`` but not in ``migration/ids`` (a MDZKCC can't be distinguished from it).
            ``MEZKCC``: in both.
            ``EKC``: a Kafka member whose subscription has the mark of the consumer embedded in a MEZKCC; where the
            coordinator shows no subscription, one whose client id is a ZooKeeper consumer id of its group.
            ``KC``: any other Kafka member.
            Null where ``migration/ids`` could not be read.

    >>> from kit.tables import schema
    >>> from kit.tables.polars import rows_of
    >>> source, enabled = ["zookeeper", "zookeeper", "kafka", "kafka"], [False, True, None, None]
    >>> who = {"member_id": ["g_old", "g_new", "g_new-1", "app-1"], "client_id": [None, None, "g_new", "g_new"]}
    >>> flags = {"in_migration_ids": enabled, "is_embedded": [None, None, True, False]}
    >>> members = rows_of(schema.MEMBERS, group_id="g", source=source, **who, **flags)
    >>> member_flavours(members).sort("member_id").select("member_id", "flavour").rows()
    [('app-1', 'KC'), ('g_new', 'MEZKCC'), ('g_new-1', 'EKC'), ('g_old', 'OZKCC')]
    """
    return with_flavours(members).select("group_id", "source", "member_id", "client_id", "flavour")


def with_flavours(members: FrameT) -> FrameT:
    """All columns of ``members`` and ``flavour``; those that have it as they are: a summary asks six times."""
    if "flavour" in members.collect_schema().names():
        return members
    consumer_ids = members.filter(nw.col("source") == ZOOKEEPER).select(
        "group_id", nw.col("member_id").alias("client_id"), is_registered=nw.lit(True)
    )
    flagged = members.join(consumer_ids.unique(), on=["group_id", "client_id"], how="left")
    return flagged.with_columns(flavour=_flavour()).drop("is_registered")


def _flavour() -> nw.Expr:
    is_kafka = nw.col("source") == KAFKA
    is_embedded = nw.coalesce(nw.col("is_embedded"), nw.col("is_registered"), nw.lit(False))
    return (
        nw.when(is_kafka & is_embedded)
        .then(nw.lit("EKC"))
        .when(is_kafka)
        .then(nw.lit("KC"))
        .when(nw.col("in_migration_ids"))
        .then(nw.lit("MEZKCC"))
        .when(~nw.col("in_migration_ids"))
        .then(nw.lit("OZKCC"))
    )
