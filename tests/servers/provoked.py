"""A check of a move to KRaft, provoked on real servers: how, and what is said then. ``provoked_cases`` has all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kit.tables.conditions import Condition

ALARM, BLOCK, WARN, INFO = "alarm", "block", "warn", "info"
STATUS, PREFLIGHT, EDITED = "status", "preflight", "edited"


@dataclass(frozen=True)
class Case:
    """``look``: of whom the finding is, and ``moment`` when; or ``EDITED``: the preflight of an edited copy.

    ``how``: what was done, for people. ``subject`` begins so; ``says`` and ``remedy`` are parts. ``is_met`` None: it is
    not known. ``file`` and ``changes``: of an edited copy of a node's file, None removes a line; ``facts``: the name of
    an edit of what was read.
    """

    check_id: str
    how: str
    look: str
    moment: str
    subject: str
    severity: str
    says: str
    remedy: str
    test: str = "test_kraft_preflight.py"
    is_met: bool | None = False
    file: str = ""
    changes: Mapping[str, str | None] = field(default_factory=dict)
    facts: str = ""

    def __str__(self) -> str:
        return f"{self.check_id} {self.moment} {self.subject}"


def hold(case: Case, rows: Iterable[Condition | Condition]) -> None:
    """Check that one of the findings is the case's: its subject, its severity, its sentence and its remedy."""
    of_check = [each for each in rows if each.check_id == case.check_id]
    named = [each for each in of_check if each.subject.startswith(case.subject)]
    assert named, of_check
    graded = [each for each in named if (each.severity, getattr(each, "is_met", False)) == (case.severity, case.is_met)]
    assert graded, named
    assert [each for each in graded if case.says in each.sentence and case.remedy in each.remedy], graded
