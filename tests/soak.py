"""The long form of the tests, ``make soak``: as often as the claims say, instead of as often as a commit can wait for.

A unit test holds that ``make soak`` runs each file that has such a form.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

Case = TypeVar("Case")
Record = Callable[[str, object], None]
"""Pytest's fixture ``record_property``."""

IS_SOAK = bool(os.environ.get("OFFRAMP_SOAK"))

soak_only = pytest.mark.skipif(not IS_SOAK, reason="a part of the long form: make soak runs it")


def first(cases: Sequence[Case], n: int = 1) -> Sequence[Case]:
    """The first of the cases of one mechanism; all of them in the long form."""
    return cases if IS_SOAK else cases[:n]


def report(
    record_property: Record,
    done: str | None = None,
    *,
    records: int | None = None,
    lost: int | None = None,
    twice: int | None = None,
    longest_pause_ms: float | None = None,
    details: str | None = None,
) -> None:
    """Report what a test did to the summary of ``make soak`` (``tests/soak_summary.py``).

    Args:
        done: what was done, for the summary's row: "100 toggles".
        records: records that the consumers delivered, or that the brokers acknowledged.
        twice: records that were delivered more than once.
        details: lines for the end of the report's file.

    A test may report in parts. If it reports a figure again, the last value counts.
    """
    figures = {"done": done, "records": records, "lost": lost, "twice": twice, "longest_pause_ms": longest_pause_ms}
    for name, value in {**figures, "details": details}.items():
        if value is not None:
            record_property(name, value)
