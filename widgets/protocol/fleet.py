"""Moving many groups between the classic and the consumer protocol, as a model: verdicts, waves, and the procedure."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

import polars as pl
import traitlets as t

from kit.clients.cluster import Cluster
from kit.engine.model.plan import Plan
from kit.groups.read.whole_cluster import EVERY_GROUP, chosen_groups
from kit.moves.protocol.fleet import ProtocolFleetRequest
from kit.moves.protocol.subject import KIND
from kit.operations.frames import matching
from kit.protocol.facts import ROLLING, STOPPED, ProtocolFacts, Request
from kit.protocol.verdicts import GroupVerdict, read_facts, verdict_rows, verdicts
from widgets.protocol.model import ProtocolProcedure
from widgets.run.connection import Connection
from widgets.run.procedure import OpenOperations
from widgets.run.whole_cluster import WholeClusterProcedure


@dataclass(frozen=True, slots=True)
class Verdicts:
    """One reading of all groups, judged by the request: ``rows`` in the order of ``kit.protocol.verdicts``."""

    rows: tuple[GroupVerdict, ...]
    observed_at: datetime
    problems: tuple[str, ...]

    @property
    def by_stage(self) -> dict[str, int]:
        """Stage → groups."""
        stages = [each.stage for each in self.rows]
        return {stage: stages.count(stage) for stage in sorted(set(stages))}


class ProtocolFleet(WholeClusterProcedure, ProtocolProcedure):
    """``scan`` reads all groups on its own connection, with ``__consumer_offsets`` if its argument is true;
    ``close_all`` closes the connections of the model.

    Raises:
        ConnectError, ReadError: the cluster can't be read.
    """

    REQUEST = (*ProtocolProcedure.REQUEST, "pattern", "groups", "wave", "pause_s")
    about = "many groups"

    seen = t.Any(None, help="The last reading: Verdicts.")
    pattern = t.Unicode(EVERY_GROUP, help="Regular expression that a group's whole id must match.")
    groups = t.Unicode(help="Group ids, separated by blanks or commas; empty: all that match and can be moved.")
    wave = t.Int(10, help="Groups that are moved between two pauses.")
    pause_s = t.Float(60.0, help="Seconds between two waves; meanwhile the moved groups are watched.")

    def __init__(
        self,
        open_operations: OpenOperations,
        scan: Callable[[bool], ProtocolFacts],
        close_all: Callable[[], None] = lambda: None,
    ) -> None:
        self._scan = scan
        self._judging = threading.Lock()
        self._facts: ProtocolFacts | None = None
        super().__init__(open_operations, close_all)
        self._see()

    @classmethod
    def connected(cls, connection: Connection) -> Self:
        """Return the model on connections that end with it; raises as ``__init__`` and the first read."""
        return cls(connection.operations, connection.watching(_read), connection.close)

    def concerns(self, kind: str, subject: str) -> bool:
        """Runs of one group too: both change the members of groups."""
        return kind == KIND

    @property
    def can_move(self) -> list[GroupVerdict]:
        """The groups that the requested way can move now, whatever their names are."""
        return [each for each in self.seen.rows if self.answer(each) == "yes" and each.n_members]

    def requested_rows(self) -> pl.DataFrame:
        """The verdicts of the requested groups, a row each as :class:`kit.protocol.verdicts.GroupVerdict`.

        Raises:
            InputError: the pattern is no regular expression.
        """
        rows = verdict_rows(self.seen.rows)
        names = self._names()
        return rows.filter(pl.col("group_id").is_in(names)) if names else matching(rows, self.pattern)

    def answer(self, row: GroupVerdict) -> str | None:
        """The verdict for the requested way of replacing members."""
        return row.rolling if self.how == ROLLING else row.stopped

    def request(self) -> ProtocolFleetRequest:
        """Return the request that the fields ask for.

        Raises:
            InputError: the request is not valid.
        """
        names = self._names()
        pattern = None if names else self.pattern
        return ProtocolFleetRequest(self.of_group(""), names, pattern, self.wave, self.pause_s)

    def _names(self) -> tuple[str, ...]:
        return tuple(self.groups.replace(",", " ").split())

    def _planning(self) -> tuple[str, Callable[[], Plan]]:
        request, overrides = self.request(), self.overrides.replace(",", " ").split()
        return f"planning the {self.to_protocol} protocol", lambda: self.operations.make_plan(request, overrides)

    def _read_all(self) -> None:
        # If all members stop, commit times decide whether offsets are lost.
        self._facts = self._scan(self.how == STOPPED)
        self._judge()

    def _judge(self) -> None:
        with self._judging:
            facts = self._facts
            if facts is not None:
                rows = verdicts(facts, Request(self.to_protocol, self.how, self.answers))
                self.seen = Verdicts(tuple(rows), datetime.fromtimestamp(facts.at_ms / 1000, UTC), facts.problems)

    def _request_changed(self, change: Any) -> None:
        super()._request_changed(change)
        if change["name"] in ("to_protocol", "how", "clients_ready"):
            self._judge()


def _read(cluster: Cluster, offsets_topic: bool) -> ProtocolFacts:
    return read_facts(cluster, chosen_groups(cluster.profile, EVERY_GROUP), offsets_topic)
