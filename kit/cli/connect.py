"""``offramp connect``: a check of the profile, component by component."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from kit.terminal.options import ChosenProfile, with_options
from kit.terminal.terminal import AsJson, print_json, refusals, tell

app = typer.Typer(rich_markup_mode=None)


@app.command("connect")
@with_options
def connect(
    profile: ChosenProfile,
    timeout_s: Annotated[
        float, typer.Option("--timeout", min=1, max=300, help="Seconds to wait for each server.")
    ] = 10,
    as_json: AsJson = False,
) -> None:
    """Check the profile: names, TCP, TLS, logins and rights of each server. Writes nothing.

    The exit code is that of the first failed check, as other verbs would end: 4, 5, 6, 12. Warnings end with 0.
    """
    with refusals():
        from kit.clients.connections import Check, check_connections

        def show(row: Check) -> None:
            tell(f"{row.state:<8}{row.component}, {row.tried}: {row.sentence}")

        rows = check_connections(profile.load(), timeout_s, (lambda _: None) if as_json else show)
        if as_json:
            print_json([asdict(row) for row in rows])
    code = next((row.exit_code for row in rows if row.exit_code), 0)
    if code:
        raise typer.Exit(code)
