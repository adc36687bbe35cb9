"""Toggling many groups, as a model: the stage of each group, which groups to toggle, and the procedure."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import polars as pl
import traitlets as t

from kit.engine.model.plan import STOP, UNDO, Plan
from kit.errors import InputError
from kit.groups.read.whole_cluster import EVERY_GROUP
from kit.groups.snapshot import Snapshot, failed_reads, observe
from kit.moves.fleet.plan import KIND, FleetPlanRequest, fleet
from kit.moves.group.rules import SETTLE_S
from kit.operations.frames import matching
from kit.tables.groups import KAFKA, ZOOKEEPER
from widgets.run.connection import Connection
from widgets.run.procedure import OpenOperations
from widgets.run.run_model import showing
from widgets.run.whole_cluster import WholeClusterProcedure


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """One reading of all groups: ``rows`` as of ``kit.moves.fleet.plan``, and the number of failed reads."""

    rows: pl.DataFrame
    observed_at: datetime
    n_unread: int


class FleetToggle(WholeClusterProcedure):
    """``scan`` reads all groups on its own connection; ``close_all`` closes the connections of the model.

    Raises:
        ConnectError: the cluster can't be read.
    """

    REQUEST = (
        "to", "pattern", "groups", "wave", "pause_s", "min_stable_s", "lag_tolerance", "step_timeout_s", "on_failure",
        "overrides",
    )  # fmt: skip
    about = "the fleet"

    seen = t.Any(None, help="The last scan: a Scan.")
    to = t.Unicode(KAFKA, help="Whose assignment the groups shall follow: kafka or zookeeper.")
    pattern = t.Unicode(EVERY_GROUP, help="Regular expression that a group's whole id must match.")
    groups = t.Unicode(help="Group ids, separated by blanks or commas; empty: all groups that are ready.")
    wave = t.Int(10, help="Groups at a time; 0: all at once.")
    pause_s = t.Float(60.0, help="Seconds between two waves; meanwhile the toggled groups are watched.")
    min_stable_s = t.Float(600.0, help="Seconds for which a group must have had the same members.")
    lag_tolerance = t.Int(10_000, help="Records by which the lag of the toggled groups may grow in a pause.")
    step_timeout_s = t.Float(SETTLE_S, help="Seconds in which all groups of a wave must follow the toggle.")
    on_failure = t.Enum([STOP, UNDO], STOP, help="What happens when a step fails: stop, or undo the executed steps.")
    overrides = t.Unicode(help="Names of rules to override, separated by blanks or commas; they go into the evidence.")

    def __init__(
        self,
        open_operations: OpenOperations,
        scan: Callable[[], Snapshot[pl.DataFrame]],
        close_all: Callable[[], None] = lambda: None,
    ) -> None:
        self._scan = scan
        self._judging = threading.Lock()
        self._snapshot: Snapshot[pl.DataFrame] | None = None
        super().__init__(open_operations, close_all)
        self._see()

    @classmethod
    def connected(cls, connection: Connection) -> Self:
        """Return the model on connections that end with it; raises as ``__init__`` and the first read."""
        return cls(connection.operations, connection.watching(observe), connection.close)

    # Stages of the groups

    @property
    def rows(self) -> pl.DataFrame:
        """Every group, as of the last scan."""
        rows: pl.DataFrame = self.seen.rows
        return rows

    def requested_rows(self) -> pl.DataFrame:
        """The rows of the requested groups, ready or not.

        Raises:
            InputError: the pattern is no regular expression.
        """
        rows = matching(self.rows, self.pattern)
        names = _words(self.groups)
        return rows.filter(pl.col("group_id").is_in(names)) if names else rows

    def concerns(self, kind: str, subject: str) -> bool:
        return kind == KIND

    @property
    def to_undo(self) -> tuple[str, ...]:
        """Return the titles as of any run; many waves become one phrase."""
        titles = super().to_undo
        return titles if len(titles) < 2 else (f"the toggles of {len(titles)} waves",)

    # Plans

    def set_request(self, to: str = "", **values: Any) -> None:
        """Set several traits of the request; an empty ``to`` changes nothing (the default is Kafka)."""
        super().set_request(to=to or self.to, **values)

    def request(self) -> FleetPlanRequest:
        """Return the request that the fields ask for.

        Raises:
            InputError: the request is not valid.
        """
        return FleetPlanRequest(
            self.to,
            self.pattern,
            _words(self.groups),
            self.wave,
            self.pause_s,
            self.min_stable_s,
            self.lag_tolerance,
            step_timeout_s=self.step_timeout_s,
            on_failure=self.on_failure,
        )

    def prepare(self, approval_digest: str = "", to: str = "") -> None:
        """Load the plan with this digest or, without a digest, plan the request; waits for the dry run.

        Raises:
            InputError: the plan does not lead to ``to`` (empty: any).
            OfframpError: see ``load_plan`` and ``make_plan``.
        """
        super().prepare(approval_digest)
        leads = self._required_plan().parameters["to"]
        if to and leads != to:
            self._void()
            raise InputError(f"plan {approval_digest[:8]} leads to {leads!r}, not to {to!r}")

    @showing
    def plan_all_back(self) -> None:
        """Plan ZooKeeper's assignment for every group in Kafka coordination, all at once, even with new members.

        Raises:
            IllegalMove: another action is running.
        """
        self._refuse_busy()
        # A group that fails in a rollback must not move the rest into Kafka coordination again.
        all_groups = {"pattern": EVERY_GROUP, "groups": "", "min_stable_s": 0.0, "overrides": ""}
        self.set_request(ZOOKEEPER, wave=0, on_failure=STOP, **all_groups)
        self.make_plan()

    def _planning(self) -> tuple[str, Callable[[], Plan]]:
        request, overrides = self.request(), _words(self.overrides)
        return f"planning the toggle to {request.to}", lambda: self.operations.make_plan(request, overrides)

    @t.validate("to")
    def _known_direction(self, proposal: Any) -> str:
        FleetPlanRequest(proposal["value"])
        return str(proposal["value"])

    def _request_changed(self, change: Any) -> None:
        super()._request_changed(change)
        if change["name"] in ("to", "min_stable_s"):
            self._judge()

    # Reading

    def _read_all(self) -> None:
        self._snapshot = self._scan()
        self._judge()

    def _judge(self) -> None:
        with self._judging:
            now = self._snapshot
            if now is not None:
                rows = fleet(now, self.to, self.min_stable_s)
                self.seen = Scan(rows, now.read_timings["observed_at"][0], len(failed_reads(now)))

    def _can(self) -> dict[str, bool]:
        return {**super()._can(), "all_back": not self.busy}


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())
