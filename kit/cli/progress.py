"""A line on standard error for what takes longer than two seconds, if somebody looks."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kit.text.visible import visible

_PATIENCE_S, _EVERY_S = 2.0, 1.0


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say after two seconds, and then every second, what goes on and for how long; the line goes in the end."""
    if not sys.stderr.isatty():
        yield
        return
    is_over = threading.Event()
    teller = threading.Thread(target=_tell, args=(visible(what), is_over), daemon=True)
    teller.start()
    try:
        yield
    finally:
        is_over.set()
        teller.join()


def _tell(what: str, is_over: threading.Event) -> None:
    started, patience = time.monotonic(), _PATIENCE_S
    while not is_over.wait(patience):
        sys.stderr.write(f"\r{what} … {time.monotonic() - started:.0f} s")
        sys.stderr.flush()
        patience = _EVERY_S
    if patience == _EVERY_S:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
