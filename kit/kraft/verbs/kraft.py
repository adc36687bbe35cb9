"""``offramp kraft …``: a cluster on its way to KRaft (KIP-866). Nothing is written to it."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kit.errors import AuthenticationFailed, ConnectError, PartialRead, StoresDiffer
from kit.kraft.verbs.files import lint, story
from kit.profile import Profile
from kit.terminal.listing import print_frame
from kit.terminal.options import ChosenProfile, with_options
from kit.terminal.progress import waiting
from kit.terminal.terminal import (
    LONGEST_WAIT_S,
    AsJson,
    a_number,
    print_json,
    refusals,
    say,
    tell,
)
from kit.text.visible import visible

if TYPE_CHECKING:
    import polars as pl

    from kit.kraft.both_stores import MetadataDiff
    from kit.kraft.metadata_file import SavedMetadata
    from kit.kraft.preflight import Preflight
    from kit.kraft.rehearsal import Rehearsal
    from kit.kraft.status import KraftStatus

app = typer.Typer(
    help="Show the phase of a move from ZooKeeper to KRaft, check it, compare both stores, and rehearse it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


SETTLE_S = 30.0
"""The default of ``kit.kraft.both_stores``, which loads clients and frames."""


@app.command()
@with_options
def status(profile: ChosenProfile, as_json: AsJson = False) -> None:
    """Show the phase, what contradicts it, and each fact with its source and time. Exit code 12: not all was read."""
    import polars as pl

    from kit.tables import schema as tables

    with refusals():
        chosen = profile.load()
        with waiting(f"reading {chosen.name}"):
            status = _status_of(chosen)
        state = pl.DataFrame(tables.KRAFT_STATES.from_rows([status.state]))
        findings = pl.DataFrame(tables.KRAFT_FINDINGS.from_rows(status.findings))
        if as_json:
            frames = {"state": state, "findings": findings, "facts": status.facts, "nodes": status.nodes}
            print_json({name: frame.to_dicts() for name, frame in frames.items()})
        else:
            _tell_status(status, findings)
        status.verify()


def _status_of(profile: Profile) -> KraftStatus:
    """Return the status by the servers that answer. Raises ConnectError if none answers."""
    from kit.clients.cluster import connect
    from kit.kraft.status import kraft_status, status_without

    try:
        with connect(profile) as cluster:
            return kraft_status(cluster)
    except AuthenticationFailed:
        raise
    except ConnectError:
        status = status_without(profile)
        if not status.is_anything_read:
            raise
        return status


def _tell_status(status: KraftStatus, findings: pl.DataFrame) -> None:
    tell(*status.describe())
    for row in findings.iter_rows(named=True):
        tell(f"{row['check_id']} {row['severity']}: {row['sentence']}", f"  {row['remedy']}")
    tell("")
    print_frame(status.facts)


SettingsFolder = Annotated[
    Path | None,
    typer.Option("--settings-dir", help="Folder with the nodes' server.properties and meta.properties."),
]
WriteTo = Annotated[
    Path | None,
    typer.Option("--write-settings", help="Write settings for each node and mode into this folder."),
]


@app.command()
@with_options
def preflight(
    profile: ChosenProfile,
    settings_dir: SettingsFolder = None,
    write_settings: WriteTo = None,
    saved: Annotated[
        Path | None, typer.Option("--from", help="Check a file of `offramp kraft save` instead of the live cluster.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check whether the cluster is ready to move to KRaft, and show what to do. Exit code 15: it is not ready.

    Exit code 12: no check forbids the move, but the answer of a check that could forbid it is unknown.
    """
    from kit.clients.cluster import connect
    from kit.kraft.metadata_file import load_metadata
    from kit.kraft.preflight import kraft_preflight, preflight_of
    from kit.kraft.settings_files import read_settings_folder

    with refusals():
        folder = read_settings_folder(settings_dir) if settings_dir else None
        if saved is not None:
            with waiting(f"checking {saved}"):
                result = preflight_of(load_metadata(saved), folder)
        else:
            chosen = profile.load()
            with waiting(f"reading {chosen.name}"), connect(chosen) as cluster:
                result = kraft_preflight(cluster, folder)
        if as_json:
            print_json(result.findings.to_dicts())
        else:
            _tell_preflight(result)
        if write_settings is not None:
            say(*(f"written: {file}" for file in result.write_files(write_settings)))
            say(*(f"before a start, {each.check_id}: {each.sentence} {each.remedy}" for each in result.unfinished))
        result.verify()


