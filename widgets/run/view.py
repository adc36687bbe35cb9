"""Show the common part of every procedure: the running action, the plan, its approval, the run, and undo.

A view only shows a model's traits and calls its methods.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import ipywidgets as ipw
import traitlets as t

from kit.engine.model.approval import SHORTEST_PREFIX
from kit.engine.model.plan import STOP, UNDO, Plan
from kit.engine.model.record import RunRecord
from kit.errors import OfframpError
from kit.text.visible import html_text
from widgets.run import html
from widgets.run.procedure import Procedure
from widgets.run.style import STYLE

LABELS = {"description_width": "11rem"}
WHOLE = {"description_width": "initial"}
"""The style of a label that may be longer, and is never cut."""
TYPED = frozenset({"typed_subject", "typed_digest", "typed_undo"})
"""The texts that a person types so that a button is enabled: each key is sent. JupyterLab may deliver a click
before the text that was typed before it, so the button stays disabled until the model has the whole text.
"""


class Wizard(ipw.VBox):
    """Shows the model and starts its watch; ``model.close()`` ends both."""

    title = ""
    subject = "the subject"

    def __init__(self, model: Procedure) -> None:
        self.model: Any = model
        self._buttons: dict[str, ipw.Button] = {}
        super().__init__(self._sections())
        self.add_class("offramp")
        self._show_each()
        model.start_watching()

    def own_sections(self) -> list[tuple[str, list[ipw.Widget]]]:
        """The sections before the plan: their titles and widgets."""
        raise NotImplementedError

    def own_ways_back(self) -> list[ipw.Widget]:
        """More ways to undo, beside undo in the bar that is always in view."""
        return []

    def changes(self, plan: Plan) -> str:
        """The changes of a plan, as a fragment of HTML."""
        return html.steps(plan)

    def progress(self, record: RunRecord | None) -> str:
        """The progress of a run, as a fragment of HTML."""
        return html.progress(record)

    def _sections(self) -> list[ipw.Widget]:
        titled = [
            *self.own_sections(),
            ("The plan", self._plan()),
            ("Approval", self._approval()),
            ("The run", self._run()),
        ]
        parts = [ipw.HTML(STYLE), ipw.HTML(self._head()), self._safety()]
        for number, (title, below) in enumerate(titled, 1):
            parts += [ipw.HTML(f"<h3>{number}. {title}</h3>"), *below]
        return parts

    def _head(self) -> str:
        about = f"Cluster {self.model.cluster_id} · plans and evidence in {self.model.runs}"
        return f'<h2>{self.title} {html_text(self.model.about)}</h2><p class="soft">{html_text(about)}</p>'

    def _safety(self) -> ipw.Box:
        """The running action, Stop and the ways to undo, always in view."""
        name = self.text("typed_undo", f"To undo, type {self.subject}", WHOLE)
        undo = self.button("undo", "Undo this run", self.model.undo, "danger")
        messages = [
            self.html(_status, "sentence", "busy"),
            self.html(lambda m: html.alert(m.error), "error"),
            self.html(lambda m: html.todo(m.instruction), "instruction"),
            self.html(lambda m: html.waiting(m.waiting), "waiting"),
        ]
        stop = self.button("stop", "Stop", self.model.stop, "danger")
        to_undo = self.html(lambda m: html.to_undo(m.record, m.to_undo), "record")
        bar = ipw.Box([*messages, stop, name, undo, to_undo, *self.own_ways_back()])
        bar.add_class("offramp-safety")
        return bar

    def _plan(self) -> list[ipw.Widget]:
        return [
            self.html(lambda m: html.plan(m.plan, self.changes, m.plan_of_run), "plan", "plan_of_run"),
            self.html(lambda m: html.rehearsal(m.dry), "dry"),
        ]

    def _approval(self) -> list[ipw.Widget]:
        fields = [
            self.text("approver", "Approved by"),
            self.text("typed_subject", f"Type {self.subject}", WHOLE),
            self.text("typed_digest", "Type the digest's first 8"),
        ]
        approve = self.button("approve", "Approve this plan", self.model.approve, "primary")
        box = ipw.Box([*fields, approve])
        box.layout = ipw.Layout(flex_flow="row wrap")
        return [box, self.html(_approved, "approval", "plan", "typed_subject", "typed_digest")]

    def _run(self) -> list[ipw.Widget]:
        buttons = [
            self.button("act", "Execute the plan", self.model.act, "primary"),
            self.button("resume", "Resume this run", self.model.resume, ""),
        ]
        log = ipw.Accordion([self._of_run(html.log)], titles=("Log",), selected_index=None)
        verdict = self.html(lambda m: html.verdict(m.record, bool(m.direction)), "record", "direction")
        untrusted = self.html(lambda m: html.alert(m.untrusted), "untrusted")
        return [
            ipw.HBox(buttons),
            untrusted,
            verdict,
            self._of_run(self.progress),
            self._of_run(html.proof),
            log,
        ]

    # Widgets and the model

    def failing(self) -> ipw.Widget:
        """The choice of what happens when a step fails."""
        options = [("stop at that step", STOP), ("undo the executed steps", UNDO)]
        return self.linked(ipw.Dropdown(options=options, description="If a step fails", style=LABELS), "on_failure")

    def _of_run(self, render: Callable[[Any], str]) -> ipw.HTML:
        return self.html(lambda model: render(model.record), "record")

    def html(self, render: Callable[[Any], str], *names: str) -> ipw.HTML:
        """Rendered again when one of the traits ``names`` changes; sent to the browser only when the text changes.

        A part that can't be drawn reports it in its place: a trait changes in the midst of a run, which must continue.
        """
        widget = ipw.HTML()

        def show(change: Any = None) -> None:
            try:
                widget.value = render(self.model)
            except Exception as error:  # noqa: BLE001 - it would end the run that changed the trait
                widget.value = html.not_drawn(error)

        show()
        self.model.observe(show, list(names))
        return widget

    def linked(self, widget: Any, name: str, width: str = "21.5rem") -> Any:
        widget.layout = ipw.Layout(width=width)
        t.link((self.model, name), (widget, "value"))
        return widget

    def text(self, name: str, label: str, style: dict[str, str] = LABELS) -> ipw.Text:
        widget = ipw.Text(description=label, style=style, continuous_update=name in TYPED)
        text: ipw.Text = self.linked(widget, name, "30rem")
        return text

    def button(self, name: str, label: str, method: Callable[[], Any], kind: str) -> ipw.Button:
        button = ipw.Button(
            description=label, button_style=kind, layout=ipw.Layout(width="auto", align_self="flex-start")
        )

        def press(_: ipw.Button) -> None:
            with suppress(OfframpError):  # The model shows the error.
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


def _status(model: Procedure) -> str:
    sentence = f"… {model.busy}" if model.busy else model.sentence or "Nothing is running."
    return f'<p role="status"><strong>{html_text(sentence)}</strong></p>'


def _to_type(model: Procedure) -> str:
    """Return what is missing until the button is enabled."""
    missing = html_text(model.approval_mismatch)
    if not model.typed_subject and not model.typed_digest:
        subject = html_text(model.plan.subject)
        missing = f"type <strong>{subject}</strong> and the first {SHORTEST_PREFIX} characters of the digest"
    return f'<p class="soft">“Approve this plan” is disabled: {missing}</p>' if missing else ""


def _approved(model: Procedure) -> str:
    if model.plan is None:
        return '<p class="soft">There is no plan to approve: make a plan first.</p>'
    if model.approval is None:
        command = f"offramp approve {model.plan.digest[:8]} --runs {model.runs}"
        how = "Approve the plan here, or another person does in a terminal"
        if model.operations.needs_second_person(model.plan):
            how = f"Another person than {model.plan.made_by} has to approve the plan, logged in as themselves"
        return (
            f'<p class="open">… Not approved yet. {html_text(how)}: '
            f"<code>{html_text(command)}</code></p>{_to_type(model)}"
        )
    approval = model.approval
    return (
        f'<p class="good">✓ Approved by {html_text(approval.approved_by)} until '
        f"{approval.expires_at:%Y-%m-%d %H:%M} UTC.</p>"
    )
