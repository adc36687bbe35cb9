"""Work on one cluster as an operator: plan, approve, execute, undo. Terminal, notebooks and widgets use it.

Everything is in files under ``runs/``: ``plans/<first 12 of the digest>.json`` with its ``.approval.json``
(``.approval-2.json``, … where it was approved again) beside it, and one folder per run.
So a plan made in one process is approved in a second and executed in a third.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from kit.clients.cluster import Cluster
from kit.engine.execution.dry_run import DryRun, dry_run
from kit.engine.execution.run import Run, start_run
from kit.engine.model.approval import (
    CLOCK_SKEW,
    SHORTEST_PREFIX,
    Approval,
    approve,
    longest_hours,
    needs_second_person,
    needs_two_signers,
    refuse_unless_valid,
)
from kit.engine.model.clock import Clock
from kit.engine.model.event import Event
from kit.engine.model.expiry import latest_seen, time_in
from kit.engine.model.files import keep_new, private_folder, write_atomic
from kit.engine.model.performer import Lock, Performer
from kit.engine.model.plan import Plan, load_plan, save_plan
from kit.engine.model.record import RunRecord, load_run
from kit.engine.model.values import digest_of
from kit.engine.plan_kind import PlanContext, PlanRequest
from kit.engine.runs_folder import (
    PLANS,
    PREFIX,
    add_approval,
    backup_file,
    load_approvals,
    plan_file,
    plan_files,
    run_folder,
    runs_beside,
    there_is,
)
from kit.errors import ApprovalError, EvidenceError, InputError, NotFound
from kit.operations.kinds import kind_of, refuse_altered
from kit.profile.identity.login import system_user
from kit.text.quantity import quantity

VALID_FOR = timedelta(hours=4)


class Operations:
    """``say`` shows the operator what to do now (a manual replacement); ``tell`` is called with each event of a run.

    ``runs`` is the folder of plans and evidence, by default beside the profile's file.
    """

    def __init__(
        self,
        cluster: Cluster,
        runs: Path | None = None,
        say: Callable[[str], None] = lambda sentence: None,
        tell: Callable[[Event], None] | None = None,
        clock: Clock = Clock(),  # noqa: B008 - it holds functions, no state
    ) -> None:
        self.cluster, self.runs = cluster, runs or runs_beside(cluster.profile)
        self._say, self._tell, self._clock = say, tell, clock
        self._rules = cluster.profile.approvals

    def make_plan(self, request: PlanRequest, overrides: Iterable[str] = (), made_by: str | None = None) -> Plan:
        """Read the cluster and plan; the plan is kept. Raises as the request's ``plan``, and as :meth:`save_plan`."""
        return self.save_plan(request.plan(self._context(), made_by or operator(), overrides))

    plan_group = plan_fleet = plan_protocol = plan_kraft = plan_delete_groups = plan_delete_znodes = make_plan
    """The names that notebooks used before 1.0."""

    def _context(self, folder: Path | None = None) -> PlanContext:
        return PlanContext(self.cluster, self._say, self._clock, self.runs, folder)

    def save_plan(self, plan: Plan) -> Plan:
        """Keep a plan under ``runs/plans``.

        Raises:
            PlanError: it reports something else than what it would do, or no run of it could have a lock.
            EvidenceError: it can't be written.
        """
        refuse_altered(plan)
        kind_of(plan).lock.refuse_unlockable(self.cluster)
        path = self._file(plan.digest)
        try:
            private_folder(path.parent)
        except OSError as error:
            raise EvidenceError(f"{path.parent} can't be made: {error.strerror}") from error
        save_plan(plan, path)
        return plan

    def plan(self, named: str) -> Plan:
        """A kept plan, by eight or more of its digest's first characters or by its file.

        Raises:
            InputError: fewer characters.
            NotFound: there is none, or several begin so.
            PlanError: it was edited, can't be read, or reports something else than what it would do.
        """
        plan = load_plan(Path(named)) if named.endswith(".json") else self._stored_plan(named)
        refuse_altered(plan)
        return plan

    def _stored_plan(self, named: str) -> Plan:
        if len(named) < SHORTEST_PREFIX:
            raise InputError(f"name a plan by at least {SHORTEST_PREFIX} characters of its digest, not by {named!r}")
        begin = named.lower()
        plans = [load_plan(path) for path in self.plan_files() if path.stem.startswith(begin[:PREFIX])]
        matching = [plan for plan in plans if plan.digest.startswith(begin)]
        if len(matching) != 1:
            known = [path.stem for path in reversed(self.plan_files())]
            counted = f"{quantity(len(matching), 'plan')} in {self.runs / PLANS} with a digest like {named!r}"
            raise NotFound(f"{counted}: {'type more of it' if matching else there_is('plan', known)}")
        return matching[0]

    def plan_files(self) -> list[Path]:
        """Return the files of the kept plans, the oldest first."""
        return plan_files(self.runs)

    def dry_run(self, plan: Plan) -> DryRun:
        """Return what a run would do, and what has changed since the plan was made; writes nothing."""
        return dry_run(plan, self._performer(plan))

    def approve(
        self,
        plan: Plan,
        typed_subject: str,
        typed_digest: str,
        approver: str | None = None,
        valid_for: timedelta | None = None,
        sign_with: Path | None = None,
        passphrase: Callable[[], str] | None = None,
    ) -> Approval:
        """Kept beside the plan and beside the approvals that it has already.

        ``valid_for`` is by default four hours, or what the profile allows. ``sign_with`` is a private SSH key.

        Raises:
            ApprovalError, InputError: see ``kit.engine.model.approval.approve``.
        """
        refuse_altered(plan)
        approval = approve(
            plan,
            typed_subject=typed_subject,
            typed_digest_prefix=typed_digest,
            approver=approver or operator(),
            now=self._clock.now(),
            valid_for=valid_for or min(VALID_FOR, timedelta(hours=longest_hours(plan, self._rules))),
            rules=self._rules,
            sign_with=sign_with,
            passphrase=passphrase,
            given=self.approvals(plan),
        )
        self.save_plan(plan)
        add_approval(self._file(plan.digest), approval)
        return approval

    def needs_second_person(self, plan: Plan) -> bool:
        """Return whether who made the plan may not approve it."""
        return needs_second_person(plan, self._rules)

    def needs_two_signers(self, plan: Plan) -> bool:
        """Return whether the approval of one signer does not hold alone."""
        return needs_two_signers(plan, self._rules)

    def approvals(self, plan: Plan) -> tuple[Approval, ...]:
        """All that were given for this plan, the oldest first. Raises ApprovalError: one was edited."""
        return load_approvals(self._file(plan.digest))

    def approval(self, plan: Plan) -> Approval | None:
        """Return the valid approval that holds longest; else the last one. Raises ApprovalError: one was edited."""
        given = self.approvals(plan)
        holding = [approval for approval in given if self._holds(approval, plan)]
        return max(holding, key=lambda approval: approval.expires_at) if holding else given[-1] if given else None

    def newer_approval(self, record: RunRecord) -> Approval | None:
        """The one kept for a run's plan, if it was given after those that the run has. Raises ApprovalError: edited."""
        approval = self.approval(record.plan)
        return None if approval in record.approvals else approval

    def begin(self, plan: Plan) -> Run:
        """A new run of an approved plan; nothing is done before its ``act``.

        Raises:
            ApprovalError: it isn't approved, or the approval doesn't hold.
        """
        approval, latest = self.approval(plan), self._seen(plan)
        earliest = None if approval is None else self._first_seen(plan, approval)
        folder = start_run(
            plan, approval, self.runs, clock=self._clock, rules=self._rules, latest=latest, earliest=earliest
        )
        return self._run(folder, plan)

    def run(self, run_id: str) -> Run:
        """A run that was begun before, to be resumed or undone.

        Raises:
            NotFound: there is no such run.
            EvidenceError: its evidence was edited or can't be read.
        """
        folder = run_folder(self.runs, run_id)
        return self._run(folder, load_run(folder).plan)

    def _run(self, folder: Path, plan: Plan) -> Run:
        return Run(
            folder,
            self._performer(plan, folder),
            self._lock(plan),
            clock=self._clock,
            poll_s=0.5,
            tell=self._tell,
            rules=self._rules,
            first_seen=partial(self._first_seen, plan),
        )

    def _lock(self, plan: Plan) -> Lock:
        return kind_of(plan).lock.lock_of(self.cluster)

    def _performer(self, plan: Plan, folder: Path | None = None) -> Performer:
        """``folder``: of the run, where one continues."""
        return kind_of(plan).performer_of(self._context(folder))

    def backup_file(self, plan: Plan) -> Path:
        """Return where what a plan deletes is saved by default; its folder is made."""
        return backup_file(self.runs, plan)

    def _holds(self, approval: Approval, plan: Plan) -> bool:
        try:
            earliest, now = self._first_seen(plan, approval), self._clock.now()
            latest = latest_seen(self._mark("expired", plan, approval), approval.expires_at, now)
            refuse_unless_valid(approval, plan, now, rules=self._rules, latest=latest, earliest=earliest)
        except ApprovalError:
            return False
        return True

    def _first_seen(self, plan: Plan, approval: Approval) -> datetime:
        """Return when the approval was first examined, where it was of a time still to come then: that is kept beside
        it.
        """
        path, now = self._mark("ahead", plan, approval), self._clock.now()
        if approval.approved_at > now + CLOCK_SKEW:
            keep_new(path, now.isoformat() + "\n")
        return time_in(path) or now

    def _mark(self, what: str, plan: Plan, approval: Approval) -> Path:
        """Return where it is kept beside the plan that an approval was seen so."""
        return self._file(plan.digest).with_suffix(f".{what}-{digest_of(approval.to_json())[:PREFIX]}")

    def _seen(self, plan: Plan) -> datetime:
        """The latest time at which this plan's approval was asked for, kept: a clock set back revives none."""
        path, now = self._file(plan.digest).with_suffix(".seen"), self._clock.now()
        latest = max(time_in(path) or now, now)
        self.save_plan(plan)
        write_atomic(path, latest.isoformat() + "\n")
        return latest

    def _file(self, digest: str) -> Path:
        return plan_file(self.runs, digest)


def operator() -> str:
    """Return who works here, by the operating system."""
    return system_user()
