"""Mistakes put back on purpose: D1 … D16 of KIP-125's patch (``docs/races.md``), and others that a change might make.

Each is a member that differs from :class:`PythonMember` in one thing. Not here: D4 and D16 (inside an offset store, see
``tests/unit``), D8 (patterns of topics, the same).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kit.consumer.zookeeper import effects
from kit.consumer.zookeeper.assignors import Assignment, TopicAndPartition, assign
from kit.consumer.zookeeper.coordination import Coordination, Round, RoundResult, RoundStatus, whole_assignment
from kit.consumer.zookeeper.effects import GroupView, KafkaGroup, Offsets, Pairs
from kit.consumer.zookeeper.gate import Gate
from kit.consumer.zookeeper.migration import decide
from tests.simulation.model_embedded import Embedded
from tests.simulation.model_member import PythonMember
from tests.simulation.model_znodes import ZnodeSteps
from tests.simulation.model_zookeeper import SESSION_SECONDS, Create, Delete
from tests.simulation.steps import Steps, Thread

NEVER = 1e9


def with_coordination(mistake: type[Coordination]) -> type[PythonMember]:
    return type(mistake.__name__, (PythonMember,), {"coordination_class": mistake})


def with_gate(mistake: type[Gate]) -> type[PythonMember]:
    return type(mistake.__name__, (PythonMember,), {"gate_class": mistake})


# Mistakes of the patch


class D1(PythonMember):
    """No owner znodes for what Kafka's assignment gives."""

    def do_ClaimEach(self, effect: effects.ClaimEach) -> Pairs:
        return frozenset()


class D2(PythonMember):
    """A rebalance is answered without stopping."""

    def revoked(self) -> Steps:
        yield None


class D3(PythonMember):
    """A release waits five seconds for a callback that can't come, then leaves ZooKeeper's commit out."""

    def do_CommitZookeeper(self, effect: effects.CommitZookeeper) -> Steps:
        until = self.world.now + 5
        yield lambda: self.world.now >= until
        return frozenset()


class IdsFirst(ZnodeSteps):
    def register(self, streams: Mapping[str, int]) -> Steps:
        problem = yield from self.client.transact(Create(("ids", self.consumer_id), streams, True))
        if self.is_migration_enabled and problem is None:
            for _ in range(40):
                yield None
            problem = yield from self.client.transact(Create(("migration/ids", self.consumer_id), streams, True))
        return problem is None


class D5(PythonMember):
    """``ids`` before ``migration/ids``: others take it for an old one meanwhile."""

    znodes_class = IdsFirst


class KeepsWhatItHeld(Coordination):
    def session_lost(self) -> None:
        """The registry of the last session stays."""


class DeletesBlindly(ZnodeSteps):
    def release(self, partitions: Iterable[TopicAndPartition]) -> Steps:
        for pair in sorted(partitions):
            yield from self.client.transact(Delete(("owners", pair)))


class D6(PythonMember):
    """Delete in the next session what was held in the last one, whichever member holds it by then."""

    coordination_class = KeepsWhatItHeld
    znodes_class = DeletesBlindly

    def watch_lost(self) -> None:
        pass

    def owner_gone(self, pair: TopicAndPartition) -> None:
        self.gate.drop([pair])


