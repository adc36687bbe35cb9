"""Observations of a cluster that moves to KRaft, kept as Parquet: whether ZooKeeper keeps up, and what differs.

``<folder>/kraft_states/date=YYYY-MM-DD/snapshot_id=<id>/rows.parquet`` is one observation, laid out as ``kit.history``
lays snapshots out: plain Spark reads it. Beside it ``metadata_differences`` has the values that were diverged, in
flight or unknown then. A file gets its name when it is whole, and the state's is written last: an observation that was
cut off leaves no row that is loaded. Several may write to one folder at a time.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from kit.clients.cluster import Cluster, connect
from kit.errors import AuthenticationFailed, ConnectError, HistoryError, OfframpError, PartialRead, StoresDiffer
from kit.kraft.analyze.phase import DUAL_WRITE, KRAFT
from kit.kraft.analyze.soak import DIVERGED, NOT_READ, since, values, with_verdicts
from kit.kraft.both_stores import SETTLE_S, MetadataDiff, kraft_diff
from kit.kraft.status import KraftStatus, kraft_status, status_without
from kit.profile import Profile
from kit.tables import schema as tables
from kit.tables.conditions import ALARM
from kit.tables.kraft import KraftState
from kit.tables.schema import Table
from kit.text.quantity import quantity
from kit.text.visible import visible

OPEN = ("diverged", "in_flight", "unknown")
"""Verdicts whose rows a history keeps; of all other verdicts their number."""


@dataclass(frozen=True)
class KraftObservation:
    """One observation. ``diff`` is None outside of dual write, and where ``error`` gives the reason it could not be
    made."""

    status: KraftStatus
    diff: MetadataDiff | None = None
    error: str | None = None

    @property
    def state(self) -> KraftState:
        """The state with what the diff counted, and with what could not be read."""
        errors = [*self.status.unread, *([self.error] if self.error else [])]
        counts = self.diff.differences["verdict"].value_counts() if self.diff else None
        held: dict[str, int] = dict(counts.iter_rows()) if counts is not None else {}
        verdicts = (*OPEN, "equal", "expected")
        found: dict[str, Any] = {f"n_{each}": held.get(each, 0) if self.diff else None for each in verdicts}
        return replace(self.status.state, **found, error="; ".join(errors) or None)

    @property
    def facts(self) -> pl.DataFrame:
        """Return the rows of ``KraftStatus.aged_facts``."""
        return self.status.aged_facts

    @property
    def findings(self) -> pl.DataFrame:
        """``tables.KRAFT_FINDINGS``."""
        return pl.DataFrame(tables.KRAFT_FINDINGS.from_rows(self.status.findings))

    @property
    def about_diff(self) -> str:
        """Return up to where the stores were compared, or why they were not."""
        if self.error:
            return f"Both stores could not be compared: {self.error}"
        if self.diff is None:
            return f"There is nothing to compare: there is no dual write in the phase {self.status.state.phase}."
        return (
            f"Compared: ZooKeeper at checkpoint {self.diff.checkpoint} and the metadata log up to offset "
            f"{self.diff.until}, "
            f"read {quantity(self.diff.n_reads, 'time')}: {'equal' if self.diff.is_clean else 'not equal'}."
        )

    @property
    def differences(self) -> pl.DataFrame:
        """``tables.METADATA_DIFFERENCES`` of the diff; none without a diff."""
        return pl.DataFrame(tables.METADATA_DIFFERENCES.from_rows([])) if self.diff is None else self.diff.differences

    @property
    def open_differences(self) -> pl.DataFrame:
        """Return the rows of ``differences`` that are neither equal nor expected, sorted."""
        rows = self.differences.filter(pl.col("verdict").is_in(OPEN)).sort("kind", "entity", "item")
        return rows.select(tables.METADATA_DIFFERENCES.schema.names)

    def line(self) -> str:
        """The observation in a line, for a terminal or a log; an alarm comes last."""
        state = self.state
        behind = "lag unknown" if state.lag is None else f"{quantity(state.lag, 'record')} behind"
        counts = [(state.n_equal, "equal"), *((getattr(state, f"n_{each}"), each.replace("_", " ")) for each in OPEN)]
        compared = ", ".join(f"{count} {word}" for count, word in counts) if self.diff else "nothing compared"
        unread = f"; not read: {state.error}" if state.error else ""
        found = [each for each in self.status.findings if each.severity == ALARM]
        alarms = "".join(f"; alarm {each.check_id}: {each.sentence}" for each in found)
        return f"{state.at:%H:%M:%S}Z phase {state.phase}, {behind}, {compared}{unread}{alarms}"

    def verify(self) -> str:
        """One sentence; raises PartialRead where a fact, the diff, or a value in ZooKeeper could not be read."""
        values = self.differences.filter(pl.col("verdict") == "unknown")["error"].drop_nulls().unique().sort()
        unread = [*self.status.unread, *([self.error] if self.error else []), *values]
        if unread:
            raise PartialRead("\n".join(f"not read: {visible(each)}" for each in unread))
        but = ", except from the controllers, which do not run yet" if self.status.not_started else ""
        return f"Cluster {self.status.cluster_name}: phase {self.state.phase}; everything was read{but}."


def observe(
    profile: Profile, settle_s: float = SETTLE_S, connected: Callable[[Profile], Cluster] = connect
) -> KraftObservation:
    """Connect and read once; in dual write the diff too, for which ``settle_s`` is as in ``kraft_diff``.

    If brokers or ZooKeeper don't answer, the other servers of the profile are asked all the same.

    Raises:
        ProfileError, AuthenticationFailed, WrongCluster: as ``connect``.
    """
    try:
        with connected(profile) as cluster:
            return _observe(cluster, settle_s)
    except AuthenticationFailed:
        raise
    except ConnectError:
        return KraftObservation(status_without(profile))


KraftLook, look = KraftObservation, observe  # their names before 1.0


def _observe(cluster: Cluster, settle_s: float) -> KraftObservation:
    status = kraft_status(cluster)
    if status.state.phase not in (DUAL_WRITE, KRAFT) or cluster.zookeeper is None:
        return KraftObservation(status)
    try:
        return KraftObservation(status, kraft_diff(cluster, settle_s))
    except OfframpError as error:
        return KraftObservation(status, error=str(error))


@dataclass(frozen=True)
class Soak:
    """Observations of one cluster, the oldest first, and the values that were open in them; both stamped."""

    cluster: str
    states: pl.DataFrame
    differences: pl.DataFrame

    @property
    def values(self) -> pl.DataFrame:
        """Return the rows of ``kit.kraft.analyze.soak.values``."""
        return values(self.differences, self.states)

    @property
    def unread(self) -> pl.DataFrame:
        """Return what could not be read, the latest first: error, n_looks, first_at, last_at."""
        failed = self.states.filter(pl.col("error").is_not_null()).group_by("error")
        rows = failed.agg(n_looks=pl.len().cast(pl.Int64), first_at=pl.col("at").min(), last_at=pl.col("at").max())
        return rows.sort("last_at", "error", descending=[True, False])

    def verify(self) -> str:
        """One sentence; raises StoresDiffer if a value diverged in the last observation, PartialRead if one was not
        read.
        """
        last = with_verdicts(self.states).row(-1, named=True)
        sentence = (
            f"cluster {self.cluster}: the last observation, at {last['at']:%Y-%m-%d %H:%M:%S} UTC, is {last['verdict']}"
        )
        if last["verdict"] in (DIVERGED, NOT_READ):
            kind = StoresDiffer if last["verdict"] == DIVERGED else PartialRead
            raise kind(f"{sentence}; {last['error'] or 'the report and offramp kraft diff list the values'}")
        return f"{sentence[0].upper()}{sentence[1:]}. Observations: {len(self.states):,}."


class KraftHistory:
    """Observations of one or several clusters in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def append(self, seen: KraftObservation) -> None:
        """Write one observation.

        Raises:
            HistoryError: the folder can't be written to.
        """
        at = seen.state.at
        look_id = f"{at:%Y%m%dT%H%M%S}Z-{secrets.token_hex(4)}"
        self._write(tables.METADATA_DIFFERENCES, seen.open_differences, look_id, at)
        state = pl.DataFrame(tables.KRAFT_STATES.from_rows([seen.state]))
        self._write(tables.KRAFT_STATES, state, look_id, at)

    def states(self, cluster: str) -> pl.DataFrame:
        """``tables.KRAFT_STATES`` of the cluster, stamped, the oldest first.

        Raises:
            HistoryError: there is none in the folder, a file can't be read, or another version of offramp wrote it.
        """
        return self._states().filter(pl.col("cluster") == cluster).sort("at")

    def states_of(self, cluster_id: str) -> pl.DataFrame:
        """Return ``states`` of the cluster that answers by this id, whatever profiles called it."""
        return self._states().filter(pl.col("cluster_id") == cluster_id).sort("at")

    def differences(self, cluster: str) -> pl.DataFrame:
        """``tables.METADATA_DIFFERENCES`` that were open in complete observations of the cluster, stamped, the oldest
        first.

        Raises:
            HistoryError: as ``states``.
        """
        return self._differences_in(self.states(cluster))

    def soak(self, cluster: str = "", last_hours: float = 0.0) -> Soak:
        """The observations of a cluster (empty: the only one of the history) in the hours before its newest one (0:
        all).

        If the name meant another cluster before, by their ids, observations of that one are left out.

        Raises:
            HistoryError: as ``states``; or there is no such cluster, or none was named and there are several.
        """
        rows = self._states()
        known = [str(name) for name in rows["cluster"].unique().sort()]
        if not cluster and len(known) > 1:
            raise HistoryError(
                f"{self._folder} has observations of several clusters ({', '.join(known)}): name one of them"
            )
        name = cluster or known[0]
        if name not in known:
            raise HistoryError(
                f"{self._folder} has no observation of {name!r}; it has observations of {', '.join(known)}"
            )
        named = rows.filter(pl.col("cluster") == name).sort("at")
        newest = named["cluster_id"].drop_nulls().tail(1)
        is_its = pl.col("cluster_id").is_null() | pl.col("cluster_id").is_in(newest.implode())
        states = since(named.filter(is_its), last_hours)
        return Soak(name, states, self._differences_in(states))

    def _differences_in(self, states: pl.DataFrame) -> pl.DataFrame:
        rows = self._load(tables.METADATA_DIFFERENCES)
        assert rows is not None, "a state is written after its differences"
        complete = states.select("snapshot_id")
        return rows.join(complete, on="snapshot_id", how="semi").sort("observed_at", "kind", "entity", "item")

    def _write(self, table: Table, rows: pl.DataFrame, look_id: str, at: datetime) -> None:
        folder = self._folder / table.name / f"date={at:%Y-%m-%d}" / f"snapshot_id={look_id}"
        stamped = pl.DataFrame(table.stamp(rows.to_arrow().cast(table.schema), look_id, at))
        begun, whole = folder / ".rows.parquet", folder / "rows.parquet"  # Spark reads no file with a dot first.
        try:
            folder.mkdir(parents=True)
            with begun.open("wb") as file:
                stamped.write_parquet(file)
                file.flush()
                os.fsync(file.fileno())
            begun.replace(whole)
        except OSError as error:
            raise HistoryError(f"{whole} could not be written: {error.strerror}. Name another folder") from error

    def _states(self) -> pl.DataFrame:
        rows = self._load(tables.KRAFT_STATES)
        if rows is None:
            raise HistoryError(
                f"there is no history of observations in {self._folder}. To make one: offramp kraft watch --history "
                "FOLDER"
            )
        return rows

    def _load(self, table: Table) -> pl.DataFrame | None:
        files = sorted((self._folder / table.name).glob("date=*/snapshot_id=*/rows.parquet"))
        if not files:
            return None
        try:
            return pl.scan_parquet(files, hive_partitioning=False).select(table.stamped_schema.names).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise HistoryError(
                f"{self._folder / table.name} can't be read: {str(error).splitlines()[0]}. A file is damaged, or "
                "another version of offramp wrote it. Name another folder with --history"
            ) from error
