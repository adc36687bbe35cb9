"""``offramp kraft status | preflight | diff``: a cluster on its way to KRaft (KIP-866). Nothing is written to it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from kit.cli.listing import print_frame
from kit.cli.terminal import AsJson, ProfileFile, ProfileName, print_json, refusals, say, tell
from kit.cluster import connect
from kit.errors import PartialRead
from kit.kraft import SETTLE_S, KraftStatus, MetadataDiff, kraft_diff, kraft_status
from kit.preflight import Preflight, kraft_preflight, read_settings_folder
from kit.profile import load_profile
from kit.tables import schema as tables

app = typer.Typer(
    help="A cluster on its way from ZooKeeper to KRaft: where it stands, what differs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def status(profile: ProfileName = None, profile_file: ProfileFile = None, as_json: AsJson = False) -> None:
    """The phase, what contradicts it, and each fact with its source and time. Exit code 12: something was not read."""
    with refusals():
        with connect(load_profile(profile, profile_file)) as cluster:
            found = kraft_status(cluster)
        state = pl.DataFrame(tables.KRAFT_STATES.from_rows([found.state]))
        findings = pl.DataFrame(tables.KRAFT_FINDINGS.from_rows(found.findings))
        if as_json:
            frames = {"state": state, "findings": findings, "facts": found.facts, "nodes": found.nodes}
            print_json({name: frame.to_dicts() for name, frame in frames.items()})
        else:
            _tell_status(found, findings)
        found.verify()


def _tell_status(found: KraftStatus, findings: pl.DataFrame) -> None:
    state = found.state
    tell(f"Cluster {found.cluster_name}: phase {state.phase}.")
    counts = {
        "brokers in /brokers/ids": state.n_zookeeper,
        "registered in ZooKeeper mode": state.n_migrating,
        "in KRaft mode": state.n_kraft,
        "records behind in ZooKeeper": state.lag,
    }
    told = [f"{'unknown' if number is None else number} {name}" for name, number in counts.items()]
    tell(f"{', '.join(told)}.")
    for row in findings.iter_rows(named=True):
        tell(f"{row['check_id']} {row['severity']}: {row['sentence']}", f"  {row['remedy']}")
    tell("")
    print_frame(found.facts)


SettingsFolder = Annotated[
    Path | None,
    typer.Option("--settings-dir", help="Folder with the nodes' own server.properties and meta.properties."),
]
WriteTo = Annotated[
    Path | None,
    typer.Option("--write-settings", help="Folder to write ready-made settings to, a file per node and mode."),
]


@app.command()
def preflight(
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
    settings_dir: SettingsFolder = None,
    write_settings: WriteTo = None,
    as_json: AsJson = False,
) -> None:
    """Whether the cluster is ready to move to KRaft: every check, with what to do. Exit code 15: it is not.

    Exit code 12: nothing forbids it, but a check that could was not read.
    """
    with refusals():
        folder = read_settings_folder(settings_dir) if settings_dir else None
        with connect(load_profile(profile, profile_file)) as cluster:
            found = kraft_preflight(cluster, folder)
        if as_json:
            print_json(found.findings.to_dicts())
        else:
            _tell_preflight(found)
        if write_settings is not None:
            say(*(f"written: {file}" for file in found.write_files(write_settings)))
        found.verify()


def _tell_preflight(found: Preflight) -> None:
    for row in found.open_rows:
        answer = "not known" if row.is_met is None else row.severity
        tell(f"{row.check_id} {answer}: {row.sentence}", *([f"  {row.remedy}"] if row.remedy else []))
    for row in found.rows:
        if row.is_met and row.severity == "info":
            tell(f"{row.check_id} {row.severity}: {row.sentence}")
    n_met = sum(each.is_met is True for each in found.rows)
    tell(f"Cluster {found.cluster_name}: {n_met} of {len(found.rows)} answers are as they should be.")


@app.command()
def diff(
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
    settle_s: Annotated[
        float, typer.Option("--settle-s", min=0, help="Seconds to wait for changes that are under way.")
    ] = SETTLE_S,
    as_json: AsJson = False,
) -> None:
    """Compare what ZooKeeper and KRaft hold, during dual write. Exit code 12: something differs or was not read."""
    with refusals():
        with connect(load_profile(profile, profile_file)) as cluster:
            found = kraft_diff(cluster, settle_s)
        open_rows = found.of("diverged", "in_flight", "unknown")
        if as_json:
            differing = found.of("diverged", "in_flight", "unknown", "expected")
            print_json({"summary": found.summary.to_dicts(), "differences": differing.to_dicts()})
        else:
            print_frame(found.summary)
            tell("")
            named = found.differences.filter(pl.col("cause").is_not_null(), pl.col("verdict") == "expected")
            columns = ["kind", "entity", "item", "verdict", "cause", "zookeeper_value", "kraft_value"]
            print_frame(pl.concat([open_rows, named]).select(columns))
        _verify(found, open_rows)


def _verify(found: MetadataDiff, open_rows: pl.DataFrame) -> None:
    """Raises PartialRead unless both stores hold the same."""
    if not found.is_clean:
        counts = ", ".join(f"{n} {verdict}" for verdict, n in sorted(open_rows["verdict"].value_counts().iter_rows()))
        errors = open_rows["error"].drop_nulls().unique(maintain_order=True).head(20).to_list()
        raise PartialRead(
            "\n".join([f"ZooKeeper at checkpoint {found.checkpoint} and KRaft do not hold the same: {counts}", *errors])
        )
