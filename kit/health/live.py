"""Examines all groups of a cluster, one after the other: what each costs, and who is at risk by all that are kept."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

from kit.clients.cluster import Cluster
from kit.errors import InputError
from kit.groups import views
from kit.groups.analyze.beyond_end import BEYOND_END
from kit.groups.read.whole_cluster import EVERY_GROUP
from kit.groups.show.sparkline import sparkline
from kit.groups.snapshot import Snapshot, observe
from kit.health import analyses
from kit.health.analyze.windows import PARTITION
from kit.text.known_sum import known_sum
from kit.text.quantity import quantity

KEPT = 12
"""Polls: rates go back so far."""
FEWEST = 4
"""Polls without which nothing grows or closes: of two, chance alone puts the second one higher half of the time."""
TOO_FEW = f"rates need 2 polls, and a trend needs {FEWEST}"
RISKS = (BEYOND_END, "standing", "growing", "steady", "unknown", "closing", "caught up")
"""The risks of a group or a partition, the worst first."""
_GROUP = ["group_id", "store"]
_PARTS = {"committed": "committed_offset", "end": "log_end_offset", "start": "log_start_offset"}
_RATES = ["lag_per_s", "read_per_s", "written_per_s"]


@dataclass(frozen=True)
class Poll:
    """``partitions``: rows of ``kit.views.lag`` of stores in use, with at_ms; ``took_s`` and below: its cost."""

    number: int
    at: datetime
    snapshot: Snapshot[pl.DataFrame]
    partitions: pl.DataFrame
    took_s: float
    n_requests: int
    n_zookeeper_requests: int

    @property
    def cost(self) -> str:
        """Its cost in words."""
        zookeeper = f" and {self.n_zookeeper_requests:,} to ZooKeeper" if self.n_zookeeper_requests else ""
        return f"{self.took_s:.1f} s, {quantity(self.n_requests, 'request')} to brokers{zookeeper}"


class Polls:
    """The last examines the groups whose whole id matches the regular expression ``pattern``."""

    def __init__(self, cluster: Cluster, pattern: str = EVERY_GROUP) -> None:
        self._cluster, self._pattern = cluster, pattern
        self._partitions = deque[pl.DataFrame](maxlen=KEPT)
        self._number = 0

    @property
    def partitions(self) -> list[pl.DataFrame]:
        """Return the partitions of each observation that is kept, oldest first."""
        return list(self._partitions)

    def take(self) -> Poll:
        """Poll once more. Raises as ``kit.groups.snapshot.observe``; such an observation does not count."""
        begun, before = time.monotonic(), self._cluster.n_sent
        snapshot = observe(self._cluster, self._pattern)
        took_s, at, after = time.monotonic() - begun, datetime.now(UTC), self._cluster.n_sent
        partitions = self.partitions_of(snapshot, at)
        self._partitions.append(partitions)
        self._number += 1
        to_brokers, to_zookeeper = (now - then for now, then in zip(after, before))
        return Poll(self._number, at, snapshot, partitions, took_s, to_brokers, to_zookeeper)

    def take_evenly(
        self,
        n_looks: int,
        over_s: float,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> Poll:
        """Poll that many times, spread over that time, and give the last observation; ``partitions`` has them all.

        Raises:
            InputError: there are fewer than two observations, or more than are kept.
            As :meth:`take`.
        """
        if not 2 <= n_looks <= KEPT:
            raise InputError(f"a trend can't use {n_looks} polls: give a number from 2 to {KEPT}")
        begun = clock()
        for number in range(n_looks):
            sleep(max(0.0, begun + number * over_s / (n_looks - 1) - clock()))
            look = self.take()
        return look

    @staticmethod
    def partitions_of(snapshot: Snapshot[pl.DataFrame], at: datetime) -> pl.DataFrame:
        """Return the rows of each partition in an observation at that time."""
        at_ms = pl.lit(round(at.timestamp() * 1000), pl.Int64)
        return views.lag(snapshot).filter(~pl.col("is_stale")).with_columns(at_ms=at_ms)


Look, Looks = Poll, Polls  # their names before 1.0


def commits_and_ends(looks: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Polls as ``analyze.partition_health`` takes a history: a commit shows where an offset is another than before.

    Args:
        looks: ``Poll.partitions`` of several observations, one below the other.

    Columns of the first: those of ``commits`` in ``analyze.commit_windows``; of the second: those of ``ends`` there.
    """
    read = looks.filter(pl.col("committed_offset").is_not_null() | pl.col("has_no_commit"))
    none = {"written_ms": pl.lit(None, pl.Int64), "error": pl.lit(None, pl.String)}
    commits = analyses.commits_seen(read.with_columns(observed_ms="at_ms", **none))
    ends = looks.select("topic", "partition", "log_end_offset", sampled_ms="at_ms").drop_nulls().unique()
    return pl.DataFrame(commits), ends


