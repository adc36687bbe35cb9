"""``offramp plan | approve | act | resume | undo | verify | runs``: the operator's desk in a terminal."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Annotated

import polars as pl
import typer

from kit.cli.desk import AsJson, Overrides, RunsFolder, UndoOnFailure, open_desk, show_plan
from kit.cli.offsets import offsets_app
from kit.cli.terminal import ProfileFile, ProfileName, print_rows, refusals, say, tell
from kit.errors import EvidenceError, IllegalMove, InputError, OfframpError, ProfileError, RunError
from kit.migrate.engine.approval import is_badly_signed, told_signature
from kit.migrate.engine.journal import request_stop
from kit.migrate.engine.plan import STOP, UNDO, WAY_BACK_S
from kit.migrate.engine.record import list_runs, load_run
from kit.migrate.engine.states import RunState
from kit.migrate.execution.run import Run, RunResult
from kit.migrate.fleet.plan import FleetPlanRequest
from kit.migrate.group.plan import PATH, GroupPlanRequest
from kit.migrate.group.toggle import SETTLE_S
from kit.migrate.operations import operator, runs_beside
from kit.migrate.rendering.text import plan_text, record_text
from kit.migrate.runs_folder import PlanRow, list_plans, run_folder
from kit.profile import load_profile

plan_app = typer.Typer(no_args_is_help=True, add_completion=False)
plan_app.add_typer(offsets_app, name="offsets", help="Copy, reset, import, delete or export committed offsets.")

Named = Annotated[str, typer.Argument(help="The plan: the first characters of its digest, or its file.")]
WayBack = Annotated[float, typer.Option(help="Hours for which the run may be taken back without a new approval.")]
RunId = Annotated[str, typer.Argument(help="The run's id; `offramp runs` lists them.")]


@plan_app.command("group")
def plan_group(
    group: Annotated[str, typer.Argument(help="The group.")],
    to: Annotated[str, typer.Option("--to", help=f"Where it is to stand: {', '.join(PATH)}.")],
    canary: Annotated[int, typer.Option(help="How many members go ahead.")] = 1,
    member: Annotated[
        list[str] | None, typer.Option("--member", help="Whom to replace first; can be given again.")
    ] = None,
    soak: Annotated[float, typer.Option(help="Seconds for which a canary is watched.")] = 60.0,
    min_stable: Annotated[
        float,
        typer.Option("--min-stable", "--stable", help="Seconds for which the group must have had the same members."),
    ] = 60.0,
    lag_tolerance: Annotated[int, typer.Option(help="Records by which a canary's lag may grow.")] = 1000,
    step_timeout: Annotated[
        float, typer.Option("--step-timeout", "--each", help="Seconds that one replacement may take.")
    ] = 180.0,
    observe: Annotated[
        float, typer.Option("--observe", "--look", help="Seconds for which the group is looked at first.")
    ] = 5.0,
    way_back: WayBack = WAY_BACK_S / 3600,
    undo_on_failure: UndoOnFailure = False,
    override: Overrides = None,
    runs: RunsFolder = None,
    as_json: AsJson = False,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Move one group along KIP-125's path, one stage or several, forward or back. Writes nothing to the cluster."""
    with open_desk(profile, profile_file, runs) as desk:
        on_failure = UNDO if undo_on_failure else STOP
        limits = (canary, soak, min_stable, lag_tolerance, step_timeout, observe)
        wish = GroupPlanRequest(group, to, *limits, tuple(member or ()), on_failure, way_back * 3600)
        say(f"looking at {group} …")
        show_plan(desk.plan_group(wish, override or ()), as_json)


