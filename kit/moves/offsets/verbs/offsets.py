"""``offramp plan offsets copy | reset | import | delete`` and ``offramp plan offsets export``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kit.engine.model.plan import STOP, UNDO, Plan
from kit.errors import InputError, PartialRead
from kit.operations.verbs.operations import Overrides, UndoOnFailure, open_operations, show_plan
from kit.profile import load_profile
from kit.terminal.listing import print_frame
from kit.terminal.progress import waiting
from kit.terminal.terminal import AsJson, ProfileFile, ProfileName, RunsFolder, refusals, say
from kit.text.quantity import quantity

if TYPE_CHECKING:
    from kit.moves.offsets.plan import PlanOptions, Reset, Selection

_READING = "reading offsets"
_HELP = "Copy, reset, import, delete or export committed offsets."
app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)

Groups = Annotated[list[str] | None, typer.Option("--group", "-g", help="A group; can be given again.")]
Topics = Annotated[list[str] | None, typer.Option("--topic", "-t", help="A topic; can be given again.")]
Partitions = Annotated[list[int] | None, typer.Option("--partition", help="A partition; can be given again.")]
Store = Annotated[
    str | None, typer.Option("--store", help="kafka or zookeeper; needed only for groups with offsets in both.")
]
Backwards = Annotated[bool, typer.Option("--allow-backwards", help="Let offsets go backwards: records are read again.")]
Skip = Annotated[bool, typer.Option("--skip-backwards", help="Leave out offsets that would go backwards.")]
Exclusive = Annotated[
    bool,
    typer.Option("--exclusive", help="Join each group in Kafka while its offsets are written: three seconds each."),
]
New = Annotated[bool, typer.Option("--new-groups", help="Write groups that neither store knows, too.")]


@app.command("copy")
def copy(
    source: Annotated[str | None, typer.Option("--from", help="kafka or zookeeper.")] = None,
    target: Annotated[str | None, typer.Option("--to", help="kafka or zookeeper.")] = None,
    to_cluster: Annotated[
        str | None, typer.Option(help="Instead of --to: the profile of another cluster that has copies of the topics.")
    ] = None,
    by: Annotated[
        Literal["record", "timestamp", "syncs"],
        typer.Option(
            help=(
                "Method to find the offsets on the other cluster: by equal records, by time, or by"
                " MirrorMaker 2's syncs."
            )
        ),
    ] = "record",
    syncs_topic: Annotated[
        str | None, typer.Option(help="MirrorMaker 2's topic of offset syncs, on this cluster.")
    ] = None,
    topic_prefix: Annotated[
        str,
        typer.Option(
            help="Prefix of the topics' names on the other cluster, with its separator: `us-east.` of us-east.orders."
        ),
    ] = "",
    groups: Groups = None,
    topics: Topics = None,
    partitions: Partitions = None,
    to_group: Annotated[str | None, typer.Option(help="Write them for this group; needs exactly one --group.")] = None,
    allow_backwards: Backwards = False,
    skip_backwards: Skip = False,
    exclusive: Exclusive = False,
    override: Overrides = None,
    undo_on_failure: UndoOnFailure = False,
    runs: RunsFolder = None,
    as_json: AsJson = False,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Copy offsets from one store to the other, to another group, or to another cluster."""
    if (to_cluster is None) == (source is None or target is None):
        raise typer.BadParameter("name --from and --to, or --to-cluster")
    if to_group is not None and len(groups or ()) != 1:
        raise typer.BadParameter("--to-group needs exactly one --group")
    options = _options(allow_backwards, skip_backwards, True, override, undo_on_failure, exclusive)
    selection = partial(_selection, groups, topics, partitions)
    renamed = {(groups or [""])[0]: to_group} if to_group is not None else None
    if to_cluster is not None:
        with open_operations(profile, profile_file, runs) as operations, refusals():
            from kit.clients.cluster import connect
            from kit.moves.offsets.other_cluster import OtherCluster, plan_copy_to_cluster

            other = OtherCluster(by, topic_prefix, renamed or {}, syncs_topic)
            with waiting(f"connecting to {to_cluster}"):
                connected = connect(load_profile(to_cluster, profile_file), is_patient=False)
            with connected as there, waiting("reading records of both clusters"):
                made = plan_copy_to_cluster(operations.cluster, there, selection(), other, options)
            _show(operations.save_plan(made), as_json)
            say(f"the plan writes to cluster {to_cluster}: approve and execute it with --profile {to_cluster}")
        return
    with open_operations(profile, profile_file, runs) as operations:
        from kit.moves.offsets.plan import plan_copy

        with waiting(_READING):
            made = plan_copy(operations.cluster, source or "", target or "", selection(), options, renamed)
        _show(operations.save_plan(made), as_json)


