"""``make demo``: the main job on the embedded lab. ``make demo-kraft``: a cluster from ZooKeeper to KRaft and back.

``make demo-today``: a cluster without ZooKeeper.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import typer

from kit.errors import OfframpError


def show(run: Callable[[Callable[[str], None]], None]) -> None:
    """Run a demo, which is handed what reports a line with its time; errors end it with their exit code."""
    began = time.monotonic()

    def say(text: str) -> None:
        typer.echo(f"[demo {time.monotonic() - began:4.0f} s] {text}")

    try:
        run(say)
    except OfframpError as error:
        typer.echo(f"offramp: {error}", err=True)
        sys.exit(error.exit_code)
