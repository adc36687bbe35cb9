"""``offramp plan offsets copy | reset | import | delete`` and ``offramp plan offsets export``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kit.engine.model.plan import Plan
from kit.errors import InputError, PartialRead
from kit.operations.verbs.operations import PlanningWithUndo, open_operations, show_plan
from kit.terminal.listing import print_frame
from kit.terminal.options import ChosenProfile, with_options
from kit.terminal.progress import waiting
from kit.terminal.terminal import refusals, say
from kit.text.quantity import quantity

if TYPE_CHECKING:
    from kit.clients.cluster import Cluster
    from kit.moves.offsets.plan import PlanOptions, Reset, Selection

_READING = "reading offsets"
_HELP = "Copy, reset, import, delete or export committed offsets."
app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)

Store = Annotated[
    str | None,
    typer.Option("--store", help="The store: kafka or zookeeper; needed only for groups with offsets in both."),
]
New = Annotated[bool, typer.Option("--new-groups", help="Also write groups that neither store knows.")]


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The options that choose offsets."""

    groups: Annotated[
        list[str] | None, typer.Option("--group", "-g", help="Name of a group; can be given more than once.")
    ] = None
    topics: Annotated[
        list[str] | None, typer.Option("--topic", "-t", help="Name of a topic; can be given more than once.")
    ] = None
    partitions: Annotated[
        list[int] | None, typer.Option("--partition", help="Number of a partition; can be given more than once.")
    ] = None

    @property
    def is_any(self) -> bool:
        """Return whether something was chosen."""
        return bool(self.groups or self.topics or self.partitions)

    def selection(self) -> Selection:
        """Return ``kit.moves.offsets.plan.select``, which raises if nothing was chosen."""
        from kit.moves.offsets.plan import select

        return select(groups=self.groups or None, topics=self.topics or None, partitions=self.partitions or None)

    def store(self, cluster: Cluster, named: str | None) -> str:
        """The store that was named, or the only one with offsets of the groups."""

        from kit.moves.offsets.fetch import chosen_store

        return named or chosen_store(cluster, self.groups or ())


@dataclass(frozen=True, kw_only=True)
class Deleting(PlanningWithUndo):
    """The options of a plan that changes offsets."""

    def options(self, new_groups: bool = False) -> PlanOptions:
        """Return the options of the plan."""
        from kit.moves.offsets.plan import PlanOptions
        from kit.operations.operations import operator

        return PlanOptions(
            operator(),
            datetime.now(UTC),
            new_groups=new_groups,
            overrides=tuple(self.override or ()),
            on_failure=self.on_failure,
        )

    def show(self, plan: Plan) -> None:
        """Print the plan, and its changes as a table."""
        show_plan(plan, self.as_json)
        if not self.as_json:
            from kit.moves.offsets.plan import offset_changes

            print_frame(offset_changes(plan))


@dataclass(frozen=True, kw_only=True)
class Writing(Deleting):
    """The options of a plan that writes offsets."""

    allow_backwards: Annotated[
        bool, typer.Option("--allow-backwards", help="Let offsets go backwards: records are read again.")
    ] = False
    skip_backwards: Annotated[
        bool, typer.Option("--skip-backwards", help="Leave out offsets that would go backwards.")
    ] = False
    exclusive: Annotated[
        bool,
        typer.Option(
            "--exclusive",
            help="Join each group in Kafka while its offsets are written, so that no other "
            "client can commit. Takes three seconds per group.",
        ),
    ] = False

    def options(self, new_groups: bool = False) -> PlanOptions:
        return replace(
            super().options(new_groups),
            allow_backwards=self.allow_backwards,
            skip_backwards=self.skip_backwards,
            is_exclusive=self.exclusive,
        )


