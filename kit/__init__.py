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

from typing import TYPE_CHECKING

from kit import former_names
from kit.text.lazy_names import lazy_names

if TYPE_CHECKING:
    from kit import analyze as analyze, tables as tables
    from kit.clients.cluster import Cluster as Cluster, connect as connect
    from kit.errors import OfframpError as OfframpError
    from kit.groups import views as views
    from kit.groups.show import charts as charts, display as display
    from kit.groups.snapshot import (
        collect as collect,
        observe as observe,
        of_group as of_group,
        take_snapshot as take_snapshot,
        verify_read as verify_read,
    )
    from kit.health.hours import Hours as Hours
    from kit.history import History as History
    from kit.profile import Profile as Profile, load_profile as load_profile
    from kit.rebalances.sources import read_rebalances as read_rebalances
    from kit.spark.session import spark_session as spark_session
    from kit.tables.snapshot import Snapshot as Snapshot, in_polars as in_polars

former_names.install()
__all__, __getattr__ = lazy_names(__name__)
