"""Wait for a value; a failure shows each value that came before, and when."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from kit.errors import LabError
from kit.lab.process import wait_until

Value = TypeVar("Value")

SECONDS = 120.0
"""A busy machine takes its time to start a process, and to rebalance a group."""
_SHOWN = 20


def awaited(
    read: Callable[[], Value], is_right: Callable[[Value], object], what: str, seconds: float = SECONDS
) -> Value:
    """Read until the value is right, and return that value.

    Raises:
        LabError: no value was right; the message has the last values, and the second at which each came.
    """
    began, seen = time.monotonic(), list[tuple[float, Value]]()

    def is_there() -> bool:
        value = read()
        if not seen or seen[-1][1] != value:
            seen.append((time.monotonic() - began, value))
        return bool(is_right(value))

    try:
        wait_until(is_there, what, seconds)
    except LabError as error:
        shown = "".join(f"\n{at:7.1f} s: {value}" for at, value in seen[-_SHOWN:])
        raise LabError(f"{error}{shown}") from None
    return seen[-1][1]
