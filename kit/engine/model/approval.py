"""An approval: this plan and no other, by this person, until then; signed where the profile asks for it.

Files are no authority: who can write ``runs/`` can write any name into one. A signature by a key that the profile names
is one; it covers all that the approval reports, and is verified offline from the evidence alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from kit.engine.model.files import keep_new, write_atomic
from kit.engine.model.plan import Plan, utc
from kit.engine.model.values import Json, canonical, digest_of, parse_json, readable
from kit.errors import ApprovalError, InputError
from kit.profile import ApprovalSettings
from kit.profile.identity.login import system_user
from kit.text.regular_file import read_regular
from kit.text.visible import visible

SHORTEST_PREFIX = 8
CLOCK_SKEW = timedelta(minutes=2)
"""The largest difference between two operators' clocks."""


@dataclass(frozen=True, slots=True)
class Approval:
    """The approval of the plan of this digest: who agreed, when, and until when the plan may be executed.

    ``approved_by`` was typed; ``approved_as`` is whom the operating system knew (None: in approvals of older versions).
    ``first``: where two signers are needed, the approval of the other one. ``signature`` covers all the rest.
    """

    digest: str
    approved_by: str
    approved_at: datetime
    expires_at: datetime
    approved_as: str | None = None
    signature: str | None = None
    first: Approval | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "approved_at", utc(self.approved_at, "approved_at"))
        object.__setattr__(self, "expires_at", utc(self.expires_at, "expires_at"))

    def to_json(self) -> dict[str, Json]:
        content: dict[str, Json] = {
            "digest": self.digest,
            "approved_by": self.approved_by,
            "approved_at": self.approved_at.isoformat(),
            "expires_at": self.expires_at.isoformat(),
            "approved_as": self.approved_as,
            "signature": self.signature,
            "first": None if self.first is None else self.first.to_json(),
        }
        later = ("approved_as", "signature", "first")
        return {name: value for name, value in content.items() if value is not None or name not in later}

    @property
    def signed_content(self) -> bytes:
        """Return the content that the signature covers."""
        return canonical(replace(self, signature=None).to_json()).encode()


def approve(
    plan: Plan,
    *,
    typed_subject: str,
    typed_digest_prefix: str,
    approver: str,
    now: datetime,
    valid_for: timedelta,
    rules: ApprovalSettings = ApprovalSettings(),  # noqa: B008 - it is frozen
    approved_as: str | None = None,
    sign_with: Path | None = None,
    passphrase: Callable[[], str] | None = None,
    given: Sequence[Approval] = (),
) -> Approval:
    """The approval of a plan by who typed its subject and the first eight or more characters of its digest.

    ``sign_with`` is a private SSH key; ``passphrase`` is asked where that is encrypted. ``given``: earlier approvals.
    Where two signers are needed, the result of the first one does not hold alone: the second one's includes it.

    Raises:
        ApprovalError: what was typed is not this plan's, or it would not hold: see :func:`refuse_unless_valid`.
        InputError: the key can't be used.
    """
    if (mismatch := typed_mismatch(plan, typed_subject, typed_digest_prefix)) is not None:
        raise ApprovalError(mismatch)
    if valid_for <= timedelta(0):
        raise ApprovalError("an approval must be valid for more than 0 hours")
    if valid_for > timedelta(hours=longest_hours(plan, rules)):
        raise ApprovalError(
            f"the approval would be valid for longer than {_describe_longest(plan, rules)}: choose a shorter time"
        )
    as_user = system_user() if approved_as is None else approved_as
    approval = Approval(plan.digest, approver.strip(), now, now + valid_for, as_user)
    if needs_two_signers(plan, rules):
        approval = replace(approval, first=next((it for it in given if _may_be_first(it, approval, plan, rules)), None))
    if sign_with is not None:
        from kit.profile.identity.ssh_signature import sign  # Only who signs needs it, and it takes time to load.

        approval = replace(approval, signature=sign(approval.signed_content, sign_with, passphrase))
    if needs_two_signers(plan, rules) and approval.first is None:
        _refuse_unless_given(approval, plan, rules)
        _refuse_times(approval, plan, utc(now, "now"), rules, None)
    else:
        refuse_unless_valid(approval, plan, now, rules=rules)
    return approval


