"""``offramp kraft status | diff``: a cluster on its way from ZooKeeper to KRaft (KIP-866). Nothing is written."""

from __future__ import annotations

from typing import Annotated

import polars as pl
import typer

from kit.cli.terminal import AsJson, ProfileFile, ProfileName, print_json, print_rows, refusals, tell
from kit.cluster import connect
from kit.errors import PartialRead
from kit.kraft import SETTLE_S, KraftStatus, MetadataDiff, kraft_diff, kraft_status
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
    print_rows(found.facts, False)


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
            print_rows(found.summary, False)
            tell("")
            print_rows(
                open_rows.select("kind", "entity", "item", "verdict", "cause", "zookeeper_value", "kraft_value"), False
            )
        _verify(found, open_rows)


def _verify(found: MetadataDiff, open_rows: pl.DataFrame) -> None:
    """Raises PartialRead unless both stores hold the same."""
    if not found.is_clean:
        counts = ", ".join(f"{n} {verdict}" for verdict, n in sorted(open_rows["verdict"].value_counts().iter_rows()))
        errors = open_rows["error"].drop_nulls().unique(maintain_order=True).head(20).to_list()
        raise PartialRead(
            "\n".join([f"ZooKeeper at checkpoint {found.checkpoint} and KRaft do not hold the same: {counts}", *errors])
        )
