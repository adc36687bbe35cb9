"""Servers of a rehearsal of the move to KRaft: a ZooKeeper with given znodes, real controllers, ghosts of brokers."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from kazoo.exceptions import KazooException, RolledBackError

from kit.errors import LabError
from kit.kraft.read.control_znodes import fetch_control
from kit.lab.process import ProcessSupervisor
from kit.lab.servers.ghosts import Ghosts
from kit.lab.servers.migrating import Controller, connected
from kit.lab.servers.migrating_cluster import MigratingServers

CONTROLLERS = 3
_PER_TRANSACTION, _OCTETS, _IN_FLIGHT = 500, 400_000, 8
_ABORT, _ABORTED_BY = "Aborting the ZK migration", "Aborting the metadata migration"
_EXCEPTION = re.compile(r"^(?:Caused by: )?([\w.$]+(?:Exception|Error)\b.*)$", re.MULTILINE)
_READING = re.compile(r"Error in [^\n]*? was [^\n]*")
_WAITING = re.compile(
    r"No brokers are (?:known|registered)[^\n]*|Still waiting for [^\n]*|[^\n]*ZooKeeper authentication[^\n]*"
)
_QUIET = {"broker.session.timeout.ms": "60000", "metadata.log.max.snapshot.interval.ms": "3600000"}
_OWN_SPACE_MB = 300


class Stage(Enum):
    """The place where controllers stop; the value begins a sentence."""

    BEFORE_THE_COPY = "The copy does not begin"
    COPY = "The copy aborts"
    BEFORE_DUAL_WRITE = "Dual write does not begin"


_STUCK = {
    Stage.BEFORE_THE_COPY: "Unhandled error in WaitForZkBrokersEvent",
    Stage.BEFORE_DUAL_WRITE: "Encountered ZooKeeper error during event SyncKRaftMetadataEvent",
}
"""The line that controllers log repeatedly while they stay there."""


@dataclass(frozen=True)
class Abort:
    """The reason why controllers gave up the copy, by the log of the one that led: its words, and the whole stack
    below them.
    """

    words: str
    stack: str
    stage: Stage = Stage.COPY

    @property
    def kind(self) -> str:
        """``aborts``; ``waits`` where controllers run on, and repeat the attempt without end."""
        return "aborts" if self.stage is Stage.COPY else "waits"


class RehearsalServers:
    """Started step by step: ``start_zookeeper``, ``write``, ``add_ghosts``, ``start_controllers``, ``register_ghosts``.

    ``close`` ends all of it.

    ``n_znodes`` gives the sizes of the heaps. Raises LabError where a process does not start.
    """

    def __init__(self, chroot: str, n_znodes: int, controllers: int = CONTROLLERS) -> None:
        self.supervisor = ProcessSupervisor()
        try:
            self._refuse_full_disk(n_znodes)
            self._servers = MigratingServers(self.supervisor, 0, controllers, (), chroot)
        except BaseException:
            self.supervisor.close()
            raise
        self._chroot = chroot
        self._servers.quorum.controllers_zookeeper_connect = self.zookeeper_connect
        self._servers.zookeeper.heap_mb += n_znodes // 400
        for controller in self.controllers:
            controller.heap_mb = 192 + n_znodes // 400
            controller.added = dict(_QUIET)
        self._ghosts: Ghosts | None = None
        self._read: dict[str, int] = {}

    def _refuse_full_disk(self, n_znodes: int) -> None:
        needed = _OWN_SPACE_MB + n_znodes // 200
        free = shutil.disk_usage(self.supervisor.folder).free // 2**20
        if free < needed:
            raise LabError(
                f"The rehearsal needs about {needed:,} MB in {self.supervisor.folder.parent}; {free:,} MB are free. "
                "Free more space, or set TMPDIR to a folder on another disk."
            )

    @property
    def controllers(self) -> Sequence[Controller]:
        return self._servers.controllers

    @property
    def zookeeper_connect(self) -> str:
        """``host:port`` with the chroot."""
        return self._servers.zookeeper_connect

    @property
    def controller_addresses(self) -> str:
        return self._servers.controller_addresses

    def start_zookeeper(self) -> None:
        self._servers.zookeeper.start()

    def write(self, znodes: Iterable[tuple[str, bytes]]) -> None:
        """Make these znodes below the chroot, each after the one above it; raises LabError."""
        with connected(self._servers.zookeeper.connect) as client:
            if self._chroot:
                client.ensure_path(self._chroot)
            under_way = []
            for some in _portions(znodes):
                transaction = client.transaction()
                for path, data in some:
                    transaction.create(self._chroot + path, data)
                under_way.append(transaction.commit_async())
                if len(under_way) == _IN_FLIGHT:
                    _check(under_way.pop(0).get(60))
            for each in under_way:
                _check(each.get(60))

    def start_controllers(self) -> None:
        """Format what is new, and start all at once."""
        for controller in self.controllers:
            controller.launch()
        for controller in self.controllers:
            controller.await_started()

    def add_ghosts(self, broker_ids: Sequence[int], controlling: int | None, cluster_id: str) -> None:
        """Hold their znodes, before controllers start. ``register_ghosts`` then lets the copy begin."""
        self._ghosts = Ghosts(broker_ids, controlling, cluster_id, self.zookeeper_connect, self.controller_addresses)
        self._ghosts.enter_zookeeper()

    def register_ghosts(self) -> None:
        assert self._ghosts is not None
        self._ghosts.register()

    def abort(self) -> Abort | None:
        """Return why a controller gave up the copy since the last start of all; None: none did."""
        for controller in self.controllers:
            has_ended = controller.process is None or not controller.process.running
            if has_ended and _ABORT in (text := self._log(controller)):
                return cause(text)
        ended = [each.name for each in self.controllers if each.process is None or not each.process.running]
        if len(ended) == len(self.controllers):
            process = self.controllers[0].process
            return Abort(f"{', '.join(ended)} ended", process.last_lines() if process else "")
        return None

    def stuck(self) -> Abort | None:
        """Return the repeated failure of a controller that lives; None: there is none."""
        return next(filter(None, (stuck_in(self._log(controller)) for controller in self.controllers)), None)

    def waiting_for(self) -> str:
        """The last line in which a controller reports what it waits for; empty: none reports it."""
        reasons = [line for each in self.controllers for line in _WAITING.findall(self._log(each))]
        return reasons[-1].strip() if reasons else ""

    def log_line(self, part: str) -> str | None:
        """The last line of a controller's log that has ``part``."""
        lines = [line for each in self.controllers for line in self._log(each).splitlines() if part in line]
        return lines[-1] if lines else None

    def _log(self, controller: Controller) -> str:
        """A controller's log since the last ``restart``."""
        if controller.process is None:
            return ""
        with controller.process.log.open("rb") as log:
            log.seek(self._read.get(controller.name, 0))
            return log.read().decode(errors="replace")

    def restart(self) -> None:
        """Start all controllers again, on the logs that they have."""
        for controller in self.controllers:
            if controller.process is not None and controller.process.running:
                controller.process.kill()
        self.forget_logs()
        self.start_controllers()

    def forget_logs(self) -> None:
        """Forget the controllers' lines up to now: they are not examined again."""
        for controller in self.controllers:
            if controller.process is not None:
                self._read[controller.name] = controller.process.log.stat().st_size

    def delete(self, path: str) -> None:
        """Take a znode out, with all below it."""
        with connected(self.zookeeper_connect) as client:
            client.delete(path, recursive=True)

    def kill_active(self) -> int:
        """kill -9 of the controller that leads; one that is alone is started again. Returns its id."""
        with connected(self.zookeeper_connect) as client:
            active = fetch_control(client).controller_id
        self.forget_logs()
        (controller,) = (each for each in self.controllers if each.broker_id == active)
        assert controller.process is not None
        controller.process.kill()
        if len(self.controllers) == 1:
            controller.launch()
            controller.await_started()
        return controller.broker_id

    def close(self) -> None:
        """End everything and remove the folder."""
        try:
            if self._ghosts is not None:
                self._ghosts.stop()
        finally:
            self.supervisor.close()


