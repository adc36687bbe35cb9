"""``offramp kraft lint`` and ``offramp kraft story``: settings of nodes, logs of controllers; no cluster is asked."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kit.terminal.terminal import AsJson, print_json, refusals, say, tell


class Mode(StrEnum):
    """The mode in which a node starts."""

    zookeeper = "zookeeper"
    migration = "migration"
    kraft = "kraft"
    controller = "controller"


def lint(
    files: Annotated[
        list[Path],
        typer.Argument(help="The nodes' server.properties, env files, or Compose files with their variables."),
    ],
    mode: Annotated[
        Mode | None, typer.Option(help="The mode in which each file must start its node [the mode in the file].")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check whether Kafka 3.9.1 would start a node with these files. No cluster is asked. Exit code 15: it would not.

    Settings that a move to KRaft forbids are reported, too. Exit code 12: a value is a placeholder, so the answer is
    unknown.
    """
    from kit.kraft.settings_files import lint_files

    with refusals():
        linted = lint_files(files, None if mode is None else mode.value)
        if as_json:
            print_json([asdict(each) for each in linted.rows])
        else:
            for row in linted.rows:
                answer = "not known" if row.is_met is None else "ok" if row.is_met else row.severity
                tell(f"{row.check_id} {answer}: {row.sentence}", *([f"  {row.remedy}"] if row.remedy else []))
        say(linted.verify())


def story(
    files: Annotated[list[Path], typer.Argument(help="Logs of controllers; gz too.")],
    same_zone: Annotated[
        bool, typer.Option("--same-zone", help="All logs use the same time zone: merge their lines by time.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show from controllers' logs what they did in a move to KRaft, and which znode aborted the copy."""
    from kit.kraft.story import read_story

    with refusals():
        read = read_story(files, same_zone)
        if as_json:
            print_json([asdict(each) for each in read.events])
        else:
            tell(*read.describe(), "", read.summary)
