"""One lab of two brokers and a controller that goes through the traps of a move to KRaft, and comes out of each.

A ``/migration`` without data; a controller with another chroot; one broker moved, and all undone by a plan; a
broker of another version; a broker id that nobody has, and a pending deletion; in dual write a topic deleted manually,
and ZooKeeper down for 12 s; a broker stopped before it knew the controller after the hand-back.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka.admin import ConfigResource, NewTopic

from kit.kraft.status import status_without
from kit.lab import Lab, faults, topics
from kit.lab.entities import alter_config, await_reassigned, done, reassign
from kit.lab.process import wait_until
from kit.lab.servers.kafka import Broker
from kit.lab.servers.migrating import MIGRATION, MigratingBroker, connected, json_at
from kit.profile import load_profile
from tests.interop.kraft_scene import KraftScene
from tests.servers.kraft_kinds import new_admin
from tests.soak import IS_SOAK

FIRST = "null checkpoint"
"""The only trap of the short form."""
NOBODY = 9
"""A broker id that no broker has."""
POLL_S = 75.0
"""A controller that waits looks again at the latest after 60 s."""
SESSION_S = 60
VERSION = "inter.broker.protocol.version"
WAITS = "Still waiting for ZK brokers"
STALE_VERSION = "Check op on KRaft Migration ZNode failed"
DOWN_RECORDS = 24
"""A quorum at rest writes two records a second: ZooKeeper is down for 12 s."""


@dataclass
class Traps(KraftScene):
    """``logs``: of one node, by moment; ``homes``: topic → broker; ``named``: the topics in ZooKeeper, by moment.

    ``left``: folders of the deleted topic, by moment.
    """

    logs: dict[str, str] = field(default_factory=dict)
    named: dict[str, set[str]] = field(default_factory=dict)
    homes: dict[str, int] = field(default_factory=dict)
    left: dict[str, set[str]] = field(default_factory=dict)

    @contextmanager
    def logged(self, moment: str, node: Broker, *awaited: str) -> Iterator[None]:
        """Return the node's lines from now on until all of ``awaited`` are there."""
        file = self.lab.folder / f"{node.name}.log"
        begin = file.stat().st_size if file.exists() else 0

        def said() -> str:
            return file.read_bytes()[begin:].decode(errors="replace")

        yield
        for text in awaited:
            wait_until(lambda text=text: text in said(), f"{node.name}: {text}", POLL_S)  # type: ignore[misc]
        self.logs[moment] = said()

    def keep_topics(self, moment: str) -> None:
        with connected(self.lab.zookeeper_connect) as client:
            self.named[moment] = set(client.get_children("/brokers/topics"))


@contextmanager
def story() -> Iterator[Traps]:
    brokers = 2 if IS_SOAK else 1
    with Lab(brokers, controllers=1) as lab:
        seen = Traps(lab)
        lab.create_topic("orders", 2, brokers)
        null_checkpoint(seen)
        if IS_SOAK:
            all_others(seen)
        yield seen


def all_others(seen: Traps) -> None:
    another_chroot(seen)
    half_rolled(seen)
    name_nobody(seen)
    another_version(seen)
    zombie(seen)
    dual_write(seen)
    bring_back(seen)
    delete_by_hand(seen)
    zookeeper_down(seen)
    seen.left["after the next controller"] = names_of(seen, "doomed-0*")
    stop_too_early(seen)


def move(lab: Lab, broker: MigratingBroker) -> None:
    """In migration mode, without waiting for replicas: some are on nobody."""
    lab.move_node("broker", broker.broker_id, "restart", MIGRATION)
    broker.await_started()


def null_checkpoint(seen: Traps) -> None:
    """Make ``/migration`` like zookeeper-security-migration (KAFKA-19480); the controller is started all the same."""
    (controller,) = seen.lab.migration.controllers
    with connected(seen.lab.zookeeper_connect) as client:
        client.create("/migration", b"")
    seen.preflight(FIRST)
    seen.refuse_plan(FIRST, "controllers")
    with seen.logged(FIRST, controller, "Unhandled error in RecoverMigrationStateFromZKEvent"):
        controller.launch()
        controller.await_started()
    seen.await_status(FIRST, lambda status: status.read.has_log, "the metadata log")
    seen.carry_out("null checkpoint repaired", "repair")
    seen.status("null checkpoint repaired")


