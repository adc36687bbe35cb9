"""Proposed changes of ``kit.consumer``, as subclasses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kit.consumer import coordination as effects
from kit.consumer.assignors import Assignment, TopicAndPartition, split_over_threads
from kit.consumer.coordination import (
    FENCE_SUFFIX,
    BeforeReleasing,
    BeforeStarting,
    ClaimEach,
    CommitKafka,
    CommitZookeeper,
    Coordination,
    Ended,
    GroupView,
    KafkaGroup,
    Membership,
    Offsets,
    Outcome,
    Pairs,
    ReadFence,
    ReadGroup,
    ReadHeld,
    ReadKafkaAssignment,
    ReadKafkaGroup,
    ReadToggle,
    Release,
    Stop,
    StopLicensed,
)
from kit.consumer.gate import Gate
from kit.consumer.migration import Decision, Mode, decide
from tests.simulation.model_embedded import Answer, Embedded
from tests.simulation.model_kafka_group import GROUP_SESSION_SECONDS, Rejected, Unavailable
from tests.simulation.model_member import PythonMember
from tests.simulation.model_zookeeper import GONE, ConnectionLost
from tests.simulation.model_znodes import ZnodeSteps
from tests.simulation.steps import Steps


@dataclass(frozen=True, slots=True)
class Confine:
    """Nothing but ``partitions`` is handed out any more, and the rest not committed: they are not this member's."""

    partitions: Pairs


@dataclass(frozen=True, slots=True)
class StopAll:
    """→ Offsets: as Stop, for everything; and the round under way starts nothing."""


@dataclass(frozen=True, slots=True)
class Forget:
    """The rebalance is about to be answered: what was stopped and is not in Kafka by now never will be."""


@dataclass(frozen=True, slots=True)
class FetchKafka:
    """→ Offsets: what the group has committed to Kafka."""

    partitions: Pairs


class RepairedGate(Gate):
    """``_unsaved``: stopped, and not in Kafka yet, whichever thread is on its way there with it. ``_last``: where what is
    still owned was stopped; the commit of that may still be under way, so what is fetched may be less."""

    _is_round_refused = False

    def __init__(self, *arguments, **keywords) -> None:  # type: ignore[no-untyped-def]
        super().__init__(*arguments, **keywords)
        self._unsaved: dict[TopicAndPartition, int] = {}
        self._last: dict[TopicAndPartition, int] = {}

    def session_ended(self) -> None:
        super().session_ended()
        self._unsaved, self._last = {}, {}

    def begin_round(self) -> None:
        self._is_round_refused = False

    def start(self, threads: Assignment, offsets: Offsets, licence: int | None) -> Pairs:
        offsets = {pair: max(offset, self._last.get(pair, 0)) for pair, offset in offsets.items()}
        return super().start(threads, offsets, licence)

    def stop(self, partitions: Iterable[TopicAndPartition]) -> Offsets:
        return self._stopped(super().stop(partitions))

    def end_licence(self) -> Offsets:
        self._stopped(super().end_licence())
        return dict(self._unsaved)

    def stop_all(self) -> Offsets:
        self._is_round_refused = True
        self._stopped(super().stop(list(self._places)))
        return dict(self._unsaved)

    def drop(self, partitions: Iterable[TopicAndPartition]) -> None:
        self._is_round_refused = True
        super().drop(partitions)
        self.released(frozenset(partitions))

    def confine(self, partitions: Pairs) -> None:
        super().drop([pair for pair in self._places if pair not in partitions])
        self.released(self._last.keys() - partitions)

    def released(self, partitions: Iterable[TopicAndPartition]) -> None:
        """Others may commit these from now on: nothing older may follow."""
        for pair in list(partitions):
            self._unsaved.pop(pair, None)
            self._last.pop(pair, None)

    def saved(self, offsets: Offsets) -> None:
        self._unsaved = {pair: offset for pair, offset in self._unsaved.items() if offset != offsets.get(pair)}

    def forget(self) -> None:
        self._unsaved = {}

    def _stopped(self, stopped: Offsets) -> Offsets:
        self._unsaved |= stopped
        self._last |= stopped
        return stopped

    def _is_open(self, licence: int | None) -> bool:
        return not self._is_round_refused and super()._is_open(licence)


