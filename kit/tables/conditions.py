"""Conditions: what must hold, evaluated. One class for rules of plans, gates, preflight checks, linters and alarms.

A ``Rule`` reports what must hold, how bad it is if it does not, and who may override it. A ``Condition`` is the answer
of one rule about one subject. An unknown condition is never met. Each subject registers its rules in its
``subject.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kit.errors import InputError, UnsafePlan

ALARM, BLOCK, WARN, INFO, ASK = SEVERITIES = ("alarm", "block", "warn", "info", "ask")
"""The worst first; ``ask``: a person must answer before a plan is made."""
OPERATOR, SECOND_PERSON, NEVER = OVERRIDERS = ("operator", "second person", "never")
"""The persons who may override a rule: the operator, by its name; a second person, who then has to approve the
plan; no person.
"""


@dataclass(frozen=True, slots=True)
class Condition:
    """The answer of one rule about one subject.

    ``check_id``: the rule's name. ``severity``: one of ``SEVERITIES``. ``phase``: what it must hold before, of a
    preflight. ``subject``: a node, znode, group, …; empty if the plan is the subject. ``is_met`` None: unknown, and
    ``sentence`` gives the reason. ``remedy``: what to do; empty if it is met. ``source``: how the answer is known.
    ``holds``: the rule as a sentence. ``overridden_by``: one of ``OVERRIDERS``.
    """

    check_id: str
    severity: str
    phase: str
    subject: str
    is_met: bool | None
    sentence: str
    remedy: str = ""
    source: str = ""
    holds: str = ""
    overridden_by: str = NEVER

    @property
    def is_blocking(self) -> bool:
        """Return whether the condition forbids to continue; one that a person must answer does so until it is
        answered.
        """
        return self.is_met is not True and self.severity in (ALARM, BLOCK, ASK)

    @property
    def can_be_overridden(self) -> bool:
        return self.overridden_by != NEVER

    @property
    def text(self) -> str:
        """The sentence, and the remedy if there is one."""
        return f"{self.sentence} {self.remedy}".rstrip()

    @property
    def described(self) -> str:
        """The one rendering in a line of text: ``id: sentence remedy``."""
        unknown = " (unknown)" if self.is_met is None else ""
        return f"{self.check_id}{unknown}: {self.text}"


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition that must hold, in a sentence. The other fields are those of its conditions.

    Raises:
        InputError: the severity or the overrider is unknown.
    """

    check_id: str
    holds: str
    severity: str = BLOCK
    overridden_by: str = OPERATOR
    phase: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if self.overridden_by not in OVERRIDERS:
            raise InputError(
                f"rule {self.check_id!r}: overridden_by can't be {self.overridden_by!r}; there are"
                f" {', '.join(OVERRIDERS)}"
            )
        if self.severity not in SEVERITIES:
            raise InputError(
                f"rule {self.check_id!r}: unknown severity {self.severity!r}; there are {', '.join(SEVERITIES)}"
            )

    @property
    def can_be_overridden(self) -> bool:
        return self.overridden_by != NEVER

    def found(
        self,
        is_met: bool | None,
        sentence: str,
        *,
        subject: str = "",
        remedy: str = "",
        severity: str | None = None,
    ) -> Condition:
        """Return the answer of this rule; ``is_met`` None: it is unknown, which is not met."""
        return Condition(
            check_id=self.check_id,
            severity=severity or self.severity,
            phase=self.phase,
            subject=subject,
            is_met=is_met,
            sentence=sentence,
            remedy=remedy,
            source=self.source,
            holds=self.holds,
            overridden_by=self.overridden_by,
        )


def raise_if_unsafe(conditions: Iterable[Condition], overrides: Iterable[str] = ()) -> Mapping[str, str]:
    """Return the overrides that were needed, by rule, with what was found: for ``Plan.overridden``.

    Raises:
        UnsafePlan: a condition blocks and isn't overridden, or an override names a rule that is unknown or can't be
            overridden. The message names all of them.
    """
    conditions = tuple(conditions)
    named = set(overrides)
    problems = [*_wrong_overrides(conditions, named), *unmet(conditions, named)]
    if problems:
        raise UnsafePlan("; ".join(problems))
    needed: dict[str, list[str]] = {}
    for each in conditions:
        if each.is_blocking:
            needed.setdefault(each.check_id, []).append(each.text)
    return {check_id: " ".join(texts) for check_id, texts in needed.items()}


def unmet(conditions: Iterable[Condition], overrides: Iterable[str] = ()) -> list[str]:
    """Describe what blocks and is not overridden; an override of a condition that can't be overridden is ignored."""
    named = set(overrides)
    blocking = [each for each in conditions if each.is_blocking]
    return [each.described for each in blocking if each.check_id not in named or not each.can_be_overridden]


def warnings(conditions: Iterable[Condition]) -> tuple[str, ...]:
    """Describe what is not met and does not block: for ``Plan.risks``."""
    return tuple(each.described for each in conditions if is_warning(each))


def is_warning(condition: Condition) -> bool:
    """Return whether a condition is not met, or unknown, and does not block."""
    return condition.is_met is not True and not condition.is_blocking


def _wrong_overrides(conditions: tuple[Condition, ...], named: set[str]) -> list[str]:
    by_id = {each.check_id: each for each in conditions}
    blocking = {check_id: each for check_id, each in by_id.items() if each.severity in (ALARM, BLOCK, ASK)}
    known = ", ".join(sorted(check_id for check_id, each in blocking.items() if each.can_be_overridden))
    wrong = []
    for check_id in sorted(named):
        if check_id not in by_id:
            wrong.append(f"there is no rule {check_id!r} to override; there are {known or 'none'}")
        elif check_id not in blocking:
            wrong.append(f"the rule {check_id!r} only warns: there is nothing to override")
        elif not by_id[check_id].can_be_overridden:
            wrong.append(f"the rule {check_id!r} can't be overridden")
    return wrong
