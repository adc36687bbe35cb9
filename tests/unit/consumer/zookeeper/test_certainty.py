"""A member reads its owner znodes again unless nothing can have changed them since its last round."""

from __future__ import annotations

from itertools import product

from kit.consumer.zookeeper.certainty import MOVES, Certainty, Event, State


def test_a_settled_round_leaves_certainty() -> None:
    certainty = Certainty()
    certainty.begin_round()
    certainty.end_round(is_blocked=False)
    assert not certainty.begin_round()


def test_a_doubt_in_the_middle_of_a_round_outlives_it() -> None:
    certainty = Certainty()
    certainty.begin_round()
    certainty.doubt()
    certainty.end_round(is_blocked=False)
    assert certainty.begin_round()


def test_a_blocked_round_and_an_abandoned_one_leave_doubt() -> None:
    blocked, abandoned = Certainty(), Certainty()
    blocked.begin_round()
    blocked.end_round(is_blocked=True)
    abandoned.begin_round()
    assert blocked.begin_round()
    assert abandoned.begin_round()


def test_every_move_but_an_end_without_a_beginning_is_in_the_table() -> None:
    assert set(product(State, Event)) - MOVES.keys() == {
        (State.CERTAIN, Event.SETTLED),
        (State.CERTAIN, Event.BLOCKED),
    }
