"""Look after look: who is at risk comes first, with what is known of the observations so far."""

from __future__ import annotations

from contextlib import redirect_stdout
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

from kit import analyze
from kit.cli.main import app
from kit.errors import InputError
from kit.groups.snapshot import Snapshot
from kit.health import live
from kit.health.analyze.windows import PARTITION
from kit.health.live import GroupTrends, Polls, commits_and_ends, rates_of, with_lines
from kit.health.verbs import watch as verb
from kit.tables.groups import (
    KAFKA,
    CommittedOffset,
    Group,
    LogOffset,
    Member,
    Ownership,
    Subscription,
    TopicPartition,
)
from tests.generators.snapshots import snapshot_of
from tests.unit.cli.conftest import SEEING
from tests.unit.cli.screens import Screen

PLACE = {"store": "kafka", "topic": "t", "partition": 0, "log_start_offset": 0, "member_id": "m", "is_stale": False}
PLACE |= {"is_upper_bound": False}


def look(at_ms: int, **committed: int | None) -> pl.DataFrame:
    """A log that gets ten records a second; groups with what they have committed, None: it is not known."""
    end = 1000 + at_ms // 100
    rows: list[dict[str, Any]] = []
    for group, offset in committed.items():
        lag = None if offset is None else max(0, end - offset)
        parts = {"committed_offset": offset, "log_end_offset": end, "lag": lag, "lag_retained": lag}
        rows.append({"group_id": group, **PLACE, **parts, "expired_unread": 0, "has_no_commit": False, "at_ms": at_ms})
        rows[-1]["beyond_end"] = None if offset is None else max(0, offset - end)
        rows[-1]["error"] = None
    numbers = dict.fromkeys(("committed_offset", "lag", "lag_retained", "beyond_end"), pl.Int64)
    return pl.DataFrame(rows, schema_overrides=numbers)


def shown(looks: list[pl.DataFrame]) -> pl.DataFrame:
    """Return the last of the shown screens."""
    of_late = GroupTrends()
    return with_lines([of_late.add(each) for each in looks][-1])


class CountedLooks(Polls):
    """Examines nothing; ``taken`` holds the number of waits before each observation."""

    def __init__(self) -> None:
        super().__init__(SimpleNamespace())
        self.waits, self.taken = list[float](), list[int]()

    def take(self) -> int:
        self.taken.append(len(self.waits))
        return len(self.taken)

    def take_evenly(self, n_looks: int, over_s: float) -> int:
        return super().take_evenly(n_looks, over_s, self.waits.append, lambda: 100.0 + sum(self.waits))


def test_observations_are_spread_over_the_time():
    looks = CountedLooks()
    assert looks.take_evenly(4, 30) == 4
    assert looks.waits == [0, 10, 10, 10]
    assert looks.taken == [1, 2, 3, 4]
    for number in (1, live.KEPT + 1):
        with pytest.raises(InputError, match="polls: give a number from 2 to 12"):
            looks.take_evenly(number, 30)


def test_observations_are_judged_by_what_moved_between_them():
    """An offset that could not be read at an observation is no commit, and does not make the next one."""
    looks = [
        look(0, stopped=500, moving=500, unread=500),
        look(5000, stopped=500, moving=600, unread=None),
        look(9000, stopped=500, moving=690, unread=500),
    ]
    commits, ends = commits_and_ends(pl.concat(looks))
    found = commits.sort("group_id", "order").select("group_id", "committed_offset", "committed_ms").rows()
    assert found == [
        ("moving", 500, 0),
        ("moving", 600, 5000),
        ("moving", 690, 9000),
        ("stopped", 500, 0),
        ("unread", 500, 0),
    ]
    assert sorted(ends["log_end_offset"]) == [1000, 1050, 1090]
    judged = analyze.partition_health(commits, ends, pl.DataFrame({"at_ms": [9000]}))
    assert dict(judged.select("group_id", "status").iter_rows()) == {
        "moving": "OK",
        "stopped": "STOP",
        "unread": "STOP",
    }


FOUR_LOOKS = {
    "idle": (1000, 1100, 1200, 1300),
    "slow": (500, 550, 600, 650),
    "quick": (100, 700, 1000, 1200),
    "dead": (10, 10, 10, 10),
    "unread": (None, None, None, None),
    "even": (990, 1090, 1190, 1290),
    "busy": (990, 1060, 1180, 1255),
    "set-back": (990, 1090, 500, 900),
}
"""The committed offsets of each at the observations."""


def seen(*groups: str, n_looks: int = 4) -> list[pl.DataFrame]:
    return [look(10_000 * at, **{group: FOUR_LOOKS[group][at] for group in groups}) for at in range(n_looks)]


