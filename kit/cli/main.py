"""``offramp``: the library's verbs for a terminal and for schedulers, with the same names and numbers.

Exit codes: 0 all was read; 2 wrong arguments; 3 profile; 4 can't connect; 5 login refused; 6 wrong cluster;
7 can't be read; 8 no such group, plan or run; 9 history; 10 lab; 11 set-up; 12 printed, but something could not be
read; 13 to 15 no plan, nothing to do, unsafe; 16, 17 not approved, or out of date; 18 to 23 a run did not end well;
24 its evidence; 25 to 27 records can't be handed over: the output is full, closed, its program ended badly; 28 both
stores of a move to KRaft were read, and have diverged.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from kit.terminal.exit_codes import exit_code
from kit.terminal.terminal import tell
from kit.terminal.verbs import Verb, group_of

VERBS = {
    "connect": Verb(
        "kit.cli.connect:app",
        "Check the profile: names, TCP, TLS, logins and rights of each server.",
    ),
    "groups": Verb("kit.cli.groups:app", "Every group in one line: stage, members, lag in both stores, findings."),
    "lag": Verb("kit.cli.groups:app", "Lag in records: per partition of one group, or in total for every group."),
    "watch": Verb(
        "kit.health.verbs.watch:app", "Every group's lag, look after look: who stands still or falls behind first."
    ),
    "export": Verb("kit.health.verbs.export:app", "Lag, lag in time, outlook and verdicts as metrics for Prometheus."),
    "ownership": Verb(
        "kit.cli.groups:app", "Who owns each partition of one group; without a group, what is wrong with any."
    ),
    "readiness": Verb("kit.cli.groups:app", "Where each group stands on the way to Kafka coordination (KIP-125)."),
    "protocol": Verb("kit.cli.protocol:app", "Groups between the classic and the consumer protocol (KIP-848)."),
    "rebalances": Verb(
        "kit.rebalances.verbs.rebalances:app", "What happened to groups: each generation, who was late, what moved."
    ),
    "kraft": Verb(
        "kit.kraft.verbs.kraft:app", "A cluster on its way from ZooKeeper to KRaft: where it stands, what differs."
    ),
    "znodes": Verb("kit.kraft.verbs.znodes:app", "What znodes hold, or held at a time, and which session wrote it."),
    "report": Verb("kit.cli.report:app", "Run the report notebook over all groups."),
    "snapshot": Verb(
        "kit.cli.groups:app", "Read the cluster once and append what was seen to a history of Parquet files."
    ),
    "history": Verb(
        "kit.cli.history:app", "A history of snapshots: what lies there, many small files made few, old days deleted."
    ),
    "notebooks": Verb("kit.cli.notebooks:app", "Copy this release's notebooks to a folder, to run and to edit them."),
    "plan": Verb("kit.operations.verbs.plan:app", "Say what would be done, and keep that as a plan to approve."),
    "approve": Verb("kit.operations.verbs.operate:app", "Show one plan and approve it."),
    "act": Verb("kit.operations.verbs.operate:app", "Carry an approved plan out."),
    "stop": Verb("kit.operations.verbs.runs:app", "Ask a run that goes on elsewhere to stop."),
    "resume": Verb("kit.operations.verbs.operate:app", "Go on with a run that was stopped, failed or was cut off."),
    "undo": Verb("kit.operations.verbs.operate:app", "Take back what a run did, the newest step first."),
    "runs": Verb("kit.operations.verbs.runs:app", "List all runs, or show one."),
    "lock": Verb("kit.operations.verbs.lock:app", "Which run has which group now, and how to end a lock."),
    "verify": Verb(
        "kit.operations.verbs.runs:app", "Check a run's evidence: unedited, and the run ended verified or undone."
    ),
    "consume": Verb(
        "kit.consumer.verbs.consume:app",
        "Consume as a member of a group, in any of KIP-125's flavours: a canary by hand.",
    ),
    "lab": Verb("kit.lab.command:app", "Real ZooKeeper, Kafka and consumers on this machine."),
}
"""As people need them: what reads, then what plans, writes and takes back; the lab last."""


def _tell_version(is_asked: bool) -> None:
    if is_asked:
        from kit.release import version

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
    help="Who owns what, how evenly, how far behind – for Kafka consumer groups in ZooKeeper and in Kafka.",
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
