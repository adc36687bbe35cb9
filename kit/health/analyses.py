"""The analyses of this subject by name, each loaded when it is first used: a verb pays for its own alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kit.text.lazy_names import lazy_names

if TYPE_CHECKING:
    from kit.health.analyze.backtest import (
        false_alarms as false_alarms,
        group_alarms as group_alarms,
        incident_outcomes as incident_outcomes,
        verdict_spans as verdict_spans,
    )
    from kit.health.analyze.beyond_end import with_beyond_end as with_beyond_end
    from kit.health.analyze.burrow import (
        group_health as group_health,
        partition_health as partition_health,
        window_health as window_health,
    )
    from kit.health.analyze.by_group import group_outlook as group_outlook
    from kit.health.analyze.causes import incident_causes as incident_causes
    from kit.health.analyze.definitions import (
        DEFINITIONS as DEFINITIONS,
        lag_as as lag_as,
        lag_definitions as lag_definitions,
        lag_explained as lag_explained,
    )
    from kit.health.analyze.hours import (
        group_hours as group_hours,
        looks_of_hours as looks_of_hours,
        troubled as troubled,
        within_target_by_hours as within_target_by_hours,
    )
    from kit.health.analyze.outlook import (
        lag_outlook as lag_outlook,
        outlook_positions as outlook_positions,
    )
    from kit.health.analyze.over_time import (
        lag_by_hour as lag_by_hour,
        lag_over_time as lag_over_time,
        time_lag_over_time as time_lag_over_time,
        within_age as within_age,
        within_target as within_target,
    )
    from kit.health.analyze.rules import (
        AnyRule as AnyRule,
        BurrowRule as BurrowRule,
        LagRule as LagRule,
        SilenceRule as SilenceRule,
    )
    from kit.health.analyze.seen import (
        commits_seen as commits_seen,
        topic_commits as topic_commits,
    )
    from kit.health.analyze.time_lag import (
        time_lag_by_anchors as time_lag_by_anchors,
        time_lag_by_polls as time_lag_by_polls,
        time_lag_by_records as time_lag_by_records,
    )
    from kit.health.analyze.velocity import lag_velocity as lag_velocity
    from kit.health.analyze.waiting import waiting_since as waiting_since
    from kit.health.analyze.windows import (
        commit_windows as commit_windows,
        end_rings as end_rings,
    )

__all__, __getattr__ = lazy_names(__name__)
