"""A proxy between a client and a server that can stop bytes while connections stay open: a network cut."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType

CHUNK = 65_536


class TcpProxy:
    """Forwards TCP connections to ``host:port``; clients connect to ``address``."""

    def __init__(self, server: str) -> None:
        host, _, port = server.rpartition(":")
        self._server = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
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
        """What was sent meanwhile arrives now."""
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
                far = socket.create_connection(self._server)
            except OSError:
                return
            self._sockets += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._forward, args=(source, sink), name="tcp proxy", daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        """Until either end closes; then both do."""
        with contextlib.suppress(OSError):
            while chunk := source.recv(CHUNK):
                self._passes.wait()
                sink.sendall(chunk)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