def needs_two_signers(plan: Plan, rules: ApprovalSettings) -> bool:
    """Return whether two signers must approve: a second person is required, and names in files are no proof of one."""
    return rules.require_signature and needs_second_person(plan, rules)


def needs_second_person(plan: Plan, rules: ApprovalSettings) -> bool:
    """Return whether who made the plan may not approve it: the profile reports it, or the plan's kind."""
    return rules.require_second_person or (plan.consent is not None and plan.consent.second_person)


def longest_hours(plan: Plan, rules: ApprovalSettings) -> float:
    """Return how long an approval of this plan may hold: the shorter of the profile's limit and the plan's own."""
    own = plan.consent.longest_hours if plan.consent is not None else None
    return rules.longest_hours if own is None else min(own, rules.longest_hours)


def _describe_longest(plan: Plan, rules: ApprovalSettings) -> str:
    hours = longest_hours(plan, rules)
    if hours < rules.longest_hours:
        return f"the {hours:g} hours that a plan of this kind allows"
    return f"the {hours:g} hours that the profile allows (approvals.longest_hours)"


_AGAIN = "approve the plan again"


def typed_mismatch(plan: Plan, subject: str, digest_prefix: str) -> str | None:
    """Return why the typed ``subject`` and ``digest_prefix`` do not approve this plan; None: they do."""
    if subject.strip() not in (plan.subject.strip(), visible(plan.subject).strip()):
        return f"this plan is for {plan.subject!r}, not for {subject.strip()!r}"
    prefix = digest_prefix.strip().lower()
    if len(prefix) < SHORTEST_PREFIX:
        return f"type at least {SHORTEST_PREFIX} characters of the plan's digest"
    if not plan.digest.startswith(prefix):
        return f"the plan's digest does not begin with {prefix!r}: check which plan you approve"
    return None


def refuse_unless_valid(
    approval: Approval | None,
    plan: Plan,
    now: datetime,
    *,
    rules: ApprovalSettings = ApprovalSettings(),  # noqa: B008 - it is frozen
    latest: datetime | None = None,
    earliest: datetime | None = None,
) -> None:
    """The one gate before every write. ``latest`` is the latest time known so far: it can't be earlier by now.

    ``earliest`` is the earliest time at which the approval was there already: it can't be given later. So one by a
    clock that was ahead is void for good once that was seen, and does not come to hold when its time has come.

    Raises:
        ApprovalError: there is none; it is expired, from the future, older than its plan, or for longer than the
            profile allows; or see :func:`refuse_unless_genuine`.
    """
    if approval is None:
        raise ApprovalError(
            f"the plan {plan.digest[:8]} for {plan.subject} was not approved: offramp approve {plan.digest[:8]}"
        )
    refuse_unless_genuine(approval, plan, rules)
    _refuse_ahead(approval, utc(now, "now"), earliest)
    _refuse_times(approval, plan, utc(now, "now"), rules, latest)


def refuse_unless_genuine(approval: Approval, plan: Plan, rules: ApprovalSettings) -> None:
    """Refuse an approval that is not one of this plan, at whatever time.

    Raises:
        ApprovalError: it is another plan's; it is by the planner where a second person is required; it is not signed
            where that is required, or not signed by a person whom the profile names so.
    """
    _refuse_unless_given(approval, plan, rules)
    if needs_second_person(plan, rules):
        _refuse_planner(approval, plan)
    if needs_two_signers(plan, rules):
        _refuse_one_signer(approval, plan, rules)