@app.command("reset")
def reset(
    store: Store = None,
    to: Annotated[
        str | None, typer.Option("--to", help="earliest, latest, an offset, +n, -n, or a time (ISO 8601).")
    ] = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="As --to earliest.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="As --to latest.")] = False,
    to_offset: Annotated[int | None, typer.Option("--to-offset", help="As --to OFFSET.")] = None,
    shift_by: Annotated[int | None, typer.Option("--shift-by", help="Records, backwards if negative.")] = None,
    to_datetime: Annotated[
        str | None, typer.Option("--to-datetime", help="YYYY-MM-DDThh:mm:ss.sss, in UTC without a zone.")
    ] = None,
    by_duration: Annotated[str | None, typer.Option("--by-duration", help="PnDTnHnMnS ago, such as PT1H30M.")] = None,
    from_file: Annotated[
        Path | None,
        typer.Option("--from-file", help="Offsets by kafka-consumer-groups --export, kafkactl, AKHQ or kcat."),
    ] = None,
    groups: Groups = None,
    topics: Topics = None,
    partitions: Partitions = None,
    allow_backwards: Backwards = False,
    skip_backwards: Skip = False,
    new_groups: New = False,
    exclusive: Exclusive = False,
    override: Overrides = None,
    undo_on_failure: UndoOnFailure = False,
    runs: RunsFolder = None,
    as_json: AsJson = False,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Set offsets to an end of the log, to an offset, by a shift, to a time, or to a time ago (-90m, -36h).

    The options of kafka-consumer-groups --reset-offsets are understood, too.
    """
    with open_operations(profile, profile_file, runs) as operations:
        from kit.moves.offsets.fetch import chosen_store
        from kit.moves.offsets.plan import plan_import, plan_reset

        options = _options(allow_backwards, skip_backwards, new_groups, override, undo_on_failure, exclusive)
        target = _target(to, to_earliest, to_latest, to_offset, shift_by, to_datetime, by_duration, from_file)
        picked = groups or topics or partitions or not isinstance(target, Path)
        selection = _selection(groups, topics, partitions) if picked else None
        with waiting(_READING):
            cluster = operations.cluster
            chosen = store or chosen_store(cluster, groups or ())
            if isinstance(target, Path):
                made = plan_import(cluster, target, chosen, options, selection, tool_groups=groups or ())
            else:
                assert selection is not None
                made = plan_reset(cluster, chosen, selection, target, options)
            plan = operations.save_plan(made)
        _show(plan, as_json)


@app.command("import")
def import_(
    file: Annotated[Path | None, typer.Argument(help="A file of `offramp plan offsets export`.")] = None,
    store: Store = None,
    from_file: Annotated[
        Path | None,
        typer.Option(
            "--from-file",
            help=("Instead of the file: offsets by kafka-consumer-groups --export, kafkactl, AKHQ or kcat."),
        ),
    ] = None,
    groups: Groups = None,
    topics: Topics = None,
    other_cluster: Annotated[bool, typer.Option("--other-cluster", help="Accept a file of another cluster.")] = False,
    edited: Annotated[bool, typer.Option("--edited", help="Accept a file that was edited.")] = False,
    allow_backwards: Backwards = False,
    skip_backwards: Skip = False,
    new_groups: New = False,
    exclusive: Exclusive = False,
    override: Overrides = None,
    undo_on_failure: UndoOnFailure = False,
    runs: RunsFolder = None,
    as_json: AsJson = False,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Write the offsets of a file to a store."""
    path = file or from_file
    if path is None or (file is not None and from_file is not None):
        raise typer.BadParameter(
            "name one file: as the argument, a file of `offramp plan offsets export`; or with --from-file, one of"
            " another tool"
        )
    with open_operations(profile, profile_file, runs) as operations:
        from kit.moves.offsets.fetch import chosen_store
        from kit.moves.offsets.plan import plan_import

        options = _options(allow_backwards, skip_backwards, new_groups, override, undo_on_failure, exclusive)
        selection = _selection(groups, topics, None) if groups or topics else None
        with waiting(_READING):
            made = plan_import(
                operations.cluster,
                path,
                store or chosen_store(operations.cluster, groups or ()),
                options,
                selection,
                other_cluster=other_cluster,
                edited=edited,
                tool_groups=None if from_file is None else groups or (),
            )
            plan = operations.save_plan(made)
        _show(plan, as_json)


@app.command("delete")
def delete(
    store: Store = None,
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
        from kit.moves.offsets.fetch import chosen_store
        from kit.moves.offsets.plan import plan_delete, save_backup

        options = _options(False, False, False, override, undo_on_failure)
        with waiting(_READING):
            chosen = store or chosen_store(operations.cluster, groups or ())
            made = plan_delete(operations.cluster, chosen, _selection(groups, topics, partitions), options)
            file = backup or operations.backup_file(made)
            count = save_backup(made, file)
            plan = operations.save_plan(made)
        _show(plan, as_json)
        restore = "to restore them: offramp plan offsets import, or undo the run"
        say(f"{quantity(count, 'offset')} saved to {file}; {restore}")


@app.command("export")
def export(
    file: Annotated[Path, typer.Argument(help="The file to write: .jsonl or .csv.")],
    store: Store = None,
    groups: Groups = None,
    topics: Topics = None,
    partitions: Partitions = None,
    form: Annotated[
        Literal["offramp", "kafka"],
        typer.Option("--format", help="kafka: CSV for kafka-consumer-groups --reset-offsets --from-file."),
    ] = "offramp",
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Save offsets to a new file, as a backup or for another cluster. Writes nothing to the cluster.

    Exit code 12: the file was written, but offsets may be missing in it.
    """
    with open_operations(profile, profile_file, None) as operations:
        from kit.moves.offsets.fetch import chosen_store
        from kit.moves.offsets.plan import export_offsets

        with waiting(_READING):
            selection = _selection(groups, topics, partitions)
            chosen = store or chosen_store(operations.cluster, groups or ())
            exported = export_offsets(operations.cluster, file, chosen, selection, datetime.now(UTC), form)
        say(f"{quantity(exported.n_offsets, 'offset')} saved to {file}")
        if exported.gaps:
            raise PartialRead(f"Offsets may be missing in {file}. {' '.join(exported.gaps)}")


def _target(
    to: str | None,
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    shift_by: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    from_file: Path | None,
) -> Reset | Path:
    """Where a reset goes, by the one option that is given. Raises InputError: none is, or several."""
    from kit.moves.offsets import kafka_tool
    from kit.moves.offsets.plan import Reset, parse_reset

    given: list[Callable[[], Reset | Path]] = [
        *([partial(parse_reset, to)] if to is not None else []),
        *([partial(Reset, "earliest")] if to_earliest else []),
        *([partial(Reset, "latest")] if to_latest else []),
        *([partial(Reset, "offset", to_offset)] if to_offset is not None else []),
        *([partial(Reset, "shift", shift_by)] if shift_by is not None else []),
        *([partial(kafka_tool.to_datetime, to_datetime)] if to_datetime is not None else []),
        *([partial(kafka_tool.by_duration, by_duration)] if by_duration is not None else []),
        *([partial(Path, from_file)] if from_file is not None else []),
    ]
    if len(given) != 1:
        raise InputError(
            f"{'several targets are' if given else 'no target is'} named: give one of --to, --to-earliest, --to-latest,"
            " --to-offset, --shift-by, --to-datetime, --by-duration, --from-file"
        )
    return given[0]()


def _selection(groups: list[str] | None, topics: list[str] | None, partitions: list[int] | None) -> Selection:
    from kit.moves.offsets.plan import select

    return select(groups=groups or None, topics=topics or None, partitions=partitions or None)


def _options(
    allow_backwards: bool,
    skip_backwards: bool,
    new_groups: bool,
    override: list[str] | None,
    undo: bool,
    exclusive: bool = False,
) -> PlanOptions:
    from kit.moves.offsets.plan import PlanOptions
    from kit.operations.operations import operator

    return PlanOptions(
        operator(),
        datetime.now(UTC),
        allow_backwards,
        skip_backwards,
        new_groups,
        exclusive,
        tuple(override or ()),
        UNDO if undo else STOP,
    )


def _show(plan: Plan, as_json: bool) -> None:
    show_plan(plan, as_json)
    if not as_json:
        from kit.moves.offsets.plan import offset_changes

        print_frame(offset_changes(plan))
