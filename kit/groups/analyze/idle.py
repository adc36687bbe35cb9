"""Groups that are not in use: since when, by what evidence, and what of theirs is gone already."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.groups.analyze.coverage import live_members, unreadable_groups
from kit.groups.analyze.random_names import name_rule
from kit.text.sentences import counted

CLASSES = ACTIVE, IDLE, DEAD, RANDOM_NAME = "active", "idle", "dead", "random name"
MINUTE_MS = 60_000
DAY_MS = 86_400_000
DEAD_AFTER_DAYS = 7
"""Kafka's own default (``offsets.retention.minutes``): as long after its last member it forgets a group's offsets."""
_KEY = ["group_id", "store"]


@nw.narwhalify
def idle_groups(
    groups: FrameT,
    members: FrameT,
    committed_offsets: FrameT,
    topic_partitions: FrameT,
    group_lag: FrameT,
    at_ms: int,
    activity: FrameT | None = None,
    dead_after_ms: int = DEAD_AFTER_DAYS * DAY_MS,
) -> FrameT:
    """Every group in each store that knows it: whether it is in use, and since when it has no members.

    Args:
        committed_offsets: with written_ms, when the offset was written (null where the store does not keep it: Kafka).
        at_ms: now (epoch).
        activity: group_id, store, committed_ms, present_ms (epoch, null is unknown): when a history or the
            coordinators' topic saw the group's last commit, and last a member.

    Columns:
        group_id, store: the key.
        class: one of ``CLASSES``; null: it can't be reported. ``active``: it has members, in either store. Without:
            ``dead`` if no topic of its offsets exists, or neither commit nor member was seen for ``dead_after_ms``;
            else ``random name`` if its name is of that form; else ``idle`` if it was seen since then.
        state: the coordinator's.
        n_members: in this store. null: unknown.
        last_commit_ms, commit_age_ms: when the newest commit was made (epoch), how long ago; at least 0; null: unknown.
        last_seen_ms: the same, or when it last had a member, if that was later.
        n_committed, n_topics, n_gone: partitions with an offset in the store; their topics, and how many of these
            don't exist; null where the group could not be read.
        lag: in records, see ``group_lag``.
        name_rule: what makes the name appear random, see ``name_rule``.
        evidence: why it is in this class, in a sentence.

    >>> import polars as pl
    >>> from kit.tables import schema
    >>> from kit.tables.polars import rows_of
    >>> groups = rows_of(schema.GROUPS, group_id=["live", "left"], source="kafka", state=["Stable", "Empty"])
    >>> members = rows_of(schema.MEMBERS, group_id="live", source="kafka", member_id="a")
    >>> left = {"group_id": "left", "store": "kafka"}
    >>> offsets = rows_of(schema.COMMITTED_OFFSETS, **left, topic="t", partition=0, committed_offset=5)
    >>> offsets, topics = offsets.with_columns(written_ms=pl.lit(0)), rows_of(schema.TOPIC_PARTITIONS, topic="t")
    >>> lags = pl.DataFrame(left | {"lag": [3]})
    >>> rows = idle_groups(groups, members, offsets, topics, lags, at_ms=8 * DAY_MS)
    >>> rows.sort("group_id").select("group_id", "class", "n_members", "commit_age_ms", "lag").rows()
    [('left', 'dead', 0, 691200000, 3), ('live', 'active', 1, None, None)]
    """
    rows = groups.select("group_id", "state", "error", store="source")
    rows = _with_members(rows, members, unreadable_groups(groups))
    rows = rows.join(_offsets(committed_offsets, topic_partitions), on=_KEY, how="left")
    rows = rows.join(group_lag.select(*_KEY, "lag"), on=_KEY, how="left")
    if activity is None:
        rows = rows.with_columns(committed_ms=nw.lit(None, nw.Int64), present_ms=nw.lit(None, nw.Int64))
    else:
        rows = rows.join(activity.select(*_KEY, "committed_ms", "present_ms"), on=_KEY, how="left")
    rows = rows.with_columns(
        last_commit_ms=nw.max_horizontal("written_ms", "committed_ms"),
        name_rule=name_rule(),
        **{name: _count(name) for name in ("n_committed", "n_topics", "n_gone")},
    )
    rows = rows.with_columns(last_seen_ms=nw.max_horizontal("last_commit_ms", "present_ms"))
    rows = rows.with_columns(
        commit_age_ms=_age("last_commit_ms", at_ms),
        seen_age_ms=_age("last_seen_ms", at_ms),
        present_age_ms=_age("present_ms", at_ms),
    )
    rows = rows.with_columns(_class(dead_after_ms).alias("class"))
    return rows.select(
        *_KEY,
        "class",
        "state",
        "n_members",
        "last_commit_ms",
        "commit_age_ms",
        "last_seen_ms",
        "n_committed",
        "n_topics",
        "n_gone",
        "lag",
        "name_rule",
        evidence=_evidence(),
    )


def _with_members(rows: FrameT, members: FrameT, unreadable: FrameT) -> FrameT:
    """n_members here, n_elsewhere in the other store; null here where this store could not be read."""
    members = live_members(members)
    here = members.group_by("group_id", "source").agg(n_here=nw.len()).select("group_id", "n_here", store="source")
    everywhere = members.group_by("group_id").agg(n_everywhere=nw.len())
    rows = rows.join(here, on=_KEY, how="left").join(everywhere, on="group_id", how="left")
    rows = rows.join(unreadable, on="group_id", how="left")
    n_here, n_all = (nw.col(name).fill_null(0).cast(nw.Int64) for name in ("n_here", "n_everywhere"))
    return rows.with_columns(
        n_members=nw.when(nw.col("error").is_null() | (n_here > 0)).then(n_here), n_elsewhere=n_all - n_here
    )


def _offsets(committed_offsets: FrameT, topic_partitions: FrameT) -> FrameT:
    """Per group and store: written_ms of the newest offset, n_committed, n_topics, n_gone."""
    held = committed_offsets.filter(~nw.col("committed_offset").is_null() | ~nw.col("error").is_null())
    known = topic_partitions.select("topic").unique().with_columns(is_there=nw.lit(1))
    topics = held.select(*_KEY, "topic").unique().join(known, on="topic", how="left")
    topics = topics.with_columns(is_gone=nw.col("is_there").is_null().cast(nw.Int64))
    counts = topics.group_by(*_KEY).agg(n_topics=nw.len(), n_gone=nw.col("is_gone").sum())
    totals = held.group_by(*_KEY).agg(n_committed=nw.len(), written_ms=nw.col("written_ms").max())
    return totals.join(counts, on=_KEY, how="left")


def _count(name: str) -> nw.Expr:
    """Without rows it is 0, unless the group could not be read: then it is unknown."""
    known = nw.when(nw.col("error").is_null()).then(nw.col(name).fill_null(0)).otherwise(nw.col(name))
    return known.cast(nw.Int64)


def _age(name: str, at_ms: int) -> nw.Expr:
    """A clock that is ahead makes no negative age."""
    age = nw.lit(at_ms, nw.Int64) - nw.col(name)
    return nw.when(age < 0).then(nw.lit(0, nw.Int64)).otherwise(age)


def _all_gone() -> nw.Expr:
    return (nw.col("n_topics") > 0) & (nw.col("n_gone") == nw.col("n_topics"))


def _is_active() -> nw.Expr:
    return (nw.col("n_members").fill_null(0) > 0) | (nw.col("n_elsewhere") > 0)


def _class(dead_after_ms: int) -> nw.Expr:
    age = nw.col("seen_age_ms")
    return (
        nw.when(_is_active())
        .then(nw.lit(ACTIVE))
        .when(~nw.col("group_error").is_null())
        .then(nw.lit(None, nw.String))
        .when(_all_gone() | (age >= dead_after_ms).fill_null(False))
        .then(nw.lit(DEAD))
        .when(~nw.col("name_rule").is_null())
        .then(nw.lit(RANDOM_NAME))
        .when(~age.is_null())
        .then(nw.lit(IDLE))
        .otherwise(nw.lit(None, nw.String))
    )


def _evidence() -> nw.Expr:
    here = nw.concat_str([nw.lit("The group has "), counted(nw.col("n_members"), "member"), nw.lit(".")])
    where = nw.when(nw.col("store") == "kafka").then(nw.lit("zookeeper")).otherwise(nw.lit("kafka"))
    there = nw.concat_str(
        [
            nw.lit("The group has no member in this store, but "),
            counted(nw.col("n_elsewhere"), "member"),
            nw.lit(" in "),
            where,
        ]
    )
    unread = nw.concat_str([nw.lit("The group could not be read: "), nw.col("group_error")])
    return (
        nw.when(nw.col("n_members").fill_null(0) > 0)
        .then(here)
        .when(nw.col("n_elsewhere") > 0)
        .then(nw.concat_str([there, nw.lit(".")]))
        .when(~nw.col("group_error").is_null())
        .then(unread)
        .otherwise(
            nw.concat_str([nw.lit("The group has no member"), _commits(), _presence(), _gone(), _name(), nw.lit(".")])
        )
    )


def _commits() -> nw.Expr:
    clause = nw.concat_str([nw.lit("; the last commit was "), _duration("commit_age_ms"), nw.lit(" ago")])
    return (
        nw.when(~nw.col("commit_age_ms").is_null())
        .then(clause)
        .when(nw.col("n_committed") == 0)
        .then(nw.lit("; no offset is committed"))
        .otherwise(nw.lit("; the time of the last commit is unknown"))
    )


def _presence() -> nw.Expr:
    """Only where it reports more than the last commit."""
    is_later = (nw.col("present_ms") > nw.col("last_commit_ms")) | nw.col("last_commit_ms").is_null()
    clause = nw.concat_str([nw.lit("; the last member was seen "), _duration("present_age_ms"), nw.lit(" ago")])
    return nw.when(~nw.col("present_ms").is_null() & is_later).then(clause).otherwise(nw.lit(""))


def _gone() -> nw.Expr:
    n_gone, n_topics = nw.col("n_gone"), nw.col("n_topics")
    some = nw.concat_str(
        [nw.lit("; of "), counted(n_topics, "topic"), nw.lit(", "), n_gone.cast(nw.String), nw.lit(" no longer there")]
    )
    every = nw.concat_str([nw.lit("; no topic of its offsets exists any more")])
    return nw.when(_all_gone()).then(every).when(n_gone > 0).then(some).otherwise(nw.lit(""))


def _name() -> nw.Expr:
    clause = nw.concat_str([nw.lit("; its name holds "), nw.col("name_rule")])
    return nw.when(~nw.col("name_rule").is_null()).then(clause).otherwise(nw.lit(""))


def _duration(name: str) -> nw.Expr:
    def whole(unit_ms: int) -> nw.Expr:
        return (nw.col(name) // unit_ms).cast(nw.Int64)

    hour_ms = 60 * MINUTE_MS
    return (
        nw.when(nw.col(name) >= 2 * DAY_MS)
        .then(counted(whole(DAY_MS), "day"))
        .when(nw.col(name) >= 2 * hour_ms)
        .then(counted(whole(hour_ms), "hour"))
        .otherwise(counted(whole(MINUTE_MS), "minute"))
    )
