"""The analyses of one snapshot by name: each hands the right tables of the snapshot to one function of ``kit.analyze``.

On a Spark snapshot they give Spark DataFrames, on a polars snapshot polars DataFrames, with the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import narwhals as nw

from kit.errors import NotFound
from kit.groups import analyses
from kit.groups.analyze.flavours import with_flavours
from kit.groups.analyze.stages import group_stages
from kit.groups.snapshot import Frame, Snapshot, in_polars

_LAG_TABLES = ("committed_offsets", "log_offsets", "ownership", "subscriptions", "topic_partitions", "groups")
_STALE_TABLES = ("committed_offsets", "members", "groups")
_OWNED_TABLES = ("ownership", "members", "subscriptions", "topic_partitions")
_READINESS_TABLES = ("groups", "committed_offsets", "migration_states", *_OWNED_TABLES)


def lag(snapshot: Snapshot[Frame]) -> Frame:
    """Lag per group, store and partition (``partition_lag``)."""
    return _lag(snapshot, stale_stores(snapshot))


def _lag(snapshot: Snapshot[Frame], stale: Frame) -> Frame:
    result: Frame = analyses.partition_lag(**_tables(snapshot, _LAG_TABLES), stale_stores=stale)
    return result


def group_lag(partition_lag: Frame) -> Frame:
    """Totals per group and store of :func:`lag`'s rows (``group_lag``)."""
    result: Frame = analyses.group_lag(partition_lag)
    return result


def owners(snapshot: Snapshot[Frame]) -> Frame:
    """Return who owns each partition, by ZooKeeper and by Kafka (``partition_owners``)."""
    result: Frame = analyses.partition_owners(**_tables(snapshot, _OWNED_TABLES))
    return result


def findings(snapshot: Snapshot[Frame]) -> Frame:
    """Return the problems of ownership, in sentences (``ownership_findings``)."""
    return _findings(snapshot, stale_stores(snapshot))


def _findings(snapshot: Snapshot[Frame], stale: Frame, owned: Frame | None = None) -> Frame:
    tables = _tables(snapshot, ("groups", "committed_offsets", *_OWNED_TABLES))
    result: Frame = analyses.ownership_findings(**tables, stale_stores=stale, owners=owned)
    return result


def finding_summary(ownership_findings: Frame) -> Frame:
    """:func:`findings` counted per group and kind, with an example (``finding_summary``)."""
    result: Frame = analyses.finding_summary(ownership_findings)
    return result


def shares(snapshot: Snapshot[Frame]) -> Frame:
    """Return how many partitions each member has, and its fair share (``member_shares``)."""
    result: Frame = analyses.member_shares(**_tables(snapshot, _OWNED_TABLES))
    return result


def parity(snapshot: Snapshot[Frame]) -> Frame:
    """ZooKeeper's offsets against Kafka's (``store_parity``)."""
    result: Frame = analyses.store_parity(committed_offsets=snapshot.committed_offsets, groups=snapshot.groups)
    return result


def stages(snapshot: Snapshot[Frame]) -> Frame:
    """Each group's stage alone, without the blockers that :func:`readiness` searches for (``group_stages``)."""
    tables: list[Any] = [snapshot.groups, snapshot.members, snapshot.migration_states]
    rows: Any = group_stages(*map(nw.from_native, tables))
    result: Frame = nw.to_native(rows.select("group_id", "stage"))
    return result


def readiness(snapshot: Snapshot[Frame]) -> Frame:
    """Each group's stage on the way from ZooKeeper to Kafka coordination (``readiness``)."""
    result: Frame = analyses.readiness(**_tables(snapshot, _READINESS_TABLES))
    return result


def protocol_stages(snapshot: Snapshot[Frame]) -> Frame:
    """Each group's stage between the classic and the consumer protocol (``protocol_stages``)."""
    result: Frame = analyses.protocol_stages(groups=snapshot.groups, members=snapshot.members)
    return result


def blockers(snapshot: Snapshot[Frame]) -> Frame:
    """Return what blocks each group, in sentences (``blockers``)."""
    result: Frame = analyses.blockers(**_tables(snapshot, _READINESS_TABLES))
    return result


def summary(snapshot: Snapshot[Frame]) -> Frame:
    """One line per group (``group_summary``)."""
    snapshot = _with_flavours(snapshot)
    compared = analyses.group_parity(parity(snapshot))
    owned = owners(snapshot)
    stale = analyses.stale_stores(**_tables(snapshot, _STALE_TABLES), parity=compared)
    result: Frame = analyses.group_summary(
        groups=snapshot.groups,
        readiness=analyses.readiness(**_tables(snapshot, _READINESS_TABLES), owners=owned, parity=compared),
        group_lag=group_lag(_lag(snapshot, stale)),
        group_balance=analyses.group_balance(shares(snapshot)),
        ownership_findings=_findings(snapshot, stale, owned),
        partition_owners=owned,
        stale_stores=stale,
        members=snapshot.members,
        read_errors=snapshot.read_errors,
    )
    return result


def _with_flavours(snapshot: Snapshot[Frame]) -> Snapshot[Frame]:
    """Add the flavour of each member once: six analyses ask for it."""
    members: Any = with_flavours(nw.from_native(snapshot.members))
    return replace(snapshot, members=nw.to_native(members))


def stale_stores(snapshot: Snapshot[Frame]) -> Frame:
    """Offsets that groups left in a store which they don't use (``stale_stores``)."""
    result: Frame = analyses.stale_stores(**_tables(snapshot, _STALE_TABLES))
    return result


def broker_load(snapshot: Snapshot[Frame]) -> Frame:
    """Leaders and replicas per broker (``broker_load``)."""
    result: Frame = analyses.broker_load(topic_partitions=snapshot.topic_partitions, brokers=snapshot.brokers)
    return result


def topic_skew(snapshot: Snapshot[Frame]) -> Frame:
    """Return how unevenly each topic lies on the brokers (``topic_skew``)."""
    result: Frame = analyses.topic_skew(topic_partitions=snapshot.topic_partitions, brokers=snapshot.brokers)
    return result


def _tables(snapshot: Snapshot[Frame], names: Iterable[str]) -> dict[str, Frame]:
    return {name: getattr(snapshot, name) for name in names}


def most_lagging(snapshot: Snapshot[Frame]) -> str:
    """The id of the group with the most lag in the store that it uses; of equals the first by name.

    Raises:
        NotFound: the cluster has no group.
    """
    # In polars: choosing a group must not cost the seconds that Spark needs to plan joins of small tables.
    groups = summary(in_polars(snapshot)).sort("lag", "group_id", descending=[True, False], nulls_last=True)
    if groups.is_empty():
        raise NotFound("the cluster has no group that owns, commits or subscribes to anything: choose another cluster")
    return str(groups["group_id"][0])
