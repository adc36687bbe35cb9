"""A notebook whose cells run in this process: for tests of what it shows, which need no kernel and no papermill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from tests.notebooks import html_tables
from tests.notebooks.executed import NOTEBOOKS


def tables_of(name: str, **parameters: Any) -> list[list[html_tables.Row]]:
    """Run ``explore/group`` with parameters, and return the tables that its cells show. Raises what a cell raises."""
    shell = InteractiveShell.instance()
    shell.reset(new_session=True)
    notebook = nbformat.read(Path(NOTEBOOKS, f"{name}.ipynb"), as_version=4)
    found: list[list[html_tables.Row]] = []
    for number, cell in enumerate(each for each in notebook.cells if each.cell_type == "code"):
        with capture_output() as shown:
            done = shell.run_cell(cell.source)
            done.raise_error()
            result = {} if done.result is None else shell.display_formatter.format(done.result)[0]
        for data in (*(each.data for each in shown.outputs), result):
            found += html_tables.of_html(data.get("text/html", ""))
        if number == 0:
            shell.user_ns.update(parameters)
    return found
