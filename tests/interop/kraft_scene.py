"""A lab that plans move to KRaft and back: each verb in this process, or in a process of its own that may be killed.

``kill_at``: the verb's process is killed (SIGKILL) at an event of its run, ``event/step/item/outcome`` with wildcards,
or some seconds after it; ``TRANSACTION``: when ZooKeeper has taken the transaction that hands control back, and the run
has not noted that yet.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError as ConfluentError, TopicPartition
from kafka.errors import KafkaError
from kazoo.client import KazooClient

from kit.clients.cluster import Cluster, kafka_settings
from kit.clients.nodes import fetch_node_metadata
from kit.engine.model.approval import approve
from kit.engine.model.event import Event
from kit.engine.model.plan import Plan, load_plan
from kit.engine.runs_folder import PLANS, PREFIX, add_approval
from kit.errors import OfframpError, TargetBusy
from kit.kraft.move.cluster_state import READS, read_cluster_state
from kit.kraft.move.plan import KraftPlanRequest
from kit.kraft.move.rehearsals import RehearsalResult, keep
from kit.kraft.move.sync import sync_problem
from kit.kraft.status import broker_addresses
from kit.lab.process import wait_until
from kit.lab.servers.migrating import connected
from kit.operations.operations import Operations
from kit.profile import load_profile
from tests.servers.awaiting import awaited
from tests.servers.kraft_walk import Ended, KraftWalk
from tests.soak import Record, report

OVERRIDES = {
    "controllers": ("preflight_known",),
    "dual write": ("preflight_known", "low_epoch"),
    "zookeeper": ("R03_known",),
    "finalised": ("soak",),
}
"""The facts that are unknown without the nodes' own files; on a busy machine controllers elect more than once at
first.
"""
VERB_S = 600.0
LOCK_S = 120.0
"""The lock of a process that was killed ends with its session of ZooKeeper."""
TRANSACTION = "transaction"
KILLED = -9
_CHILD = """
import os, signal, sys, threading
from fnmatch import fnmatchcase
from kit.kraft.move import hand_back
from kit.engine.rendering import text

where, after_s = sys.argv.pop(1), float(sys.argv.pop(1))
text_of, transaction = text.event_text, hand_back._transaction


def end():
    os.kill(os.getpid(), signal.SIGKILL)


def tell(event):
    if fnmatchcase("/".join(filter(None, (event.event, event.step_id, event.item, event.outcome))), where):
        threading.Timer(after_s, end).start() if after_s else end()
    return text_of(event)


def commit(*given):
    outcome = transaction(*given)
    if where == "transaction":
        end()
    return outcome


