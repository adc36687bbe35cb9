"""``offramp plan show`` and ``offramp approve | act | resume | undo``: what writes to a cluster."""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from kit.engine.model.plan import Plan
from kit.engine.model.states import RunState
from kit.errors import InputError, OfframpError
from kit.operations.verbs.operations import ChosenRuns, show_plan
from kit.terminal.options import with_options
from kit.terminal.progress import waiting
from kit.terminal.terminal import AsJson, RunId, say

if TYPE_CHECKING:
    from kit.engine.execution.run import Run, RunResult

app = typer.Typer(rich_markup_mode=None)
plan_app = typer.Typer(rich_markup_mode=None)

Named = Annotated[str, typer.Argument(help="The plan: the first characters of its digest, or its file.")]


@plan_app.command("show")
@with_options
def show(
    chosen: ChosenRuns,
    plan: Named,
    as_json: AsJson = False,
) -> None:
    """Print a plan, and the changes of the cluster since it was made. Writes nothing to the cluster."""
    with chosen.open() as operations:
        loaded = operations.plan(plan)
        show_plan(loaded, as_json)
        with waiting("comparing the cluster with the plan"):
            dry = operations.dry_run(loaded)
        for difference in dry.differences:
            say(f"changed since: {difference.sentence}")
        first = dry.steps[0]
        say(f"the plan {'can' if first.can_begin and not dry.differences else 'can not'} begin now: {first.sentence}")


@app.command()
@with_options
def approve(
    chosen: ChosenRuns,
    plan: Named,
    typed_subject: Annotated[
        str | None,
        typer.Option("--subject", help="Subject of the plan, as a confirmation; without this option you are asked."),
    ] = None,
    typed_digest: Annotated[
        str | None,
        typer.Option(
            "--digest", help="The first eight or more characters of the digest; without this option you are asked."
        ),
    ] = None,
    approver: Annotated[str | None, typer.Option("--by", help="Your name; by default the login name.")] = None,
    hours: Annotated[
        float | None, typer.Option(help="Hours for which the approval is valid; by default 4, or the profile's limit.")
    ] = None,
    sign_with: Annotated[
        Path | None, typer.Option("--sign-with", help="Your private SSH key, such as ~/.ssh/id_ed25519.")
    ] = None,
) -> None:
    """Show one plan and approve it, by typing what it is for (a group's name) and the beginning of its digest."""
    with chosen.open(is_patient=True) as operations:
        from kit.engine.rendering.text import plan_text

        loaded = operations.plan(plan)
        typer.echo(plan_text(loaded))
        for given in operations.approvals(loaded):
            say(
                f"{given.approved_by} approved this plan already, until {given.expires_at.isoformat()}; your approval "
                "is added"
            )
        subject = typed_subject or typer.prompt(_asked_subject(loaded), err=True)
        digest = typed_digest or typer.prompt("Type the first 8 characters of the plan's digest", err=True)
        valid_for = None if hours is None else _duration(hours)
        made = operations.approve(loaded, subject, digest, approver, valid_for, sign_with, _passphrase)
        say(
            f"{made.approved_by} approved {loaded.digest[:8]} for {loaded.subject}, until {made.expires_at.isoformat()}"
        )
        if operations.needs_two_signers(loaded) and made.first is None:
            say(f"another signer has to approve too: offramp approve {loaded.digest[:8]} --sign-with KEY")
        else:
            say(f"execute it: offramp act {loaded.digest[:8]}")


@app.command()
@with_options
def act(chosen: ChosenRuns, plan: Named) -> None:
    """Execute an approved plan. Ctrl-C stops the run after the present write; then resume it or undo it."""
    with chosen.open(is_patient=True) as operations:
        _carry_out(operations.begin(operations.plan(plan)), lambda run: run.act(), RunState.VERIFIED)


@app.command()
@with_options
def resume(chosen: ChosenRuns, run: RunId) -> None:
    """Continue a run that was stopped, failed or was cut off. It continues from the state of the cluster."""
    with chosen.open(is_patient=True) as operations:
        found = operations.run(run)
        wanted = RunState.UNDONE if found.record.state in _GOING_BACK else RunState.VERIFIED
        newer = operations.newer_approval(found.record)
        if not found.record.has_written and not found.record.is_at_work:
            say(f"run {run} has written nothing to the cluster so far")
        _carry_out(found, lambda going: going.resume(newer), wanted)


@app.command()
@with_options
def undo(chosen: ChosenRuns, run: RunId) -> None:
    """Undo what a run did, the newest step first.

    The plan says for how long an undo needs no new approval. After that, approve the same plan again, then undo.
    """
    with chosen.open(is_patient=True) as operations:
        found = operations.run(run)
        newer = operations.newer_approval(found.record)
        if not found.record.has_written and not found.record.is_at_work:
            say(f"run {run} wrote nothing to the cluster: there is nothing to undo")
        _carry_out(found, lambda going: going.undo(newer), RunState.UNDONE)


def _asked_subject(plan: Plan) -> str:
    return "Type the group's name" if plan.consent is None else f"Type: {plan.subject}"


def _duration(hours: float) -> timedelta:
    """``--valid-for`` as a duration.

    Raises:
        InputError: ``hours`` can't be a validity.
    """
    if not -LONGEST_HOURS <= hours <= LONGEST_HOURS:
        raise InputError(f"--hours {hours:g}: an approval can't be valid for that time; give hours greater than 0")
    return timedelta(hours=hours)


def _passphrase() -> str:
    return str(typer.prompt("Passphrase of the key", hide_input=True, err=True))


LONGEST_HOURS = 1e6
_GOING_BACK = (RunState.UNDOING, RunState.UNDO_HALTED, RunState.UNDONE)


def _carry_out(run: Run, verb: Callable[[Run], RunResult], wanted: RunState) -> None:
    """Ctrl-C asks the run to stop; a second one interrupts it."""

    from kit.engine.execution.rollback import titles_to_undo
    from kit.operations.operations import operator

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run.request_stop(operator())
        say("The run stops after the present write. Ctrl-C again interrupts that write too.")

    before = signal.signal(signal.SIGINT, stop)
    try:
        with waiting(f"run {run.run_id} continues"):
            result = verb(run)
    except KeyboardInterrupt:
        undo = f". Or undo it: offramp undo {run.run_id}" if titles_to_undo(run.record) else ""
        raise OfframpError(
            f"run {run.run_id} was interrupted. Continue it: offramp resume {run.run_id}{undo}"
        ) from None
    finally:
        signal.signal(signal.SIGINT, before)
    say(f"evidence: {run.folder / 'report.html'}")
    if result.state not in (RunState.VERIFIED, RunState.UNDONE):
        back = f"    undo: offramp undo {run.run_id}" if result.to_undo else ""
        say(f"continue: offramp resume {run.run_id}{back}")
    result.raise_unless(wanted)
