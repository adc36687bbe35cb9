"""Kafka consumer groups in ZooKeeper and in Kafka: read, analysed and moved.

What a notebook needs::

    import kit

    cluster = kit.connect("production")
    spark = kit.spark_session(cluster.profile)
    snapshot = kit.take_snapshot(spark, cluster)
    kit.views.lag(snapshot).show()

Names are imported when first used: the lab's small processes must not pay for Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kit import former_names

if TYPE_CHECKING:
    from kit import analyze, tables
    from kit.clients.cluster import Cluster, connect
    from kit.errors import OfframpError
    from kit.groups import views
    from kit.groups.show import charts, display
    from kit.groups.snapshot import Snapshot, collect, in_polars, observe, of_group, take_snapshot, verify_read
    from kit.health.hours import Hours
    from kit.history import History
    from kit.profile import Profile, load_profile
    from kit.rebalances.sources import read_rebalances
    from kit.spark.session import spark_session

_MODULES = {
    "analyze": "kit.analyze",
    "charts": "kit.groups.show.charts",
    "display": "kit.groups.show.display",
    "tables": "kit.tables",
    "views": "kit.views",
}
_HOMES = {
    "Cluster": "kit.clients.cluster",
    "History": "kit.history",
    "Hours": "kit.health.hours",
    "OfframpError": "kit.errors",
    "Profile": "kit.profile",
    "Snapshot": "kit.groups.snapshot",
    "collect": "kit.groups.snapshot",
    "connect": "kit.clients.cluster",
    "in_polars": "kit.groups.snapshot",
    "load_profile": "kit.profile",
    "observe": "kit.groups.snapshot",
    "of_group": "kit.groups.snapshot",
    "read_rebalances": "kit.rebalances.sources",
    "spark_session": "kit.spark.session",
    "take_snapshot": "kit.groups.snapshot",
    "verify_read": "kit.groups.snapshot",
}

__all__ = [
    "Cluster",
    "History",
    "Hours",
    "OfframpError",
    "Profile",
    "Snapshot",
    "analyze",
    "charts",
    "collect",
    "connect",
    "display",
    "in_polars",
    "load_profile",
    "observe",
    "of_group",
    "read_rebalances",
    "spark_session",
    "tables",
    "take_snapshot",
    "verify_read",
    "views",
]


former_names.install()


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'kit' has no attribute {name!r}")
