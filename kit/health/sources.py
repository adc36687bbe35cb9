"""Lag in time and its outlook, live; a history, or the coordinators' topic, as Burrow's rules take them.

The rules themselves are ``kit.analyze.partition_health``; docs/health.md has the whole way, with figures.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import narwhals as nw
import polars as pl

from kit.clients.cluster import Cluster, librdkafka_settings
from kit.errors import InputError
from kit.groups.read.transactions import fetch_transactional
from kit.groups.snapshot import Frame, Snapshot
from kit.health import analyses
from kit.health.analyze.causes import Seen
from kit.health.analyze.rules import Rule
from kit.health.analyze.time_lag import IDLE_MS
from kit.health.analyze.verified import verify_outlook as verify_outlook, verify_time_lag as verify_time_lag
from kit.health.read.next_records import find_record_times, with_quiet
from kit.health.read.offset_times import RESOLUTION_MS, Position, fetch_anchors
from kit.health.read.record_timestamps import read_record_times
from kit.health.read.retention import fetch_retention
from kit.tables import schema as tables
from kit.tables.polars import as_polars
from kit.tables.schema import Table
from kit.tables.spark import in_spark

BISECTION, ANCHORS, RECORD = "bisection", "anchors", "record"
_LOOKS_BEFORE = 20
"""The number of observations before an incident from which its logs' rate is taken."""
METHODS = (BISECTION, ANCHORS, RECORD)


def time_lag(
    cluster: Cluster,
    partition_lag: pl.DataFrame,
    at_ms: int,
    method: str = BISECTION,
    resolution_ms: int = RESOLUTION_MS,
) -> pl.DataFrame:
    """``kit.views.lag`` of a polars snapshot → its lag in time; columns as ``time_lag_by_records`` has them.

    Args:
        at_ms: when the ends of the logs were known (epoch): :func:`seen_at_ms` of the snapshot.
        method: ``bisection`` (ListOffsets by time; a record is read only where that can't determine), ``anchors`` (a
        line
            from the first record to the newest), ``record`` (the record itself). By a history of polls:
            ``kit.analyze.time_lag_by_polls``.
        resolution_ms: how narrow the bracket of a bisection is to be.

    Raises:
        InputError: there is no such method.
        ConnectError, ReadError: the brokers stopped answering, or can't determine.
    """
    if method not in METHODS:
        raise InputError(f"there is no method {method!r} for a lag in time; the methods are {', '.join(METHODS)}")
    positions, ends = _unread(partition_lag), _ends(partition_lag)
    client, settings = cluster.broker_client, librdkafka_settings(cluster.profile)
    if method == ANCHORS:
        keys = {(topic, partition) for topic, partition, _ in positions}
        anchors = _rows(tables.LOG_ANCHORS, fetch_anchors(client, keys))
        log = {name: anchors.schema[name] for name in ("topic", "partition")}
        holes = pl.DataFrame(list(fetch_transactional(client, keys)), schema=log, orient="row")
        return _frame(analyses.time_lag_by_anchors(partition_lag, anchors, at_ms, holes))
    if method == RECORD:
        found = read_record_times(settings, positions, ends, at_ms)
    else:
        found = find_record_times(client, settings, positions, ends, at_ms, resolution_ms)
    found = with_quiet(client, found, ends, at_ms - IDLE_MS)
    return _frame(analyses.time_lag_by_records(partition_lag, _rows(tables.RECORD_TIMES, found), method, at_ms))


def outlook(cluster: Cluster, looks: pl.DataFrame) -> pl.DataFrame:
    """Return when each lag is closed, and when unread records are deleted; columns as ``lag_outlook`` has them.

    Args:
        looks: ``kit.views.lag`` of several polars snapshots, each with at_ms (:func:`seen_at_ms`), one below the
            other; the last one is the present state. If the clock was set back among them, later ones count.

    Raises:
        ConnectError, ReadError: the brokers stopped answering, or can't determine.
    """
    return time_lag_and_outlook(cluster, looks)[1]


