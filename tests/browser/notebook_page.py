"""A notebook in JupyterLab, used as a person does: opened, run from the menu, examined."""

from __future__ import annotations

import re
from contextlib import suppress

from playwright.sync_api import Locator, Page, expect

from tests.browser.offline import SCREENSHOTS
from tests.notebooks import html_tables

READY_MS = 180_000
BEGIN_MS, TRIES = 45_000, 3
BEGUN = re.compile(r"\[(\*|\d+)\]")
RUN_MS = 300_000
WIDTH, LONGEST = 1440, 9_000
# Running leaves the last cell at the window's upper end: one may scroll past the end of a notebook. JupyterLab adds
# cells to the page as they come into view, and fills an output after it has added it.
END_WHEN_ALL_IN_VIEW = """() => {
    document.querySelector('.jp-NotebookPanel .jp-WindowedPanel-outer').scrollTop = 0;
    const found = [...document.querySelectorAll('.jp-NotebookPanel .jp-Cell')];
    const filled = [...document.querySelectorAll('.jp-NotebookPanel :is(.jp-RenderedHTML, .jp-RenderedSVG)')]
        .every(output => output.childElementCount && [...output.querySelectorAll('img')].every(each => each.complete));
    const cells = found.map(cell => cell.getBoundingClientRect());
    const panel = document.querySelector('.jp-NotebookPanel-notebook').getBoundingClientRect();
    const all = filled && found.length === window.jupyterapp.shell.currentWidget.content.widgets.length;
    const inView = all && cells[0].top >= panel.top && cells.at(-1).bottom <= panel.bottom;
    return inView && cells.every(cell => cell.height > 0) && cells.at(-1).bottom;
}"""
EXECUTE = """async code => {
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    const reply = await kernel.requestExecute({code, silent: true}).done;
    return reply.content.status;
}"""
ALIGNMENTS = """(panel, column) => [...panel.querySelectorAll('table')].flatMap(table => {
    const name = head => head.querySelector('[title]')?.title ?? head.textContent.trim();
    const at = [...table.querySelectorAll('thead th')].findIndex(head => name(head) === column);
    return [...table.querySelectorAll('tbody tr')].filter(() => at >= 0)
        .map(row => getComputedStyle(row.children[at]).textAlign);
})"""


class NotebookPage:
    """The only notebook of a page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.panel = page.locator(".jp-NotebookPanel")
        self.outputs = self.panel.locator(".jp-OutputArea-output")
        # JupyterLab draws a traceback as it does whatever goes to standard error: red, and seen. The text comes after
        # the element.
        errors = self.panel.locator('[data-mime-type="application/vnd.jupyter.stderr"]')
        self.errors = errors.filter(has_text=re.compile(r"\S"))
        self.charts = self.panel.locator(".jp-RenderedSVG")

    def open(self, address: str) -> None:
        """Open it and wait until its kernel is idle, and until JupyterLab has opened it again without the reset."""
        self.page.goto(address, wait_until="commit")
        expect(self.page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible(timeout=READY_MS)
        self.page.wait_for_url(lambda url: "reset" not in url, wait_until="commit")
        self.page.wait_for_function("() => window.jupyterapp.restored.then(() => true)")

    def execute(self, code: str) -> None:
        """Run code in the notebook's kernel, beside its cells, and wait for its end."""
        assert self.page.evaluate(EXECUTE, code) == "ok", code

    def start_all(self) -> None:
        """Run all cells, and wait for none; a page that is still being restored forgets what was asked of it."""
        begun = self.panel.locator(".jp-InputPrompt").filter(has_text=BEGUN)
        for _ in range(TRIES):
            self.page.get_by_role("menuitem", name="Run", exact=True).click()
            self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
            with suppress(AssertionError):
                expect(begun.first).to_be_attached(timeout=BEGIN_MS)
                return
        raise AssertionError("no cell was begun")

    def run_all(self, last: str) -> None:
        """Run all cells; wait until an output has the text ``last``, or any cell failed."""
        self.start_all()
        finished = self.outputs.filter(has_text=last)
        # Dialogs (of a kernel that died, say) end the wait too.
        ended = finished.or_(self.errors).or_(self.page.get_by_role("dialog"))
        expect(ended.first).to_be_attached(timeout=RUN_MS)
        # A cell scrolled out of view has an empty inner text.
        shown = [*self.errors.all_text_contents(), *self.page.get_by_role("dialog").all_inner_texts()]
        assert shown == [], "\n".join(shown)
        expect(finished).to_have_count(1)

    def whole(self) -> float:
        """Make the window higher than the notebook, so that every cell is drawn; where the last one ends, in pixels."""
        self.page.set_viewport_size({"width": WIDTH, "height": LONGEST})
        return self.page.wait_for_function(END_WHEN_ALL_IN_VIEW).json_value()

    def tables(self) -> list[list[html_tables.Row]]:
        return [table for html in self._html() for table in html_tables.of_html(html)]

    def _html(self) -> list[str]:
        shown = self.panel.locator(".jp-RenderedHTML")
        return [shown.nth(number).inner_html() for number in range(shown.count())]

    def alignment_of(self, column: str) -> set[str]:
        """Return how the cells of every column of that name are aligned."""
        return set(self.panel.evaluate(ALIGNMENTS, column))

    def use_theme(self, theme: str, is_light: bool) -> None:
        self.page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
        body = self.page.locator(f'body[data-jp-theme-light="{str(is_light).lower()}"]')
        expect(body).to_be_attached(timeout=READY_MS)  # Its style sheets come from the server.
        expect(self.page.locator("#jupyterlab-splash")).to_have_count(
            0, timeout=READY_MS
        )  # It dims the page meanwhile.

    def screenshots(self, name: str) -> None:
        """A picture in each theme."""
        for theme in ("Dark", "Light"):  # The server keeps the last for who comes next.
            self.use_theme(f"JupyterLab {theme}", theme == "Light")
            self.screenshot(f"{name}-{theme.lower()}")

    def screenshot(self, name: str) -> None:
        """A picture that ends with the last cell."""
        picture(self.page, name, int(self.whole()) + 40)  # a theme that comes makes Jupyter draw all cells again


def picture(page: Page, name: str, height: int | None = None) -> None:
    """Keep a picture, of the whole page or of its upper part, for people to examine."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    path = SCREENSHOTS / f"{name}.png"
    if height is None:
        page.screenshot(path=path, full_page=True)
    else:
        page.screenshot(path=path, clip={"x": 0, "y": 0, "width": WIDTH, "height": height})


def is_drawn(chart: Locator) -> bool:
    """Return whether something of a chart's size is to be seen."""
    box = chart.bounding_box()
    return chart.is_visible() and box is not None and box["width"] > 150 and box["height"] > 50
