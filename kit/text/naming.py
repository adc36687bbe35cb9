"""Lists as people write them, for sentences: never Python's own brackets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

Value = TypeVar("Value")


def listed(items: Iterable[object], last: str = "and") -> str:
    """The items in their order, the last one behind an "and"; "none" where there are none.

    >>> listed([1]), listed([1, 2]), listed(("a", "b", "c"), last="or"), listed([])
    ('1', '1 and 2', 'a, b or c', 'none')
    """
    texts = [str(each) for each in items]
    if len(texts) < 2:
        return "".join(texts) or "none"
    return f"{', '.join(texts[:-1])} {last} {texts[-1]}"


def shortened(items: Iterable[str], shown: int = 3, between: str = ", ") -> str:
    """The first items, and how many more there are.

    >>> shortened("abcde"), shortened(["a", "b"]), shortened("abc", 2, "; ")
    ('a, b, c and 2 more', 'a, b', 'a; b and 1 more')
    """
    texts = list(items)
    more = f" and {len(texts) - shown:,} more" if len(texts) > shown else ""
    return between.join(texts[:shown]) + more


def named(items: Iterable[object], one: str, many: str = "") -> str:
    """Return the items in a text: ``{}`` in ``one``, or in ``many`` unless it is one, is the list.

    Without ``{}`` the list is at the end; without ``many`` that is ``one`` with an s.

    >>> named([1], "broker"), named([2, 1, 3], "broker"), named([], "broker")
    ('broker 1', 'brokers 2, 1 and 3', 'brokers none')
    >>> named([1], "broker {} is", "brokers {} are"), named([1, 2], "broker {} is", "brokers {} are")
    ('broker 1 is', 'brokers 1 and 2 are')
    """
    them = tuple(items)
    text = one if len(them) == 1 else many or f"{one}s"
    return text.format(listed(them)) if "{}" in text else f"{text} {listed(them)}"


def by_value(values: Mapping[int, Value]) -> dict[Value, list[int]]:
    """Value → its keys, both in the order in which they come.

    >>> by_value({1: "kraft", 2: "migration", 3: "kraft"})
    {'kraft': [1, 3], 'migration': [2]}
    """
    keys: dict[Value, list[int]] = {}
    for key, value in values.items():
        keys.setdefault(value, []).append(key)
    return keys