@dataclass(frozen=True, kw_only=True)
class Target:
    """The options that name where a reset goes."""

    to: Annotated[
        str | None, typer.Option("--to", help="Reset to earliest, latest, an offset, +n, -n, or a time (ISO 8601).")
    ] = None
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="As --to earliest.")] = False
    to_latest: Annotated[bool, typer.Option("--to-latest", help="As --to latest.")] = False
    to_offset: Annotated[int | None, typer.Option("--to-offset", help="As --to OFFSET.")] = None
    shift_by: Annotated[
        int | None, typer.Option("--shift-by", help="Shift by this number of records; backwards if negative.")
    ] = None
    to_datetime: Annotated[
        str | None,
        typer.Option("--to-datetime", help="Reset to this time: YYYY-MM-DDThh:mm:ss.sss; UTC if no zone is given."),
    ] = None
    by_duration: Annotated[
        str | None,
        typer.Option("--by-duration", help="Reset to the time this long ago: PnDTnHnMnS, such as PT1H30M."),
    ] = None
    from_file: Annotated[
        Path | None,
        typer.Option("--from-file", help="File of offsets by kafka-consumer-groups --export, kafkactl, AKHQ or kcat."),
    ] = None

    def reset(self) -> Reset | Path:
        """Return where the reset goes, by the one option that is given. Raises InputError: none is, or several."""
        from kit.moves.offsets import kafka_tool
        from kit.moves.offsets.plan import Reset, parse_reset

        makers: dict[str, Callable[[Any], Reset | Path]] = {
            "to": parse_reset,
            "to_earliest": lambda _: Reset("earliest"),
            "to_latest": lambda _: Reset("latest"),
            "to_offset": partial(Reset, "offset"),
            "shift_by": partial(Reset, "shift"),
            "to_datetime": kafka_tool.to_datetime,
            "by_duration": kafka_tool.by_duration,
            "from_file": Path,
        }
        typed = {name: getattr(self, name) for name in makers}
        given = {name: value for name, value in typed.items() if value is not None and value is not False}
        if len(given) != 1:
            raise InputError(
                f"{'several targets are' if given else 'no target is'} named: give one of"
                f" {', '.join('--' + name.replace('_', '-') for name in makers)}"
            )
        ((name, value),) = given.items()
        return makers[name](value)


@app.command("copy")
@with_options
def copy(
    chosen: Chosen,
    writing: Writing,
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
    to_group: Annotated[
        str | None, typer.Option(help="Write the offsets for this group; needs exactly one --group.")
    ] = None,
) -> None:
    """Copy offsets from one store to the other, to another group, or to another cluster."""
    if (to_cluster is None) == (source is None or target is None):
        raise typer.BadParameter("name --from and --to, or --to-cluster")
    if to_group is not None and len(chosen.groups or ()) != 1:
        raise typer.BadParameter("--to-group needs exactly one --group")
    options = writing.options(new_groups=True)
    renamed = {(chosen.groups or [""])[0]: to_group} if to_group is not None else None
    if to_cluster is not None:
        with writing.open() as operations, refusals():
            from kit.clients.cluster import connect
            from kit.moves.offsets.other_cluster import OtherCluster, plan_copy_to_cluster

            other = OtherCluster(by, topic_prefix, renamed or {}, syncs_topic)
            with waiting(f"connecting to {to_cluster}"):
                connected = connect(replace(writing, profile=to_cluster).load(), is_patient=False)
            with connected as there, waiting("reading records of both clusters"):
                made = plan_copy_to_cluster(operations.cluster, there, chosen.selection(), other, options)
            writing.show(operations.save_plan(made))
            say(f"the plan writes to cluster {to_cluster}: approve and execute it with --profile {to_cluster}")
        return
    with writing.open() as operations:
        from kit.moves.offsets.plan import plan_copy

        with waiting(_READING):
            made = plan_copy(operations.cluster, source or "", target or "", chosen.selection(), options, renamed)
        writing.show(operations.save_plan(made))


