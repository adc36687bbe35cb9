"""Mistakes put back on purpose (``tests/simulation/mistakes.py``): the walks and the races must find them.

A check that lets one of these through would let it through in the members too.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kit.consumer.zookeeper.coordination import Coordination
from kit.consumer.zookeeper.gate import Gate
from tests.property.consumer import test_simulation_races as races
from tests.simulation import mistakes
from tests.simulation.model_member import PythonMember
from tests.simulation.steps import Violation
from tests.simulation.walk import wander

N_SEEDS = 600

FOUND_BY_WALKS = [
    mistakes.D1,
    mistakes.D2,
    mistakes.D3,
    mistakes.D5,
    mistakes.D6,
    mistakes.D7,
    mistakes.D9,
    mistakes.D11,
    mistakes.OldOnesDecide,
    mistakes.D14,
    mistakes.D15,
    mistakes.OffsetsBeforeClaim,
    mistakes.ReleaseBeforeCommit,
    mistakes.ReleaseBeforeStop,
    mistakes.ReleaseInAnyCase,
    mistakes.LooksAtNothing,
    mistakes.AssignmentEpochIgnored,
    mistakes.RoundNeverRefused,
    mistakes.LeaseIgnored,
    mistakes.TheftIgnored,
    mistakes.DoubtsForgotten,
    mistakes.ForgetsDoubts,
    mistakes.WatchesForgotten,
    mistakes.TakesLeftovers,
    mistakes.LostIgnored,
    mistakes.UnansweredIsUnsaved,
    mistakes.BlindDecision,
    mistakes.OthersNotStopped,
    mistakes.BeginsWhereFetched,
]
Race = Callable[[type[PythonMember]], None]
FOUND_BY_A_RACE: list[tuple[type, Race]] = [
    (mistakes.RestartsAlways, races.test_r11_a_change_under_ids_restarts_nothing),
    (mistakes.DeafWithoutTimer, races.test_r08_a_missed_watch_is_made_good_by_the_timer),
    (
        mistakes.AnswersInZookeepersMode,
        races.test_r17_the_toggle_can_not_be_read_while_a_rebalance_is_answered,
    ),
    (mistakes.WaitsAndConsumes, races.test_r09_a_rebalance_in_the_middle_of_a_toggle_stops_everything),
    (mistakes.LateReservation, races.test_r05_the_reservation_is_there_before_the_old_consumer_reads),
    (mistakes.StaleDescription, races.test_r06_a_plain_consumer_that_has_only_asked_to_join_counts),
    (mistakes.StandsStillUnproven, races.test_r13_a_stalled_member_proves_that_it_is_a_member),
    (mistakes.LeaseFromAnswer, races.test_r14_a_lease_counts_from_the_question),
    (mistakes.ReservationsGoSilently, races.test_r18_an_old_consumer_after_kafka_consumers_begins_where_they_ended),
    (mistakes.CopiesNothing, races.test_r18_an_old_consumer_after_kafka_consumers_begins_where_they_ended),
    (mistakes.CountsWhatIsInHand, races.test_a_record_in_hand_at_a_release_is_the_next_owners),
    (mistakes.StaysInTheKafkaGroup, races.test_r12_who_can_not_reach_zookeeper_leaves_the_kafka_group),
    (mistakes.ProvesInDoubt, races.test_r12_who_lost_its_session_lowers_no_offset_in_kafka),
    (mistakes.ClientIdsTell, races.test_a_plain_consumer_with_a_members_client_id_is_plain),
    (mistakes.GuessesCount, races.test_no_guess_ends_kafkas_assignment),
    (mistakes.KeepsFromTheUnknown, races.test_r13_who_is_put_out_of_the_kafka_group_releases),
]


def member_with(mistake: type) -> type[PythonMember]:
    if issubclass(mistake, Coordination):
        return mistakes.with_coordination(mistake)
    return mistakes.with_gate(mistake) if issubclass(mistake, Gate) else mistake


@pytest.mark.slow
@pytest.mark.parametrize("mistake", FOUND_BY_WALKS)
def test_walks_find(mistake: type) -> None:
    member_class = member_with(mistake)
    for seed in range(N_SEEDS):
        try:
            wander(seed, member_class)
        except Violation:
            return
    pytest.fail(f"{N_SEEDS} walks with {mistake.__name__}, and nothing was found")


@pytest.mark.parametrize(("mistake", "race"), FOUND_BY_A_RACE)
def test_a_race_finds(mistake: type, race: Race) -> None:
    with pytest.raises((Violation, AssertionError)):
        race(member_with(mistake))