def _tell_preflight(result: Preflight) -> None:
    for finding in result.open_findings.iter_rows(named=True):
        remedy = [f"  {finding['remedy']}"] if finding["remedy"] else []
        tell(f"{finding['check_id']} {finding['answer']}: {finding['sentence']}", *remedy)
    for row in result.rows:
        if row.is_met and row.severity == "info":
            tell(f"{row.check_id} {row.severity}: {row.sentence}")
    for note in result.notes:
        say(note)
    tell(result.summary)


@app.command()
@with_options
def diff(
    profile: ChosenProfile,
    settle_s: Annotated[
        float,
        typer.Option(
            "--settle-s",
            min=0,
            max=LONGEST_WAIT_S,
            callback=a_number,
            help="Seconds to wait for changes that are in flight.",
        ),
    ] = SETTLE_S,
    as_json: AsJson = False,
) -> None:
    """Compare the values in ZooKeeper and KRaft during dual write. Exit code 28: a value diverged.

    Exit code 12: no value diverged, but a value is in flight or was not read.
    """
    from kit.clients.cluster import connect
    from kit.kraft.both_stores import kraft_diff

    with refusals():
        chosen = profile.load()
        with waiting(f"comparing both stores of {chosen.name}"), connect(chosen) as cluster:
            compared = kraft_diff(cluster, settle_s)
        open_rows = compared.of("diverged", "in_flight", "unknown")
        if as_json:
            differing = compared.of("diverged", "in_flight", "unknown", "expected")
            print_json({"summary": compared.summary.to_dicts(), "differences": differing.to_dicts()})
        else:
            _tell_diff(compared, open_rows)
        _verify(compared, open_rows)


def _tell_diff(compared: MetadataDiff, open_rows: pl.DataFrame) -> None:
    import polars as pl

    print_frame(compared.summary)
    tell("")
    named = compared.differences.filter(pl.col("cause").is_not_null(), pl.col("verdict") == "expected")
    columns = ["entity", "item", "zookeeper_value", "kraft_value", "verdict", "cause", "kind"]
    print_frame(pl.concat([open_rows, named]).select(columns))


def _verify(compared: MetadataDiff, open_rows: pl.DataFrame) -> None:
    """Judge a diff: StoresDiffer if a value diverged; else PartialRead unless both stores hold the same."""
    if not compared.is_clean:
        counts = ", ".join(f"{n} {verdict}" for verdict, n in sorted(open_rows["verdict"].value_counts().iter_rows()))
        errors = open_rows["error"].drop_nulls().unique(maintain_order=True).head(20).to_list()
        kind = PartialRead if compared.of("diverged").is_empty() else StoresDiffer
        raise kind(
            "\n".join(
                [
                    f"ZooKeeper at checkpoint {compared.checkpoint} and KRaft hold different values: {counts}",
                    *map(visible, errors),
                ]
            )
        )


@app.command()
@with_options
def save(
    profile: ChosenProfile, file: Annotated[Path, typer.Argument(help="The file to write: a zip of Parquet tables.")]
) -> None:
    """Save the cluster's metadata in one file, for a preflight and a rehearsal elsewhere.

    The file holds no secret: SCRAM credentials, passwords and keys are replaced by random text of the same form. It
    holds the names of topics, users, hosts and settings.
    """
    from kit.clients.cluster import connect
    from kit.kraft.preflight import save_metadata

    with refusals():
        chosen = profile.load()
        with waiting(f"reading {chosen.name}"), connect(chosen) as cluster:
            saved = save_metadata(cluster, file)
        tell(f"{file}: {_about(saved)}")


def _about(saved: SavedMetadata) -> str:
    when = f"{saved.taken_at:%F %T} UTC, by {saved.taken_by}"
    return f"cluster {saved.cluster_name} ({saved.cluster_id}), {when}: {saved.contents}."


