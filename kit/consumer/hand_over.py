"""NodeOperator records over to the reader of the output, and knows which records were taken.

A record is taken once it was written in full; if the output is a pipe, once its reader has read it. A record that is
still in the pipe is lost when the reader dies, so it does not count.
"""

from __future__ import annotations

import array
import base64
import fcntl
import json
import os
import select
import stat
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from confluent_kafka import Message

from kit.errors import HandOverError, InputError, OfframpError, OutputClosed

_AGAIN = "repair the cause, then start offramp consume again: no record is lost"
PIPE_BYTES = 4096
"""One page: poll(2) reports such a pipe as writable exactly when its reader has read everything."""
LOOK_SECONDS, LOOK_AGAIN_SECONDS = 0.1, 0.001
GRACE_SECONDS = 2.0
"""Seconds in which the reader may read the last record at the end."""


def as_text(message: Message) -> bytes:
    """The value and a newline, as Kafka's console consumer writes it."""
    return (message.value() or b"") + b"\n"


def as_json(message: Message) -> bytes:
    """One object per line; a key or value that is no UTF-8 becomes ``{"base64": …}``."""
    fields = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp_ms": message.timestamp()[1],
        "key": _readable(message.key()),
        "value": _readable(message.value()),
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _readable(data: bytes | str | None) -> Any:
    if not isinstance(data, bytes):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


class _Output:
    """The output of records, written without a buffer: a record in a buffer is not delivered."""

    def __init__(self, output: IO[bytes]) -> None:
        self._kept_open = output
        self._fd = output.fileno()
        self._is_pipe = stat.S_ISFIFO(os.fstat(self._fd).st_mode)
        self._ready = select.poll()
        if self._is_pipe:
            self._ready.register(self._fd, select.POLLOUT)
            self._narrow()

    def put(self, data: bytes, is_over: Callable[[], bool]) -> bool:
        """Write one record. False: ``is_over`` became true before it was taken. Raises OSError if a write fails."""
        if not self._is_pipe:
            while data:
                data = data[os.write(self._fd, data) :]
            return True
        if self._n_unread() and not self._await_read(is_over):
            return False
        for start in range(0, len(data), PIPE_BYTES):
            os.write(self._fd, data[start : start + PIPE_BYTES])
            if not self._await_read(is_over):
                return False
        return True

    def _narrow(self) -> None:
        """Make the pipe one page small. If the system can't, ``_await_read`` polls."""
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            try:
                fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            except OSError:
                return

    def _await_read(self, is_over: Callable[[], bool]) -> bool:
        while True:
            events = self._ready.poll(LOOK_SECONDS * 1000)
            if not self._n_unread():
                return True
            if any(event & select.POLLERR for _, event in events):
                raise BrokenPipeError("the reader closed the output")
            if is_over():
                return False
            if events:
                time.sleep(LOOK_AGAIN_SECONDS)

    def _n_unread(self) -> int:
        n_bytes = array.array("i", [0])
        fcntl.ioctl(self._fd, termios.FIONREAD, n_bytes)
        return n_bytes[0]


