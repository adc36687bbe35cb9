"""Rules for moving a group: what isn't known blocks as well as what is wrong."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from kit.errors import UnsafePlan
from kit.moves.group.deploy import Manual
from kit.moves.group.plan import GroupPlanRequest, plan_from
from kit.moves.group.rules import GROWN_BY, Limits, findings
from kit.tables.conditions import raise_if_unsafe
from tests.models.operations import GROUP, ToyGroup


@pytest.fixture
def looks():
    toy = ToyGroup()
    return toy.look(GROUP), toy.look(GROUP)


@pytest.fixture
def still(looks):
    """Two observations five seconds apart, between which nothing moved."""
    before = looks[0]
    return before, replace(before, observed_at=before.observed_at + timedelta(seconds=5))


def found(looks, name, min_stable_s=60.0):
    (rule,) = [each for each in findings(*looks, "canary MEZKCC", Limits(min_stable_s)) if each.check_id == name]
    return rule


def with_offsets(group_state, numbers=range(6), **values):
    offsets = dict(group_state.offsets)
    for number in numbers:
        offsets["orders", number] = replace(offsets["orders", number], **values)
    return replace(group_state, offsets=offsets)


def with_end(group_state, end):
    return replace(
        group_state, offsets={pair: replace(each, log_end=end) for pair, each in group_state.offsets.items()}
    )


def test_a_lag_that_is_stalled_is_well(looks):
    assert found(looks, "lag").is_met is True


def test_a_lag_that_is_not_known_blocks(looks):
    before, now = looks
    lag = found((before, with_end(now, None)), "lag")
    assert lag.is_met is None
    assert "The lag of 6 partitions is not known." in lag.sentence
    with pytest.raises(UnsafePlan, match="lag"):
        raise_if_unsafe([lag], ())
    assert "lag" in raise_if_unsafe([lag], ["lag"])


def test_a_lag_that_grows_blocks(looks):
    before, now = looks
    end = max(offsets.kafka or offsets.zookeeper for offsets in now.offsets.values()) + GROWN_BY
    assert found((before, with_end(now, end)), "lag").is_met is False


@pytest.mark.parametrize(("more", "told"), [(3, "grew by 18, from 60 to 78"), (0, "stayed, from 60 to 60")])
def test_the_growth_of_the_lag_and_the_tolerance_are_reported(still, more, told):
    before, now = still
    grown = with_offsets(now, log_end=now.offsets["orders", 0].log_end + more)
    assert found((before, grown), "lag").sentence == f"The lag {told} records, in 5 s; 1,000 are tolerated."
    assert "does not grow by more than 1,000 records" in found(still, "lag").holds


def test_offsets_left_over_in_kafka_while_zookeeper_moves_are_no_commit(still):
    before, now = (with_offsets(each, kafka=50) for each in still)
    now = with_offsets(now, zookeeper=120)
    storage = found((before, now), "storage_mode")
    assert storage.is_met is True
    assert storage.sentence == (
        "Kafka's offsets of 6 partitions are left over from earlier: no offset moved between two observations 5 s"
        " apart."
    )
    ahead = with_offsets(before, kafka=500), with_offsets(now, kafka=500)
    assert found(ahead, "storage_mode").is_met is True, "ahead of ZooKeeper's, which moves: nobody commits it"


def test_offsets_that_move_in_kafka_are_committed_there(still):
    before, now = (with_offsets(each, kafka=50) for each in still)
    for moved in (60, 40):
        storage = found((before, with_offsets(now, [4], kafka=moved, zookeeper=120)), "storage_mode")
        assert storage.is_met is False
        assert (
            "Kafka's offsets of orders-4 moved between two observations 5 s apart while shop_<1>-OZKCC"
        ) in storage.sentence
    appeared = still[0], with_offsets(still[1], [4], kafka=100)
    assert found(appeared, "storage_mode").is_met is False
    gone = with_offsets(before, [4]), with_offsets(now, [4], kafka=None)
    assert found(gone, "storage_mode").is_met is True, "it was deleted, or is out of its retention"


def test_if_nothing_moves_an_offset_behind_is_left_over_and_an_equal_one_is_not_reported(still):
    behind = tuple(with_offsets(each, kafka=99, zookeeper=100) for each in still)
    assert found(behind, "storage_mode").is_met is True
    equal = tuple(with_offsets(each, kafka=100, zookeeper=100) for each in still)
    storage = found(equal, "storage_mode")
    assert storage.is_met is None
    assert "so it is unknown whether shop_<0>-OZKCC commits to Kafka" in storage.sentence
    one_behind = tuple(with_offsets(each, [0, 1, 2], kafka=99) for each in equal)
    assert found(one_behind, "storage_mode").is_met is True, "a member has one setting for all its partitions"
    by_another = tuple(with_offsets(each, kafka_leader_epoch=0) for each in equal)
    assert found(by_another, "storage_mode").is_met is True, "no old consumer commits a leader epoch"


def test_a_commit_to_both_stores_that_an_observation_cuts_through_is_not_taken_for_left_over(still):
    """Kafka first, then ZooKeeper: the first observation saw the commit in Kafka only. ZooKeeper first: so did the
    second.
    """
    before, now = (with_offsets(each, kafka=110, zookeeper=100) for each in still)
    assert found((before, with_offsets(now, zookeeper=110)), "storage_mode").is_met is None
    before, now = (with_offsets(each, kafka=100, zookeeper=100) for each in still)
    assert found((before, with_offsets(now, zookeeper=110)), "storage_mode").is_met is None


def test_a_member_with_records_left_that_commits_nothing_is_named(looks, still):
    assert found(looks, "commits").is_met is True
    before, now = still
    now = with_offsets(now, [0, 1, 3, 4], zookeeper=200, log_end=300)
    commits = found((before, now), "commits")
    assert (commits.is_met, commits.is_blocking) == (False, False)
    assert commits.sentence.startswith("shop_<2>-OZKCC owns orders-2, orders-5: records are left, and nothing was comm")
    all_read = tuple(with_offsets(each, [2, 5], log_end=each.offsets["orders", 2].zookeeper) for each in still)
    assert "<2>" not in found(all_read, "commits").sentence


def test_partitions_are_owned_which_is_not_consumed(looks):
    assert found(looks, "settled").sentence == "Each of 6 partitions is owned; the Kafka group is Stable."


def test_a_registration_in_the_future_is_of_two_clocks_that_differ(still):
    before, now = (replace(each, observed_at=each.observed_at - timedelta(hours=2)) for each in still)
    stable = found((before, now), "stable")
    assert stable.is_met is None
    assert "s in the future by ZooKeeper's clock (" in stable.sentence
    assert f"against this machine's ({now.observed_at.isoformat()})" in stable.sentence


def test_zookeepers_own_times_report_how_long_members_are_there(still):
    """This machine's clock is a day ahead: only what ZooKeeper says of itself counts where it says anything."""
    fast = tuple(replace(each, observed_at=each.observed_at + timedelta(days=1)) for each in still)
    youngest = fast[0].youngest_at
    long_ago = tuple(replace(each, zookeeper_at=youngest + timedelta(seconds=61)) for each in fast)
    assert found(long_ago, "stable").is_met is True
    just_now = [replace(each, zookeeper_at=youngest + timedelta(seconds=at)) for each, at in zip(fast, (5, 10))]
    stable = found(just_now, "stable")
    assert (stable.is_met, stable.sentence) == (
        False,
        ("The newest member registered 10 s ago or more; 60 s are required."),
    )


