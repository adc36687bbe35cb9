"""The wizard over :class:`widgets.group_migration.GroupMigration`: shows its traits and calls its methods, no more."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from html import escape
from typing import Any

import ipywidgets as ipw
import traitlets as t

from kit.errors import OfframpError
from kit.migrate.group import PATH
from kit.migrate.plan import STOP, UNDO
from widgets import fragments
from widgets.group_migration import GroupMigration
from widgets.style import STYLE

_WIDE = {"description_width": "11rem"}


class GroupWizard(ipw.VBox):
    """Shows the model and starts its watch; ``model.close()`` ends both."""

    def __init__(self, model: GroupMigration) -> None:
        self.model = model
        self._buttons: dict[str, ipw.Button] = {}
        super().__init__(self._sections())
        self.add_class("offramp")
        self._show_each()
        model.start_watching()

    def _sections(self) -> list[ipw.Widget]:
        return [
            ipw.HTML(STYLE),
            self._html(_head),
            self._safety(),
            *self._section("1. Where the group stands", self._standing()),
            *self._section("2. Where it is to go", self._wish()),
            *self._section("3. The plan", self._plan()),
            *self._section("4. Approval", self._approval()),
            *self._section("5. The run", self._run()),
        ]

    def _section(self, title: str, parts: list[ipw.Widget]) -> list[ipw.Widget]:
        return [ipw.HTML(f"<h3>{title}</h3>"), *parts]

    def _safety(self) -> ipw.Box:
        """What is going on, Stop and the ways back: in view whatever is shown below."""
        name = self._text("typed_undo", "To undo, type the group's name", {"description_width": "initial"})
        undo = self._button("undo", "Undo this run", self.model.undo, "danger")
        back = self._button("rollback", "Plan the way back", self.model.plan_rollback, "warning")
        told = [
            self._html(_status, "sentence", "busy"),
            self._html(lambda m: fragments.alert(m.error), "error"),
            self._html(lambda m: fragments.todo(m.instruction), "instruction"),
            self._html(lambda m: fragments.ways_back(m.stage_before, m.to_undo), "standing", "record"),
        ]
        bar = ipw.Box([*told[:3], self._button("stop", "Stop", self.model.stop, "danger"), back, name, undo, told[3]])
        bar.add_class("offramp-safety")
        return bar

    def _standing(self) -> list[ipw.Widget]:
        return [
            self._html(lambda m: fragments.stages(m.standing.stage, m.to_stage, m.advice), "standing", "to_stage"),
            self._html(lambda m: fragments.alert(m.watch_error or _not_watching(m)), "watch_error", "is_watching"),
            self._html(_members_and_lag, "lags"),
        ]

    def _wish(self) -> list[ipw.Widget]:
        to = self._linked(ipw.Dropdown(options=PATH, description="To stage", style=_WIDE), "to_stage")
        numbers = [
            self._linked(ipw.IntText(description="Canary members", style=_WIDE), "canary"),
            self._linked(ipw.FloatText(description="Watch the canary, s", style=_WIDE), "soak_s"),
            self._linked(ipw.FloatText(description="Same members for, s", style=_WIDE), "stable_s"),
            self._linked(ipw.IntText(description="Lag tolerance, records", style=_WIDE), "lag_tolerance"),
        ]
        failing = ipw.Dropdown(
            options=[("stop there", STOP), ("undo what was done", UNDO)], description="If a step fails", style=_WIDE
        )
        rules = self._text("overrides", "Override rules, by name")
        fields = ipw.Box([to, *numbers, self._linked(failing, "on_failure"), rules])
        fields.layout = ipw.Layout(flex_flow="row wrap")
        checks = self._html(lambda m: fragments.checks(m.checks), "checks")
        return [fields, checks, self._button("plan", "Make the plan", self.model.make_plan, "primary")]

    def _plan(self) -> list[ipw.Widget]:
        return [
            self._html(lambda m: fragments.plan(m.plan), "plan"),
            self._html(lambda m: fragments.rehearsal(m.dry), "dry"),
        ]

    def _approval(self) -> list[ipw.Widget]:
        fields = [
            self._text("approver", "Approved by"),
            self._text("typed_subject", "Type the group's name"),
            self._text("typed_digest", "Type the digest's first 8"),
        ]
        approve = self._button("approve", "Approve this plan", self.model.approve, "primary")
        box = ipw.Box([*fields, approve])
        box.layout = ipw.Layout(flex_flow="row wrap")
        return [box, self._html(_approved, "approval", "plan")]

    def _run(self) -> list[ipw.Widget]:
        buttons = [
            self._button("act", "Carry out the plan", self.model.act, "primary"),
            self._button("resume", "Go on with this run", self.model.resume, ""),
        ]
        log = ipw.Accordion([self._of_run(fragments.log)], titles=("Log",), selected_index=None)
        verdict = self._html(lambda m: fragments.verdict(m.record, bool(m.direction)), "record", "direction")
        untrusted = self._html(lambda m: fragments.alert(m.untrusted), "untrusted")
        return [
            ipw.HBox(buttons),
            untrusted,
            verdict,
            self._of_run(fragments.progress),
            self._of_run(fragments.proof),
            log,
        ]

    # How a widget is tied to the model

    def _of_run(self, render: Callable[[Any], str]) -> ipw.HTML:
        return self._html(lambda model: render(model.record), "record")

    def _html(self, render: Callable[[Any], str], *names: str) -> ipw.HTML:
        """Rendered again when one of the traits changes; sent only when the text does."""
        widget = ipw.HTML()

        def show(change: Any = None) -> None:
            widget.value = render(self.model)

        show()
        self.model.observe(show, list(names))
        return widget

    def _linked(self, widget: Any, name: str) -> Any:
        widget.layout = ipw.Layout(width="21.5rem")
        t.link((self.model, name), (widget, "value"))
        return widget

    def _text(self, name: str, label: str, style: dict[str, str] = _WIDE) -> ipw.Text:
        # One message when the field is left: of one per key the last may come after the click on a button.
        text = self._linked(ipw.Text(description=label, style=style, continuous_update=False), name)
        text.layout = ipw.Layout(width="30rem")
        return text

    def _button(self, name: str, label: str, method: Callable[[], Any], kind: str) -> ipw.Button:
        button = ipw.Button(
            description=label, button_style=kind, layout=ipw.Layout(width="auto", align_self="flex-start")
        )

        def press(_: ipw.Button) -> None:
            with suppress(OfframpError):  # The model shows what it refuses.
                method()

        button.on_click(press)
        self._buttons[name] = button
        return button

    def _show_each(self) -> None:
        def show(change: Any = None) -> None:
            for name, button in self._buttons.items():
                button.disabled = name not in self.model.possible

        show()
        self.model.observe(show, ["possible"])


def _head(model: GroupMigration) -> str:
    about = f"Cluster {model.cluster_id} · plans and evidence in {model.runs}"
    return f'<h2>Migration of group {escape(model.group_id)}</h2><p class="soft">{escape(about)}</p>'


def _status(model: GroupMigration) -> str:
    told = f"… {model.busy}" if model.busy else model.sentence or "Nothing is going on."
    return f'<p role="status"><strong>{escape(told)}</strong></p>'


def _not_watching(model: GroupMigration) -> str:
    if model.is_watching:
        return ""
    return f"Not refreshed any more: the last look was at {model.standing.observed_at:%H:%M:%S} UTC."


def _members_and_lag(model: GroupMigration) -> str:
    left, right = fragments.members(model.standing), fragments.lag_chart(model.lags)
    return f'<div class="side"><div>{left}</div><div>{right}</div></div>'


def _approved(model: GroupMigration) -> str:
    if model.plan is None:
        return '<p class="soft">An approval is of one plan: make one first.</p>'
    if model.approval is None:
        command = f"offramp approve {model.plan.digest[:8]} --runs {model.runs}"
        return (
            '<p class="open">… Not approved yet. Somebody else can do it in a terminal: '
            f"<code>{escape(command)}</code></p>"
        )
    approval = model.approval
    return (
        f'<p class="good">✓ Approved by {escape(approval.approved_by)} until '
        f"{approval.expires_at:%Y-%m-%d %H:%M} UTC.</p>"
    )
