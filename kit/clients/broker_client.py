"""Requests to brokers over kafka-python's connections: batched, retried from a table, with a deadline.

kafka-python's admin calls raise at the first group or partition that fails. A scan of thousands of groups needs every
answer. So this module sends the requests of the pinned kafka-python and reads their error codes itself.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, TypeVar

from kafka import KafkaAdminClient, errors as kafka_errors
from kafka.future import Future
from kafka.net.compat import KafkaNetClient
from kafka.protocol.metadata import FindCoordinatorRequest

from kit.clients.broker_login import (
    AUTHENTICATION_FAILURES,
    HANG_UPS,
    ControllersOnly,
    NobodyListens,
    ended_in_login,
    had_answered,
    refuses,
    serves_clients,
    unthrottled,
)
from kit.errors import AuthenticationFailed, ConnectError, ReadError

DEADLINE_S = 30.0
"""Seconds without progress for which one read retries; then it reports the errors."""
_FIRST_BACKOFF_S, _LONGEST_BACKOFF_S = 0.1, 2.0
_LOGIN_TIMEOUT_MS = 3_000
IN_FLIGHT = 5
"""Requests to one broker whose answers are awaited at the same time; later requests wait in this client.

A broker answers the requests of one connection one after another, so more requests in flight are not faster.
"""
_PAUSE_S = 0.005
"""Seconds between two checks whether a paused connection takes requests again."""
_CLOSED_IN_LOGIN = "the broker closed the connection during the login"

RETRIABLE_CODES = {
    5: "LEADER_NOT_AVAILABLE",
    6: "NOT_LEADER_OR_FOLLOWER",
    7: "REQUEST_TIMED_OUT",
    9: "REPLICA_NOT_AVAILABLE",
    13: "NETWORK_EXCEPTION",
    14: "COORDINATOR_LOAD_IN_PROGRESS",
    15: "COORDINATOR_NOT_AVAILABLE",
    16: "NOT_COORDINATOR",
    74: "FENCED_LEADER_EPOCH",
    75: "UNKNOWN_LEADER_EPOCH",
    78: "OFFSET_NOT_AVAILABLE",
    88: "UNSTABLE_OFFSET_COMMIT",
}
RETRIABLE_FAILURES = (
    kafka_errors.KafkaConnectionError,
    kafka_errors.NodeNotReadyError,
    kafka_errors.KafkaTimeoutError,
    kafka_errors.RequestTimedOutError,
    kafka_errors.Cancelled,
    kafka_errors.TooManyInFlightRequests,
    kafka_errors.UnknownBrokerIdError,
)

Result = TypeVar("Result")


def describe_code(code: int) -> str:
    """An error code of the protocol as ``NAME (code)``."""
    error = kafka_errors.for_code(code)
    return f"{error.message if hasattr(error, 'message') else error.__name__} ({code})"


_GROUP_AUTHORIZATION_FAILED = 30
_RESOURCES = {29: "topic", _GROUP_AUTHORIZATION_FAILED: "group", 31: "cluster"}
"""…_AUTHORIZATION_FAILED → the resource."""


def describe_refusal(code: int, operation: str) -> str:
    """Return :func:`describe_code`; if the login lacks a right, with this operation of ``AclOperation``."""
    resource = _RESOURCES.get(code)
    return describe_code(code) + (f": the login lacks {operation} on the {resource}" if resource else "")


class Deadline:
    """The time after which nothing is retried: ``seconds`` after the start, or after the last progress.

    A read or write of thousands of groups may take longer than that while all of its requests are answered. Then what
    one broker could not answer in the first round is still asked again.
    """

    def __init__(self, seconds: float = DEADLINE_S) -> None:
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        """Something was answered that was not answered before."""
        self._at = time.monotonic() + self._seconds

    def allows(self, attempt: int) -> bool:
        """Return whether another attempt may be made after the pause that follows this one."""
        return time.monotonic() + backoff_s(attempt) < self._at


def backoff_s(attempt: int) -> float:
    """Seconds to pause after ``attempt`` (0, 1, …): doubling, at most two."""
    return float(min(_FIRST_BACKOFF_S * 2**attempt, _LONGEST_BACKOFF_S))


_NOBODY = {"NodeNotReadyError: No node_id provided": "none of them is connected"}
"""kafka-python's words for it."""