text.event_text, hand_back._transaction = tell, commit
from kit.cli.main import main
main()
"""
_MOVING = re.compile(
    r"/(controller(_epoch)?|migration|offramp(/.*)?|brokers/ids/.*|latest_producer_id_block|zookeeper.*"
    r"|consumers/[^/]+/(offsets|owners)/.*|(config/changes|isr_change_notification|log_dir_event_notification)/.*"
    r"|(kafka-acl.*|delegation_token/token)_?changes/.*)"
)
"""The znodes that differ between two moments of one cluster, whoever controls it."""
_LEADERS = ("leader", "leader_epoch", "controller_epoch", "isr", "version")


def vouch(cluster: Cluster, runs: Path) -> None:
    """Keep a result like ``offramp kraft rehearse`` after a rehearsal that went well: labs are rehearsed in a test
    of their own.
    """
    now = datetime.now(UTC)
    keep(runs, RehearsalResult(cluster.cluster_id, cluster.name, "5a" * 32, now, now, "ann", 3, {}))


def approve_as_bob(runs: Path, plan: Plan) -> None:
    """Approve as if from another login: this machine has one."""
    given = approve(
        plan,
        typed_subject=plan.subject,
        typed_digest_prefix=plan.digest[:8],
        approver="Bob",
        now=datetime.now(UTC),
        valid_for=timedelta(minutes=30),
        approved_as="bob",
    )
    add_approval(plan_file(runs, plan.digest), given)


def plan_file(runs: Path, digest: str) -> Path:
    return runs / PLANS / f"{digest[:PREFIX]}.json"


@dataclass
class KraftScene(KraftWalk):
    """``ended``: each verb's process; ``plans`` and ``dumps`` (of all znodes) by moment.

    ``offline``: partition → seconds of each time it had no leader, by the metadata of any broker.
    ``n_acknowledged``, ``lost`` and ``n_twice``: what ``read_back`` found.
    """

    ended: list[tuple[str, Ended]] = field(default_factory=list)
    plans: dict[str, Plan] = field(default_factory=dict)
    dumps: dict[str, dict[str, Any]] = field(default_factory=dict)
    offline: dict[str, list[float]] = field(default_factory=dict)
    n_acknowledged: int = 0
    lost: set[tuple[int, int]] | None = None
    n_twice: int = 0

    @property
    def n_killed(self) -> int:
        return sum(each.exit_code == KILLED for _, each in self.ended)

    # Verbs in this process

    @contextmanager
    def operations(self, tell: Callable[[Event], None] | None = None) -> Iterator[Operations]:
        with self.connected() as cluster:
            vouch(cluster, self.runs)
            yield Operations(cluster, self.runs, tell=tell)

    def carry_out(self, moment: str, to: str, *overrides: str) -> Plan:
        """Plan, approve and act; the run must be verified."""
        with self.operations() as operations:
            plan = operations.make_plan(KraftPlanRequest(to), (*OVERRIDES.get(to, ()), *overrides))
            operations.approve(plan, plan.subject, plan.digest[:8])
            result = operations.begin(plan).act()
        assert result.state == "VERIFIED", result.sentence
        self.plans[moment] = plan
        return plan

    def refuse_plan(self, moment: str, to: str, error: type[OfframpError] = OfframpError) -> None:
        with self.operations() as operations, pytest.raises(error) as caught:
            operations.make_plan(KraftPlanRequest(to), OVERRIDES.get(to, ()))
        self.refusals[moment] = str(caught.value)

    # Verbs in processes of their own

    def offramp(self, *words: str, kill_at: str = "-", after_s: float = 0.0) -> Ended:
        command = [sys.executable, "-c", _CHILD, kill_at, str(after_s), *words, "--profile-file", str(self.file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=VERB_S, env={**os.environ})
        found = Ended(done.returncode, done.stdout, done.stderr)
        self.ended.append((" ".join(words), found))
        assert "Traceback" not in found.stderr, found.stderr
        return found

    def must(self, *words: str) -> Ended:
        """A verb that ends well."""
        ended = self.offramp(*words)
        assert ended.exit_code == 0, ended.stderr
        return ended

    def refuse(self, moment: str, error: type[OfframpError], *words: str) -> Ended:
        """A verb that ends by this error."""
        ended = self.offramp(*words)
        assert ended.exit_code == error.exit_code, ended.stderr
        self.refusals[moment] = ended.stderr
        return ended

    def plan(self, *to: str, override: bool = True) -> dict[str, Any]:
        """Plan and approve; finalising is approved by a second person. ``to``: a phase, or options."""
        overrides = [word for name in OVERRIDES.get(to[0], ()) for word in ("--override", name)] if override else []
        with self.connected() as cluster:
            vouch(cluster, self.runs)
        words = to if to[0].startswith("--") else ("--to", *to)
        plan: dict[str, Any] = json.loads(self.must("plan", "kraft", *words, *overrides, "--json").stdout)
        digest, consent = plan["digest"], plan["consent"]
        if consent["second_person"]:
            approve_as_bob(self.runs, load_plan(plan_file(self.runs, digest)))
        else:
            self.must("approve", digest[:8], "--subject", consent["subject"], "--digest", digest[:8])
        return plan

    def begin(self, *to: str, kill_at: str = "-", after_s: float = 0.0) -> tuple[str, Ended]:
        """Plan, approve, act: the run's id, and how the process ended."""
        return self.act(self.plan(*to)["digest"], kill_at, after_s)

    def act(self, digest: str, kill_at: str = "-", after_s: float = 0.0) -> tuple[str, Ended]:
        before = self.run_ids()
        ended = self.offramp("act", digest[:8], kill_at=kill_at, after_s=after_s)
        (run,) = self.run_ids() - before
        return run, ended

    def go(self, *to: str) -> str:
        run, ended = self.begin(*to)
        assert ended.exit_code == 0, ended.stderr
        return run

    def go_killed(self, to: str, *kills: tuple[str, float]) -> str:
        """Killed at each of these in turn, resumed each time; the last one ends verified."""
        (first, after_s), *rest = kills
        run, ended = self.begin(to, kill_at=first, after_s=after_s)
        assert ended.exit_code == KILLED, (first, ended.exit_code, ended.stderr)
        for where, seconds in rest:
            ended = self.resume(run, where, seconds)
            assert ended.exit_code == KILLED, (where, ended.exit_code, ended.stderr)
        ended = self.resume(run)
        assert ended.exit_code == 0, ended.stderr
        return run

    def resume(self, run: str, kill_at: str = "-", after_s: float = 0.0, verb: str = "resume") -> Ended:
        return self.once_unlocked(verb, run, kill_at, after_s)

    def once_unlocked(self, verb: str, of: str, kill_at: str = "-", after_s: float = 0.0) -> Ended:
        """Tried again while a process that was killed still has the lock."""
        deadline = time.monotonic() + LOCK_S
        while True:
            ended = self.offramp(verb, of, kill_at=kill_at, after_s=after_s)
            if ended.exit_code != TargetBusy.exit_code or time.monotonic() > deadline:
                return ended

    def run_ids(self) -> set[str]:
        return {each.parent.name for each in self.runs.glob("*/events.jsonl")}

    def events(self, run: str) -> list[dict[str, Any]]:
        """The events of a run, without a last line that is not whole yet."""
        *lines, _ = (self.runs / run / "events.jsonl").read_bytes().split(b"\n")
        return [json.loads(line) for line in lines]

    def meanwhile(self, event: str, do: Callable[[], None]) -> Future[None]:
        """Do something as soon as a run that begins from now on has that event."""
        before, done = self.run_ids(), Future[None]()

        def has_come() -> bool:
            return any(fnmatchcase(_name(each), event) for run in self.run_ids() - before for each in self.events(run))

        def watch() -> None:
            try:
                wait_until(has_come, event, VERB_S)
                done.set_result(do())
            except Exception as error:  # noqa: BLE001 - who waits for the future gets it
                done.set_exception(error)

        threading.Thread(target=watch, daemon=True).start()
        return done

    # Observations

    def await_sound(self) -> None:
        """Until every broker answers at the place that it names, and every ISR is full."""

        def problem() -> str | None:
            try:
                with self.connected() as cluster:
                    there = broker_addresses(cluster)
                    facts = read_cluster_state(cluster, there, READS).facts
                    return sync_problem(cluster, facts, there) if len(there) == n_brokers else f"only {there} answer"
            except OfframpError as error:
                return str(error)

        n_brokers = len(self.lab.migration.migrating)
        awaited(problem, lambda found: found is None, "all brokers in sync")

    def look(self, moment: str) -> None:
        """The status, and every znode but for leaders, epochs and what is a moment's."""
        self.status(moment)
        self.dump(moment)

    def dump(self, moment: str) -> None:
        with connected(self.lab.zookeeper_connect, self.lab.security) as client:
            self.dumps[moment] = dict(_znodes(client, "/"))

    def changed(self, before: str, after: str) -> dict[str, tuple[Any, Any]]:
        """Path → what it held at both moments, where that differs."""
        one, two = self.dumps[before], self.dumps[after]
        return {path: (one.get(path), two.get(path)) for path in one | two if one.get(path) != two.get(path)}

    def access_lists(self, paths: Iterable[str]) -> dict[str, list[tuple[str, str, int]]]:
        """Scheme, id and rights of each entry, of znodes that are there."""
        with connected(self.lab.zookeeper_connect, self.lab.security) as client:
            lists = {path: client.get_acls(path)[0] for path in paths}
        return {path: sorted((each.id.scheme, each.id.id, each.perms) for each in acl) for path, acl in lists.items()}

    def read_back(self, topic: str, partitions: int) -> None:
        """Read the topic to its end, and count the records that were acknowledged.

        ``lost``: partition and number of those that can't be read; ``n_twice``: records at more than one offset.
        A record that was sent again is acknowledged without its offset; all others have to be where they were put.
        """
        rows = [row for row in self._acknowledged() if row["topic"] == topic]
        left = {(row["partition"], row["number"]): row["offset"] for row in rows}
        assert len(left) == len(rows), "one producer counts its records"
        self.n_acknowledged, read = len(rows), Counter[tuple[int, int]]()
        for partition, number, offset in _records(self.lab.servers.addresses(), topic, partitions):
            read[partition, number] += 1
            if left.get((partition, number), -1) in (None, offset):
                del left[partition, number]
        self.lost, self.n_twice = set(left), sum(times > 1 for times in read.values())

    def report(self, record_property: Record, done: str | None = None) -> None:
        """Report to the summary of ``make soak`` what ``read_back`` found; a pause is one of a partition's producer."""
        found = {"records": self.n_acknowledged, "lost": len(self.lost), "twice": self.n_twice}
        report(record_property, done, **found, longest_pause_ms=max(self.longest_pauses_ms()))

    def longest_pauses_ms(self, begin_ms: float = 0, end_ms: float = inf) -> list[int]:
        """Between two acknowledgements of one partition, the longest of each partition."""
        times: dict[int, list[int]] = {}
        for row in self._acknowledged():
            if begin_ms <= row["at_ms"] <= end_ms:
                times.setdefault(row["partition"], []).append(row["at_ms"])
        return [max((b - a for a, b in pairwise(each)), default=0) for each in times.values()]

    def _acknowledged(self) -> list[dict[str, Any]]:
        files = self.lab.production.iterdir()
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


