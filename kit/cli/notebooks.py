"""``offramp notebooks``: this release's notebooks, copied out to run and to edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kit.presentation.notebook_files import Copied, copy_notebooks
from kit.terminal.terminal import refusals, say, tell

app = typer.Typer(rich_markup_mode=None)


@app.command()
def notebooks(
    folder: Annotated[Path, typer.Argument(help="Target folder; it is created if it does not exist.")],
    force: Annotated[bool, typer.Option("--force", help="Replace notebooks that differ from this release's.")] = False,
) -> None:
    """Copy this release's notebooks to a folder, to run and to edit them.

    Call it again after an upgrade: it adds the new ones and says which differ. An edited one is never replaced without
    --force.
    """
    with refusals():
        copies = copy_notebooks(folder, force)
        tell(*(f"{each.copied:8}  {folder / each.name}" for each in copies))
        differing = sum(each.copied is Copied.DIFFERS for each in copies)
        if differing:
            say(
                f"{differing} differ from this release's and were kept. To compare: copy this release's to another "
                "folder. To replace them and lose your edits, add --force"
            )
        say(f"open them: jupyter lab {folder}")
