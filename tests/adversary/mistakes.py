"""Mistakes put back on purpose: what the engine and its actors once did, each as it was found by a hostile review.

Each is a set of patches, (where, name) → what is there instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from kit.engine.execution import run as run_module
from kit.engine.execution.run import Run
from kit.engine.execution.run_context import RunContext, _Reporter
from kit.engine.model import step as step_module
from kit.engine.model.actor import ClusterPerformer
from kit.engine.model.performer import ActedRecord, Checked, ItemOutcome, Outcome, StepState
from kit.engine.model.step import Step
from kit.engine.model.values import frozen_mapping
from kit.errors import InputError
from kit.moves.fleet.wave import WaveActor
from kit.moves.group import replace
from kit.moves.group.group_state import GroupState, MemberState
from kit.moves.group.replace import ReplaceActor
from kit.moves.group.replacement import Order, ReplaceParameters, item_of
from kit.moves.group.toggle import Toggle
from kit.moves.locks.kafka_lock import KafkaLock
from kit.moves.offsets.kafka import Answer, _Writing
from kit.moves.protocol import stop_and_start

Mistake = Mapping[tuple[Any, str], Any]


@contextmanager
def put_back(mistake: Mistake) -> Iterator[None]:
    with ExitStack() as stack:
        for (where, name), instead in mistake.items():
            stack.enter_context(patch.object(where, name, instead))
        yield


def _nothing(*_: object) -> None:
    pass


def _undo_by_counts(self: Any, step: Step, acted: ActedRecord, report: Any) -> Sequence[ItemOutcome]:
    """Until the counts are as before."""
    words = ReplaceParameters.of(step)
    from_flavour, to_flavour = words.direction
    left = words.after.get(from_flavour, 0)
    wanted = words.before.get(from_flavour, 0) - left
    outcomes = []
    for number in range(1, wanted + 1):
        item = item_of(number, wanted)
        if self._look(step).count(from_flavour) >= left + number:
            outcome = ItemOutcome(item, Outcome.UNCHANGED, to_flavour, from_flavour)
        else:
            outcome = self._replace(step, Order(item, number, to_flavour, from_flavour), report)
        report([outcome])
        outcomes.append(outcome)
    return outcomes


def _anybody(self: Any, step: Step, found: GroupState, acted: ActedRecord, flavour: str) -> MemberState | None:
    """Return a member to replace; None: no member is left, so the next one is only started."""
    return next((each for each in found.members if each.flavour == flavour), None)


A1: Mistake = {
    (Run, "_refuse_unless_open"): _nothing,
    (Run, "_refuse_followed"): _nothing,
    (ReplaceActor, "check_back"): lambda self, step, acted: Checked(True, "not examined"),
    (ReplaceActor, "undo"): _undo_by_counts,
    (ReplaceActor, "_on_the_way"): lambda self, step: self._look(step),
    (ReplaceActor, "_victim"): _anybody,
}
"""The way back examines nothing: no time limit, no later run, no counts, no mode."""


A3: Mistake = {(ClusterPerformer, "refuse_altered"): _nothing}
"""Nothing ties what a step says to what it does."""


_SECRET_NAME = re.compile(r"(?:^|[._\- ])(?:password|secret|credentials?|(?:private|api|access)[._-]?key)$", re.I)


def _refusing(value: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Names are keys, and a key that ends so is taken for a secret's."""
    for at, text in _texts(value, where):
        if _SECRET_NAME.search(at):
            raise InputError(f"{at} resembles a secret: {text!r}")
    return frozen_mapping(value, where)


def _texts(value: Any, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, str(key))
    elif isinstance(value, str):
        yield where, value


B4: Mistake = {(step_module, "frozen_mapping"): _refusing}
"""Names of groups are tested as secrets."""


B8: Mistake = {
    (ActedRecord, "is_open"): property(lambda self: False),
    (ReplaceActor, "_settle_open"): _nothing,
}
"""An order of which nobody knows counts as none, where the group looks as before."""


def _attempt_unasked(self: Any, items: Sequence[str], details: Any = None) -> None:
    permit, self.context.permit = self.context.permit, _nothing
    try:
        _ATTEMPT(self, items, details)
    finally:
        self.context.permit = permit


_ATTEMPT: Callable[..., None] = _Reporter.attempt
C10: Mistake = {(_Reporter, "attempt"): _attempt_unasked}
"""The approval is examined between steps only."""


def _left_by_anybody(self: Toggle, written: ItemOutcome) -> bool:
    return self.mode is not None and self.mode == written.after


def _touched(self: ActedRecord) -> tuple[ItemOutcome, ...]:
    return tuple(each for each in self.outcomes if each.outcome in {"CONFIRMED", "UNKNOWN", "UNCHANGED"})


C11: Mistake = {(Toggle, "was_left_by"): _left_by_anybody, (ActedRecord, "written"): property(_touched)}
"""The way back takes what holds the wanted value for its own doing."""


def _state_of_all(self: Any, step: Step, acted: ActedRecord | None = None) -> StepState:
    return _STATE(self, step, None)


_STATE: Callable[..., StepState] = WaveActor.state
C11_WAVE: Mistake = {(WaveActor, "state"): _state_of_all}
"""The groups that a wave never wrote report whether the wave was undone."""


LATER_RUNS: Mistake = {(RunContext, "refused"): lambda self, step: {}}
"""A later run over a part of the targets is not known: the actors decide by values, and values come back."""


TWICE_BACK: Mistake = {
    (ActedRecord, "written"): property(lambda self: tuple(it for it in self.outcomes if it.is_written)),
}
"""A second undo undoes again what the first one undid."""


BLIND_RETRIES: Mistake = {(_Writing, "unmoved"): lambda self, pending, current: pending}
"""A commit is tried again over what members committed meanwhile."""


THEIRS_CONFIRMED: Mistake = {(Answer, "is_refused"): property(lambda self: False)}
"""A value that is as wanted is this run's own, though its write was refused for certain."""


UNASKED: Mistake = {(KafkaLock, "assert_held"): lambda self: None}
"""Nothing goes through the coordinator's log before a write: a lock that was lost is taken for held."""


REVIVED: Mistake = {(run_module, "latest_seen"): lambda mark, expires_at, now: now}
"""An approval that was seen expired holds again once the clock is set back."""


STRANGERS_OWN: Mistake = {(replace, "is_within_kafka"): lambda step: False}
"""The first of two members that came for one order is taken for the run's own."""


CALLED_OFF_UNNAMED: Mistake = {
    (stop_and_start, "orders"): lambda acted: [(it, {**details, "of": ""}) for it, details in _ORDERS(acted)]
}
_ORDERS = stop_and_start.orders
"""An order to stop a member is called off without what it was."""