class LeaderWatch(threading.Thread):
    """Asks the brokers in turn, four times a second, which partitions have no leader."""

    def __init__(self, scene: KraftScene) -> None:
        super().__init__(daemon=True)
        self._scene, self._over = scene, threading.Event()
        self._settings = kafka_settings(load_profile(file=scene.file))
        self._since: dict[str, float] = {}
        self.n_looks = 0

    def run(self) -> None:
        while not self._over.wait(0.25):
            self._look()

    def end(self) -> None:
        """A partition that has no leader now had none until now."""
        self._over.set()
        self.join()
        self._note(set())

    def _look(self) -> None:
        for address in self._scene.lab.bootstrap_servers.split(","):
            try:
                told = fetch_node_metadata(self._settings, address)
            except (OfframpError, KafkaError, OSError, ValueError):
                continue
            self.n_looks += 1
            self._note({f"{row.topic}-{row.partition}" for row in told.topic_partitions if row.leader is None})
            return

    def _note(self, without: set[str]) -> None:
        now = time.monotonic()
        for name in set(self._since) - without:
            self._scene.offline.setdefault(name, []).append(now - self._since.pop(name))
        for name in without - set(self._since):
            self._since[name] = now


def _records(bootstrap_servers: str, topic: str, partitions: int) -> Iterator[tuple[int, int, int]]:
    """Partition, number and offset of each record until the topic's end; raises AssertionError after two minutes."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "reader", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    ended, deadline = set[int](), time.monotonic() + 120
    while len(ended) < partitions:
        assert time.monotonic() < deadline, f"only the partitions {ended} were read to their end"
        for each in consumer.consume(2000, 0.5):
            if each.error() is None:
                yield each.partition(), int(each.value()), each.offset()
            elif each.error().code() == ConfluentError._PARTITION_EOF:
                ended.add(each.partition())
    consumer.close()


def _name(event: Mapping[str, Any]) -> str:
    return "/".join(filter(None, (event["event"], event["step_id"], event["item"], event["outcome"])))


def _znodes(client: KazooClient, path: str) -> Iterator[tuple[str, Any]]:
    if _MOVING.fullmatch(path):
        return
    data, stat = client.get(path)
    if stat.ephemeralOwner == 0:
        yield path, _plain(path, data)
    for child in sorted(client.get_children(path)):
        yield from _znodes(client, f"{path.rstrip('/')}/{child}")


def _plain(path: str, data: bytes | None) -> Any:
    try:
        value = json.loads(data or b"null")
    except ValueError:
        return data
    if path.endswith("/state") and isinstance(value, dict):
        return {name: each for name, each in value.items() if name not in _LEADERS} | {"isr": sorted(value["isr"])}
    return value