class D7(PythonMember):
    """The toggle is read by a task of its own for each event, and what a task has read is written later."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.flag: str | None = None
        self.n_tasks = 0

    def do_ReadGroup(self, effect: effects.ReadGroup) -> Steps:
        view: GroupView = yield from super().do_ReadGroup(effect)
        self.client.set_watch(("mode", None), self._mode_changed)
        return replace(view, toggle=self.flag)

    def _mode_changed(self, kind: str) -> None:
        self.client.set_watch(("mode", None), self._mode_changed)
        self.n_tasks += 1
        self.threads[f"task {self.n_tasks}"] = Thread(self._switch())

    def _switch(self) -> Steps:
        text = self.world.toggle
        yield None
        self.flag = text
        self.note()


class DeafAtFirst(Embedded):
    def on_assign(self, pairs: Pairs) -> Steps:
        if self.assignment.epoch == 0:
            self._set(effects.Membership.IN, pairs)
            return
        yield from super().on_assign(pairs)


class D9(PythonMember):
    """The first assignment comes before anybody listens."""

    embedded_class = DeafAtFirst


class RestartsAlways(Coordination):
    """D10: whatever changes, all partitions restart."""

    def _follow_kafka(self, view: GroupView, decision: Any, group: KafkaGroup) -> Round:
        yield from self._stop(frozenset(self.held))
        return (yield from super()._follow_kafka(view, decision, group))


class D11(PythonMember):
    """The whole assignment is reported as it is described, stable or not."""

    def do_BeforeStarting(self, effect: effects.BeforeStarting) -> None:
        if effect.assignment is None:
            group = self.described(frozenset(effect.view.members))
            self.announced = whole_assignment(effect.view, group)
            self.world.judge.announced(self, effect.view, self.announced)


class OldOnesDecide(Coordination):
    """D12, D13: ZooKeeper's assignment whenever KIP-125's text says so, whoever is in the Kafka group."""

    def _decide(self, view: GroupView) -> Any:
        if not self.is_migration_enabled:
            return (yield from super()._decide(view))
        yield effects.ReadKafkaGroup(frozenset(view.members))
        return decide(view.toggle, view.members, view.migration_enabled, (), self.mode, False), KafkaGroup()


class D14(PythonMember):
    """ZooKeeper gets what Kafka took."""

    def do_CommitZookeeper(self, effect: effects.CommitZookeeper) -> Any:
        if self.embedded is not None and not self.embedded.client.is_reachable:
            return frozenset()
        return super().do_CommitZookeeper(effect)


class D15(PythonMember):
    """It gives up after four tries."""

    n_blocked = 0

    def _after(self, result: RoundResult) -> Steps:
        self.n_blocked = self.n_blocked + 1 if result.blocked else 0
        pause = yield from super()._after(result)
        return NEVER if self.n_blocked >= 4 else pause

    def note(self) -> None:
        if self.n_blocked < 4:
            super().note()


# Order and conditions


class OffsetsBeforeClaim(Coordination):
    """Read offsets before the claim like the old consumer: the last owner may commit in between."""

    def _follow_zookeeper(self, view: GroupView, decision: Any, group: KafkaGroup) -> Round:
        whole = assign(self.strategy, view.members, view.partitions, self.hash_form)
        early: Offsets = yield effects.FetchOffsets(frozenset(self._own(whole)))
        steps, answer = super()._follow_zookeeper(view, decision, group), None
        while True:
            try:
                effect = steps.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            is_fetch = isinstance(effect, effects.FetchOffsets)
            answer = {pair: early[pair] for pair in effect.partitions if pair in early} if is_fetch else (yield effect)


class ReleaseBeforeCommit(Coordination):
    def _let_go(self, mine: Assignment) -> Steps:
        leaving = frozenset(pair for pair in self.held if pair not in mine)
        if leaving:
            yield effects.Stop(leaving)
            yield effects.Release(leaving)
            self.held = {pair: thread for pair, thread in self.held.items() if pair not in leaving}


class ReleaseBeforeStop(Coordination):
    def _let_go(self, mine: Assignment) -> Steps:
        leaving = frozenset(pair for pair in self.held if pair not in mine)
        if leaving:
            yield effects.Release(leaving)
            yield from self._stop(leaving)
            self.held = {pair: thread for pair, thread in self.held.items() if pair not in leaving}


class ReleaseInAnyCase(Coordination):
    """Even if ZooKeeper could not be asked to take the offset."""

    def _stop(self, partitions: Pairs) -> Any:
        yield from super()._stop(partitions)
        return frozenset()


class LooksAtNothing(PythonMember):
    """After a round that was abandoned, what is held is what was thought to be."""

    def do_ReadHeld(self, effect: effects.ReadHeld) -> Assignment:
        return self.coordination.held


class AssignmentEpochIgnored(Gate):
    def _is_open(self, assignment_epoch: int | None) -> bool:
        return super()._is_open(None)


class RoundNeverRefused(Gate):
    """Stop everything but the round in progress."""

    def _is_open(self, assignment_epoch: int | None) -> bool:
        self._is_round_refused = False
        return super()._is_open(assignment_epoch)


class LeaseIgnored(Gate):
    def extend(self, session: int, until: float) -> None:
        super().extend(session, NEVER)


class LeaseFromAnswer(PythonMember):
    """The lease begins when the answer is read, not when the question was asked."""

    def _prove_once(self) -> Steps:
        session = self.client.current
        yield from self.client.ask(lambda: None)
        yield None
        if session is not None and session == self.client.current:
            self.gate.extend(session, self.world.now + SESSION_SECONDS * 2 / 3)


class TheftIgnored(PythonMember):
    def owner_gone(self, pair: TopicAndPartition) -> None:
        self.world.judge.theft_noticed(self, pair)


class DoubtsForgotten(Coordination):
    """A round that ends is sure of itself, whatever came in its middle."""

    def reconcile(self) -> Round:
        result = yield from super().reconcile()
        self.certainty.begin_round()
        self.certainty.end_round(is_blocked=False)
        return result


class ForgetsDoubts(PythonMember):
    coordination_class = DoubtsForgotten
    gate_class = RoundNeverRefused


class WatchesForgotten(PythonMember):
    """Watches that a lost connection took are not missed."""

    def watch_lost(self) -> None:
        pass


class LeftoversAreOwn(ZnodeSteps):
    """An owner znode with the own id is the own one, of whatever session."""

    def _sorted_owners(self, threads: Iterable[TopicAndPartition]) -> Steps:
        pairs = sorted(threads)
        znodes = yield from self._read_all([("owners", pair) for pair in pairs])
        owners = {pair: znode for pair, znode in zip(pairs, znodes) if znode is not None}
        mine = frozenset(pair for pair, znode in owners.items() if znode.data.startswith(self.consumer_id))
        return mine, frozenset(owners) - mine

    def _watch(self, owned: Iterable[TopicAndPartition]) -> Steps:
        yield None
        return frozenset()


class TakesLeftovers(PythonMember):
    znodes_class = LeftoversAreOwn


class LostIgnored(PythonMember):
    def lost(self) -> Steps:
        yield None


class DeafWithoutTimer(PythonMember):
    """A missed watch is never made good."""

    def _after(self, result: RoundResult) -> Steps:
        pause = yield from super()._after(result)
        return NEVER if result.status is RoundStatus.SETTLED else pause


class AnswersInZookeepersMode(Coordination):
    """A rebalance stops only what Kafka assigned, whatever the toggle says."""

    def revoked(self) -> Steps:
        yield from self._commit((yield effects.StopKafkaAssigned()))
        yield effects.DiscardUnsaved()


class WaitsAndConsumes(Coordination):
    """While the Kafka group rebalances, what ZooKeeper's assignment gave continues."""

    def _follow_kafka(self, view: GroupView, decision: Any, group: KafkaGroup) -> Round:
        kafka: effects.KafkaAssignment = yield effects.ReadKafkaAssignment()
        if kafka.membership is effects.Membership.REBALANCING:
            return RoundResult(RoundStatus.WAITING, decision)
        return (yield from super()._follow_kafka(view, decision, group))


