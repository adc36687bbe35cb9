"""``offramp runs | verify | stop`` and ``offramp plan list``: they read the folder of plans and runs, no cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Annotated

import typer

from kit.engine.model.approval import describe_signature, is_badly_signed
from kit.engine.model.journal import request_stop
from kit.engine.model.record import list_runs, load_run
from kit.engine.model.states import RunState
from kit.engine.rendering.text import record_text
from kit.engine.runs_folder import PlanRow, list_plans, run_folder
from kit.errors import EvidenceError, IllegalMove, ProfileError, RunError
from kit.operations.verbs.operations import ChosenRuns
from kit.profile.identity.login import system_user
from kit.terminal.listing import Listing
from kit.terminal.options import with_options
from kit.terminal.progress import waiting
from kit.terminal.terminal import RunId, print_json, refusals, say, tell

app = typer.Typer(rich_markup_mode=None)
plan_app = typer.Typer(rich_markup_mode=None)

_COLUMNS = ("run_id", "state", "kind", "subject", "made_by", "approved_by", "last_event_at", "sentence", "error")


@plan_app.command("list")
@with_options
def list_plans_(listing: Listing, chosen: ChosenRuns) -> None:
    """List all plans: plans that need attention first, then the newest. Reads the folder, no cluster."""
    with refusals():
        folder = chosen.folder()
        with waiting(f"reading {folder}"):
            rows = list_plans(folder)
        _print(rows, [field.name for field in fields(PlanRow)], listing)


@app.command("runs")
@with_options
def list_(
    listing: Listing,
    chosen: ChosenRuns,
    run: Annotated[str | None, typer.Argument(help="Show this run in full.")] = None,
) -> None:
    """List all runs, or show one. Reads the folder, no cluster."""
    with refusals():
        folder = chosen.folder()
        if run is not None:
            tell(*record_text(load_run(run_folder(folder, run))).split("\n"))
            return
        with waiting(f"reading {folder}"):
            rows = list_runs(folder)
        _print(rows, _COLUMNS, listing)


@app.command()
@with_options
def verify(chosen: ChosenRuns, run: RunId) -> None:
    """Check a run's evidence: unedited, and the run ended verified or undone. If not, the exit code is not 0."""
    with refusals():
        record = load_run(run_folder(chosen.folder(), run))
        tell(*record_text(record).split("\n"))
        for approval in record.approvals:
            tell(f"approval by {approval.approved_by}: {describe_signature(approval, _signers(chosen))}")
        if any(is_badly_signed(approval) for approval in record.approvals):
            raise EvidenceError(f"run {run}: an approval was edited after it was signed")
        if record.state not in (RunState.VERIFIED, RunState.UNDONE):
            raise RunError(f"run {run} is {record.state}: {record.sentence}")


@app.command()
@with_options
def stop(chosen: ChosenRuns, run: RunId) -> None:
    """Ask a run that continues elsewhere to stop after the present write; then resume it or undo it."""
    with refusals():
        folder = run_folder(chosen.folder(), run)
        record = load_run(folder)
        if not record.is_at_work:
            raise IllegalMove(
                f"run {run} is {record.state}: no process executes it, so nothing has to stop; see offramp runs"
            )
        request_stop(folder, system_user(), datetime.now(UTC))
        say(
            f"run {run} was asked to stop; `offramp runs {run}` shows when it has. A run that was cut off does not stop"
        )


def _print(rows: Iterable[object], columns: Sequence[str], listing: Listing) -> None:
    values = [{name: getattr(row, name) for name in columns} for row in rows]
    if listing.as_json and listing.sort is None and listing.where is None:
        print_json(values)  # Schedulers ask so: polars is not loaded for it.
        return
    import polars as pl

    listing.print(pl.DataFrame(values, dict.fromkeys(columns, pl.String)))


def _signers(chosen: ChosenRuns) -> dict[str, tuple[str, ...]] | None:
    """The profile's signers; None without a profile: evidence can be verified on any machine."""
    try:
        return chosen.load().approvals.signers
    except ProfileError:
        if chosen.profile or chosen.profile_file:
            raise
        return None
