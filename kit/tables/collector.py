"""Python's garbage collector, off while many rows are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """The collector searches for circles among all objects repeatedly as they grow in number. Rows make none, and
    without it thousands of messages are read in half the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