class GroupTrends:
    """Groups over polls, rows of ``Poll.partitions``. A poll costs the same however many are kept."""

    def __init__(self) -> None:
        self._looks = deque[pl.DataFrame](maxlen=KEPT)
        self._totals = deque[pl.DataFrame](maxlen=KEPT)

    def add(self, partitions: pl.DataFrame) -> pl.DataFrame:
        """One more poll → a row per group and store, who is at risk first.

        ``growing``: each lag of the newer half of the observations is above each of the older half, ``closing``:
        below. A busy group that keeps up goes to and fro instead: it is ``steady``. Before ``FEWEST`` polls neither
        is reported.

        Columns: group_id, store, lag, trend (one of ``RISKS``; ``beyond the end``: a commit is; ``standing``: nothing
        was committed), lag_per_s, read_per_s, written_per_s (in records; null after one observation), lags (of each
        observation), n_beyond_end, n_unknown (partitions).
        """
        partitions = _numbered(partitions)
        self._looks.append(partitions)
        self._totals.append(partitions.group_by(_GROUP).agg(_whole_sum(), pl.first("at_ms")))
        now = views.group_lag(partitions).select(*_GROUP, "lag", "n_beyond_end", "n_unknown")
        known = self._rates().drop_nulls("lag_per_s")
        rates = known.group_by(_GROUP).agg(pl.sum(*_RATES)).collect()
        now = now.join(partitions.group_by(_GROUP).agg(_is_read().all()), on=_GROUP, how="left")
        rows = now.join(rates, on=_GROUP, how="left").join(_lags(self._totals, _GROUP), on=_GROUP, how="left")
        rows = _worst_first(_in_words(rows), _GROUP)
        return rows.select(*_GROUP, "lag", "trend", *_RATES, "lags", "n_beyond_end", "n_unknown")

    def partitions(self, group_id: str) -> pl.DataFrame:
        """The partitions of one group as they are now, who is at risk first.

        Columns: store, topic, partition, member_id, lag, trend, lag_per_s, read_per_s, written_per_s, expired_unread,
        beyond_end, committed_offset, log_end_offset, error.
        """
        looks = [each.filter(pl.col("group_id") == group_id) for each in self._looks]
        names = ["member_id", "lag", "expired_unread", "beyond_end", "committed_offset", "log_end_offset", "error"]
        beyond = (pl.col("beyond_end") > 0).cast(pl.Int64)
        rows = looks[-1].select(*PARTITION, *names, _is_read(), n_beyond_end=beyond)
        rows = rows.join(self._rates(group_id).collect(), on=PARTITION, how="left")
        rows = rows.join(_lags(looks, PARTITION), on=PARTITION, how="left")
        rows = _worst_first(_in_words(rows), PARTITION)
        return rows.select(*PARTITION[1:], "lag", "trend", *_RATES, *names[0:1], *names[2:])

    def _rates(self, group_id: str | None = None) -> pl.LazyFrame:
        """The oldest poll shows most; who was not in it is reported of by the last two."""
        chosen = [self._looks[0], self._looks[max(0, len(self._looks) - 2)], self._looks[-1]]
        if group_id is not None:
            chosen = [each.filter(pl.col("group_id") == group_id) for each in chosen]
        return rates_of(*chosen)


def rates_of(oldest: pl.DataFrame, before: pl.DataFrame, now: pl.DataFrame) -> pl.LazyFrame:
    """Records per second of each partition of ``now``: what ``kit.analyze.lag_velocity`` reports of these three
    observations.

    That takes seconds for 200,000 partitions, since it takes any number of observations; this takes two joins, by one
    number.

    Columns (names as polars' categoricals): group_id, store, topic, partition, lag_per_s, read_per_s, written_per_s.
    """
    rows, *others = (_known(_numbered(look)) for look in (now, before, oldest))
    for name, look in zip(("before", "oldest"), others):
        look = look.drop(PARTITION)
        rows = rows.join(look, on="number", how="left", suffix=f"_{name}", maintain_order="left")
    later, earlier = _went_back("", "_before"), _went_back("_before", "_oldest")
    whole = _went_back("", "_oldest")
    is_before = pl.col("at_ms_before").is_not_null()
    from_oldest = pl.col("at_ms_oldest").is_not_null() & ~whole & ~(is_before & (later | earlier))
    since = {
        name: pl.when(from_oldest).then(pl.col(f"{name}_oldest")).when(~later).then(pl.col(f"{name}_before"))
        for name in ("at_ms", "committed", "end")
    }
    rows = rows.with_columns(**{f"{name}_since": value for name, value in since.items()})
    elapsed = pl.col("at_ms") - pl.col("at_ms_since")
    seconds = pl.when(elapsed > 0).then(elapsed) / 1000
    read = (pl.col("committed") - pl.col("committed_since")) / seconds
    written = (pl.col("end") - pl.col("end_since")) / seconds
    return rows.select(*PARTITION, lag_per_s=written - read, read_per_s=read, written_per_s=written)


