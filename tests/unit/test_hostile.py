"""The list of hostile names holds what it says, and its strategies give only what may be such a name."""

from __future__ import annotations

from hypothesis import given

from tests.generators import hostile


def test_each_name_is_listed_once() -> None:
    assert len(hostile.TEXTS) == len(set(hostile.TEXTS))


def test_the_lists_are_large_enough_to_mean_something() -> None:
    assert len(hostile.TOPICS) > 30
    assert len(hostile.ZNODES) > 100
    assert set(hostile.TOPICS) < set(hostile.GROUPS)


def test_all_but_surrogates_can_go_over_the_wire() -> None:
    assert all(name.encode() for name in hostile.GROUPS if name)


@given(hostile.topics())
def test_topics_are_legal(name: str) -> None:
    assert 1 <= len(name) <= 249
    assert name not in {".", ".."}
    assert all(char.isascii() and (char.isalnum() or char in "._-") for char in name)


@given(hostile.groups())
def test_groups_are_text(name: str) -> None:
    assert name.encode().decode() == name


@given(hostile.znodes())
def test_znodes_are_legal(name: str) -> None:
    assert "/" not in name
    assert min(name) > "\x1f"
