"""The monitor: a page of groups, the partitions of the one whose name was clicked, and what each observation costs."""

from __future__ import annotations

import threading
from typing import Any

import ipywidgets as ipw
import traitlets as t

from kit.text.visible import cell, html_text
from widgets.live import html
from widgets.live.model import ROWS, Monitor
from widgets.run.html import alert
from widgets.run.style import STYLE

STYLE_OF_MONITOR = """<style>
.offramp-monitor { max-width: 90rem; }
.offramp-monitor .offramp-names .widget-button { height: 28px; margin: 2px 0; width: 100%; text-align: left;
  padding: 0 .6em; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.offramp-monitor .offramp-names { flex: 0 0 13rem; width: 13rem; min-width: 0; margin-right: .7rem; }
.offramp-monitor .offramp-rows { flex: 1 1 0; min-width: 0; overflow-x: auto; }
.offramp-monitor td span { white-space: nowrap; }
.offramp-monitor .offramp-page { align-items: flex-start; }
.offramp-monitor .offramp-page table { margin: 0; border-collapse: separate; border-spacing: 0; }
.offramp-monitor .offramp-page .widget-html { margin: 0; }
.offramp-monitor .offramp-page td, .offramp-monitor .offramp-page th { padding: 0 .7em 0 0; white-space: nowrap;
  vertical-align: middle; height: 32px; line-height: 24px; box-sizing: border-box; }
.offramp-monitor .offramp-head { font-weight: 600; height: 32px; line-height: 32px; }
.offramp-monitor .offramp-controls { flex-flow: row wrap; align-items: center; }
.offramp-monitor svg circle { fill: var(--jp-brand-color1, #1976d2); }
</style>"""


class MonitorView(ipw.VBox):
    """Shows ``model`` and starts its watch; ``model.close()`` ends it."""

    def __init__(self, model: Monitor) -> None:
        self.model, self._drawing = model, threading.RLock()
        self._summary, self._error, self._count = ipw.HTML(), ipw.HTML(), ipw.HTML()
        self._rows, self._opened = ipw.HTML(), ipw.HTML()
        self._names = [ipw.Button() for _ in range(ROWS)]
        for button in self._names:
            button.on_click(self._open)
        self._shown: list[str] = []
        self._close = ipw.Button(
            description="Close this group", layout=ipw.Layout(width="auto", align_self="flex-start")
        )
        self._close.on_click(lambda _: model.set_trait("group_id", None))
        title = ipw.HTML(f"<h2>Groups of {html_text(model.cluster)}</h2>")
        super().__init__(
            [ipw.HTML(STYLE + STYLE_OF_MONITOR), title, self._error, self._summary, self._controls(), self._page(),
             self._opened, self._close]
        )  # fmt: skip
        self.add_class("offramp")
        self.add_class("offramp-monitor")
        self._draw()
        model.observe(self._draw, ["version", "search", "page", "error"])
        model.observe(self._draw_opened, ["group_id"])
        model.start_watching()

    def _controls(self) -> ipw.Box:
        search = ipw.Text(description="Search", placeholder="part of a group name", continuous_update=True)
        t.link((self.model, "search"), (search, "value"))
        pause = ipw.ToggleButton(
            description="Pause", layout=ipw.Layout(width="auto"), tooltip="Stop polling the cluster until you resume"
        )
        t.link((self.model, "is_paused"), (pause, "value"))
        pause.observe(lambda change: pause.set_trait("description", "Paused" if change["new"] else "Pause"), "value")
        turns = []
        for by, words in ((-1, "Page before"), (1, "Next page")):
            button = ipw.Button(description=words, layout=ipw.Layout(width="auto"))
            button.on_click(lambda _, by=by: self.model.turn(by))
            turns.append(button)
        box = ipw.Box([search, pause, *turns, self._count])
        box.add_class("offramp-controls")
        return box

    def _page(self) -> ipw.Box:
        head = ipw.HTML('<div class="offramp-head">group</div>')
        names = ipw.VBox([head, *self._names])
        names.add_class("offramp-names")
        rows = ipw.Box([self._rows])
        rows.add_class("offramp-rows")
        page = ipw.HBox([names, rows])
        page.add_class("offramp-page")
        return page

    def _draw(self, change: Any = None) -> None:
        """Draw what changed: the rest is not sent."""
        with self._drawing:
            model = self.model
            rows, first, n_matching = model.shown()
            self._shown = rows["group_id"].to_list()
            self._error.value = alert(model.error)
            self._summary.value = html.summary(model.risks, model.last.at, model.cost)
            self._count.value = html.count(first, len(rows), n_matching, len(model.groups))
            self._rows.value = html.groups(rows)
            for at, button in enumerate(self._names):
                button.layout.display = "" if at < len(self._shown) else "none"
                if at < len(self._shown):
                    button.description = button.tooltip = cell(self._shown[at]) or "(no name)"
            self._draw_opened()

    def _draw_opened(self, change: Any = None) -> None:
        with self._drawing:
            group_id = self.model.group_id
            self._close.layout.display = "none" if group_id is None else ""
            self._opened.value = "" if group_id is None else html.partitions(group_id, *self.model.partitions())

    def _open(self, button: ipw.Button) -> None:
        with self._drawing:
            at = self._names.index(button)
            if at < len(self._shown):
                self.model.group_id = self._shown[at]
