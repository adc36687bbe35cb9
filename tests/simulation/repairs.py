"""Proposed changes of ``kit.consumer``, as subclasses; what is changed there goes here.

``test_simulation_races.py`` shows what goes wrong without each.
"""

from __future__ import annotations

from dataclasses import replace

from kit.consumer import coordination as effects
from kit.consumer.assignors import split_over_threads
from kit.consumer.coordination import BeforeStarting, Coordination, Ended, GroupView, KafkaGroup, Membership, Outcome
from kit.consumer.migration import Decision
from tests.simulation.model_embedded import Embedded
from tests.simulation.model_member import PythonMember
from tests.simulation.model_zookeeper import SESSION_SECONDS
from tests.simulation.steps import Steps


class RepairedCoordination(Coordination):
    def _follow_kafka(self, view: GroupView, decision: Decision, group: KafkaGroup) -> effects.Round:
        """One that is out of the Kafka group keeps nothing from the next owners, though it can't see who they are;
        unless an old consumer would be among them (R13)."""
        kafka: effects.KafkaAssignment = yield effects.ReadKafkaAssignment()
        if kafka.membership is Membership.REBALANCING:
            yield from self._stop(frozenset(self.held))
            return Outcome(Ended.WAITING, decision)
        mine = split_over_threads(self.consumer_id, view.members[self.consumer_id], kafka.partitions)
        fences = self._fences(group, mine) if decision.is_fencing else {}
        has_old = bool(view.members.keys() - view.migration_enabled)
        is_waiting = decision.is_fencing and not group.is_stable and (has_old or kafka.membership is Membership.IN)
        if is_waiting:
            yield from self._stop(frozenset(self.held) - mine.keys())
        else:
            yield from self._stop(
                frozenset(pair for pair in fences if self.held.get(pair, fences[pair]) != fences[pair])
            )
            yield from self._let_go(mine | fences)
        yield from self._rename(effects._only(fences, self.held))
        missing = effects._without(mine | fences, self.held)
        taken: effects.Pairs = (yield effects.ClaimEach(missing)) if missing else frozenset()
        self.held = self.held | effects._without(missing, taken)
        outcome = Outcome(Ended.BLOCKED, decision, mine, taken & mine.keys())
        telling = BeforeStarting(view, None)
        outcome = yield from self._consume(effects._only(mine, self.held), kafka.epoch, outcome, telling)
        return replace(outcome, ended=Ended.WAITING) if is_waiting and outcome.ended is Ended.SETTLED else outcome


class RepairedEmbedded(Embedded):
    def _is_put_out(self) -> bool:
        """While ZooKeeper's session is in doubt the proof, a commit, would lower what another member has committed."""
        return self._member.gate.seconds_in_doubt > 0 or super()._is_put_out()


class RepairedMember(PythonMember):
    coordination_class = RepairedCoordination
    embedded_class = RepairedEmbedded

    def _has_session(self) -> Steps:
        """R12: the session is over by now, though nobody could say so: the Kafka group goes on without this member.

        In the connector: ``if not self._has_session()`` and in doubt for a third of the time-out.
        """
        is_over = self.client.current is None and self.gate.seconds_in_doubt >= SESSION_SECONDS / 3
        if is_over and self.embedded is not None:
            self.embedded.subscribe([])
        return (yield from super()._has_session())

    def do_CommitZookeeper(self, effect: effects.CommitZookeeper) -> Steps:
        """What ZooKeeper could not be asked about may be another member's, who is further: never lower Kafka's offset.

        In the driver: fetch the group's offsets before ``CommitKafka`` then.
        """
        failed = yield from super().do_CommitZookeeper(effect)
        known = self.world.group.offsets
        self.gate.saved({pair: effect.offsets[pair] for pair in failed if known.get(pair, 0) >= effect.offsets[pair]})
        return failed
