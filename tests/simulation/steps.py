"""Define the parts of the simulation: threads that do one atomic step at a time, and what may be wrong after one."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

Condition: TypeAlias = Callable[[], bool]
Steps: TypeAlias = Generator[Condition | None, None, Any]
"""Each ``yield`` ends an atomic step; what is yielded must hold before the next one (None: it may come at once)."""


class Violation(AssertionError):
    """``what`` must hold and doesn't: an invariant (I1 … I5), ``twice``, ``lost``, ``offsets``, ``convergence`` …"""

    def __init__(self, what: str, text: str) -> None:
        super().__init__(f"{what}: {text}")
        self.what = what


class Thread:
    """One thread of a member, or a part of a client library that runs by itself."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._waits_for: Condition | None = None
        self.is_over = False

    @property
    def is_ready(self) -> bool:
        return not self.is_over and (self._waits_for is None or self._waits_for())

    def step(self) -> None:
        try:
            self._waits_for = next(self._steps)
        except StopIteration:
            self.is_over = True