def another_chroot(seen: Traps) -> None:
    """A typo in the controller's file; then one broker goes to migration mode all the same."""
    lab, (controller,) = seen.lab, seen.lab.migration.controllers
    controller.added = {"zookeeper.connect": f"{lab.migration.cable.address}/kafak"}
    with seen.logged("another chroot", controller, "to WAIT_FOR_BROKERS", "No brokers are registered in ZK"):
        controller.launch()
        controller.await_started()
        seen.await_status("another chroot", lambda status: status.state.zk_state == "PRE_MIGRATION", "the log")
        seen.preflight("another chroot")
        for to in ("dual write", "zookeeper"):
            seen.refuse_plan(f"another chroot, {to}", to)
        move(lab, lab.migration.migrating[0])
    controller.added = {}


def half_rolled(seen: Traps) -> None:
    """The right chroot; the other broker stays as it is. Then all is undone by one plan."""
    (controller,) = seen.lab.migration.controllers
    with seen.logged("half rolled", controller, WAITS):
        seen.lab.migration.restart_controller(controller, has_flag=True)
    seen.status("half rolled")
    seen.carry_out("half rolled, back", "zookeeper")
    seen.status("half rolled, back")


def name_nobody(seen: Traps) -> None:
    """Two topics have a replica on a broker that was taken away, and one of them was to be deleted meanwhile."""
    lab = seen.lab
    topics.create(new_admin(lab), {"doomed": 1, "zombie": 1}, 1)
    wait_until(lambda: names_of(seen, "doomed-0"), "the files of the topic to be deleted", 30)
    (files,) = lab.folder.glob("broker-*/data/doomed-0")
    shutil.copytree(files, lab.folder / "doomed-0")
    with connected(lab.zookeeper_connect) as client:
        change = client.transaction()
        for topic in ("doomed", "zombie"):
            held = json_at(client, f"/brokers/topics/{topic}")
            seen.homes[topic] = held["partitions"]["0"][0]
            replicas = {"partitions": {"0": [*held["partitions"]["0"], NOBODY]}}
            change.set_data(f"/brokers/topics/{topic}", json.dumps({**held, **replicas}).encode())
        change.create("/admin/delete_topics/doomed")
        before = client.exists("/controller").czxid
        change.delete("/controller")
        assert not [each for each in change.commit() if isinstance(each, Exception)]
        wait_until(lambda: is_elected_since(client, before), "an election", 30)


def names_of(seen: Traps, pattern: str) -> set[str]:
    """Return the names of the folders of a partition, on any broker, without the random part."""
    found = seen.lab.folder.glob(f"broker-*/data/{pattern}")
    return {re.sub(r"\.[0-9a-f]{32}", "", each.name) for each in found}


def is_elected_since(client, czxid: int) -> bool:
    found = client.exists("/controller")
    return found is not None and found.czxid > czxid


def another_version(seen: Traps) -> None:
    lab, (first, second) = seen.lab, seen.lab.migration.migrating
    lab.migration.start_controllers()
    move(lab, first)
    added = second.added
    second.added = {**added, VERSION: "3.8"}
    with seen.logged("another version", second, "Unable to register broker"):
        move(lab, second)
    seen.status("another version")
    seen.preflight("another version")
    seen.refuse_plan("another version", "dual write")
    second.added = added


def zombie(seen: Traps) -> None:
    """Both brokers are registered: the controller waits for a third, which is nobody."""
    lab, (controller,), second = seen.lab, seen.lab.migration.controllers, seen.lab.migration.migrating[1]
    second.added = {**second.added, "zookeeper.session.timeout.ms": str(1000 * SESSION_S)}
    with seen.logged("zombie", controller, f"{WAITS} [{NOBODY}]"):
        move(lab, second)
        lab.migration.restart_controller(controller, has_flag=True)
    seen.status("zombie")
    seen.preflight("zombie")
    seen.refuse_plan("zombie", "dual write")
    seen.keep_topics("zombie")