@plan_app.command("fleet")
def plan_fleet(
    to: Annotated[str, typer.Option("--to", help="kafka or zookeeper.")],
    groups: Annotated[list[str] | None, typer.Argument(help="Groups; by default all that are ready.")] = None,
    pattern: Annotated[str, typer.Option("--groups", help="Regular expression a group's whole id must match.")] = ".*",
    wave: Annotated[int, typer.Option(help="Groups at a time; 0: all at once.")] = 10,
    pause: Annotated[float, typer.Option(help="Seconds between two waves, in which they are watched.")] = 60.0,
    min_stable: Annotated[
        float,
        typer.Option("--min-stable", "--stable", help="Seconds for which a group must have had the same members."),
    ] = 600.0,
    lag_tolerance: Annotated[int, typer.Option(help="Records by which the toggled groups' lag may grow.")] = 10_000,
    max_read_ms: Annotated[
        float | None,
        typer.Option("--max-read-ms", "--read-ms", help="How long a read of them may take; by default 5 times now."),
    ] = None,
    step_timeout: Annotated[
        float, typer.Option("--step-timeout", "--each", help="Seconds until all groups of a wave must follow.")
    ] = SETTLE_S,
    way_back: WayBack = WAY_BACK_S / 3600,
    undo_on_failure: UndoOnFailure = False,
    override: Overrides = None,
    runs: RunsFolder = None,
    as_json: AsJson = False,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Toggle every group that is wholly migration-enabled and stable, in waves; or back. Writes nothing."""
    with open_desk(profile, profile_file, runs) as desk:
        on_failure = UNDO if undo_on_failure else STOP
        limits = (wave, pause, min_stable, lag_tolerance, max_read_ms, step_timeout, on_failure, way_back * 3600)
        show_plan(desk.plan_fleet(FleetPlanRequest(to, pattern, tuple(groups or ()), *limits), override or ()), as_json)


@plan_app.command("show")
def show(
    plan: Named,
    runs: RunsFolder = None,
    as_json: AsJson = False,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Print a plan again, and what has changed since it was made. Writes nothing."""
    with open_desk(profile, profile_file, runs) as desk:
        found = desk.plan(plan)
        show_plan(found, as_json)
        dry = desk.dry_run(found)
        for difference in dry.differences:
            say(f"changed since: {difference.sentence}")
        first = dry.steps[0]
        say(f"it {'could' if first.can_begin and not dry.differences else 'can not'} begin now: {first.sentence}")


@plan_app.command("list")
def list_plans_(
    runs: RunsFolder = None, as_json: AsJson = False, profile: ProfileName = None, profile_file: ProfileFile = None
) -> None:
    """List all plans: first those whose run did not end well, then the newest. Reads the folder, no cluster."""
    with refusals():
        rows = list_plans(_folder(runs, profile, profile_file))
        _print(rows, [field.name for field in fields(PlanRow)], as_json)


def approve(
    plan: Named,
    typed_subject: Annotated[
        str | None, typer.Option("--subject", help="The group's name, as a confirmation; asked for by default.")
    ] = None,
    typed_digest: Annotated[
        str | None,
        typer.Option("--digest", help="Eight or more of the digest's first characters; asked for by default."),
    ] = None,
    approver: Annotated[str | None, typer.Option("--by", help="Who approves; by default who is logged in.")] = None,
    hours: Annotated[
        float | None, typer.Option(help="For how long it may be carried out; by default 4, or what the profile allows.")
    ] = None,
    sign_with: Annotated[
        Path | None, typer.Option("--sign-with", help="Your private SSH key, such as ~/.ssh/id_ed25519.")
    ] = None,
    runs: RunsFolder = None,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Show one plan and approve it, by typing its group's name and the beginning of its digest."""
    with open_desk(profile, profile_file, runs) as desk:
        found = desk.plan(plan)
        typer.echo(plan_text(found))
        for given in desk.approvals(found):
            say(f"{given.approved_by} approved it already, until {given.expires_at.isoformat()}; this one is added")
        subject = typed_subject or typer.prompt("Type the group's name", err=True)
        digest = typed_digest or typer.prompt("Type the first 8 characters of the plan's digest", err=True)
        valid_for = None if hours is None else _duration(hours)
        made = desk.approve(found, subject, digest, approver, valid_for, sign_with, _passphrase)
        say(f"{made.approved_by} approved {found.digest[:8]} for {found.subject}, until {made.expires_at.isoformat()}")
        say(f"carry it out: offramp act {found.digest[:8]}")


def act(plan: Named, runs: RunsFolder = None, profile: ProfileName = None, profile_file: ProfileFile = None) -> None:
    """Carry an approved plan out. Ctrl-C stops it after what is being written; then resume it or undo it."""
    with open_desk(profile, profile_file, runs) as desk:
        _carry_out(desk.begin(desk.plan(plan)), Run.act, RunState.VERIFIED)


def resume(run: RunId, runs: RunsFolder = None, profile: ProfileName = None, profile_file: ProfileFile = None) -> None:
    """Go on with a run that was stopped, failed or was cut off; the cluster is asked how far it came."""
    with open_desk(profile, profile_file, runs) as desk:
        found = desk.run(run)
        wanted = RunState.UNDONE if found.record.state in _GOING_BACK else RunState.VERIFIED
        newer = desk.newer_approval(found.record)
        if not found.record.has_written and not found.record.is_at_work:
            say(f"run {run} has written nothing to the cluster so far")
        _carry_out(found, lambda going: going.resume(newer), wanted)


def undo(run: RunId, runs: RunsFolder = None, profile: ProfileName = None, profile_file: ProfileFile = None) -> None:
    """Take back what a run did, the newest step first.

    The plan says for how long that needs no new approval; after that approve the same plan again, then undo.
    """
    with open_desk(profile, profile_file, runs) as desk:
        found = desk.run(run)
        newer = desk.newer_approval(found.record)
        if not found.record.has_written and not found.record.is_at_work:
            say(f"run {run} wrote nothing to the cluster: there is nothing to take back")
        _carry_out(found, lambda going: going.undo(newer), RunState.UNDONE)


def stop(run: RunId, runs: RunsFolder = None, profile: ProfileName = None, profile_file: ProfileFile = None) -> None:
    """Ask a run that goes on elsewhere to stop after what is being written; then resume it or undo it."""
    with refusals():
        folder = run_folder(_folder(runs, profile, profile_file), run)
        record = load_run(folder)
        if not record.is_at_work:
            raise IllegalMove(f"run {run} is {record.state}: it is not going on, so there is nothing to stop")
        request_stop(folder, operator(), datetime.now(UTC))
        say(f"asked run {run} to stop; `offramp runs {run}` says when it has; one that was cut off does not hear it")


def verify(run: RunId, runs: RunsFolder = None, profile: ProfileName = None, profile_file: ProfileFile = None) -> None:
    """Hold a run's evidence against itself; fails unless it is unedited and the run ended verified or undone."""
    with refusals():
        record = load_run(run_folder(_folder(runs, profile, profile_file), run))
        tell(*record_text(record).split("\n"))
        for approval in record.approvals:
            tell(f"approval by {approval.approved_by}: {told_signature(approval, _signers(profile, profile_file))}")
        if any(is_badly_signed(approval) for approval in record.approvals):
            raise EvidenceError(f"run {run}: an approval was altered after it was signed")
        if record.state not in (RunState.VERIFIED, RunState.UNDONE):
            raise RunError(f"run {run} is {record.state}: {record.sentence}")


def list_(
    run: Annotated[str | None, typer.Argument(help="One run, shown whole.")] = None,
    runs: RunsFolder = None,
    as_json: AsJson = False,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """List all runs, or show one. Reads the folder, no cluster."""
    with refusals():
        folder = _folder(runs, profile, profile_file)
        if run is not None:
            tell(*record_text(load_run(run_folder(folder, run))).split("\n"))
            return
        _print(list_runs(folder), _COLUMNS, as_json)


def _print(rows: Iterable[object], columns: Sequence[str], as_json: bool) -> None:
    found = [{name: getattr(row, name) for name in columns} for row in rows]
    print_rows(pl.DataFrame(found, schema=dict.fromkeys(columns, pl.String)), as_json)


def _signers(profile: str | None, profile_file: Path | None) -> dict[str, tuple[str, ...]] | None:
    """Whose keys count, by the profile; None where there is none: evidence may be verified anywhere."""
    try:
        return load_profile(profile, profile_file).approvals.signers
    except ProfileError:
        if profile or profile_file:
            raise
        return None


def _duration(hours: float) -> timedelta:
    """Raises:
    InputError: that is no number of hours.
    """
    if not -LONGEST_HOURS <= hours <= LONGEST_HOURS:
        raise InputError(f"--hours {hours:g} is no time for which an approval can hold")
    return timedelta(hours=hours)


def _passphrase() -> str:
    return str(typer.prompt("Passphrase of the key", hide_input=True, err=True))


def _folder(runs: Path | None, profile: str | None, profile_file: Path | None) -> Path:
    return runs or runs_beside(load_profile(profile, profile_file))


_COLUMNS = ("run_id", "state", "kind", "subject", "made_by", "approved_by", "last_event_at", "sentence", "error")
LONGEST_HOURS = 1e6
_GOING_BACK = (RunState.UNDOING, RunState.UNDO_HALTED)


def register(app: typer.Typer) -> None:
    """Put the verbs that belong to no noun on the command line."""
    for verb, name in (
        (approve, None),
        (act, None),
        (resume, None),
        (undo, None),
        (stop, None),
        (verify, None),
        (list_, "runs"),
    ):
        app.command(name)(verb)


def _carry_out(run: Run, verb: Callable[[Run], RunResult], wanted: RunState) -> None:
    """Ctrl-C asks the run to stop; a second one interrupts it."""

    def stop(number: int, frame: FrameType | None) -> None:
        say("stopping after what is being written; Ctrl-C again interrupts that too")
        run.request_stop(operator())
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, stop)
    try:
        ending = verb(run)
    except KeyboardInterrupt:
        raise OfframpError(f"run {run.run_id} was interrupted: resume it or undo it") from None
    finally:
        signal.signal(signal.SIGINT, before)
    say(f"evidence: {run.folder / 'report.html'}")
    if ending.state not in (RunState.VERIFIED, RunState.UNDONE):
        say(f"go on: offramp resume {run.run_id}    take back: offramp undo {run.run_id}")
    ending.raise_unless(wanted)