def with_lines(rows: pl.DataFrame) -> pl.DataFrame:
    """With of_late, the lags as a line, in the place of lags."""
    lines = pl.Series("of_late", [sparkline(each) for each in rows["lags"].to_list()], pl.String)
    names = ["of_late" if name == "lags" else name for name in rows.columns]
    return rows.with_columns(lines).select(names)


def _known(look: pl.DataFrame) -> pl.LazyFrame:
    is_known = pl.col("committed_offset").is_not_null() & pl.col("log_end_offset").is_not_null()
    return look.lazy().filter(is_known).select(*PARTITION, "at_ms", number=_number(), **_PARTS)


def _number() -> pl.Expr:
    """One number for each partition, of 32 bits a part: a join by it takes half the time of one by the four parts."""
    store, group, topic = (pl.col(name).to_physical() for name in ("store", "group_id", "topic"))
    number = store.cast(pl.Int128)
    for part in (group, topic, pl.col("partition")):
        number = number * 2**32 + part
    return number


def _numbered(look: pl.DataFrame) -> pl.DataFrame:
    """Names as categoricals: of one number in all observations, as long as one observation that has them is held."""
    return look.with_columns(pl.col("group_id", "store", "topic").cast(pl.Categorical))


def _in_words(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.col(pl.Categorical).cast(pl.String))


def _went_back(later: str, earlier: str) -> pl.Expr:
    """Something is lower than before: a rewind, or a topic that was made again."""
    fell = [pl.col(f"{name}{later}") < pl.col(f"{name}{earlier}") for name in _PARTS]
    return pl.any_horizontal(fell).fill_null(False)


def risks(rows: pl.DataFrame) -> dict[str, int]:
    """Return how many groups there are of each trend, the worst first. A group with two stores counts once, by the
    worse.

    Args:
        rows: of :class:`GroupTrends`, which are worst first.
    """
    trends = rows.unique("group_id", keep="first", maintain_order=True)["trend"]
    return {trend: n for trend in RISKS if (n := int((trends == trend).sum()))}


def _is_read() -> pl.Expr:
    """No record waits: without lag, or where retention has deleted all that was unread."""
    return (pl.coalesce("lag_retained", "lag") == 0).alias("is_read")


def _whole_sum() -> pl.Expr:
    """Unknown where any partition with a commit is, and where none has one."""
    is_known = (pl.col("lag").is_not_null() | pl.col("has_no_commit")).all()
    return pl.when(is_known).then(known_sum("lag")).alias("lag")


def _lags(looks: Iterable[pl.DataFrame], key: list[str]) -> pl.DataFrame:
    """lags: at each observation, oldest first; null where it was unknown."""
    seen = pl.concat([each.select(*key, "at_ms", "lag") for each in looks])
    return seen.sort("at_ms").group_by(key).agg(lags="lag")


def _worst_first(rows: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    rows = rows.with_columns(known=pl.col("lags").list.drop_nulls())
    lag, rate, known, half = pl.col("lag"), pl.col("lag_per_s"), pl.col("known").list, pl.col("known").list.len() // 2
    rows = rows.with_columns(older=known.head(half), newer=known.tail(half))
    older, newer = pl.col("older").list, pl.col("newer").list
    beyond = pl.when(pl.col("n_beyond_end") > 0).then(pl.lit(BEYOND_END))
    trend = (
        beyond.when(pl.col("is_read") & lag.is_not_null())
        .then(pl.lit("caught up"))
        .when(lag.is_null() | rate.is_null())
        .then(pl.lit("unknown"))
    )
    trend = trend.when(pl.col("read_per_s") == 0).then(pl.lit("standing"))
    trend = trend.when(known.len() < FEWEST).then(pl.lit("unknown"))
    # Against the rate: an offset was set back, or a topic made again, among these observations.
    trend = trend.when((newer.min() > older.max()) & (rate > 0)).then(pl.lit("growing"))
    trend = trend.when((newer.max() < older.min()) & (rate < 0)).then(pl.lit("closing"))
    rows = rows.with_columns(trend=trend.otherwise(pl.lit("steady")))
    rank = pl.col("trend").replace_strict(list(RISKS), range(len(RISKS)), return_dtype=pl.Int8)
    return rows.sort(rank, lag.fill_null(-1), *key, descending=[False, True, *[False] * len(key)])
