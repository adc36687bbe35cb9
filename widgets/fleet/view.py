"""The wizard over :class:`widgets.fleet.model.FleetToggle`: all groups at a glance, toggled in waves, and back."""

from __future__ import annotations

from typing import Any

import ipywidgets as ipw

from kit.engine.model.plan import Plan
from kit.engine.model.record import RunRecord
from kit.errors import InputError
from kit.groups.analyze.stages import STAGES
from kit.groups.read.whole_cluster import EVERY_GROUP
from kit.tables.groups import KAFKA, STORE_NAMES, ZOOKEEPER
from widgets.fleet import html as fleet_html
from widgets.fleet.model import FleetToggle
from widgets.run import html
from widgets.run.view import LABELS, Wizard


class FleetWizard(Wizard):
    """For all groups, or for those that are named."""

    title = "Toggle of"
    subject = "“N groups”"

    def own_sections(self) -> list[tuple[str, list[ipw.Widget]]]:
        return [("Stages of the groups", self._standing()), ("Which groups to toggle", self._request())]

    def own_ways_back(self) -> list[ipw.Widget]:
        back = self.button("all_back", "All back at once", self.model.plan_all_back, "warning")
        return [back, self.html(lambda m: fleet_html.all_back(m.rows), "seen")]

    def changes(self, plan: Plan) -> str:
        return fleet_html.changes(plan)

    def progress(self, record: RunRecord | None) -> str:
        return fleet_html.progress(record)

    def _standing(self) -> list[ipw.Widget]:
        return [
            self.html(lambda m: html.alert(m.watch_error or _not_watching(m)), "watch_error", "is_watching"),
            self.html(lambda m: fleet_html.where(m.seen, m.to), "seen"),
            *self._groups(),
        ]

    def _groups(self) -> list[ipw.Widget]:
        """Filters of the rows, for this view only."""
        stages = [("any", ""), *((stage, stage) for stage in STAGES)]
        stage = ipw.Dropdown(options=stages, value="", description="Show stage", style=LABELS)
        pattern = ipw.Text(EVERY_GROUP, description="Show groups", continuous_update=False, style=LABELS)
        only = ipw.Checkbox(description="Show only groups that are not ready", indent=False)

        def render(model: FleetToggle) -> str:
            return fleet_html.groups(model.rows, stage.value, pattern.value, only.value)

        shown = self.html(render, "seen")

        def again(change: Any) -> None:
            shown.value = render(self.model)

        for each in (stage, pattern, only):
            each.observe(again, "value")
        listed = ipw.Accordion([ipw.VBox([_row(stage, pattern, only), shown])], titles=("All groups, one by one",))
        listed.selected_index = None if len(self.model.rows) > fleet_html.MOST_ROWS else 0
        return [listed]

    def _request(self) -> list[ipw.Widget]:
        options = [(f"{STORE_NAMES[to]}'s", to) for to in (KAFKA, ZOOKEEPER)]
        to = self.linked(ipw.ToggleButtons(options=options, description="Assignment", style=LABELS), "to", "44rem")
        fields = _row(
            self.text("pattern", "Group ids that match"),
            self.text("groups", "Only these groups"),
            self._number(ipw.IntText, "wave", "Groups at a time"),
            self._number(ipw.FloatText, "pause_s", "Pause between, s"),
            self._number(ipw.FloatText, "min_stable_s", "Same members for, s"),
            self._number(ipw.IntText, "lag_tolerance", "Lag tolerance, records"),
            self._number(ipw.FloatText, "step_timeout_s", "A wave may take, s"),
            self.failing(),
            self.text("overrides", "Override rules"),
        )
        requested = self.html(_requested, "seen", "to", "pattern", "groups", "wave", "pause_s")
        return [to, fields, requested, self.button("plan", "Make the plan", self.model.make_plan, "primary")]

    def _number(self, kind: Any, name: str, label: str) -> ipw.Widget:
        return self.linked(kind(description=label, style=LABELS), name)


def _row(*widgets: ipw.Widget) -> ipw.Box:
    return ipw.Box(widgets, layout=ipw.Layout(flex_flow="row wrap"))


def _requested(model: FleetToggle) -> str:
    try:
        return fleet_html.requested(model.requested_rows(), model.to, model.wave, model.pause_s)
    except InputError as error:
        return html.alert(str(error))


def _not_watching(model: FleetToggle) -> str:
    if model.is_watching:
        return ""
    return f"Not refreshed since {model.seen.observed_at:%H:%M:%S} UTC: run the cell again to watch the groups."
