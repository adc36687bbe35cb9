"""The wizard over :class:`widgets.offsets.model.OffsetMove`: copy, reset, import or delete committed offsets."""

from __future__ import annotations

from typing import Any

import ipywidgets as ipw

from kit.engine.model.plan import Plan
from kit.moves.offsets.plan import COPY, DELETE, IMPORT, RESET
from kit.tables.groups import KAFKA, ZOOKEEPER
from kit.text.quantity import quantity
from kit.text.visible import html_text
from widgets.offsets import html as offsets_html
from widgets.offsets.model import OffsetMove
from widgets.run import html
from widgets.run.view import LABELS, Wizard

STORES = [("ZooKeeper", ZOOKEEPER), ("Kafka", KAFKA)]
WRITES = (COPY, RESET, IMPORT)
WHATS = [("Copy", COPY), ("Reset", RESET), ("Import from a file", IMPORT), ("Delete", DELETE)]


class OffsetsWizard(Wizard):
    """For any groups, topics and partitions."""

    title = "Moving"
    subject = "the group or “N groups”"

    def own_sections(self) -> list[tuple[str, list[ipw.Widget]]]:
        return [("The committed offsets now", self._now()), ("What to do", self._request())]

    def changes(self, plan: Plan) -> str:
        return offsets_html.changes(plan)

    def _now(self) -> list[ipw.Widget]:
        fields = self._row(
            self.text("groups", "Groups"), self.text("topics", "Topics"), self.text("partitions", "Partitions")
        )
        return [
            fields,
            self.html(_by_frame, "selection"),
            self.button("look", "Read again", self.model.look_again, ""),
            self.html(lambda m: html.alert(m.watch_error or _not_watching(m)), *_LOOKED),
            self.html(lambda m: offsets_html.committed(m.committed), "committed"),
            self.html(_when, "committed"),
            self._export(),
        ]

    def _export(self) -> ipw.Widget:
        """A backup before a write; it makes no plan."""
        file = ipw.Text(description="Save to file", placeholder="offsets.jsonl or .csv", style=LABELS)
        store = ipw.Dropdown(options=STORES, value=self.model.target, description="Of store", style=LABELS)
        file.layout, store.layout = ipw.Layout(width="30rem"), ipw.Layout(width="21.5rem")
        save = self.button("export", "Save these offsets", lambda: self.model.export(file.value, store.value), "")
        return self._row(file, store, save)

    def _request(self) -> list[ipw.Widget]:
        what = self.linked(ipw.ToggleButtons(options=WHATS, description="What", style=LABELS), "what", "44rem")
        fields = self._row(
            self._only(self._store("source", "From store"), COPY),
            self._store("target", "To store"),
            self._only(self.text("to_group", "To group, if another"), COPY),
            self._only(self.text("to", "Reset to"), RESET),
            self._only(self.text("file", "File to import"), IMPORT),
            self._only(self._box("other_cluster", "The file may be another cluster's"), IMPORT),
            self._only(self._box("edited", "The file may have been edited"), IMPORT),
            self._only(self._box("allow_backwards", "Offsets may go backwards: records are read again"), *WRITES),
            self._only(self._box("skip_backwards", "Leave out offsets that would go backwards"), *WRITES),
            self._only(self._box("new_groups", "Write also for groups that neither store knows"), RESET, IMPORT),
            self._only(self._box("exclusive", "Join each group in Kafka while its offsets are written"), *WRITES),
            self.failing(),
            self.text("overrides", "Override rules"),
        )
        hint = ipw.HTML(
            '<p class="soft">earliest, latest, 42, +5, -5, -90m (s, m, h, d ago), or a time with its time zone</p>'
        )
        checks = self.html(lambda m: html.checks(m.checks), "checks")
        return [what, fields, self._only(hint, RESET), checks, self._make_plan()]

    def _make_plan(self) -> ipw.Button:
        return self.button("plan", "Make the plan", self.model.make_plan, "primary")

    def _row(self, *widgets: ipw.Widget) -> ipw.Box:
        return ipw.Box(widgets, layout=ipw.Layout(flex_flow="row wrap"))

    def _store(self, name: str, label: str) -> ipw.Widget:
        return self.linked(ipw.Dropdown(options=STORES, description=label, style=LABELS), name)

    def _box(self, name: str, label: str) -> ipw.Widget:
        return self.linked(ipw.Checkbox(description=label, indent=False), name, "30rem")

    def _only(self, widget: Any, *whats: str) -> Any:
        """Show the widget only while one of ``whats`` is chosen."""

        def show(change: Any = None) -> None:
            widget.layout.display = None if self.model.what in whats else "none"

        show()
        self.model.observe(show, ["what"])
        return widget


_LOOKED = ("watch_error", "is_watching", "committed")


def _by_frame(model: OffsetMove) -> str:
    chosen = model.selection
    if chosen is None:
        return ""
    rows = f"A cell selected {quantity(len(chosen.keys), 'row')} of {', '.join(chosen.columns)}."
    return f"<p>{html_text(rows)} To select by these fields, set <code>selection = None</code> in the cell.</p>"


def _when(model: OffsetMove) -> str:
    if model.is_small:
        return ""
    seen = model.committed.observed_at
    hint = f"So many offsets are read only on request. Read at {seen:%H:%M:%S} UTC; press “Read again” to refresh."
    return f'<p class="open">{hint}</p>'


def _not_watching(model: OffsetMove) -> str:
    seen = model.committed.observed_at
    if seen is None or model.is_watching:
        return ""
    return f"Not refreshed since {seen:%H:%M:%S} UTC: press “Read again”, or run the cell again."
