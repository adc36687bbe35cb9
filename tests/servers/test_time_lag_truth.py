"""Each estimator of lag in time against the truth: the lab knows when each record was produced and what was next.

Six kinds of topics are written and read while one observation follows another. The long form (``make soak``) takes
half an hour.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import polars as pl
import pytest

from kit import analyze, connect, observe
from kit.clients.cluster import Cluster
from kit.groups import views
from kit.health.read.offset_times import fetch_anchors
from kit.health.sources import METHODS, seen_at_ms, time_lag
from kit.lab import Lab
from kit.profile import load_profile
from tests.servers.coordinators import await_coordinator
from tests.servers.lag_peers import LookupTable, TwoAnchors
from tests.servers.late_topics import KINDS, PARTITIONS, Compacted, Late, Noted, now_ms, running
from tests.servers.tuned_lab import TunedLab
from tests.soak import IS_SOAK, report

SECONDS, LONGEST = (1700, 3400) if IS_SOAK else (32, 200)
BRACKETS = 5000 if IS_SOAK else 100
"""More than so many are held against the truth; a busy machine takes longer for them."""
pytestmark = pytest.mark.timeout(LONGEST + 400)
OURS = (*METHODS, "polls")
PEERS = ("kafka-lag-exporter", "klag")
HOLES = pl.DataFrame({"topic": ["late-compacted", "late-transactional"]}).join(
    pl.DataFrame({"partition": pl.Series(range(PARTITIONS), dtype=pl.Int32)}), how="cross"
)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A broker whose cleaner looks each second for what it can compact."""
    with TunedLab({"log.cleaner.backoff.ms": "1000"}) as started:
        await_coordinator(started)
        yield started


@dataclass(frozen=True)
class Sample:
    """The answer of one method about one partition at one observation; ``row`` has time_lag_ms, and of ours the
    bracket.
    """

    method: str
    kind: str
    life: int
    partition: int
    offset: int
    end: int
    at_ms: int
    row: dict[str, Any]


@dataclass
class Looks:
    """Look after look; what the methods that need a history remember of it."""

    cluster: Cluster
    topics: dict[str, Late]
    samples: list[Sample] = field(default_factory=list)
    ends: list[pl.DataFrame] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tables: dict[tuple[str, int], LookupTable] = defaultdict(LookupTable)
        self.anchored: dict[tuple[str, int], TwoAnchors] = defaultdict(TwoAnchors)

    def take(self) -> None:
        lives, before = {kind: topic.life for kind, topic in self.topics.items()}, now_ms()
        snapshot = observe(self.cluster, "late-.*")
        at_ms, lag = seen_at_ms(snapshot), views.lag(snapshot)
        logs = snapshot.log_offsets.select("topic", "partition", "log_end_offset").drop_nulls()
        left = self._audit(lag)
        told = {method: time_lag(self.cluster, lag, at_ms, method) for method in METHODS}
        earlier = pl.concat([*self.ends, _sampled(logs, before, at_ms)])
        told["polls"] = analyze.time_lag_by_polls(lag, earlier, at_ms, HOLES)
        self.ends.append(_sampled(logs, before, at_ms))
        peers = self._by_peers(lag, logs, at_ms)
        # Where a topic was another one, or another record was next, before an observation and after, there is no one
        # truth.
        gone = {("compacted", partition) for partition, offset in self._audit(lag).items() if left[partition] != offset}
        whole = [kind for kind, topic in self.topics.items() if topic.life == lives[kind] and topic.life % 2 == 0]
        for row in lag.filter(pl.col("lag") > 0).to_dicts():
            kind = row["topic"].removeprefix("late-")
            place = (kind, lives[kind], row["partition"], row["committed_offset"], row["log_end_offset"], at_ms)
            if kind in whole and (kind, row["partition"]) not in gone:
                self.samples += [Sample(name, *place, _row_of(rows, row)) for name, rows in (told | peers).items()]

    @property
    def are_enough(self) -> bool:
        """With some to spare: not every bracket has a truth."""
        told = Counter(each.method for each in self.samples if each.row.get("lower_ms") is not None)
        return self.are_of_all_kinds and all(told[method] > 1.25 * BRACKETS for method in OURS)

    @property
    def are_of_all_kinds(self) -> bool:
        by_record = (each for each in self.samples if each.method == "record")
        return {each.kind for each in by_record if each.row["time_lag_ms"] is not None} == set(KINDS)

    def _audit(self, lag: pl.DataFrame) -> dict[int, int]:
        behind = lag.filter((pl.col("topic") == "late-compacted") & (pl.col("lag") > 0)).to_dicts()
        compacted = self.topics["compacted"]
        assert isinstance(compacted, Compacted)
        return compacted.audit({row["partition"]: (row["committed_offset"], row["log_end_offset"]) for row in behind})

    def _by_peers(self, lag: pl.DataFrame, logs: pl.DataFrame, at_ms: int) -> dict[str, pl.DataFrame]:
        for topic, partition, end in logs.iter_rows():
            self.tables[topic, partition].add(end, at_ms)
            self.anchored[topic, partition].add(end, at_ms)
        keys = set(logs.select("topic", "partition").iter_rows())
        anchors = {(each.topic, each.partition): each for each in fetch_anchors(self.cluster.broker_client, keys)}
        rows = []
        for row in lag.filter(pl.col("lag") > 0).to_dicts():
            key, offset = (row["topic"], row["partition"]), row["committed_offset"]
            found, by_anchors = anchors[key], None
            if found.error is None:
                first, newest = (found.first_offset, found.first_ms), (found.newest_offset, found.newest_ms)
                by_anchors = self.anchored[key].lag_ms(offset, first, newest, row["log_end_offset"], at_ms)
            rows.append((*key, self.tables[key].lag_ms(offset), by_anchors))
        schema = {"topic": pl.String, "partition": pl.Int32, **dict.fromkeys(PEERS, pl.Float64)}
        told = pl.DataFrame(rows, schema, orient="row")
        return {name: told.select("topic", "partition", time_lag_ms=name) for name in PEERS}


