"""``offramp``: the library's verbs for a terminal and for schedulers, with the same names and numbers.

Exit codes: 0 all was read; 2 wrong arguments; 3 profile; 4 can't connect; 5 login refused; 6 wrong cluster;
7 can't be read; 8 no such group, plan or run; 9 history; 10 lab; 11 set-up; 12 printed, but something could not be
read; 13 to 15 no plan, nothing to do, unsafe; 16, 17 not approved, or out of date; 18 to 23 a run did not end well;
24 its evidence; 25 to 27 records can't be handed over: the output is full, closed, its program ended badly.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from kit import views
from kit.cli.consume import ConsumeOptions, Flavour, properties_of
from kit.cli.consume import consume as run_consumers
from kit.cli.ends import exit_code
from kit.cli.operate import plan_app, register
from kit.cli.rebalances import rebalances
from kit.cli.terminal import ProfileFile, ProfileName, print_rows, print_sentences, refusals, say, tell
from kit.cluster import connect
from kit.errors import PartialRead
from kit.lab.command import app as lab_app
from kit.profile import load_profile
from kit.snapshot import EVERY_GROUP, Snapshot, observe, of_group, verify_read

app = typer.Typer(
    name="offramp",
    help="Who owns what, how evenly, how far behind – for Kafka consumer groups in ZooKeeper and in Kafka.",
    epilog=__doc__.partition("\n\n")[2].replace("\n", " ") if __doc__ else None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(plan_app, name="plan", help="Say what would be done, and keep that as a plan to approve.")
register(app)
app.command()(rebalances)
app.add_typer(lab_app, name="lab", help="Real servers and consumers on this machine, to try things on.")

GroupId = Annotated[str | None, typer.Option("--group", "-g", help="One group, by its id.")]
Pattern = Annotated[str, typer.Option("--groups", help="Regular expression a whole group id must match.")]
AsJson = Annotated[bool, typer.Option("--json", help="Rows as JSON on standard output.")]
Folder = Annotated[str, typer.Option("--history", help="Folder (any file system Spark reads) to keep snapshots in.")]


@app.command()
def groups(
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
    pattern: Pattern = EVERY_GROUP,
    as_json: AsJson = False,
) -> None:
    """Every group in one line: stage, members, lag in both stores, findings."""
    with _snapshot(profile, profile_file, None, pattern) as snapshot:
        print_rows(views.summary(snapshot).sort("group_id"), as_json)


@app.command()
def lag(
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
    group: GroupId = None,
    pattern: Pattern = EVERY_GROUP,
    as_json: AsJson = False,
) -> None:
    """Lag in records: per partition of one group, or in total for every group."""
    with _snapshot(profile, profile_file, group, pattern) as snapshot:
        partitions = views.lag(snapshot)
        if group is None:
            print_rows(views.group_lag(partitions).sort("group_id", "store"), as_json)
        else:
            print_rows(partitions.sort("topic", "partition", "store"), as_json)


@app.command()
def ownership(
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
    group: GroupId = None,
    pattern: Pattern = EVERY_GROUP,
    as_json: AsJson = False,
) -> None:
    """Who owns each partition of one group; without a group, what is wrong with any group's ownership."""
    with _snapshot(profile, profile_file, group, pattern) as snapshot:
        found = views.findings(snapshot).sort("group_id", "finding", "topic", "partition")
        if group is None:
            print_rows(found if as_json else views.finding_summary(found).sort("group_id", "finding"), as_json)
            return
        print_rows(views.owners(snapshot).sort("topic", "partition"), as_json)
        if not as_json:
            print_sentences(found)


@app.command()
def readiness(
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
    group: GroupId = None,
    pattern: Pattern = EVERY_GROUP,
    as_json: AsJson = False,
) -> None:
    """Where each group stands on the way to Kafka coordination (KIP-125), and what blocks it."""
    with _snapshot(profile, profile_file, group, pattern) as snapshot:
        stages = views.readiness(snapshot).sort("group_id")
        blocking = views.blockers(snapshot).sort("group_id", "blocker", "sentence")
        if as_json:
            sentences = blocking.group_by("group_id").agg(blockers=pl.struct("blocker", "sentence"))
            print_rows(
                stages.join(sentences, on="group_id", how="left").with_columns(pl.col("blockers").fill_null([])), True
            )
        else:
            print_rows(stages, False)
            print_sentences(blocking)


