"""One lab of two brokers and two controllers, looked at before and while it goes to dual write, and edited copies."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
from confluent_kafka import ElectionType

from kit.cluster import connect
from kit.lab import Lab, faults
from kit.lab.entities import QUOTAS, await_reassigned, reassign, set_quotas
from kit.lab.process import wait_until
from kit.lab.servers.migrating import MIGRATION, connected
from kit.preflight import PreflightFacts, judge, read_preflight_facts, read_settings_folder
from kit.profile import load_profile
from kit.tables.preflight import BrokerLogDir
from kit.text.properties import parse_properties, render_properties
from tests.servers.bad_znodes import BAD, CLOSED, write_bad_znodes, write_closed_znodes
from tests.servers.kraft_walk import Walk
from tests.servers.provoked import Case

REPLICAS = ("reassigned", "broker stopped", "broker back", "leaders elected")
_KEYS = ("kraft_controller_id", "kraft_metadata_offset", "kraft_controller_epoch", "kraft_metadata_epoch")
NO_CHECKPOINT = {"version": 0, **dict.fromkeys(_KEYS, -1)}
LEFT_OVER = NO_CHECKPOINT | {"kraft_metadata_offset": 142, "kraft_metadata_epoch": 1}
SETTLE_S = 10.0


@dataclass
class Story(Walk):
    """``facts``: what was read with all nodes ready, to be edited; ``nodes``: their files then.

    ``is_hung``: whether a broker that was stopped too early ran on.
    """

    facts: PreflightFacts | None = None
    nodes: Path | None = None
    is_hung: bool = False

    @property
    def made(self) -> Path:
        """Where the command wrote settings to."""
        return self.lab.folder / "made"

    def edited(self, case: Case, folder: Path) -> list:
        """The findings of the preflight on a copy of the files and of what was read, with the case's changes."""
        assert self.facts is not None
        assert self.nodes is not None
        copy = Path(shutil.copytree(self.nodes, folder / "nodes"))
        if case.file:
            edit_file(copy / case.file, case.changes)
        facts = FACTS[case.facts](self.facts, copy) if case.facts else self.facts
        return list(judge("lab", facts, read_settings_folder(copy)).rows)


@contextmanager
def story() -> Iterator[Story]:
    """In ZooKeeper mode; controllers begun wrongly; begun well, beside bad and closed znodes; dual write."""
    with Lab(brokers=2, controllers=2) as lab:
        seen = Story(lab)
        lab.create_topic("orders", 2)
        set_quotas(lab.migration, QUOTAS)
        seen.preflight("before")
        begin_wrongly(seen)
        lab.migration.start_controllers()
        wait_until(lambda: knows_its_version(seen), "the version of each controller, from the log", 30)
        seen.nodes = seen.collect("ready")
        seen.preflight("ready", seen.nodes)
        seen.run("preflight", "--settings-dir", str(seen.nodes), "--write-settings", str(seen.made), called="ready")
        with connect(load_profile(file=seen.profile())) as cluster:
            seen.facts = read_preflight_facts(cluster)
        with connected(lab.zookeeper_connect) as client:
            write_bad_znodes(client)
            write_closed_znodes(client)
        for name, chroot in (("bad", BAD), ("closed", CLOSED)):
            where = f"{lab.zookeeper_connect}{chroot}"
            seen.preflight(name, zookeeper_connect=where)
            seen.status(name, zookeeper_connect=where)
        seen.run("preflight", "--json", called="bad", zookeeper_connect=f"{lab.zookeeper_connect}{BAD}")
        before_dual_write(seen)
        lab.migration.reach("dual-write")
        change_replicas(seen)
        stop_a_broker_too_early(seen)
        yield seen


def begin_wrongly(seen: Story) -> None:
    """Without the flag, and one alone first; then they are wiped."""
    lab, controllers = seen.lab, seen.lab.migration.controllers
    for each in controllers:
        each.has_flag = False
    faults.start_controller_alone(lab, controllers[0].broker_id)
    controllers[1].launch()
    controllers[1].await_started()
    wait_until(lambda: has_a_log_and_a_leader(seen), "the log and the leader of controllers without flag", 30)
    seen.preflight("begun wrongly")
    lab.migration.stop_controllers()
    for each in controllers:
        shutil.rmtree(lab.folder / each.name / "data")
        each.has_flag, each.added = True, {}


def has_a_log_and_a_leader(seen: Story) -> bool:
    facts = seen.status("begun wrongly").read
    return facts.zk_state == "NONE" and facts.leader is not None