def _portions(znodes: Iterable[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    some, octets = list[tuple[str, bytes]](), 0
    for path, data in znodes:
        size = len(path.encode()) + len(data)
        if some and (len(some) == _PER_TRANSACTION or octets + size > _OCTETS):
            yield some
            some, octets = [], 0
        some.append((path, data))
        octets += size
    if some:
        yield some


def _check(results: Sequence[object]) -> None:
    """Refuse a failed transaction: LabError when ZooKeeper refused one."""
    refused = [each for each in results if isinstance(each, KazooException) and not isinstance(each, RolledBackError)]
    if refused:
        raise LabError(f"The lab's ZooKeeper refused saved znodes: {refused[0]!r}")


def stuck_in(log: str) -> Abort | None:
    """Return the repeated failure of a controller that lives, by its log; None: there is none."""
    for stage, words in _STUCK.items():
        if words in log:
            stack = log[log.rindex(words) :]
            return Abort(next(iter(_EXCEPTION.findall(stack)), words), stack, stage)
    return None


def cause(log: str) -> Abort:
    """The innermost exception of the abort, behind what the controller reports it was reading.

    The fatal fault itself has no cause; the line before it has (3.9.1).
    """
    start = log.find(_ABORTED_BY)
    stack = log[max(start, 0) :]
    causes = _EXCEPTION.findall(stack)
    reading = _READING.findall(log)
    words = causes[-1] if causes else _ABORT
    return Abort(f"{reading[-1]}: {words}" if reading else words, stack)
