"""The end of ``make demo``: one group from OZKCCs to Kafka consumers and back, under load, and the proof by history."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
from kazoo.client import KazooClient

from kit import Profile, tables
from kit.clients.cluster import Cluster, connect, zookeeper_settings
from kit.engine.model.event import Event
from kit.engine.model.record import REPORT
from kit.errors import NothingToDo, RunError
from kit.groups.read.owner_history import OwnerWatch
from kit.lab import fleet
from kit.lab.members.handles import consumption_folder
from kit.lab.members.new_consumers import PacedProducer, launch_producer, production_folder
from kit.lab.process import ProcessSupervisor, wait_until
from kit.moves.group.plan import PATH, GroupPlanRequest
from kit.operations.operations import Operations, operator
from kit.proof.consumption import load_consumption, load_production
from kit.proof.verify import Proof, handed_out_of, prove
from kit.text.quantity import quantity

RECORDS_PER_SECOND = 200.0
READ_SECONDS = 60.0
SOAK_SECONDS = 2.0
TOLD = ("planned", "verified", "failed")


def migrate_and_prove(profile: Profile, runs: Path, say: Callable[[str], None]) -> Proof:
    """Move ``fleet.MIGRATED`` of the running lab along the whole path and back.

    Raises:
        RunError: a run did not end verified, or the history proves no exclusive and complete consumption.
    """
    group, topic = fleet.MIGRATED.group, fleet.MIGRATED.topics
    lab, since = profile.file.parent, round(time.time() * 1000)
    with connect(profile) as cluster, _watched(cluster, group) as watch, _load(cluster, topic) as (producer, written):
        operations = Operations(cluster, runs, tell=lambda event: _tell(event, say))
        for stage in (PATH[-1], PATH[0]):
            _move(operations, group, stage, say)
        producer.stop()
        say(f"waiting until all {quantity(len(producer.acknowledged()), 'record')} written meanwhile were delivered")
        wait_until(lambda: _has_all(lab, group, producer), f"group {group} to read all records", READ_SECONDS)
        members = _consumption(lab, group)
        produced = pl.concat([load_production(folder).records for folder in (production_folder(lab), written)])
    history = pl.DataFrame(tables.OWNER_HISTORY.from_rows(watch.rows()))
    written_since = produced.filter((pl.col("topic") == topic) & (pl.col("at_ms") >= since))
    proof = prove(handed_out_of(members, written_since), written_since, history)
    row = proof.summary.row(0, named=True)
    if not (row["is_exclusive"] and row["is_complete"]):
        raise RunError(
            f"group {group}: the records do not prove that none was lost or read by two members:\n{proof.describe()}"
        )
    return proof


def _move(operations: Operations, group: str, stage: str, say: Callable[[str], None]) -> None:
    request = GroupPlanRequest(group, stage, soak_s=SOAK_SECONDS, min_stable_s=0.0, observe_s=2.0)
    try:
        plan = operations.make_plan(request)
    except NothingToDo:
        say(f"group {group} is at {stage!r} already")
        return
    approved = f"approved by {operator()} for the demo"
    say(f"plan {plan.digest[:8]}: to {stage!r} in {quantity(len(plan.steps), 'step')}; {approved}")
    operations.approve(plan, plan.subject, plan.digest)
    result = operations.begin(plan).act()
    result.raise_unless()
    say(f"{result.sentence} Evidence: {(operations.runs / result.run_id / REPORT).absolute()}")


def _tell(event: Event, say: Callable[[str], None]) -> None:
    if event.event in TOLD:
        say(f"  {event.step_id}: {event.sentence or event.error}")


@contextmanager
def _watched(cluster: Cluster, group: str) -> Iterator[OwnerWatch]:
    """The group's owner znodes, by a connection of their own."""
    client = KazooClient(cluster.profile.zookeeper_connect, **zookeeper_settings(cluster.profile))
    client.start()
    try:
        with OwnerWatch(client, group) as watch:
            yield watch
    finally:
        client.stop()
        client.close()


@contextmanager
def _load(cluster: Cluster, topic: str) -> Iterator[tuple[PacedProducer, Path]]:
    """A producer, and the folder with what was acknowledged to it."""
    supervisor = ProcessSupervisor()
    try:
        written = production_folder(supervisor.folder)
        written.mkdir()
        yield launch_producer(supervisor, cluster.profile.bootstrap_servers, [topic], RECORDS_PER_SECOND, 1), written
    finally:
        supervisor.close()


def _consumption(lab: Path, group: str) -> pl.DataFrame:
    """Return the files of every consumer that the lab ever started for the group: their ids begin with its name."""
    records = load_consumption(consumption_folder(lab), group).records
    return records.filter(pl.col("consumer").str.starts_with(group))


def _has_all(lab: Path, group: str, producer: PacedProducer) -> bool:
    read = set(_consumption(lab, group).select("partition", "offset").rows())
    return all((record["partition"], record["offset"]) in read for record in producer.acknowledged())
