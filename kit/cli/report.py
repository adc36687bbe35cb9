"""``offramp report``: the report notebook over all groups."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kit.errors import PartialRead
from kit.terminal.options import ChosenProfile, with_options
from kit.terminal.progress import waiting
from kit.terminal.terminal import Pattern, refusals, say, tell
from kit.text.quantity import quantity

app = typer.Typer(rich_markup_mode=None)


@app.command()
@with_options
def report(
    profile: ChosenProfile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the notebook and the HTML.")] = Path(
        "runs"
    ),
    pattern: Pattern = ".*",
    history: Annotated[str, typer.Option("--history", help="Folder of the history [<output>/history].")] = "",
    keep: Annotated[
        int | None,
        typer.Option("--keep", help="Number of reports of this cluster to keep; older ones are deleted [all]."),
    ] = None,
) -> None:
    """Run the report notebook over all groups: an executed notebook and one HTML that opens without a network.

    The newest page is also <output>/report-<cluster>.html.
    """
    from kit.groups.report import run_report

    with refusals():
        chosen = profile.load()
        with waiting(f"the report on {chosen.name} is being made"):
            made = run_report(chosen, output, pattern, history, say, keep)
        tell(f"notebook  {made.notebook}", f"report    {made.html}", f"newest    {made.latest}")
        if made.outcome["read_errors"]:
            raise PartialRead(f"{quantity(made.outcome['read_errors'], 'thing')} could not be read: see the report")
