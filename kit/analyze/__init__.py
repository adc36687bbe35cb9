"""Pure analyses: DataFrames of one snapshot in, a DataFrame out; on Spark and polars alike, rows in no order."""

from kit.analyze.blocking import blockers
from kit.analyze.change import lag_change, partition_progress
from kit.analyze.distribution import canary_share, group_balance, member_shares, thread_shares
from kit.analyze.duplicates import duplicates
from kit.analyze.epoch_rebalances import epoch_rebalances
from kit.analyze.exclusivity import overlaps
from kit.analyze.findings import ownership_findings
from kit.analyze.flavours import member_flavours
from kit.analyze.holdings import unowned_hand_outs
from kit.analyze.lag import partition_lag
from kit.analyze.lag_totals import group_lag, member_lag, topic_lag
from kit.analyze.lost import lost
from kit.analyze.ownership import partition_owners
from kit.analyze.parity import VERDICTS, group_parity, store_parity
from kit.analyze.pauses import handovers, pauses
from kit.analyze.placement import broker_load, topic_skew
from kit.analyze.readiness import group_readiness, readiness
from kit.analyze.records import records_of
from kit.analyze.stages import STAGES
from kit.analyze.stickiness import stickiness
from kit.analyze.summary import finding_summary, group_summary
from kit.analyze.topic_rebalances import topic_rebalances
from kit.analyze.turns import handing_out, with_turns
from kit.analyze.verdict import verdict, verdict_sentences, verdict_summary

__all__ = [
    "STAGES",
    "VERDICTS",
    "blockers",
    "broker_load",
    "canary_share",
    "duplicates",
    "epoch_rebalances",
    "finding_summary",
    "group_balance",
    "group_lag",
    "group_parity",
    "group_readiness",
    "group_summary",
    "handing_out",
    "handovers",
    "lag_change",
    "lost",
    "member_flavours",
    "member_lag",
    "member_shares",
    "overlaps",
    "ownership_findings",
    "partition_lag",
    "partition_owners",
    "partition_progress",
    "pauses",
    "readiness",
    "records_of",
    "stickiness",
    "store_parity",
    "thread_shares",
    "topic_lag",
    "topic_rebalances",
    "topic_skew",
    "unowned_hand_outs",
    "verdict",
    "verdict_sentences",
    "verdict_summary",
    "with_turns",
]
