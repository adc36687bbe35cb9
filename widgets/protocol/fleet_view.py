"""The wizard over :class:`widgets.protocol.fleet.ProtocolFleet`: all groups by stage, moved in waves, and back."""

from __future__ import annotations

import ipywidgets as ipw

from kit.engine.model.plan import Plan
from kit.engine.model.record import RunRecord
from kit.moves.group.group_state import PROTOCOLS
from kit.protocol.facts import WAYS
from widgets.protocol import html as protocol_html
from widgets.protocol.view import READY
from widgets.run import html
from widgets.run.view import LABELS, Wizard


class ProtocolFleetWizard(Wizard):
    """For all groups, or for those that are named."""

    title = "Consumer protocol of"
    subject = "“N groups”"

    def own_sections(self) -> list[tuple[str, list[ipw.Widget]]]:
        return [("Stages of the groups", self._stages()), ("Which groups to move", self._request())]

    def changes(self, plan: Plan) -> str:
        return protocol_html.changes(plan)

    def progress(self, record: RunRecord | None) -> str:
        return protocol_html.progress(record)

    def _stages(self) -> list[ipw.Widget]:
        rows = self.html(protocol_html.groups, "seen", "how")
        listed = ipw.Accordion([rows], titles=("All groups, one by one",))
        listed.selected_index = None if len(self.model.seen.rows) > protocol_html.MOST_ROWS else 0
        return [
            self.html(lambda m: html.alert(m.watch_error), "watch_error"),
            self.html(protocol_html.totals, "seen", "how"),
            listed,
        ]

    def _request(self) -> list[ipw.Widget]:
        fields = ipw.Box(
            [
                self.linked(ipw.Dropdown(options=PROTOCOLS, description="To protocol", style=LABELS), "to_protocol"),
                self.linked(ipw.Dropdown(options=WAYS, description="Replace members", style=LABELS), "how"),
                self.text("pattern", "Group ids that match"),
                self.text("groups", "Only these groups"),
                self.linked(ipw.IntText(description="Groups at a time", style=LABELS), "wave"),
                self.linked(ipw.FloatText(description="Pause between, s", style=LABELS), "pause_s"),
                self.linked(ipw.FloatText(description="Watch new members, s", style=LABELS), "soak_s"),
                self.linked(ipw.IntText(description="Lag tolerance, records", style=LABELS), "lag_tolerance"),
                self.linked(ipw.Checkbox(description=READY, indent=False), "clients_ready", "44rem"),
                self.failing(),
                self.text("overrides", "Override rules"),
            ],
            layout=ipw.Layout(flex_flow="row wrap"),
        )
        return [fields, self.button("plan", "Make the plan", self.model.make_plan, "primary")]