@pytest.mark.parametrize(("soak_s", "n_told"), [(3.0, 2), (30.0, 1), (60.0, 0)])
def test_a_soak_shorter_than_a_commit_interval_is_reported_when_planning(looks, soak_s, n_told):
    request = GroupPlanRequest(GROUP, "all KC", soak_s=soak_s)
    plan = plan_from(*looks, "toy", Manual(), request, "ann")
    told = [risk for risk in plan.risks if "commit interval" in risk]
    assert len(told) == n_told
    if told:
        assert "may be shorter than the MEZKCCs' commit interval (60 s unless they set another)" in told[0]
        assert "offsets of 6 partitions moved; 6 had records left" in told[0]


@pytest.mark.parametrize(
    ("flavour", "mode", "is_met", "sentence"),
    [
        (
            "KC",
            None,
            False,
            "KCs are members, and there is no toggle. Set the toggle to 'kafka' before a MEZKCC joins.",
        ),
        (
            "KC",
            "zookeeper",
            False,
            "KCs are members, and the toggle holds 'zookeeper'. Set the toggle to 'kafka' before a MEZKCC",
        ),
        ("KC", "kafka", True, "The toggle holds 'kafka'."),
        ("OZKCC", None, True, "There is no toggle."),
        ("OZKCC", "kafka", False, "The toggle holds 'kafka' while old consumers are members: the group follows it"),
    ],
)
def test_the_toggle_is_reported_as_it_is(looks, flavour, mode, is_met, sentence):
    one, other = (
        replace(each, mode=mode, members=tuple(replace(it, flavour=flavour) for it in each.members)) for each in looks
    )
    toggle = found((one, other), "toggle")
    assert toggle.is_met is is_met
    assert toggle.sentence.startswith(sentence)


def test_a_member_that_came_between_two_observations_is_not_stable(looks):
    before, now = looks
    fewer = replace(before, members=before.members[1:])
    stable = found((fewer, now), "stable")
    assert (stable.is_met, stable.sentence) == (False, "A member came or went between the two observations.")
