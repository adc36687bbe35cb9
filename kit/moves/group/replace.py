"""Replacing members of one flavour by members of another, one after the other, through a deployer.

Before each replacement, forward or back, the group is examined: its members lie between before and after, no other
operator or tool is there, and the assignment that the step needs is in force. No member is started without one that
was stopped before, unless the journal shows that this run stopped one. A replacement with an unknown result is
called off, and the group has to be quiet for a while, before anything else is ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kit.clients.cluster import Cluster
from kit.engine.model.clock import Clock
from kit.engine.model.performer import (
    ActedRecord,
    Checked,
    ItemOutcome,
    Outcome,
    Report,
    StepState,
    Verified,
    Waiting,
)
from kit.engine.model.step import Step
from kit.engine.model.values import Json
from kit.errors import AuthenticationFailed, ConnectError, RunError
from kit.moves.group.called_off import MembersWatch
from kit.moves.group.deploy import Deployer
from kit.moves.group.group_state import OZKCC, GroupState, MemberState, ReadGroup, counted, listed, read_group_state
from kit.moves.group.raised_offsets import raise_zookeeper_offsets
from kit.moves.group.replacement import (
    OFFSETS,
    Order,
    ReplaceParameters,
    by_others,
    chosen,
    countermanded,
    describe_newcomers,
    describe_of_others,
    had_twice,
    is_within_kafka,
    item_of,
    made_by_others,
    members_of,
    missing,
    n_done,
    n_missing,
    off_the_way,
    orders,
    ours,
    replacement_of,
    stopped,
)
from kit.text.quantity import quantity


class ReplaceActor:
    """``say`` shows a person what to do now; a replacement counts once ZooKeeper and the coordinator show it.

    ``read``: how the group is read; None: with ZooKeeper's part, by ``read_group_state``.
    """

    def __init__(
        self,
        cluster: Cluster,
        deployer: Deployer,
        say: Callable[[str], None] = lambda sentence: None,
        clock: Clock = Clock(),  # noqa: B008 - it holds functions, no state
        poll_s: float = 0.5,
        read: ReadGroup | None = None,
    ) -> None:
        self._cluster = cluster
        self._read = read
        self._deployer = deployer
        self._say = say
        self._clock = clock
        self._poll_s = poll_s
        self._begun: set[str] = set()

    def check(self, step: Step) -> Checked:
        state, parameters = self._look(step), ReplaceParameters.of(step)
        before, is_resumed = parameters.before, step.step_id in self._begun
        instruction = self._deployer.instruction(parameters.group, *parameters.direction)
        if instruction != parameters.instruction:
            return Checked(
                False,
                (f"the plan has the instruction {parameters.instruction!r}, but the profile now has {instruction!r}"),
            )
        if state.counts != before and not is_resumed:
            return Checked(False, f"expected {counted(before)}, found {counted(state.counts)}")
        problem = off_the_way(step, state) or self._refusal(step, state)
        if problem is not None:
            return Checked(False, problem)
        if state.counts == before and not state.is_settled:
            return Checked(False, f"the group is not settled: {state.unsettled}")
        n_partitions = quantity(len(state.partitions), "partition")
        return Checked(True, f"found {counted(state.counts)}; each of {n_partitions} is owned")

    def _refusal(self, step: Step, state: GroupState) -> str | None:
        """Return why the deployer would refuse to replace a member of the group; None: it takes all of them."""
        order = Order("", 1, *ReplaceParameters.of(step).direction)
        leaving = [each for each in state.members if each.flavour == order.from_flavour]
        reasons = (self._deployer.refusal(replacement_of(step, order, each)) for each in leaving)
        return next((each for each in reasons if each is not None), None)

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        """Asked of steps that were begun: one may then be stopped already whose successor isn't there yet."""
        self._begun.add(step.step_id)
        counts, parameters = self._look(step).counts, ReplaceParameters.of(step)
        if acted is not None and not ours(acted):
            return StepState.NOT_DONE
        if counts == parameters.after:
            return StepState.DONE
        others = 0 if acted is None else by_others(acted)
        return StepState.NOT_DONE if counts == parameters.counts_after(others) else StepState.PARTLY

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Order the replacements one after the other, each once the one before is seen.

        Raises:
            RunError: a replacement failed, or the group is not as the step needs it; nothing more is ordered.
        """
        outcomes, parameters = [], ReplaceParameters.of(step)
        (from_flavour, to_flavour), count = parameters.direction, parameters.count
        self._settle_open(step, report)
        if to_flavour == OZKCC:
            report.attempt([OFFSETS])
            outcomes.append(self._raise_offsets(step))
            report(outcomes)
            if outcomes[0].outcome == Outcome.REFUSED:
                return outcomes  # An old consumer would read again what the group has committed.
        first = self._look(step)
        for number in range(1, count + 1):
            item, state = item_of(number, count), self._on_the_way(step)
            if n_done(step, state) >= number:
                if number > n_done(step, first) and is_within_kafka(step):
                    report(made_by_others(step, state, number))  # So that an undo leaves them.
                    raise RunError(describe_of_others(step, first, state, outcomes))
                outcome = ItemOutcome(item, Outcome.UNCHANGED, from_flavour, to_flavour)
            else:
                outcome = self._replace(step, Order(item, number, from_flavour, to_flavour), report)
            report([outcome])
            outcomes.append(outcome)
            if outcome.outcome == Outcome.REFUSED:
                break
        return outcomes

    def verify(self, step: Step) -> Verified:
        state, after = self._look(step), ReplaceParameters.of(step).after
        if state.counts != after:
            return Verified(False, f"expected {counted(after)}, found {counted(state.counts)}")
        if not state.is_settled:
            return Verified(False, f"the group is not settled: {state.unsettled}")
        twice = had_twice(state)
        if twice:
            return Verified(False, f"{listed(twice)} are owned by two members")
        shares: dict[str, Json] = {member.member_id: len(member.partitions) for member in state.members}
        return Verified(
            True, f"the group has {counted(after)}; each partition is owned by one of them", {"shares": shares}
        )

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        """Return whether the group is still somewhere between before and after, as this run left it."""
        problem = off_the_way(step, self._look(step))
        return Checked(problem is None, problem or "the group is as this run left it")

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """Replace each member that this step had started by one of the former kind, the newest first.

        Raises:
            RunError: a replacement failed, or another operator or tool changed the group; nothing more is ordered.
        """
        outcomes = [
            ItemOutcome(OFFSETS, Outcome.UNCHANGED, None, "not lowered") for it in acted.written if it.item == OFFSETS
        ]
        from_flavour, to_flavour = ReplaceParameters.of(step).direction
        self._settle_open(step, report)
        for number, written in enumerate(reversed(ours(acted)), start=1):
            state = self._on_the_way(step)
            if n_done(step, state) <= by_others(acted) and not n_missing(step, state):
                outcome = ItemOutcome(written.item, Outcome.UNCHANGED, from_flavour, from_flavour)
            else:
                outcome = self._replace(step, Order(written.item, number, to_flavour, from_flavour), report)
            report([outcome])
            outcomes.append(outcome)
            if outcome.outcome == Outcome.REFUSED:
                raise RunError(f"{outcome.item}: {outcome.error}")
        return outcomes

    def _replace(self, step: Step, order: Order, report: Report) -> ItemOutcome:
        """One replacement, ordered and awaited; the last observation of the group is just before the order.

        Raises:
            RunError: the deployer refused it or failed, or nothing came of it in time; that was reported as UNKNOWN.
        """
        raised = self._raised_for(step, order, report)
        if raised is not None and raised.outcome == Outcome.REFUSED:
            return ItemOutcome(order.item, Outcome.REFUSED, order.from_flavour, None, f"{OFFSETS}: {raised.error}")
        state = self._on_the_way(step)
        replacement = replacement_of(step, order, self._victim(step, state, report.acted, order.from_flavour))
        before: dict[str, Json] = {
            "flavour": order.from_flavour,
            "member": replacement.member,
            "host": replacement.host,
        }
        beside = tuple(each.member_id for each in state.members if each.flavour == order.to_flavour)
        report.attempt([order.item], {"stops": replacement.member, "starts": order.to_flavour, "beside": beside})
        try:
            said = self._deployer.replace(replacement, self._say)
            arrived = self._await(step, replacement.member, state, order.to_flavour, report)
        except RunError as error:
            report([ItemOutcome(order.item, Outcome.UNKNOWN, before, None, str(error))])
            raise
        after: dict[str, Json] = {"flavour": order.to_flavour, "member": arrived, "said": said}
        if raised is not None:
            after["offsets_raised"] = raised.after
        return ItemOutcome(order.item, Outcome.CONFIRMED, before, after)

    def _raised_for(self, step: Step, order: Order, report: Report) -> ItemOutcome | None:
        if order.to_flavour != OZKCC:
            return None
        report.attempt([order.item], {"raises": OFFSETS})
        return self._raise_offsets(step)

    def _await(self, step: Step, gone: str, before: GroupState, flavour: str, report: Report) -> str:
        """The new member's id, once the old one is gone and every partition has a member again.

        Raises:
            RunError: that did not come in time, or more members came than were ordered, so that this run can't know
                which of them is its own.
        """
        here = {each.member_id for each in before.members if each.flavour == flavour}
        step_timeout_s = ReplaceParameters.of(step).step_timeout_s
        deadline, said = self._clock.monotonic() + step_timeout_s, ""
        while self._clock.monotonic() < deadline:
            state = self._seen(step)
            new = [it.member_id for it in members_of(state) if it.flavour == flavour and it.member_id not in here]
            if len(new) > 1 and is_within_kafka(step):
                raise RunError(describe_newcomers(step, flavour, new))
            lacks = missing(state, gone, flavour, bool(new))
            if lacks is None:
                return new[0]
            if lacks != said:
                said = lacks
                self._say(Waiting(f"waiting for up to {deadline - self._clock.monotonic():.0f} s: {said}"))
            report([])
            self._clock.sleep(self._poll_s)
        raise RunError(
            f"in {step_timeout_s:g} s {said}. The order stays open until the run is resumed or undone;"
            " both cancel the order first"
        )

    def _seen(self, step: Step) -> GroupState | None:
        """None: the cluster can't be asked now; who waits continues."""
        try:
            return self._look(step)
        except AuthenticationFailed:
            raise
        except ConnectError:
            return None

    def _settle_open(self, step: Step, report: Report) -> None:
        """Call off what was ordered and not seen, and wait until nothing has changed for a while.

        Raises:
            RunError: the group does not become quiet: the deployer may still work.
        """
        pending = [order for attempt, order in orders(report.acted) if attempt.is_open]
        for order in pending:
            self._deployer.countermand(countermanded(step, order["stops"], order["starts"]), self._say)
        if pending:
            parameters = ReplaceParameters.of(step)
            watch = MembersWatch(
                parameters.group, lambda: self._look(step).members, self._say, self._clock, self._poll_s
            )
            watch.await_quiet(parameters.quiet_s, parameters.step_timeout_s, report)

    def _on_the_way(self, step: Step) -> GroupState:
        """The group as it is now, checked against what this step may meet.

        Raises:
            RunError: the group is not as this step may find it.
        """
        state = self._look(step)
        problem = off_the_way(step, state)
        if problem is not None:
            raise RunError(f"{problem}: nothing more is ordered")
        return state

    def _victim(self, step: Step, state: GroupState, acted: ActedRecord, flavour: str) -> MemberState | None:
        """Return whom to replace; None: this run had one stopped, and its successor is missing.

        Raises:
            RunError: a member is missing, but this run did not stop it.
        """
        if not n_missing(step, state):
            return chosen(step, state, acted, flavour)
        gone = stopped(acted)
        if not gone or gone & {member.member_id for member in state.members}:
            raise RunError(
                f"group {state.group_id} has {counted(state.counts)}: a member is missing that this run did not have"
                " stopped. No member is started in its place. Find out why it is missing, then resume or undo the run"
            )
        return None

    def _raise_offsets(self, step: Step) -> ItemOutcome:
        """An old consumer reads ZooKeeper's offsets alone: none may be behind what the group committed to Kafka."""
        raised, refused = raise_zookeeper_offsets(self._cluster, self._look(step))
        parameters: Json = {pair: list(change) for pair, change in raised.items()}
        if refused:
            return ItemOutcome(OFFSETS, Outcome.REFUSED, None, parameters, "; ".join(refused))
        return ItemOutcome(OFFSETS, Outcome.CONFIRMED if raised else Outcome.UNCHANGED, None, parameters)

    def _look(self, step: Step) -> GroupState:
        group = ReplaceParameters.of(step).group
        if self._read is not None:
            return self._read(self._cluster, group)
        if self._cluster.zookeeper is None:
            raise ConnectError(
                f"cluster {self._cluster.name!r} has no zookeeper_connect in offramp.toml, which this plan needs"
            )
        return read_group_state(self._cluster, group)
