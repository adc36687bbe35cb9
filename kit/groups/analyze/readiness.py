"""Find the stage of each group on KIP-125's path, and its next step."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.groups.analyze.blocking import blockers
from kit.groups.analyze.stages import NEXT_STEPS, group_stages
from kit.text.sentences import counted


@nw.narwhalify
def readiness(
    groups: FrameT,
    members: FrameT,
    ownership: FrameT,
    committed_offsets: FrameT,
    migration_states: FrameT,
    subscriptions: FrameT,
    topic_partitions: FrameT,
    owners: FrameT | None = None,
    parity: FrameT | None = None,
) -> FrameT:
    """Return where each group of a snapshot is on KIP-125's path, and what its next step is.

    Args:
        owners, parity: rows of ``kit.analyze.partition_owners`` and ``kit.analyze.group_parity``, where they are known
            already.

    Columns:
        group_id: the key.
        n_ozkcc, n_mezkcc, n_kc, mode, effective_mode, stage, n_blockers, is_ready, next_step: see ``group_readiness``.

    >>> from kit.tables import schema
    >>> from kit.tables.polars import rows_of
    >>> group = rows_of(schema.GROUPS, group_id="g", source="zookeeper")
    >>> members = rows_of(schema.MEMBERS, group_id="g", source="zookeeper", member_id=["a", "b"], in_migration_ids=True)
    >>> rest = ("OWNERSHIP", "COMMITTED_OFFSETS", "MIGRATION_STATES", "SUBSCRIPTIONS", "TOPIC_PARTITIONS")
    >>> rows = readiness(group, members, *[rows_of(getattr(schema, name)) for name in rest])
    >>> rows.select("n_mezkcc", "effective_mode", "stage", "n_blockers", "is_ready").rows()
    [(2, 'zookeeper', 'all MEZKCC', 0, True)]
    """
    tables = (groups, members, ownership, committed_offsets, migration_states, subscriptions, topic_partitions)
    stages = group_stages(groups, members, migration_states)
    return _readiness(stages, nw.from_native(blockers(*tables, owners, parity, stages)))


@nw.narwhalify
def group_readiness(groups: FrameT, members: FrameT, migration_states: FrameT, blockers: FrameT) -> FrameT:
    """Return how far each group is on KIP-125's path, from the rows of :func:`kit.analyze.blockers`.

    Columns:
        group_id: the key.
        n_ozkcc, n_mezkcc, n_kc: members; consumers embedded in a MEZKCC are not counted.
        mode: what ``migration/mode`` holds; null: no such znode.
        effective_mode: ``kafka`` or ``zookeeper``; null without members, or where the tables do not decide it.
        stage: one of ``kit.analyze.STAGES``.
        n_blockers: rows of ``blockers``.
        is_ready: nothing is in the way of the next step; false where the way is not clear (unsafe mix, unknown);
            null where there is no next step (all KC, empty).
        next_step: one sentence.

    >>> import polars as pl
    >>> from kit.tables import schema
    >>> from kit.tables.polars import rows_of
    >>> key = {"group_id": "g", "source": "zookeeper"}
    >>> group = rows_of(schema.GROUPS, **key)
    >>> members = rows_of(schema.MEMBERS, **key, member_id=["a", "b"], in_migration_ids=False)
    >>> mode = rows_of(schema.MIGRATION_STATES, group_id="g", mode="kafka")
    >>> found = pl.DataFrame({"group_id": ["g"], "blocker": ["not_migration_enabled"], "sentence": ["…"]})
    >>> rows = group_readiness(group, members, mode, found)
    >>> rows.select("n_ozkcc", "mode", "effective_mode", "stage", "n_blockers", "is_ready").rows()
    [(2, 'kafka', 'zookeeper', 'OZKCC', 1, False)]
    """
    return _readiness(group_stages(groups, members, migration_states), blockers)


def _readiness(stages: FrameT, blockers: FrameT) -> FrameT:
    counts = blockers.group_by("group_id").agg(nw.len().cast(nw.Int64).alias("n_blockers"))
    rows = stages.join(counts, on="group_id", how="left")
    rows = rows.with_columns(nw.col("n_blockers").fill_null(0))
    return rows.select(
        "group_id",
        "n_ozkcc",
        "n_mezkcc",
        "n_kc",
        "mode",
        "effective_mode",
        "stage",
        "n_blockers",
        is_ready=_is_ready(),
        next_step=_next_step(),
    )


def _is_ready() -> nw.Expr:
    stage = nw.col("stage")
    is_open = ~stage.is_in(["unsafe mix", "unknown"]) & (nw.col("n_blockers") == 0)
    return nw.when(~stage.is_in(["all KC", "empty"])).then(is_open)


def _next_step() -> nw.Expr:
    step = nw.lit(None, nw.String)
    for stage, sentence in NEXT_STEPS.items():
        step = nw.when(nw.col("stage") == stage).then(nw.lit(sentence)).otherwise(step)
    is_own_remedy = nw.col("stage").is_in(["unsafe mix", "unknown", "all KC"])
    first = nw.concat_str([nw.lit("First clear "), counted(nw.col("n_blockers"), "blocker"), nw.lit(". Then: ")])
    is_empty = nw.col("stage") == "empty"
    cleared = [nw.lit("Clear "), counted(nw.col("n_blockers"), "blocker"), nw.lit(" before a consumer is started.")]
    return (
        nw.when((nw.col("n_blockers") > 0) & is_empty)
        .then(nw.concat_str(cleared))
        .when((nw.col("n_blockers") > 0) & ~is_own_remedy)
        .then(nw.concat_str([first, step]))
        .otherwise(step)
    )
