"""End the ``offramp`` command, for every verb: a wrong call, Ctrl-C, a reader that closed the output."""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from typer.exceptions import Abort, TyperException

from kit.terminal.terminal import say
from kit.text.visible import visible

INTERRUPTED = 130
CLOSED = 141
"""The exit code of a process that SIGPIPE ended, as ``| head`` ends other programs."""


def exit_code(run: Callable[[], object]) -> int:
    """Run the command line; → its exit code. Exceptions of a bug in offramp pass through."""
    outputs = [_Output(stream) for stream in (sys.stdout, sys.stderr)]
    code = _code(run)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Only clean-up follows.
    is_read = [output.is_flushed() for output in outputs]
    return code if all(is_read) or code not in (0, 1) else CLOSED


def _code(run: Callable[[], object]) -> int:
    try:
        ended = run()
    except TyperException as error:
        return _wrong_call(error)
    except SystemExit as error:  # Typer raises it if no process reads the output.
        ended = error.code
        return ended if isinstance(ended, int) else 0  # The code that raised it has printed why.
    except (KeyboardInterrupt, Abort):
        ended = INTERRUPTED
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        say(f"offramp: the output can't be written: {error.strerror}")
        ended = 1
    if ended == INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        say("offramp: interrupted")
    return ended if isinstance(ended, int) else 0


def _wrong_call(error: TyperException) -> int:
    """Print what is wrong, with hidden characters escaped; a verb without any argument prints its help instead."""
    context = getattr(error, "ctx", None)
    if context is None or error.message != context.get_help():
        error.message = visible(error.message)
    with suppress(BrokenPipeError):
        error.show()  # type: ignore[attr-defined]  # all of them are Click's
    return int(error.exit_code)


class _Output:
    """Standard output or error. Rich redirects a closed one to nowhere, so this keeps a copy of the original."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._file = os.dup(stream.fileno())

    def is_flushed(self) -> bool:
        """Return whether it still has a reader. If not, the rest of the output is dropped, without a traceback."""
        try:
            self._stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
        poll = select.poll()
        poll.register(self._file, 0)
        return not any(event & select.POLLERR for _, event in poll.poll(0))
