"""Two steps that move a group while no member runs: all members stop, the group is empty, all start again.

The brokers convert an empty group in both directions, whatever their migration policy and the members' user data are.
The group keeps its committed offsets. No partition is consumed from the first stop until the new members have joined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kit.engine.model.parameters import StepParameters
from kit.engine.model.step import Change, Step
from kit.errors import PlanError
from kit.moves.group.deploy import MemberReplacement
from kit.moves.group.group_state import PROTOCOLS, MemberState, counted, noun
from kit.moves.group.replacement import DAY_S, item_of
from kit.text.quantity import quantity

STOP_ALL, START_ALL = "stop all members", "start all members"
_ALIKE: tuple[Callable[[Mapping[str, str], Mapping[str, str]], bool], ...] = (
    lambda place, other: place["member"] == other["member"],
    lambda place, other: (place["client_id"], place["host"]) == (other["client_id"], other["host"]),
    lambda place, other: place["host"] == other["host"],
    lambda place, other: place["client_id"] == other["client_id"],
    lambda place, other: True,
)
MOVED = ("stage", "members", "topics", "kafka_group", "kafka_offsets")
"""The observations of a plan that the steps move: an empty group has no members, and so no subscriptions."""


@dataclass(frozen=True, slots=True)
class StoppedParameters(StepParameters):
    """Stop the members in ``places``, or start one ``to_protocol`` member in each place.

    ``places``: the members that the plan observed: ``member``, ``client_id``, ``host`` and ``protocol`` of each.
    ``offsets``: committed offsets of the plan by ``topic-partition``; none may be lost or lower. ``topics``: their
    partitions. ``step_timeout_s``: how long all members together may take to leave, or to join.
    """

    group: str
    places: tuple[Mapping[str, str], ...]
    to_protocol: str
    instruction: str
    by_person: bool
    offsets: Mapping[str, int]
    topics: Mapping[str, int]
    step_timeout_s: float
    quiet_s: float

    @property
    def before(self) -> dict[str, int]:
        """Protocol → members that stop."""
        return dict(Counter(place["protocol"] for place in self.places))

    @property
    def after(self) -> dict[str, int]:
        """Protocol → members that start."""
        return {self.to_protocol: len(self.places)}

    @property
    def items(self) -> dict[str, Mapping[str, str]]:
        """Item of the step → place."""
        count = len(self.places)
        return {item_of(number, count): place for number, place in enumerate(self.places, 1)}


def place_of(member: MemberState) -> dict[str, str]:
    """A member as ``StoppedParameters`` keep it."""
    return {
        "member": member.member_id,
        "client_id": member.client_id,
        "host": member.host or "",
        "protocol": member.flavour,
    }


def in_places(places: Mapping[str, Mapping[str, str]], members: Iterable[MemberState]) -> dict[str, MemberState]:
    """The member in each place that is taken, by item. A member that was restarted has another id than the plan knows.

    A member has its own place; or else one with its client id and host, its host, or its client id; or else any.
    """
    left, found = list(members), dict[str, MemberState]()
    for is_alike in _ALIKE:
        for item, place in places.items():
            member = next((each for each in left if item not in found and is_alike(place, place_of(each))), None)
            if member is not None:
                found[item] = member
                left.remove(member)
    return found


def stop_order(parameters: StoppedParameters, place: Mapping[str, str], number: int) -> MemberReplacement:
    """The order to stop the member in a place, and to start none."""
    return MemberReplacement(
        parameters.group, place["member"], place["client_id"], place["host"], place["protocol"], "", number
    )


def start_order(
    parameters: StoppedParameters, place: Mapping[str, str], protocol: str, number: int
) -> MemberReplacement:
    """The order to start a member of ``protocol`` in the place of one that was stopped."""
    return MemberReplacement(parameters.group, place["member"], place["client_id"], place["host"], "", protocol, number)


def stop_step(step_id: str, parameters: StoppedParameters) -> Step:
    """The step that stops all members.

    Raises:
        PlanError: the parameters make no sense.
    """
    _refuse_senseless(parameters)
    return Step(
        step_id=step_id,
        kind=STOP_ALL,
        title=f"Stop all {quantity(len(parameters.places), 'member')} of {parameters.group}",
        precondition=f"the group has {counted(parameters.before)}, and each partition is owned by one of them",
        verification="the group has no members, and each committed offset is still there and not lower",
        deadline_s=parameters.step_timeout_s,
        changes=tuple(Change(item, place["protocol"], None) for item, place in parameters.items.items()),
        undo="One member of the former protocol is started in the place of each member that this step stopped. An order"
        f" without a visible result is cancelled first, and nothing may change for {parameters.quiet_s:g} s.",
        needs_person=parameters.instruction if parameters.by_person else None,
        performed_by=parameters.instruction,
        affects=MOVED,
        parameters=parameters.to_json(),
    )


def start_step(step_id: str, parameters: StoppedParameters) -> Step:
    """The step that starts all members under the other protocol.

    Raises:
        PlanError: the parameters make no sense.
    """
    _refuse_senseless(parameters)
    to_protocol, count = parameters.to_protocol, len(parameters.places)
    return Step(
        step_id=step_id,
        kind=START_ALL,
        title=f"Start {quantity(count, noun(to_protocol))} of {parameters.group}",
        precondition="the group has no members, and each committed offset is still there and not lower",
        verification=f"the group has {counted(parameters.after)}, each partition is owned by one of them, and each"
        f" committed"
        " offset is still there and not lower",
        deadline_s=parameters.step_timeout_s,
        changes=tuple(Change(item, None, to_protocol) for item in parameters.items),
        undo=f"Each {noun(to_protocol)} that this step started is stopped, until the group has no members. An order"
        f" without a visible result is cancelled first, and nothing may change for {parameters.quiet_s:g} s.",
        needs_person=parameters.instruction if parameters.by_person else None,
        performed_by=parameters.instruction,
        affects=MOVED,
        parameters=parameters.to_json(),
    )


def _refuse_senseless(parameters: StoppedParameters) -> None:
    keys = {"member", "client_id", "host", "protocol"}
    if not parameters.places or any(place.keys() != keys for place in parameters.places):
        raise PlanError(
            f"the step of group {parameters.group} has no member, or a member without {', '.join(sorted(keys))}"
        )
    if not {parameters.to_protocol, *parameters.before} <= set(PROTOCOLS):
        raise PlanError(f"the step of group {parameters.group} names a protocol other than {' and '.join(PROTOCOLS)}")
    if not 0 < parameters.quiet_s <= DAY_S or not 0 < parameters.step_timeout_s <= DAY_S:
        raise PlanError(
            f"group {parameters.group}: step_timeout_s is {parameters.step_timeout_s:g} s and quiet_s is"
            f" {parameters.quiet_s:g} s: each time must be above 0 s and at most one day"
        )
