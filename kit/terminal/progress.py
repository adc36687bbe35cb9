"""A line on standard error for what takes longer than two seconds, on a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from kit.text.visible import visible

_PATIENCE_S, _EVERY_S = 2.0, 1.0


class _Line:
    """The terminal's last line, while it reports what continues. A signal handler may print in the midst of a write."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._is_shown = False

    def show(self, text: str) -> None:
        with self._lock:
            self._is_shown = True
            self._write(f"\r{text}")

    def clear(self) -> None:
        with self._lock:
            if self._is_shown:
                self._is_shown = False
                self._write("\r\x1b[K")

    @staticmethod
    def _write(text: str) -> None:
        with suppress(OSError):
            sys.stderr.write(text)
            sys.stderr.flush()


_LINE = _Line()
make_room = _LINE.clear
"""Take the line away, if there is one, for what is printed next; while the wait continues it comes again below."""


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """Say after two seconds, and then every second, what continues and for how long; the line goes in the end.

    The yielded function takes how far it is: ``"cell 3 of 9"``.
    """
    said = [visible(what)]

    def at(place: str) -> None:
        said[0] = f"{visible(what)}, {visible(place)}"

    if not sys.stderr.isatty():
        yield at
        return
    is_over = threading.Event()
    teller = threading.Thread(target=_tell, args=(said, is_over), daemon=True)
    teller.start()
    try:
        yield at
    finally:
        is_over.set()
        teller.join()


def _tell(said: list[str], is_over: threading.Event) -> None:
    started, patience = time.monotonic(), _PATIENCE_S
    while not is_over.wait(patience):
        _LINE.show(f"{said[0]} … {time.monotonic() - started:.0f} s")
        patience = _EVERY_S
    _LINE.clear()
