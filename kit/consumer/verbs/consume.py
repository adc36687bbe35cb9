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
            help="After `--`: a program that gets the records on its standard input; by default standard output."
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
    topic: Annotated[list[str] | None, typer.Option("--topic", "-t", help="A topic; can be given again.")] = None,
    allow: Annotated[str | None, typer.Option(help="Instead of --topic: topics that match as a whole.")] = None,
    deny: Annotated[str | None, typer.Option(help="Instead of --topic: all topics except those that match.")] = None,
    threads: Annotated[int, typer.Option(help="Streams per topic; with kc: members, each on a thread.")] = 1,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Without a committed offset, begin with the oldest record.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object per record instead of the value alone.")
    ] = False,
    max_messages: Annotated[int, typer.Option(help="Leave the group after so many records; 0: never.")] = 0,
    property_: Annotated[
        list[str] | None,
        typer.Option("--property", "-X", help="key=value of the consumer's configuration; can be given again."),
    ] = None,
    properties: Annotated[Path | None, typer.Option(help="A file of lines key=value.")] = None,
    consumption_file: Annotated[
        Path | None,
        typer.Option(help="Append a JSON line per record delivered: at_ms, consumer, topic, partition, offset."),
    ] = None,
    events_file: Annotated[
        Path | None, typer.Option(help="Append rebalances here; by default they go to standard error.")
    ] = None,
    metrics: Annotated[str | None, typer.Option(help="host:port to serve Prometheus metrics on.")] = None,
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
    """Consume as a member of a group, as any of KIP-125's kinds of consumers: a manual canary.

    Records go to standard output, or to a program of any language. A record is committed only after it was handed
    over: written in full, and read by the reader of the pipe. SIGTERM or Ctrl-C: commit, leave the group, end. The
    guarantees are in docs/consumers.md.

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
