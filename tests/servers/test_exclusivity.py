"""The proof by history judges real members: what is in order is found clean, what is not is found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf

import polars as pl
from kazoo.client import KazooClient

from kit.groups.read.owner_history import OwnerWatch, load_owner_history
from kit.lab import Lab
from kit.lab.members.handles import Consumer
from kit.lab.members.new_consumers import PacedProducer
from kit.lab.process import wait_until
from kit.lab.servers.tcp_proxy import TcpProxy
from kit.proof.analyze.duplicates import CAUSES
from kit.proof.consumption import load_consumption, load_production, verify_loaded
from kit.proof.verify import Proof, prove
from kit.tables import schema as tables

PARTITIONS = 4
QUICK = {
    "zookeeper.session.timeout.ms": "2000",
    "zookeeper.connection.timeout.ms": "60000",
    "rebalance.backoff.ms": "300",
    "rebalance.max.retries": "20",
    "auto.commit.interval.ms": "200",
}
SECONDS = 90


@dataclass
class Trial:
    """One group under load, watched."""

    lab: Lab
    name: str
    watch: OwnerWatch
    producer: PacedProducer
    members: list[Consumer] = field(default_factory=list)

    def start(self, wait: bool = True, **settings: str) -> Consumer:
        wanted = QUICK | {name.replace("_", "."): value for name, value in settings.items()}
        member = self.lab.start_old_consumer(self.name, self.name, settings=wanted, wait=wait)
        self.members.append(member)
        return member

    def until(self, ready: Callable[[], bool], what: str) -> None:
        wait_until(ready, f"{self.name}: {what}", SECONDS)

    def owners(self) -> list[str]:
        """The owner of each partition, as the watcher knows it."""
        return [row.member_id for row in self.watch.rows() if row.kind == "owner" and row.until_ms is None]

    def until_owned_by(self, *members: Consumer) -> None:
        """Wait until these and no other operator or tool own all partitions, and have delivered something since."""
        wanted = {member.consumer_id for member in members}
        self.until(lambda: len(self.owners()) == PARTITIONS and set(self.owners()) == wanted, f"owned by {wanted}")
        for member in members:
            self.until_more(member, 10)

    def until_more(self, member: Consumer, records: int) -> None:
        target = len(member.records()) + records
        self.until(lambda: len(member.records()) >= target, f"{records} more records delivered")

    def proof(self, until_ms: float = inf) -> Proof:
        """Judge what happened until then, once everything that was produced is delivered."""
        self.producer.stop()
        written = {(row["partition"], row["offset"]) for row in self.producer.acknowledged()}
        self.until(lambda: written <= self.handed_out(), "everything delivered")
        owners = pl.DataFrame(tables.OWNER_HISTORY.from_rows(self.watch.rows()))
        consumption = load_consumption(self.lab.consumption, self.name, [m.consumer_id for m in self.members])
        production = load_production(self.lab.production)
        verify_loaded(production)
        proof = prove(consumption.records.filter(pl.col("at_ms") < until_ms), production.records, owners)
        for found in (proof.summary, proof.overlaps, proof.unowned_consumption, proof.duplicates):
            print(*([] if found is None else found.to_dicts()), sep="\n")
        print(*sorted(self.watch.rows(), key=lambda life: life.from_ms), sep="\n")
        return proof

    def first_ms(self, member: Consumer) -> dict[int, int]:
        """Partition → when the member delivered its first record of it."""
        return {row["partition"]: row["at_ms"] for row in reversed(member.records())}

    def last_ms(self, member: Consumer) -> dict[int, int]:
        return {row["partition"]: row["at_ms"] for row in member.records()}

    def until_beside(self, member: Consumer, other: Consumer) -> None:
        """Wait until the member delivered a record of every partition after the other one had begun there."""

        def is_beside() -> bool:
            began, last = self.first_ms(other), self.last_ms(member)
            return all(last.get(each, 0) > began.get(each, inf) for each in range(PARTITIONS))

        self.until(is_beside, f"{member.consumer_id} continues beside {other.consumer_id}")

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
    assert (row["is_exclusive"], row["is_complete"]) == (True, True), proof.describe()
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
    assert (row["is_exclusive"], row["is_complete"]) == (True, True), proof.describe()
    assert set(proof.duplicates.select("cause", "cause_consumer").rows()) <= {("tail", dies.consumer_id)}
    # A session of 2000 ms ends as long after its last ping, which comes every third of it.
    assert row["longest_stall_ms"] > 1300, "nobody is given up before its session ends"


def test_a_stopped_member_continues_as_a_stale_owner(lab):
    """Specification of the old consumer: it examines no session before it hands a record out.

    Judged until ZooKeeper can tell it that its session has ended. Then both let go and claim, within milliseconds of
    the last stale record, and whose record was in time is not told by clocks.
    """
    with TcpProxy(lab.zookeeper_connect) as cable, trial(lab, "exclusive-stale") as group:
        sleeps = group.start(zookeeper_connect=cable.address)
        group.until_owned_by(sleeps)
        stays = group.start()
        group.until_owned_by(sleeps, stays)
        sleeps.pause()
        cable.cut()
        group.until_owned_by(stays)
        group.until(lambda: len(group.first_ms(stays)) == PARTITIONS, "records of all partitions delivered")
        sleeps.resume()
        group.until_more(sleeps, 10)
        told_ms = time.time() * 1000
        cable.mend()
        group.until_owned_by(sleeps, stays)
        stale, whole = group.proof(told_ms), group.proof()
    assert summary(whole)["is_complete"]
    row = summary(stale)
    assert row["is_exclusive"] is False
    assert set(stale.overlaps.filter("is_certain").select("consumer", "successor").rows()) == {
        (sleeps.consumer_id, stays.consumer_id)
    }
    assert set(stale.unowned_consumption["consumer"]) == {sleeps.consumer_id}
    assert row["overlapping_records"] >= 10
    assert set(stale.duplicates.filter(cause="stale")["cause_consumer"]) == {sleeps.consumer_id}
    assert summary(proof_without_owners(group, stale, told_ms))["is_exclusive"] is False


def proof_without_owners(group: Trial, proof: Proof, until_ms: float) -> Proof:
    consumption = load_consumption(group.lab.consumption, group.name, set(proof.consumption_intervals["consumer"]))
    records = consumption.records.filter(pl.col("at_ms") < until_ms)
    return prove(records, load_production(group.lab.production).records)


def test_two_systems_in_one_group(lab):
    """Specification: the coordinator gives a Kafka consumer all partitions that the old members read already."""
    with trial(lab, "exclusive-two") as group:
        old = group.start()
        group.until_owned_by(old)
        new = lab.start_new_consumer(group.name, group.name)
        group.members.append(new)
        group.until_more(new, 50)
        group.until_beside(old, new)
        group.until_more(old, 50)
        proof = group.proof()
    row = summary(proof)
    assert (row["is_exclusive"], row["is_complete"]) == (False, True)
    double = proof.overlaps.filter("is_certain", consumer=old.consumer_id, successor=new.consumer_id)
    assert set(double["partition"]) == set(range(PARTITIONS))
    # The two members race: the later delivery of a record decides the kind of duplicate.
    assert row["overlapping_records"] >= 50
    assert sum(row[f"duplicates_{cause}"] for cause in CAUSES) >= 50
    assert set(proof.unowned_consumption.select("consumer", "is_registered").rows()) == {(new.consumer_id, False)}
