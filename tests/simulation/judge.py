"""Judge what must hold after every step, and the few exemptions from it.

- **I1** at every record a Python member delivers: it holds O(p), made in its session, and the server knows the
  session. Exempt: O(p) was stolen (deleted by an old consumer that didn't make it) and the member could not know yet.
- **I2** at every record delivered in an assignment epoch: p is this member's in the coordinator's current generation.
  Exempt: the member could not reach the coordinator, and then was stalled; it may wake up within the lease of its last
  poll.
- **I3** before a Python member deletes O(p) or answers a rebalance: it delivers nothing of p (of what the generation
  assigned), and what it delivered is committed in ZooKeeper (in Kafka).
- **I4** is I1 and I2 while sessions are cut off, is stalled or end: the server decides, not what a client believes.
- **I5** when a member turns to ZooKeeper's assignment no plain Kafka consumer was in the Kafka group as it looked;
  when it turns to Kafka's every registered member was migration-enabled, or it waits, or reserves what plain ones have.
- **exclusive**: while a Kafka consumer can deliver records of p, no member of the ZooKeeper family hands one out, and
  the other way round.
- **twice**: no record is delivered twice. Exempt is the uncommitted tail of a member that was killed, whose session
  the server ended, that was put out of the Kafka group, whose O(p) was stolen, or that left without ZooKeeper; what an
  old consumer delivers without O(p) or without a session, lowers by a late commit, or begins with
  since it read the offset before it claimed; what Kafka refused to commit while its coordinator could
  not be reached, when a Kafka consumer, which reads only there, takes over.
- **lost**: nothing is committed, and no record skipped, that was not delivered.
- **offsets**: no Python member lowers an offset, in ZooKeeper or in Kafka. Exempt in Kafka: its ZooKeeper session is
  over.
- **R15**: no Python member deletes an owner znode of another session.
- **announced**: the listener is never told an assignment with parts of the Kafka group's missing (D11).

Once an operator broke the rules (see ``SimulatedGroup.may_join_kc`` and ``may_join_old``), ``exclusive``, ``I5``,
``twice`` and, of Kafka's, ``offsets`` hold no more where a Kafka consumer or an old one is involved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kit.consumer.zookeeper import effects
from kit.consumer.zookeeper.assignors import Assignment, TopicAndPartition
from kit.consumer.zookeeper.effects import Effect, GroupView, Offsets
from kit.consumer.zookeeper.migration import Mode
from tests.simulation.model_jvm import OldConsumer, PlainConsumer
from tests.simulation.model_kafka_group import GroupClient
from tests.simulation.model_member import PythonMember
from tests.simulation.model_zookeeper import Path, Znode
from tests.simulation.steps import Violation

if TYPE_CHECKING:
    from tests.simulation.world import Member, SimulatedGroup


class GroupJudge:
    """``lowered``: what was lowered in Kafka without a session."""

    def __init__(self, world: SimulatedGroup) -> None:
        self.world = world
        self.is_rule_broken = False
        self.lowered: list[tuple[str, TopicAndPartition, int, int]] = []
        self.handed: dict[TopicAndPartition, int] = defaultdict(int)
        self._by: dict[tuple[TopicAndPartition, int], Member] = {}
        self._forgiven: dict[TopicAndPartition, set[int]] = defaultdict(set)
        self._forgiven_to_kc: dict[TopicAndPartition, set[int]] = defaultdict(set)
        self._thefts: set[tuple[str, TopicAndPartition]] = set()
        self._positions: dict[tuple[str, TopicAndPartition], int] = {}
        self._kafka_assigned: dict[str, set[TopicAndPartition]] = defaultdict(set)
        self._plain_seen: dict[str, frozenset[str]] = {}
        self._old_seen: dict[str, frozenset[tuple[str, int]]] = {}
        self._modes: dict[str, Mode | None] = {}

    # Records

    def hands_out(self, member: Member, pair: TopicAndPartition, offset: int, assignment_epoch: int | None) -> None:
        owns = isinstance(member, PlainConsumer) or self._owns(member, pair)
        self._kafka_assigned[member.consumer_id].discard(pair)
        if assignment_epoch is not None:
            self._check_assignment_epoch(member, pair)
        if owns and not self.is_rule_broken:
            self._check_exclusive(member, pair)
        self._check_offset(member, pair, offset, owns)
        self.handed[pair] = max(self.handed[pair], offset + 1)
        self._by[pair, offset] = member
        if owns:
            self._positions[member.consumer_id, pair] = offset + 1
        else:
            self._forgiven[pair].add(offset)
            self._kafka_assigned[member.consumer_id].discard(pair)

    def _owns(self, member: Any, pair: TopicAndPartition) -> bool:
        """Raises for a Python member that has no excuse."""
        znode = self.world.zookeeper.znodes.get(("owners", pair))
        if znode is not None and znode.session == member.client.session and member.client.is_alive:
            self._thefts.discard((member.consumer_id, pair))
            return True
        if isinstance(member, PythonMember) and (member.consumer_id, pair) not in self._thefts:
            owner = "nobody" if znode is None else znode.data
            alive = "" if member.client.is_alive else ", its session is over"
            raise Violation("I1", f"{member.consumer_id} delivers {_name(pair)}, which {owner} owns{alive}")
        return False

    def _check_assignment_epoch(self, member: Any, pair: TopicAndPartition) -> None:
        is_excused = member.embedded.client.client_id in self.world.slept_while_cut
        if pair not in self.world.group.assigned_to(member.embedded.client.member_id) and not is_excused:
            raise Violation("I2", f"{member.consumer_id} delivers {_name(pair)}: not its in this generation")
        self._kafka_assigned[member.consumer_id].add(pair)

    def _check_exclusive(self, member: Member, pair: TopicAndPartition) -> None:
        is_plain = isinstance(member, PlainConsumer)
        for other in self.world.members.values():
            if isinstance(other, PlainConsumer) != is_plain and self._can_hand_out(other, pair):
                raise Violation("exclusive", f"{member.consumer_id} and {other.consumer_id} both have {_name(pair)}")

    def _can_hand_out(self, member: Member, pair: TopicAndPartition) -> bool:
        if member.is_paused or pair not in member.consuming:
            return False
        if isinstance(member, PlainConsumer):
            return not member.kafka.has_expired and not member.kafka.is_lost
        if isinstance(member, PythonMember):
            return self.world.now < member.gate.lease.until and (member.consumer_id, pair) not in self._thefts
        return self._owns(member, pair)

    def _check_offset(self, member: Member, pair: TopicAndPartition, offset: int, owns: bool) -> None:
        if offset > self.handed[pair]:
            raise Violation("lost", f"{member.consumer_id} skips {_name(pair)} from {self.handed[pair]} to {offset}")
        if offset == self.handed[pair] or not owns:
            return
        if isinstance(member, PlainConsumer) and offset in self._forgiven_to_kc[pair]:
            return
        if offset in self._forgiven[pair]:
            self._forgiven[pair].discard(offset)
            return
        before = self._by[pair, offset]
        if self.is_rule_broken and not (isinstance(member, PythonMember) and isinstance(before, PythonMember)):
            return
        raise Violation("twice", f"{_name(pair)} {offset} by {before.consumer_id} and again by {member.consumer_id}")

    # Excuses

    def tail_is_lost(self, member: Member, pairs: Iterable[TopicAndPartition]) -> None:
        """Allow what was delivered of these and is in no store to be delivered again."""
        for pair in pairs:
            self._forgiven[pair] |= set(range(self._floor(member, pair), self.handed[pair]))
            self._kafka_assigned[member.consumer_id].discard(pair)
            self._positions.pop((member.consumer_id, pair), None)

    def begins(self, member: Member) -> None:
        """A new process, whatever one of the same name did before."""
        self._kafka_assigned.pop(member.consumer_id, None)
        self._modes.pop(member.consumer_id, None)
        self._positions = {each: end for each, end in self._positions.items() if each[0] != member.consumer_id}

    def end_of(self, member: Member) -> None:
        """It was killed, or its session has ended: whatever it delivered last may be committed nowhere."""
        mine = {pair for name, pair in self._positions if name == member.consumer_id}
        self.tail_is_lost(member, mine | member.consuming)
        self._kafka_assigned.pop(member.consumer_id, None)

    def _floor(self, member: Member, pair: TopicAndPartition) -> int:
        """Return where the next owner may begin: KC reads Kafka's offset alone, an old consumer ZooKeeper's."""
        kafka = self.world.group.offsets.get(pair, 0)
        if isinstance(member, PlainConsumer):
            return kafka
        zookeeper = self.world.zookeeper_offset(pair)
        return min(zookeeper, kafka) if self.world.had_kc else zookeeper

    def theft_noticed(self, member: PythonMember, pair: TopicAndPartition) -> None:
        self._thefts.discard((member.consumer_id, pair))

    def releases(self, member: PythonMember, pairs: Iterable[TopicAndPartition]) -> None:
        """Return the released partitions. A member that claims these next reads ZooKeeper too; what a Kafka
        consumer has is reserved, not released.
        """
        mine = self._kafka_assigned[member.consumer_id].intersection(pairs)
        self._kafka_assigned[member.consumer_id] -= mine
        self.kafka_refused({pair: self._positions.get((member.consumer_id, pair), 0) for pair in mine})

    def starts_old(self, offsets: Offsets) -> None:
        """An old consumer reads offsets before it claims: the last owner's last commit may be missing."""
        for pair, offset in offsets.items():
            self._forgiven[pair] |= set(range(offset, self.handed[pair]))

    def thefts(self, member: PythonMember) -> set[tuple[str, TopicAndPartition]]:
        """Note the thefts of its owner znodes, as far as it had no chance to know."""
        return {each for each in self._thefts if each[0] == member.consumer_id}

    def thefts_noticed(self, thefts: set[tuple[str, TopicAndPartition]]) -> None:
        """The member has looked what it holds, and a whole round has followed."""
        self._thefts -= thefts

    def leaves(self, member: PythonMember) -> None:
        if not member.client.is_alive or member.client.current is None or member.has_failed_to_commit:
            self.end_of(member)

    def kafka_refused(self, offsets: Offsets) -> None:
        """No coordinator: these are in ZooKeeper alone."""
        for pair, offset in offsets.items():
            self._forgiven_to_kc[pair] |= set(range(self.world.group.offsets.get(pair, 0), offset))

    def put_out(self, member: Member) -> None:
        """Put a member out of the Kafka group, which takes no commit of it any more; a Python member still commits
        to ZooKeeper.
        """
        if isinstance(member, PythonMember):
            self.kafka_refused({pair: self.handed[pair] for pair in self._kafka_assigned.pop(member.consumer_id, ())})
        else:
            self.end_of(member)

    # Znodes and offsets

    def goes(self, path: Path, znode: Znode) -> None:
        """Whatever the reason. With Kafka consumers and old ones in the group whoever is fastest has it next (R5); with
        old ones alone they must find its offset in ZooKeeper, and a member that died did not bring it there (R18)."""
        pair: Any = path[1]
        if path[0] != "owners" or not self.world.old_members():
            return
        is_behind = self.world.zookeeper_offset(pair) < self.world.group.offsets.get(pair, 0)
        self.is_rule_broken |= bool(self.world.plain_members()) or is_behind

    def deletes(self, session: int, path: Path, znode: Znode) -> None:
        if path[0] != "owners":
            return
        pair: Any = path[1]
        deleter, victim = self.world.by_session(session), self.world.by_session(znode.session)
        if session == znode.session:
            if isinstance(deleter, PythonMember):
                self._check_release(deleter, pair)
        elif isinstance(deleter, PythonMember):
            raise Violation("R15", f"{deleter.consumer_id} deletes {_name(pair)} of {znode.data}")
        elif victim is not None:
            self._thefts.add((victim.consumer_id, pair))
            self.tail_is_lost(victim, [pair])

    def _check_release(self, member: PythonMember, pair: TopicAndPartition) -> None:
        if pair in member.consuming:
            raise Violation("I3", f"{member.consumer_id} releases {_name(pair)} and still consumes it")
        uncommitted = self._uncommitted(member, pair, self.world.zookeeper_offset(pair)) - self._forgiven[pair]
        if uncommitted:
            raise Violation("I3", f"{member.consumer_id} releases {_name(pair)} with {uncommitted} not in ZooKeeper")

    def _uncommitted(self, member: PythonMember, pair: TopicAndPartition, committed: int) -> set[int]:
        return set(range(committed, self._positions.get((member.consumer_id, pair), 0)))

    def kept(self, member: PythonMember, pairs: Iterable[TopicAndPartition], assignment_epoch: int | None) -> None:
        if assignment_epoch is None:
            self._kafka_assigned[member.consumer_id].difference_update(pairs)

    def started(self, member: PythonMember, offsets: Offsets) -> None:
        for pair, offset in offsets.items():
            self._positions[member.consumer_id, pair] = offset

    def writes(self, session: int, path: Path, old: Any, new: Any) -> None:
        if path[0] == "ids":
            is_old = ("migration/ids", path[1]) not in self.world.zookeeper.znodes
            self.is_rule_broken |= not (self.world.may_join_old() if is_old else self.world.may_join_migrating())
        if path[0] != "offsets":
            return
        pair: Any = path[1]
        member = self.world.by_session(session)
        self._check_commit(member, pair, old, new, "ZooKeeper")
        if isinstance(member, OldConsumer) and old is not None and new < old:
            self._forgiven[pair] |= set(range(new, self.handed[pair]))

    def commits_to_kafka(
        self, member: Member, before: Mapping[TopicAndPartition, int | None], offsets: Offsets
    ) -> None:
        for pair, offset in offsets.items():
            self._check_commit(member, pair, before[pair], offset, "Kafka")

    def _check_commit(self, member: Member | None, pair: TopicAndPartition, old: int | None, new: int, to: str) -> None:
        name = member.consumer_id if member is not None else "an unknown person"
        if new > self.handed[pair]:
            raise Violation("lost", f"{name} commits {_name(pair)} {new} to {to}, delivered {self.handed[pair]}")
        if not isinstance(member, PythonMember) or old is None or new >= old:
            return
        if to == "ZooKeeper" or (member.client.is_alive and not self.is_rule_broken):
            raise Violation("offsets", f"{name} lowers {_name(pair)} in {to} from {old} to {new}")
        self.kafka_refused({pair: self.handed[pair]})
        self.lowered.append((name, pair, old, new))

    # The Kafka group and the mode

    def kc_joins(self, kafka: GroupClient) -> None:
        """Not as one of the last generation: the rules are examined when it is there, not when it is started."""
        if kafka.member_id not in self.world.group.members:
            self.is_rule_broken |= not self.world.may_join_kc()

    def joins(self, member: PythonMember) -> None:
        """Its embedded consumer answers a rebalance."""
        for stream in member.streams.values():
            for pair, (_, assignment_epoch) in stream.places.items():
                if assignment_epoch is not None:
                    raise Violation("I3", f"{member.consumer_id} answers a rebalance and consumes {_name(pair)}")
        for pair in self._kafka_assigned.pop(member.consumer_id, ()):
            uncommitted = self._uncommitted(member, pair, self.world.group.offsets.get(pair, 0))
            if uncommitted - self._forgiven[pair] - self._forgiven_to_kc[pair]:
                raise Violation("I3", f"{member.consumer_id} rejoins with {_name(pair)} {uncommitted} not in Kafka")

    def is_about_to(self, member: PythonMember, effect: Effect) -> None:
        """Called between any two effects, so it sees every change of the mode."""
        if isinstance(effect, effects.ReadGroup):
            self._old_seen[member.consumer_id] = self.world.old_members()
        before, mode = self._modes.get(member.consumer_id), member.mode
        if before is mode or not member.is_migration_enabled:
            return
        self._modes[member.consumer_id] = mode
        plain = self._plain_seen.get(member.consumer_id)
        old = self._old_seen.get(member.consumer_id, frozenset()) & self.world.old_members()
        # A member that is new among old and Kafka consumers sees a reservation a moment later than its makers.
        is_new = before is None and bool(old)
        if mode is Mode.ZOOKEEPER and plain and not is_new and not self.is_rule_broken:
            raise Violation(
                "I5", f"{member.consumer_id} turns to ZooKeeper's assignment with {sorted(plain)} in Kafka's"
            )
        if mode is Mode.KAFKA and not plain and old:
            raise Violation("I5", f"{member.consumer_id} turns to Kafka's assignment with {sorted(old)} registered")

    def looks_at_kafka(self, member: PythonMember) -> None:
        self._plain_seen[member.consumer_id] = frozenset(self.world.plain_members())

    def announced(self, member: PythonMember, view: GroupView, whole: Assignment) -> None:
        """Return the announced part of Kafka's assignment: everything that members of the view, and Kafka
        consumers, have in its generation.
        """
        current = {each.embedded.client.member_id for each in self.world.migrating() if each.embedded is not None}
        members = self.world.group.members.items()
        known = {
            name
            for name, each in members
            if not each.is_embedded or (each.client_id in view.members and name in current)
        }
        missing = {pair for name in known for pair in self.world.group.assignments.get(name, ())} - whole.keys()
        assert member.embedded is not None
        if missing and member.embedded.client.generation == self.world.group.generation:
            raise Violation("announced", f"{member.consumer_id}'s listener is not reported {sorted(missing)}")


def _name(pair: TopicAndPartition) -> str:
    return f"{pair[0]}-{pair[1]}"
