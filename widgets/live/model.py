"""All groups of a cluster, poll after poll, as a model: a search, the page that is shown, one group's partitions."""

from __future__ import annotations

import threading
from collections.abc import Callable

import polars as pl
import traitlets as t

from kit.errors import OfframpError
from kit.groups.snapshot import unseen_groups, verify_read
from kit.health.live import FEWEST, TOO_FEW, GroupTrends, Poll, Polls, risks
from kit.text.quantity import quantity
from widgets.run.watch import Watch

ROWS = 20
"""Groups on a page: only these are sent to the browser."""
PARTITIONS = 100
"""The number of partitions of the opened group that are shown at most, those at risk first."""
EVERY_S = 10.0
_SHARE = 4
"""An observation is followed by a pause of at least so many times what it took."""


class Monitor(t.HasTraits):
    """``looks`` takes the observations, ``close_all`` closes its connections. The first observation is taken at once.

    Raises:
        ConnectError, ReadError: it failed.
    """

    search = t.Unicode(help="A part of the group's name, upper or lower case; words between blanks must all be there.")
    page = t.Int(0, help="Which page of the matching groups is shown; 0 is the first.")
    group_id = t.Unicode(None, allow_none=True, help="The group whose partitions are shown; None: none.")
    is_paused = t.Bool(False, help="While this is true, the cluster is not polled.")
    every_s = t.Float(
        EVERY_S, min=1.0, help="Seconds from one observation to the next; more if an observation takes longer."
    )
    error = t.Unicode(help="Why the last poll failed; the shown values are of the poll before.")
    version = t.Int(0, help="A counter that grows with each poll that there is to show.")

    def __init__(self, cluster: str, looks: Polls, close_all: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.cluster, self._looks, self._close_all = cluster, looks, close_all
        self.of_late, self._one_look = GroupTrends(), threading.Lock()
        self._watch: Watch | None = None
        self.groups, self.n_requests = pl.DataFrame(), 0  # of all observations, to brokers and to ZooKeeper
        self.last: Poll
        self._look()

    # The shown part

    @property
    def matching(self) -> pl.DataFrame:
        """The groups whose names hold every word of the search, who is at risk first."""
        name, groups = pl.col("group_id").str.to_lowercase(), self.groups
        for word in self.search.lower().split():
            groups = groups.filter(name.str.contains(word, literal=True))
        return groups

    def shown(self) -> tuple[pl.DataFrame, int, int]:
        """The rows of the page with of_late; where they begin, and how many match."""
        groups = self.matching
        last_page = max(0, (len(groups) - 1) // ROWS)
        first = ROWS * min(max(0, self.page), last_page)
        return groups.slice(first, ROWS), first, len(groups)

    def partitions(self) -> tuple[pl.DataFrame, int]:
        """Return the shown partitions of the opened group, and how many it has."""
        rows = self.of_late.partitions(self.group_id or "")
        return rows.head(PARTITIONS), len(rows)

    @property
    def risks(self) -> dict[str, int]:
        """Return how many groups there are of each trend."""
        return risks(self.groups)

    @property
    def cost(self) -> str:
        """Return the costs of polling for the cluster, in sentences; of the first polls, what they can't determine."""
        so_far = f"{quantity(self.last.number, 'poll')} so far: {quantity(self.n_requests, 'request')}"
        too_few = f" {TOO_FEW.capitalize()}." if self.last.number < FEWEST else ""
        return f"The last observation: {self.last.cost}. {so_far}.{too_few}"

    # Actions

    def turn(self, by: int) -> None:
        """Turn pages."""
        _, first, n = self.shown()
        self.page = min(max(0, first // ROWS + by), max(0, (n - 1) // ROWS))

    def refresh(self) -> None:
        """Poll once more. A failure goes to ``error``."""
        try:
            self._look()
        except OfframpError as error:
            self.error = str(error)
        except Exception as error:  # noqa: BLE001 - a watch that ends silently would show old numbers as new ones
            self.error = f"{type(error).__name__}: {error}"

    def start_watching(self) -> None:
        """Refresh in the background until ``stop_watching``, unless paused."""
        if self._watch is None and not self.is_paused:
            self._watch = Watch(self.refresh, lambda: max(self.every_s - self.last.took_s, _SHARE * self.last.took_s))

    def stop_watching(self) -> None:
        """Returns when an observation that continues has ended."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.stop()

    def close(self) -> None:
        """Stop polling, and close the connections."""
        self.stop_watching()
        self._close_all()

    def verify(self) -> str:
        """A sentence when the last observation succeeded and read everything.

        Raises:
            PartialRead: naming what could not be read.
            OfframpError: the last observation failed.
        """
        if self.error:
            raise OfframpError(f"the last poll of {self.cluster} failed: {self.error}")
        verify_read(self.last.snapshot)
        may_miss = unseen_groups(self.last.snapshot)
        read = (
            "everything was read." if may_miss is None else f"everything that the login can see was read. {may_miss}."
        )
        groups = quantity(self.groups["group_id"].n_unique(), "group")  # One may have a line for each store.
        return f"{self.cluster}, poll {self.last.number:,}: {groups}, {read}"

    def _look(self) -> None:
        with self._one_look:
            last = self._looks.take()
            self.groups = self.of_late.add(last.partitions)
            self.last, self.error = last, ""
            self.n_requests += last.n_requests + last.n_zookeeper_requests
        self.version += 1

    @t.observe("is_paused")
    def _paused(self, change: object) -> None:
        if not self.is_paused:
            self.start_watching()
        elif self._watch is not None:
            self._watch.end()
            self._watch = None

    @t.observe("search")
    def _searched(self, change: object) -> None:
        self.page = 0