class HandOver:
    """Writes records out, from any thread; ``consumption`` gets a line per record that was taken.

    ``ended`` is set by the limit, by :meth:`end` and by :meth:`fail`; nothing is taken after it. ``n_taken`` counts.

    Raises:
        InputError: ``consumption`` can't be opened.
    """

    def __init__(
        self,
        output: IO[bytes],
        formatted: Callable[[Message], bytes],
        consumption: Path | None,
        limit: int = 0,
    ) -> None:
        self._output = _Output(output)
        self._formatted = formatted
        self._consumption = consumption
        self._lines: IO[bytes] | None = opened(consumption) if consumption else None
        self._limit = limit
        self._lock = threading.Lock()
        self._last = time.monotonic()
        self._ends_at: float | None = None
        self.n_taken = 0
        self.ended = threading.Event()
        self.error: OfframpError | None = None

    def take(self, message: Message, consumer: str) -> bool:
        """Hand one record over. False: it was not taken and must not count; no later record is taken."""
        with self._lock:
            if self.ended.is_set():
                return False
            try:
                if not self._output.put(self._formatted(message), self._is_over):
                    return False
            except BrokenPipeError:
                self.fail(OutputClosed(f"the reader of the output closed it ({self._count_text()})"))
                return False
            except OSError as error:
                self.fail(
                    HandOverError(
                        f"no record can be written to the output: {error.strerror} ({self._count_text()}); {_AGAIN}"
                    )
                )
                return False
            return self._note(message, consumer) and self._count()

    def end(self) -> None:
        """Take no more records; the one that is being delivered has ``GRACE_SECONDS`` left."""
        self._ends_at = time.monotonic() + GRACE_SECONDS
        self.ended.set()

    def fail(self, error: OfframpError) -> None:
        """End like :meth:`end`, without the grace; keep the first error."""
        self.error = self.error or error
        self.ended.set()

    def settle(self) -> None:
        """After the end: wait for the record that is being delivered."""
        if self._lock.acquire(timeout=2 * GRACE_SECONDS):
            self._lock.release()

    @property
    def seconds_idle(self) -> float:
        """Seconds since the last record was taken, or since the start."""
        return time.monotonic() - self._last

    def _is_over(self) -> bool:
        return self.error is not None or (self._ends_at is not None and time.monotonic() > self._ends_at)

    def _count_text(self) -> str:
        return f"{self.n_taken} were delivered; later records are not committed"

    def _note(self, message: Message, consumer: str) -> bool:
        """Note the record. False: it can't be noted and counts as not taken, so that the file stays complete."""
        if self._lines is None:
            return True
        fields = {
            "at_ms": time.time_ns() // 1_000_000,
            "consumer": consumer,
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
        }
        try:
            _append(self._lines, json.dumps(fields).encode() + b"\n")
        except OSError as error:
            self.fail(
                HandOverError(
                    f"{self._consumption} can't be written: {error.strerror} ({self._count_text()}); {_AGAIN}"
                )
            )
            return False
        return True

    def _count(self) -> bool:
        self.n_taken += 1
        self._last = time.monotonic()
        if self.n_taken == self._limit:
            self.end()
        return True


class Events:
    """Events of a consumer, one line each: ``epoch-ms consumer EVENT details``.

    ``failed`` is called once when a line can't be written. A listener that raised would keep its partitions and read no
    record.
    """

    def __init__(self, output: IO[Any], failed: Callable[[OfframpError], None]) -> None:
        self._output = output
        self._failed: Callable[[OfframpError], None] | None = failed
        self._lock = threading.Lock()

    def say(self, consumer: str, event: str, details: object = None) -> None:
        text = "" if details is None else f" {json.dumps(details) if not isinstance(details, str) else details}"
        with self._lock:
            if self._failed is None:
                return
            try:
                os.write(self._output.fileno(), f"{time.time_ns() // 1_000_000} {consumer} {event}{text}\n".encode())
            except OSError as error:
                failed, self._failed = self._failed, None
                failed(
                    HandOverError(
                        f"{self._output.name} can't be written, so rebalances can't be recorded: "
                        f"{error.strerror}; {_AGAIN}"
                    )
                )


def opened(file: Path) -> IO[bytes]:
    """Open a file to append to, without a buffer. Raises InputError if it can't be opened."""
    try:
        return file.open("ab", buffering=0)
    except OSError as error:
        raise InputError(f"{file} can't be written: {error.strerror}") from None


def _append(lines: IO[bytes], line: bytes) -> None:
    """Append the whole line or nothing. Raises OSError."""
    written = lines.write(line)
    if written < len(line):
        os.ftruncate(lines.fileno(), os.fstat(lines.fileno()).st_size - written)
        raise OSError(28, "No space left on device")