def time_lag_and_outlook(cluster: Cluster, looks: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """:func:`time_lag` by bisection and :func:`outlook` of the last observation, for the second's requests alone."""
    looks = _by_one_clock(looks)
    last = looks.filter(pl.col("at_ms") == pl.col("at_ms").max())
    at_ms = int(last["at_ms"].max() or 0)  # type: ignore[arg-type]
    logs = set(last.select("topic", "partition").iter_rows())
    retention = _rows(tables.LOG_RETENTION, fetch_retention(cluster.broker_client, logs))
    positions = set(_frame(analyses.outlook_positions(last, retention)).iter_rows())
    client, settings, ends = cluster.broker_client, librdkafka_settings(cluster.profile), _ends(last)
    found = find_record_times(client, settings, positions, ends, at_ms)
    arrivals = _rows(tables.RECORD_TIMES, with_quiet(client, found, ends, at_ms - IDLE_MS))
    late = analyses.time_lag_by_records(last, arrivals, BISECTION, at_ms)
    return _frame(late), _frame(analyses.lag_outlook(last, looks, retention, arrivals, at_ms))


def commits_of_history(committed_offsets: Frame) -> Frame:
    """``history.load(tables.COMMITTED_OFFSETS)``, or polars rows like it, as commits (``commits_seen``)."""
    result: Frame = analyses.commits_seen(
        in_ms(committed_offsets, observed_ms="observed_at", written_ms="committed_at")
    )
    return result


def commits_of_topic(offset_commits: Frame) -> Frame:
    """``read_offsets_topic(…).commits``, or polars rows like it, as commits (``topic_commits``)."""
    result: Frame = analyses.topic_commits(in_ms(offset_commits, written_ms="written_at", committed_ms="committed_at"))
    return result


def ends_of_history(log_offsets: Frame, read_timings: Frame) -> Frame:
    """``tables.LOG_OFFSETS`` and ``tables.READ_TIMINGS`` of a history as sampled ends, for health and for lag by polls.

    Columns: topic, partition, log_end_offset, sampled_ms, sampled_until_ms (epoch; between which the end was read).
    """
    started: Any = nw.from_native(in_ms(read_timings, sampled_ms="started_at"))
    steps = started.filter(nw.col("step") == "log offsets").select("snapshot_id", "sampled_ms")
    ends: Any = nw.from_native(in_ms(log_offsets, sampled_until_ms="observed_at"))
    columns = ["topic", "partition", "log_end_offset", "sampled_ms", "sampled_until_ms"]
    result: Frame = nw.to_native(ends.join(steps, on="snapshot_id", how="inner").select(*columns))
    return result


def judged(load: Callable[..., Any], judge: Callable[..., Any], looks: pl.DataFrame) -> Any:
    """Return the result of ``judge`` on what ``history.by_groups`` delivers, on either engine.

    Args:
        judge: ``analyze.partition_health``, a rule's ``verdicts``, or another that takes commits, ends and times.
        looks: at_ms (epoch), the times; :func:`looks_of`.
    """
    at = ("topic", "partition")
    columns = ("group_id", "store", *at, "committed_offset", "committed_at", "observed_at", "error")
    commits = commits_of_history(load(tables.COMMITTED_OFFSETS, *columns))
    ends = ends_of_history(
        load(tables.LOG_OFFSETS, *at, "log_end_offset", "observed_at"),
        load(tables.READ_TIMINGS, "step", "started_at"),
    )
    is_local = isinstance(commits, pl.DataFrame)
    return judge(commits, ends, looks if is_local else in_spark(commits.sparkSession, looks.to_arrow()))


def lags(load: Callable[..., Any]) -> Any:
    """:func:`lags_of_history` of what ``history.by_groups`` delivers."""
    return lags_of_history(*_offsets_and_ends(load))


def ages(load: Callable[..., Any], holes: Iterable[str] = ()) -> Any:
    """:func:`ages_of_history` of what ``history.by_groups`` delivers."""
    return ages_of_history(*_offsets_and_ends(load), holes)


def _offsets_and_ends(load: Callable[..., Any]) -> tuple[Any, Any]:
    at = ("topic", "partition", "observed_at")
    offsets = load(tables.COMMITTED_OFFSETS, "group_id", "store", *at, "committed_offset")
    return offsets, load(tables.LOG_OFFSETS, *at, "log_end_offset")


def lags_of_history(committed_offsets: Frame, log_offsets: Frame) -> Frame:
    """``tables.COMMITTED_OFFSETS`` and ``LOG_OFFSETS`` of a history as lags over time (``lag_over_time``)."""
    result: Frame = analyses.lag_over_time(in_ms(committed_offsets, at_ms="observed_at"), log_offsets)
    return result


def ages_of_history(committed_offsets: Frame, log_offsets: Frame, holes: Iterable[str] = ()) -> Frame:
    """``tables.COMMITTED_OFFSETS`` and ``LOG_OFFSETS`` of a history as ages over time (``time_lag_over_time``).

    Args:
        holes: the topics that are compacted, or hold transactions: no history shows.
    """
    at, topics, logs = {"at_ms": "observed_at"}, list(holes), in_ms(log_offsets)
    named: Any = nw.from_native(logs).filter(nw.col("topic").is_in(topics)).to_native() if topics else None
    result: Frame = analyses.time_lag_over_time(in_ms(committed_offsets, **at), in_ms(log_offsets, **at), named)
    return result


def causes(incidents: pl.DataFrame, load: Callable[[Table], Any], findings: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return why each incident came about; columns and rules as ``incident_causes`` has them.

    Only the observations around each incident are read, and of them the rows of its groups.

    Args:
        incidents: ``analyze.group_alarms`` of the history.
        load: a table of the history, on either engine: ``history.load``.
        findings: of the groups' logs: ``read_rebalances(…).findings``.
    """
    looks = as_polars(in_ms(load(tables.SNAPSHOTS), at_ms="ended_at").select("snapshot_id", "at_ms")).sort("at_ms")
    near = _around(looks, incidents)
    ids, groups = near["snapshot_id"].to_list(), incidents["group_id"].unique().to_list()

    def rows(table: Table, column: str, names: list[str]) -> pl.DataFrame:
        frame: Any = nw.from_native(load(table))
        chosen = frame.filter(nw.col("snapshot_id").is_in(ids) & nw.col(column).is_in(names))
        return as_polars(nw.to_native(chosen))

    members, ownership, committed = (
        rows(table, "group_id", groups) for table in (tables.MEMBERS, tables.OWNERSHIP, tables.COMMITTED_OFFSETS)
    )
    ends = rows(tables.LOG_OFFSETS, "topic", committed["topic"].unique().to_list())
    return analyses.incident_causes(incidents, Seen(near, members, ownership, committed, ends), findings)


def _around(looks: pl.DataFrame, incidents: pl.DataFrame) -> pl.DataFrame:
    """From some observations before each begin to the alarm."""
    at, near = looks["at_ms"].to_list(), set[int]()
    for since_ms, from_ms in incidents.select("since_ms", "from_ms").iter_rows():
        near.update(range(max(0, bisect_left(at, since_ms) - _LOOKS_BEFORE), bisect_right(at, from_ms)))
    return looks[sorted(near)]


def looks_of(snapshots: pl.DataFrame, every_min: float = 0.0) -> pl.DataFrame:
    """Return when the snapshots of a history were complete, as the times of observations: at_ms, in order.

    Args:
        every_min: minutes; at most one observation of each such interval is read.
    """
    looks = list[int]()
    for at_ms in snapshots["ended_at"].dt.epoch("ms").sort():
        if not looks or at_ms - looks[-1] >= 60_000 * every_min:
            looks.append(at_ms)
    return pl.DataFrame({"at_ms": looks}, schema={"at_ms": pl.Int64})


def backtest(rules: Iterable[Rule], commits: Frame, ends: Frame, times: Frame, incidents: Frame) -> pl.DataFrame:
    """Compare the verdicts of each rule over a time with what happened; the best rule first.

    A search for parameters is a back-test of many rules: ``[BurrowRule(intervals=n) for n in (5, 10, 20)]``. Frames of
    one engine; on Spark each rule is a job, and only its alarms are collected.

    Args:
        commits, ends: :func:`commits_of_history` or :func:`commits_of_topic`, and :func:`ends_of_history`.
        times: at_ms (epoch), the observations. An alarm lasts from an observation to the next one without it.
        incidents: group_id, from_ms, until_ms (epoch): what really happened; alarms of other groups are false.

    Columns:
        rule: with its parameters.
        n_incidents, n_caught: an alarm was on while it lasted.
        worst_delay_ms: from the begin of an incident to its alarm, of those that were caught.
        n_false_alarms, false_ms: on in no incident of their group; how long they were on together.
    """
    happened = as_polars(incidents).unique()
    return pl.DataFrame(
        [
            _score(rule, as_polars(analyses.group_alarms(rule.verdicts(commits, ends, times))), happened)
            for rule in rules
        ],
        schema=_SCORE,
    ).sort("n_caught", "n_false_alarms", "worst_delay_ms", descending=[True, False, False], nulls_last=True)


_SCORE = {"rule": pl.String, **dict.fromkeys(("n_incidents", "n_caught", "worst_delay_ms"), pl.Int64)} | dict.fromkeys(
    ("n_false_alarms", "false_ms"), pl.Int64
)


def _score(rule: Rule, alarms: pl.DataFrame, incidents: pl.DataFrame) -> dict[str, Any]:
    outcomes = _frame(analyses.incident_outcomes(alarms, incidents))
    false = _frame(analyses.false_alarms(alarms, incidents))
    return {
        "rule": repr(rule),
        "n_incidents": len(outcomes),
        "n_caught": outcomes["is_caught"].sum(),
        "worst_delay_ms": outcomes["delay_ms"].max(),
        "n_false_alarms": len(false),
        "false_ms": (false["until_ms"] - false["from_ms"]).sum(),
    }


def in_ms(frame: Any, **columns: str) -> Any:
    """With times as epoch milliseconds, which narwhals can't make on Spark."""
    if isinstance(frame, pl.DataFrame):
        return frame.with_columns(**{name: pl.col(time).dt.epoch("ms") for name, time in columns.items()})
    from pyspark.sql import functions as F

    return frame.withColumns({name: F.unix_millis(time) for name, time in columns.items()})


def seen_at_ms(snapshot: Snapshot[pl.DataFrame]) -> int:
    """Return when a snapshot was complete (epoch ms): every record below its ends was appended before."""
    (at,) = snapshot.snapshots.select(pl.col("ended_at").dt.epoch("ms")).to_series()
    return int(at)


def _unread(partition_lag: pl.DataFrame) -> set[Position]:
    """Return where groups will read next, of the partitions with something to read."""
    following = pl.max_horizontal("log_start_offset", "committed_offset")
    behind = partition_lag.filter((pl.col("lag") > 0) & (following < pl.col("log_end_offset")))
    return set(behind.select("topic", "partition", following).iter_rows())


def _by_one_clock(looks: pl.DataFrame) -> pl.DataFrame:
    """The observations since the clock was set back the last time: how long ago the ones before were is unknown."""
    went_back = (pl.col("at_ms") < pl.col("at_ms").shift(1)).fill_null(False).cum_sum()
    return looks.filter(went_back == went_back.max())


def _ends(partition_lag: pl.DataFrame) -> dict[tuple[str, int], int]:
    """Return where the logs ended at the observation, of those of which that is known."""
    rows = partition_lag.select("topic", "partition", "log_end_offset").drop_nulls().unique()
    return {(topic, partition): end for topic, partition, end in rows.iter_rows()}


def _rows(table: Table, rows: Sequence[object]) -> pl.DataFrame:
    return _frame(pl.from_arrow(table.from_rows(rows)))


def _frame(frame: object) -> pl.DataFrame:
    assert isinstance(frame, pl.DataFrame)
    return frame
