"""Verdicts that are kept up look by look are those of Burrow's rules over a history of the same looks."""

from __future__ import annotations

import random

import polars as pl

from kit import analyze
from kit.health.analyze.windows import PARTITION
from kit.health.export.verdicts import CommitWindows

STEP_MS = 60_000
KINDS = ("steady", "standing", "back", "behind", "quick")


def looks(n_looks: int, n_random: int = 1) -> list[pl.DataFrame]:
    """A group per kind, and ``n_random`` more that move at random; the log grows by ten from observation to
    observation.
    """
    chance, found = random.Random(0), []
    wandering = [f"random {number}" for number in range(n_random)]
    offsets = dict.fromkeys((*KINDS, *wandering), 0)
    for number in range(n_looks):
        end = 100 + 10 * number
        offsets["steady"] = end - 50
        offsets["back"] = end - 20 if number < n_looks - 3 else 10
        offsets["behind"] += 5
        offsets["quick"] = end
        for name in wandering:
            offsets[name] = max(0, min(end, offsets[name] + chance.randint(-20, 40)))
        rows = [(kind, "kafka", "t", 0, offset, end, max(0, end - offset), False) for kind, offset in offsets.items()]
        schema = [*PARTITION, "committed_offset", "log_end_offset", "lag", "has_no_commit"]
        frame = pl.DataFrame(rows, schema=schema, orient="row", schema_overrides={"partition": pl.Int32})
        found.append(frame.with_columns(at_ms=pl.lit(number * STEP_MS, pl.Int64), beyond_end=pl.lit(0, pl.Int64)))
    return found


def by_the_rules(seen: list[pl.DataFrame]) -> dict[int, dict[str, str]]:
    """At the time of each observation, the status of each group."""
    rows = pl.concat(seen)
    commits = analyze.commits_seen(
        rows.with_columns(observed_ms="at_ms", written_ms=pl.lit(None, pl.Int64), error=pl.lit(None, pl.String))
    )
    ends = rows.select("topic", "partition", "log_end_offset", sampled_ms="at_ms").unique()
    now = rows.select("at_ms").unique()
    verdicts = analyze.partition_health(commits, ends, now)
    return {at: dict(rows.select("group_id", "status").iter_rows()) for (at,), rows in verdicts.group_by("at_ms")}


def test_they_are_the_rules_of_a_history():
    seen, windows, statuses = looks(25, n_random=20), CommitWindows(), set()
    expected = by_the_rules(seen)
    for number, look in enumerate(seen, 1):
        kept = dict(windows.judge(look).select("group_id", "status").iter_rows())
        if number < 10:
            assert set(kept.values()) == {"unknown"}
        else:
            assert kept == expected[look["at_ms"][0]], number
            statuses |= set(kept.values())
    assert statuses >= {"OK", "WARN", "STOP", "REWIND"}


def test_a_gone_group_is_forgotten_and_begins_again_when_it_comes_back():
    windows, seen = CommitWindows(), looks(25)
    for look in seen[:12]:
        windows.judge(look)
    windows.judge(seen[12].filter(pl.col("group_id") != "steady"))
    kept = dict(windows.judge(seen[13]).select("group_id", "status").iter_rows())
    assert kept["steady"] == "unknown"
    assert kept["quick"] == "OK"


def test_an_unknown_lag_is_an_unknown_verdict_and_forgets_nothing():
    windows, seen = CommitWindows(), looks(13)
    for look in seen[:11]:
        windows.judge(look)
    unread = seen[11].with_columns(
        committed_offset=pl.lit(None, pl.Int64), lag=pl.lit(None, pl.Int64), has_no_commit=pl.lit(False)
    )
    assert set(windows.judge(unread)["status"]) == {"unknown"}
    assert "unknown" not in set(windows.judge(seen[12])["status"])


def test_a_commit_beyond_the_end_is_not_ok():
    (look,) = looks(1)
    beyond = look.with_columns(beyond_end=pl.when(pl.col("group_id") == "steady").then(7).otherwise(0))
    statuses = dict(CommitWindows().judge(beyond).select("group_id", "status").iter_rows())
    assert statuses.pop("steady") == "BEYOND"
    assert set(statuses.values()) == {"unknown"}
