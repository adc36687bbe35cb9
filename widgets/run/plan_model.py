"""A request, the plan that fulfils it, and the approval of that plan. One worker thread does one thing at a time."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import traitlets as t

from kit.engine.model.approval import SHORTEST_PREFIX, Approval, typed_mismatch
from kit.engine.model.plan import Plan
from kit.errors import IllegalMove, InputError, NotFound, OfframpError, RunError, Stopped
from kit.operations.operations import Operations, operator
from kit.text.quantity import quantity
from widgets.run.run_model import RunModel, showing
from widgets.run.worker import Worker


class PlanModel(RunModel):
    """The traits that ``REQUEST`` names are the request; when one of them changes, the plan is dropped."""

    REQUEST: tuple[str, ...] = ()

    sentence = t.Unicode(help="The result of the last action.")
    plan = t.Any(None, help="The plan to approve: a kit.engine.model.plan.Plan.")
    dry = t.Any(None, help="What a run of the plan would do now: a kit.engine.execution.dry_run.DryRun.")
    approval = t.Any(
        None, help="The approval of this plan, given here or elsewhere: a kit.engine.model.approval.Approval."
    )
    approver = t.Unicode(help="Who approves.")
    typed_subject = t.Unicode(help="Typed to approve: the subject of the plan.")
    typed_digest = t.Unicode(help="Typed to approve: at least the first eight characters of the plan's digest.")

    def __init__(self, operations: Operations) -> None:
        super().__init__(operations, approver=operator())
        self._worker = Worker(self._now_busy, self._failed)
        self.observe(self._request_changed, list(self.REQUEST))

    def _planning(self) -> tuple[str, Callable[[], Plan]]:
        """The name of the work, and the function that plans the request as it is now. Raises InputError."""
        raise NotImplementedError

    def how_to_approve(self) -> str:
        """The command that approves the plan, and the parameters for papermill after that."""
        if self.plan is None:
            return "There is no plan to approve: make a plan first."
        if self.approval is not None:
            return f"{self.approval.approved_by} approved plan {self.plan.digest[:8]} until {self.approval.expires_at}."
        short, runs = self.plan.digest[:12], shlex.quote(str(self.runs))
        return (
            f"The plan's digest is {self.plan.digest}.\n"
            f"Approve it: offramp approve {short} --runs {runs}\n"
            f"Then execute it by papermill: -p approval_digest {short} -p dry_run False"
        )

    def requested(self) -> dict[str, Any]:
        """The request as it is now, by trait."""
        return {name: getattr(self, name) for name in self.REQUEST}

    def set_request(self, **values: Any) -> None:
        """Set several traits of the request."""
        for name, value in values.items():
            setattr(self, name, value)

    @showing
    def make_plan(self) -> None:
        """Read the cluster and plan the request; writes nothing to the cluster.

        Raises:
            InputError: the request is not valid.
            IllegalMove: another action is running.
        """
        self._refuse_busy()
        requested = self.requested()
        what, make = self._planning()
        self._void()
        self._worker.start(what, lambda: self._plan(make, requested))

    def prepare(self, approval_digest: str = "") -> None:
        """Load the plan with this digest or, without a digest, plan the request; waits for the dry run.

        Raises:
            OfframpError: see ``load_plan`` and ``make_plan``.
        """
        if approval_digest:
            self.load_plan(approval_digest)
        else:
            self.make_plan()
        self.wait()

    @showing
    def load_plan(self, digest: str) -> None:
        """Load a saved plan and its approval.

        Raises:
            NotFound, PlanError: there is no such plan, or it was edited.
            InputError: the plan has another subject, or the digest is too short.
        """
        self._refuse_busy()
        digest = digest.strip().lower()
        if len(digest) < SHORTEST_PREFIX:
            raise InputError(f"give {SHORTEST_PREFIX} or more characters of the plan's digest, not {digest!r}")
        plan = self.operations.plan(digest)
        if not plan.digest.startswith(digest):
            raise NotFound(f"no plan in {self.runs} has a digest that begins with {digest!r}: see offramp plan list")
        if not self.concerns(plan.kind, plan.subject):
            raise InputError(
                f"plan {digest[:8]} is a {plan.kind} of {plan.subject}, not of {self.about}: give another digest"
            )
        self._take(plan)
        self._worker.start("comparing the plan with the cluster", self._rehearse)

    @property
    def approval_mismatch(self) -> str:
        """Return why the typed subject and digest do not approve the shown plan; empty: they do, or there is no
        plan.
        """
        if self.plan is None:
            return ""
        return typed_mismatch(self.plan, self.typed_subject, self.typed_digest) or ""

    @showing
    def approve(self) -> Approval:
        """Approve the plan that is shown, with the subject and digest that were typed.

        Raises:
            IllegalMove: there is no plan, or another action is running.
            ApprovalError: the subject or digest is another plan's, or this person may not approve.
        """
        self._refuse_busy()
        plan = self._required_plan()
        self.approval = self.operations.approve(plan, self.typed_subject, self.typed_digest, self.approver)
        self.sentence = f"{self.approval.approved_by} approved plan {plan.digest[:8]}."
        return self.approval

    # Within the worker

    def _plan(self, make: Callable[[], Plan], requested: dict[str, Any]) -> None:
        plan = make()
        if self.requested() != requested:
            raise IllegalMove("the request changed while it was planned: make the plan again")
        self._take(plan)
        self.sentence = f"Plan {plan.digest[:8]} has {quantity(len(plan.steps), 'step')}."
        self._rehearse()

    def _rehearse(self) -> None:
        plan = self.plan
        if plan is not None:
            self.dry = self.operations.dry_run(plan)

    def _now_busy(self, what: str) -> None:
        if what:
            self.sentence = ""  # The error of the action before would be above the error of this one.
        self.busy = what

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, Stopped):
            self.sentence = str(error)
        elif isinstance(error, OfframpError):
            self.error = str(error)
        else:
            self.error = f"{type(error).__name__}: {error}"

    def _required_plan(self) -> Plan:
        if self.plan is None:
            raise IllegalMove(f"there is no plan for {self.about}: make a plan first")
        plan: Plan = self.plan
        return plan

    def _take(self, plan: Plan) -> None:
        self.typed_subject = self.typed_digest = ""
        self.dry, self.plan, self.approval = None, plan, self.operations.approval(plan)

    def _void(self) -> None:
        self.plan = self.dry = self.approval = None
        self.typed_subject = self.typed_digest = ""

    def _verify_dry(self) -> str:
        plan = self._required_plan()
        if self.dry is None:
            raise RunError(f"plan {plan.digest[:8]} has had no dry run: make the plan again")
        if self.dry.differences:
            raise RunError(
                f"plan {plan.digest[:8]} is out of date, make a new plan: {self.dry.differences[0].sentence}"
            )
        first = self.dry.steps[0]
        if not first.can_begin:
            raise RunError(f"plan {plan.digest[:8]} can't begin now: {first.sentence}")
        return f"Dry run of plan {plan.digest[:8]}: nothing was changed; the plan can begin now: {first.sentence}"

    def _request_changed(self, change: Any) -> None:
        if self.plan is not None:
            self._void()
            self.sentence = "The request changed: the plan and its approval are void. Make a new plan."
