"""``offramp plan offsets copy | reset | import | delete`` and ``offramp plan offsets export``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kit.cli.listing import print_frame
from kit.cli.operations import Overrides, UndoOnFailure, open_operations, show_plan
from kit.cli.progress import waiting
from kit.cli.terminal import AsJson, ProfileFile, ProfileName, RunsFolder, say
from kit.errors import InputError, PartialRead
from kit.migrate.engine.plan import STOP, UNDO, Plan
from kit.text.quantity import quantity

if TYPE_CHECKING:
    from kit.migrate.offsets.plan import PlanOptions, Selection

_READING = "reading offsets"
_HELP = "Copy, reset, import, delete or export committed offsets."
app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)

Groups = Annotated[list[str] | None, typer.Option("--group", "-g", help="A group; can be given again.")]
Topics = Annotated[list[str] | None, typer.Option("--topic", "-t", help="A topic; can be given again.")]
Partitions = Annotated[list[int] | None, typer.Option("--partition", help="A partition; can be given again.")]
Store = Annotated[str, typer.Option("--store", help="kafka or zookeeper.")]
Backwards = Annotated[bool, typer.Option("--allow-backwards", help="Let offsets go backwards: records are read again.")]
Skip = Annotated[bool, typer.Option("--skip-backwards", help="Leave out offsets that would go backwards.")]
New = Annotated[bool, typer.Option("--new-groups", help="Write groups that neither store knows, too.")]


@app.command("copy")
def copy(
    source: Annotated[str, typer.Option("--from", help="kafka or zookeeper.")],
    target: Annotated[str, typer.Option("--to", help="kafka or zookeeper.")],
    groups: Groups = None,
    topics: Topics = None,
    partitions: Partitions = None,
    to_group: Annotated[str | None, typer.Option(help="Write them for this group; needs exactly one --group.")] = None,
    allow_backwards: Backwards = False,
    skip_backwards: Skip = False,
    override: Overrides = None,
    undo_on_failure: UndoOnFailure = False,
    runs: RunsFolder = None,
    as_json: AsJson = False,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Copy offsets from one store to the other, or to another group."""
    with open_operations(profile, profile_file, runs) as operations:
        from kit.migrate.offsets.plan import plan_copy

        options = _options(allow_backwards, skip_backwards, True, override, undo_on_failure)
        if to_group is not None and len(groups or ()) != 1:
            raise InputError("--to-group needs exactly one --group")
        renamed = {(groups or [""])[0]: to_group} if to_group is not None else None
        selection = _selection(groups, topics, partitions)
        with waiting(_READING):
            plan = operations.save_plan(plan_copy(operations.cluster, source, target, selection, options, renamed))
        _show(plan, as_json)