@dataclass
class RepairedCoordination(Coordination):
    owed: Offsets = field(default_factory=dict)
    n_doubts: int = 0

    def doubt(self) -> None:
        """An owner znode vanished, or its watch did: the next round looks what is held."""
        self.n_doubts += 1
        self.is_sure = False

    def reconcile(self) -> effects.Round:
        n_doubts = self.n_doubts
        view: GroupView = yield ReadGroup()
        if not view.is_registered:
            return Outcome(Ended.UNREGISTERED)
        if view.unreadable:
            return Outcome(Ended.UNREADABLE, unreadable=view.unreadable)
        if not view.has_brokers:
            return Outcome(Ended.SETTLED)
        if not self.is_sure:
            self.held = yield ReadHeld()
            yield Confine(frozenset(self.held))
        self.is_sure = False
        yield from self._pay()
        if self.owed:
            return Outcome(Ended.INCOMPLETE)
        decided = yield from self._decide(view)
        if decided is None:
            return Outcome(Ended.WAITING)
        decision, group = decided
        self.mode = decision.mode
        follow = self._follow_zookeeper if decision.mode is Mode.ZOOKEEPER else self._follow_kafka
        outcome = yield from follow(view, decision, group)
        self.is_sure = n_doubts == self.n_doubts
        return outcome

    def revoked(self) -> effects.Steps:
        yield from self._commit((yield StopLicensed()))
        if (yield ReadToggle()) == Mode.KAFKA.value:
            yield from self._commit((yield StopAll()))
        yield Forget()

    def lost(self) -> effects.Steps:
        offsets = yield StopLicensed()
        if offsets:
            self._owe(offsets, (yield CommitZookeeper(offsets)))
        yield Forget()

    def session_lost(self) -> None:
        self.held, self.owed = {}, {}

    def _decide(self, view: GroupView):  # type: ignore[no-untyped-def]
        if not self.is_migration_enabled:
            return Decision(Mode.ZOOKEEPER), KafkaGroup()
        group: KafkaGroup | None = yield ReadKafkaGroup(frozenset(view.members))
        if group is None:
            return self._decide_blindly(view)
        current = self.mode
        if group.plain and current is not Mode.KAFKA:
            is_young = current is None and view.toggle == Mode.KAFKA.value
            current = Mode.KAFKA if is_young or (yield ReadFence()) else current
        decision = decide(view.toggle, view.members, view.migration_enabled, group.plain, current, False)
        if decision.mode is Mode.KAFKA and group.plain:
            decision = replace(decision, is_fencing=True)
        return decision, group

    def _decide_blindly(self, view: GroupView):  # type: ignore[no-untyped-def]
        """The Kafka group can't be described: nothing that depends on who is in it is changed."""
        has_old = bool(view.members.keys() - view.migration_enabled)
        if self.mode is Mode.KAFKA or (view.toggle == Mode.KAFKA.value and not has_old):
            return Decision(Mode.KAFKA, is_deferred=has_old, is_fencing=True), KafkaGroup(is_stable=False)
        return (Decision(Mode.ZOOKEEPER), KafkaGroup()) if self.mode is Mode.ZOOKEEPER else None

    def _follow_kafka(self, view: GroupView, decision: Decision, group: KafkaGroup) -> effects.Round:
        kafka = yield ReadKafkaAssignment()
        if kafka.membership is Membership.REBALANCING:
            yield from self._stop(frozenset(self.held))
            return Outcome(Ended.WAITING, decision)
        mine = split_over_threads(self.consumer_id, view.members[self.consumer_id], kafka.partitions)
        fences = self._fences(group, mine) if decision.is_fencing else {}
        is_waiting = decision.is_fencing and not group.is_stable
        if is_waiting:
            yield from self._stop(frozenset(self.held) - mine.keys())
        else:
            yield from self._stop(frozenset(pair for pair in fences if self.held.get(pair, fences[pair]) != fences[pair]))
            yield from self._let_go(mine | fences)
        yield from self._rename(effects._only(fences, self.held))
        missing = effects._without(mine | fences, self.held)
        taken: Pairs = (yield ClaimEach(missing)) if missing else frozenset()
        self.held = self.held | effects._without(missing, taken)
        outcome = Outcome(Ended.BLOCKED, decision, mine, taken & mine.keys())
        telling = BeforeStarting(view, None)
        outcome = yield from self._consume(effects._only(mine, self.held), kafka.epoch, outcome, telling)
        return replace(outcome, ended=Ended.WAITING) if is_waiting and outcome.ended is Ended.SETTLED else outcome

    def _let_go(self, mine: Assignment) -> effects.Steps:
        leaving = frozenset(pair for pair in self.held if pair not in mine)
        if not leaving:
            return
        yield BeforeReleasing(leaving)
        yield from self._stop(leaving)
        yield from self._hand_over(frozenset(pair for pair in leaving if self.held[pair].endswith(FENCE_SUFFIX)))
        leaving -= self.owed.keys()
        yield Release(leaving)
        self.held = effects._without(self.held, leaving)

    def _hand_over(self, fences: Pairs) -> effects.Steps:
        """Whoever is next may read ZooKeeper alone, and a Kafka consumer wrote to Kafka alone (R18)."""
        if fences:
            offsets = yield FetchKafka(fences)
            self._owe(dict.fromkeys(fences, 0), fences - offsets.keys())
            self._owe(offsets, (yield CommitZookeeper(offsets)))

    def _stop(self, partitions: Pairs) -> effects.Steps:
        if partitions:
            yield from self._commit((yield Stop(partitions)))

    def _commit(self, offsets: Offsets) -> effects.Steps:
        if offsets:
            self._owe(offsets, (yield CommitZookeeper(offsets)))
            if self.is_migration_enabled:
                yield CommitKafka(offsets)

    def _owe(self, offsets: Offsets, failed: Pairs) -> None:
        self.owed = {**self.owed, **{pair: offsets[pair] for pair in failed}}

    def _pay(self) -> effects.Steps:
        owed, self.owed = self.owed, {}
        if owed:
            self._owe(owed, (yield CommitZookeeper(owed)))