def knows_its_version(seen: Story) -> bool:
    """Whether every controller has read the log: one that was just started has not."""
    return all(each.metadata_version is not None for each in seen.status("begun well").read.controllers)


def before_dual_write(seen: Story) -> None:
    """A ``/migration`` of somebody else; a profile that names one of two controllers."""
    set_checkpoint(seen.lab, b"")
    seen.status("null checkpoint")
    set_checkpoint(seen.lab, json.dumps(LEFT_OVER).encode())
    seen.status("left-over checkpoint")
    set_checkpoint(seen.lab, json.dumps(NO_CHECKPOINT).encode())

    def is_led_by_the_named() -> bool:
        """An election between the two looks names another."""
        leader = seen.status("controllers").read.leader
        if leader is None:
            return False
        return seen.status("one controller named", controllers=leader.address).read.leader is not None

    wait_until(is_led_by_the_named, "a leader that is named alone", 60)


def set_checkpoint(lab: Lab, held: bytes) -> None:
    """Deleted and made again: the controllers expect version 0 when they write it first."""
    with connected(lab.zookeeper_connect) as client:
        client.delete("/migration")
        client.create("/migration", held)


def change_replicas(seen: Story) -> None:
    """Other replicas, a smaller ISR and other leaders, the whole ISR, the preferred leaders: a diff after each."""
    lab, servers = seen.lab, seen.lab.migration
    reassign(servers, {("orders", 0): [2, 1], ("orders", 1): [2]})
    await_reassigned(servers)
    seen.diff("reassigned", SETTLE_S)
    second = servers.migrating[1]
    faults.stop(second)
    seen.diff("broker stopped", SETTLE_S)
    servers.roll_broker(second, MIGRATION)
    seen.diff("broker back", SETTLE_S)
    lab.admin.elect_leaders(ElectionType.PREFERRED).result(30)
    seen.diff("leaders elected", SETTLE_S)


def stop_a_broker_too_early(seen: Story) -> None:
    """Before ZooKeeper's controller has reached it: what R04 and the pause of a rollback are for."""
    faults.stop_too_early(seen.lab, 2)
    victim = faults.running(faults.broker(seen.lab, 2))
    seen.status("stopped too early")
    seen.is_hung = victim.running
    victim.kill()


def edit_file(file: Path, changes: Mapping[str, str | None]) -> None:
    held = parse_properties(file.read_text()) | changes
    file.write_text(render_properties({name: value for name, value in held.items() if value is not None}))


def _failed_dir(facts: PreflightFacts, nodes: Path) -> PreflightFacts:
    return replace(facts, log_dirs=[*facts.log_dirs, BrokerLogDir(1, "/b", "KAFKA_STORAGE_ERROR")])


def _deaf_broker(facts: PreflightFacts, nodes: Path) -> PreflightFacts:
    """In migration mode; as it was read, no broker is: none fetches the log."""
    rows = [replace(each, mode="migration") if each.role == "broker" else each for each in facts.facts.nodes]
    return replace(facts, facts=replace(facts.facts, nodes=rows))


def _two_secrets(facts: PreflightFacts, nodes: Path) -> PreflightFacts:
    for name, secret in (("broker-1", "one"), ("broker-2", "one"), ("controller-3000", "another")):
        edit_file(nodes / name / "server.properties", {"password.encoder.secret": secret})
    assert facts.items is not None
    row = {"kind": "config", "entity": "brokers/1", "item": "ssl.key.password", "is_secret": True, "side": "zookeeper"}
    added = pl.DataFrame([dict.fromkeys(facts.items.columns) | row], schema=facts.items.schema)
    return replace(facts, items=pl.concat([facts.items, added]))


def _growing(facts: PreflightFacts, nodes: Path) -> PreflightFacts:
    assert facts.znodes is not None
    return replace(facts, znodes=replace(facts.znodes, n_config_changes=99, config_changes_s=1260.0))


def _finalised(facts: PreflightFacts, nodes: Path) -> PreflightFacts:
    return replace(facts, facts=replace(facts.facts, zk_state="POST_MIGRATION"))


FACTS: Mapping[str, Callable[[PreflightFacts, Path], PreflightFacts]] = {
    "a failed log dir": _failed_dir,
    "a broker that does not fetch the log": _deaf_broker,
    "a password among dynamic settings; files with two secrets": _two_secrets,
    "notifications of settings, 21 minutes between the first and the last": _growing,
    "a finalised log, brokers in /brokers/ids": _finalised,
}
"""Edits of what was read (and of the copied files), by the name that the case gives."""
