"""Count the facts that several events of one kind show: processes and programs print one fact several times."""

from __future__ import annotations

import re
from itertools import pairwise

from kit.rebalances.analyze.consumer_instances import Event, time_of

_SOON, _SAME, _ENDS = 10, 40, "\"'`)}].,; "
"""A program repeats its client's words within so many lines; so many characters of them are no coincidence."""
_BY_RDKAFKA = re.compile(r"%\d\|")
AT_ONCE_US = 5_000
"""The time within which two equal lines of one process are one fact."""


def n_facts(same: list[Event]) -> int:
    """Return how many facts these events of one kind show: a process may print one several times, at once, and the
    program may print what its client reported."""
    facts = same[:1]
    for before, event in pairwise(same):
        if not _is_repeated(before, event) and not _is_echoed(facts[-1], event):
            facts.append(event)
    return len(facts)


def _is_echoed(fact: Event, event: Event) -> bool:
    """Return whether a line soon after ends as the one that reports the fact does, and has no time of its own, or is
    not librdkafka's as that one is."""
    if time_of(fact) is None or fact["file"] != event["file"] or event["line"] - fact["line"] > _SOON:
        return False
    is_of_client, is_too = (_BY_RDKAFKA.match(each["text"]) for each in (fact, event))
    is_of_program = time_of(event) is None or (is_of_client and not is_too)
    return bool(is_of_program) and event["text"].rstrip(_ENDS)[-_SAME:] in fact["text"]


def _is_repeated(before: Event, event: Event) -> bool:
    first, second = time_of(before), time_of(event)
    if first is None or second is None:
        is_at_once = before["file"] == event["file"] and event["line"] - before["line"] <= 1
    else:
        is_at_once = abs(second - first) <= AT_ONCE_US
    return is_at_once and all(
        None in (before[name], event[name]) or before[name] == event[name] for name in ("partitions", "offset")
    )
