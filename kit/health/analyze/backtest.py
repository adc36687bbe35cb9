"""Compare the verdicts of a rule with what happened: spans of verdicts, incidents caught, false alarms."""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw
from narwhals.typing import FrameT

from kit.health.analyze.windows import PARTITION

_GROUP = ["group_id", "store"]
_UNKNOWN = "unknown"


@nw.narwhalify
def verdict_spans(verdicts: FrameT) -> FrameT:
    """Observations, one after the other, that reported the same of a partition, as one span of time.

    Args:
        verdicts: rows of a rule (``kit.health.analyze.rules``), or of ``partition_health``: the key, at_ms, status.

    Columns:
        group_id, store, topic, partition: the key.
        status: what was reported; ``unknown`` where it is null.
        from_ms, until_ms: from the first such observation to the next one that reported something else, or to the last
        observation.

    >>> import polars as pl
    >>> looks = pl.DataFrame({"group_id": "g", "store": "kafka", "topic": "t", "partition": 0,
    ...     "at_ms": [0, 10, 20, 30], "status": ["OK", "STOP", "STOP", "OK"]})
    >>> verdict_spans(looks).select("status", "from_ms", "until_ms").sort("from_ms").rows()
    [('OK', 0, 10), ('STOP', 10, 30), ('OK', 30, 30)]
    """
    rows = verdicts.select(*PARTITION, "at_ms", status=nw.col("status").fill_null(_UNKNOWN))
    return _spans(rows, PARTITION, "status")


@nw.narwhalify
def group_alarms(verdicts: FrameT) -> FrameT:
    """The spans in which a rule raised an alarm for any partition of a group.

    Args:
        verdicts: rows of a rule: is_alarm, since_ms, lag.

    Columns:
        group_id, store: the key.
        from_ms, until_ms: from the first such observation to the first without, or to the last observation.
        since_ms: since when it had been so by the evidence: an alarm comes later than what it is of.
        n_partitions: with an alarm, in the worst observation.
        max_lag: of all partitions together where it is known, in records; null: it is known of none.

    >>> import polars as pl
    >>> looks = {"group_id": "g", "store": "kafka", "topic": "t", "partition": 0, "at_ms": [10, 20, 30]}
    >>> looks |= {"is_alarm": [False, True, False], "since_ms": [None, 15, None], "lag": [1, 9, 0]}
    >>> group_alarms(pl.DataFrame(looks)).select("from_ms", "until_ms", "since_ms", "max_lag").rows()
    [(20, 30, 15, 9)]
    """
    counted = verdicts.with_columns(n=nw.col("is_alarm").cast(nw.Int64))
    looks = counted.group_by(*_GROUP, "at_ms").agg(
        nw.col("n").sum(), nw.col("lag").sum(), nw.col("lag").count().alias("n_known"), nw.col("since_ms").min()
    )
    looks = looks.with_columns(lag=nw.when(nw.col("n_known") > 0).then(nw.col("lag")))
    looks = looks.with_columns(status=nw.when(nw.col("n") > 0).then(nw.lit("alarm")).otherwise(nw.lit("quiet")))
    figures = {"since_ms": nw.col("since_ms").min(), "n_partitions": nw.col("n").max(), "max_lag": nw.col("lag").max()}
    spans = _spans(looks, _GROUP, "status", **figures)
    return spans.filter(nw.col("status") == "alarm").drop("status")


