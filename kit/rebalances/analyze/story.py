"""Write the logs' story of each group, in sentences to paste into a ticket."""

from __future__ import annotations

from typing import Any

import polars as pl
from narwhals.typing import IntoDataFrame

from kit.rebalances.analyze.attempts import folded, member_rebalances, rebalances
from kit.rebalances.analyze.findings import coordinator_of, listed, log_findings, seconds, term
from kit.rebalances.analyze.remarks import log_remarks
from kit.text.quantity import quantity
from kit.text.time_format import worded


def story(events: IntoDataFrame) -> list[str]:
    """Each consumer's way into each generation, in order; the generations as a whole; the findings."""
    logs = folded(events)
    return sentences(member_rebalances(logs), rebalances(logs), log_remarks(logs), log_findings(logs))


def sentences(
    members: pl.DataFrame, generations: pl.DataFrame, remarks: pl.DataFrame, findings: pl.DataFrame
) -> list[str]:
    """Return ``story`` from ``tables.MEMBER_REBALANCES``, ``REBALANCES``, ``LOG_REMARKS`` and ``LOG_FINDINGS``."""
    asked: dict[Any, Any] = {}
    known_lives = pl.concat([frame.select("group_id", "life") for frame in (members, generations)])
    again = set(known_lives.filter(pl.col("life") > 1)["group_id"])
    rows = (_with_number(row, again) for row in members.iter_rows(named=True))
    lines = [_member_sentence(_without_repeats(row, asked)) for row in rows]
    known_reasons = set(members["reason"].drop_nulls())
    rows = (_with_number(row, again) for row in generations.iter_rows(named=True))
    lines += [_generation_sentence(row, known_reasons) for row in rows]
    return [*lines, *remarks["sentence"], *findings["sentence"]]


def _with_number(row: dict[str, Any], again: set[str]) -> dict[str, Any]:
    """With what its generation is called; ``again``: groups with several lives, where a number alone is not enough."""
    life = f" of life {row['life']}" if row["group_id"] in again else ""
    return row | {"number": f"{term(row['is_epoch'])} {row['generation']}{life}"}


def _without_repeats(row: dict[str, Any], asked: dict[Any, Any]) -> dict[str, Any]:
    """Report a consumer's settings of a join, and the brokers that it knew, once, and when they change."""
    new = {name: row[name] for name in ("session_timeout_ms", "protocols", "brokers")}
    who = (row["group_id"], row["consumer"])
    before, asked[who] = asked.get(who, {}), {**asked.get(who, {}), **{k: v for k, v in new.items() if v is not None}}
    return row | {name: None for name, value in new.items() if before.get(name) == value}


def _member_sentence(row: dict[str, Any]) -> str:
    way = [
        f"knows the brokers {', '.join(row['brokers'])}" if row["brokers"] else None,
        _found(row),
        f"gave up {listed(row['revoked'])}" if row["revoked"] else None,
        _asked(row),
        _generation(row),
        {True: "as leader", False: f"as follower of {row['leader_id']}" if row["leader_id"] else "as follower"}.get(
            row["is_leader"]
        ),
        _took(row["sync_ms"], f"synced (assigned by {row['assignor']})" if row["assignor"] else "synced"),
        None if row["owned"] is None else f"has {listed(row['owned'])}",
        f"asked for the committed offsets of {listed(row['fetched'])}" if row["fetched"] else None,
        f"starts at {', '.join(row['positions'])}" if row["positions"] else None,
        f"found no committed offset of {listed(row['without_offset'])}" if row["without_offset"] else None,
        _outcome(row),
    ]
    why = f" Why: {row['reason'].rstrip('.')}." if row["reason"] and row["reason"] != row["failure"] else ""
    who = f"{row['consumer']}" + (f" ({row['member_id']})" if row["member_id"] not in (None, row["consumer"]) else "")
    start = f"{_when(row['started_at'], row['is_utc'])} Group {row['group_id'] or '?'}: {who} "
    actions = ", ".join(filter(None, way)) or "has an assignment that its log does not list"
    return f"{start}{actions}.{why}"


