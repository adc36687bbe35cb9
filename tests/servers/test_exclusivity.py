"""The proof by history judges real members: what is in order is found clean, what is not is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import polars as pl
from kazoo.client import KazooClient

from kit.analyze.proof.duplicates import CAUSES
from kit.consumption import load_consumption, load_production, verify_loaded
from kit.lab import Lab
from kit.lab.members.handles import Consumer
from kit.lab.members.new_consumers import PacedProducer
from kit.lab.process import wait_until
from kit.proof import Proof, prove
from kit.read.owner_history import OwnerWatch, load_owner_history
from kit.tables import schema as tables

PARTITIONS = 4
QUICK = {
    "zookeeper.session.timeout.ms": "2000",
    "rebalance.backoff.ms": "300",
    "rebalance.max.retries": "20",
    "auto.commit.interval.ms": "200",
}
SECONDS = 30


@dataclass
class Trial:
    """One group under load, watched."""

    lab: Lab
    name: str
    watch: OwnerWatch
    producer: PacedProducer
    members: list[Consumer] = field(default_factory=list)

    def start(self, wait: bool = True) -> Consumer:
        member = self.lab.start_old_consumer(self.name, self.name, settings=QUICK, wait=wait)
        self.members.append(member)
        return member

    def until(self, ready: Callable[[], bool], what: str) -> None:
        wait_until(ready, f"{self.name}: {what}", SECONDS)

    def owners(self) -> list[str]:
        """The owner of each partition, as the watcher knows it."""
        return [row.member_id for row in self.watch.rows() if row.kind == "owner" and row.until_ms is None]

    def until_owned_by(self, *members: Consumer) -> None:
        """Wait until these and nobody else own all partitions, and have handed out something since."""
        wanted = {member.consumer_id for member in members}
        self.until(lambda: len(self.owners()) == PARTITIONS and set(self.owners()) == wanted, f"owned by {wanted}")
        for member in members:
            self.until_more(member, 10)

    def until_more(self, member: Consumer, records: int) -> None:
        target = len(member.records()) + records
        self.until(lambda: len(member.records()) >= target, f"{records} more records handed out")

    def proof(self) -> Proof:
        """Judge what happened once everything that was produced is handed out."""
        self.producer.stop()
        written = {(row["partition"], row["offset"]) for row in self.producer.acknowledged()}
        self.until(lambda: written <= self.handed_out(), "everything handed out")
        owners = pl.DataFrame(tables.OWNER_HISTORY.from_rows(self.watch.rows()))
        consumption = load_consumption(self.lab.consumption, self.name, [m.consumer_id for m in self.members])
        production = load_production(self.lab.production)
        verify_loaded(production)
        return prove(consumption.records, production.records, owners)

    def handed_out(self) -> set[tuple[int, int]]:
        return {(row["partition"], row["offset"]) for member in self.members for row in member.records()}


@contextmanager
def trial(lab: Lab, name: str) -> Iterator[Trial]:
    lab.create_topic(name, PARTITIONS)
    client = KazooClient(lab.zookeeper_connect)
    client.start(15)
    file = lab.folder / f"{name}-owners.jsonl"
    with OwnerWatch(client, name, file) as watch:
        running = Trial(lab, name, watch, lab.start_producer(name, rate=200))
        try:
            yield running
        finally:
            for process in {member.process.pid: member.process for member in running.members}.values():
                process.kill()
            running.producer.process.kill()
    assert set(load_owner_history(file)) == set(watch.rows())
    client.stop()
    client.close()


def summary(proof: Proof) -> dict:
    (row,) = proof.summary.to_dicts()
    return row


def test_a_member_joins_and_leaves(lab):
    with trial(lab, "exclusive-clean") as group:
        stays = group.start()
        group.until_owned_by(stays)
        comes_and_goes = group.start()
        group.until_owned_by(stays, comes_and_goes)
        comes_and_goes.stop()
        group.until_owned_by(stays)
        proof = group.proof()
    row = summary(proof)
    assert (row["is_exclusive"], row["is_complete"]) == (True, True), proof.told()
    assert (row["overlaps"], row["doubtful_overlaps"], row["unowned"]) == (0, 0, 0)
    assert proof.duplicates.is_empty(), proof.duplicates
    assert row["handovers"] >= 4
    assert 0 <= row["longest_handover_ms"] < 10_000
    assert set(proof.consumption_intervals["consumer"]) == {stays.consumer_id, comes_and_goes.consumer_id}


def test_a_killed_member_leaves_nothing_but_a_tail(lab):
    with trial(lab, "exclusive-killed") as group:
        dies, stays = group.start(wait=False), group.start(wait=False)
        group.until_owned_by(dies, stays)
        dies.kill()
        group.until_owned_by(stays)
        proof = group.proof()
    row = summary(proof)
    assert (row["is_exclusive"], row["is_complete"]) == (True, True), proof.told()
    assert set(proof.duplicates.select("cause", "cause_consumer").rows()) <= {("tail", dies.consumer_id)}
    assert row["longest_stall_ms"] > 1500, "nobody is given up before its session ends"


def test_a_stopped_member_goes_on_as_a_stale_owner(lab):
    """Specification of the old consumer: it looks at no session before it hands a record out."""
    with trial(lab, "exclusive-stale") as group:
        sleeps, stays = group.start(wait=False), group.start(wait=False)
        group.until_owned_by(sleeps, stays)
        sleeps.pause()
        group.until_owned_by(stays)
        sleeps.resume()
        group.until_owned_by(sleeps, stays)
        proof = group.proof()
    row = summary(proof)
    assert (row["is_exclusive"], row["is_complete"]) == (False, True)
    assert set(proof.overlaps.filter("is_certain")["consumer"]) == {sleeps.consumer_id}
    assert set(proof.unowned_consumption["consumer"]) == {sleeps.consumer_id}
    assert row["overlapping_records"] > 0
    stale = proof.duplicates.filter(cause="stale")
    assert set(stale["cause_consumer"]) == {sleeps.consumer_id}
    by_offsets = proof_without_owners(group, proof)
    assert summary(by_offsets)["is_exclusive"] is False


def proof_without_owners(group: Trial, proof: Proof) -> Proof:
    consumption = load_consumption(group.lab.consumption, group.name, set(proof.consumption_intervals["consumer"]))
    return prove(consumption.records, load_production(group.lab.production).records)


def test_two_systems_in_one_group(lab):
    """Specification: the coordinator gives a Kafka consumer all partitions that the old members read already."""
    with trial(lab, "exclusive-two") as group:
        old = group.start()
        group.until_owned_by(old)
        new = lab.start_new_consumer(group.name, group.name)
        group.members.append(new)
        group.until_more(new, 50)
        group.until_more(old, 50)
        proof = group.proof()
    row = summary(proof)
    assert (row["is_exclusive"], row["is_complete"]) == (False, True)
    assert set(proof.overlaps["successor"]) == {new.consumer_id}
    assert set(proof.overlaps["partition"]) == set(range(PARTITIONS))
    # Whose hand-out of a record is the second one, and so what kind of duplicate it is, the two race for.
    assert row["overlapping_records"] >= 50
    assert sum(row[f"duplicates_{cause}"] for cause in CAUSES) >= 50
    assert set(proof.unowned_consumption.select("consumer", "is_registered").rows()) == {(new.consumer_id, False)}
