"""A history of observations in sentences: which verdict an observation has, who led when, what diverged and whether
it still does.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import polars as pl
import pytest

from kit.errors import HistoryError, PartialRead, StoresDiffer
from kit.kraft.analyze import soak
from kit.kraft.show.kraft_brief import brief
from kit.kraft.watch import KraftHistory, Soak
from tests.kraft_records import SOUND, control, diff, difference, kraft_look, node

CLEAN = diff(difference("topic", "equal"))
MOVING = diff(difference("topic", "in_flight"))
DIVERGED = diff(difference("topic", "equal"), difference("config", "diverged", item="b", cause="hand_edit"))


def look(minutes: int, found=CLEAN, error: str | None = None, **changed):
    """Return an observation; ``/migration`` moves on every minute."""
    made = kraft_look(found, error, minutes)
    state = replace(made.status.state, **{"checkpoint": 79 + minutes, **changed})
    return replace(made, status=replace(made.status, state=state))


def history(folder, *looks) -> Soak:
    kept = KraftHistory(folder)
    for each in looks:
        kept.append(each)
    return kept.soak()


@pytest.fixture
def kept(tmp_path):
    """Eight looks a minute apart but for an hour; a value that diverged and healed; one fail-over."""
    return history(
        tmp_path,
        look(0, None, phase="controllers", lag=None, controller_id=None),
        look(1),
        look(2, DIVERGED),
        look(3, DIVERGED, lag=40),
        look(4, MOVING),
        look(5, None, error="no controller answers"),
        look(6, controller_id=3001, kraft_epoch=9),
        look(66, controller_id=3001, kraft_epoch=9, phase="kraft"),
    )


def test_a_stretch_is_what_follows_each_other_with_one_phase_and_verdict(kept):
    rows = soak.stretches(kept.states)
    assert rows.select("phase", "verdict", "n_looks", "n_diverged").rows() == [
        ("controllers", "not compared", 1, None),
        ("dual write", "clean", 1, 0),
        ("dual write", "diverged", 2, 1),
        ("dual write", "in flight", 1, 0),
        ("dual write", "not read", 1, None),
        ("dual write", "clean", 1, 0),
        ("kraft", "clean", 1, 0),
    ]
    assert rows["max_lag"].to_list() == [None, 2, 40, 2, 2, 2, 2]
    assert rows["longest_gap_s"].to_list() == [None, None, 60.0, None, None, None, None]


def test_a_fail_over_shows_in_who_leads_or_in_the_epoch_alone(kept):
    (row,) = soak.fail_overs(kept.states).rows(named=True)
    assert (row["from_controller"], row["to_controller"], row["kraft_epoch"]) == ("3000", "3001", 9)
    again = kept.states.with_columns(kraft_epoch=pl.when(pl.col("phase") == "kraft").then(11).otherwise("kraft_epoch"))
    assert soak.fail_overs(again)["to_controller"].to_list() == ["3001", "3001"]


def test_times_without_an_observation_are_reported(kept):
    (row,) = soak.gaps(kept.states).rows(named=True)
    assert (row["seconds"], row["from_at"]) == (3600.0, SOUND.at + timedelta(minutes=6))


def test_a_value_reports_since_when_until_when_and_whether_it_differs_still(kept, tmp_path):
    (row,) = kept.values.rows(named=True)
    assert (row["item"], row["verdict"], row["cause"], row["n_looks"], row["is_open"]) == (
        "b",
        "diverged",
        "hand_edit",
        2,
        False,
    )
    later = history(tmp_path, look(70, DIVERGED))
    assert later.values["is_open"].to_list() == [True]
    with pytest.raises(
        StoresDiffer,
        match=r"cluster one: the last observation, at .* UTC, is diverged; the report and offramp "
        "kraft diff list the values",
    ):
        later.verify()


def test_the_last_observation_decides(kept, tmp_path):
    last = f"{SOUND.at + timedelta(minutes=66):%Y-%m-%d %H:%M:%S}"
    assert kept.verify() == f"Cluster one: the last observation, at {last} UTC, is clean. Observations: 8."
    with pytest.raises(PartialRead, match="is not read; no controller answers"):
        history(tmp_path, look(70, None, error="no controller answers")).verify()


def test_unread_values_are_counted_by_reason(kept):
    assert kept.unread.select("error", "n_looks").rows() == [("no controller answers", 1)]


def test_the_brief_reports_what_happened_first(kept):
    told = " ".join(brief(kept.states, kept.values, kept.cluster).sentences)
    assert "Cluster one was examined 8 times" in told
    assert (
        "held the same in 3 of 6 observations that compared them; in 1 more observation, changes were still in flight."
    ) in told
    assert "1 value diverged at some time, none in the last observation" in told
    assert "at most 40 records behind" in told
    assert "1 fail-over of the controllers, the last to controller 3001" in told
    assert "In 1 observation something could not be read" in told
    assert "The time between two observations was longer than usual 1 time, at most 3,600 s" in told


def test_a_soak_without_a_fail_over_asks_for_one(tmp_path):
    found = history(tmp_path, *(look(minute, phase="kraft") for minute in range(3)))
    told = " ".join(brief(found.states, found.values, found.cluster).sentences)
    assert "No fail-over of the controllers was seen: offramp plan kraft --fail-over" in told
    assert "No value diverged." in told


def test_one_of_several_clusters_has_to_be_named(tmp_path):
    one = look(0)
    other = replace(one, status=replace(one.status, state=replace(one.status.state, cluster="two")))
    kept = KraftHistory(tmp_path)
    for each in (one, other):
        kept.append(each)
    with pytest.raises(HistoryError, match=r"has observations of several clusters \(one, two\): name one of them"):
        kept.soak()
    with pytest.raises(HistoryError, match="has no observation of 'three'; it has observations of one, two"):
        kept.soak("three")
    assert kept.soak("two").cluster == "two"


def test_the_last_hours_are_of_the_newest_observation(kept, tmp_path):
    assert KraftHistory(tmp_path).soak("one", last_hours=0.5).states["phase"].to_list() == ["kraft"]


IN_KRAFT = {"phase": "kraft"}
FAILED_OVER = {"phase": "kraft", "controller_id": 3001, "kraft_epoch": 9}
SOAKED = [look(0, **IN_KRAFT), look(50, **IN_KRAFT), look(100, **FAILED_OVER), look(150, **FAILED_OVER)]


STOOD_STILL = [look(at, **FAILED_OVER, checkpoint=79) for at in range(0, 160, 10)]
NO_PROOF = (
    "no observation proves that ZooKeeper receives KRaft's changes: values were in flight or not read, or "
    "/migration was stalled"
)


def problem(folder, *looks, minutes_later: int = 160, hours: float = 2.0) -> str | None:
    states = history(folder, *looks).states
    return soak.soak_problem(states, look(minutes_later).status.state.at, hours)


def test_a_soak_is_long_enough_with_a_fail_over_and_nothing_diverged(tmp_path):
    assert problem(tmp_path, *SOAKED) is None


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        (SOAKED[1:], "was watched for 1.8 h of 2 h without a break: the history begins there"),
        (
            [SOAKED[0], look(10, DIVERGED, **IN_KRAFT), *SOAKED[1:]],
            "was watched for 1.8 h of 2 h without a break: values",
        ),
        ([SOAKED[0], *SOAKED[2:]], "1.0 h of 2 h without a break: no observation from"),
        ([*SOAKED, look(155)], "was not watched: the phase was dual write"),
        (SOAKED[:3], "was not watched: no observation from"),
        ([look(at, **IN_KRAFT) for at in (0, 50, 100, 150)], "no fail-over was seen in 2.7 h"),
        (
            [SOAKED[0], look(50, None, "no answer", **IN_KRAFT), *SOAKED[2:]],
            f"1.0 h of 2 h without a break: {NO_PROOF}",
        ),
        ([SOAKED[0], look(50, MOVING, **IN_KRAFT), *SOAKED[2:]], f"1.0 h of 2 h without a break: {NO_PROOF} from"),
        ([look(at, MOVING, **FAILED_OVER) for at in range(0, 160, 10)], f"was not watched: {NO_PROOF}"),
        (STOOD_STILL, f"was not watched: {NO_PROOF} from"),
        (
            [*SOAKED[:2], *(look(at, **FAILED_OVER, checkpoint=129) for at in (100, 150))],
            f"was not watched: {NO_PROOF}",
        ),
    ],
    ids=[
        "short",
        "diverged",
        "a gap",
        "not in KRaft mode",
        "long ago",
        "no fail-over",
        "not read is not watched",
        "in flight is no proof",
        "always in flight",
        "nothing changes, and dual write is stalled",
        "dual write was stalled at the end",
    ],
)
def test_the_missing_part_of_a_soak_is_reported(tmp_path, looks, told):
    minutes_later = 170 if looks == SOAKED[:3] else 160
    assert told in problem(tmp_path, *looks, minutes_later=minutes_later)


@pytest.mark.parametrize("looks", [[*SOAKED, look(165, **FAILED_OVER)], [look(2 * 24 * 60, **FAILED_OVER)]])
def test_observations_by_a_clock_that_was_ahead_vouch_for_nothing(tmp_path, looks):
    """However long such a history seems: how long was really watched nobody knows."""
    told = problem(tmp_path, *looks, hours=0.0)
    assert told.startswith("clock trouble: an observation is dated 20")
    assert "but this machine's clock shows" in told


def test_a_quorum_that_writes_nothing_has_nothing_to_bring_to_zookeeper(tmp_path):
    assert problem(tmp_path, *(look(at, **IN_KRAFT, checkpoint=79, lag=0) for at in range(0, 160, 10)), hours=99.0) == (
        "KRaft mode was watched for 2.7 h of 99 h without a break: the history begins there"
    )


def test_a_soak_allows_for_two_clocks_a_minute_apart(tmp_path):
    assert problem(tmp_path, *SOAKED, minutes_later=149) is None


def without_leader(minutes: int, brokers: tuple[int, ...] = ()):
    """An observation without a leader, in KRaft mode unless ``brokers`` are in ZooKeeper: no log, so no state of it."""
    return kraft_look(
        None,
        None,
        minutes,
        control=control(brokers=brokers),
        registrations=(),
        nodes=(node("broker", mode="kraft"), node("controller", is_leader=False, leader_id=None)),
        zk_state=None,
        log_read_at=None,
        log_error="no controller leads the quorum",
    )


def test_a_soak_outlasts_the_election_of_its_own_fail_over(tmp_path):
    """In those seconds the phase is not known: that is no other phase."""
    assert without_leader(99).state.phase == "unknown"
    looks = [*SOAKED[:2], without_leader(99), *SOAKED[2:]]
    assert problem(tmp_path, *looks) is None
    found = KraftHistory(tmp_path).soak()
    figure = brief(found.states, found.values, found.cluster).figures[0]
    assert figure == ("phase now", "kraft", f"since {SOUND.at:%Y-%m-%d %H:%M} UTC")


def test_observations_without_a_leader_are_not_watching(tmp_path):
    looks = [SOAKED[0], *(without_leader(at) for at in range(10, 100, 10)), *SOAKED[2:]]
    assert f"1.0 h of 2 h without a break: {NO_PROOF}" in problem(tmp_path, *looks)


def test_a_broker_back_in_zookeeper_ends_a_soak_though_no_one_leads(tmp_path):
    assert "the phase was dual write" in problem(tmp_path, *SOAKED[:2], without_leader(99, (1,)), *SOAKED[2:])


def test_a_name_that_was_for_another_cluster_shows_the_newest_alone(tmp_path):
    looks = [look(0, cluster_id="old"), look(1, cluster_id=None), look(2, cluster_id="new")]
    assert history(tmp_path, *looks).states["cluster_id"].to_list() == [None, "new"]


def test_a_history_without_an_observation_is_no_soak(tmp_path):
    states = history(tmp_path, *SOAKED).states
    assert "no observation" in soak.soak_problem(states.clear(), look(160).status.state.at, 1.0)
