"""Rules that a plan has to meet, told as sentences; one that blocks is overridden by its name or not at all.

Who may override says the rule: the operator, by naming it; a second person, who then has to approve the plan (its
consent says so); nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kit.errors import InputError, UnsafePlan

BLOCKS = "blocks"
WARNS = "warns"
OPERATOR, SECOND_PERSON, NEVER = OVERRIDERS = ("operator", "second person", "never")


@dataclass(frozen=True, slots=True)
class Rule:
    """What must be so, in a sentence. ``level`` is ``blocks`` or ``warns``; ``overridden_by``: see the module."""

    name: str
    sentence: str
    level: str = BLOCKS
    overridden_by: str = OPERATOR

    def __post_init__(self) -> None:
        if self.overridden_by not in OVERRIDERS:
            raise InputError(f"rule {self.name!r}: nobody is {self.overridden_by!r}; there are {', '.join(OVERRIDERS)}")
        if self.level not in (BLOCKS, WARNS):
            raise InputError(f"rule {self.name!r}: the level {self.level!r} is neither {BLOCKS!r} nor {WARNS!r}")

    @property
    def can_be_overridden(self) -> bool:
        return self.overridden_by != NEVER

    def found(self, is_met: bool | None, sentence: str) -> Finding:
        """What an evaluation of this rule found; None: it could not be told, and that is not met."""
        return Finding(self, is_met, sentence)


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule evaluated: is it met, and what was found, in a sentence. ``is_met`` None: unknown, which is no pass."""

    rule: Rule
    is_met: bool | None
    sentence: str

    @property
    def is_blocking(self) -> bool:
        return self.is_met is not True and self.rule.level == BLOCKS


def raise_if_unsafe(findings: Iterable[Finding], overrides: Iterable[str] = ()) -> Mapping[str, str]:
    """The overrides that were needed, by rule name, with what was found: for ``Plan.overridden``.

    Raises:
        UnsafePlan: a rule blocks and isn't overridden, or an override names a rule that is unknown or can't be
            overridden; all of them are told.
    """
    findings = tuple(findings)
    named = set(overrides)
    problems = [*_wrong_overrides(findings, named), *unmet(findings, named)]
    if problems:
        raise UnsafePlan("; ".join(problems))
    needed: dict[str, list[str]] = {}
    for finding in findings:
        if finding.is_blocking:
            needed.setdefault(finding.rule.name, []).append(finding.sentence)
    return {name: " ".join(sentences) for name, sentences in needed.items()}


def unmet(findings: Iterable[Finding], overrides: Iterable[str] = ()) -> list[str]:
    """What blocks and is not overridden, told; an override of a rule that nobody may override counts for nothing."""
    named = set(overrides)
    blocking = [each for each in findings if each.is_blocking]
    return [_told(each) for each in blocking if each.rule.name not in named or not each.rule.can_be_overridden]


def warnings(findings: Iterable[Finding]) -> tuple[str, ...]:
    """What the rules that only warn have to say: for ``Plan.risks``."""
    return tuple(_told(finding) for finding in findings if finding.is_met is not True and not finding.is_blocking)


def _wrong_overrides(findings: tuple[Finding, ...], named: set[str]) -> list[str]:
    rules = {finding.rule.name: finding.rule for finding in findings}
    known = ", ".join(sorted(name for name, rule in rules.items() if rule.level == BLOCKS and rule.can_be_overridden))
    wrong = []
    for name in sorted(named):
        if name not in rules:
            wrong.append(f"there is no rule {name!r} to override; there are {known or 'none'}")
        elif rules[name].level == WARNS:
            wrong.append(f"the rule {name!r} only warns: there is nothing to override")
        elif not rules[name].can_be_overridden:
            wrong.append(f"the rule {name!r} can't be overridden")
    return wrong


def _told(finding: Finding) -> str:
    unknown = " (unknown)" if finding.is_met is None else ""
    return f"{finding.rule.name}{unknown}: {finding.sentence}"
