"""``offramp`` from its first moment: Ctrl-C while the library is loaded, a second or so, is one line, no traceback."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module


def main() -> None:
    """Entry point of the ``offramp`` command."""
    signal.signal(signal.SIGINT, _gone)
    run = import_module("kit.cli").main
    signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _gone(number: int, frame: object) -> None:
    sys.stderr.write("offramp: interrupted before it did anything\n")
    sys.stderr.flush()
    os._exit(128 + number)
