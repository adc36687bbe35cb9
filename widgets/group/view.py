"""The wizards over :class:`widgets.group.model.GroupMigration`: along the path, the toggle, the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import ipywidgets as ipw

from kit.errors import OfframpError
from kit.migrate.group.plan import PATH
from kit.migrate.group.toggle import NAMES
from kit.tables.groups import KAFKA, ZOOKEEPER
from kit.text.visible import html_text
from widgets.group.model import GroupMigration
from widgets.run import html as fragments
from widgets.run.view import LABELS, Wizard

TOGGLED = {"all MEZKCC": ZOOKEEPER, "Kafka coordination": KAFKA}
"""The two stages between which there is nothing but the toggle, and what it says there."""

PLAIN: Mapping[str, str] = {}


class GroupWizard(Wizard):
    """From any stage to any other."""

    title = "Migration of"
    subject = "the group's name"

    def own_sections(self) -> list[tuple[str, list[ipw.Widget]]]:
        return [("Where the group stands", self._standing()), ("Where it is to go", self._wish())]

    def own_ways_back(self) -> list[ipw.Widget]:
        back = self.button("rollback", "Plan the way back", self.model.plan_rollback, "warning")
        return [back, self.html(lambda m: fragments.stage_before(m.stage_before), "standing")]

    def _standing(self) -> list[ipw.Widget]:
        return [
            self.html(lambda m: fragments.stages(m.standing.stage, m.to_stage, m.advice), "standing", "to_stage"),
            self.html(lambda m: fragments.alert(m.watch_error or _not_watching(m)), "watch_error", "is_watching"),
            self.html(_members_and_lag, "lags"),
        ]

    def _wish(self) -> list[ipw.Widget]:
        fields = ipw.Box([*self._where(), *self._numbers(), self.failing(), self.text("overrides", "Override rules")])
        fields.layout = ipw.Layout(flex_flow="row wrap")
        checks = self.html(lambda m: fragments.checks(m.checks), "checks")
        return [fields, checks, self.button("plan", "Make the plan", self.model.make_plan, "primary")]

    def _where(self) -> list[ipw.Widget]:
        return [self.linked(ipw.Dropdown(options=PATH, description="To stage", style=LABELS), "to_stage")]

    def _choice(self, widget: Any, stages: Callable[[str], list[str]], names: Mapping[str, str] = PLAIN) -> Any:
        """A choice of ``stages`` (of where the group stands), and of what is wished if that is none of them."""
        model = self.model

        def show(change: Any = None) -> None:
            offered = stages(model.standing.stage)
            options = [*offered, *({model.to_stage} - set(offered))]
            wanted = [(names.get(stage, stage), stage) for stage in options]
            if (tuple(wanted), model.to_stage) != (tuple(widget.options), widget.value):
                widget.unobserve(choose, "value")  # New options have a value of their own for a moment.
                widget.options, widget.value = wanted, model.to_stage
                widget.observe(choose, "value")

        def choose(change: Any) -> None:
            model.to_stage = change["new"]

        model.to_stage = model.propose()
        widget.observe(choose, "value")
        show()
        model.observe(show, ["to_stage", "standing"])
        return widget

    def _numbers(self) -> list[ipw.Widget]:
        return [
            self.linked(ipw.IntText(description="Canary members", style=LABELS), "canary"),
            self.linked(ipw.FloatText(description="Watch the canary, s", style=LABELS), "soak_s"),
            self.linked(ipw.FloatText(description="Same members for, s", style=LABELS), "min_stable_s"),
            self.linked(ipw.IntText(description="Lag tolerance, records", style=LABELS), "lag_tolerance"),
        ]


class ToggleWizard(GroupWizard):
    """Between ZooKeeper's and Kafka's coordination, of a group that is wholly migration-enabled."""

    title = "Toggle of"

    def _where(self) -> list[ipw.Widget]:
        self.model.propose = lambda: next(stage for stage in TOGGLED if stage != self.model.standing.stage)
        names = {stage: f"{NAMES[mode]}'s" for stage, mode in TOGGLED.items()}
        toggle = ipw.ToggleButtons(description="Coordination", style=LABELS)
        said = self.html(_toggle, "standing")
        said.layout = ipw.Layout(width="100%")
        return [said, self._choice(toggle, lambda stage: list(TOGGLED), names)]

    def _numbers(self) -> list[ipw.Widget]:
        return [self.linked(ipw.FloatText(description="Same members for, s", style=LABELS), "min_stable_s")]


class RollbackWizard(GroupWizard):
    """The ways back: undo of a run, whichever is chosen, or a plan that leads to an earlier stage."""

    title = "The way back of"

    def _where(self) -> list[ipw.Widget]:
        chosen = ipw.Dropdown(options=self._runs(), description="Run to undo", style=LABELS)
        chosen.layout = ipw.Layout(width="44rem")

        def choose(change: Any) -> None:
            if change["new"]:
                with suppress(OfframpError):  # The model shows what it refuses.
                    self.model.show_run(change["new"])

        def show(change: Any = None) -> None:
            chosen.options = self._runs()

        chosen.observe(choose, "value")
        self.model.observe(show, ["direction"])
        self.model.propose = lambda: self.model.stage_before or PATH[0]
        return [chosen, self._choice(ipw.Dropdown(description="To stage", style=LABELS), _earlier)]

    def _runs(self) -> list[tuple[str, str]]:
        rows = [(f"{row.run_id} · {row.state}", row.run_id) for row in reversed(self.model.own_runs())]
        return [("the newest" if rows else "there is none", ""), *rows]


def _earlier(stage: str) -> list[str]:
    return list(PATH[: PATH.index(stage)]) if stage in PATH else list(PATH)


def _toggle(model: GroupMigration) -> str:
    mode, standing = model.standing.mode, model.standing
    says = (
        f"says <strong>{html_text(NAMES.get(mode, mode))}</strong>" if mode else "is not there, which means ZooKeeper"
    )
    follows = html_text(NAMES.get(standing.effective_mode, standing.effective_mode))
    return f"<p>The toggle {says}; the group follows <strong>{follows}</strong>'s assignment.</p>"


def _not_watching(model: GroupMigration) -> str:
    if model.is_watching:
        return ""
    return f"Not refreshed any more: the last look was at {model.standing.observed_at:%H:%M:%S} UTC."


def _members_and_lag(model: GroupMigration) -> str:
    left, right = fragments.members(model.standing), fragments.lag_chart(model.lags)
    return f'<div class="side"><div>{left}</div><div>{right}</div></div>'
