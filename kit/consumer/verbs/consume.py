"""``offramp consume``: the verb."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kit.consumer.verbs.consume_options import ConsumeOptions, Flavour, properties_of
from kit.terminal.options import ChosenProfile, with_options
from kit.terminal.terminal import LONGEST_WAIT_S, a_number, refusals

app = typer.Typer(rich_markup_mode=None)


@app.command()
@with_options
def consume(
    profile: ChosenProfile,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="After `--`: a program that reads the records on its standard input. Without it, records go to "
            "standard output."
        ),
    ] = None,
    flavour: Annotated[
        Flavour,
        typer.Option(
            help="An old ZooKeeper consumer (ozkcc), a migration-enabled one that follows migration/mode "
            "(mezkcc), or a plain Kafka consumer (kc)."
        ),
    ] = Flavour.OZKCC,
    group: Annotated[str, typer.Option("--group", "-g", help="The group to join.")] = "",
    topic: Annotated[
        list[str] | None, typer.Option("--topic", "-t", help="A topic to read; can be given more than once.")
    ] = None,
    allow: Annotated[
        str | None, typer.Option(help="Instead of --topic: read all topics whose whole name matches this pattern.")
    ] = None,
    deny: Annotated[
        str | None, typer.Option(help="Instead of --topic: read all topics except those that match this pattern.")
    ] = None,
    threads: Annotated[int, typer.Option(help="Number of streams per topic; with kc, the number of members.")] = 1,
    from_beginning: Annotated[
        bool,
        typer.Option("--from-beginning", help="If the group has no committed offset, begin with the oldest record."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object per record instead of the value alone.")
    ] = False,
    max_messages: Annotated[int, typer.Option(help="Leave the group after this number of records; 0: never.")] = 0,
    property_: Annotated[
        list[str] | None,
        typer.Option(
            "--property", "-X", help="key=value of the consumer's configuration; can be given more than once."
        ),
    ] = None,
    properties: Annotated[Path | None, typer.Option(help="A properties file with lines key=value.")] = None,
    consumption_file: Annotated[
        Path | None,
        typer.Option(help="Append a JSON line per record delivered: at_ms, consumer, topic, partition, offset."),
    ] = None,
    events_file: Annotated[
        Path | None, typer.Option(help="Append rebalance events to this file; by default they go to standard error.")
    ] = None,
    metrics: Annotated[str | None, typer.Option(help="Serve Prometheus metrics on this host:port.")] = None,
    wait_for_topics: Annotated[
        float,
        typer.Option(
            help="Seconds to wait for a topic that does not exist; 0: refuse at once.",
            min=0,
            max=LONGEST_WAIT_S,
            callback=a_number,
        ),
    ] = 0.0,
) -> None:
    """Consume as a member of a group, as any kind of consumer of KIP-125; useful as a manual canary.

    Records go to standard output, or to a program in any language. A record is committed only after it was written
    completely and the reader of the pipe has read it. SIGTERM or Ctrl-C commits, leaves the group and ends. The
    guarantees are described in docs/consumers.md.

    \b
    offramp consume --flavour mezkcc -g orders -t orders --threads 2 --json -- ./service --stdin
    """
    with refusals():
        from kit.consumer.verbs.consuming import run_consumers

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
        run_consumers(profile.load(), options)
