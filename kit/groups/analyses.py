"""The analyses of this subject by name, each loaded when it is first used: a verb pays for its own alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kit.text.lazy_names import lazy_names

if TYPE_CHECKING:
    from kit.groups.analyze.blocking import blockers as blockers
    from kit.groups.analyze.change import (
        lag_change as lag_change,
        partition_progress as partition_progress,
    )
    from kit.groups.analyze.distribution import (
        canary_share as canary_share,
        group_balance as group_balance,
        member_shares as member_shares,
        thread_shares as thread_shares,
    )
    from kit.groups.analyze.findings import ownership_findings as ownership_findings
    from kit.groups.analyze.flavours import member_flavours as member_flavours
    from kit.groups.analyze.idle import (
        CLASSES as CLASSES,
        idle_groups as idle_groups,
    )
    from kit.groups.analyze.lag import partition_lag as partition_lag
    from kit.groups.analyze.lag_totals import (
        group_lag as group_lag,
        member_lag as member_lag,
        topic_lag as topic_lag,
    )
    from kit.groups.analyze.ownership import partition_owners as partition_owners
    from kit.groups.analyze.parity import (
        VERDICTS as VERDICTS,
        group_parity as group_parity,
        store_parity as store_parity,
    )
    from kit.groups.analyze.placement import (
        broker_load as broker_load,
        topic_skew as topic_skew,
    )
    from kit.groups.analyze.protocol_stages import protocol_stages as protocol_stages
    from kit.groups.analyze.readiness import (
        group_readiness as group_readiness,
        readiness as readiness,
    )
    from kit.groups.analyze.stages import STAGES as STAGES
    from kit.groups.analyze.stale import stale_stores as stale_stores
    from kit.groups.analyze.stickiness import stickiness as stickiness
    from kit.groups.analyze.summary import (
        ATTENTION as ATTENTION,
        finding_summary as finding_summary,
        group_summary as group_summary,
    )

__all__, __getattr__ = lazy_names(__name__)
