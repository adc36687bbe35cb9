"""One lab of two brokers and two controllers, examined before and while it goes to dual write, and edited copies."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl
from confluent_kafka import ElectionType

from kit.kraft.preflight import PreflightFacts, judge, read_preflight_facts
from kit.kraft.settings_files import read_settings_folder
from kit.kraft.status import KraftStatus
from kit.lab import Lab, faults
from kit.lab.entities import QUOTAS, await_reassigned, reassign, set_quotas
from kit.lab.servers.migrating import MIGRATION, connected
from kit.tables.preflight import BrokerLogDir
from kit.text.properties import parse_properties, render_properties
from tests.servers.awaiting import awaited
from tests.servers.bad_znodes import BAD, CLOSED, write_bad_znodes, write_closed_znodes
from tests.servers.kraft_walk import (
    LEFT_OVER,
    NO_CHECKPOINT,
    KraftWalk,
    await_a_leader_named_alone,
    know_their_version,
    set_checkpoint,
)
from tests.servers.provoked import Case

TOO_HIGH = 3
"""The lowest first epoch of KRaft that a preflight names."""
REPLICAS = ("reassigned", "broker stopped", "broker back", "leaders elected")


def edited(seen: KraftWalk, case: Case, folder: Path) -> list:
    """The findings of the preflight on a copy of the files and of what was read, with the case's changes."""
    facts, copy = seen.noted["facts"], Path(shutil.copytree(seen.noted["nodes"], folder / "nodes"))
    if case.file:
        edit_file(copy / case.file, case.changes)
    facts = FACTS[case.facts](facts, copy) if case.facts else facts
    return list(judge("lab", facts, read_settings_folder(copy)).rows)


@contextmanager
def story() -> Iterator[KraftWalk]:
    """In ZooKeeper mode; controllers begun wrongly; begun well, beside bad and closed znodes; dual write.

    ``noted``: ``facts`` (what was read with all nodes ready, to be edited), ``nodes`` (their files then), ``is_hung``
    (whether a broker that was stopped too early ran on).
    """
    with Lab(brokers=2, controllers=2) as lab:
        seen = KraftWalk(lab)
        lab.create_topic("orders", 2)
        set_quotas(lab.migration, QUOTAS)
        seen.preflight("before")
        begin_wrongly(seen)
        raise_the_epoch(lab)
        lab.migration.start_controllers()
        seen.await_status("begun well", know_their_version, "the version of each controller, from the log")
        nodes = seen.noted["nodes"] = seen.collect("ready")
        seen.preflight("ready", nodes)
        made = ("--write-settings", str(lab.folder / "made"))
        seen.run("ready", "kraft", "preflight", "--settings-dir", str(nodes), *made)
        with seen.connected() as cluster:
            seen.noted["facts"] = read_preflight_facts(cluster)
        with connected(lab.zookeeper_connect) as client:
            write_bad_znodes(client)
            write_closed_znodes(client)
        for name, chroot in (("bad", BAD), ("closed", CLOSED)):
            where = f"{lab.zookeeper_connect}{chroot}"
            seen.preflight(name, zookeeper_connect=where)
            seen.status(name, zookeeper_connect=where)
        seen.run("bad", "kraft", "preflight", "--json", zookeeper_connect=f"{lab.zookeeper_connect}{BAD}")
        before_dual_write(seen)
        lab.migration.reach("dual-write")
        change_replicas(seen)
        stop_a_broker_too_early(seen)
        yield seen


def begin_wrongly(seen: KraftWalk) -> None:
    """Without the flag, and one alone first; then they are wiped."""
    lab, controllers = seen.lab, seen.lab.migration.controllers
    for each in controllers:
        each.has_flag = False
    faults.start_controller_alone(lab, controllers[0].broker_id, TOO_HIGH)
    controllers[1].launch()
    controllers[1].await_started()
    seen.await_status("begun wrongly", has_a_log_and_a_leader, "the log and the leader of controllers without flag")
    seen.preflight("begun wrongly")
    for each in controllers:
        faults.kill(each)
        shutil.rmtree(lab.folder / each.name / "data")
        # No leader is elected on the side: the tests say which one leads.
        each.has_flag, each.added = True, {"auto.leader.rebalance.enable": "false"}


def raise_the_epoch(lab: Lab) -> None:
    """Raise ``/controller_epoch`` above any that KRaft reaches: on a busy machine controllers elect more than once."""
    with connected(lab.zookeeper_connect) as client:
        before = client.exists("/controller").czxid
        change = client.transaction()
        change.set_data("/controller_epoch", b"90")
        change.delete("/controller")
        assert not [each for each in change.commit() if isinstance(each, Exception)]
        awaited(lambda: client.exists("/controller"), lambda found: found and found.czxid > before, "an election")


def has_a_log_and_a_leader(status: KraftStatus) -> bool:
    return status.read.zk_state == "NONE" and status.read.leader is not None


def before_dual_write(seen: KraftWalk) -> None:
    """A ``/migration`` of another operator or tool; a profile that names one of two controllers."""
    set_checkpoint(seen.lab, b"")
    seen.status("null checkpoint")
    set_checkpoint(seen.lab, json.dumps(LEFT_OVER).encode())
    seen.status("left-over checkpoint")
    set_checkpoint(seen.lab, json.dumps(NO_CHECKPOINT).encode())
    await_a_leader_named_alone(seen)


def change_replicas(seen: KraftWalk) -> None:
    """Other replicas, a smaller ISR and other leaders, the whole ISR, the preferred leaders: a diff after each."""
    lab, servers = seen.lab, seen.lab.migration
    reassign(servers, {("orders", 0): [2, 1], ("orders", 1): [2]})
    await_reassigned(servers)
    seen.diff("reassigned")
    second = servers.migrating[1]
    faults.stop(second)
    seen.diff("broker stopped")
    servers.roll_broker(second, MIGRATION)
    seen.diff("broker back")
    lab.admin.elect_leaders(ElectionType.PREFERRED).result(30)
    seen.diff("leaders elected")


def stop_a_broker_too_early(seen: KraftWalk) -> None:
    """Before ZooKeeper's controller has reached it: what R04 and the pause of a rollback are for."""
    for each in seen.lab.migration.controllers:
        faults.kill(each)
    faults.stop_too_early(seen.lab, 2)
    victim = faults.running(faults.broker(seen.lab, 2))
    seen.await_status("stopped too early", is_with_a_broker, "a broker that holds /controller")
    seen.noted["is_hung"] = victim.running
    victim.kill()


def is_with_a_broker(status: KraftStatus) -> bool:
    control = status.read.control
    return control is not None and control.controller_id is not None and not control.is_controller_persistent


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
