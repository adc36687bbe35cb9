"""An approval: this plan and no other, by this person, until then."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from kit.errors import ApprovalError, InputError
from kit.migrate.files import write_whole
from kit.migrate.plan import Plan, utc
from kit.migrate.values import Json, digest_of, parse_json, readable, refuse_secrets

SHORTEST_PREFIX = 8
CLOCK_SKEW = timedelta(minutes=2)
"""How far two operators' clocks may be apart."""


@dataclass(frozen=True, slots=True)
class Approval:
    """Who agreed to the plan of this digest, when, and until when it may be carried out."""

    digest: str
    approved_by: str
    approved_at: datetime
    expires_at: datetime

    def __post_init__(self) -> None:
        refuse_secrets(self.approved_by, "approved_by")
        object.__setattr__(self, "approved_at", utc(self.approved_at, "approved_at"))
        object.__setattr__(self, "expires_at", utc(self.expires_at, "expires_at"))

    def to_json(self) -> dict[str, Json]:
        return {
            "digest": self.digest,
            "approved_by": self.approved_by,
            "approved_at": self.approved_at.isoformat(),
            "expires_at": self.expires_at.isoformat(),
        }


def approve(
    plan: Plan,
    *,
    typed_subject: str,
    typed_digest_prefix: str,
    approver: str,
    now: datetime,
    valid_for: timedelta,
    require_second_person: bool = False,
) -> Approval:
    """The approval of a plan by who typed its group's name and the first eight or more characters of its digest.

    Raises:
        ApprovalError: what was typed is not this plan's, nobody approves, the planner approves alone where a second
            person is required, it would be valid for no time, or the plan is from the future.
    """
    _refuse_typed(plan, typed_subject, typed_digest_prefix)
    if valid_for <= timedelta(0):
        raise ApprovalError("an approval has to be valid for some time")
    approval = Approval(plan.digest, approver.strip(), now, now + valid_for)
    refuse_unless_valid(approval, plan, now, require_second_person=require_second_person)
    return approval


def refuse_unless_valid(
    approval: Approval | None, plan: Plan, now: datetime, *, require_second_person: bool = False
) -> None:
    """Raises:
    ApprovalError: there is none, it is another plan's, expired, from the future, older than its plan, or by the
        planner where a second person is required.
    """
    if approval is None:
        raise ApprovalError(f"the plan {plan.digest[:8]} for {plan.subject} was not approved")
    if approval.digest != plan.digest:
        raise ApprovalError(f"the approval is of the plan {approval.digest[:8]}, not of {plan.digest[:8]}")
    if not approval.approved_by.strip():
        raise ApprovalError("an approval has to say who approves")
    if require_second_person and _person(approval.approved_by) == _person(plan.made_by):
        raise ApprovalError(f"{plan.made_by} made this plan: another person has to approve it")
    _refuse_times(approval, plan, utc(now, "now"))


def save_approval(approval: Approval, path: Path) -> None:
    content = approval.to_json()
    write_whole(path, readable({**content, "checksum": digest_of(content)}))


def load_approval(path: Path) -> Approval:
    """Raises:
    ApprovalError: the file can't be read, is no approval, or was edited.
    """
    try:
        return parse_approval(parse_json(path.read_text(encoding="utf-8")), str(path))
    except OSError as error:
        raise ApprovalError(f"{path} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise ApprovalError(f"{path} is not an approval: {error}") from error


def parse_approval(data: Any, where: str) -> Approval:
    """Raises:
    ApprovalError: it is no approval, or was edited.
    """
    if not isinstance(data, dict):
        raise ApprovalError(f"{where} is not an approval")
    content = {name: value for name, value in data.items() if name != "checksum"}
    if digest_of(content) != data.get("checksum"):
        raise ApprovalError(f"{where} was edited after it was made, or is not an approval")
    try:
        times = [datetime.fromisoformat(content.pop(name)) for name in ("approved_at", "expires_at")]
        return Approval(content.pop("digest"), content.pop("approved_by"), *times, **content)
    except (KeyError, TypeError, ValueError, InputError) as error:
        raise ApprovalError(f"{where} is not an approval: {error}") from error


def _refuse_typed(plan: Plan, subject: str, prefix: str) -> None:
    if subject.strip() != plan.subject.strip():
        raise ApprovalError(f"this plan is for {plan.subject!r}, not for {subject.strip()!r}")
    prefix = prefix.strip().lower()
    if len(prefix) < SHORTEST_PREFIX:
        raise ApprovalError(f"type at least {SHORTEST_PREFIX} characters of the plan's digest")
    if not plan.digest.startswith(prefix):
        raise ApprovalError(f"the plan's digest does not begin with {prefix!r}: was another plan meant?")


def _refuse_times(approval: Approval, plan: Plan, now: datetime) -> None:
    if approval.approved_at > now + CLOCK_SKEW:
        raise ApprovalError(
            f"clock trouble: the approval is of {approval.approved_at.isoformat()}, and here it is {now.isoformat()}"
        )
    if plan.made_at > approval.approved_at + CLOCK_SKEW:
        raise ApprovalError(
            f"clock trouble: the plan is of {plan.made_at.isoformat()},"
            f" its approval of {approval.approved_at.isoformat()}"
        )
    if now >= approval.expires_at:
        raise ApprovalError(f"the approval expired at {approval.expires_at.isoformat()}: approve the plan again")


def _person(name: str) -> str:
    return unicodedata.normalize("NFKC", name).strip().casefold()