@nw.narwhalify
def incident_outcomes(alarms: FrameT, incidents: FrameT) -> FrameT:
    """Return the outcome of each incident: whether an alarm was on while it lasted, and after how long.

    Args:
        alarms: :func:`group_alarms`.
        incidents: group_id, from_ms, until_ms (epoch): what really happened.

    Columns:
        group_id, from_ms, until_ms: the incident.
        is_caught: an alarm was on in it.
        alarm_ms: since when; null: it was missed.
        delay_ms: after how long; 0 where the alarm was on before.

    >>> import polars as pl
    >>> alarms = pl.DataFrame({"group_id": "g", "store": "kafka", "from_ms": [50, 150], "until_ms": [60, 300]})
    >>> incidents = pl.DataFrame({"group_id": "g", "from_ms": [100, 400], "until_ms": [200, 500]})
    >>> incident_outcomes(alarms, incidents).sort("from_ms").select("is_caught", "delay_ms").rows()
    [(True, 50), (False, None)]
    """
    began = alarms.select("group_id", alarm_ms="from_ms", ended_ms="until_ms")
    pairs = incidents.select("group_id", "from_ms", "until_ms").join(began, on="group_id", how="left")
    is_on = (nw.col("alarm_ms") < nw.col("until_ms")) & (nw.col("ended_ms") > nw.col("from_ms"))
    pairs = pairs.with_columns(alarm_ms=nw.when(is_on).then(nw.col("alarm_ms")))
    rows = pairs.group_by("group_id", "from_ms", "until_ms").agg(nw.col("alarm_ms").min())
    delay = nw.col("alarm_ms") - nw.col("from_ms")
    return rows.select(
        "group_id",
        "from_ms",
        "until_ms",
        "alarm_ms",
        is_caught=~nw.col("alarm_ms").is_null(),
        delay_ms=nw.when(delay < 0).then(nw.lit(0, nw.Int64)).otherwise(delay),
    )


@nw.narwhalify
def false_alarms(alarms: FrameT, incidents: FrameT) -> FrameT:
    """The alarms that were on in no incident of their group.

    Args:
        alarms: :func:`group_alarms`.
        incidents: group_id, from_ms, until_ms (epoch): what really happened.

    Columns:
        group_id, store: the key.
        from_ms, until_ms, since_ms, n_partitions, max_lag: as in :func:`group_alarms`.

    >>> import polars as pl
    >>> alarms = {"group_id": "g", "store": "kafka", "from_ms": [50, 150], "until_ms": [60, 300]}
    >>> alarms |= {"since_ms": [40, 120], "n_partitions": 1, "max_lag": [7, 9]}
    >>> incidents = pl.DataFrame({"group_id": "g", "from_ms": [100], "until_ms": [200]})
    >>> false_alarms(pl.DataFrame(alarms), incidents).select("from_ms", "until_ms", "max_lag").rows()
    [(50, 60, 7)]
    """
    real = incidents.select("group_id", began_ms="from_ms", over_ms="until_ms")
    pairs = alarms.join(real, on="group_id", how="left")
    touches = (nw.col("from_ms") < nw.col("over_ms")) & (nw.col("until_ms") > nw.col("began_ms"))
    pairs = pairs.with_columns(touches=touches.fill_null(False).cast(nw.Int64))
    columns = [*_GROUP, "from_ms", "until_ms", "since_ms", "n_partitions", "max_lag"]
    return pairs.group_by(*columns).agg(nw.col("touches").max()).filter(nw.col("touches") == 0).select(*columns)


def _spans(rows: FrameT, key: Sequence[str], status: str, **figures: nw.Expr) -> FrameT:
    at, current = nw.col("at_ms"), nw.col(status)
    before = current.shift(1).over(*key, order_by="at_ms")
    following = at.shift(-1).over(*key, order_by="at_ms")
    rows = rows.with_columns(is_new=(current != before).fill_null(False).cast(nw.Int64), following_ms=following)
    rows = rows.with_columns(
        turn=nw.col("is_new").cum_sum().over(*key, order_by="at_ms"), following_ms=nw.coalesce("following_ms", at)
    )
    spans = rows.group_by(*key, status, "turn").agg(
        at.min().alias("from_ms"), nw.col("following_ms").max().alias("until_ms"),
        *[figure.alias(name) for name, figure in figures.items()],
    )  # fmt: skip
    return spans.drop("turn")
