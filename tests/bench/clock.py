"""Takes the time of two ways in turn, so that a busy machine is unfair to both."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, TypeAlias

from tests.bench.rows import Row

Timing: TypeAlias = Callable[[], float]
"""Does it once and gives its seconds."""


class WrongAnswer(Exception):
    """One side did not read what it should: its time says nothing."""


def timed(way: Callable[[], Any], check: Callable[[Any], None] = lambda found: None) -> Timing:
    """The seconds of ``way``; what it found is checked, and let go, after the clock was stopped."""

    def once() -> float:
        gc.collect()
        started = time.perf_counter()
        found = way()
        seconds = time.perf_counter() - started
        check(found)
        return seconds

    return once


def compare(name: str, ours: Timing, peer: Timing, rounds: int, goal: float | None) -> Row:
    """Medians of ``rounds`` rounds, ours and the peer in turn, both done once or more before by the caller."""
    pairs = []
    for number in range(1, rounds + 1):
        pairs.append((ours(), peer()))
        say(f"  {name}, round {number} of {rounds}: ours {pairs[-1][0]:.3f} s, peer {pairs[-1][1]:.3f} s")
    return Row(name, median(ours for ours, _ in pairs), median(peer for _, peer in pairs), "s", goal)


def expect(what: str, found: object, wanted: object) -> None:
    """Raise WrongAnswer unless ``found`` is what was filled in."""
    if found != wanted:
        raise WrongAnswer(f"{what}: found {found}, but {wanted} were filled in")


_STARTED = time.monotonic()


def say(line: str) -> None:
    """Progress, on standard error, with the seconds since the start."""
    sys.stderr.write(f"[{time.monotonic() - _STARTED:5.0f} s] {line}\n")
    sys.stderr.flush()
