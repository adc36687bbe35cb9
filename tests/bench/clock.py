"""Takes the time of two ways in turn, so that a busy machine is unfair to both."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, TypeAlias

from tests.bench.rows import Row

Timing: TypeAlias = Callable[[], float]
"""Does it once and gives its seconds."""
_FEWEST_ROUNDS, _ENOUGH_SECONDS = 2, 60.0


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


def compare(name: str, ours: Timing, peer: Timing, goal: float | None, rounds: int = 5) -> Row:
    """Medians of rounds, ours and the peer in turn, both warmed up by the caller where that is their use."""
    our_seconds, peer_seconds = in_turn(name, {"ours": ours, "peer": peer}, rounds)
    return Row(name, our_seconds, peer_seconds, "s", goal)


def in_turn(name: str, ways: Mapping[str, Timing], rounds: int) -> list[float]:
    """Median seconds of each way; no more rounds than two once they have taken a minute together."""
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    started = time.monotonic()
    for number in range(1, rounds + 1):
        for way, timing in ways.items():
            seconds[way].append(timing())
        told = ", ".join(f"{way} {taken[-1]:.3f} s" for way, taken in seconds.items())
        say(f"  {name}, round {number} of {rounds}: {told}")
        if number >= _FEWEST_ROUNDS and number < rounds and time.monotonic() - started > _ENOUGH_SECONDS:
            say(f"  {name}: no more rounds, the machine is slow")
            break
    return [median(taken) for taken in seconds.values()]


def expect(what: str, found: object, wanted: object) -> None:
    """Raise WrongAnswer unless ``found`` is what was filled in."""
    if found != wanted:
        raise WrongAnswer(f"{what}: found {found}, but {wanted} were filled in")


_STARTED = time.monotonic()


def say(line: str) -> None:
    """Progress, on standard error, with the seconds since the start."""
    sys.stderr.write(f"[{time.monotonic() - _STARTED:5.0f} s] {line}\n")
    sys.stderr.flush()
