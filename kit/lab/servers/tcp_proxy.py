"""A proxy between a client and a server: it stops bytes while connections stay open (a network cut), or delays them."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from types import TracebackType
from typing import TypeAlias

CHUNK = 65_536

Held: TypeAlias = "queue.SimpleQueue[tuple[float, bytes]]"
"""Bytes on their way, in order, and when they are due; empty bytes are the end."""


class TcpProxy:
    """Forwards TCP connections to ``host:port``; clients connect to ``address``.

    ``delay_s``: how much later what a client sends reaches the server; answers are not delayed.
    """

    def __init__(self, server: str) -> None:
        host, _, port = server.rpartition(":")
        self._server = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.delay_s = 0.0
        self._passes = threading.Event()
        self._passes.set()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, name="tcp proxy", daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        self._passes.clear()

    def mend(self) -> None:
        """Restore the connection: what was sent meanwhile arrives now."""
        self._passes.set()

    def close(self) -> None:
        for each in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._passes.set()

    def __enter__(self) -> TcpProxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._server)
            except OSError:  # The server is down: its clients try again, and so must this.
                near.close()
                continue
            self._sockets += [near, far]
            self._start(near, far, is_request=True)
            self._start(far, near, is_request=False)

    def _start(self, source: socket.socket, sink: socket.socket, is_request: bool) -> None:
        held: Held = queue.SimpleQueue()
        for target, arguments in ((self._receive, (source, held, is_request)), (self._send, (held, source, sink))):
            threading.Thread(target=target, args=arguments, name="tcp proxy", daemon=True).start()

    def _receive(self, source: socket.socket, held: Held, is_request: bool) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(CHUNK):
                held.put((time.monotonic() + self.delay_s * is_request, chunk))
        held.put((0.0, b""))

    def _send(self, held: Held, source: socket.socket, sink: socket.socket) -> None:
        """Until either end closes; then both do."""
        with contextlib.suppress(OSError):
            while True:
                due, chunk = held.get()
                if not chunk:
                    break
                time.sleep(max(0.0, due - time.monotonic()))
                self._passes.wait()
                sink.sendall(chunk)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
