"""A member of 7,000 partitions on a real ZooKeeper: one transaction of all of them exceeds ``jute.maxbuffer``.

20,000 in the long form.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from kazoo.client import KazooClient

from kit.consumer.zookeeper.assignors import TopicAndPartition
from kit.consumer.zookeeper.effects import Pairs
from kit.consumer.zookeeper.znodes import GroupZnodes
from kit.lab import Lab
from kit.lab.servers.cluster import Servers
from tests.soak import IS_SOAK

SECONDS = 30.0
TOPIC = "clickstream-of-all-shops-and-partners-in-europe-by-customer-and-session-v2"
PAIRS = [(TOPIC, number) for number in range(20_000 if IS_SOAK else 7_000)]


class RoomyLab(Lab):
    """The 64 MB of a lab's ZooKeeper are too few for two groups of 20,000 owners."""

    def _servers(self) -> Servers:
        servers = super()._servers()
        servers.zookeeper.heap_mb = 512
        return servers


if IS_SOAK:

    @pytest.fixture(scope="module")
    def lab() -> Iterator[Lab]:
        with RoomyLab(brokers=1) as running:
            yield running


class Member(GroupZnodes):
    """A registered member with a session of its own; ``gone`` are its owner znodes that another client deleted."""

    def __init__(self, client: KazooClient, group: str, name: str) -> None:
        self.gone: set[TopicAndPartition] = set()
        self.client = client
        super().__init__(client, group, name, len, self.gone.add, set, True, False, SECONDS)
        assert self.register(b"{}")

    def owned(self) -> Pairs:
        return frozenset(self.read_held())


@pytest.fixture
def pair_of_members(lab: Lab, request: pytest.FixtureRequest) -> Iterator[tuple[Member, Member]]:
    with ExitStack() as stack:
        clients = [KazooClient(lab.zookeeper_connect, timeout=SECONDS) for _ in range(2)]
        for client in clients:
            stack.callback(client.close)
            stack.callback(client.stop)
            client.start(SECONDS)
        first, second = (Member(client, request.node.name, f"member-{n}") for n, client in enumerate(clients))
        yield first, second


def test_a_claim_of_many_partitions_is_made_renamed_and_released(pair_of_members: tuple[Member, Member]) -> None:
    member, _ = pair_of_members
    assert member.claim_all(dict.fromkeys(PAIRS, "member-0-0")) == frozenset()
    assert member.rename(dict.fromkeys(PAIRS, "member-0-1")) == frozenset()
    assert member.read_held() == dict.fromkeys(PAIRS, "member-0-1")
    member.release(PAIRS)
    assert member.read_owners() == {}


def test_a_claim_that_is_blocked_in_a_later_part_keeps_nothing(
    pair_of_members: tuple[Member, Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other member claims its partition after this one has examined the owners."""
    member, other = pair_of_members
    look = member._sorted_owners

    def looks_first(threads: object) -> tuple[Pairs, Pairs]:
        found = look(threads)  # type: ignore[arg-type]
        other.claim_all({PAIRS[-1]: "member-1-0"})
        return found

    monkeypatch.setattr(member, "_sorted_owners", looks_first)
    assert member.claim_all(dict.fromkeys(PAIRS, "member-0-0")) == {PAIRS[-1]}
    assert member.read_owners().keys() == {PAIRS[-1]}
    assert other.owned() == {PAIRS[-1]}


def test_a_rename_leaves_the_owner_znode_of_another_member(pair_of_members: tuple[Member, Member]) -> None:
    member, other = pair_of_members
    stolen, kept = PAIRS[0], PAIRS[1]
    assert member.claim_all({stolen: "member-0-0", kept: "member-0-0"}) == frozenset()
    other.client.delete(other.owner_path(stolen))
    assert other.claim_all({stolen: "member-1-0"}) == frozenset()
    assert member.rename({stolen: "member-0-1", kept: "member-0-1"}) == {stolen}
    owners = {pair: znode.data for pair, znode in member.read_owners().items()}
    assert owners == {stolen: b"member-1-0", kept: b"member-0-1"}
    assert stolen in member.gone
