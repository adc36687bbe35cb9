"""The ``offramp`` command, from its first moment: loading the verbs takes a second, in which Ctrl-C is no traceback."""

from __future__ import annotations

import gc
import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
_READING = "kit.cli.groups"
"""The module of verbs after which the process ends at once: their connections are closed and their output is
flushed. To end the interpreter in order would cost 50 ms.
"""
_OBJECTS = 1_000_000
"""The number of new objects that starts the garbage collector: what is loaded at the start stays, and a scan costs 30
ms.
"""


def main() -> None:
    """Load the verbs and run one."""
    _open_streams()
    signal.signal(signal.SIGINT, _leave)
    gc.set_threshold(_OBJECTS)
    from kit.cli.main import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run()
    except SystemExit as ended:
        if _READING in sys.modules and "pyspark" not in sys.modules and isinstance(ended.code, int):
            os._exit(ended.code)
        raise


def _open_streams() -> None:
    """Open the standard streams that the caller closed: the next file opened would get their number, and the output
    of this process.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - as long as the process


def _leave(number: int, frame: FrameType | None) -> None:
    """At once: modules are half loaded, nothing was opened yet."""
    os.write(sys.stderr.fileno(), b"offramp: interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
