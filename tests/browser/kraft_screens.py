"""The notebooks beside the wizard of a move to KRaft, opened and run in a browser: what a person sees in a phase."""

from __future__ import annotations

import re
from dataclasses import dataclass

from playwright.sync_api import expect

from tests.browser.jupyter import Jupyter
from tests.browser.notebook_page import RUN_MS, NotebookPage, is_drawn
from tests.browser.offline import Tab
from tests.notebooks import html_tables
from tests.notebooks.executed import fill_in

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
RAW_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
TOO_WIDE = """panel => [...panel.querySelectorAll('.jp-OutputArea-output')]
    .filter(output => output.scrollWidth > output.clientWidth + 1).map(output => output.innerText.slice(0, 200))"""


@dataclass(frozen=True)
class NotebookScreen:
    """``outputs``: the text of each; ``error``: of the cell that failed, empty where none did."""

    outputs: list[str]
    tables: list[list[html_tables.Row]]
    n_charts: int
    error: str

    @property
    def told(self) -> str:
        return "\n".join(self.outputs)


def look(jupyter: Jupyter, tab: Tab, source: str, name: str, **parameters: object) -> NotebookScreen:
    """Run a notebook to its end, in a page of its own, and keep a picture of it in each theme.

    Charts must be drawn, no output may be wider than its cell, and no time may be reported as a program writes it.
    """
    target = jupyter.notebooks / f"{name}.ipynb"
    fill_in(source, target, **parameters)
    page = tab.page.context.new_page()
    try:
        notebook = NotebookPage(page)
        notebook.open(jupyter.address(target.name))
        notebook.start_all()
        run = notebook.panel.locator(".jp-CodeCell").last.locator(".jp-InputPrompt").filter(has_text=re.compile(r"\d"))
        expect(run.or_(notebook.errors).first).to_be_attached(timeout=RUN_MS)
        for theme, named in THEMES.items():
            notebook.use_theme(named, theme == "light")
            notebook.screenshot(f"{name}-{theme}")
        assert notebook.panel.evaluate(TOO_WIDE) == []
        charts = notebook.charts.all()
        assert all(map(is_drawn, charts))
        outputs = notebook.outputs.all_inner_texts()
        assert [each for each in outputs if RAW_TIME.search(each)] == []
        return NotebookScreen(outputs, notebook.tables(), len(charts), "\n".join(notebook.errors.all_inner_texts()))
    finally:
        page.close()
