"""Compute what every figure of a scene has to be: by Kafka's own client and the records, as ``figure_scene`` has made
them.

Nothing of the code under test computes here. ``Wanted`` has, by subject and column, a value or a range that holds it.
A subject is (group, store, topic, partition); None where a figure is about more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeAlias

from confluent_kafka import Consumer, TopicPartition

from tests.servers.awaiting import SECONDS
from tests.servers.figure_scene import PARTITIONS, Group, Scene, settings_of

Subject: TypeAlias = "tuple[str | None, str | None, str | None, int | None]"
Wanted: TypeAlias = "dict[Subject, dict[str, Any]]"
RETENTION_MS = 7 * 86_400_000
"""Kafka's default of ``retention.ms``; of ``segment.ms`` too."""
CHECK_MS = 300_000
OTHER_KINDS = ("share", "streams")
"""Types of groups whose members no client of the scene names: any is right."""
SOMEBODY = object()


@dataclass(frozen=True)
class Span:
    """A time of which a test knows only between which bounds it lies."""

    least: float
    most: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.least <= value <= self.most

    def __str__(self) -> str:
        return f"{self.least:,.0f} … {self.most:,.0f}"


@dataclass(frozen=True)
class Log:
    """``times``: of each record that a consumer of committed records reads, by offset."""

    start: int
    end: int
    times: Mapping[int, int]

    def next_time(self, offset: int) -> int | None:
        """Return when the next record at or after this offset was made; None: none waits."""
        return next((at_ms for each, at_ms in sorted(self.times.items()) if each >= offset), None)

    @property
    def newest_ms(self) -> int:
        return max(self.times.values())


def read_logs(scene: Scene) -> dict[tuple[str, int], Log]:
    """By Kafka's client, from each log's start to its end."""
    more = {"group.id": "none", "isolation.level": "read_committed", "enable.partition.eof": True}
    found = {}
    with closing(Consumer({**settings_of(scene.lab), **more})) as consumer:
        for topic, n_partitions in PARTITIONS.items():
            for number in range(n_partitions):
                place = TopicPartition(topic, number, 0)
                start, end = consumer.get_watermark_offsets(place, SECONDS)
                place.offset = start
                consumer.assign([place])
                times = {}
                while (message := consumer.poll(SECONDS)) is not None and message.error() is None:
                    times[message.offset()] = message.timestamp()[1]
                found[topic, number] = Log(start, end, times)
    return found


