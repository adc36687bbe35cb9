"""List and name the plans and runs in a folder; no cluster is asked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kit.engine.model.approval import Approval, load_approval, save_new_approval
from kit.engine.model.files import private_folder
from kit.engine.model.plan import Plan, load_plan
from kit.engine.model.progress import in_order
from kit.engine.model.record import RunRow, list_runs
from kit.engine.model.states import RunState
from kit.errors import ApprovalError, NotFound, PlanError
from kit.profile import Profile
from kit.text.naming import shortened

PLANS, PREFIX = "plans", 12
_AT_EASE = {None, RunState.VERIFIED, RunState.UNDONE, RunState.STALE}
_NAMED = 10
"""The largest number of existing names that an error lists."""


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One plan in a list of them; ``error`` reports what of it can't be read. ``state``: of its newest run, if
    begun."""

    plan: str
    kind: str | None = None
    subject: str | None = None
    made_by: str | None = None
    made_at: str | None = None
    approved_by: str | None = None
    approved_until: str | None = None
    state: str | None = None
    run_id: str | None = None
    error: str | None = None


def runs_beside(profile: Profile) -> Path:
    """The folder of plans and runs beside the profile's ``offramp.toml``."""
    return profile.file.resolve().parent / "runs"


def plan_files(root: Path) -> list[Path]:
    """Return the files of the plans kept under ``root``, the oldest first."""
    files = [path for path in (root / PLANS).glob("*.json") if "." not in path.stem]
    return sorted(files, key=_written_at)


def _written_at(path: Path) -> float:
    """Return when the file was written; of a link, when the link was made: its file may be missing. 0 if the name
    was removed meanwhile.
    """
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def plan_file(root: Path, digest: str) -> Path:
    """Return where the plan of this digest is kept."""
    return root / PLANS / f"{digest[:PREFIX]}.json"


def backup_file(root: Path, plan: Plan) -> Path:
    """Return where what a plan deletes is saved by default; its folder is made."""
    file = plan_file(root, plan.digest).with_suffix(".offsets.jsonl")
    private_folder(file.parent)
    return file


def approval_file(plan_file: Path, number: int) -> Path:
    """``.approval.json``, then ``.approval-2.json``, …: a later one is added, none replaced."""
    return plan_file.with_suffix(f".approval-{number}.json" if number > 1 else ".approval.json")


def add_approval(plan_file: Path, approval: Approval) -> None:
    """Keep one more; of those that are given at the same time each is kept.

    Raises:
        ApprovalError: one that is there was edited.
        EvidenceError: it was not written.
    """
    number = len(load_approvals(plan_file)) + 1
    while not save_new_approval(approval, approval_file(plan_file, number)):
        number += 1


def load_approvals(plan_file: Path) -> tuple[Approval, ...]:
    """All that were given for this plan, the oldest first. Raises ApprovalError: one was edited."""
    approvals: list[Approval] = []
    while os.path.lexists(path := approval_file(plan_file, len(approvals) + 1)):
        approvals.append(load_approval(path))
    return tuple(approvals)


def list_plans(root: Path) -> tuple[PlanRow, ...]:
    """All plans under ``root``: first plans that need attention (unreadable, or its run did not end well), then the
    newest.

    Raises:
        EvidenceError: ``root`` itself can't be read.
    """
    runs = {row.plan_digest: row for row in in_order(list_runs(root))}
    rows = [_row(path, runs) for path in reversed(plan_files(root))]
    return tuple(sorted(rows, key=lambda row: row.error is None and row.state in _AT_EASE))


def run_folder(root: Path, run_id: str) -> Path:
    """The folder of a run under ``root``.

    Raises:
        NotFound: there is no such run; which there are.
        EvidenceError: ``root`` itself can't be read.
    """
    here = {path.name for path in root.iterdir() if path.is_dir()} if root.is_dir() else set()
    if run_id in here - {PLANS}:
        return root / run_id
    known = [row.run_id for row in reversed(in_order(list_runs(root)))]
    raise NotFound(f"there is no run {run_id!r} in {root}; {there_is('run', known)}")


def there_is(what: str, names: Sequence[str]) -> str:
    """Return what exists instead, the newest first."""
    if not names:
        return f"there is no {what} at all"
    return f"there {'are' if len(names) > 1 else 'is'} {shortened(names, _NAMED)}"


def _row(path: Path, runs: dict[str | None, RunRow]) -> PlanRow:
    try:
        plan = load_plan(path)
    except PlanError as error:
        return PlanRow(path.stem, error=str(error))
    by, until, problem = _approved(path)
    run = runs.get(plan.digest, RunRow(""))
    made = plan.made_at.isoformat(timespec="seconds")
    begun = (run.state, run.run_id or None)
    return PlanRow(plan.digest[:PREFIX], plan.kind, plan.subject, plan.made_by, made, by, until, *begun, problem)


def _approved(path: Path) -> tuple[str | None, str | None, str | None]:
    """By whom, until when at the latest, or why that can't be reported."""
    try:
        approvals = load_approvals(path)
    except ApprovalError as error:
        return None, None, str(error)
    if not approvals:
        return None, None, None
    until = max(approval.expires_at for approval in approvals)
    return ", ".join(it.approved_by for it in approvals), until.isoformat(timespec="seconds"), None