def _generation_sentence(row: dict[str, Any], known_reasons: set[str]) -> str:
    """``known_reasons``: the reasons that members gave; their own sentences have them."""
    parts = [
        _members(row),
        _decided_by(row),
        f"joined: {', '.join(row['joined'])}" if row["joined"] else None,
        f"left: {', '.join(row['left'])}" if row["left"] else None,
        f"last to join was {row['last_joiner']}, {seconds(row['join_spread_ms'])} after the first"
        if row["join_spread_ms"]
        else None,
        f"partitions of no known member of these logs: {listed(row['partitions_without_known_owner'])}"
        if row["partitions_without_known_owner"]
        else None,
        f"moved: {listed(row['moved'])}" if row["moved"] else None,
        f"without a log here: {', '.join(row['members_without_log'])}" if row["members_without_log"] else None,
    ]
    at = row["ended_at"] if row["started_at"] is None else row["started_at"]
    subject = f"{row['number']}{_course(row)}"
    start = f"{_when(at, row['is_utc'])} Group {row['group_id']}: {subject}: "
    why = [reason.rstrip(".") for reason in row["reasons"] if reason not in known_reasons]
    return start + "; ".join(filter(None, parts)) + "." + (f" Why: {'; '.join(why)}." if why else "")


def _decided_by(row: dict[str, Any]) -> str | None:
    """Return who decided on the assignment: the leader, or in the new protocol the coordinator's assignor."""
    if row["leader_id"]:
        return f"led by {row['leader_id']}"
    if not row["is_epoch"]:
        return "no leader named"
    return f"assigned by {row['assignor']}" if row["assignor"] else None


def _course(row: dict[str, Any]) -> str:
    """Return how long it took; of a beginning or an end alone, that the other is unknown."""
    if row["duration_ms"] is not None:
        return f" took {seconds(row['duration_ms'])}"
    if row["started_at"] is not None and row["ended_at"] is None:
        return " began, its end is unknown"
    return " was complete, its beginning is unknown" if row["started_at"] is None and row["ended_at"] else ""


def _members(row: dict[str, Any]) -> str:
    seen, count = row["members"], row["n_members"]
    if seen is None:
        return "members not named" if count is None else f"{quantity(count, 'member')}, not named"
    of = "" if count in (None, len(seen)) else f"{len(seen)} of "
    return f"{of}{quantity(count if of else len(seen), 'member')} seen"


def _when(at: Any, is_utc: bool) -> str:
    return "(no time)" if at is None else worded(at, is_utc)


def _found(row: dict[str, Any]) -> str | None:
    """Return how long the coordinator was searched for; of a rebalance without an end, which coordinator that was."""
    known = row["coordinator"] or row["coordinator_id"] is not None
    alone = f"had the coordinator {coordinator_of(row)}" if known and row["outcome"] != "assigned" else None
    return _took(row["discover_ms"], f"found the coordinator {coordinator_of(row)}") or alone


def _asked(row: dict[str, Any]) -> str | None:
    """Return the settings of the join."""
    asked = [
        f"a session time-out of {seconds(row['session_timeout_ms'])}"
        if row["session_timeout_ms"] is not None
        else None,
        f"the assignors {', '.join(row['protocols'])}" if row["protocols"] else None,
    ]
    request = " and ".join(filter(None, asked))
    return f"asked to join with {request}" if request else None


def _generation(row: dict[str, Any]) -> str | None:
    """Members of the new protocol join nothing: the group's epoch becomes theirs."""
    if row["joined_at"]:
        joined = "joined" if row["generation"] is None else f"joined {row['number']}"
        return _took(row["join_ms"], joined) or joined
    return None if row["generation"] is None else f"is in {row['number']}"


def _outcome(row: dict[str, Any]) -> str | None:
    """Return that the rebalance failed or has no end, and why; of a success at last, that it had failed before."""
    why = f": {row['failure'].rstrip('.')}" if row["failure"] else ""
    if row["outcome"] == "failed":
        return f"did not complete the rebalance{why}"
    before = f"failed before{why}" if why else None
    return ", ".join(
        filter(
            None, [before, "has not completed the rebalance where the log ends" if row["outcome"] == "open" else None]
        )
    )


def _took(ms: int | None, action: str) -> str | None:
    return None if ms is None else f"{action} in {seconds(ms)}"
