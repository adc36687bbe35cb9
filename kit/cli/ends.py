"""How the ``offramp`` command ends, whatever the verb: a wrong call, Ctrl-C, nobody who reads its output any more."""

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

from kit.cli.terminal import say
from kit.text.visible import visible

INTERRUPTED = 130
CLOSED = 141
"""As of a process that SIGPIPE ended, which is what ``| head`` does to others."""


def exit_code(run: Callable[[], object]) -> int:
    """Run the command line and say what to exit with; the exceptions of a mistake of ours pass through."""
    outputs = [_Output(stream) for stream in (sys.stdout, sys.stderr)]
    code = _code(run)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The rest is tidying up.
    is_read = [output.is_flushed() for output in outputs]
    return code if all(is_read) or code not in (0, 1) else CLOSED


def _code(run: Callable[[], object]) -> int:
    try:
        ended = run()
    except TyperException as error:
        return _wrong_call(error)
    except SystemExit as error:  # Of Typer, where nobody reads the output.
        ended = error.code
        return ended if isinstance(ended, int) else 0  # Who raises it has told why.
    except (KeyboardInterrupt, Abort):
        ended = INTERRUPTED
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        say(f"offramp: what was to be told can't be written: {error.strerror}")
        ended = 1
    if ended == INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with suppress(BrokenPipeError):
            say("offramp: interrupted")
    return ended if isinstance(ended, int) else 0


def _wrong_call(error: TyperException) -> int:
    """What was typed may have come from anywhere; a verb that was called without anything shows its help instead."""
    context = getattr(error, "ctx", None)
    if context is None or error.message != context.get_help():
        error.message = visible(error.message)
    with suppress(BrokenPipeError):
        error.show()  # type: ignore[attr-defined]  # all of them are Click's
    return int(error.exit_code)


class _Output:
    """A stream of ours. Rich turns one that nobody reads away to nowhere, so a copy of what it was is kept."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._file = os.dup(stream.fileno())

    def is_flushed(self) -> bool:
        """Whether somebody still reads it; if not, what is left of it goes nowhere instead of into a traceback."""
        try:
            self._stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
        poll = select.poll()
        poll.register(self._file, 0)
        return not any(event & select.POLLERR for _, event in poll.poll(0))
