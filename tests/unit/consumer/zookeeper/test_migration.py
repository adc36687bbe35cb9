"""The assignment in force: every row of KIP-125's toggle, and what plain Kafka consumers change (R5, R6)."""

from __future__ import annotations

import re
from itertools import product

import pytest

from kit.consumer.zookeeper.migration import Mode, decide

ALL, SOME, NONE = ("a", "b"), ("a",), ()
MEMBERS = ("a", "b")
PLAIN = ("kc-1",)
K, Z = Mode.KAFKA, Mode.ZOOKEEPER


@pytest.mark.parametrize(
    ("toggle", "enabled", "plain", "current", "has_reservations", "mode", "is_deferred", "is_reserving", "has_alarm"),
    [
        ("kafka", ALL, NONE, Z, False, K, False, False, False),
        ("kafka", ALL, PLAIN, K, False, K, False, True, False),
        ("kafka", SOME, NONE, K, False, Z, False, False, False),
        (None, ALL, NONE, K, False, Z, False, False, False),
        ("zookeeper", ALL, NONE, K, False, Z, False, False, False),
        ("kafka\n", ALL, NONE, K, False, Z, False, False, False),
        ("Kafka", ALL, NONE, None, False, Z, False, False, False),
        ("zookeeper", ALL, PLAIN, K, False, K, True, True, True),
        (None, ALL, PLAIN, Z, False, K, True, True, True),
        ("kafka", SOME, PLAIN, K, False, K, True, True, True),
        ("zookeeper", SOME, PLAIN, K, False, K, True, True, True),
        ("kafka", SOME, PLAIN, None, True, K, True, True, True),
        ("kafka", SOME, PLAIN, None, False, K, True, True, True),
        ("zookeeper", SOME, PLAIN, None, False, Z, False, False, True),
        ("zookeeper", SOME, PLAIN, Z, True, K, True, True, True),
        ("zookeeper", SOME, PLAIN, Z, False, Z, False, False, True),
    ],
)
def test_the_mode_in_force(
    toggle: str | None,
    enabled: tuple[str, ...],
    plain: tuple[str, ...],
    current: Mode | None,
    has_reservations: bool,
    mode: Mode,
    is_deferred: bool,
    is_reserving: bool,
    has_alarm: bool,
) -> None:
    decision = decide(toggle, MEMBERS, enabled, plain, current, has_reservations)
    assert decision.mode is mode
    assert (decision.is_deferred, decision.is_reserving) == (is_deferred, is_reserving)
    assert (decision.alarm is not None) is has_alarm


def rows_of_the_docstring() -> list[list[str]]:
    assert decide.__doc__ is not None
    table = decide.__doc__.partition("alarm\n")[2].partition("\n\n")[0]
    return [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()]


def facts() -> list[tuple[str | None, bool, bool, bool, Mode | None]]:
    return list(product(("kafka", "zookeeper", None), (True, False), (True, False), (True, False), (K, Z, None)))


@pytest.mark.parametrize(("toggle", "has_old", "has_plain", "has_reservations", "current"), facts())
def test_the_table_in_the_docstring_is_what_is_decided(
    toggle: str | None, has_old: bool, has_plain: bool, has_reservations: bool, current: Mode | None
) -> None:
    yes_no = {True: "yes", False: "no"}
    given = [toggle, yes_no[has_old], yes_no[has_plain], yes_no[has_reservations], current.name if current else "None"]
    row = next(row for row in rows_of_the_docstring() if all(cell in ("-", it) for cell, it in zip(row, given)))
    enabled, plain = SOME if has_old else ALL, PLAIN if has_plain else NONE
    decision = decide(toggle, MEMBERS, enabled, plain, current, has_reservations)
    flags = (decision.is_deferred, decision.is_reserving, decision.alarm is not None)
    assert row[5:] == [decision.mode.name, *(yes_no[flag] for flag in flags)]