@dataclass
class _Line:
    """The requests to one broker: how many are in flight, and those that wait, oldest first."""

    n_in_flight: int = 0
    waiting: deque[Future] = field(default_factory=deque)


class BrokerClient:
    """Connections to one cluster's brokers; the coroutines below run on kafka-python's network thread.

    Callers send as many requests at once as they like: at most ``IN_FLIGHT`` of them are in flight per broker.
    kafka-python itself refuses a request instead, as if the broker did not answer, where its own limit of requests in
    flight is reached, its send buffer is full, or the broker throttles this client.

    A client over its quota waits for the broker, which reads on when the time is over (KIP-219).
    """

    asks_metadata: ClassVar[bool] = True
    """False: its servers may be controllers, which serve no client and answer no Metadata."""

    def __init__(self, settings: dict[str, Any], timeout_s: float, is_patient: bool = True) -> None:
        """Connect to any of the bootstrap servers with kafka-python's settings.

        A broker that restarts refuses connections for a while: a patient caller waits until the time-out.

        Raises:
            KafkaError: one of ``AUTHENTICATION_FAILURES`` at once; ``ControllersOnly`` soon; ``NobodyListens``
                (at once if not patient) or ``KafkaTimeoutError`` when no broker answered in time. The caller
                writes the message, because it knows the cluster's name.
        """
        servers = settings["bootstrap_servers"]
        self._servers = [servers] if isinstance(servers, str) else servers
        self._login_ms = min(_LOGIN_TIMEOUT_MS, int(timeout_s * 1000))
        # Requests to a named broker, to any broker, and kafka-python's own for metadata share a connection.
        limit = {"max_in_flight_requests_per_connection": 4 * IN_FLIGHT}
        client = KafkaNetClient(**(KafkaAdminClient.DEFAULT_CONFIG | limit | settings))
        self._manager = client._manager
        self._net = client._net
        self._manager.get_connection = partial(unthrottled, self._manager.get_connection)
        self.n_sent = 0
        """Requests so far, for who shows what an observation costs."""
        self._lines = defaultdict[Any, _Line](_Line)
        self._hung_up: list[Any] = []
        """Connections, since the last answer, that a server closed during the login."""
        self._net.start()
        try:
            self._manager.run(self._login, Deadline(timeout_s), is_patient)
            self._manager.run(self._bootstrap, int(timeout_s * 1000))
        except BaseException:
            self.close()
            raise

    async def _login(self, deadline: Deadline, is_patient: bool) -> None:
        """Wait until one bootstrap server accepts the login.

        kafka-python's own bootstrap continues after a refused login until its time-out, and may wait for ever for a
        connection that the broker closed meanwhile. It also drops a broker's answer if the connection is closed
        already, and a broker closes it right after a refusal. So a server that closes the connection during each login
        refuses it.
        """
        attempt = 0
        while True:
            failures = []
            for broker in self._manager.cluster.bootstrap_brokers():
                failure = await self._try_login(broker)
                if failure is None:
                    return
                failures.append(failure)
            if all(isinstance(failure, ControllersOnly) for failure in failures):
                raise failures[0]
            hung_up = [failure for failure in failures if isinstance(failure, AUTHENTICATION_FAILURES)]
            is_last = not deadline.allows(attempt)
            if hung_up and (is_last or attempt >= HANG_UPS):
                raise hung_up[0]
            if (is_last or not is_patient) and all(map(refuses, self._servers)):
                raise NobodyListens
            if is_last:
                raise kafka_errors.KafkaTimeoutError("; ".join(sorted({str(failure) for failure in failures})))
            await self.pause(attempt)
            attempt += 1

    async def _try_login(self, broker: Any) -> kafka_errors.KafkaError | None:
        """Return why this server can't be used; None: it can. Raises when the login was refused."""
        connection = None
        try:
            connection = self._manager.get_connection(
                broker.node_id, pop_on_close=False, refresh_metadata_on_err=False, reset_backoff_on_connect=False
            )
            await self._manager.wait_for(connection.init_future, self._login_ms)
            if self.asks_metadata and not serves_clients(connection):
                return ControllersOnly(f"{broker.host}:{broker.port}")
        except AUTHENTICATION_FAILURES:
            raise
        except kafka_errors.KafkaError as error:
            is_hung_up = isinstance(error, kafka_errors.KafkaConnectionError)
            if connection is not None and is_hung_up and connection.sasl_enabled and had_answered(connection):
                return kafka_errors.SaslAuthenticationFailedError(_CLOSED_IN_LOGIN)
            return error
        finally:
            if connection is not None:
                self._manager._conns.pop(broker.node_id, connection).close()
        return None

    async def _bootstrap(self, timeout_ms: int) -> None:
        await self._manager.wait_for(self._manager.bootstrap_async(timeout_ms), timeout_ms + self._login_ms)

    def close(self) -> None:
        self._manager.close()
        self._net.stop()

    def run(self, coroutine: Callable[..., Coroutine[Any, Any, Result]], *arguments: Any) -> Result:
        """Run a coroutine to its end, from any thread.

        Raises:
            ConnectError: the brokers stopped answering.
            AuthenticationFailed: they refused a login that they accepted before.
            ReadError: they refused a request, or sent an answer that can't be parsed.
        """
        try:
            result: Result = self._manager.run(coroutine, *arguments)
        except RETRIABLE_FAILURES as error:
            raise ConnectError(
                f"the brokers stopped answering, {', '.join(self._servers)} too: {_NOBODY.get(str(error), error)}. "
                "Check whether they run, then run the command again"
            ) from error
        except (kafka_errors.SaslAuthenticationFailedError, kafka_errors.UnsupportedSaslMechanismError) as error:
            raise AuthenticationFailed(
                f"the brokers refused a login that they accepted before ({error}). Check that the user, the token or "
                "the principal is still valid: offramp connect"
            ) from error
        except kafka_errors.KafkaError as error:
            raise ReadError(f"the brokers refused, or sent an answer that can't be parsed: {error}") from error
        return result

    async def gather(self, coroutines: Sequence[Callable[[], Coroutine[Any, Any, Result]]]) -> list[Result]:
        """Run coroutines side by side; → their results."""
        futures = [self._manager.call_soon(coroutine) for coroutine in coroutines]
        return [await future for future in futures]

    def send(self, request: Any, broker_id: int | None = None) -> Awaitable[Any]:
        """Send one request to this broker, or to any, as soon as its turn comes; → a future of its answer."""
        self.n_sent += 1
        answer: Awaitable[Any] = self._manager.call_soon(partial(self._send_in_turn, request, broker_id))
        return answer

    async def _send_in_turn(self, request: Any, broker_id: int | None) -> Any:
        """Return the answer. Raise a ``KafkaError``, also if the broker is not in the metadata."""
        line = self._lines[broker_id]
        if line.n_in_flight < IN_FLIGHT:
            line.n_in_flight += 1
        else:
            turn = Future()
            line.waiting.append(turn)
            await turn  # The request that ends leaves its place to this one.
        try:
            if self.asks_metadata and broker_id is not None and broker_id not in self.broker_ids():
                await self.refresh_metadata()  # It joined, or came back, since the metadata were read.
            return await self._send_to(await self._ready_node(broker_id), request)
        finally:
            if line.waiting:
                line.waiting.popleft().success(None)
            else:
                line.n_in_flight -= 1

    async def _send_to(self, node: Any, request: Any) -> Any:
        """Return the answer. A server that closes the connection during each login refuses it, as in ``_login``."""
        connection = self._manager.get_connection(node)
        try:
            answer = await connection.send_request(request)
        except kafka_errors.KafkaConnectionError:
            if ended_in_login(connection) and connection not in self._hung_up:
                self._hung_up.append(connection)
            if len(self._hung_up) > HANG_UPS:
                raise kafka_errors.SaslAuthenticationFailedError(_CLOSED_IN_LOGIN) from None
            raise
        self._hung_up.clear()
        return answer

    async def _ready_node(self, broker_id: int | None) -> Any:
        """Wait while kafka-python has paused the connection; → the node to send to, None: none can be used."""
        while True:
            connections = self._manager._conns
            node = self._manager.least_loaded_node() if broker_id is None else broker_id
            if node is None:
                is_paused = any(each.connected and each.paused for each in connections.values())
            else:
                is_paused = node in connections and connections[node].connected and bool(connections[node].paused)
            if not is_paused:
                return node
            await self._net.sleep(_PAUSE_S)

    async def ask(self, request: Any, broker_id: int | None, deadline: Deadline) -> Any:
        """Send one request; send it again after a connection failure, until the deadline."""
        attempt = 0
        while True:
            try:
                return await self.send(request, broker_id)
            except RETRIABLE_FAILURES:
                if not deadline.allows(attempt):
                    raise
                await self.pause(attempt)
                attempt += 1

    async def send_within(self, request: Any, broker_id: int | None, seconds: float) -> Any:
        """Send one request; raise ``KafkaTimeoutError``, one of ``RETRIABLE_FAILURES``, if the answer takes longer."""
        return await self._manager.wait_for(self.send(request, broker_id), int(seconds * 1000))

    def start(self, coroutine: Callable[[], Coroutine[Any, Any, Result]]) -> Awaitable[Result]:
        """Let a coroutine run beside others; → a future of its result."""
        future: Awaitable[Result] = self._manager.call_soon(coroutine)
        return future

    async def sleep(self, seconds: float) -> None:
        await self._net.sleep(seconds)

    async def pause(self, attempt: int) -> None:
        await self._net.sleep(backoff_s(attempt))

    async def refresh_metadata(self) -> None:
        """Read the metadata again, so that requests reach brokers that joined."""
        await self._manager.cluster.refresh_metadata()

    def connected_ids(self) -> list[int]:
        """Brokers to which a connection is open now: the next request goes over one of these connections."""
        connections = dict(self._manager._conns).items()
        return sorted(broker_id for broker_id, each in connections if isinstance(broker_id, int) and each.connected)

    def broker_ids(self) -> list[int]:
        return sorted(broker.node_id for broker in self._manager.cluster.brokers())

    def supports(self, request: Any, version: int) -> bool:
        """Return whether the brokers support at least that version of a request."""
        return bool(self._manager.broker_version_data.api_version(request) >= version)

    async def find_coordinators(self, group_ids: list[str], deadline: Deadline) -> dict[str, int]:
        """Group → id of its coordinator. Groups without a coordinator at the moment are left out.

        For a group that the login may not DESCRIBE it is any broker: each broker refuses such a group by that error.
        """
        found = dict[str, Any]()
        if self.supports(FindCoordinatorRequest, 4):
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=group_ids, min_version=4)
            found |= {each.key: each for each in (await self.ask(request, None, deadline)).coordinators}
        else:
            for group_id in group_ids:
                request = FindCoordinatorRequest(key=group_id, key_type=0, max_version=3)
                found[group_id] = await self.ask(request, None, deadline)
        return {
            group_id: self.broker_ids()[0] if each.error_code else each.node_id
            for group_id, each in found.items()
            if each.error_code in (0, _GROUP_AUTHORIZATION_FAILED)
        }
