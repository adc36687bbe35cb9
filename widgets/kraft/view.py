"""The wizard over :class:`widgets.kraft.model.KraftMove`: one phase per plan, or the rollback."""

from __future__ import annotations

from typing import Any

import ipywidgets as ipw
import traitlets as t

from kit.engine.model.record import RunRecord
from widgets.kraft import html as kraft_html
from widgets.run import html
from widgets.run.view import LABELS, Wizard

STANDING = ("status", "to_phase", "record", "direction")


class KraftWizard(Wizard):
    """From any phase to the next one, or back."""

    title = "Moving to KRaft or back:"
    subject = "the plan's phrase"

    def own_sections(self) -> list[tuple[str, list[ipw.Widget]]]:
        return [("Phase of the cluster", self._standing()), ("Next phase", self._request())]

    def own_ways_back(self) -> list[ipw.Widget]:
        return [self.button("rollback", "Plan the rollback", self.model.plan_rollback, "warning")]

    def progress(self, record: RunRecord | None) -> str:
        return html.progress(record) + kraft_html.orders(record)

    def _standing(self) -> list[ipw.Widget]:
        return [
            self.html(lambda m: html.alert(m.watch_error), "watch_error"),
            self.html(lambda m: kraft_html.standing(m.status, m.to_phase, m.advice), *STANDING),
        ]

    def _request(self) -> list[ipw.Widget]:
        fields = ipw.Box(
            [
                self._goals(),
                self.linked(ipw.FloatText(description="Each node may take, s", style=LABELS), "node_timeout_s"),
                self.text("overrides", "Override gates"),
            ],
            layout=ipw.Layout(flex_flow="row wrap"),
        )
        gates = self.html(lambda m: kraft_html.overridable(m.to_phase, m.overridden), "to_phase", "overrides")
        return [fields, gates, self.button("plan", "Make the plan", self.model.make_plan, "primary")]

    def _goals(self) -> ipw.Dropdown:
        """Show the goals that can be requested now. A list with other options chooses its first one: the model must
        not see that.
        """
        dropdown = ipw.Dropdown(description="To phase", style=LABELS, layout=ipw.Layout(width="21.5rem"))
        link: t.link | None = None

        def offer(change: Any = None) -> None:
            nonlocal link
            if tuple(dropdown.options) != self.model.goals:
                if link is not None:
                    link.unlink()
                dropdown.options = self.model.goals
                link = t.link((self.model, "to_phase"), (dropdown, "value"))

        self.model.observe(
            offer, ["status", "to_phase"]
        )  # Before the link's own observation: it finds the option there.
        offer()
        return dropdown