def dual_write(seen: Traps) -> None:
    """Follow the preflight's remedy: the partition is reassigned. The pending deletion stays pending."""
    lab, (controller,) = seen.lab, seen.lab.migration.controllers
    with seen.logged("copied", controller, "to DUAL_WRITE"):
        reassign(lab.migration, {("zombie", 0): [seen.homes["zombie"]]})
        await_reassigned(lab.migration)
        lab.migration.restart_controller(controller, has_flag=True)
    lab.migration.phase = "dual-write"
    with connected(lab.zookeeper_connect) as client:
        wait_until(lambda: not client.exists("/brokers/topics/doomed"), "the end of the deleted topic", 30)
    seen.diff("copied")
    seen.keep_topics("copied")


def bring_back(seen: Traps) -> None:
    """The files of the deleted topic, as a broker has them that was down when the others deleted theirs."""
    home = faults.broker(seen.lab, seen.homes["doomed"])
    faults.stop(home)
    shutil.copytree(seen.lab.folder / "doomed-0", seen.lab.folder / home.name / "data" / "doomed-0")
    seen.lab.migration.roll_broker(home, MIGRATION)
    seen.left["brought back"] = names_of(seen, "doomed-0*")


def delete_by_hand(seen: Traps) -> None:
    lab, (controller,) = seen.lab, seen.lab.migration.controllers
    with connected(lab.zookeeper_connect) as client:
        client.delete("/brokers/topics/orders", recursive=True)
        seen.diff("deleted manually")
        seen.refuse_plan("deleted manually", "kraft")
        with seen.logged("made again", controller, STALE_VERSION):
            lab.migration.restart_controller(controller, has_flag=True)
        with seen.logged("healed", controller, "to DUAL_WRITE"):
            lab.migration.restart_controller(controller, has_flag=True)
    seen.diff("healed")


def zookeeper_down(seen: Traps) -> None:
    """Changes of three kinds meanwhile."""
    lab, servers, admin = seen.lab, seen.lab.migration, new_admin(seen.lab)
    profile = load_profile(file=seen.file)
    began = seen.status("before").state.high_watermark or 0
    faults.running(servers.zookeeper).kill()
    alter_config(admin, ConfigResource.Type.TOPIC, "orders", {"retention.ms": "777777"})
    done(admin.create_topics([NewTopic("born", 1, 1)]), "topic")
    done(admin.delete_topics(["zombie"]), "topic")
    seen.run("down", "kraft", "status")
    wait_until(
        lambda: (status_without(profile).state.high_watermark or 0) >= began + DOWN_RECORDS, "12 s of records", 60
    )
    servers.zookeeper.start()
    back = time.monotonic()
    with connected(lab.zookeeper_connect) as client:
        wait_until(lambda: client.exists("/brokers/topics/born") is not None, "the topic that was made", 60)
        wait_until(lambda: client.exists("/brokers/topics/zombie") is None, "the end of the one that was deleted", 60)
        seen.noted["arrived_s"] = time.monotonic() - back
        wait_until(lambda: len(client.get_children("/brokers/ids")) == 2, "both brokers", 60)
    seen.diff("back")


def stop_too_early(seen: Traps) -> None:
    """Before it knows ZooKeeper's controller; killed, and started again before ZooKeeper has forgotten it."""
    victim = seen.lab.migration.migrating[1]
    faults.stop_too_early(seen.lab, victim.broker_id)
    hung = faults.running(victim)
    seen.status("stopped too early")
    seen.noted["was_hung"] = hung.running
    hung.kill()
    with seen.logged("started too early", victim):
        victim.launch()
        again = faults.running(victim)
        wait_until(lambda: not again.running, "the end of the broker that was started too early", 60)
    seen.noted["exit_code"] = again.exit_code
    seen.status("started too early")
    seen.refuse_plan("started too early", "repair")
