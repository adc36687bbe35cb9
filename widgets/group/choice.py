"""Choose the group that a notebook works on, as a model: all groups, a search, and the chosen group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import traitlets as t

from kit.errors import InputError, OfframpError

SHOWN = 100
"""Groups that the list has at once: a search narrows ten thousand down, and each key is answered at once."""


class NotChosen(InputError):
    """No group is chosen yet. Nothing went wrong, so a notebook shows the sentence alone, and stops."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class GroupChoice(t.HasTraits):
    """``fetch`` reads the groups once, when no group is named: rows of ``kit.views.summary``, in the order to show.

    ``open_group`` makes of the chosen group the model that the notebook works with.

    Raises:
        OfframpError: the groups can't be read, or the named one can't be opened.
    """

    search = t.Unicode(
        help="Part of the group's name. Upper and lower case are equal. Each of several words must occur."
    )
    group_id = t.Unicode(help="The chosen group; empty: none yet.")
    error = t.Unicode(help="Why the chosen group can't be opened.")

    def __init__(
        self, group_id: str, fetch: Callable[[], pl.DataFrame], open_group: Callable[[str], Any] = lambda name: None
    ) -> None:
        super().__init__()
        self._open_group, self._opened = open_group, None
        self.groups = pl.DataFrame()
        if group_id:
            self._opened = open_group(group_id)
        else:
            self.groups = fetch()
        self.group_id = group_id

    @property
    def matching(self) -> pl.DataFrame:
        """The groups whose names hold every word of the search."""
        name = pl.col("group_id").str.to_lowercase()
        groups = self.groups
        for word in self.search.lower().split():
            groups = groups.filter(name.str.contains(word, literal=True))
        return groups

    @property
    def opened(self) -> Any:
        """Return what was made of the chosen group.

        Raises:
            NotChosen: no group was chosen.
        """
        if not self.group_id:
            raise NotChosen(
                "No group is chosen. Choose a group in the list above, then run this cell and the cells below. Or "
                "set group_id."
            )
        return self._opened

    def choose(self, group_id: str) -> None:
        """Open a group; one that can't be opened leaves ``error`` and no choice."""
        self.error = ""
        try:
            self._opened = self._open_group(group_id)
        except OfframpError as error:
            self.error, group_id = str(error), ""
        self.group_id = group_id