@app.command()
def snapshot(
    history: Folder,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
    pattern: Pattern = EVERY_GROUP,
    as_json: AsJson = False,
) -> None:
    """Read the cluster once and append what was seen to a history of Parquet files."""
    from kit.history import History
    from kit.snapshot import take_snapshot
    from kit.spark.session import spark_session

    with refusals():
        chosen = load_profile(profile, profile_file)
        say("starting Spark …")
        spark = spark_session(chosen)
        kept = History(spark, history)
        with connect(chosen) as cluster:
            say(f"reading {cluster.name} ({cluster.cluster_id}) …")
            taken = take_snapshot(spark, cluster, pattern)
        kept.append(taken)
        timings = pl.DataFrame(taken.read_timings.toArrow())
        print_rows(timings.select("snapshot_id", "step", pl.col("duration_ms").round(1), "n_rows"), as_json)
        verify_read(taken)


@app.command()
def report(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the notebook and the HTML.")] = Path(
        "runs"
    ),
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
    pattern: Pattern = EVERY_GROUP,
    history: Annotated[str, typer.Option("--history", help="Folder of the history [<output>/history].")] = "",
) -> None:
    """Run the report notebook over all groups: an executed notebook and one HTML that opens without a network."""
    from kit.report import run_report

    with refusals():
        made = run_report(load_profile(profile, profile_file), output, pattern, history, say)
        tell(f"notebook  {made.notebook}", f"report    {made.html}")
        if made.outcome["read_errors"]:
            raise PartialRead(f"{made.outcome['read_errors']} things could not be read: see the report")


def main() -> None:
    """The ``offramp`` command, once it is loaded."""
    sys.exit(exit_code(lambda: app(standalone_mode=False)))


@app.command()
def consume(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="After `--`: a program to hand the records to on its standard input; by default standard output."
        ),
    ] = None,
    flavour: Annotated[
        Flavour,
        typer.Option(
            help="What to be: an old ZooKeeper consumer (ozkcc), a migration-enabled one that follows migration/mode "
            "(mezkcc), or a plain Kafka consumer (kc)."
        ),
    ] = Flavour.OZKCC,
    group: Annotated[str, typer.Option("--group", "-g", help="The group to join.")] = "",
    topic: Annotated[list[str] | None, typer.Option("--topic", "-t", help="A topic; can be given again.")] = None,
    allow: Annotated[str | None, typer.Option(help="Instead: topics whose whole name matches this pattern.")] = None,
    deny: Annotated[str | None, typer.Option(help="Instead: all topics but those that match.")] = None,
    threads: Annotated[int, typer.Option(help="Streams per topic; of a kc members, each on a thread.")] = 1,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Where the group has no offset, begin with the oldest record.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON object per record instead of its value alone.")
    ] = False,
    max_messages: Annotated[int, typer.Option(help="Leave after so many records; 0: never.")] = 0,
    property_: Annotated[
        list[str] | None,
        typer.Option("--property", "-X", help="key=value of the consumer's own configuration; can be given again."),
    ] = None,
    properties: Annotated[Path | None, typer.Option(help="A properties file of such lines.")] = None,
    consumption_file: Annotated[
        Path | None,
        typer.Option(help="Append a JSON line per record handed over: at_ms, consumer, topic, partition, offset."),
    ] = None,
    events_file: Annotated[
        Path | None, typer.Option(help="Append rebalances here; by default they go to standard error.")
    ] = None,
    metrics: Annotated[str | None, typer.Option(help="host:port to serve Prometheus metrics on.")] = None,
    wait_for_topics: Annotated[
        float, typer.Option(help="Seconds to wait for a topic that isn't there; 0: refuse at once.", min=0)
    ] = 0.0,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Consume as a member of a group, in any of KIP-125's flavours: a canary by hand.

    Records go to standard output, or to a program of any language. A record is committed only after it was handed
    over: written whole, and read by who reads the pipe. SIGTERM or Ctrl-C: commit, leave the group, end. What is
    guaranteed is in docs/consumers.md.

    
    offramp consume --flavour mezkcc -g orders -t orders --threads 2 --json -- ./service --stdin
    """
    with refusals():
        options = ConsumeOptions(
            flavour,
            group,
            topic or (),
            allow,
            deny,
            threads,
            from_beginning,
            as_json,
            command or (),
            max_messages,
            wait_for_topics,
            consumption_file,
            events_file,
            metrics,
            properties_of(property_ or (), properties),
        )
        run_consumers(load_profile(profile, profile_file), options)


@contextmanager
def _snapshot(
    profile: str | None, profile_file: Path | None, group: str | None, pattern: str
) -> Iterator[Snapshot[pl.DataFrame]]:
    """One snapshot to print from; afterwards says what could not be read."""
    with refusals():
        with connect(load_profile(profile, profile_file)) as cluster:
            taken = observe(cluster, pattern) if group is None else of_group(observe(cluster, re.escape(group)), group)
        yield taken
        verify_read(taken)
