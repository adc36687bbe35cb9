"""ZooKeeper, brokers and controllers that move from ZooKeeper to KRaft, phase by phase (KIP-866)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient

from kit.errors import InputError, LabError
from kit.lab import topics
from kit.lab.java import jars
from kit.lab.process import ProcessSupervisor, wait_until
from kit.lab.servers.cluster import Servers
from kit.lab.servers.migrating import (
    KRAFT,
    MIGRATION,
    ZOOKEEPER,
    Controller,
    MigratingBroker,
    Quorum,
    connected,
    is_mode,
    json_at,
)
from kit.lab.servers.security import Security
from kit.lab.servers.tcp_proxy import TcpProxy
from kit.lab.servers.zookeeper import ZooKeeper

PHASES = ("zookeeper", "controllers", "dual-write", "kraft", "finalised")
"""In the order of a migration."""
WAIT_SECONDS = 60.0


class MigratingServers(Servers):
    """Brokers start in ZooKeeper mode, controllers not before ``start_controllers``. Each verb waits for its end.

    ``cable``: what the controllers' connections to ZooKeeper go through; ``cable.cut()`` stops the bytes,
    ``cable.delay_s`` delays what they send.
    After a roll use a new admin client: librdkafka's gets no answer from a broker that has changed its mode.
    """

    def __init__(
        self,
        supervisor: ProcessSupervisor,
        brokers: int,
        controllers: int,
        racks: Sequence[str],
        chroot: str,
        security: Security | None = None,
    ) -> None:
        jars.ensure([jars.SERVERS])
        self.supervisor = supervisor
        self.chroot = chroot
        added = security.zookeeper_settings() if security else {}
        self.zookeeper = ZooKeeper(supervisor, settings=added, options=security.options if security else ())
        self.zookeeper_tls_connect = f"127.0.0.1:{added.get('secureClientPort', '')}{chroot}"
        self.cable = TcpProxy(self.zookeeper.connect)
        self.quorum = Quorum(controllers, self.zookeeper_connect, self.cable.address + chroot, security)
        self.migrating = [
            MigratingBroker(supervisor, number, self.quorum, brokers, racks[number - 1] if racks else None)
            for number in range(1, brokers + 1)
        ]
        self.brokers = self.migrating
        self.controllers = [Controller(supervisor, node, self.quorum) for node in self.quorum.addresses]
        self.phase = PHASES[0]

    def start(self) -> None:
        """Start like ``Servers``; of a secured lab the brokers' own user is made first."""
        self.zookeeper.start()
        if self.quorum.security is not None:
            self.quorum.security.create_node_user(self.zookeeper_connect)
        self.start_brokers()

    @property
    def controller_addresses(self) -> str:
        """``host:port`` of every controller, comma between."""
        return ",".join(self.quorum.addresses.values())

    @property
    def voters(self) -> str:
        """``id@host:port`` of every controller, comma between."""
        return ",".join(f"{number}@{at}" for number, at in self.quorum.addresses.items())

    def start_controllers(self) -> None:
        """Format what is new, start all that don't run at once, and wait until they wait for brokers.

        ``/migration`` is there then.
        """
        starting = [each for each in self.controllers if each.process is None or not each.process.running]
        for controller in starting:
            controller.launch()
        for controller in starting:
            controller.await_started()
        self._await_znode("/migration", lambda held: "kraft_metadata_offset" in held, "/migration")
        self.phase = "controllers"

    def stop_controllers(self) -> None:
        """SIGTERM, all at once: the last of a quorum would wait for the other controllers."""
        for controller in self.controllers:
            if controller.process is not None and controller.process.running:
                controller.process.stop()

    def roll_brokers(self, mode: str) -> None:
        """Restart the brokers one by one in ``mode`` (``MODES``), each after the one before is in sync again.

        The broker that holds ``/controller`` goes last, as Kafka's documentation asks. Raises LabError.
        """
        is_mode(mode)
        controlling = self.controlling()
        for broker in sorted(self.migrating, key=lambda each: each.broker_id == controlling):
            self.roll_broker(broker, mode)
        if mode == MIGRATION:
            self._await_dual_write()
        self.phase = {ZOOKEEPER: "zookeeper", MIGRATION: "dual-write", KRAFT: "kraft"}[mode]

    def roll_broker(self, broker: MigratingBroker, mode: str) -> None:
        """Stop one broker, start it in ``mode``, and wait until every replica is in sync again."""
        if broker.process is not None and broker.process.running:
            broker.process.stop()
        if broker.mode != KRAFT:
            self._await_znode(f"/brokers/ids/{broker.broker_id}", lambda held: not held, f"the end of {broker.name}")
        broker.mode = is_mode(mode)
        broker.launch()
        broker.await_started()
        admin = AdminClient({**topics.QUIET, "bootstrap.servers": broker.addresses["PLAINTEXT"]})
        ready = partial(topics.all_in_sync, admin, len(self.migrating))
        wait_until(ready, f"{broker.name} in mode {mode}, all replicas in sync", WAIT_SECONDS)

    def finalise(self) -> None:
        """Restart the controllers one by one without the flag, the active one last. It can't be undone.

        Raises:
            InputError: a broker is not in KRaft mode.
        """
        late = [each.name for each in self.migrating if each.mode != KRAFT]
        if late:
            raise InputError(f"The migration can't be finalised: {', '.join(late)} not in KRaft mode.")
        active = self.controlling()
        for controller in sorted(self.controllers, key=lambda each: each.broker_id == active):
            self.restart_controller(controller, has_flag=False)
        self.phase = "finalised"

    def restart_controller(self, controller: Controller, has_flag: bool) -> None:
        """Stop one controller and start it with or without the flag."""
        if controller.process is not None and controller.process.running:
            controller.process.stop()
        controller.has_flag = has_flag
        controller.launch()
        controller.await_started()

    def reach(self, phase: str) -> None:
        """Continue, phase by phase, to ``phase`` (``PHASES``).

        Raises:
            InputError: there is no such phase, or it lies behind.
        """
        if phase not in PHASES:
            raise InputError(f"There is no phase {phase!r}; there are {', '.join(PHASES)}.")
        here, there = PHASES.index(self.phase), PHASES.index(phase)
        if there < here:
            raise InputError(f"The lab is in phase {self.phase!r}: {phase!r} lies behind it.")
        verbs = (
            self.start_controllers,
            partial(self.roll_brokers, MIGRATION),
            partial(self.roll_brokers, KRAFT),
            self.finalise,
        )
        for verb in verbs[here:there]:
            verb()

    def controlling(self) -> int | None:
        """The node that holds ``/controller``, a broker or a controller."""
        with connected(self.zookeeper_connect) as client:
            return json_at(client, "/controller").get("brokerid")

    def await_fail_over(self, since: int, seconds: float = WAIT_SECONDS) -> None:
        """Wait until another controller than ``since`` holds ``/controller`` and dual write continues in its epoch."""

        def goes_on(client: KazooClient) -> bool:
            holder, checkpoint = json_at(client, "/controller"), json_at(client, "/migration")
            epoch = holder.get("kraftControllerEpoch")
            return holder.get("brokerid") != since and epoch == checkpoint.get("kraft_metadata_epoch")

        with connected(self.zookeeper_connect) as client:
            try:
                wait_until(partial(goes_on, client), f"dual write by another controller than {since}", seconds)
            except LabError as error:
                held = "\n".join(f"{path} holds {json_at(client, path)}" for path in ("/controller", "/migration"))
                raise LabError(f"{error}\n{held}\n{self._describe_by_controllers()}") from None

    def _describe_by_controllers(self) -> str:
        processes = [each.process for each in self.controllers if each.process is not None]
        return "\n".join(f"{each.name}:\n{each.last_lines()}" for each in processes)

    def hand_back(self) -> None:
        """From dual write back to a controller of ZooKeeper's, as Kafka's documentation reports; brokers stay as they
        are.

        The controllers end and lose their disks; one transaction raises ``/controller_epoch`` above KRaft's epochs and
        deletes ``/controller`` and ``/migration``. A broker takes ``/controller`` at once; none may be stopped until
        each names that one as the controller.

        Raises:
            InputError: a broker is in KRaft mode: it would hang without controllers.
            LabError: another client wrote one of the three znodes meanwhile.
        """
        late = [each.name for each in self.migrating if each.mode == KRAFT]
        if late:
            raise InputError(f"The cluster can't go back to ZooKeeper: {', '.join(late)} in KRaft mode.")
        self.stop_controllers()
        with connected(self.zookeeper_connect, self.quorum.security) as client:
            _hand_back(client)
        for controller in self.controllers:
            shutil.rmtree(self.supervisor.folder / controller.name / "data", ignore_errors=True)

    def _await_znode(self, path: str, is_so: Callable[[Mapping[str, Any]], bool], what: str) -> None:
        with connected(self.zookeeper_connect) as client:
            wait_until(lambda: is_so(json_at(client, path)), what, WAIT_SECONDS)

    def _await_dual_write(self) -> None:
        """The copy sets the offset in ``/migration``; only in dual write, when brokers know KRaft, does it move on."""
        with connected(self.zookeeper_connect) as client:
            wait_until(lambda: _checkpoint(client) > 0, "the copy to KRaft", WAIT_SECONDS)
            copied = _checkpoint(client)
            wait_until(lambda: _checkpoint(client) > copied, "dual write", WAIT_SECONDS)


def _hand_back(client: KazooClient) -> None:
    epoch, stat = client.get("/controller_epoch")
    holder, holder_stat = client.get("/controller")
    _, migration_stat = client.get("/migration")
    highest = max(int(epoch), int(json.loads(holder)["kraftControllerEpoch"]))
    change = client.transaction()
    change.set_data("/controller_epoch", str(highest + 1).encode(), stat.version)
    change.delete("/controller", holder_stat.version)
    change.delete("/migration", migration_stat.version)
    refused = [each for each in change.commit() if isinstance(each, Exception)]
    if refused:
        raise LabError(f"The cluster was not handed back to ZooKeeper: {refused[0]!r}")


def _checkpoint(client: KazooClient) -> int:
    return int(json_at(client, "/migration").get("kraft_metadata_offset", -1))
