"""The wizards over :class:`widgets.group.model.GroupMigration`: along the path, the toggle, the rollback."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import ipywidgets as ipw

from kit.errors import OfframpError
from kit.moves.group.plan import PATH
from kit.tables.groups import KAFKA, STORE_NAMES, ZOOKEEPER
from widgets.group.model import GroupMigration
from widgets.run import html
from widgets.run.view import LABELS, Wizard

TOGGLED = {"all MEZKCC": ZOOKEEPER, "Kafka coordination": KAFKA}
"""The two stages that differ only in the toggle, and the toggle's value in each."""

PLAIN: Mapping[str, str] = {}


class GroupWizard(Wizard):
    """From any stage to any other stage."""

    title = "Migration of"
    subject = "the group's name"

    def own_sections(self) -> list[tuple[str, list[ipw.Widget]]]:
        return [("Stage of the group", self._standing()), ("Where the group goes", self._request())]

    def own_ways_back(self) -> list[ipw.Widget]:
        back = self.button("rollback", "Plan the rollback", self.model.plan_rollback, "warning")
        return [back, self.html(lambda m: html.stage_before(m.stage_before), "group_state")]

    def _standing(self) -> list[ipw.Widget]:
        return [
            self.html(lambda m: html.stages(m.group_state.stage, m.to_stage, m.advice), "group_state", "to_stage"),
            self.html(lambda m: html.alert(m.watch_error or _not_watching(m)), "watch_error", "is_watching"),
            self.html(_members_and_lag, "lags"),
        ]

    def _request(self) -> list[ipw.Widget]:
        fields = ipw.Box([*self._where(), *self._numbers(), self.failing(), self.text("overrides", "Override rules")])
        fields.layout = ipw.Layout(flex_flow="row wrap")
        checks = self.html(lambda m: html.checks(m.checks), "checks")
        return [fields, checks, self.button("plan", "Make the plan", self.model.make_plan, "primary")]

    def _where(self) -> list[ipw.Widget]:
        return [self.linked(ipw.Dropdown(options=PATH, description="To stage", style=LABELS), "to_stage")]

    def _choice(self, widget: Any, stages: Callable[[str], list[str]], names: Mapping[str, str] = PLAIN) -> Any:
        """A choice of ``stages`` (a function of the group's stage) and, if another one is requested, of that."""
        model = self.model

        def show(change: Any = None) -> None:
            offered = stages(model.group_state.stage)
            options = [*offered, *({model.to_stage} - set(offered))]
            wanted = [(names.get(stage, stage), stage) for stage in options]
            if (tuple(wanted), model.to_stage) != (tuple(widget.options), widget.value):
                widget.unobserve(choose, "value")  # New options set a value for a moment.
                widget.options, widget.value = wanted, model.to_stage
                widget.observe(choose, "value")

        def choose(change: Any) -> None:
            model.to_stage = change["new"]

        model.to_stage = model.propose()
        widget.observe(choose, "value")
        show()
        model.observe(show, ["to_stage", "group_state"])
        return widget

    def _numbers(self) -> list[ipw.Widget]:
        return [
            self.linked(ipw.IntText(description="Canary members", style=LABELS), "canary"),
            self.linked(ipw.FloatText(description="Watch the canary, s", style=LABELS), "soak_s"),
            self.linked(ipw.FloatText(description="Same members for, s", style=LABELS), "min_stable_s"),
            self.linked(ipw.IntText(description="Lag tolerance, records", style=LABELS), "lag_tolerance"),
        ]


class ToggleWizard(GroupWizard):
    """Between ZooKeeper's and Kafka's coordination, for a group whose members are all migration-enabled."""

    title = "Toggle of"

    def _where(self) -> list[ipw.Widget]:
        self.model.propose = lambda: next(stage for stage in TOGGLED if stage != self.model.group_state.stage)
        names = {stage: f"{STORE_NAMES[mode]}'s" for stage, mode in TOGGLED.items()}
        toggle = ipw.ToggleButtons(description="Coordination", style=LABELS)
        now = self.html(lambda m: f"<p>{html.toggle(m.group_state)}</p>", "group_state")
        now.layout = ipw.Layout(width="100%")
        return [now, self._choice(toggle, lambda stage: list(TOGGLED), names)]

    def _numbers(self) -> list[ipw.Widget]:
        return [self.linked(ipw.FloatText(description="Same members for, s", style=LABELS), "min_stable_s")]


class RollbackWizard(GroupWizard):
    """The two ways to undo: undo a run of your choice, or plan the way to an earlier stage."""

    title = "Rollback of"

    def _where(self) -> list[ipw.Widget]:
        chosen = ipw.Dropdown(options=self._runs(), description="Run to undo", style=LABELS)
        chosen.layout = ipw.Layout(width="44rem")

        def choose(change: Any) -> None:
            if change["new"]:
                with suppress(OfframpError):  # The model shows the error.
                    self.model.show_run(change["new"])

        def show(change: Any = None) -> None:
            chosen.options = self._runs()

        chosen.observe(choose, "value")
        self.model.observe(show, ["direction"])
        self.model.propose = lambda: self.model.stage_before or PATH[0]
        return [chosen, self._choice(ipw.Dropdown(description="To stage", style=LABELS), _earlier)]

    def _runs(self) -> list[tuple[str, str]]:
        rows = [(f"{row.run_id} · {row.state}", row.run_id) for row in reversed(self.model.own_runs())]
        return [("the newest run" if rows else "there is no run", ""), *rows]


def _earlier(stage: str) -> list[str]:
    return list(PATH[: PATH.index(stage)]) if stage in PATH else list(PATH)


def _not_watching(model: GroupMigration) -> str:
    if model.is_watching:
        return ""
    return f"Not refreshed since {model.group_state.observed_at:%H:%M:%S} UTC: run the cell again to watch the group."


def _members_and_lag(model: GroupMigration) -> str:
    left, right = html.members(model.group_state), html.lag_chart(model.lags)
    return f'<div class="side"><div>{left}</div><div>{right}</div></div>'
