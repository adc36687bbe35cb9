"""A report over a month reads the observations of the groups alone whose hours show trouble: it misses none."""

from __future__ import annotations

from random import Random
from typing import Any

import polars as pl
import pytest

from kit import analyze

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
BEGIN_MS = 1_767_571_200_000
RATE = 10
"""Records a minute and log."""
KEY = {"group_id": pl.String, "store": pl.String, "topic": pl.String, "partition": pl.Int32}
RULES = [(1000, 30), (100, 30), (10**9, 45), (0, 90), (10**9, 100)]
"""Target in records, silence in minutes."""


def lives(
    chance: Random, minutes: list[int], ends: dict[int, int | None]
) -> list[tuple[int | None, int | None] | None]:
    """Return what the observations see of one partition: offset and the time of the commit; None: nothing at all."""
    kind = chance.choice(["steady", "steady", "slow", "silent", "silent", "back", "gone", "late", "holes", "errors"])
    begun, ended = sorted(chance.sample(minutes, 2))
    store_tells = chance.random() < 0.3
    seen: list[tuple[int | None, int | None] | None] = []
    offset, written = 0, None
    for minute in minutes:
        end = ends[minute] or offset
        before = offset
        if kind == "slow":
            offset = end if minute % chance.choice([10, 20, 40]) == 0 else offset
        elif kind == "silent" and begun <= minute < ended:
            pass
        elif kind == "back" and minute == begun:
            offset = max(0, offset - chance.choice([5, 2000]))
        else:
            offset = max(0, end - chance.choice([0, 0, 3]))
        if offset != before or written is None:
            written = BEGIN_MS + minute * MINUTE_MS - chance.randrange(MINUTE_MS)
        is_away = (kind == "gone" and minute >= begun) or (kind == "late" and minute < begun)
        if is_away or (kind == "holes" and chance.random() < 0.1):
            seen.append(None)
        elif kind == "errors" and chance.random() < 0.1:
            seen.append((None, None))
        else:
            seen.append((offset, written if store_tells else None))
    return seen


def history(seed: int) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Committed offsets and log ends, both with at_ms, and the observations, over five hours from some minute on."""
    chance = Random(seed)
    step, from_ = chance.choice([1, 5, 7, 20]), chance.randrange(60)
    minutes = [each for each in range(from_, from_ + 300, step) if chance.random() < 0.97]
    looks = pl.DataFrame({"snapshot_id": [f"s{each}" for each in minutes], "at_ms": [_at(each) for each in minutes]})
    commits, ends = [], []
    for topic in ("busy", "rare", "unknown"):
        end, known = 0, dict[int, int | None]()
        for minute in minutes:
            end += {"busy": RATE * step, "rare": chance.random() < 0.05, "unknown": RATE * step}[topic]
            known[minute] = None if topic == "unknown" and chance.random() < 0.05 else end
            ends.append((f"s{minute}", topic, 0, known[minute], _at(minute)))
        for number in range(8):
            for minute, seen in zip(minutes, lives(chance, minutes, known), strict=True):
                if seen is not None:
                    commits.append((f"{topic}-{number}", "kafka", topic, 0, f"s{minute}", _at(minute), *seen))
    kinds = {"snapshot_id": pl.String, "at_ms": pl.Int64}
    numbers = {"committed_offset": pl.Int64, "written_ms": pl.Int64}
    log = {"snapshot_id": pl.String, "topic": pl.String, "partition": pl.Int32, "log_end_offset": pl.Int64}
    return (
        pl.DataFrame(commits, KEY | kinds | numbers, orient="row"),
        pl.DataFrame(ends, {**log, "at_ms": pl.Int64}, orient="row"),
        looks,
    )


def _at(minute: int) -> int:
    return BEGIN_MS + minute * MINUTE_MS


def incidents(commits: pl.DataFrame, ends: pl.DataFrame, looks: pl.DataFrame, target: int, silence_ms: int) -> Any:
    """Return the incidents that ``report/health.ipynb`` finds."""
    error = pl.when(pl.col("committed_offset").is_null()).then(pl.lit("no answer"))
    made = analyze.commits_seen(commits.rename({"at_ms": "observed_ms"}).with_columns(error=error))
    sampled = ends.select("topic", "partition", "log_end_offset", sampled_ms=pl.col("at_ms") - 500)
    burrow = analyze.BurrowRule(allowed_lag=target, minimum_complete=0.3)
    rule = analyze.AnyRule((burrow, analyze.SilenceRule(silence_ms)))
    found: Any = analyze.group_alarms(rule.verdicts(made, sampled, looks.select("at_ms")))
    return found.sort("group_id", "since_ms")


def hours_of(commits: pl.DataFrame, ends: pl.DataFrame, looks: pl.DataFrame) -> Any:
    texts = dict.fromkeys(("source", "snapshot_id", "member_id"), pl.String)
    owners = pl.DataFrame(schema={**KEY, **texts, "is_shared": pl.Boolean}).drop("store")
    begins = (looks["at_ms"] // HOUR_MS * HOUR_MS).unique().to_list()
    return analyze.group_hours(commits, ends, owners, analyze.looks_of_hours(looks, begins))


@pytest.mark.parametrize("seed", range(12))
def test_it_names_the_incidents_that_the_report_of_all_observations_names(seed: int) -> None:
    commits, ends, looks = history(seed)
    hours: Any = hours_of(commits, ends, looks)
    for target, silence in RULES:
        expected = incidents(commits, ends, looks, target, silence * MINUTE_MS)
        troubled: Any = analyze.troubled(hours, target, silence * MINUTE_MS)
        read = commits.join(troubled, on=["group_id", "store"], how="semi")
        found = incidents(read, ends, looks, target, silence * MINUTE_MS)
        assert found.rows() == expected.rows(), (target, silence)


def test_a_silence_of_less_than_two_hours_below_the_target_is_trouble_and_a_steady_group_is_none() -> None:
    minutes = list(range(0, 300, 5))
    looks = pl.DataFrame({"snapshot_id": [f"s{each}" for each in minutes], "at_ms": [_at(each) for each in minutes]})
    stood = {"silent": (100, 150), "steady": (0, 0), "briefly": (100, 110)}
    rows = [
        (
            group,
            "kafka",
            "t",
            0,
            f"s{minute}",
            _at(minute),
            10 * (since if since <= minute < until else minute) + 1,
            None,
        )
        for group, (since, until) in stood.items()
        for minute in minutes
    ]
    kinds = {"snapshot_id": pl.String, "at_ms": pl.Int64, "committed_offset": pl.Int64, "written_ms": pl.Int64}
    commits = pl.DataFrame(rows, KEY | kinds, orient="row")
    ends = looks.with_columns(
        topic=pl.lit("t"), partition=pl.lit(0, pl.Int32), log_end_offset=(pl.col("at_ms") - BEGIN_MS) // 6000 + 5
    )
    hours: Any = hours_of(commits, ends, looks)
    troubled: Any = analyze.troubled(hours, 10_000, 30 * MINUTE_MS)
    assert troubled["group_id"].to_list() == ["silent"]
    (found,) = incidents(commits, ends, looks, 10_000, 30 * MINUTE_MS).to_dicts()
    assert (found["group_id"], found["since_ms"]) == ("silent", _at(100))
    everyone: Any = analyze.troubled(hours, 10_000, 10 * MINUTE_MS)
    assert len(everyone) == 3