class UnansweredIsUnsaved(PythonMember):
    """A rebalance is answered with what another thread has stopped and not committed yet."""

    def do_StopKafkaAssigned(self, effect: effects.StopKafkaAssigned) -> Offsets:
        self.gate.uncommitted.discard_unsaved()
        return super().do_StopKafkaAssigned(effect)

    def do_StopAll(self, effect: effects.StopAll) -> Offsets:
        self.gate.uncommitted.discard_unsaved()
        return super().do_StopAll(effect)


class LateReservation(Coordination):
    """Reservations are made when an old consumer is seen."""

    def _decide(self, view: GroupView) -> Any:
        decided = yield from super()._decide(view)
        if decided is None:
            return None
        has_old = bool(view.members.keys() - view.migration_enabled)
        return replace(decided[0], is_reserving=decided[0].is_reserving and has_old), decided[1]


class BlindDecision(PythonMember):
    """A Kafka group that can't be described has nobody in it."""

    def do_ReadKafkaGroup(self, effect: effects.ReadKafkaGroup) -> KafkaGroup:
        return super().do_ReadKafkaGroup(effect) or KafkaGroup()


class ClientIdsTell(PythonMember):
    """Whoever has the client id of a registered consumer is the one that it embeds."""

    def described(self, consumer_ids: frozenset[str]) -> KafkaGroup:
        members = [replace(each, is_embedded=each.client_id in consumer_ids) for each in self.world.group.describe()]
        return self.kafka_members.group(members, not self.world.group.is_rebalancing, consumer_ids)


