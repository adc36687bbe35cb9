"""Mistakes put back on purpose (``tests/adversary/mistakes.py``): the races, and the walks, must find them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.adversary import mistakes
from tests.adversary.deployers import Manner
from tests.adversary.judge import Wrong
from tests.adversary.mistakes import Mistake, put_back
from tests.adversary.walk import wander
from tests.property.operations import test_adversary_races as races
from tests.soak import first

MOST_WALKS = 1000
"""One walk of some 160 is led into the rarest of them; the first that is ends the search."""
READS_TWICE = {"foreign", "no victim", "reads another's", "undo of another's", "no approval"}


def led_into(race: Callable[..., None], *args: object) -> Wrong:
    with pytest.raises(Wrong) as found:
        race(*args)
    return found.value


@pytest.mark.parametrize(
    ("mistake", "race", "args", "whats"),
    [
        (mistakes.A1, races.test_undo_after_others_continued_starts_no_member, (600.0,), READS_TWICE),
        (mistakes.A1, races.test_undo_after_others_continued_starts_no_member, (races.DAYS_90,), {"no approval"}),
        (mistakes.A1, races.test_undo_of_a_verified_run_beside_others_work_starts_no_member, (), READS_TWICE),
        (mistakes.A3, races.test_a_step_that_acts_on_another_group_writes_nothing, (), {"forged"}),
        (mistakes.B4, races.test_a_name_like_a_secret_prevents_no_exit, ("user_api-key",), {"unplannable"}),
        (
            mistakes.B8,
            races.test_nothing_is_undone_while_another_client_may_still_do_it,
            (Manner.SLOW,),
            {"undone while pending"},
        ),
        (mistakes.B8, races.test_an_order_is_not_given_twice_while_the_first_is_open, (), {"two orders"}),
        (mistakes.C10, races.test_nothing_is_written_after_the_approval_ran_out, (2,), {"no approval"}),
        (mistakes.C11, races.test_another_tools_toggle_is_not_undone, ("examine orders", 3), {"another's toggle"}),
        (mistakes.C11_WAVE, races.test_a_wave_that_found_one_toggled_comes_back_to_an_end, (2,), {"halts for ever"}),
    ],
)
def test_a_race_finds_it(
    mistake: Mistake, race: Callable[..., None], args: tuple[object, ...], whats: set[str]
) -> None:
    race(*args)
    with put_back(mistake):
        assert led_into(race, *args).what in whats


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mistake", "whats"),
    first(
        [
            (mistakes.A1, READS_TWICE),
            (mistakes.A3, {"forged"}),
            (mistakes.B4, {"unplannable"}),
            (mistakes.B8, {"undone while pending", "two orders"}),
            (mistakes.C10, {"no approval"}),
            (mistakes.C11, {"another's toggle"}),
        ],
        5,
    ),
)
def test_walks_find_it(mistake: Mistake, whats: set[str]) -> None:
    """Nobody led them there."""
    found = set()
    with put_back(mistake):
        for seed in range(MOST_WALKS):
            try:
                wander(seed)
            except Wrong as wrong:
                found.add(wrong.what)
            if found & whats:
                return
    pytest.fail(f"{MOST_WALKS} walks found {found or 'nothing'}")


def test_a_lock_in_kafka_that_no_one_asks_is_found() -> None:
    race = races.test_a_lock_in_kafka_that_is_lost_between_two_waves_ends_the_run
    race()
    with put_back(mistakes.UNASKED), pytest.raises(AssertionError, match="VERIFIED"):
        race()
