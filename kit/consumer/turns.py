"""One thread at a time, in the order in which they come.

confluent-kafka's consumer has a lock of its own. A thread that polls in a loop takes it again before a waiting thread
has noticed that it was free. A call from another thread would wait until the polling ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")


class Turns:
    """A fair lock: threads get it in the order of their requests. Its owner can take it again."""

    def __init__(self) -> None:
        self._entry = threading.Lock()
        self._room = threading.Lock()
        self._owner: int | None = None
        self._depth = 0

    def __enter__(self) -> None:
        if self._owner != threading.get_ident():
            # A waiting thread keeps the entry locked, so later threads queue behind it.
            with self._entry:
                self._room.acquire()
            self._owner = threading.get_ident()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._owner = None
            self._room.release()


class _HasTurns(Protocol):
    _turns: Turns


Owner = TypeVar("Owner", bound=_HasTurns)


def in_turn(method: Callable[Concatenate[Owner, P], Result]) -> Callable[Concatenate[Owner, P], Result]:
    """Run a method while its object's ``_turns`` is held."""

    @wraps(method)
    def called(self: Any, /, *arguments: P.args, **named: P.kwargs) -> Result:
        with self._turns:
            return method(self, *arguments, **named)

    return called
