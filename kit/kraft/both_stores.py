"""ZooKeeper beside the metadata log, value by value, while dual write continues.

with connect("production") as cluster:
    kraft_diff(cluster).differences                 # polars
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import polars as pl

from kit.clients.cluster import Cluster, ZookeeperConnection
from kit.errors import InputError, ReadError
from kit.kraft.analyze.diff import CLIENT_METRICS, ITEM_KEY, METRICS_PREFIX, diff_summary, metadata_diff
from kit.kraft.analyze.diff_causes import with_causes
from kit.kraft.analyze.phase import MIGRATION, why_no_zookeeper
from kit.kraft.metadata_log import Controllers, MetadataLog, read_log
from kit.kraft.metadata_log.earlier import earlier_values
from kit.kraft.metadata_log.removals import removals
from kit.kraft.metadata_log.secrets import is_secret_config
from kit.kraft.read.control_znodes import DELETIONS, fetch_control
from kit.kraft.read.metadata_znodes import fetch_metadata_znodes
from kit.kraft.status import kraft_status, metadata_controllers, zk_state_of
from kit.tables import schema as tables
from kit.text.fingerprints import Fingerprints, Hide
from kit.text.visible import toml_key

SETTLE_S = 30.0
"""The time for which a diff waits for changes that are in progress."""
_POLL_S = 0.2
_BROKER = 4


@dataclass(frozen=True)
class MetadataDiff:
    """``differences`` (``tables.METADATA_DIFFERENCES``): every value, equal ones too.

    ``checkpoint``: the offset in ``/migration`` that ZooKeeper's values are at least as new as; ``until``: the last
    offset of the log that was read; ``n_reads``: how often both stores were read until nothing was in flight; ``log``:
    the metadata log as it was read last; ``is_syncing``: the controller that leads now has written nothing to ZooKeeper
    yet, which is as the one before left it.
    """

    differences: pl.DataFrame
    checkpoint: int
    until: int
    n_reads: int
    log: MetadataLog
    is_syncing: bool = False

    @cached_property
    def summary(self) -> pl.DataFrame:
        """Values per kind and verdict (``diff_summary``)."""
        counted: pl.DataFrame = diff_summary(self.differences)
        return counted.sort("kind")

    def of(self, *verdicts: str) -> pl.DataFrame:
        """The rows with these verdicts, sorted."""
        return self.differences.filter(pl.col("verdict").is_in(verdicts)).sort("kind", "entity", "item")

    @property
    def is_clean(self) -> bool:
        """Return whether nothing is diverged, in flight or unknown."""
        return self.of("diverged", "in_flight", "unknown").is_empty()


def kraft_diff(cluster: Cluster, settle_s: float = SETTLE_S) -> MetadataDiff:
    """Compare both stores while dual write continues; read again while something is in flight.

    A value is diverged only if a second read, behind a checkpoint that has passed the whole first read, reports it too.
    That rests on Kafka's order: ``/migration`` moves to an offset only after the writes of all changes up to it
    (read in ZooKeeper's own log, see docs/kraft.md); a write that failed is not repeated.

    Raises:
        InputError: the cluster is not in dual write, or the profile names no controllers.
        ConnectError, ReadError: ZooKeeper or the controllers can't be read.
    """
    if cluster.zookeeper is None and (why := why_no_zookeeper(kraft_status(cluster).read)) is not None:
        raise InputError(f"cluster {cluster.name!r}: {why}, and there are no two stores to compare")
    if cluster.zookeeper is None or not cluster.profile.kraft.addresses:
        raise InputError(
            f"cluster {cluster.name!r}: a diff needs both stores: name zookeeper_connect in the profile, and "
            f'[clusters.{toml_key(cluster.name)}.kraft] controllers = "host:port,…"'
        )
    controllers = metadata_controllers(cluster.profile, cluster.cluster_id)
    return diff_stores(cluster.name, cluster.zookeeper, controllers, settle_s)


def diff_stores(
    name: str, zookeeper: ZookeeperConnection, controllers: Controllers, settle_s: float = SETTLE_S
) -> MetadataDiff:
    """Compare the stores themselves like ``kraft_diff``; brokers are not asked. Secrets are compared by
    fingerprints.
    """
    compare = partial(_compare, name, zookeeper, controllers, Fingerprints())
    return _explained(settled(compare, partial(_await_checkpoint, zookeeper), settle_s))


def settled(
    compare: Callable[[int], MetadataDiff], await_checkpoint: Callable[[int, float], None], settle_s: float
) -> MetadataDiff:
    """Compare until nothing is in flight, or for ``settle_s``.

    ``compare`` takes how many comparisons there are with it, ``await_checkpoint`` an offset and a deadline.
    """
    deadline = time.monotonic() + settle_s
    found, before, n_reads = compare(1), None, 1
    while _is_open(_confirmed(found, before)) and time.monotonic() < deadline:
        await_checkpoint(found.until, deadline)
        before, n_reads = found, n_reads + 1
        found = compare(n_reads)
    return _confirmed(found, before)


def _is_open(found: MetadataDiff) -> bool:
    """Return whether another read may change a verdict: of what is equal, too, until the leading controller has
    synced.
    """
    return found.is_syncing or not found.of("in_flight").is_empty()


def _confirmed(found: MetadataDiff, before: MetadataDiff | None) -> MetadataDiff:
    """Mark a difference that was not seen twice behind a moved checkpoint as in flight, as far as it is known."""
    is_new = pl.col("verdict") == "diverged"
    rows = found.differences
    if before is not None and before.until <= found.checkpoint:
        twice = before.of("diverged", "in_flight").select(*ITEM_KEY, was_open=pl.lit(True))
        rows = rows.join(twice, on=ITEM_KEY, how="left")
        is_new &= pl.col("was_open").is_null()
    rows = rows.with_columns(
        verdict=pl.when(is_new).then(pl.lit("in_flight")).otherwise(pl.col("verdict")),
        cause=pl.when(~is_new).then(pl.col("cause")),
    )
    return replace(found, differences=rows.drop("was_open", strict=False))


def _explained(found: MetadataDiff) -> MetadataDiff:
    """With the causes that the history of what diverged shows; that is one more pass over the log."""
    diverged = found.of("diverged")
    if diverged.is_empty():
        return found
    earlier = earlier_values(found.log, set(diverged.select("kind", "entity").iter_rows()))
    rows = with_causes(
        found.differences, earlier.partitions, earlier.items, earlier.copied_until, earlier.removed_mechanisms
    )
    return replace(found, differences=rows)


def _compare(
    name: str, zookeeper: ZookeeperConnection, controllers: Controllers, hide: Hide, n_reads: int
) -> MetadataDiff:
    """One read of ZooKeeper, then one of the log, side by side."""
    znodes = fetch_metadata_znodes(zookeeper, lambda key: is_secret_config(_BROKER, key), hide)
    log = read_log(controllers, hide)
    checkpoint = znodes.control.checkpoint
    if (refused := znodes.control.refused(DELETIONS)) is not None:
        raise ReadError(f"cluster {name!r}: {refused}. Which topics wait for their deletion is unknown")
    if zk_state_of(log) != MIGRATION or checkpoint is None:
        raise InputError(
            f"cluster {name!r} is not in dual write (the state in the metadata log is {zk_state_of(log) or 'missing'})"
            ", so there is only one store to read. To see the phase: offramp kraft status"
        )
    starts = [each.base_offset or 0 for each in log.sources if each.kind != "checkpoint"]
    is_behind = min(starts, default=0) > checkpoint + 1
    is_syncing = is_behind or znodes.control.checkpoint_epoch != log.image.epoch
    removed = removals(log, checkpoint) if log.image.offset > checkpoint else ()
    differences = metadata_diff(
        pl.DataFrame(znodes.partitions),
        pl.DataFrame(znodes.items),
        log.partitions,
        log.items,
        pl.DataFrame(tables.METADATA_REMOVALS.from_rows(removed)),
        pl.DataFrame({"topic": znodes.control.pending_deletions}, schema={"topic": pl.String}),
        checkpoint,
        is_syncing=is_syncing,
        sync_cause=_sync_cause(log.items),
    )
    return MetadataDiff(differences, checkpoint, log.image.offset, n_reads, log, is_syncing)


def _sync_cause(items: pl.DataFrame) -> str | None:
    """Return why Kafka 3.9 can't bring ZooKeeper up to date after an election, where these settings show it."""
    return None if items.filter(pl.col("entity").str.starts_with(METRICS_PREFIX)).is_empty() else CLIENT_METRICS


def _await_checkpoint(zookeeper: ZookeeperConnection, offset: int, deadline: float) -> None:
    """Until ``/migration`` is at least at ``offset``, or the deadline; NoOps move it twice a second."""
    while time.monotonic() < deadline:
        checkpoint = fetch_control(zookeeper).checkpoint
        if checkpoint is not None and checkpoint >= offset:
            return
        time.sleep(_POLL_S)
