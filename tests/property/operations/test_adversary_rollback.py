"""The way back to ZooKeeper, begun at any moment of the copy, with controllers that can't be reached or are not named.

At every moment a controller leads, or the plan's next write makes one possible. Nothing is deleted under a controller
that runs. No controller is stopped while a hidden topic lacks a replica. The epoch exceeds those of hidden znodes.
"""

from __future__ import annotations

from itertools import islice

import pytest

from tests.adversary import rollback
from tests.adversary.mistakes import Mistake, put_back
from tests.adversary.rollback import ContestedMove, roll_back, wrongs
from tests.soak import IS_SOAK

N_WALKS = 5_000 if IS_SOAK else 300
MOST_WALKS = 5_000
"""The first walks on which a mistake shows end the search."""


def test_no_rollback_leaves_a_cluster_without_a_controller():
    assert list(wrongs(range(N_WALKS))) == []


def test_rollbacks_are_run_from_every_moment_of_the_copy():
    began = [(world.phase, roll_back(world)) for world in map(ContestedMove, range(N_WALKS))]
    assert {phase for phase, is_run in began if is_run} >= {"waiting", "aborted", "dual write"}
    assert ("copying", False) in began


@pytest.mark.parametrize(
    ("mistake", "what"),
    [
        (rollback.CLAIM_NOT_COMPARED, "nobody controls"),
        (rollback.UNREACHABLE_IS_STOPPED, "deleted under a controller"),
        (rollback.VOTERS_NOT_ASKED, "deleted under a controller"),
        (rollback.FEW_THAT_ANSWER_ARE_ALL, "deleted under a controller"),
        (rollback.ONLY_WHAT_IS_SEEN, "ordered without a full ISR"),
        (rollback.HIDDEN_IS_ABSENT, "epoch not exceeded"),
    ],
    ids=["claim", "unreachable", "voters", "few answer", "hidden topics", "hidden znodes"],
)
def test_a_mistake_that_is_put_back_is_found(mistake: Mistake, what: str):
    with put_back(mistake):
        assert what in {each.what for each in islice(wrongs(range(MOST_WALKS)), 3)}
