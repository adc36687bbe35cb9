"""A back-test over ``__consumer_offsets``: a real member is halted, and rules say what they would have said."""

from __future__ import annotations

import time
from functools import partial
from itertools import pairwise

import polars as pl
import pytest

import kit
from kit import analyze
from kit.analyze import BurrowRule, LagRule
from kit.health import sources as health
from kit.health.analyze.windows import INTERVALS
from kit.lab.process import wait_until
from kit.profile import load_profile
from kit.rebalances.offsets_topic import read_offsets_topic
from tests.servers.awaiting import SECONDS

GROUP, TOPIC = "halted", "halted"
POLL_S, STEP_MS = 0.2, 500
WINDOW = INTERVALS + 2
"""Commits or polls that fill each rule's memory."""
STALL_MS = 1000
"""A longer time without a record delivered is an incident, whatever it came from."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def spark():
    session = kit.spark_session()
    yield session
    session.stop()


class Night:
    """The end of the log and the commits of the group, polled as time goes by, until something has come to pass."""

    def __init__(self, cluster) -> None:
        self.cluster, self.polls, self.commits = cluster, [], []

    def until(self, condition, what: str) -> None:
        wait_until(partial(self._poll, condition), what, SECONDS)

    def until_commits(self, count: int) -> None:
        """At least so many more; a poll may miss some."""
        wanted = len(self.commits) + count
        self.until(lambda: len(self.commits) >= wanted, f"{count} commits")

    def until_silent(self, for_ms: int) -> None:
        """And until the memory of each rule has only ends of this time."""
        begun_ms, wanted = now_ms(), len(self.polls) + WINDOW
        self.until(lambda: now_ms() > begun_ms + for_ms and len(self.polls) >= wanted, "the halt's end")

    def _poll(self, condition) -> bool:
        time.sleep(POLL_S)  # The pace of an exporter.
        seen = kit.observe(self.cluster, GROUP)
        logs = seen.log_offsets.filter(topic=TOPIC)
        self.polls.append(logs.select("topic", "partition", "log_end_offset", sampled_ms=pl.lit(now_ms(), pl.Int64)))
        committed = seen.committed_offsets["committed_offset"].to_list()
        self.commits += [committed] if committed and [committed] != self.commits[-1:] else []
        return bool(condition())


def silences(consumer, until_ms: int) -> list[tuple[int, int]]:
    """The incidents by the lab's own account, the longest first: when nothing was delivered."""
    times = sorted(each["at_ms"] for each in consumer.records() if each["at_ms"] <= until_ms)
    found = [pair for pair in pairwise(times) if pair[1] - pair[0] > STALL_MS]
    return sorted(found, key=lambda pair: pair[0] - pair[1])


def incidents(*pairs: tuple[int, int]) -> pl.DataFrame:
    rows = [{"group_id": GROUP, "from_ms": begun, "until_ms": ended} for begun, ended in pairs]
    return pl.DataFrame(rows)


def test_rules_over_the_offsets_topic_catch_a_halt(lab, spark):
    """The halt is longer than the time before it in which the commits came that the rules remember."""
    path = lab.folder / "backtest.toml"
    path.write_text(lab.profile_toml())
    chosen = load_profile(file=path)
    lab.create_topic(TOPIC, 1)
    producer = lab.start_producer(TOPIC, 50)
    settings = {"session.timeout.ms": 300_000, "auto.commit.interval.ms": 300}
    reader = lab.start_new_consumer(GROUP, TOPIC, settings=settings)
    with kit.connect(chosen) as cluster:
        night = Night(cluster)
        night.until_commits(WINDOW)
        begun_ms = now_ms()
        night.until_commits(WINDOW)
        reader.pause()
        halted_ms = now_ms()
        night.until_silent(halted_ms - begun_ms + 2000)
        reader.resume()
        night.until_commits(3)
    producer.stop()
    reader.stop()

    ended_ms = now_ms()
    commits = health.commits_of_topic(pl.DataFrame(read_offsets_topic(spark, chosen, GROUP).commits.toArrow()))
    all_silences = silences(reader, ended_ms)
    halt = all_silences[0]
    assert halt[0] <= halted_ms < halt[1], all_silences
    ends = pl.concat(night.polls)
    times = pl.DataFrame({"at_ms": range(begun_ms, ends["sampled_ms"].max(), STEP_MS)})
    judge = partial(health.backtest, commits=commits, ends=ends, times=times)
    rules = [BurrowRule(3), BurrowRule(10), LagRule(100, for_ms=1000), LagRule(1_000_000)]
    found = {row["rule"]: row for row in judge(rules, incidents=incidents(halt)).to_dicts()}
    scores = [found[repr(rule)] for rule in rules]
    assert [row["n_caught"] for row in scores] == [1, 1, 1, 0], scores
    assert scores[0]["worst_delay_ms"] < scores[1]["worst_delay_ms"] < halt[1] - halt[0], scores
    (whole,) = judge([BurrowRule(10)], incidents=incidents(*all_silences)).to_dicts()
    assert whole["n_false_alarms"] == 0, (whole, all_silences)

    spans = analyze.verdict_spans(BurrowRule(10).verdicts(commits, ends, times)).sort("from_ms")
    (stop,) = spans.filter(
        pl.col("status") == "STOP", pl.col("until_ms") > halt[0], pl.col("from_ms") < halt[1]
    ).to_dicts()
    written = sorted(commits["committed_ms"])
    last, following = max(pairwise(written), key=lambda pair: pair[1] - pair[0])
    assert max(last, halt[0]) < stop["from_ms"] < halt[1], (stop, halt, written)
    assert stop["until_ms"] - STEP_MS < following <= stop["until_ms"], (stop, halt, written)
