"""A comparison of both stores ends when it has read often enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.kraft.both_stores import MetadataDiff, settled
from tests.kraft_records import diff, difference


def read_until_settled(settle_s: float, *found: MetadataDiff) -> MetadataDiff:
    """Return the reads of both stores, one after the other."""
    left = iter(found)
    return settled(lambda n_reads: replace(next(left), n_reads=n_reads), lambda offset, deadline: None, settle_s)


def at(checkpoint: int, until: int, verdict: str, **changed):
    found = diff(difference("scram", verdict), difference("config", "in_flight" if until < 90 else "equal"))
    return replace(found, checkpoint=checkpoint, until=until, **changed)


@pytest.mark.parametrize(("settle_s", "n_reads", "is_clean"), [(30.0, 3, False), (0.0, 1, True)])
def test_values_equal_right_after_an_election_are_read_again_until_the_leading_controller_has_synced(
    settle_s, n_reads, is_clean
):
    """ZooKeeper is as the controller before left it: what the next one forgot, it takes out of ZooKeeper then."""
    before = replace(diff(difference("scram", "equal")), is_syncing=True)
    found = read_until_settled(settle_s, before, at(83, 90, "diverged"), at(91, 95, "diverged"))
    assert (found.n_reads, found.is_clean) == (n_reads, is_clean)


def test_values_that_begin_to_differ_while_others_are_in_flight_are_read_until_their_verdict_is_known():
    """A value that differed in the last read alone was left in flight, without a cause, whatever time there was."""
    reads = (at(79, 82, "equal"), at(83, 90, "diverged"), at(91, 95, "diverged"))
    found = read_until_settled(30.0, *reads)
    assert found.n_reads == 3
    assert found.of("diverged", "in_flight").select("kind", "verdict").rows() == [("scram", "diverged")]
