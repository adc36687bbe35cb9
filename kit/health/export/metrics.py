"""The figures of a reading as metrics; docs/export.md lists them. An unknown value has no sample."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from kit.health.export.readings import GROUP, Reading
from kit.health.export.verdicts import STATUSES

LABELS = {
    "kminion": ("group_id", "topic_name", "partition_id"),
    "kafka_exporter": ("consumergroup", "topic", "partition"),
}
"""The names that KMinion and kafka_exporter give to a group, a topic and a partition."""
_PLACE = ["group_id", "topic", "partition", "store"]
_PARTITION = "offramp_consumer_group_topic_partition_"
_GROUP = "offramp_consumer_group_"
_FIGURES = {
    "lag": ("lag", "Records between the committed offset and the end of the log."),
    "beyond_end": ("beyond_end", "Records by which the committed offset is beyond the end of the log."),
    "committed_offset": ("committed_offset", "The committed offset: the next offset to read."),
    "time_lag_seconds": ("time_lag_ms", "The age of the oldest unread record, in seconds."),
    "closed_in_seconds": ("close_ms", "Seconds until the lag is 0, at the rates of the last polls; +Inf: never."),
    "unread_deleted_in_seconds": (
        "deletion_lower_ms",
        "Seconds until retention deletes unread records, at the earliest; +Inf: never at these rates.",
    ),
}


@dataclass(frozen=True)
class Count:
    """Since the exporter was started."""

    looks: int
    failed: int
    requests: int


@dataclass
class Metrics:
    """The registry that the encoders of prometheus_client take."""

    families: list[Metric] = field(default_factory=list)

    def collect(self) -> list[Metric]:
        return self.families


def metrics_of(reading: Reading, count: Count, interval_s: float, labels: Sequence[str] = LABELS["kminion"]) -> Metrics:
    """``labels``: what a group, a topic and a partition are called, see ``LABELS``."""
    families = [*_of_partitions(reading, *labels), *_of_groups(reading, labels[0])]
    for name, (words, value) in (_of_others(reading.others) | _of_looks(reading, interval_s)).items():
        families.append(_gauge(f"offramp_{name}", words, [], [([], value)]))
    for name, (words, value) in _since_the_start(count).items():
        families.append(_counter(f"offramp_{name}", words, [], [([], value)]))
    return Metrics(families)


def _of_partitions(reading: Reading, group: str, topic: str, partition: str) -> Iterator[Metric]:
    for name, (column, words) in _FIGURES.items():
        rows = _rows(_reported(reading.partitions, column))
        yield _gauge(_PARTITION + name, words, [group, topic, partition, "store"], rows)
    ends = reading.partitions.select("topic", "partition", "log_end_offset").unique(maintain_order=True)
    yield _gauge(
        "offramp_topic_partition_log_end_offset",
        "The high watermark of the partition.",
        [topic, partition],
        _rows(ends),
    )


def _of_groups(reading: Reading, group: str) -> Iterator[Metric]:
    groups, key = reading.groups, [group, "store"]
    stages = reading.stages.with_columns(one=pl.lit(1))
    lags, unknown = groups.select(*GROUP, "lag"), groups.select(*GROUP, "n_unknown")
    statuses, judged = (
        _statuses(reading.partitions),
        "Number of partitions with a commit, by Burrow's verdict; BEYOND: the commit is beyond the end of the log.",
    )
    yield _gauge(_GROUP + "lag", "Lag in records, summed over the partitions whose lag is known.", key, _rows(lags))
    yield _gauge(
        _GROUP + "unknown_partitions",
        "Number of partitions whose lag is unknown; they are in no sum.",
        key,
        _rows(unknown),
    )
    yield _gauge(_GROUP + "partitions", judged, [*key, "status"], statuses)
    yield _gauge(
        _GROUP + "stage",
        "1 for the present stage of the group on the path of KIP-125.",
        [group, "stage"],
        _rows(stages),
    )
    yield _counter(_GROUP + "owner_moves", "Number of partitions that moved to another member.", key, _moves(reading))


def _of_others(others: pl.DataFrame) -> dict[str, tuple[str, float]]:
    """Return the rest of the lag. Without a known lag there is no sum: 0 would mean that the groups have read
    everything.
    """
    is_known = others.is_empty() or others["lag"].count() > 0
    return {
        "other_groups": (
            "Number of groups without series of their own, because of --limit.",
            others["group_id"].n_unique(),
        ),
        "other_partitions": (
            "Number of partitions of the groups that --limit left out.",
            float(others["n_partitions"].sum()),
        ),
        **(
            {"other_lag": ("Known lag in records of the groups that --limit left out.", float(others["lag"].sum()))}
            if is_known
            else {}
        ),
        "other_unknown_partitions": (
            "Number of partitions with unknown lag of the groups that --limit left out.",
            float(others["n_unknown"].sum()),
        ),
    }


def _of_looks(reading: Reading, interval_s: float) -> dict[str, tuple[str, float]]:
    return {
        "look_timestamp_seconds": ("Time of the last observation, in seconds since 1970.", reading.at.timestamp()),
        "look_duration_seconds": (
            "Duration of the last observation in seconds, with lags in time and the outlook.",
            reading.took_s,
        ),
        "look_requests": ("Number of requests to brokers for the last observation.", reading.n_requests),
        "look_interval_seconds": ("Seconds from one observation to the next.", interval_s),
        "look_read_errors": ("Number of groups, partitions or znodes that could not be read.", reading.n_unread),
        "look_times_missing": (
            "Number of partitions whose lag in time or outlook could not be read.",
            max(len(reading.unknown_times), bool(reading.error)),
        ),
    }


def _since_the_start(count: Count) -> dict[str, tuple[str, float]]:
    return {
        "looks": ("Number of polls that succeeded.", count.looks),
        "failed_looks": ("Number of polls that failed.", count.failed),
        "requests": ("Number of requests to brokers.", count.requests),
    }


_Samples = Iterable[tuple[Sequence[Any], float]]


def _reported(partitions: pl.DataFrame, column: str) -> pl.DataFrame:
    """Times in seconds; a time that never comes is infinite."""
    value = pl.col(column).cast(pl.Float64)
    if column.endswith("_ms"):
        value = value / 1000
    never = {"close_ms": "is_never_closed", "deletion_lower_ms": "is_never_deleted"}.get(column)
    if never is not None:
        value = pl.when(pl.col(never)).then(pl.lit(math.inf)).otherwise(value)
    return partitions.select(*_PLACE, value=value)


def _rows(frame: pl.DataFrame) -> Iterator[tuple[Sequence[Any], float]]:
    """The last column is the value, all other columns are labels."""
    for *labels, value in frame.drop_nulls(frame.columns[-1]).iter_rows():
        yield labels, value


def _statuses(partitions: pl.DataFrame) -> Iterator[tuple[Sequence[Any], float]]:
    """Each status of each group, 0 too: a series that comes and goes has no rate and no end."""
    judged = partitions.drop_nulls("status")
    counts = {tuple(key): n for *key, n in judged.group_by(*GROUP, "status").len().iter_rows()}
    for group in judged.select(GROUP).unique(maintain_order=True).iter_rows():
        for status in STATUSES:
            yield (*group, status), counts.get((*group, status), 0)


def _moves(reading: Reading) -> Iterator[tuple[Sequence[Any], float]]:
    own = set(reading.groups["group_id"])
    return ((key, moves) for key, moves in reading.moves.items() if key[0] in own)


def _gauge(name: str, words: str, labels: Sequence[str], samples: _Samples) -> Metric:
    return _filled(GaugeMetricFamily(name, words, labels=labels), samples)


def _counter(name: str, words: str, labels: Sequence[str], samples: _Samples) -> Metric:
    return _filled(CounterMetricFamily(name, words, labels=labels), samples)


def _filled(family: Any, samples: _Samples) -> Metric:
    for labels, value in samples:
        family.add_metric([_label(each) for each in labels], float(value))
    assert isinstance(family, Metric)
    return family


def _label(value: object) -> str:
    """Return the label with what UTF-8 can't carry spelled out; the encoders escape the rest."""
    return str(value).encode("utf-8", "backslashreplace").decode()
