"""Reads what a command writes and keeps its beginning and its end: a program of its own, which imports nothing of ours.

A command that prints without end fills no disk, and one whose operator was killed continues: this process outlives both
and takes what is written for as long as any process writes. Arguments: a socket, on which one byte asks for what is
kept, then the pipes. The answer: for each pipe its numbers of bytes and lines, what of it follows, and that.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys

HEAD_BYTES, TAIL_BYTES = 8 * 1024, 64 * 1024
_AT_ONCE = 1 << 16
_IN_A_PIPE = 1 << 20
"""The largest content of a pipe: of a writer that continues, this much more is read before the answer."""


class Kept:
    """The kept part of one pipe."""

    def __init__(self, pipe: int) -> None:
        self.pipe, self.n_bytes, self.n_lines, self.is_open = pipe, 0, 0, True
        self.head, self.tail = bytearray(), bytearray()

    def take(self) -> bool:
        """Read once; whether there may be more already."""
        try:
            data = os.read(self.pipe, _AT_ONCE)
        except BlockingIOError:
            return False
        self.is_open = bool(data)
        self.n_bytes += len(data)
        self.n_lines += data.count(b"\n")
        room = HEAD_BYTES - len(self.head)
        self.head += data[:room]
        self.tail += data[room:]
        del self.tail[:-TAIL_BYTES]
        return self.is_open

    def to_bytes(self) -> bytes:
        until = self.n_bytes + _IN_A_PIPE
        while self.n_bytes < until and self.take():
            pass
        head = f"{self.n_bytes} {self.n_lines} {len(self.head)} {len(self.tail)}\n"
        return head.encode() + self.head + self.tail


def relay(asked: socket.socket, pipes: list[Kept]) -> None:
    with selectors.DefaultSelector() as ready:
        ready.register(asked, selectors.EVENT_READ)
        for kept in pipes:
            os.set_blocking(kept.pipe, False)
            ready.register(kept.pipe, selectors.EVENT_READ, kept)
        while ready.get_map():
            for key, _ in ready.select():
                if key.data is None:
                    ready.unregister(asked)
                    _answer(asked, pipes)
                elif not key.data.take() and not key.data.is_open:
                    ready.unregister(key.data.pipe)


def _answer(asked: socket.socket, pipes: list[Kept]) -> None:
    """Whoever asked may be gone."""
    with asked:
        try:
            if asked.recv(1):
                asked.sendall(b"".join(kept.to_bytes() for kept in pipes))
        except OSError:
            pass


if __name__ == "__main__":
    if os.fork():  # A child of no process, so that no process has to wait for it.
        os._exit(0)
    where, *those = map(int, sys.argv[1:])
    relay(socket.socket(fileno=where), [Kept(pipe) for pipe in those])
