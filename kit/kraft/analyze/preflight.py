"""The preflight of a migration to KRaft (KIP-866): every check, over everything that was read."""

from __future__ import annotations

from kit.kraft.analyze import (
    preflight_bugs,
    preflight_control,
    preflight_controllers,
    preflight_entities,
    preflight_files,
    preflight_health,
    preflight_nodes,
    preflight_rollback,
    preflight_topics,
)
from kit.kraft.analyze.preflight_checks import ROLLBACK, Check, PreflightFacts
from kit.tables.conditions import ALARM, BLOCK, Condition, Rule

_OF_THE_CLUSTER = (
    *preflight_topics.CHECKS,
    *preflight_health.CHECKS,
    *preflight_control.CHECKS,
    *preflight_entities.CHECKS,
    *preflight_nodes.CHECKS,
    *preflight_files.CHECKS,
    *preflight_controllers.CHECKS,
    *preflight_rollback.CHECKS,
)
CHECKS: tuple[Check, ...] = (*sorted(_OF_THE_CLUSTER, key=lambda each: each.rule.check_id), *preflight_bugs.CHECKS)
RULES: tuple[Rule, ...] = tuple(each.rule for each in CHECKS)


def preflight(facts: PreflightFacts) -> list[Condition]:
    """At least one row per check: met, not met, or (``is_met`` None) not known."""
    return [finding for check in CHECKS for finding in check.findings(facts)]


def blocking(findings: list[Condition]) -> list[Condition]:
    """Checks that forbid the next step; a check of the rollback alone does not."""
    return [each for each in findings if each.is_met is False and _is_hard(each)]


def unknown(findings: list[Condition]) -> list[Condition]:
    """Return the checks that would forbid the move and could not be read."""
    return [each for each in findings if each.is_met is None and _is_hard(each)]


def _is_hard(finding: Condition) -> bool:
    return finding.severity in (ALARM, BLOCK) and finding.phase != ROLLBACK