def test_groups_at_risk_come_first():
    rows = shown(seen(*FOUR_LOOKS))
    assert rows.select("group_id", "trend").rows() == [
        ("dead", "standing"),
        ("slow", "growing"),
        ("set-back", "steady"),
        ("busy", "steady"),
        ("even", "steady"),
        ("unread", "unknown"),
        ("quick", "closing"),
        ("idle", "caught up"),
    ]
    slow = rows.row(1, named=True)
    assert (slow["lag"], slow["lag_per_s"], slow["read_per_s"], slow["written_per_s"]) == (650, 5, 5, 10)
    assert slow["of_late"] == "▆▇▇█"
    assert rows.row(5, named=True)["of_late"] == "····"
    assert rows.row(5, named=True)["n_unknown"] == 1


def test_a_busy_group_that_keeps_up_is_no_alarm():
    """Its lag goes to and fro, and is higher at the last observation than at the first."""
    (row,) = shown(seen("busy")).to_dicts()
    assert (row["trend"], row["lag_per_s"] > 0) == ("steady", True)


def test_the_rest_of_an_offset_that_was_set_back_is_read_and_does_not_grow():
    of_late = GroupTrends()
    for each in seen("set-back"):
        (group,) = of_late.add(each).to_dicts()
    (partition,) = of_late.partitions("set-back").to_dicts()
    for row in (group, partition):
        assert (row["trend"], row["lag_per_s"]) == ("steady", -30)


@pytest.mark.parametrize("n_looks", [2, 3])
def test_before_the_fourth_observation_nothing_grows_or_closes(n_looks):
    rows = shown(seen("slow", "quick", "dead", "idle", n_looks=n_looks))
    assert dict(rows.select("group_id", "trend").iter_rows()) == {
        "slow": "unknown", "quick": "unknown", "dead": "standing", "idle": "caught up",
    }  # fmt: skip


def test_one_observation_has_no_rate():
    (row,) = shown([look(0, slow=500)]).to_dicts()
    assert (row["lag"], row["trend"], row["lag_per_s"]) == (500, "unknown", None)


def test_a_group_that_came_later_and_one_that_went():
    rows = shown([look(0, gone=5), look(10_000, new=900)])
    assert rows.select("group_id", "trend", "of_late").rows() == [("new", "unknown", "█")]


def test_without_a_commit_there_is_no_lag_in_the_line_of_polls():
    """A sum over nothing is 0 in polars."""
    nothing = look(0, g=None).with_columns(has_no_commit=True)
    assert shown([nothing])["of_late"].to_list() == ["·"]


@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
def test_on_a_terminal_names_that_wrap_push_the_worst_off_no_screen(width, monkeypatch):
    for name, value in {"COLUMNS": width, "LINES": 20, "NO_COLOR": 1}.items():
        monkeypatch.setenv(name, str(value))
    names = [f"{at:02}-{'a-name-that-goes-on-' * 9}" for at in range(30)]
    with redirect_stdout(Screen()) as screen:
        verb._print(GroupTrends().add(look(0, **dict.fromkeys(names, 500))), "fake at 01:02:03 UTC, poll 1")
    shown = screen.getvalue().removeprefix("\x1b[H\x1b[2J").splitlines()
    assert len(shown) < 20
    begun = [line for line in shown if line[:3] in {f"{at:02}-" for at in range(30)}]
    assert begun[0].startswith("00-")
    assert f"{30 - len(begun)} more groups. To show fewer, give --groups a pattern of names" in shown


def snapshot_at(committed: int, end: int) -> Snapshot[pl.DataFrame]:
    """One group with one partition."""
    return snapshot_of(
        {
            "groups": [Group("slow", KAFKA, "Stable", "classic", "consumer", "range", 1)],
            "members": [Member("slow", KAFKA, "m", "c", "h", *[None] * 5)],
            "ownership": [Ownership("slow", KAFKA, "t", 0, "m", None, None, None)],
            "subscriptions": [Subscription("slow", KAFKA, "m", "t", 1)],
            "committed_offsets": [CommittedOffset("slow", KAFKA, "t", 0, committed, *[None] * 5)],
            "topic_partitions": [TopicPartition("t", 0, False, 1, 0, (1,), (1,))],
            "log_offsets": [LogOffset("t", 0, 0, end)],
        }
    )