def _sampled(logs: pl.DataFrame, before: int, at_ms: int) -> pl.DataFrame:
    return logs.with_columns(sampled_ms=pl.lit(before), sampled_until_ms=pl.lit(at_ms))


def _row_of(rows: pl.DataFrame, place: dict[str, Any]) -> dict[str, Any]:
    (row,) = rows.filter(topic=place["topic"], partition=place["partition"]).to_dicts()
    return row


def _holds(sample: Sample, truth: Noted | None) -> bool:
    """By polls a record is as old as it is in the log: not before it was produced, not after it was acknowledged."""
    lower, upper = sample.row["lower_ms"], sample.row["upper_ms"]
    if truth is None:
        return bool(lower == 0)
    produced = sample.at_ms - truth.produced_ms
    at_least = sample.at_ms - truth.acknowledged_ms if sample.method == "polls" else produced
    return bool(lower <= produced and (upper is None or at_least <= upper))


def test_each_bracket_holds_the_truth(lab, record_property):
    path = lab.folder / "truth.toml"
    path.write_text(lab.profile_toml())
    with connect(load_profile(file=path)) as cluster, running(lab) as topics:
        looks, began = Looks(cluster, topics), time.monotonic()
        while (lasted := time.monotonic() - began) < SECONDS or (lasted < LONGEST and not looks.are_enough):
            looks.take()
    held, errors, unanswered = defaultdict(list), defaultdict(list), defaultdict(int)
    for sample in looks.samples:
        truth = topics[sample.kind].next_record(sample.life, sample.partition, sample.offset, sample.end)
        estimate = sample.row["time_lag_ms"]
        knows_of_markers = sample.method in ("bisection", "record")
        if estimate is None:
            unanswered[sample.method] += 1
        if truth is not None and estimate is not None:
            errors[sample.method, sample.kind].append(abs(sample.at_ms - truth.produced_ms - estimate))
        if sample.method in OURS and sample.row["lower_ms"] is not None and (truth is not None or knows_of_markers):
            held[sample.method].append((_holds(sample, truth), sample, truth))
    done = f"{sum(map(len, held.values())):,} brackets of {len(looks.ends)} observations in {lasted:.0f} s"
    report(record_property, done, details=figures_of(errors, held, unanswered))
    for method in OURS:
        missed = [
            (sample.kind, sample.partition, sample.offset, sample.end, sample.at_ms, sample.row, truth)
            for is_held, sample, truth in held[method]
            if not is_held
        ]
        print(method, *missed[:20], sep="\n    ")
        assert len(held[method]) > BRACKETS, method
        assert len(missed) <= 0.01 * len(held[method]), (method, missed[:5])
    assert {kind for (method, kind), found in errors.items() if found and method == "record"} == set(KINDS)


def figures_of(errors, held, unanswered) -> str:
    """Per method: the median error in ms, of all and of each kind; how often the bracket held the truth."""
    lines = [f"{'median error in ms':20}" + "".join(f"{name:>15}" for name in ("all", *KINDS, "held", "no answer"))]
    for method in (*OURS, *PEERS):
        each = [errors[method, kind] for kind in KINDS]
        medians = [
            f"{median(found):.0f}" if found else "–" for found in ([one for some in each for one in some], *each)
        ]
        kept = [is_held for is_held, _, _ in held[method]]
        share = f"{100 * sum(kept) / len(kept):.1f} % of {len(kept)}" if kept else "–"
        lines.append(f"{method:20}" + "".join(f"{cell:>15}" for cell in (*medians, share, unanswered[method])))
    return "\n".join(lines)
