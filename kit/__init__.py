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

if TYPE_CHECKING:
    from kit import analyze, tables, views
    from kit.cluster import Cluster, connect
    from kit.errors import OfframpError
    from kit.history import History, Hours
    from kit.profile import Profile, load_profile
    from kit.rebalances import read_rebalances
    from kit.show import charts, display
    from kit.snapshot import Snapshot, collect, in_polars, observe, of_group, take_snapshot, verify_read
    from kit.spark.session import spark_session

_MODULES = {
    "analyze": "kit.analyze",
    "charts": "kit.show.charts",
    "display": "kit.show.display",
    "tables": "kit.tables",
    "views": "kit.views",
}
_HOMES = {
    "Cluster": "kit.cluster",
    "History": "kit.history",
    "Hours": "kit.history",
    "OfframpError": "kit.errors",
    "Profile": "kit.profile",
    "Snapshot": "kit.snapshot",
    "collect": "kit.snapshot",
    "connect": "kit.cluster",
    "in_polars": "kit.snapshot",
    "load_profile": "kit.profile",
    "observe": "kit.snapshot",
    "of_group": "kit.snapshot",
    "read_rebalances": "kit.rebalances",
    "spark_session": "kit.spark.session",
    "take_snapshot": "kit.snapshot",
    "verify_read": "kit.snapshot",
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


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'kit' has no attribute {name!r}")
