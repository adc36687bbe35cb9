"""The protocol of one member of a ZooKeeper group, without any I/O: what to do next, given what was read.

A round (:meth:`Coordination.reconcile`) is a generator of effects. Its driver carries each effect out and sends back
the answer. ``driver`` does so on real servers. The simulation does so on a model of them, where other members' effects
come between any two of this member's.

Invariants. ``docs/races.md`` explains them and the races R1 … R25 that this package names:

- I1: a record of p is delivered only while this member holds O(p), its owner znode, made in the current session;
- I2: with Kafka's assignment in force also only while p is in the embedded consumer's assignment of this generation;
- I3: before O(p) is deleted or a rebalance of the Kafka group is answered: stop, then commit, ZooKeeper first;
- I5: see :func:`kit.consumer.zookeeper.migration.decide`.

I4 (stop when a session is in doubt) is the gate's, see :mod:`kit.consumer.zookeeper.gate`.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeAlias

from kit.consumer.zookeeper.assignors import Assignment, TopicAndPartition, assign, split_over_threads
from kit.consumer.zookeeper.certainty import Certainty
from kit.consumer.zookeeper.config import HASH_1_0, RANGE
from kit.consumer.zookeeper.effects import (
    RESERVATION_SUFFIX,
    BeforeReleasing,
    BeforeStarting,
    ClaimAll,
    ClaimEach,
    CommitKafka,
    CommitZookeeper,
    CopyToZookeeper,
    DiscardUnsaved,
    Effect,
    FetchKafka,
    FetchOffsets,
    GroupView,
    IsStale,
    KafkaAssignment,
    KafkaGroup,
    Keep,
    Membership,
    Offsets,
    Pairs,
    ReadGroup,
    ReadHeld,
    ReadIds,
    ReadKafkaAssignment,
    ReadKafkaGroup,
    ReadReservations,
    ReadToggle,
    Release,
    Rename,
    Start,
    Stop,
    StopAll,
    StopKafkaAssigned,
    StopOthers,
)
from kit.consumer.zookeeper.migration import Decision, Mode, decide


class RoundStatus(Enum):
    """The end of a round."""

    SETTLED = "settled"
    STALE = "something changed meanwhile"
    BLOCKED = "other members hold partitions that are assigned to this member"
    WAITING = "the Kafka group rebalances"
    UNREGISTERED = "this member is not registered in this session"
    UNREADABLE = "a member's registration can't be parsed"
    INCOMPLETE = "offsets could not be fetched"


@dataclass(frozen=True, slots=True)
class RoundResult:
    """``mine``: the partitions assigned to this member; ``blocked``: those of them that others hold."""

    status: RoundStatus
    decision: Decision | None = None
    mine: Assignment = field(default_factory=dict)
    blocked: Pairs = frozenset()
    unreadable: Mapping[str, str] = field(default_factory=dict)


Round: TypeAlias = Generator[Effect, Any, RoundResult]
Effects: TypeAlias = Generator[Effect, Any, None]


@dataclass
class Coordination:
    """One member's protocol state. One thread drives rounds; see :meth:`revoked` for the exception.

    ``held`` is what it believes to hold in the current session: (topic, partition) → text of the owner znode. Unless
    that is certain, the next round reads the owner znodes first: see :mod:`kit.consumer.zookeeper.certainty`.
    """

    consumer_id: str
    strategy: str = RANGE
    hash_form: str = HASH_1_0
    is_migration_enabled: bool = False
    held: Assignment = field(default_factory=dict)
    mode: Mode | None = None
    certainty: Certainty = field(default_factory=Certainty)
    _announced: object = None

    def doubt(self) -> None:
        """An owner znode vanished, or the session did. May be called by any thread."""
        self.certainty.doubt()

    def reconcile(self) -> Round:
        """One round: from what is to what should be. It may be repeated, and abandoned at any effect."""
        view: GroupView = yield ReadGroup()
        if not view.is_registered:
            return RoundResult(RoundStatus.UNREGISTERED)
        if view.unreadable:
            return RoundResult(RoundStatus.UNREADABLE, unreadable=view.unreadable)
        if not view.has_brokers:
            return RoundResult(RoundStatus.SETTLED)
        if self.certainty.begin_round():
            self.held = yield ReadHeld()
            yield StopOthers(frozenset(self.held))
        decided = yield from self._decide(view)
        if decided is None:
            return RoundResult(RoundStatus.WAITING)
        decision, group = decided
        self.mode = decision.mode
        follow = self._follow_zookeeper if decision.mode is Mode.ZOOKEEPER else self._follow_kafka
        result = yield from follow(view, decision, group)
        # A claim that was blocked may have been executed in part.
        self.certainty.end_round(is_blocked=bool(result.blocked))
        return result

    def revoked(self) -> Effects:
        """The Kafka group rebalances: stop and commit before it is answered (I3).

        It stops every partition of the last assignment epoch. If the toggle has ``kafka`` by now it stops
        everything, even if no round has seen the toggle yet: the joining member may be a plain Kafka consumer (R9).
        The embedded consumer's thread drives this, also while a round is under way: the gate orders the two. The owner
        znodes stay until the next owners are known.
        """
        yield from self._commit((yield StopKafkaAssigned()))
        if (yield ReadToggle()) == Mode.KAFKA.value:
            yield from self._commit((yield StopAll()))
        yield DiscardUnsaved()

    def lost(self) -> Effects:
        """The Kafka group continued without this member: stop; Kafka takes no commit of it any more (R4)."""
        offsets = yield StopKafkaAssigned()
        if offsets:
            yield CommitZookeeper(offsets)
        yield DiscardUnsaved()

    def leave(self) -> Effects:
        """Stop and commit everything; closing the session then removes the znodes at once, reservations too."""
        yield from self._commit((yield Stop(frozenset(self.held))), is_last=True)
        yield from self._hand_over(frozenset(pair for pair in self.held if self._is_reservation(pair)))

    def session_lost(self) -> None:
        """The session's znodes are gone, and other members may own the partitions (R12): there is nothing to delete."""
        self.held = {}
        self.doubt()

    def _decide(self, view: GroupView) -> Generator[Effect, Any, tuple[Decision, KafkaGroup] | None]:
        """→ None when nothing can be decided yet."""
        if not self.is_migration_enabled:
            return Decision(Mode.ZOOKEEPER), KafkaGroup()
        is_kafka_due = view.toggle == Mode.KAFKA.value and not view.members.keys() - view.migration_enabled
        is_fresh = not is_kafka_due and self.mode is not Mode.ZOOKEEPER
        group: KafkaGroup | None = yield ReadKafkaGroup(frozenset(view.members), is_fresh)
        if group is None or (group.guessed and (yield from self._is_unsure(group, is_kafka_due))):
            return self._decide_blindly(view)
        if group.plain and (yield ReadIds()) != view.members.keys():
            # A member registered meanwhile: its embedded consumer must not be taken for a plain one.
            return None
        has_reservations = bool(group.plain) and self.mode is not Mode.KAFKA and (yield ReadReservations())
        return decide(
            view.toggle, view.members, view.migration_enabled, group.plain, self.mode, has_reservations
        ), group

    def _is_unsure(self, group: KafkaGroup, is_kafka_due: bool) -> Generator[Effect, Any, bool]:
        """Yield whether a guess could be wrong in the direction that lets partitions be read twice.

        A member that is new believes that what could be embedded is, unless plain ones have partitions that others
        reserve: else it would wait at each start until the Kafka group has rebalanced.
        """
        if self.mode is not None:
            return self.mode is Mode.KAFKA and not is_kafka_due
        return bool(group.guessed & group.plain.keys()) or (yield ReadReservations())

    def _decide_blindly(self, view: GroupView) -> tuple[Decision, KafkaGroup] | None:
        """The members of the Kafka group are unknown: the mode stays, and nothing that depends on them changes."""
        has_old = bool(view.members.keys() - view.migration_enabled)
        if self.mode is Mode.KAFKA or (view.toggle == Mode.KAFKA.value and not has_old):
            return Decision(Mode.KAFKA, is_deferred=has_old, is_reserving=True), KafkaGroup(is_stable=False)
        return (Decision(Mode.ZOOKEEPER), KafkaGroup()) if self.mode is Mode.ZOOKEEPER else None

    def _follow_zookeeper(self, view: GroupView, decision: Decision, group: KafkaGroup) -> Round:
        """Follow ZooKeeper's assignment like the old consumer, but partitions that stay continue, and offsets are
        read after the claim.
        """
        whole = assign(self.strategy, view.members, view.partitions, self.hash_form)
        mine = self._own(whole)
        yield from self._let_go(mine)
        if (yield IsStale()):
            return RoundResult(RoundStatus.STALE, decision)
        missing = _without(mine, self.held)
        blocked: Pairs = (yield ClaimAll(missing)) if missing else frozenset()
        if not blocked:
            self.held = self.held | missing
        result = RoundResult(RoundStatus.BLOCKED, decision, mine, blocked)
        return (yield from self._consume(_only(mine, self.held), None, result, BeforeStarting(view, whole)))

    def _follow_kafka(self, view: GroupView, decision: Decision, group: KafkaGroup) -> Round:
        """Take the embedded consumer's assignment, each partition when its last owner releases it (R1).

        A member that is out of the Kafka group can't see who owns its partitions next. It releases them all the same,
        unless an old consumer could take them (R13).
        """
        kafka: KafkaAssignment = yield ReadKafkaAssignment()
        if kafka.membership is Membership.REBALANCING:
            yield from self._stop(frozenset(self.held))
            return RoundResult(RoundStatus.WAITING, decision)
        mine = split_over_threads(self.consumer_id, view.members[self.consumer_id], kafka.partitions)
        reservations = self._reservations(group, mine) if decision.is_reserving else {}
        has_old = bool(view.members.keys() - view.migration_enabled)
        is_unknown = decision.is_reserving and not group.is_stable
        is_waiting = is_unknown and (has_old or kafka.membership is Membership.IN)
        if is_waiting:
            yield from self._stop(frozenset(self.held) - mine.keys())
        else:
            yield from self._stop(
                frozenset(
                    pair for pair in reservations if self.held.get(pair, reservations[pair]) != reservations[pair]
                )
            )
            yield from self._let_go(mine | reservations)
        yield from self._rename(_only(reservations, self.held))
        missing = _without(mine | reservations, self.held)
        taken: Pairs = (yield ClaimEach(missing)) if missing else frozenset()
        self.held = self.held | _without(missing, taken)
        result = RoundResult(RoundStatus.BLOCKED, decision, mine, taken & mine.keys())
        telling = BeforeStarting(view, None)
        result = yield from self._consume(_only(mine, self.held), kafka.epoch, result, telling)
        return (
            replace(result, status=RoundStatus.WAITING)
            if is_waiting and result.status is RoundStatus.SETTLED
            else result
        )

    def _let_go(self, mine: Assignment) -> Effects:
        """Stop, commit, delete, in this order (I3), what is not this member's any more.

        A partition whose offset ZooKeeper may lack is kept until ZooKeeper has it.
        """
        leaving = frozenset(pair for pair in self.held if pair not in mine)
        if not leaving:
            return
        yield BeforeReleasing(leaving)
        leaving -= yield from self._stop(leaving)
        leaving -= yield from self._hand_over(frozenset(pair for pair in leaving if self._is_reservation(pair)))
        yield Release(leaving)
        self.held = _without(self.held, leaving)

    def _hand_over(self, reservations: Pairs) -> Generator[Effect, Any, Pairs]:
        """→ those that failed. KCs committed to Kafka alone, and the next owner may read ZooKeeper alone (R18)."""
        if not reservations:
            return frozenset()
        offsets: Offsets = yield FetchKafka(reservations)
        failed: Pairs = yield CopyToZookeeper(offsets)
        return (reservations - offsets.keys()) | failed

    def _stop(self, partitions: Pairs) -> Generator[Effect, Any, Pairs]:
        return (yield from self._commit((yield Stop(partitions)))) if partitions else frozenset()

    def _commit(self, offsets: Offsets, is_last: bool = False) -> Generator[Effect, Any, Pairs]:
        """→ those whose offset ZooKeeper may lack."""
        if not offsets:
            return frozenset()
        failed: Pairs = yield CommitZookeeper(offsets)
        if self.is_migration_enabled:
            yield CommitKafka(offsets, is_last)
        return failed

    def _rename(self, mine: Assignment) -> Effects:
        moved = {pair: thread for pair, thread in mine.items() if self.held[pair] != thread}
        if moved:
            gone: Pairs = yield Rename(moved)
            self.held = _without(self.held | moved, gone)

    def _consume(
        self, mine: Assignment, assignment_epoch: int | None, result: RoundResult, telling: BeforeStarting
    ) -> Round:
        """Deliver what is held: continue with what is being consumed, start the rest from the committed offsets.

        Offsets are read after the claim, because the last owner may commit until then. ``result`` is a blocked round's:
        it is returned when something is blocked, else with the status that this part ends with.
        """
        yield from self._rename(mine)
        mine = _only(mine, self.held)
        kept: Pairs = (yield Keep(mine, assignment_epoch)) if mine else frozenset()
        starting = _without(mine, kept)
        started: Pairs = frozenset()
        offsets: Offsets = {}
        if starting:
            offsets = yield FetchOffsets(frozenset(starting))
        news = telling.assignment if assignment_epoch is None else (assignment_epoch, frozenset(telling.view.members))
        if starting or (news != self._announced and not result.blocked):
            yield telling
            self._announced = news
        if starting:
            started = yield Start(_only(starting, offsets), offsets, assignment_epoch)
        if result.blocked:
            return result
        if offsets.keys() < starting.keys():
            return replace(result, status=RoundStatus.INCOMPLETE)
        is_stale = len(started) < len(starting) or (yield IsStale())
        return replace(result, status=RoundStatus.STALE if is_stale else RoundStatus.SETTLED)

    def _own(self, whole: Assignment) -> Assignment:
        return {pair: thread for pair, thread in whole.items() if thread.rpartition("-")[0] == self.consumer_id}

    def _is_reservation(self, pair: TopicAndPartition) -> bool:
        return self.held[pair].endswith(RESERVATION_SUFFIX)

    def _reservations(self, group: KafkaGroup, mine: Assignment) -> Assignment:
        """Owner znodes for the partitions of plain Kafka consumers, so that an old consumer can't claim them (R5)."""
        theirs = frozenset(pair for pairs in group.plain.values() for pair in pairs)
        return {pair: self.consumer_id + RESERVATION_SUFFIX for pair in theirs if pair not in mine}


def whole_assignment(view: GroupView, group: KafkaGroup) -> Assignment:
    """The Kafka group's assignment by thread: each plain member is one pseudo thread (KIP-125)."""
    whole: Assignment = {}
    for consumer_id, pairs in group.embedded.items():
        whole |= split_over_threads(consumer_id, view.members.get(consumer_id, {}), pairs)
    for member_id, pairs in group.plain.items():
        whole |= dict.fromkeys(sorted(pairs), f"{member_id}-0")
    return whole


def _without(assignment: Assignment, pairs: Collection[TopicAndPartition]) -> Assignment:
    return {pair: thread for pair, thread in assignment.items() if pair not in pairs}


def _only(assignment: Assignment, pairs: Collection[TopicAndPartition] | Iterable[TopicAndPartition]) -> Assignment:
    wanted = set(pairs)
    return {pair: thread for pair, thread in assignment.items() if pair in wanted}