class RepairedZnodes(ZnodeSteps):
    def session(self) -> int | None:
        if self.client.current is None:
            raise ConnectionLost("not connected")
        return self.client.current

    def _watch(self, owned: Iterable[TopicAndPartition]) -> Steps:
        gone = yield from super()._watch(owned)
        for pair in gone:
            self._owner_gone(pair)
            self._changed()
        return gone

    def claim_all(self, threads: Assignment) -> Steps:
        gone_or_blocked = yield from super().claim_all(threads)
        return gone_or_blocked

    def owner_changed(self, pair: TopicAndPartition, serial: int, kind: str) -> None:
        if kind == GONE and self._watched.get(pair) == serial:
            self.doubt()
        super().owner_changed(pair, serial, kind)

    def doubt(self) -> None:
        """Set by the member."""


class RepairedEmbedded(Embedded):
    """Queued commits end with the generation; a poll proves nothing once the thread stood still."""

    def _commit_later(self, offsets: Offsets, answer: Answer, epoch: int) -> None:
        if epoch == self.assignment.epoch:
            super()._commit_later(offsets, answer, epoch)
        else:
            answer.failed, answer.is_there = frozenset(offsets), True

    def polled(self) -> None:
        """A commit proves the membership: the coordinator looks at member and generation."""
        stood_still = self._world.now - self._last_polled >= GROUP_SESSION_SECONDS / 2
        self._last_polled = self._world.now
        self._must_prove |= stood_still
        if self._must_prove and self.client.member_id is not None and self.assignment.membership is Membership.IN:
            try:
                self.client.commit({})
            except (Unavailable, Rejected):
                return
        self._must_prove = False
        super().polled()

    _last_polled = 0.0
    _must_prove = False


class RepairedMember(PythonMember):
    coordination_class = RepairedCoordination
    gate_class = RepairedGate
    znodes_class = RepairedZnodes
    embedded_class = RepairedEmbedded

    def __init__(self, *arguments, **keywords) -> None:  # type: ignore[no-untyped-def]
        super().__init__(*arguments, **keywords)
        self.znodes.doubt = self.coordination.doubt

    def owner_gone(self, pair: TopicAndPartition) -> None:
        super().owner_gone(pair)
        self.coordination.doubt()

    def do_ReadGroup(self, effect: ReadGroup) -> Steps:
        self.gate.begin_round()
        return super().do_ReadGroup(effect)

    def do_ReadKafkaGroup(self, effect: ReadKafkaGroup) -> KafkaGroup | None:
        """None: not known."""
        group = super().do_ReadKafkaGroup(effect)
        return group if self.embedded.client.is_reachable else None

    def do_ReadToggle(self, effect: ReadToggle) -> Steps:
        try:
            return (yield from super().do_ReadToggle(effect))
        except ConnectionLost:
            return Mode.KAFKA.value

    def do_Confine(self, effect: Confine) -> None:
        self.gate.confine(effect.partitions)

    def do_Forget(self, effect: Forget) -> None:
        self.gate.forget()

    def commit_kafka(self, offsets: Offsets, is_own_thread: bool) -> Steps:
        failed = yield from super().commit_kafka(offsets, is_own_thread)
        self.gate.saved({pair: offset for pair, offset in offsets.items() if pair not in failed})
        return failed

    def do_Release(self, effect: Release) -> Steps:
        self.gate.released(effect.partitions)
        return super().do_Release(effect)

    def do_FetchKafka(self, effect: FetchKafka) -> Offsets:
        if not self.embedded.client.is_reachable:
            return {}
        return {pair: self.world.group.offsets.get(pair, 0) for pair in effect.partitions}

    def do_StopAll(self, effect: StopAll) -> Offsets:
        return self.gate.stop_all()


assert FENCE_SUFFIX
