"""A member's ZooKeeper session: a kazoo client, the time-out the server set, and the lease that proves it alive."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from kit.consumer.zookeeper.gate import Gate
from kit.errors import ConnectError

log = logging.getLogger("offramp.consumer")

SAFE_PART = 2 / 3
"""The session is certain for this part of its time-out, from when a request was sent that the leader answered."""
PROOFS_PER_TIMEOUT = 6


class Session:
    """Connects. Calls ``lost`` when a session has ended, ``changed`` when the connection is made or lost.

    Both are called on kazoo's connection thread and must not block.
    """

    def __init__(
        self,
        connect: str,
        timeout_seconds: float,
        gate: Gate,
        lost: Callable[[], None],
        changed: Callable[[], None],
        settings: dict[str, Any],
    ) -> None:
        self.client = KazooClient(connect, timeout=timeout_seconds, **settings)
        self._requested = timeout_seconds
        self._negotiated = timeout_seconds
        self._gate = gate
        self._lost = lost
        self._changed = changed
        self._ended = threading.Event()
        self._learn_timeout()
        self.client.add_listener(self._listen)

    def start(self, timeout_seconds: float) -> None:
        """Connect, and begin to extend the lease. Raises ConnectError when no server answers in time."""
        try:
            self.client.start(timeout=timeout_seconds)
        except (KazooException, KazooTimeoutError) as error:
            self.client.stop()
            self.client.close()
            hosts = ",".join(f"{host}:{port}" for host, port in self.client.hosts)
            raise ConnectError(
                f"ZooKeeper {hosts}: no server answered within {timeout_seconds:g} s ({error})"
            ) from None
        threading.Thread(target=self._prove, name="session lease", daemon=True).start()

    @property
    def current(self) -> int | None:
        """The session's id while there is a connection."""
        client_id = self.client.client_id
        return client_id[0] if client_id and self.client.state == KazooState.CONNECTED else None

    @property
    def is_over(self) -> bool:
        """Without a connection for its whole time-out the session has ended, though no server can report it."""
        return self.current is None and self._gate.lease.seconds_without_session >= self._negotiated * (1 - SAFE_PART)

    def close(self) -> None:
        """End the session: its znodes vanish at once."""
        self._ended.set()
        self.client.stop()
        self.client.close()

    def _learn_timeout(self) -> None:
        """Learn the negotiated time-out, which kazoo does not publish: its read time-out is two thirds of it."""
        connection = self.client._connection
        original = connection._connect

        def connect(*arguments: Any) -> tuple[float, float]:
            read_timeout, connect_timeout = original(*arguments)
            self._negotiated = read_timeout * 1.5 / 1000
            return read_timeout, connect_timeout

        connection._connect = connect

    def _listen(self, state: str) -> None:
        if state == KazooState.LOST:
            self._gate.session_ended()
            self._lost()
        self._changed()

    def _prove(self) -> None:
        """Extend the lease while the leader answers ``sync``: a follower that is cut off could answer a read."""
        while not self._ended.wait(self._negotiated / PROOFS_PER_TIMEOUT):
            session, sent = self.current, self._gate.clock()
            if session is None:
                continue
            try:
                self.client.sync_async("/").get(timeout=self._negotiated / 2)
            except (KazooException, KazooTimeoutError):
                continue
            if session == self.current:
                self._gate.extend(session, sent + self._negotiated * SAFE_PART)

    def prove_now(self) -> None:
        """Extend the lease once, for a session that has just begun; raises what kazoo raises."""
        session, sent = self.current, self._gate.clock()
        self.client.sync_async("/").get(timeout=self._negotiated / 2)
        if session is not None and session == self.current:
            self._gate.extend(session, sent + self._negotiated * SAFE_PART)