@app.command("reset")
def reset(
    store: Store,
    to: Annotated[str, typer.Option("--to", help="earliest, latest, an offset, +n, -n, or a time (ISO 8601).")],
    groups: Groups = None,
    topics: Topics = None,
    partitions: Partitions = None,
    allow_backwards: Backwards = False,
    skip_backwards: Skip = False,
    new_groups: New = False,
    override: Overrides = None,
    undo_on_failure: UndoOnFailure = False,
    runs: RunsFolder = None,
    as_json: AsJson = False,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Set offsets to an end of the log, to an offset, by a shift, to a time, or to a time ago (-90m, -36h)."""
    with open_operations(profile, profile_file, runs) as operations:
        from kit.migrate.offsets.plan import parse_reset, plan_reset

        options = _options(allow_backwards, skip_backwards, new_groups, override, undo_on_failure)
        selection = _selection(groups, topics, partitions)
        target = parse_reset(to)
        with waiting(_READING):
            plan = operations.save_plan(plan_reset(operations.cluster, store, selection, target, options))
        _show(plan, as_json)


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A file of `offramp plan offsets export`.")],
    store: Store,
    groups: Groups = None,
    topics: Topics = None,
    other_cluster: Annotated[bool, typer.Option("--other-cluster", help="Accept a file of another cluster.")] = False,
    edited: Annotated[bool, typer.Option("--edited", help="Accept a file that was edited.")] = False,
    allow_backwards: Backwards = False,
    skip_backwards: Skip = False,
    new_groups: New = False,
    override: Overrides = None,
    undo_on_failure: UndoOnFailure = False,
    runs: RunsFolder = None,
    as_json: AsJson = False,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Write the offsets of a file to a store."""
    with open_operations(profile, profile_file, runs) as operations:
        from kit.migrate.offsets.plan import plan_import

        options = _options(allow_backwards, skip_backwards, new_groups, override, undo_on_failure)
        selection = _selection(groups, topics, None) if groups or topics else None
        with waiting(_READING):
            made = plan_import(
                operations.cluster, file, store, options, selection, other_cluster=other_cluster, edited=edited
            )
            plan = operations.save_plan(made)
        _show(plan, as_json)


@app.command("delete")
def delete(
    store: Store,
    groups: Groups = None,
    topics: Topics = None,
    partitions: Partitions = None,
    backup: Annotated[
        Path | None, typer.Option(help="File for the deleted offsets: .jsonl or .csv; by default beside the plan.")
    ] = None,
    override: Overrides = None,
    undo_on_failure: UndoOnFailure = False,
    runs: RunsFolder = None,
    as_json: AsJson = False,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Delete offsets from a store, for example those that a migration left. A backup is saved with the plan."""
    with open_operations(profile, profile_file, runs) as operations:
        from kit.migrate.offsets.plan import plan_delete, save_backup

        options = _options(False, False, False, override, undo_on_failure)
        with waiting(_READING):
            made = plan_delete(operations.cluster, store, _selection(groups, topics, partitions), options)
            file = backup or operations.backup_file(made)
            count = save_backup(made, file)
            plan = operations.save_plan(made)
        _show(plan, as_json)
        restore = "to restore them: offramp plan offsets import, or undo the run"
        say(f"{quantity(count, 'offset')} saved to {file}; {restore}")


@app.command("export")
def export(
    file: Annotated[Path, typer.Argument(help="The file to write: .jsonl or .csv.")],
    store: Store,
    groups: Groups = None,
    topics: Topics = None,
    partitions: Partitions = None,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Save offsets to a file, as a backup or for another cluster. Writes nothing to the cluster.

    Exit code 12: the file was written, but offsets may be missing in it.
    """
    with open_operations(profile, profile_file, None) as operations:
        from kit.migrate.offsets.plan import export_offsets

        with waiting(_READING):
            selection = _selection(groups, topics, partitions)
            exported = export_offsets(operations.cluster, file, store, selection, datetime.now(UTC))
        say(f"{quantity(exported.n_offsets, 'offset')} saved to {file}")
        if exported.gaps:
            raise PartialRead(f"Offsets may be missing in {file}. {' '.join(exported.gaps)}")


def _selection(groups: list[str] | None, topics: list[str] | None, partitions: list[int] | None) -> Selection:
    from kit.migrate.offsets.plan import select

    return select(groups=groups or None, topics=topics or None, partitions=partitions or None)


def _options(
    allow_backwards: bool, skip_backwards: bool, new_groups: bool, override: list[str] | None, undo: bool
) -> PlanOptions:
    from kit.migrate.offsets.plan import PlanOptions
    from kit.migrate.operations import operator

    return PlanOptions(
        operator(),
        datetime.now(UTC),
        allow_backwards,
        skip_backwards,
        new_groups,
        tuple(override or ()),
        UNDO if undo else STOP,
    )


def _show(plan: Plan, as_json: bool) -> None:
    show_plan(plan, as_json)
    if not as_json:
        from kit.migrate.offsets.plan import offset_changes

        print_frame(offset_changes(plan))
