"""A group under load on a cluster without ZooKeeper, whose members change their protocol; what they consumed."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from kit.clients.cluster import Cluster
from kit.errors import ConnectError, NotFound
from kit.lab import Lab
from kit.lab.members.java import JavaMember
from kit.lab.members.new_consumers import NewMember
from kit.moves.protocol.state import ProtocolState, read_protocol_state
from kit.proof.consumption import load_consumption, load_production
from kit.proof.verify import Proof, prove
from tests.servers.awaiting import SECONDS, awaited

PARTITIONS, RATE = 6, 100.0


class ProtocolGroup:
    """``name`` is the group and its topic. The members that start it are classic ones, each in its own process."""

    def __init__(self, lab: Lab, cluster: Cluster, name: str, rate: float = RATE, copies: int = 1) -> None:
        self.lab, self.cluster, self.name = lab, cluster, name
        lab.create_topic(name, PARTITIONS, copies)
        self.producer = lab.start_producer(name, rate)

    def start(self, members: Sequence[NewMember | JavaMember]) -> None:
        """Start members without waiting for one another, then wait until the group is settled."""
        started = [
            self.lab.start_java_member(each, wait=False)
            if isinstance(each, JavaMember)
            else self.lab.start_new_consumers([each], wait=False)[0]
            for each in members
        ]
        for consumer in started:
            consumer.await_ready()
        self.settled(len(members))

    def state(self) -> ProtocolState:
        return read_protocol_state(self.cluster, self.name)

    def coordinator(self) -> int | None:
        """The broker that coordinates the group now; None while none does."""
        state = self.readable_state()
        return None if state is None else state.coordinator

    def settled(self, n_members: int) -> ProtocolState:
        """The group once it has that many members and is settled."""
        state = awaited(
            self.readable_state,
            lambda it: it is not None and it.is_settled and len(it.members) == n_members,
            f"{self.name} settled",
        )
        assert state is not None
        return state

    def settled_as_started(self) -> ProtocolState:
        """The group once it is settled and its members are exactly the processes that run."""

        def is_so(state: ProtocolState | None) -> bool:
            running = sorted(each.consumer_id for each in self.lab.consumers(self.name) if each.process.running)
            found = [] if state is None else sorted(each.client_id for each in state.members)
            return state is not None and found == running and (state.is_settled or not found)

        # Clients find a coordinator that moved twice after minutes, if the machine is busy.
        state = awaited(self.readable_state, is_so, f"{self.name} settled with the members that run", 5 * SECONDS)
        assert state is not None
        return state

    def readable_state(self) -> ProtocolState | None:
        """The group now; None while it can't be read, since its coordinator moves."""
        try:
            return self.state()
        except (ConnectError, NotFound):
            return None

    def proof(self) -> Proof:
        """Stop the load, wait until everything was consumed, and judge what every member wrote down."""
        self.producer.stop()
        acknowledged = {(each["partition"], each["offset"]) for each in self.producer.acknowledged()}
        awaited(lambda: len(acknowledged - self._consumed()), lambda left: left == 0, f"{self.name} to be consumed")
        consumers = [each.consumer_id for each in self.lab.consumers(self.name)]
        consumption = load_consumption(self.lab.consumption, self.name, consumers).records
        production = load_production(self.lab.production).records.filter(pl.col("topic") == self.name)
        return prove(consumption, production)

    def _consumed(self) -> set[tuple[int, int]]:
        every = self.lab.consumers(self.name)
        return {(each["partition"], each["offset"]) for member in every for each in member.records()}


def assert_each_once(group: ProtocolGroup, killed: bool = False, moved: bool = False) -> None:
    """Every record was consumed once, and no partition by two members at a time.

    ``killed``: a member was killed, so the tail that it had not committed was consumed again by its successor.
    ``moved``: a coordinator was killed, so a member that joined again may have read its own tail again.
    """
    proof = group.proof()
    found = proof.summary.row(0, named=True)
    twice = {name for name in found if name.startswith("duplicates") and found[name]}
    allowed = {"duplicates_tail": killed, "duplicates_rewind": moved}
    assert twice <= {name for name, is_allowed in allowed.items() if is_allowed}, proof.describe()
    assert (found["lost"], found["overlaps"], found["is_exclusive"]) == (0, 0, True), proof.describe()
