"""Burrow itself beside us, over the same ``__consumer_offsets``: lag to the record, and each verdict of minutes.

With ``$BURROW``; five minutes, in the soak's form an hour. Its logs' ends are those that it may have seen: they
grow half a step before it looks.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from random import Random
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import kit
from kit import analyze
from kit.health import sources as health
from kit.health.analyze.windows import INTERVALS
from kit.lab.process import wait_until
from kit.lab.topics import QUIET
from kit.profile import load_profile
from kit.rebalances.offsets_topic import read_offsets_topic
from tests.servers import burrow
from tests.soak import IS_SOAK, report

SECONDS = 3600 if IS_SOAK else 300
STEPS = SECONDS // burrow.REFRESH_S
ASKED_EACH = 3 if IS_SOAK else 1
PARTITIONS, GROWTH = 2, 10
"""Records that each log gets in a step."""
TOPIC = "beside-burrow"

pytestmark = [
    pytest.mark.timeout(SECONDS + 600),
    pytest.mark.skipif(burrow.binary() is None, reason=burrow.HOW_TO_GIVE),
]


def ok(step: int, end: int, chance: Random) -> int | None:
    return end


def steady(step: int, end: int, chance: Random) -> int | None:
    return end - 50


def growing(step: int, end: int, chance: Random) -> int | None:
    return end - 50 - 2 * step


def closing_in(step: int, end: int, chance: Random) -> int | None:
    return end - max(0, 600 - 5 * (step % 150))


def stalling(step: int, end: int, chance: Random) -> int | None:
    """Return commits that stay at one offset for thirty of forty steps."""
    return end - 20 - GROWTH * max(0, step % 40 - 10)


def stopping(step: int, end: int, chance: Random) -> int | None:
    return end - 5 if step % 50 < 20 else None


def caught_up_then_gone(step: int, end: int, chance: Random) -> int | None:
    return end if step % 60 < 15 else None


def rewinding(step: int, end: int, chance: Random) -> int | None:
    """Each thirty steps it goes back, and comes no nearer for twenty."""
    return end - (400 if step % 30 < 20 else 30)


def rare(step: int, end: int, chance: Random) -> int | None:
    return end - 3 if step % 7 == 0 else None


def wild(step: int, end: int, chance: Random) -> int | None:
    return chance.choice([None, None, end, end - chance.randrange(60), end - 300, end - 40])


GROUPS = {
    each.__name__: each
    for each in (ok, steady, growing, closing_in, stalling, stopping, caught_up_then_gone, rewinding, rare, wild)
}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Beside:
    """In each step logs grow, groups commit, Burrow examines the ends, and is asked for its verdicts."""

    def __init__(self, lab: Any, asked: burrow.Burrow) -> None:
        self._asked, self._chance = asked, Random(20)
        self.ends: list[tuple[int, int, int]] = []
        self.answers: list[dict[str, Any]] = []
        self._end = 0
        self._stack = ExitStack()
        settings = {**QUIET, "bootstrap.servers": lab.bootstrap_servers}
        self._producer = Producer({**settings, "linger.ms": 0})
        self._clients = {
            name: self._stack.enter_context(closing(Consumer({**settings, "group.id": name}))) for name in GROUPS
        }

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, *reason: object) -> None:
        self._stack.close()

    def grow(self) -> None:
        for partition in range(PARTITIONS):
            for _ in range(GROWTH):
                self._producer.produce(TOPIC, b"", partition=partition)
        assert self._producer.flush(10) == 0
        self._end += GROWTH

    def step(self, number: int, tick: float) -> None:
        """``tick``: when Burrow examines the ends in this step (``time.monotonic``); before step 0 nobody commits."""
        if time.monotonic() > tick - burrow.REFRESH_S / 2:
            self._looked(tick)  # A busy machine: in this step it finds what it found before.
            return
        self._wait(tick - burrow.REFRESH_S / 2)
        self.grow()
        for name, behaviour in GROUPS.items() if number >= 0 else ():
            offsets = [behaviour(number, self._end, self._chance) for _ in range(PARTITIONS)]
            wanted = [TopicPartition(TOPIC, at, max(0, each)) for at, each in enumerate(offsets) if each is not None]
            if wanted:
                self._clients[name].commit(offsets=wanted, asynchronous=False)
        assert time.monotonic() < tick, "this machine is too busy: a step's work takes longer than half of it"
        self._wait(tick)
        self._looked(tick)
        wait_until(lambda: self._asked.ends(TOPIC) == [self._end] * PARTITIONS, "Burrow's look", burrow.REFRESH_S / 3)
        if number >= 0 and number % ASKED_EACH == 0:
            self._ask()

    def _looked(self, tick: float) -> None:
        seen_ms = now_ms() + round(1000 * (tick - time.monotonic()))
        self.ends += [(at, self._end, seen_ms) for at in range(PARTITIONS)]

    def _ask(self) -> None:
        for name in GROUPS:
            before = now_ms()
            partitions = self._asked.partitions(name)
            times = {"at_ms": before, "until_ms": now_ms()}
            self.answers += [{"group_id": name, **times, **each} for each in partitions]

    @staticmethod
    def _wait(until: float) -> None:
        time.sleep(max(0.0, until - time.monotonic()))


@pytest.fixture(scope="module")
def lab_with_offsets(lab) -> Any:
    """The topic of offsets is there before Burrow asks for its partitions."""
    lab.create_topic(TOPIC, PARTITIONS)
    with closing(Consumer({**QUIET, "bootstrap.servers": lab.bootstrap_servers, "group.id": "first"})) as first:
        first.commit(offsets=[TopicPartition(TOPIC, 0, 0)], asynchronous=False)
    return lab


@pytest.fixture
def answers(lab_with_offsets) -> Iterator[Beside]:
    """Return Burrow's answers in each step."""
    with burrow.served(lab_with_offsets) as asked, Beside(lab_with_offsets, asked) as beside:
        wait_until(lambda: len(asked.ends(TOPIC)) == PARTITIONS, "the topic known", 30)
        tick = burrow.await_tick(asked, TOPIC, beside.grow)
        for number in range(-INTERVALS, STEPS):  # Then all ends that it remembers are ones that we know of.
            beside.step(number, tick + burrow.REFRESH_S * (number + INTERVALS + 1))
        yield beside