def describe_signature(approval: Approval, signers: Mapping[str, Sequence[str]] | None) -> str:
    """Return who signed, by the profile's keys, in a sentence; ``signers`` None: there is no profile here."""
    if approval.signature is None:
        return "not signed"
    from kit.profile.identity.ssh_signature import fingerprint, signer

    key = signer(approval.signed_content, approval.signature)
    if key is None:
        return "BAD SIGNATURE: the signature does not belong to this approval"
    if signers is None:
        return f"signed with the key {fingerprint(key)}, which no profile names"
    if key in _keys_of(approval.approved_by, signers):
        return f"signed by {approval.approved_by} with the key {fingerprint(key)}, which the profile names"
    return f"signed with the key {fingerprint(key)}, which the profile does NOT name for {approval.approved_by}"


def is_badly_signed(approval: Approval) -> bool:
    """Return whether its signature is not over its content."""
    if approval.signature is None:
        return False
    from kit.profile.identity.ssh_signature import signer

    return signer(approval.signed_content, approval.signature) is None


def save_approval(approval: Approval, path: Path) -> None:
    """Raises EvidenceError: it was not written."""
    write_atomic(path, _text(approval))


def save_new_approval(approval: Approval, path: Path) -> bool:
    """False: there is one already, which stays. Raises EvidenceError: it was not written."""
    return keep_new(path, _text(approval))


def _text(approval: Approval) -> str:
    content = approval.to_json()
    return readable({**content, "checksum": digest_of(content)})


def load_approval(path: Path) -> Approval:
    """The approval in a file.

    Raises:
        ApprovalError: the file can't be read, is no approval, or was edited.
    """
    try:
        return parse_approval(parse_json(read_regular(path).decode()), str(path))
    except OSError as error:
        raise ApprovalError(f"{path} can't be read: {error.strerror}; {_AGAIN}") from error
    except ValueError as error:
        raise ApprovalError(f"{path} is not an approval: {error}; {_AGAIN}") from error


def parse_approval(data: Any, where: str) -> Approval:
    """The approval in JSON that was read; ``where`` is for the message.

    Raises:
        ApprovalError: it is no approval, or was edited.
    """
    if not isinstance(data, dict):
        raise ApprovalError(f"{where} is not an approval; {_AGAIN}")
    content = {name: value for name, value in data.items() if name != "checksum"}
    if digest_of(content) != data.get("checksum"):
        raise ApprovalError(f"{where} was edited after it was made, or is not an approval; {_AGAIN}")
    try:
        return _approval_of(content)
    except (KeyError, TypeError, ValueError, InputError) as error:
        raise ApprovalError(f"{where} is not an approval: {error}; {_AGAIN}") from error


def _approval_of(content: Any) -> Approval:
    times = {name: datetime.fromisoformat(content[name]) for name in ("approved_at", "expires_at")}
    first = {"first": _approval_of(content["first"])} if content.get("first") is not None else {}
    return Approval(**{**content, **times, **first})


def _refuse_unless_given(approval: Approval, plan: Plan, rules: ApprovalSettings) -> None:
    """Refuse an approval that this person did not give: by its digest, the name, and the signature."""
    if approval.digest != plan.digest:
        raise ApprovalError(f"the approval is of plan {approval.digest[:8]}: offramp approve {plan.digest[:8]}")
    if not approval.approved_by.strip():
        raise ApprovalError("an approval needs the name of the person who approves")
    _refuse_signature(approval, rules)


def _refuse_one_signer(approval: Approval, plan: Plan, rules: ApprovalSettings) -> None:
    """The name of the plan's maker is a text that any person can edit: two keys of two signers prove two people."""
    if approval.first is None:
        raise ApprovalError(
            f"the profile requires a second person and signatures, but only {approval.approved_by} has signed. "
            f"Another signer must approve the plan, too: offramp approve {plan.digest[:8]} --sign-with KEY"
        )
    if not _may_be_first(approval.first, approval, plan, rules):
        raise ApprovalError(
            f"the approvals of {approval.first.approved_by} and {approval.approved_by} do not count as two: two "
            f"people must sign the plan, each with their own key; {_AGAIN}"
        )


