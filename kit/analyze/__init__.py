"""Pure analyses: DataFrames of one snapshot in, a DataFrame out; on Spark and polars alike, rows in no order.

Each is loaded when it is first used: a verb pays for its own alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kit.analyze.groups.blocking import blockers
    from kit.analyze.groups.change import lag_change, partition_progress
    from kit.analyze.groups.distribution import canary_share, group_balance, member_shares, thread_shares
    from kit.analyze.groups.findings import ownership_findings
    from kit.analyze.groups.flavours import member_flavours
    from kit.analyze.groups.idle import CLASSES, idle_groups
    from kit.analyze.groups.lag import partition_lag
    from kit.analyze.groups.lag_totals import group_lag, member_lag, topic_lag
    from kit.analyze.groups.ownership import partition_owners
    from kit.analyze.groups.parity import VERDICTS, group_parity, store_parity
    from kit.analyze.groups.placement import broker_load, topic_skew
    from kit.analyze.groups.protocol_stages import protocol_stages
    from kit.analyze.groups.readiness import group_readiness, readiness
    from kit.analyze.groups.stages import STAGES
    from kit.analyze.groups.stale import stale_stores
    from kit.analyze.groups.stickiness import stickiness
    from kit.analyze.groups.summary import ATTENTION, finding_summary, group_summary
    from kit.analyze.health.backtest import false_alarms, group_alarms, incident_outcomes, verdict_spans
    from kit.analyze.health.beyond_end import with_beyond_end
    from kit.analyze.health.burrow import group_health, partition_health, window_health
    from kit.analyze.health.by_group import group_outlook
    from kit.analyze.health.causes import incident_causes
    from kit.analyze.health.definitions import DEFINITIONS, lag_as, lag_definitions, lag_explained
    from kit.analyze.health.hours import group_hours, looks_of_hours, troubled, within_target_by_hours
    from kit.analyze.health.outlook import lag_outlook, outlook_positions
    from kit.analyze.health.over_time import lag_by_hour, lag_over_time, time_lag_over_time, within_age, within_target
    from kit.analyze.health.rules import AnyRule, BurrowRule, LagRule, SilenceRule
    from kit.analyze.health.seen import commits_seen, topic_commits
    from kit.analyze.health.time_lag import time_lag_by_anchors, time_lag_by_polls, time_lag_by_records
    from kit.analyze.health.velocity import lag_velocity
    from kit.analyze.health.waiting import waiting_since
    from kit.analyze.health.windows import commit_windows, end_rings
    from kit.analyze.proof.consumption_intervals import consumption_intervals, with_intervals
    from kit.analyze.proof.duplicates import duplicates
    from kit.analyze.proof.exclusivity import overlaps
    from kit.analyze.proof.lost import lost
    from kit.analyze.proof.ownership_at import unowned_consumption
    from kit.analyze.proof.records import records_of
    from kit.analyze.proof.stalls import handovers, stalls
    from kit.analyze.proof.verdict import verdict, verdict_sentences, verdict_summary
    from kit.analyze.rebalances.epochs import epoch_rebalances
    from kit.analyze.rebalances.stored import topic_rebalances

_HOMES = {
    "groups.blocking": ("blockers",),
    "groups.change": (
        "lag_change",
        "partition_progress",
    ),
    "groups.distribution": (
        "canary_share",
        "group_balance",
        "member_shares",
        "thread_shares",
    ),
    "groups.findings": ("ownership_findings",),
    "groups.flavours": ("member_flavours",),
    "groups.idle": (
        "CLASSES",
        "idle_groups",
    ),
    "groups.lag": ("partition_lag",),
    "groups.lag_totals": (
        "group_lag",
        "member_lag",
        "topic_lag",
    ),
    "groups.ownership": ("partition_owners",),
    "groups.parity": (
        "VERDICTS",
        "group_parity",
        "store_parity",
    ),
    "groups.placement": (
        "broker_load",
        "topic_skew",
    ),
    "groups.protocol_stages": ("protocol_stages",),
    "groups.readiness": (
        "group_readiness",
        "readiness",
    ),
    "groups.stages": ("STAGES",),
    "groups.stale": ("stale_stores",),
    "groups.stickiness": ("stickiness",),
    "groups.summary": (
        "ATTENTION",
        "finding_summary",
        "group_summary",
    ),
    "health.backtest": (
        "false_alarms",
        "group_alarms",
        "incident_outcomes",
        "verdict_spans",
    ),
    "health.hours": (
        "group_hours",
        "looks_of_hours",
        "troubled",
        "within_target_by_hours",
    ),
    "health.over_time": (
        "lag_by_hour",
        "lag_over_time",
        "time_lag_over_time",
        "within_age",
        "within_target",
    ),
    "health.rules": (
        "AnyRule",
        "BurrowRule",
        "LagRule",
        "SilenceRule",
    ),
    "health.beyond_end": ("with_beyond_end",),
    "health.burrow": (
        "group_health",
        "partition_health",
        "window_health",
    ),
    "health.by_group": ("group_outlook",),
    "health.causes": ("incident_causes",),
    "health.definitions": (
        "DEFINITIONS",
        "lag_as",
        "lag_definitions",
        "lag_explained",
    ),
    "health.outlook": (
        "lag_outlook",
        "outlook_positions",
    ),
    "health.velocity": ("lag_velocity",),
    "health.waiting": ("waiting_since",),
    "health.windows": (
        "commit_windows",
        "end_rings",
    ),
    "health.time_lag": (
        "time_lag_by_anchors",
        "time_lag_by_polls",
        "time_lag_by_records",
    ),
    "health.seen": (
        "commits_seen",
        "topic_commits",
    ),
    "proof.consumption_intervals": (
        "consumption_intervals",
        "with_intervals",
    ),
    "proof.duplicates": ("duplicates",),
    "proof.exclusivity": ("overlaps",),
    "proof.lost": ("lost",),
    "proof.ownership_at": ("unowned_consumption",),
    "proof.records": ("records_of",),
    "proof.stalls": (
        "handovers",
        "stalls",
    ),
    "proof.verdict": (
        "verdict",
        "verdict_sentences",
        "verdict_summary",
    ),
    "rebalances.epochs": ("epoch_rebalances",),
    "rebalances.stored": ("topic_rebalances",),
}
"""The names of each module."""
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ATTENTION",
    "CLASSES",
    "DEFINITIONS",
    "STAGES",
    "VERDICTS",
    "AnyRule",
    "BurrowRule",
    "LagRule",
    "SilenceRule",
    "blockers",
    "broker_load",
    "canary_share",
    "commit_windows",
    "commits_seen",
    "consumption_intervals",
    "duplicates",
    "end_rings",
    "epoch_rebalances",
    "false_alarms",
    "finding_summary",
    "group_alarms",
    "group_balance",
    "group_health",
    "group_hours",
    "group_lag",
    "group_outlook",
    "group_parity",
    "group_readiness",
    "group_summary",
    "handovers",
    "idle_groups",
    "incident_causes",
    "incident_outcomes",
    "lag_as",
    "lag_by_hour",
    "lag_change",
    "lag_definitions",
    "lag_explained",
    "lag_outlook",
    "lag_over_time",
    "lag_velocity",
    "looks_of_hours",
    "lost",
    "member_flavours",
    "member_lag",
    "member_shares",
    "outlook_positions",
    "overlaps",
    "ownership_findings",
    "partition_health",
    "partition_lag",
    "partition_owners",
    "partition_progress",
    "protocol_stages",
    "readiness",
    "records_of",
    "stale_stores",
    "stalls",
    "stickiness",
    "store_parity",
    "thread_shares",
    "time_lag_by_anchors",
    "time_lag_by_polls",
    "time_lag_by_records",
    "time_lag_over_time",
    "topic_commits",
    "topic_lag",
    "topic_rebalances",
    "topic_skew",
    "troubled",
    "unowned_consumption",
    "verdict",
    "verdict_sentences",
    "verdict_spans",
    "verdict_summary",
    "waiting_since",
    "window_health",
    "with_beyond_end",
    "with_intervals",
    "within_age",
    "within_target",
    "within_target_by_hours",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'kit.analyze' has no attribute {name!r}")
    value = getattr(import_module(f"kit.analyze.{_HOME[name]}"), name)
    globals()[name] = value
    return value
