"""Rules for moving one group: what must be so before anything is changed (KIP-125, Migration Plan)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from kit.moves.group.group_state import KC, MEZKCC, OZKCC, GroupState, describe_toggle, listed
from kit.moves.group.movement import seconds_between, silent_members, storage
from kit.tables.conditions import NEVER, WARN, Condition, Rule
from kit.text.quantity import quantity

GROWN_BY = 1000
"""Records by which the group's lag may grow while it is being examined."""
LARGEST_METADATA = 1_000_000
"""A group's metadata is one record of ``__consumer_offsets``; brokers refuse records above about a megabyte."""
SHOWN = 3
MEMBER_BYTES = 300
"""Ids, host, time-outs and the encoding's own bytes of one member, generously."""

SETTLE_S = 180.0
"""An old consumer's auto-commit comes every minute by default; two of them prove that it delivers."""

SETTLED = Rule("settled", "no rebalance is in progress, and each partition is owned by a member")
STABLE = Rule("stable", "the members have been the same for a while")
LAG = Rule("lag", f"the lag does not grow by more than {GROWN_BY:,} records between two observations")
COMMITS = Rule("commits", "each member that has records to read commits between two observations", severity=WARN)
_OF_TWO_READINGS = (STABLE.check_id, LAG.check_id, COMMITS.check_id)
CANARY = Rule("canary_size", "the canary is one member, or at most a third of them")
STORAGE = Rule("storage_mode", "old members commit to ZooKeeper alone (KIP-125, Migration Plan, step 1)")
MIX = Rule("one_coordination", "no partition is read by two members", overridden_by=NEVER)
METADATA = Rule("metadata_size", "the Kafka group's metadata fits into one record")
TOGGLE = Rule("toggle", "the toggle holds what the group's stage needs")
PARITY = Rule("parity", "no store is ahead of the other", severity=WARN)
ASSIGNOR = Rule("assignor", "the owner znodes match the assignment of a known assignor", severity=WARN)
SHARES = Rule("thread_shares", "all members have the same number of streams", severity=WARN)
RULES: tuple[Rule, ...] = (
    SETTLED,
    STABLE,
    LAG,
    COMMITS,
    CANARY,
    STORAGE,
    MIX,
    METADATA,
    TOGGLE,
    PARITY,
    ASSIGNOR,
    SHARES,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """The requested limits: seconds without a new member, and a canary's size; None: the plan has no canary."""

    min_stable_s: float = 60.0
    canary: int | None = 1


def findings(before: GroupState, now: GroupState, to_stage: str, limits: Limits) -> list[Condition]:
    """Every rule, by two observations of the group; of a later one than ``now`` nothing is known."""
    results = [
        MIX.found(now.stage != "unsafe mix", now.blockers.get("unsafe_mix", "No partition is read by two members.")),
        *findings_of_members(before, now, limits),
        _storage(before, now),
        _metadata(now),
        _toggle(now, to_stage),
        PARITY.found(
            "kafka_ahead" not in now.blockers, now.blockers.get("kafka_ahead", ("Both stores hold the same offsets."))
        ),
        _shares(now),
    ]
    if now.effective_mode == "zookeeper":
        name = now.assignor
        results.append(
            ASSIGNOR.found(
                name is not None,
                f"The owner znodes match {name}." if name else ("The owner znodes match no known assignor."),
            )
        )
    return results


def findings_of_members(before: GroupState, now: GroupState, limits: Limits) -> list[Condition]:
    """The rules for every replacement of members, whoever coordinates the group; by two observations at it."""
    return [
        SETTLED.found(now.is_settled, _settled(now)),
        _stable(before, now, limits.min_stable_s),
        _lag(before, now),
        _commits(before, now),
        *([] if limits.canary is None else [_canary(now, limits.canary)]),
    ]


def after_one_reading(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Return the conditions; those of rules that compare two readings as unknown."""
    unknown = "Unknown after one observation; the next observation follows."
    return tuple(
        replace(each, is_met=None, sentence=unknown) if each.check_id in _OF_TWO_READINGS else each
        for each in conditions
    )


def _settled(now: GroupState) -> str:
    if now.unconsumed:
        return f"No member owns {listed(now.unconsumed)}."
    n_partitions = quantity(len(now.partitions), "partition")
    return f"Each of {n_partitions} is owned; the Kafka group is {now.kafka_state or 'not there'}."


def _stable(before: GroupState, now: GroupState, wanted_s: float) -> Condition:
    same = {each.member_id for each in before.members} == {each.member_id for each in now.members}
    if not same:
        return STABLE.found(False, "A member came or went between the two observations.")
    if now.youngest_at is None:
        return STABLE.found(
            True,
            ("The members did not change between the two observations; Kafka does not record when a member joined."),
        )
    return _age(before, now, now.youngest_at, wanted_s)


def _age(before: GroupState, now: GroupState, youngest_at: datetime, wanted_s: float) -> Condition:
    """By ZooKeeper's clock alone where its znodes show enough of it; else that against this machine's."""
    asked = f"{wanted_s:g} s are required"
    least_s = ((now.zookeeper_at or youngest_at) - youngest_at).total_seconds()
    if least_s >= wanted_s or now.zookeeper_at != before.zookeeper_at:
        return STABLE.found(least_s >= wanted_s, f"The newest member registered {least_s:.0f} s ago or more; {asked}.")
    age_s = (now.observed_at - youngest_at).total_seconds()
    clocks = f"by ZooKeeper's clock ({youngest_at.isoformat()}) against this machine's ({now.observed_at.isoformat()})"
    if age_s < 0:
        return STABLE.found(
            None, (f"The newest member registered {-age_s:.0f} s in the future {clocks}: set the clocks.")
        )
    return STABLE.found(age_s >= wanted_s, f"The newest member registered {age_s:.0f} s ago, {clocks}; {asked}.")


def _lag(before: GroupState, now: GroupState) -> Condition:
    both = [pair for pair in now.offsets if pair in before.offsets]
    known = [pair for pair in both if before.offsets[pair].lag is not None and now.offsets[pair].lag is not None]
    if len(known) < len(both):
        return LAG.found(None, f"The lag of {quantity(len(both) - len(known), 'partition')} is not known.")
    first, last = (sum(each.offsets[pair].lag or 0 for pair in known) for each in (before, now))
    went = f"grew by {last - first:,}" if last > first else f"shrank by {first - last:,}" if last < first else "stayed"
    told_s = f"{seconds_between(before, now):.0f} s"
    return LAG.found(
        last - first <= GROWN_BY,
        f"The lag {went}, from {first:,} to {quantity(last, 'record')}, in {told_s}; {GROWN_BY:,} are tolerated.",
    )


def _commits(before: GroupState, now: GroupState) -> Condition:
    silent = silent_members(before, now)
    if not silent:
        return COMMITS.found(True, "Each member with unread records committed offsets.")
    named = "; ".join(f"{member_id} owns {listed(pairs)}" for member_id, pairs in sorted(silent.items())[:SHOWN])
    more = f"; and {quantity(len(silent) - SHOWN, 'member')} more" if len(silent) > SHOWN else ""
    seconds = f"{seconds_between(before, now):.0f} s"
    return COMMITS.found(
        False,
        f"{named}{more}: records are left, and nothing was committed in {seconds}. The member reads nothing, or "
        "commits less often (old consumers commit every 60 s, unless auto.commit.interval.ms is set).",
    )


def _storage(before: GroupState, now: GroupState) -> Condition:
    """While the Kafka group has members its coordinator refuses what old ones would commit there: nothing moves."""
    if not now.count(OZKCC):
        return STORAGE.found(True, "No old consumer is a member.")
    if now.count(MEZKCC):
        return STORAGE.found(True, "Kafka's coordinator accepts no commit of old consumers while MEZKCCs are members.")
    seen = storage(before, now)
    return STORAGE.found(None if seen.commits is None else not seen.commits, seen.sentence)


def _canary(now: GroupState, canary: int) -> Condition:
    n_members = len(now.members)
    return CANARY.found(
        canary == 1 or canary * 3 <= n_members, f"The canary would be {canary} of {quantity(n_members, 'member')}."
    )


def _metadata(now: GroupState) -> Condition:
    """GroupMetadataValue holds each member's subscription and assignment."""
    topics = sum(len(topic.encode()) + 8 for topic in now.subscribed)
    size = len(now.members) * (MEMBER_BYTES + 2 * topics) + 4 * len(now.partitions)
    return METADATA.found(
        size <= LARGEST_METADATA,
        f"The Kafka group's metadata has about {size:,} bytes; the limit is about {LARGEST_METADATA:,}.",
    )


def _toggle(now: GroupState, to_stage: str) -> Condition:
    """With KCs alone no member follows the toggle; the first MEZKCC that comes back would."""
    holds = describe_toggle(now.mode)
    if now.count(KC) and now.mode != "kafka":
        return TOGGLE.found(False, f"KCs are members, and {holds}. Set the toggle to 'kafka' before a MEZKCC joins.")
    if now.count(OZKCC) and now.mode == "kafka":
        return TOGGLE.found(
            False,
            "The toggle holds 'kafka' while old consumers are members: the group follows it once the last one leaves.",
        )
    return TOGGLE.found(True, f"{holds[0].upper()}{holds[1:]}.")


def _shares(now: GroupState) -> Condition:
    streams = {sum(topics.values()) for topics in now.threads.values()}
    sentence = "In Kafka's assignment each member has one share, however many streams it has"
    return SHARES.found(len(streams) <= 1, f"{sentence}: here are members with {_either(streams)}.")


def _either(counts: Iterable[int]) -> str:
    return " and ".join(str(count) for count in sorted(counts)) or "none"


def flavours_of(stage: str) -> tuple[str, ...]:
    """Return who is a member in a stage."""
    return {
        "OZKCC": (OZKCC,),
        "canary MEZKCC": (OZKCC, MEZKCC),
        "all MEZKCC": (MEZKCC,),
        "Kafka coordination": (MEZKCC,),
        "canary KC": (MEZKCC, KC),
        "all KC": (KC,),
    }[stage]