def _may_be_first(first: Approval, second: Approval, plan: Plan, rules: ApprovalSettings) -> bool:
    """Return whether another signer had approved when the second one did. No two signers of a profile share a key."""
    try:
        _refuse_unless_given(first, plan, rules)
    except ApprovalError:
        return False
    is_other = _person(first.approved_by) != _person(second.approved_by)
    return is_other and first.approved_at - CLOCK_SKEW <= second.approved_at < first.expires_at


def _refuse_planner(approval: Approval, plan: Plan) -> None:
    if _person(approval.approved_by) == _person(plan.made_by):
        raise ApprovalError(f"{plan.made_by} made this plan: another person has to approve it")
    if plan.made_as is None or approval.approved_as is None:
        raise ApprovalError(
            "the plan needs a second person, but the login of its author was not recorded. Make and approve the plan "
            "again"
        )
    if approval.approved_as == plan.made_as:
        raise ApprovalError(
            f"the plan was made and approved under one login, {plan.made_as!r}, whatever names were typed: another "
            "person has to approve it, from their own login"
        )


def _refuse_signature(approval: Approval, rules: ApprovalSettings) -> None:
    """A signature that isn't required has to be right all the same."""
    if approval.signature is None:
        if rules.require_signature:
            raise ApprovalError(
                "the profile requires signed approvals, but this approval is not signed. Sign it: offramp approve … "
                "--sign-with KEY"
            )
        return
    from kit.profile.identity.ssh_signature import fingerprint, signer

    key = signer(approval.signed_content, approval.signature)
    if key is None:
        raise ApprovalError(
            f"the signature does not belong to this approval: the signature or the approval was altered; {_AGAIN}"
        )
    known = _keys_of(approval.approved_by, rules.signers)
    if not known:
        raise ApprovalError(
            f"the profile names no key of {approval.approved_by}. Add the key to [approvals.signers], or approve "
            "under a name that is listed there (--by)"
        )
    if key not in known:
        raise ApprovalError(
            f"the profile does not name the key {fingerprint(key)} for {approval.approved_by};"
            f" sign with the key {' or '.join(map(fingerprint, known))}"
        )


def _keys_of(person: str, signers: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return tuple(key for name, keys in signers.items() if _person(name) == _person(person) for key in keys)


def _refuse_ahead(approval: Approval, now: datetime, earliest: datetime | None) -> None:
    if approval.approved_at > now + CLOCK_SKEW:
        seen = f"here it is {now.isoformat()}"
    elif earliest is not None and approval.approved_at > earliest + CLOCK_SKEW:
        seen = f"this machine read it at {earliest.isoformat()}"
    else:
        return
    raise ApprovalError(
        f"clock trouble: the approval is dated {approval.approved_at.isoformat()}, but {seen}; correct the clocks of "
        "both machines, and approve again"
    )


def _refuse_times(
    approval: Approval, plan: Plan, now: datetime, rules: ApprovalSettings, latest: datetime | None
) -> None:
    if plan.made_at > approval.approved_at + CLOCK_SKEW:
        raise ApprovalError(
            f"clock trouble: the plan is dated {plan.made_at.isoformat()}, but its approval "
            f"{approval.approved_at.isoformat()}; correct the clocks of both machines, and approve again"
        )
    if approval.expires_at - approval.approved_at > timedelta(hours=longest_hours(plan, rules)):
        raise ApprovalError(
            f"the approval is valid until {approval.expires_at.isoformat()}, longer than "
            f"{_describe_longest(plan, rules)};"
            f" {_AGAIN}"
        )
    known = now if latest is None else max(now, latest)
    if known >= approval.expires_at:
        later = ""
        if known > now + CLOCK_SKEW:
            later = (
                f" This machine's clock showed {known.isoformat()} before: check whether it was set back. If a new"
                " approval does not help, make a new plan."
            )
        raise ApprovalError(
            f"the approval expired at {approval.expires_at.isoformat()}: approve the plan again.{later}"
        )


def _person(name: str) -> str:
    return unicodedata.normalize("NFKC", name).strip().casefold()
