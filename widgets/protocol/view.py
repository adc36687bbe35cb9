"""The wizard over :class:`widgets.protocol.model.ProtocolMove`: to the consumer protocol, or back."""

from __future__ import annotations

import ipywidgets as ipw

from kit.moves.group.group_state import CLASSIC, CONSUMER, PROTOCOLS
from kit.protocol.facts import WAYS
from kit.protocol.stage import Stage
from kit.text.visible import html_text
from widgets.protocol.model import ProtocolMove
from widgets.run import html
from widgets.run.view import LABELS, Wizard

READY = "Every client supports the consumer protocol, and the settings that it refuses are removed"
STAGES = (Stage.CLASSIC, Stage.CANARY, Stage.MIXED, Stage.CONSUMER)


class ProtocolWizard(Wizard):
    """From either protocol to the other one."""

    title = "Consumer protocol of"
    subject = "the group's name"

    def own_sections(self) -> list[tuple[str, list[ipw.Widget]]]:
        return [("Stage and members", self._group()), ("Requested protocol", self._request())]

    def own_ways_back(self) -> list[ipw.Widget]:
        return [self.button("rollback", "Plan the rollback", self.model.plan_rollback, "warning")]

    def _group(self) -> list[ipw.Widget]:
        return [
            self.html(_stages, "group_state", "to_protocol"),
            self.html(lambda m: html.alert(m.watch_error), "watch_error"),
            self.html(lambda m: html.members(m.group_state, has_toggle=False), "group_state"),
        ]

    def _request(self) -> list[ipw.Widget]:
        fields = ipw.Box(
            [
                self.linked(ipw.Dropdown(options=PROTOCOLS, description="To protocol", style=LABELS), "to_protocol"),
                self.linked(ipw.Dropdown(options=WAYS, description="Replace members", style=LABELS), "how"),
                self._canary(),
                self.linked(ipw.FloatText(description="Watch new members, s", style=LABELS), "soak_s"),
                self.linked(ipw.IntText(description="Lag tolerance, records", style=LABELS), "lag_tolerance"),
                self.linked(ipw.Checkbox(description=READY, indent=False), "clients_ready", "44rem"),
                self.failing(),
                self.text("overrides", "Override rules"),
            ],
            layout=ipw.Layout(flex_flow="row wrap"),
        )
        checks = self.html(lambda m: html.checks(m.checks), "checks")
        return [fields, checks, self.button("plan", "Make the plan", self.model.make_plan, "primary")]

    def _canary(self) -> ipw.Widget:
        """Shown only if the requested plan has a canary."""
        field = self.linked(ipw.IntText(description="Canary members", style=LABELS), "canary")

        def show(change: object = None) -> None:
            field.layout.display = "none" if self.model.planned_canary is None else None

        show()
        self.model.observe(show, ["group_state", "to_protocol", "how"])
        return field


def _stages(model: ProtocolMove) -> str:
    """The stages as a row of boxes, the epochs and the assignor, and the next action."""
    at = model.group_state.protocol
    boxes = html.way(STAGES, model.stage, model.to_protocol, "the group is here")
    off = "" if model.stage in STAGES else f'<p class="bad">✗ The stage of the group is {html_text(model.stage)}.</p>'
    counts = f"{model.group_state.count(CLASSIC)} classic, {model.group_state.count(CONSUMER)} consumer"
    epochs = "" if at.epoch is None else f" Group epoch {at.epoch}, assignment epoch {at.assignment_epoch}."
    facts = f"Members by protocol: {counts}. Assignor: {html_text(at.assignor or 'none')}.{epochs}"
    return f"{boxes}{off}<p>{facts}</p><p>Next: {html_text(model.advice)}</p>"