def test_it_reports_what_an_observation_costs(observe, capsys):
    looks = [snapshot_at(committed, 1000 + 100 * at) for at, committed in enumerate(FOUR_LOOKS["slow"])]
    cluster = SimpleNamespace(n_sent=(0, 0), broker_client=SEEING.broker_client)

    def read(cluster: SimpleNamespace) -> Snapshot[pl.DataFrame]:
        to_brokers, _ = cluster.n_sent
        cluster.n_sent = (to_brokers + 7, 1_200 if to_brokers else 0)
        return looks.pop(0)

    observe(read, cluster)
    verb.watch(every=0.0, count=4, history="")
    lines = capsys.readouterr().out.splitlines()
    first, second, third, fourth = [line for line in lines if line.startswith("fake at ")]
    assert "poll 1: 1 group (1 unknown); 0.0 s, 7 requests to brokers; rates need 2 polls, and a trend needs 4" in first
    assert "ZooKeeper" not in first  # It was asked nothing.
    assert "poll 2: 1 group (1 unknown); 0.0 s, 7 requests to brokers and 1,200 to ZooKeeper; rates" in second
    assert third.endswith("rates need 2 polls, and a trend needs 4")
    assert fourth.endswith("poll 4: 1 group (1 growing); 0.0 s, 7 requests to brokers")


@pytest.mark.parametrize("value", ["nan", "inf", "1e300"])
@pytest.mark.parametrize(
    "verb",
    [
        "watch --every",
        "lag --outlook --over-s",
        "kraft watch --history soak --every",
        "kraft diff --settle-s",
        "kraft report --history soak --last-hours",
        "consume --wait-for-topics",
    ],
)
def test_an_endless_wait_is_refused(verb, value):
    """``nan`` is in every range, and asked the cluster repeatedly without a pause."""
    ended = CliRunner().invoke(app, [*verb.split(), value])
    assert ended.exit_code == 2
    assert "Invalid value for" in ended.stderr


LOOK = dict.fromkeys(PARTITION[:3], pl.String) | dict.fromkeys(
    ("partition", "at_ms", "committed_offset", "log_end_offset", "log_start_offset"), pl.Int64
)
numbers = st.one_of(st.none(), st.integers(0, 6))
moments = st.lists(st.tuples(numbers, numbers, st.integers(0, 3)), min_size=3, max_size=3)
# Names that are a group's, a topic's and a store's at once: each observation numbers the names that it holds.
names = st.sampled_from(["kafka", "zookeeper"])
partitions = st.tuples(names, names, names, st.integers(0, 1))


@settings(max_examples=50)
@given(st.dictionaries(partitions, moments, min_size=1))
def test_the_quick_rates_are_those_of_the_analysis(histories):
    """Rewinds, topics made again, and what was unknown in one of the observations, or not in it at all."""
    looks = [
        pl.DataFrame(
            [
                dict(zip(PARTITION, place), at_ms=1000 * at * (at + 1))
                | dict(zip(("committed_offset", "log_end_offset", "log_start_offset"), moment[at]))
                for place, moment in histories.items()
                if moment[at][:2] != (None, None)
            ],
            schema=LOOK,
        )
        for at in range(3)
    ]
    quick = rates_of(*looks).collect().drop_nulls("lag_per_s").sort(PARTITION)
    is_known_now = looks[-1].drop_nulls(["committed_offset", "log_end_offset"])
    wanted = analyze.lag_velocity(pl.concat(looks)).join(is_known_now, on=PARTITION, how="semi").sort(PARTITION)
    assert quick.select(PARTITION).rows() == wanted.select(PARTITION).rows()
    for ours, theirs in zip(("lag_per_s", "read_per_s", "written_per_s"), ("lag", "consumed", "produced")):
        assert quick[ours].to_list() == pytest.approx(wanted[f"{theirs}_per_s"].to_list())


def test_a_group_whose_commit_is_beyond_the_end_is_not_caught_up():
    rows = shown([look(0, lost=5000, well=1000), look(10_000, lost=5000, well=1100)])
    assert rows.select("group_id", "lag", "trend").rows() == [("lost", 0, "beyond the end"), ("well", 0, "caught up")]


def test_a_group_whose_unread_records_are_all_deleted_has_caught_up():
    seen = [each.with_columns(lag_retained=pl.lit(0, pl.Int64)) for each in (look(0, gone=10), look(10_000, gone=10))]
    assert shown(seen).select("lag", "trend").rows() == [(1090, "caught up")]


def test_a_group_with_two_stores_counts_once_by_the_worse():
    rows = pl.DataFrame({"group_id": ["g", "h", "g"], "trend": ["growing", "caught up", "caught up"]})
    assert verb._counted(rows) == "2 groups (1 growing, 1 caught up)"
