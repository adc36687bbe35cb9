from __future__ import annotations

import pytest

from kit.errors import InputError
from kit.groups.read.record_prints import Print
from kit.moves.offsets.equal_records import RECORD, Translation, by_equal_record, by_sync, nearest
from kit.moves.offsets.other_cluster import OtherCluster


def log(first: int, *words: str) -> list[Print]:
    """The records from an offset on; their times are those of the words: ``a5`` is of time 5."""
    return [Print(first + at, int(word[1:]) if word[1:] else None, word[:1].encode()) for at, word in enumerate(words)]


SOURCE = log(10, "a1", "b2", "c3", "c3", "d4", "e5")


@pytest.mark.parametrize(
    ("offset", "copy", "found"),
    [
        (12, log(0, "a1", "b2", "c3", "c3", "d4"), Translation(2, RECORD, 0)),
        (13, log(0, "a1", "b2", "c3", "c3", "d4"), Translation(3, RECORD, 0)),
        (13, log(7, "c3"), Translation(7, RECORD, 0)),
        (16, log(0, "d4", "e5"), Translation(2, RECORD, 0)),
        (15, log(0, "b2"), Translation(1, RECORD, 3, "the next record is not in the copy")),
        (14, log(0, "d9"), None),
        (14, [], None),
    ],
)
def test_the_next_record_is_found_or_else_one_that_was_read(offset, copy, found):
    assert by_equal_record(offset, SOURCE, copy) == found


def test_the_first_of_equal_records_is_taken_and_reported():
    found = by_equal_record(11, log(10, "a1", "a1", "a1"), log(0, "a1", "a1", "a1", "a1", "a1"))
    assert found is not None
    assert found.offset == 1
    assert found.doubt.endswith("the first is taken, and later ones are read again")


def test_a_record_without_a_producers_time_is_equal_to_none():
    assert by_equal_record(11, log(10, "a", "b"), log(0, "a", "b")) is None


def test_few_records_on_both_sides_are_searched():
    records = log(0, *(f"a{at}" for at in range(40)))
    assert [each.offset for each in nearest(20, records)] == list(range(15, 25))


def test_an_offset_below_all_syncs_has_no_translation():
    assert by_sync(4, [(5, 50)]) is None
    assert by_sync(5, [(5, 50)]) == Translation(50, "syncs", 0)
    assert by_sync(6, [(5, 50)]) == Translation(51, "syncs", 1)


@pytest.mark.parametrize("how", [{"by": "guess"}, {"by": "syncs"}, {"syncs_topic": "t"}])
def test_a_method_needs_what_it_reads(how):
    with pytest.raises(InputError):
        OtherCluster(**how)
