"""A notebook in JupyterLab, used as a person does: opened, run from the menu, looked at."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import SCREENSHOTS
from tests.notebooks import html_tables

READY_MS = 90_000
RUN_MS = 200_000
WIDTH, LONGEST = 1440, 14_000


class NotebookPage:
    """The only notebook of a page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.panel = page.locator(".jp-NotebookPanel")
        outputs = self.panel.locator(".jp-OutputArea-output")
        self.errors = self.panel.locator('[data-mime-type="application/vnd.jupyter.error"]')
        self.warnings = self.panel.locator('[data-mime-type="application/vnd.jupyter.stderr"]')
        self.charts = self.panel.locator(".jp-RenderedSVG")
        self.outputs = outputs

    def open(self, address: str) -> None:
        """Open it and wait until its kernel is idle."""
        self.page.goto(address, wait_until="commit")
        expect(self.panel.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]')).to_be_visible(
            timeout=READY_MS
        )

    def run_all(self, last: str) -> None:
        """Run all cells; wait until an output has the text ``last``, or any cell failed."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        finished = self.outputs.filter(has_text=last)
        expect(finished.or_(self.errors).first).to_be_attached(timeout=RUN_MS)
        assert self.errors.all_inner_texts() == []
        expect(finished).to_have_count(1)

    def whole(self) -> None:
        """Make the window as high as the notebook, so that every cell is drawn."""
        self.page.set_viewport_size({"width": WIDTH, "height": LONGEST})
        end = self.panel.locator(".jp-Cell").last
        expect(end).to_be_visible()
        box = end.bounding_box()
        assert box is not None
        self.page.set_viewport_size({"width": WIDTH, "height": min(LONGEST, int(box["y"] + box["height"]) + 60)})

    def tables(self) -> list[list[html_tables.Row]]:
        return [table for html in self._html() for table in html_tables.of_html(html)]

    def _html(self) -> list[str]:
        shown = self.panel.locator(".jp-RenderedHTML")
        return [shown.nth(number).inner_html() for number in range(shown.count())]

    def use_theme(self, theme: str, is_light: bool) -> None:
        self.page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
        expect(self.page.locator(f'body[data-jp-theme-light="{str(is_light).lower()}"]')).to_be_attached()

    def screenshot(self, name: str) -> None:
        picture(self.page, name)


def picture(page: Page, name: str) -> None:
    """Keep a picture of the whole page for people to look at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def is_drawn(chart: Locator) -> bool:
    """Whether something of a chart's size is to be seen."""
    box = chart.bounding_box()
    return chart.is_visible() and box is not None and box["width"] > 150 and box["height"] > 50
