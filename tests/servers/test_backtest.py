"""A back-test over ``__consumer_offsets``: a real member is halted, and rules say what they would have said."""

from __future__ import annotations

import time
from functools import partial
from itertools import pairwise

import polars as pl
import pytest

import kit
from kit import analyze, health
from kit.analyze import BurrowRule, LagRule
from kit.lab.process import wait_until
from kit.offsets_topic import read_offsets_topic
from kit.profile import load_profile

GROUP, TOPIC = "halted", "halted"
HALT_S, STEP_MS = 9.0, 500


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def spark():
    session = kit.spark_session()
    yield session
    session.stop()


class Night:
    """Ends polled as time goes by, until something has come to pass."""

    def __init__(self, cluster) -> None:
        self.cluster, self.polls = cluster, []

    def until(self, condition, what: str) -> None:
        wait_until(partial(self._poll, condition), what, 60)

    def _poll(self, condition) -> bool:
        logs = kit.observe(self.cluster, GROUP).log_offsets.filter(pl.col("topic") == TOPIC)
        self.polls.append(logs.select("topic", "partition", "log_end_offset", sampled_ms=pl.lit(now_ms(), pl.Int64)))
        return bool(condition())


def longest_gap(consumer, until_ms: int) -> tuple[int, int]:
    """The incident by the lab's own account: when nothing was handed out for the longest time."""
    times = sorted(each["at_ms"] for each in consumer.records() if each["at_ms"] <= until_ms)
    return max(pairwise(times), key=lambda pair: pair[1] - pair[0])


def test_rules_over_the_offsets_topic_catch_a_halt(lab, spark):
    path = lab.folder / "backtest.toml"
    path.write_text(lab.profile_toml())
    chosen = load_profile(file=path)
    lab.create_topic(TOPIC, 1)
    producer = lab.start_producer(TOPIC, 50)
    reader = lab.start_new_consumer(GROUP, TOPIC, settings={"session.timeout.ms": 60_000})
    with kit.connect(chosen) as cluster:
        night = Night(cluster)
        night.until(lambda: len(reader.records()) > 50, "records handed out")
        begun_ms = now_ms()
        night.until(lambda: now_ms() > begun_ms + 7_000, "a while without trouble")
        reader.pause()
        halted_ms = now_ms()
        night.until(lambda: now_ms() > halted_ms + 1000 * HALT_S, "the halt's end")
        n_records = len(reader.records())
        reader.resume()
        night.until(lambda: len(reader.records()) > n_records + 600, "the reader back at its work")
    producer.process.stop()
    reader.stop()

    ended_ms = now_ms()
    commits = health.commits_of_topic(pl.DataFrame(read_offsets_topic(spark, chosen, GROUP).commits.toArrow()))
    incident = longest_gap(reader, ended_ms)
    assert incident[1] - incident[0] > 1000 * (HALT_S - 1)
    happened = pl.DataFrame({"group_id": GROUP, "from_ms": [incident[0]], "until_ms": [incident[1]]})
    ends = pl.concat(night.polls)
    times = pl.DataFrame({"at_ms": range(begun_ms, ends["sampled_ms"].max(), STEP_MS)})
    rules = [BurrowRule(3), BurrowRule(10), LagRule(100, for_ms=1000), LagRule(1_000_000)]
    found = {row["rule"]: row for row in health.backtest(rules, commits, ends, times, happened).to_dicts()}
    scores = [found[repr(rule)] for rule in rules]
    assert [row["n_caught"] for row in scores] == [1, 1, 1, 0]
    assert scores[0]["worst_delay_ms"] < scores[1]["worst_delay_ms"] < incident[1] - incident[0]
    assert scores[1]["n_false_alarms"] == 0

    spans = analyze.verdict_spans(BurrowRule(10).verdicts(commits, ends, times)).sort("from_ms")
    (stop,) = spans.filter(pl.col("status") == "STOP").to_dicts()
    assert incident[0] < stop["from_ms"] < incident[1] <= stop["until_ms"] + STEP_MS