@app.command(name="rehearse")
def rehearse_(
    file: Annotated[Path, typer.Argument(help="A file of `offramp kraft save`.")],
    controllers: Annotated[int, typer.Option(min=1, max=5, help="Number of controllers in the lab.")] = 3,
    runs: Annotated[
        Path,
        typer.Option(
            "--runs", help="Folder of plans and runs. The result is kept there, and a plan of the move reads it."
        ),
    ] = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Rehearse the move to KRaft with a saved cluster, on a throw-away lab on this machine. Exit code 15: it fails.

    The lab's ZooKeeper receives the saved znodes, and real controllers copy them. The brokers are simulated, without
    data. Then both stores are compared, before and after a fail-over. Exit code 12: some values could not be compared.
    The result is kept in any case, because a plan to start controllers requires it.
    """
    from kit.kraft.metadata_file import load_metadata
    from kit.kraft.move.rehearsals import keep_result, sha256_of
    from kit.kraft.rehearsal import HIDES, rehearse  # Loads the lab, which no other verb needs.

    with refusals():
        with waiting(f"reading {file}"):
            saved = load_metadata(file)
        say(_about(saved))
        digest = sha256_of(file)
        with waiting("the rehearsal continues"):
            rehearsal = rehearse(saved, controllers, lambda step: say(f"{step} …"))
        kinds = [each.kind for each in rehearsal.rows]
        say(f"the result is kept: {keep_result(runs, saved, digest, kinds, controllers)}")
        if as_json:
            print_json({"findings": rehearsal.findings.to_dicts(), "times": rehearsal.times.to_dicts()})
        else:
            _tell_rehearsal(rehearsal)
            tell("", f"A rehearsal does not show: {'; '.join(HIDES)}.")
        rehearsal.verify()


def _tell_rehearsal(rehearsal: Rehearsal) -> None:
    for row in rehearsal.rows:
        tell(f"{row.kind} {row.check_id or '(no check)'}: {row.sentence}")
    print_frame(rehearsal.times)
    for moment, diff_found in rehearsal.diffs.items():
        tell("", f"Both stores {moment}:")
        print_frame(diff_found.summary)


@app.command()
@with_options
def watch(
    profile: ChosenProfile,
    history: Annotated[Path, typer.Option("--history", help="Append each observation to the history in this folder.")],
    every: Annotated[
        float,
        typer.Option(
            "--every",
            min=0,
            max=LONGEST_WAIT_S,
            callback=a_number,
            metavar="SECONDS",
            help="Time from one observation to the next.",
        ),
    ] = 10.0,
    count: Annotated[int | None, typer.Option("--count", min=1, help="End after this number of observations.")] = None,
) -> None:
    """Observe repeatedly, in dual write with a diff, and append each observation to a history. Ctrl-C ends it.

    An incomplete observation is kept, too, with the reason. Exit code 12: the last observation was incomplete.
    """
    from kit.kraft.watch import KraftHistory, observe

    with refusals():
        chosen, kept = profile.load(), KraftHistory(history)
        for number in itertools.count(1):
            begun = time.monotonic()
            with waiting(f"reading {chosen.name}"):
                seen = observe(chosen, max(every, 1.0))
                kept.append(seen)
            tell(seen.line())
            if number == count:
                seen.verify()
                return
            time.sleep(max(0.0, begun + every - time.monotonic()))


@app.command()
def report(
    history: Annotated[Path, typer.Option("--history", help="Folder that `offramp kraft watch` fills.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the notebook and the HTML.")] = Path(
        "runs"
    ),
    cluster: Annotated[str, typer.Option("--cluster", help="Cluster in the history [its only cluster].")] = "",
    last_hours: Annotated[
        float, typer.Option(min=0, max=876_000, callback=a_number, help="Hours before the newest observation [all].")
    ] = 0.0,
) -> None:
    """Make a notebook and one HTML page of a history of observations: verdicts, lag, fail-overs. No cluster is asked.

    The report is made in any case. Exit code 28: a value diverged in the last observation; 12: a value was not read.
    """
    from kit.kraft.report import run_soak_report  # Loads papermill, which no other verb of this family needs.
    from kit.kraft.watch import KraftHistory

    with refusals():
        with waiting(f"reading {history}"):
            name = KraftHistory(history).soak(cluster).cluster
        with waiting(f"the report on {name} is being made"):
            made = run_soak_report(history, output, name, last_hours)
        tell(f"notebook  {made.notebook}", f"report    {made.html}", f"newest    {made.latest}")


app.command()(lint)
app.command()(story)