class GuessesCount(Coordination):
    """A guess of who is embedded decides as what is known."""

    def _is_unsure(self, group: KafkaGroup, is_kafka_due: bool) -> Any:
        return False
        yield


class StaleDescription(PythonMember):
    """Ask for the members of the Kafka group once per generation."""

    def do_ReadKafkaGroup(self, effect: effects.ReadKafkaGroup) -> KafkaGroup | None:
        return super().do_ReadKafkaGroup(replace(effect, is_fresh=False))


class ReservationsGoSilently(Coordination):
    """Let a member that takes over from Kafka consumers find ZooKeeper's old offset."""

    def _hand_over(self, reservations: Pairs) -> Any:
        return frozenset()
        yield


class CopiesNothing(PythonMember):
    """A reservation goes with an offset that was not written, as with ``auto.commit.enable=false`` once."""

    def do_CopyToZookeeper(self, effect: effects.CopyToZookeeper) -> Pairs:
        return frozenset()


class CountsWhatIsInHand(Gate):
    """Count what the application has in hand as consumed once its partition is stopped."""

    def _await_finished(self, stopped: Mapping[Any, Offsets]) -> None:
        for stream, offsets in stopped.items():
            after = {pair: message + 1 for pair, message in stream.in_hand.items() if pair in offsets}
            self.uncommitted.advance(offsets, after)


class OthersNotStopped(PythonMember):
    """Continue to consume what turns out not to be held."""

    def do_StopOthers(self, effect: effects.StopOthers) -> None:
        pass


class BeginsWhereFetched(Gate):
    """A partition begins at the offset that was fetched, though its last commit is still under way."""

    def start(self, threads: Assignment, offsets: Offsets, assignment_epoch: int | None) -> Pairs:
        for pair in threads:
            self.uncommitted.restart(pair)
        return super().start(threads, offsets, assignment_epoch)


class UnprovenMembership(Embedded):
    """A poll alone is proof enough."""

    def _is_put_out(self) -> bool:
        return False


class StandsStillUnproven(PythonMember):
    embedded_class = UnprovenMembership


class StaysInTheKafkaGroup(PythonMember):
    """R12: without ZooKeeper it waits to be reported that its session has ended."""

    def _has_session(self) -> Steps:
        if self.client.current is None:
            return False
        return (yield from super()._has_session())


class ProofInDoubt(Embedded):
    """R12: the commit that proves a membership is sent whoever has the partitions by then."""

    def _is_put_out(self) -> bool:
        kafka_assigned = self._member.gate.kafka_assigned()
        return not kafka_assigned or bool(self.commit_now(kafka_assigned))


class ProvesInDoubt(PythonMember):
    embedded_class = ProofInDoubt

    def _drop_what_kafka_has(self, offsets: Offsets) -> Steps:
        yield None


class KeepsFromTheUnknown(Coordination):
    """R13: who is out of the Kafka group waits for a description of it."""

    def _follow_kafka(self, view: GroupView, decision: Any, group: KafkaGroup) -> Round:
        if decision.is_reserving and not group.is_stable:
            return RoundResult(RoundStatus.WAITING, decision)
        return (yield from super()._follow_kafka(view, decision, group))