def test_each_verdict_is_burrow_s(lab_with_offsets, answers, record_property):
    path = lab_with_offsets.folder / "burrow.toml"
    path.write_text(lab_with_offsets.profile_toml())
    spark = kit.spark_session(load_profile(file=path))
    try:
        topic = read_offsets_topic(spark, load_profile(file=path), "|".join(GROUPS))
        commits = health.commits_of_topic(pl.DataFrame(topic.commits.toArrow()))
    finally:
        spark.stop()
    ends = pl.DataFrame(answers.ends, ["partition", "log_end_offset", "sampled_ms"], orient="row")
    ends = ends.with_columns(pl.col("partition").cast(pl.Int32), topic=pl.lit(TOPIC))
    ours = {name: judged(commits.filter(group_id=name), ends, answers, name) for name in GROUPS}
    differences = [found for each in answers.answers if (found := difference(each, ours[each["group_id"]]))]
    said = Counter((each["group_id"], each["status"]) for each in answers.answers)
    verdicts = "\n".join(f"{n:>7,} {group}: {status}" for (group, status), n in sorted(said.items()))
    done = f"{len(answers.answers):,} verdicts of Burrow in {SECONDS} s, {len(differences)} differ"
    report(record_property, done, details=verdicts)
    print(verdicts, *differences[:20], sep="\n")
    assert {status for _, status in said} == {"OK", "WARN", "STOP", "STALL", "REWIND"}
    assert len(answers.answers) > 0.7 * STEPS / ASKED_EACH * len(GROUPS) * PARTITIONS
    assert differences == []


def judged(commits: pl.DataFrame, ends: pl.DataFrame, answers: Beside, name: str) -> dict[tuple[int, int], Any]:
    """(partition, at_ms) → what we say, at each moment at which Burrow was asked, and when it had answered."""
    asked = {each[when] for each in answers.answers if each["group_id"] == name for when in ("at_ms", "until_ms")}
    rows = analyze.partition_health(commits, ends, pl.DataFrame({"at_ms": sorted(asked)}, {"at_ms": pl.Int64}))
    return {(row["partition"], row["at_ms"]): row for row in rows.to_dicts()}


def difference(burrow_s: dict[str, Any], ours: dict[tuple[int, int], Any]) -> dict[str, Any] | None:
    """Between the question and the answer a second may begin, by which Burrow counts silence: either is right then."""
    moments = [ours.get((burrow_s["partition"], burrow_s[when])) for when in ("at_ms", "until_ms")]
    wanted = (burrow_s["status"], burrow_s["current_lag"], burrow_s["end"]["offset"], burrow_s["end"]["timestamp"])
    found = [(each["status"], each["lag"], each["committed_offset"], each["committed_ms"]) for each in moments if each]
    return None if wanted in found else {"burrow": burrow_s, "ours": moments}
