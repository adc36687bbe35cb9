"""ZooKeeper's metadata beside KRaft's, value by value (KIP-866, dual write)."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

VERDICTS = ("equal", "expected", "in_flight", "diverged", "unknown")
RULES = ("kraft_only", "pending_deletion", "presence_only", "iterations_only")
ITEM_KEY = ["kind", "entity", "item"]
_PRESENT = "present"
METRICS_PREFIX = "client-metrics/"
_LEADER, _EPOCH, _RECOVERY, _NONE = " leader ", " epoch ", " recovery ", "none"
_STATELESS = f"{_LEADER}{_NONE}{_EPOCH}{_NONE}{_RECOVERY}"
"""In the value of a partition without a state znode, as :func:`partition_values` makes it."""
LAST_QUOTA, CLIENT_METRICS, NO_STATE, MADE_AGAIN, DELETED_TOPIC, DELETED_USER, HAND_EDIT, FAILED_WRITE, NOT_COPIED = (
    CAUSES
) = (
    "last_quota",
    "client_metrics",
    "no_state",
    "made_again",
    "deleted_topic",
    "deleted_user",
    "hand_edit",
    "failed_write",
    "not_copied",
)
_KRAFT_ONLY = r"^(client-metrics|broker-loggers|groups|type-\d+)/"


@nw.narwhalify
def metadata_diff(
    zookeeper_partitions: FrameT,
    zookeeper_items: FrameT,
    kraft_partitions: FrameT,
    kraft_items: FrameT,
    removals: FrameT,
    pending_deletions: FrameT,
    checkpoint: int,
    is_syncing: bool = False,
    sync_cause: str | None = None,
) -> FrameT:
    """Every value of both stores, and what is to be thought of it.

    Args:
        zookeeper_partitions, kraft_partitions: ``tables.METADATA_PARTITIONS``.
        zookeeper_items, kraft_items: ``tables.METADATA_ITEMS``.
        removals: ``tables.METADATA_REMOVALS`` behind the checkpoint.
        pending_deletions: one column ``topic``: what ``/admin/delete_topics`` names.
        checkpoint: offset in ``/migration``, read before ZooKeeper's values; the log was read after them.
        is_syncing: the checkpoint is of another leader's epoch: whatever differs is in flight.
        sync_cause: why that will not end by itself, where it is known.

    Columns:
        kind, entity, item: the key, as in ``tables.METADATA_ITEMS``; kind ``partition`` has topic and number.
        zookeeper_value, kraft_value: null where that store has none; ``present`` for what has no value (an ACL) or a
            redacted one.
        verdict: ``equal``; ``expected`` by ``rule``; ``in_flight``: KRaft changed or removed it behind the checkpoint;
            ``diverged``; ``unknown``: ZooKeeper's side could not be read (``error``).
        rule: ``kraft_only``: ZooKeeper never has it. ``pending_deletion``: ZooKeeper was asked to delete the topic.
            Of an equal value: ``presence_only`` (a password that ZooKeeper has enciphered, or that was read without
            fingerprints), ``iterations_only`` (a SCRAM credential that was).
        cause: where it is known. ``last_quota``: the last quota of an entity was removed, and 3.9 fails to remove it
            from ZooKeeper; ``not_copied``: settings of a topic that KRaft doesn't have; ``client_metrics``: a setting
            with which 3.9 can't bring ZooKeeper up to date after an election, and what waits for that; ``no_state``: a
            partition that its topic's znode names, without a state znode: 3.9 writes the two one after the other, and
            a controller that is elected between them never gets on; ``made_again``: in flight while ZooKeeper has a
            topic of that name under another id: a controller of 3.9 that is elected then wants to create it, and
            does not continue. All other causes are those of ``with_causes``.
        mzxid, offset: the last change of the znode; of the record.
    """
    columns = [*ITEM_KEY, "zookeeper_value", "kraft_value", "is_secret", "mzxid", "offset", "error"]
    zookeeper, kraft = "zookeeper_value", "kraft_value"
    both: FrameT = nw.concat(
        [
            _with_null(partition_values(zookeeper_partitions, zookeeper), kraft).select(*columns),
            _with_null(item_values(zookeeper_items, zookeeper), kraft).select(*columns),
            _with_null(partition_values(kraft_partitions, kraft), zookeeper).select(*columns),
            _with_null(item_values(kraft_items, kraft), zookeeper).select(*columns),
        ]
    )
    rows = both.group_by(*ITEM_KEY).agg(*[nw.col(name).max() for name in columns[len(ITEM_KEY) :]])
    rows = _with_unread(rows, zookeeper_items)
    rows = _with_removals(rows, removals)
    rows = _with_remade(_with_owners(rows, kraft_items, pending_deletions))
    is_in_flight = (nw.col("changed_at") > checkpoint).fill_null(False)
    return rows.with_columns(is_in_flight=is_in_flight | nw.lit(is_syncing), rule=_rule(), cause=_cause()).select(
        *ITEM_KEY,
        "zookeeper_value",
        "kraft_value",
        verdict=_verdict(),
        rule=nw.when(_is_equal() | _is_expected()).then(nw.col("rule")),
        cause=nw.when(_is_expected())
        .then(nw.when(nw.col("entity").str.starts_with(METRICS_PREFIX)).then(nw.lit(CLIENT_METRICS)))
        .when(_is_stateless() & ~_is_equal())
        .then(nw.lit(NO_STATE))
        .when(~_is_unread() & ~_is_equal())
        .then(nw.when(nw.col("is_in_flight")).then(_cause_in_flight(sync_cause)).otherwise(nw.col("cause"))),
        mzxid="mzxid",
        offset="offset",
        error="error",
    )


@nw.narwhalify
def diff_summary(differences: FrameT) -> FrameT:
    """``metadata_diff`` counted. Columns: kind, n_values, n_equal, n_expected, n_in_flight, n_diverged, n_unknown."""
    flags = [(nw.col("verdict") == verdict).cast(nw.Int64).alias(f"n_{verdict}") for verdict in VERDICTS]
    counted = differences.select("kind", nw.lit(1, nw.Int64).alias("n_values"), *flags)
    names = ["n_values", *[f"n_{verdict}" for verdict in VERDICTS]]
    return counted.group_by("kind").agg(*[nw.col(name).sum() for name in names])


def _with_null(rows: FrameT, column: str) -> FrameT:
    return rows.with_columns(nw.lit(None, nw.String).alias(column))


def partition_values(partitions: FrameT, side: str) -> FrameT:
    """Return one value per row of ``tables.METADATA_PARTITIONS``, in the column of its side."""
    texts = {
        "": "assignment_key",
        " isr ": "isr_key",
        _LEADER: "leader",
        _EPOCH: "leader_epoch",
        _RECOVERY: "recovery",
        " id ": "topic_id",
    }
    parts = [part for word, name in texts.items() for part in (nw.lit(word), _or_none(nw.col(name)))]
    value = nw.when(nw.col("error").is_null()).then(nw.concat_str(parts))
    return partitions.select(
        nw.lit("partition").alias("kind"),
        nw.col("topic").alias("entity"),
        nw.col("partition").cast(nw.String).alias("item"),
        value.alias(side),
        nw.lit(0, nw.Int64).alias("is_secret"),
        "mzxid",
        "offset",
        "error",
    )


def item_values(items: FrameT, side: str) -> FrameT:
    """Return the value of each row of ``tables.METADATA_ITEMS`` in the column of its side, and ``present`` where
    none is reported.
    """
    value = nw.when(nw.col("error").is_null()).then(nw.coalesce(nw.col("value"), nw.lit(_PRESENT)))
    return items.select(
        *ITEM_KEY,
        value.alias(side),
        nw.col("is_secret").cast(nw.Int64).alias("is_secret"),
        "mzxid",
        "offset",
        "error",
    )


def _or_none(value: nw.Expr) -> nw.Expr:
    return nw.coalesce(value.cast(nw.String), nw.lit(_NONE))


def _with_unread(rows: FrameT, zookeeper_items: FrameT) -> FrameT:
    """``unread``: why all of the entity, or of the kind, is unknown."""
    unread = zookeeper_items.filter(~nw.col("error").is_null() & (nw.col("item") == ""))
    entities = unread.group_by("kind", "entity").agg(nw.col("error").max().alias("entity_error"))
    kinds = unread.filter(nw.col("entity") == "").group_by("kind").agg(nw.col("error").max().alias("kind_error"))
    rows = rows.join(entities, on=["kind", "entity"], how="left").join(kinds, on="kind", how="left")
    return rows.with_columns(error=nw.coalesce(nw.col("error"), nw.col("entity_error"), nw.col("kind_error")))


def _with_removals(rows: FrameT, removals: FrameT) -> FrameT:
    """``changed_at``: the last record that set or removed the value."""
    whole = removals.filter(nw.col("item").is_null()).group_by("kind", "entity")
    single = removals.filter(~nw.col("item").is_null()).group_by(*ITEM_KEY)
    rows = rows.join(whole.agg(nw.col("offset").max().alias("entity_removed_at")), on=["kind", "entity"], how="left")
    rows = rows.join(single.agg(nw.col("offset").max().alias("removed_at")), on=ITEM_KEY, how="left")
    changes = [nw.col(name).fill_null(-1) for name in ("offset", "removed_at", "entity_removed_at")]
    return rows.with_columns(changed_at=nw.max_horizontal(*changes))


def _with_owners(rows: FrameT, kraft_items: FrameT, pending_deletions: FrameT) -> FrameT:
    """``topic`` of what belongs to one, whether KRaft has it and it shall be deleted; whether the entity has quotas."""
    is_setting = (nw.col("kind") == "config") & nw.col("entity").str.starts_with("topics/")
    is_topic = nw.col("kind").is_in(["topic", "partition"])
    topic = nw.when(is_setting).then(nw.col("entity").str.slice(7)).when(is_topic).then(nw.col("entity"))
    rows = rows.with_columns(topic=topic)
    topics = kraft_items.filter(nw.col("kind") == "topic").select(topic=nw.col("entity")).unique()
    quotas = kraft_items.filter(nw.col("kind") == "quota").select("kind", "entity").unique()
    pending = pending_deletions.select("topic").unique()
    rows = rows.join(topics.with_columns(has_topic=nw.lit(True)), on="topic", how="left")
    rows = rows.join(quotas.with_columns(has_quota=nw.lit(True)), on=["kind", "entity"], how="left")
    rows = rows.join(pending.with_columns(is_pending=nw.lit(True)), on="topic", how="left")
    return rows.with_columns(nw.col("has_topic", "has_quota", "is_pending").fill_null(False))


def _with_remade(rows: FrameT) -> FrameT:
    """``is_remade``: whether ZooKeeper has the topic that it belongs to under another id."""
    has_other_id = (nw.col("kind") == "topic") & (nw.col("zookeeper_value") != nw.col("kraft_value"))
    remade = rows.filter(has_other_id.fill_null(False)).select("topic", is_remade=nw.lit(True)).unique()
    return rows.join(remade, on="topic", how="left").with_columns(nw.col("is_remade").fill_null(False))


def _is_unread() -> nw.Expr:
    return ~nw.col("error").is_null()


def _is_equal() -> nw.Expr:
    same = nw.col("zookeeper_value") == nw.col("kraft_value")
    is_enciphered = _is_password() & (nw.col("zookeeper_value") == _PRESENT) & ~nw.col("kraft_value").is_null()
    return ~_is_unread() & (same | is_enciphered).fill_null(False)


def _is_expected() -> nw.Expr:
    return ~_is_unread() & ~_is_equal() & nw.col("rule").is_in(["kraft_only", "pending_deletion"]).fill_null(False)


def _verdict() -> nw.Expr:
    return (
        nw.when(_is_unread())
        .then(nw.lit("unknown"))
        .when(_is_equal())
        .then(nw.lit("equal"))
        .when(_is_expected())
        .then(nw.lit("expected"))
        .when(nw.col("is_in_flight"))
        .then(nw.lit("in_flight"))
        .otherwise(nw.lit("diverged"))
    )


def _rule() -> nw.Expr:
    is_kraft_s = nw.col("kind").is_in(["feature", "migration"]) | nw.col("entity").str.contains(_KRAFT_ONLY)
    return (
        nw.when(is_kraft_s & nw.col("zookeeper_value").is_null())
        .then(nw.lit("kraft_only"))
        .when(nw.col("is_pending") & nw.col("kraft_value").is_null())
        .then(nw.lit("pending_deletion"))
        .when(_is_password() & (nw.col("zookeeper_value") == _PRESENT))
        .then(nw.lit("presence_only"))
        .when((nw.col("kind") == "scram") & ~nw.col("zookeeper_value").str.starts_with("salt="))
        .then(nw.lit("iterations_only"))
    )


def _is_password() -> nw.Expr:
    return (nw.col("is_secret") > 0) & (nw.col("kind") == "config")


def _is_stateless() -> nw.Expr:
    """Return whether the partition has no state znode. A partition whose leader is gone still has its epoch."""
    state = nw.col("zookeeper_value").str.contains(_STATELESS, literal=True).fill_null(False)
    return (nw.col("kind") == "partition") & state & ~nw.col("kraft_value").is_null()


def _cause_in_flight(sync_cause: str | None) -> nw.Expr:
    known = nw.lit(sync_cause, nw.String)
    return nw.when(known.is_null() & nw.col("is_remade")).then(nw.lit(MADE_AGAIN)).otherwise(known)


def _cause() -> nw.Expr:
    is_missing = nw.col("kraft_value").is_null()
    is_orphan = is_missing & (nw.col("kind") == "config") & ~nw.col("topic").is_null() & ~nw.col("has_topic")
    return (
        nw.when(is_missing & (nw.col("kind") == "quota") & ~nw.col("has_quota"))
        .then(nw.lit(LAST_QUOTA))
        .when(is_orphan)
        .then(nw.lit(NOT_COPIED))
    )
