"""A group under load in the lab: who owns what by ZooKeeper and by every member's word, and the proof by history."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import polars as pl
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kit.clients.registration import parse_registration
from kit.consumer.zookeeper.assignors import Assignment, assign
from kit.errors import LabError
from kit.groups.read.owner_history import OwnerWatch
from kit.lab import Lab
from kit.lab.members.handles import Consumer
from kit.lab.members.old_consumers import OldMember
from kit.lab.members.python import PythonMember
from kit.lab.process import wait_until
from kit.proof.analyze.duplicates import CAUSES
from kit.proof.consumption import load_consumption, load_production
from kit.proof.verify import Proof, prove
from kit.tables import schema as tables
from tests.soak import Record, report

SETTLE_SECONDS = 90.0


class Group:
    """``members`` are those alive; those that left stay in ``everyone``.

    ``summary`` reports its figures to ``record_property``.
    """

    def __init__(
        self, lab: Lab, name: str, topics: Mapping[str, int], rate: float, record_property: Record | None = None
    ) -> None:
        self.lab, self.name, self.topics = lab, name, dict(topics)
        self.record_property = record_property
        self.members: list[Consumer] = []
        self.everyone: list[Consumer] = []
        lab.create_topics(self.topics)
        self.zookeeper = KazooClient(lab.zookeeper_connect)
        self.zookeeper.start(15)
        self.watch = OwnerWatch(self.zookeeper, name).start()
        self.producer = lab.start_producer(list(self.topics), rate)

    @property
    def partitions(self) -> set[tuple[str, int]]:
        return {(topic, number) for topic, count in self.topics.items() for number in range(count)}

    # Members

    def add_old(self, count: int = 1, version: str = "1.1.1", threads: int = 1, **wishes: Any) -> list[Consumer]:
        """Real JVM consumers, all in one process."""
        names = wishes.pop("topics", ",".join(self.topics))
        wanted = [OldMember(self.name, names, threads, **wishes) for _ in range(count)]
        return self._joined(self.lab.start_old_consumers(wanted, version))

    def add_python(self, flavour: str, count: int = 1, threads: int = 1, **wishes: Any) -> list[Consumer]:
        """Members in Python, each in a process of its own."""
        if not wishes.get("allow") and not wishes.get("deny"):
            wishes["topics"] = list(self.topics)
        wanted = [PythonMember(flavour, self.name, threads=threads, **wishes) for _ in range(count)]
        started = [self.lab.start_python_members([each], wait=False)[0] for each in wanted]
        for each in started:
            each.await_ready()
        return self._joined(started)

    def add_console(self) -> Consumer:
        """Java's console consumer of Kafka 3.9, of the first topic."""
        return self._joined([self.lab.start_console_consumer(self.name, next(iter(self.topics)))])[0]

    def _joined(self, started: Sequence[Consumer]) -> list[Consumer]:
        self.members += started
        self.everyone += started
        return list(started)

    def old_wish(self) -> list[OldMember]:
        return [OldMember(self.name, ",".join(self.topics))]

    def left(self, *gone: Consumer) -> None:
        """These are members no more."""
        self.members = [member for member in self.members if member not in gone]

    # ZooKeeper

    def owners(self) -> Assignment:
        """(topic, partition) → owner znode's text."""
        found = {}
        for topic, number in self.partitions:
            try:
                found[topic, number] = self.zookeeper.get(self.path(f"owners/{topic}/{number}"))[0].decode()
            except NoNodeError:
                continue
        return found

    def path(self, below: str) -> str:
        return f"/consumers/{self.name}/{below}"

    def shares(self) -> Counter[str]:
        """Consumer id → owned partitions."""
        return Counter(thread.rpartition("-")[0] for thread in self.owners().values())

    def subscriptions(self) -> dict[str, dict[str, int]]:
        """Registered consumer id → topic → threads."""
        found = {}
        for each in self.zookeeper.get_children(self.path("ids")):
            with suppress(NoNodeError):  # It left meanwhile.
                found[each] = parse_registration(self.zookeeper.get(self.path(f"ids/{each}"))[0]).topics(self.topics)
        return found

    def registered_ms(self, member: Consumer) -> list[int]:
        """Return when this member registered: again after each session that ended."""
        mine = [each for each in self.watch.rows() if each.kind == "member" and each.member_id == member.consumer_id]
        return sorted(each.from_ms for each in mine)

    def toggle(self, mode: str) -> None:
        self.zookeeper.ensure_path(self.path("migration"))
        if self.zookeeper.exists(self.path("migration/mode")):
            self.zookeeper.set(self.path("migration/mode"), mode.encode())
        else:
            self.zookeeper.create(self.path("migration/mode"), mode.encode())

    def offset(self, topic: str, number: int) -> int | None:
        """In ZooKeeper."""
        try:
            return int(self.zookeeper.get(self.path(f"offsets/{topic}/{number}"))[0])
        except NoNodeError:
            return None

    # Waiting

    def await_(self, condition: Callable[[], bool], what: str, seconds: float = SETTLE_SECONDS) -> None:
        try:
            wait_until(condition, f"{self.name}: {what}", seconds)
        except LabError as error:
            raise LabError(f"{error}\n{self.owners()}\n{self.logs()}") from None

    def await_agreed(self, strategy: str = "range", hash_form: str = "1.0", seconds: float = SETTLE_SECONDS) -> None:
        """``members`` alone are registered, owner znodes are what the assignor makes of that, and so says every member
        that can tell."""
        old = [member for member in self.members if member.kind == "old"]

        def agreed() -> bool:
            subscriptions, owners = self.subscriptions(), self.owners()
            topics = {topic: range(count) for topic, count in self.topics.items()}
            return (
                subscriptions.keys() == {member.consumer_id for member in old}
                and owners == assign(strategy, subscriptions, topics, hash_form)
                and all(member.group_assignment() in (None, owners) for member in old)
            )

        self.await_(agreed, f"all agree on the {strategy} assignment", seconds)

    def await_mode(self, kafka: bool, consumed: int, seconds: float = SETTLE_SECONDS) -> None:
        """Every migration-enabled member follows that coordination, and they consume so many partitions in all."""

        def settled() -> bool:
            gauges = [gauges_of(member) for member in self.members if member.events("METRICS")]
            return (
                bool(gauges)
                and all(each["ActiveKafkaCoordinationCount"] == kafka for each in gauges)
                and sum(each["ConsumedPartitionsCount"] for each in gauges) == consumed
            )

        self.await_(settled, f"{'Kafka' if kafka else 'ZooKeeper'} mode with {consumed} partitions consumed", seconds)

    def await_all_read(self) -> None:
        """Stop the producer and wait until every acknowledged record was delivered."""
        self.producer.stop()
        wanted = {(r["topic"], r["partition"], r["offset"]) for r in self.producer.acknowledged()}
        self.await_(lambda: wanted <= self.handed_out().keys(), f"all {len(wanted)} records delivered")

    # Proof

    def handed_out(self) -> Counter[tuple[str, int, int]]:
        return Counter((r["topic"], r["partition"], r["offset"]) for each in self.everyone for r in each.records())

    def last_ms(self) -> float:
        """Return when the last record was delivered."""
        return max(record["at_ms"] for each in self.everyone for record in each.records())

    def await_record_after(self, at_ms: float) -> None:
        self.await_(lambda: self.last_ms() > at_ms, "a record is delivered again")

    def proof(self) -> Proof:
        """Everything the members wrote down, against what was produced and who owned what."""
        self.producer.stop()
        consumers = [member.consumer_id for member in self.everyone]
        consumption = load_consumption(self.lab.consumption, self.name, consumers).records
        produced = load_production(self.lab.production).records.filter(pl.col("topic").is_in(list(self.topics)))
        history = pl.DataFrame(tables.OWNER_HISTORY.from_rows(self.watch.rows()))
        return prove(consumption, produced, history)

    def summary(self) -> dict[str, Any]:
        """The proof's one row; a test that fails shows its sentences, and who delivered what beside whom, and when."""
        proof = self.proof()
        row = proof.summary.row(0, named=True)
        if self.record_property is not None:
            twice = sum(row[f"duplicates_{cause}"] for cause in ("tail", "stale", "rewind"))
            figures = {"records": row["records"], "lost": row["lost"], "twice": twice}
            report(self.record_property, **figures, longest_pause_ms=row["longest_stall_ms"])
        print(json.dumps(row, default=str), proof.describe(), sep="\n")
        for found in (proof.overlaps, proof.unowned_consumption, proof.duplicates):
            print(*([] if found is None else found.to_dicts()), sep="\n")
        if not row["is_exclusive"]:
            print(*sorted(self.watch.rows(), key=lambda life: life.from_ms), sep="\n")
        return row

    def assert_silent_when_woken(self, sleeper: Consumer, woken_ms: float, member_again_ms: float) -> None:
        """Nothing is lost, and the sleeper delivers nothing between these times.

        SIGSTOP may hit the application between taking a record and writing it down: that one is in hand.
        """
        self.await_all_read()
        found = self.summary()
        in_hand = [each for each in sleeper.records() if woken_ms <= each["at_ms"] < member_again_ms]
        assert len(in_hand) <= 1, in_hand
        assert found["lost"] == 0
        assert max(found["overlaps"], found["unowned"], found["duplicates_stale"]) <= len(in_hand)

    def assert_nothing_repeated(self, *causes: str) -> None:
        """Check that what offramp's members delivered is not delivered again, by none of the causes; without causes by
        any.

        A stream of an old consumer may go on with a chunk that it was taking from its queue when a rebalance cleared
        the chunks and then committed: the rest of it is delivered after the commit, and again by the next owner,
        itself or another (``closeFetchersForQueues`` and ``ConsumerIterator.makeNext`` of Kafka 0.8 to 1.1).
        """
        found, jvm = self.proof().duplicates, self._old_jvm_members()
        repeated = [] if found is None else found.to_dicts()
        assert [row for row in repeated if row["consumer"] not in jvm and row["cause"] in (causes or CAUSES)] == []

    def _old_jvm_members(self) -> list[str]:
        return [member.consumer_id for member in self.everyone if member.process.name.startswith("old-")]

    def release_seconds(self) -> list[float]:
        """Per JVM member: from its registration to its last first claim, by ZooKeeper's own times."""
        lives = self.watch.rows()
        joined = {life.member_id: life.from_ms for life in lives if life.kind == "member"}
        claims: dict[str, list[int]] = {}
        for life in sorted(lives, key=lambda life: life.from_ms):
            if life.kind == "owner" and life.member_id in joined:
                claims.setdefault(life.member_id, []).append(life.from_ms)
        return [(claims[name][0] - joined[name]) / 1000 for name in self._old_jvm_members() if name in claims]

    def logs(self) -> str:
        """Return the last lines of the members' processes."""
        return "\n".join(f"{each.process.name}:\n{each.process.last_lines()}" for each in self.everyone)

    def close(self) -> None:
        for member in self.lab.consumers(self.name):
            if member.process.running:
                member.resume()
                member.kill()
        self.producer.stop()
        self.watch.stop()
        self.zookeeper.stop()
        self.zookeeper.close()


def gauges_of(member: Consumer) -> dict[str, float]:
    """Return a Python member's last figures of itself; -1 for a figure without a value yet."""
    said = member.events("METRICS")
    return defaultdict(lambda: -1.0, said[-1].value() if said else {})