@app.command("reset")
@with_options
def reset(
    target: Target,
    chosen: Chosen,
    writing: Writing,
    store: Store = None,
    new_groups: New = False,
) -> None:
    """Set offsets to an end of the log, to an offset, by a shift, to a time, or to a time ago (-90m, -36h).

    The options of kafka-consumer-groups --reset-offsets are understood, too.
    """
    with writing.open() as operations:
        from kit.moves.offsets.plan import plan_import, plan_reset

        cluster, options = operations.cluster, writing.options(new_groups)
        wanted = target.reset()
        selection = chosen.selection() if chosen.is_any or not isinstance(wanted, Path) else None
        with waiting(_READING):
            into = chosen.store(cluster, store)
            if isinstance(wanted, Path):
                made = plan_import(cluster, wanted, into, options, selection, tool_groups=chosen.groups or ())
            else:
                assert selection is not None
                made = plan_reset(cluster, into, selection, wanted, options)
            plan = operations.save_plan(made)
        writing.show(plan)


@app.command("import")
@with_options
def import_(
    chosen: Chosen,
    writing: Writing,
    file: Annotated[Path | None, typer.Argument(help="A file of `offramp plan offsets export`.")] = None,
    store: Store = None,
    from_file: Annotated[
        Path | None,
        typer.Option(
            "--from-file",
            help="Instead of the file: offsets by kafka-consumer-groups --export, kafkactl, AKHQ or kcat.",
        ),
    ] = None,
    other_cluster: Annotated[
        bool, typer.Option("--other-cluster", help="Accept a file that was exported from another cluster.")
    ] = False,
    edited: Annotated[bool, typer.Option("--edited", help="Accept a file that was edited.")] = False,
    new_groups: New = False,
) -> None:
    """Write the offsets of a file to a store."""
    path = file or from_file
    if path is None or (file is not None and from_file is not None):
        raise typer.BadParameter(
            "name one file: as the argument, a file of `offramp plan offsets export`; or with --from-file, one of"
            " another tool"
        )
    with writing.open() as operations:
        from kit.moves.offsets.plan import plan_import

        selection = chosen.selection() if chosen.is_any else None
        with waiting(_READING):
            made = plan_import(
                operations.cluster,
                path,
                chosen.store(operations.cluster, store),
                writing.options(new_groups),
                selection,
                other_cluster=other_cluster,
                edited=edited,
                tool_groups=None if from_file is None else chosen.groups or (),
            )
            plan = operations.save_plan(made)
        writing.show(plan)


@app.command("delete")
@with_options
def delete(
    chosen: Chosen,
    deleting: Deleting,
    store: Store = None,
    backup: Annotated[
        Path | None, typer.Option(help="File for the deleted offsets: .jsonl or .csv; by default beside the plan.")
    ] = None,
) -> None:
    """Delete offsets from a store, for example those that a migration left. A backup is saved with the plan."""
    with deleting.open() as operations:
        from kit.moves.offsets.plan import plan_delete, save_backup

        with waiting(_READING):
            of = chosen.store(operations.cluster, store)
            made = plan_delete(operations.cluster, of, chosen.selection(), deleting.options())
            file = backup or operations.backup_file(made)
            count = save_backup(made, file)
            plan = operations.save_plan(made)
        deleting.show(plan)
        restore = "to restore them: offramp plan offsets import, or undo the run"
        say(f"{quantity(count, 'offset')} saved to {file}; {restore}")


@app.command("export")
@with_options
def export(
    chosen: Chosen,
    profile: ChosenProfile,
    file: Annotated[Path, typer.Argument(help="The file to write: .jsonl or .csv.")],
    store: Store = None,
    form: Annotated[
        Literal["offramp", "kafka"],
        typer.Option(
            "--format", help="Format of the file. kafka: CSV for kafka-consumer-groups --reset-offsets --from-file."
        ),
    ] = "offramp",
) -> None:
    """Save offsets to a new file, as a backup or for another cluster. Writes nothing to the cluster.

    Exit code 12: the file was written, but offsets may be missing in it.
    """
    with open_operations(profile) as operations:
        from kit.moves.offsets.plan import export_offsets

        with waiting(_READING):
            selection = chosen.selection()
            of = chosen.store(operations.cluster, store)
            exported = export_offsets(operations.cluster, file, of, selection, datetime.now(UTC), form)
        say(f"{quantity(exported.n_offsets, 'offset')} saved to {file}")
        if exported.gaps:
            raise PartialRead(f"Offsets may be missing in {file}. {' '.join(exported.gaps)}")
