"""A wish, the plan that would fulfil it, and who approved that plan. Work is done on one thread, one at a time."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import traitlets as t

from kit.errors import IllegalMove, InputError, NotFound, OfframpError, RunError, Stopped
from kit.migrate.engine.approval import SHORTEST_PREFIX, Approval
from kit.migrate.engine.plan import Plan
from kit.migrate.operations import Operations, operator
from widgets.run.run_model import ShownRun, showing
from widgets.run.worker import Worker


class Planned(ShownRun):
    """A model's wish is in the traits that ``WISH`` names; a wish that changes voids the plan."""

    WISH: tuple[str, ...] = ()

    sentence = t.Unicode(help="What came of the last thing that was done.")
    plan = t.Any(None, help="The plan that can be approved: a kit.migrate.engine.plan.Plan.")
    dry = t.Any(None, help="What a run of it would do now: a kit.migrate.execution.dry_run.DryRun.")
    approval = t.Any(
        None, help="Of this plan, by this model or by somebody else: a kit.migrate.engine.approval.Approval."
    )
    approver = t.Unicode(help="Who approves.")
    typed_subject = t.Unicode(help="Typed to approve: what the plan is of.")
    typed_digest = t.Unicode(help="Typed to approve: eight or more of the plan's digest's first characters.")

    def __init__(self, desk: Operations) -> None:
        super().__init__(desk, approver=operator())
        self._worker = Worker(self._now_busy, self._failed)
        self.observe(self._wish_changed, list(self.WISH))

    def _planning(self) -> tuple[str, Callable[[], Plan]]:
        """What planning is called, and what does it; takes the wish as it is now. Raises InputError."""
        raise NotImplementedError

    def how_to_approve(self) -> str:
        """What to type in a terminal, and what to hand to papermill then."""
        if self.plan is None:
            return "There is no plan to approve."
        if self.approval is not None:
            return f"{self.approval.approved_by} approved plan {self.plan.digest[:8]} until {self.approval.expires_at}."
        short, runs = self.plan.digest[:12], shlex.quote(str(self.runs))
        return (
            f"The plan's digest is {self.plan.digest}.\n"
            f"Approve it: offramp approve {short} --runs {runs}\n"
            f"Then carry it out by papermill: -p approval_digest {short} -p dry_run False"
        )

    def wished(self) -> dict[str, Any]:
        """What is wished now, by trait."""
        return {name: getattr(self, name) for name in self.WISH}

    def wish_for(self, **values: Any) -> None:
        """Set what is wished at once."""
        for name, value in values.items():
            setattr(self, name, value)

    @showing
    def make_plan(self) -> None:
        """Look at the cluster and plan what is wished; writes nothing to it.

        Raises:
            InputError: it can't be wished so.
            IllegalMove: something is being done.
        """
        self._refuse_busy()
        wished = self.wished()
        what, make = self._planning()
        self._void()
        self._worker.start(what, lambda: self._plan(make, wished))

    def prepare(self, approval_digest: str = "") -> None:
        """Take up the plan of that digest and no other, or else plan what is wished; waits until it is rehearsed.

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
        """Take up a plan that was kept, with its approval.

        Raises:
            NotFound, PlanError: there is no such plan, or it was edited.
            InputError: it is about something else, or too little of the digest was given.
        """
        self._refuse_busy()
        digest = digest.strip().lower()
        if len(digest) < SHORTEST_PREFIX:
            raise InputError(f"give {SHORTEST_PREFIX} or more characters of the plan's digest, not {digest!r}")
        plan = self.desk.plan(digest)
        if not plan.digest.startswith(digest):
            raise NotFound(f"no plan in {self.runs} has a digest that begins with {digest!r}")
        if not self.concerns(plan.kind, plan.subject):
            raise InputError(f"plan {digest[:8]} is a {plan.kind} of {plan.subject}, not of {self.about}")
        self._take(plan)
        self._worker.start("looking what has changed since", self._rehearse)

    @showing
    def approve(self) -> Approval:
        """Approve the plan shown by what was typed.

        Raises:
            IllegalMove: there is no plan, or something is being done.
            ApprovalError: what was typed isn't this plan's, or this person may not.
        """
        self._refuse_busy()
        plan = self._wanted_plan()
        self.approval = self.desk.approve(plan, self.typed_subject, self.typed_digest, self.approver)
        self.sentence = f"{self.approval.approved_by} approved plan {plan.digest[:8]}."
        return self.approval

    # Within the worker

    def _plan(self, make: Callable[[], Plan], wished: dict[str, Any]) -> None:
        plan = make()
        if self.wished() != wished:
            raise IllegalMove("the wish was changed while it was planned: plan again")
        self._take(plan)
        self.sentence = f"Plan {plan.digest[:8]} has {len(plan.steps)} step{'s' * (len(plan.steps) > 1)}."
        self._rehearse()

    def _rehearse(self) -> None:
        plan = self.plan
        if plan is not None:
            self.dry = self.desk.dry_run(plan)

    def _now_busy(self, what: str) -> None:
        self.busy = what

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, Stopped):
            self.sentence = str(error)
        elif isinstance(error, OfframpError):
            self.error = str(error)
        else:
            self.error = f"{type(error).__name__}: {error}"

    def _wanted_plan(self) -> Plan:
        if self.plan is None:
            raise IllegalMove(f"there is no plan for {self.about}: make one first")
        plan: Plan = self.plan
        return plan

    def _take(self, plan: Plan) -> None:
        self.typed_subject = self.typed_digest = ""
        self.dry, self.plan, self.approval = None, plan, self.desk.approval(plan)

    def _void(self) -> None:
        self.plan = self.dry = self.approval = None
        self.typed_subject = self.typed_digest = ""

    def _verify_dry(self) -> str:
        plan = self._wanted_plan()
        if self.dry is None:
            raise RunError(f"plan {plan.digest[:8]} was not rehearsed")
        if self.dry.differences:
            raise RunError(f"plan {plan.digest[:8]} does not hold any more: {self.dry.differences[0].sentence}")
        first = self.dry.steps[0]
        if not first.can_begin:
            raise RunError(f"plan {plan.digest[:8]} could not begin: {first.sentence}")
        return f"Dry run of plan {plan.digest[:8]}: nothing was changed; it could begin: {first.sentence}"

    def _wish_changed(self, change: Any) -> None:
        if self.plan is not None:
            self._void()
            self.sentence = "The wish changed: the plan and its approval are void. Make a new plan."
