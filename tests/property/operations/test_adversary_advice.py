"""Whoever does what the preflight advises about controllers never wipes the only copy of the metadata."""

from __future__ import annotations

import random

from tests.adversary.advice import AGES, WIPE_WHAT_IS_NO_MIGRATION, follow, wrongs
from tests.adversary.mistakes import put_back

N_WALKS = 2_000


def test_no_advice_destroys_the_only_copy():
    assert list(wrongs(range(N_WALKS))) == []


def test_controllers_that_hold_nothing_are_wiped():
    assert any(follow(AGES[0], random.Random(seed)) for seed in range(100))


def test_the_mistake_that_is_put_back_is_found():
    with put_back(WIPE_WHAT_IS_NO_MIGRATION):
        assert {each.what for each in wrongs(range(N_WALKS))} == {"wiped the only copy"}
