"""Faults by name, for tests and rehearsals. They hit a consumer, a producer or a broker of a lab."""

from __future__ import annotations

import json
import signal
from typing import Protocol

from kazoo.client import KazooClient

from kit.errors import InputError
from kit.lab.lab import Lab
from kit.lab.members.handles import Consumer
from kit.lab.process import Process, wait_until
from kit.lab.servers.kafka import Broker
from kit.lab.servers.migrating import Controller
from kit.text.quantity import quantity

EXPIRY_SECONDS = 90.0
ASKS_KRAFT, ASKING_SECONDS = b"Notifying KRaft of controlled shutdown", 60.0


class Victim(Protocol):
    """A consumer, producer or broker that runs in a process of its own."""

    @property
    def process(self) -> Process | None: ...


def pause(victim: Victim) -> None:
    """SIGSTOP: it is stalled with its connections open; sessions end by their time-outs."""
    running(victim).pause()


def resume(victim: Victim) -> None:
    """SIGCONT after ``pause``."""
    running(victim).resume()


def kill(victim: Victim) -> None:
    """kill -9: it leaves no group and closes no session."""
    running(victim).kill()


def stop(victim: Victim) -> None:
    """SIGTERM and wait: it leaves its group in order."""
    running(victim).stop()


def running(victim: Victim) -> Process:
    """Its process; raises InputError when it was never started."""
    if victim.process is None:
        raise InputError(f"{victim} was never started.")
    return victim.process


def broker(lab: Lab, broker_id: int) -> Broker:
    """The broker with that id; raises InputError when the lab has none."""
    for candidate in lab.servers.brokers:
        if candidate.broker_id == broker_id:
            return candidate
    raise InputError(f"The lab has {quantity(len(lab.servers.brokers), 'broker')}, none with id {broker_id}.")


def restart_broker(lab: Lab, broker_id: int) -> None:
    """Start a stopped or killed broker again, once its old registration in ZooKeeper is gone."""
    again = broker(lab, broker_id)
    await_gone(lab, f"/brokers/ids/{broker_id}")
    again.launch()
    again.await_started()
    lab.servers.await_known(again)


def restart_zookeeper(lab: Lab) -> None:
    """kill -9 and start again on the same data: sessions outlive it if it is back in time."""
    running(lab.servers.zookeeper).kill()
    lab.servers.zookeeper.start()


def controller(lab: Lab, node_id: int) -> Controller:
    """The controller with that id; raises InputError when the lab has none."""
    for candidate in lab.migration.controllers:
        if candidate.broker_id == node_id:
            return candidate
    raise InputError(f"The lab has {quantity(len(lab.migration.controllers), 'controller')}, none with id {node_id}.")


def cut_controllers_from_zookeeper(lab: Lab) -> None:
    """No byte passes between the controllers and ZooKeeper; the connections stay open."""
    lab.migration.cable.cut()


def mend_controllers_to_zookeeper(lab: Lab) -> None:
    """Connect the controllers to ZooKeeper again: what was sent since the cut arrives now."""
    lab.migration.cable.mend()


def delay_controllers_to_zookeeper(lab: Lab, seconds: float) -> None:
    """Delay what controllers send to ZooKeeper from now on; 0 ends the delay."""
    lab.migration.cable.delay_s = seconds


def forget_flag(lab: Lab, node_id: int) -> None:
    """A controller comes back without ``zookeeper.metadata.migration.enable``."""
    lab.migration.restart_controller(controller(lab, node_id), has_flag=False)


def start_controller_alone(lab: Lab, node_id: int, epoch: int = 6) -> None:
    """One of several controllers runs before the other controllers: no voter elects it, and each candidacy raises its
    epoch.

    Returns when it has reached ``epoch``; ``lab.migration.start_controllers()`` starts the other controllers.
    """
    alone = controller(lab, node_id)
    alone.added = {"controller.quorum.election.timeout.ms": "500"}
    alone.launch()
    alone.await_started()
    state = lab.folder / alone.name / "data" / "__cluster_metadata-0" / "quorum-state"
    wait_until(lambda: json.loads(state.read_text())["leaderEpoch"] >= epoch, f"epoch {epoch} of {alone.name}", 60)


def kill_active_controller(lab: Lab) -> Controller:
    """kill -9 of the controller that dual writes, and wait for another that does; raises InputError without others.

    Returns the killed one: ``lab.migration.restart_controller(it, has_flag=True)`` brings it back.
    """
    if len(lab.migration.controllers) < 3:
        raise InputError("The lab's quorum doesn't outlive a controller: start Lab(controllers=3).")
    active = controller(lab, lab.migration.controlling() or 0)
    kill(active)
    lab.migration.await_fail_over(active.broker_id)
    return active


def stop_too_early(lab: Lab, broker_id: int) -> None:
    """SIGTERM to a broker in migration mode before it knows ZooKeeper's controller; then control is handed back.

    It believes in the controllers that have ended, and asks them for leave; Kafka 3.9.1 waits for them for minutes.
    A broker that is stopped right behind the hand-back is in the same race, and wins it where the machine is busy: here
    no broker is the controller before it has asked.
    """
    lab.migration.stop_controllers()
    victim = running(broker(lab, broker_id))
    begin = victim.log.stat().st_size
    victim.signal(signal.SIGTERM)
    victim.wait_until(
        lambda: ASKS_KRAFT in victim.log.read_bytes()[begin:], "a request of the broker to KRaft", ASKING_SECONDS
    )
    lab.migration.hand_back()


def expire_session(lab: Lab, consumer: Consumer) -> None:
    """Let the ZooKeeper session of an old consumer end (it is stalled that long), then let the consumer continue."""
    consumer.pause()
    try:
        await_gone(lab, f"/consumers/{consumer.group}/ids/{consumer.consumer_id}")
    finally:
        consumer.resume()


def await_gone(lab: Lab, path: str) -> None:
    """Wait until a znode has vanished; raises LabError after 90 s."""
    client = KazooClient(lab.zookeeper_connect)
    client.start(15)
    try:
        wait_until(lambda: client.exists(path) is None, f"the end of {path}", EXPIRY_SECONDS)
    finally:
        client.stop()
        client.close()
