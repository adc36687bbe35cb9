"""``offramp``: the library's verbs for a terminal and for schedulers, with the same names and numbers.

Exit codes: 0 all was read; 2 wrong arguments; 3 profile; 4 can't connect; 5 login refused; 6 wrong cluster;
7 can't be read; 8 no such group, plan or run; 9 history; 10 lab; 11 set-up; 12 printed, but something could not be
read; 13 to 15 no plan, nothing to do, unsafe; 16, 17 not approved, or out of date; 18 to 23 a run did not end well;
24 its evidence; 25 to 27 records can't be delivered: the output is full, closed, its program ended badly; 28 both
stores of a move to KRaft were read, and have diverged.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from kit.subjects import Verb, merged
from kit.terminal.exit_codes import exit_code
from kit.terminal.terminal import tell
from kit.terminal.verbs import group_of

VERBS: Mapping[str, Verb] = {
    "connect": Verb(
        "kit.cli.connect:app",
        "Check the profile: names, TCP, TLS, logins and rights of each server.",
    ),
    "groups": Verb("kit.cli.groups:app", "Show every group in one line: stage, members, lag in both stores, findings."),
    "lag": Verb("kit.cli.groups:app", "Lag in records: per partition of one group, or in total for every group."),
    "ownership": Verb(
        "kit.cli.groups:app", "Owner of each partition of one group; without a group, ownership problems of all groups."
    ),
    "readiness": Verb("kit.cli.groups:app", "Show the stage of each group on the way to Kafka coordination (KIP-125)."),
    "protocol": Verb("kit.cli.protocol:app", "Groups between the classic and the consumer protocol (KIP-848)."),
    "report": Verb("kit.cli.report:app", "Run the report notebook over all groups."),
    "snapshot": Verb(
        "kit.cli.groups:app", "Read the cluster once and append the snapshot to a history of Parquet files."
    ),
    "history": Verb(
        "kit.cli.history:app", "A history of snapshots: show it, compact it, make hours and reports, delete old days."
    ),
    "notebooks": Verb("kit.cli.notebooks:app", "Copy this release's notebooks to a folder, to run and to edit them."),
    **merged("VERBS"),
}
"""Verbs that show several subjects, then those of each subject: what reads, what plans and writes, the lab last."""


def _tell_version(is_asked: bool) -> None:
    if is_asked:
        from kit.profile.release import version

        tell(f"offramp {version()}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None: ...


app = typer.Typer(
    cls=group_of(VERBS),
    name="offramp",
    help="Migrate Kafka consumer groups and clusters off ZooKeeper with reviewed, reversible plans.",
    epilog=(__doc__ or "").partition("\n\n")[2].replace("\n", " "),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    callback=_options,
)


def main() -> None:
    """The ``offramp`` command, once it is loaded."""
    sys.exit(exit_code(lambda: app(standalone_mode=False)))
