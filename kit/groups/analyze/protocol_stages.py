"""The stage of each group between the classic protocol and the consumer protocol (KIP-848), from a snapshot."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.tables.groups import CLASSIC, CONSUMER, KAFKA


@nw.narwhalify
def protocol_stages(groups: FrameT, members: FrameT) -> FrameT:
    """Each group of Kafka with its stage; the same rule as ``kit.protocol.stage.stage_of``.

    Each member of a classic group speaks the classic protocol, although its ``member_type`` is null.

    Columns:
        group_id: the key.
        protocol_stage: ``classic``, ``canary``, ``mixed``, ``consumer``, ``empty`` or ``unknown``, see
            ``kit.protocol.stage.Stage``; null for a share or streams group, which has no such stage.

    >>> from kit.tables import schema
    >>> from kit.tables.polars import rows_of
    >>> group = rows_of(schema.GROUPS, group_id="g", source="kafka", group_type="consumer")
    >>> member_ids, types = ["a", "b"], ["classic", "consumer"]
    >>> members = rows_of(schema.MEMBERS, group_id="g", source="kafka", member_id=member_ids, member_type=types)
    >>> protocol_stages(group, members).rows()
    [('g', 'canary')]
    """
    of_kafka = members.filter(nw.col("source") == KAFKA)
    flagged = of_kafka.select(
        "group_id",
        is_classic=(nw.col("member_type") == CLASSIC).fill_null(False).cast(nw.Int64),
        is_consumer=(nw.col("member_type") == CONSUMER).fill_null(False).cast(nw.Int64),
    )
    counts = flagged.group_by("group_id").agg(
        nw.len().cast(nw.Int64).alias("n"),
        nw.col("is_classic").sum().alias("n_classic"),
        nw.col("is_consumer").sum().alias("n_consumer"),
    )
    rows = groups.filter(nw.col("source") == KAFKA).select("group_id", "group_type", "error")
    rows = rows.join(counts, on="group_id", how="left")
    rows = rows.with_columns(
        nw.col("group_type").fill_null(CLASSIC), nw.col("n", "n_classic", "n_consumer").fill_null(0)
    )
    return rows.select("group_id", protocol_stage=_stage())


def _stage() -> nw.Expr:
    n, n_consumer, kind = nw.col("n"), nw.col("n_consumer"), nw.col("group_type")
    is_read, is_consumer = nw.col("error").is_null(), kind == CONSUMER
    is_known = is_read & (nw.col("n_classic") + n_consumer == n)
    stage = nw.lit("unknown")
    rules = {
        "mixed": is_known & is_consumer,
        "canary": is_known & is_consumer & (n_consumer == 1),
        CONSUMER: is_known & is_consumer & (n_consumer == n),
        CLASSIC: is_read & (kind == CLASSIC) & (n_consumer == 0),
        "empty": is_known & (n == 0),
    }
    for name, holds in rules.items():
        stage = nw.when(holds).then(nw.lit(name)).otherwise(stage)
    return nw.when(kind.is_in([CLASSIC, CONSUMER])).then(stage)