class Truth:
    """``at_rest_ms`` is when the scene was complete (epoch); ages are asked for with the time of the observation."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.logs = scene, read_logs(scene)

    def partitions(self, since_ms: float = 0.0) -> Wanted:
        """Figures of each partition; ages of an observation that began at that time (epoch ms) and has ended now."""
        look = (since_ms, time.time() * 1000)
        return {
            (group.group_id, store, *place): self._partition(group, store, *place, look)
            for group in self.scene.groups.values()
            for store in stores_of(group)
            for place in places_of(group)
        }

    def _partition(self, group: Group, store: str, topic: str, number: int, look: tuple[float, float]) -> dict:
        log, offset = self.logs[topic, number], offsets_in(group, store).get(topic, {}).get(number)
        known: dict[str, Any] = dict.fromkeys(("lag_raw", "lag", "lag_retained", "expired_unread", "beyond_end"))
        if offset is not None:
            known = {
                "lag_raw": log.end - offset,
                "lag": max(0, log.end - offset),
                "lag_retained": max(0, log.end - max(offset, log.start)),
                "expired_unread": max(0, log.start - offset),
                "beyond_end": max(0, offset - log.end),
            }
        return {
            "committed_offset": offset,
            "log_start_offset": log.start,
            "log_end_offset": log.end,
            **known,
            "has_no_commit": offset is None,
            "is_stale": False,
            "is_upper_bound": False,
            "member_id": SOMEBODY if group.kind in OTHER_KINDS else self.scene.owner(group.group_id, topic, number),
            **_in_time(group, topic, log, offset, look),
        }

    def groups(self, since_ms: float = 0.0) -> Wanted:
        """By group and store: the sums of its partitions."""
        found: Wanted = {}
        for (group_id, store, *_), row in self.partitions(since_ms).items():
            found.setdefault((group_id, store, None, None), {}).setdefault("rows", []).append(row)
        return {subject: _sums(rows["rows"]) for subject, rows in found.items()}

    def members(self) -> Wanted:
        """By group and member: how many partitions it has."""
        found: Wanted = {}
        for (group, _, _), member in self.scene.owners.items():
            if not member.startswith(group):  # The coordinator knows no old consumer.
                owned = found.setdefault((group, None, member, None), {"n_partitions": 0})
                owned["n_partitions"] += 1
        return found

    def owners(self) -> Wanted:
        """By partition that is subscribed or owned: who reads it."""
        found: Wanted = {}
        for (group_id, topic, number), member in self.scene.owners.items():
            is_old = self.scene.groups[group_id].kind == "znode"
            found[group_id, None, topic, number] = {
                "zookeeper_owner": member if is_old else None,
                "zookeeper_thread": f"{member}-0" if is_old else None,
                "kafka_owner": None if is_old else member,
                "n_kafka_owners": int(not is_old),
                "n_owners": 1,
                "is_shared": False,
            }
        return found

    def idle(self) -> Wanted:
        """By group and store that knows it: who uses it."""
        found: Wanted = {}
        by_store = self.groups()
        for group in self.scene.groups.values():
            for store in sources_of(group):
                offsets = offsets_in(group, store)
                sums = by_store.get((group.group_id, store, None, None), {})
                found[group.group_id, store, None, None] = {
                    "n_members": self.scene.n_members(group)
                    if (store == "zookeeper") == (group.kind == "znode")
                    else 0,
                    "n_committed": sum(map(len, offsets.values())),
                    "n_topics": len(offsets),
                    "n_gone": 0,
                    "lag": sums.get("lag"),
                }
        return found

    def whole(self) -> Wanted:
        """By group alone."""
        by_store, rows = self.groups(), self.partitions()
        return {
            (group.group_id, None, None, None): self._whole(
                group,
                [row for subject, row in rows.items() if subject[0] == group.group_id],
                {store: by_store.get((group.group_id, store, None, None), {}) for store in stores_of(group)},
            )
            for group in self.scene.groups.values()
        }

    def _whole(
        self, group: Group, rows: list[dict[str, Any]], stores: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        lags = {store: stores.get(store, {}).get("lag") for store in ("zookeeper", "kafka")}
        used = _store_in_use(stores, lags)
        n_members = self.scene.n_members(group)
        n_partitions = len(places_of(group))
        is_share = group.kind == "share"
        n_bare = 0 if is_share else sum(row["has_no_commit"] and row["member_id"] is not None for row in rows)
        n_idle = max(0, n_members - n_partitions) if n_members else 0
        return {
            "n_members": n_members,
            "n_idle": n_idle,
            "n_partitions": n_partitions,
            "n_unowned": max((each["n_unowned"] for each in stores.values() if each), default=0),
            "n_upper_bounds": 0,
            "lag": lags.get(used or ""),
            "lag_retained": stores[used]["lag_retained"] if used else None,
            "store_in_use": used,
            "zookeeper_lag": lags["zookeeper"],
            "kafka_lag": lags["kafka"],
            "stale_store": None,
            "n_beyond_end": max((each["n_beyond_end"] for each in stores.values() if each), default=0),
            "n_unknown": sum(each["n_unknown"] for each in stores.values() if each),
            "is_unreadable": False,
            "n_findings": n_bare + (n_idle > 0 and group.kind != "connect"),
        }


def stores_of(group: Group) -> list[str]:
    held = [store for store in ("zookeeper", "kafka") if offsets_in(group, store)]
    return held or ["zookeeper" if group.kind == "znode" else "kafka"]


def sources_of(group: Group) -> list[str]:
    """The stores that know the group."""
    is_old = bool(group.znodes) or group.kind == "znode"
    is_known = bool(group.offsets) or (group.kind != "znode" and group.n_members > 0)
    return ["zookeeper"] * is_old + ["kafka"] * is_known


def offsets_in(group: Group, store: str) -> Mapping[str, Mapping[int, int]]:
    return group.offsets if store == "kafka" else group.znodes


def places_of(group: Group) -> set[tuple[str, int]]:
    """Partitions with an offset in either store, or of a topic that a member subscribes to."""
    held = {(topic, number) for each in (group.offsets, group.znodes) for topic, at in each.items() for number in at}
    subscribes = group.n_members and group.kind in ("consumer", "znode", *OTHER_KINDS)
    topics = group.topics if subscribes else ()
    return held | {(topic, number) for topic in topics for number in range(PARTITIONS[topic])}


def _in_time(group: Group, topic: str, log: Log, offset: int | None, look: tuple[float, float]) -> dict[str, Any]:
    """Age and outlook of what the group reads next, at rest: nothing is read, nothing is written."""
    names = ("time_lag_ms", "close_ms", "is_never_closed", "is_never_deleted", "trend", "until_deleted_ms")
    if offset is None:
        return dict.fromkeys(names) | {"trend": "unknown"}
    if offset > log.end:
        return dict.fromkeys(names) | {"trend": "beyond the end"}
    at_ms = log.next_time(offset)
    if at_ms is None:
        caught_up = {"time_lag_ms": 0, "close_ms": 0, "is_never_closed": False, "is_never_deleted": True}
        return caught_up | {"trend": "caught up", "until_deleted_ms": None}
    is_kept = topic.endswith("compacted")
    left = log.newest_ms + RETENTION_MS
    return {
        "time_lag_ms": Span(look[0] - at_ms, look[1] - at_ms),
        "close_ms": None,
        "is_never_closed": True,
        "is_never_deleted": is_kept,
        "trend": "standing",
        "until_deleted_ms": None if is_kept else Span(left - look[1], left + CHECK_MS - look[0]),
    }


def _sums(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    rows = list(rows)

    def total(name: str) -> int | None:
        known = [row[name] for row in rows if row[name] is not None]
        return sum(known) if known else None

    lags = [row["lag"] for row in rows if row["lag"] is not None]
    return {
        "n_partitions": len(rows),
        "n_unowned": sum(row["member_id"] is None for row in rows),
        "n_unknown": sum(row["lag"] is None for row in rows),
        "n_without_commit": sum(row["has_no_commit"] for row in rows),
        "n_beyond_end": sum((row["beyond_end"] or 0) > 0 for row in rows),
        "n_upper_bounds": 0,
        "lag": total("lag"),
        "max_lag": max(lags, default=None),
        "lag_retained": total("lag_retained"),
        "expired_unread": total("expired_unread"),
    }


def _store_in_use(stores: Mapping[str, Mapping[str, Any]], lags: Mapping[str, int | None]) -> str | None:
    """The one with a lag; of two the one that lacks fewer partitions, then the one that is less behind, then Kafka."""
    known = [store for store, lag in lags.items() if lag is not None]
    order = {store: (stores[store]["n_without_commit"], lags[store], store != "kafka") for store in known}
    return min(known, key=lambda store: order[store], default=None)


def is_right(shown: Any, wanted: Any) -> bool:
    if wanted is SOMEBODY:
        return isinstance(shown, str)
    if isinstance(wanted, Span):
        return shown in wanted
    if isinstance(shown, float) and isinstance(wanted, int | float) and not isinstance(wanted, bool):
        return math.isclose(shown, wanted)
    return bool(shown == wanted)
