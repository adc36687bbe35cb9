"""A list of groups to search and to choose from, and below it what is made of the chosen group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as ipw

from kit.text.quantity import quantity
from kit.text.visible import cell, html_text
from widgets.group.choice import SHOWN, GroupChoice
from widgets.run import html
from widgets.run.style import STYLE


class GroupPicker(ipw.VBox):
    """``show`` makes the view of what was opened, which then is shown here; without it, the list stays."""

    def __init__(self, choice: GroupChoice, show: Callable[[Any], ipw.Widget] | None = None) -> None:
        self.choice, self._show = choice, show
        self._search = ipw.Text(description="Search", placeholder="a part of the name", continuous_update=True)
        self._list = ipw.Select(description="Group", rows=12, layout=ipw.Layout(width="44rem"))
        self._choose = ipw.Button(description="Choose this group", button_style="primary")
        self._count, self._outcome = ipw.HTML(), ipw.HTML()
        super().__init__()
        self.add_class("offramp")
        self._search.observe(self._searched, "value")
        self._choose.on_click(self._chosen)
        self._fill()
        self._draw()

    def _draw(self) -> None:
        choice = self.choice
        if choice.group_id and self._show is not None:
            self.children = [self._show(choice.opened)]
            return
        chosen = f"<p>Chosen: <strong>{html_text(choice.group_id)}</strong>. Run the cells below.</p>"
        self._outcome.value = html.alert(choice.error) or (chosen if choice.group_id else "")
        fields = [self._search, self._count, self._list, self._choose] if len(choice.groups) else []
        self.children = [ipw.HTML(STYLE), ipw.HTML("<h2>Choose a group</h2>"), *fields, self._outcome]

    def _searched(self, change: Any) -> None:
        self.choice.search = change["new"]
        self._fill()

    def _fill(self) -> None:
        groups = self.choice.matching
        self._list.options = [(_line(row), row["group_id"]) for row in groups.head(SHOWN).iter_rows(named=True)]
        n_groups = quantity(len(self.choice.groups), "group")
        more = f"; the first {SHOWN} are listed, a search shows more" if len(groups) > SHOWN else ""
        self._count.value = f'<p class="soft">{len(groups):,} of {n_groups}{more}.</p>'
        self._choose.disabled = groups.is_empty()

    def _chosen(self, button: ipw.Button) -> None:
        if self._list.value is not None:
            self.choice.choose(self._list.value)
            self._draw()


def _line(row: dict[str, Any]) -> str:
    members = "members unknown" if row["n_members"] is None else quantity(row["n_members"], "member")
    lag = "lag unknown" if row["lag"] is None else f"{quantity(row['lag'], 'record')} behind"
    return f"{cell(row['group_id'])} · {row['stage']} · {members} · {lag}"
