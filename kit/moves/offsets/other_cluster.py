"""Plans that copy a group's offsets to another cluster, whose topics are copies: by the records on both sides.

Offsets are numbers of one log: the copy of a record has another one. A leader epoch is never copied. The plan is one of
the cluster that is written: it is approved and executed with that cluster's profile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from kit.clients.broker_client import BrokerClient, Deadline
from kit.clients.brokers import Listed, fetch_leaders, list_offsets
from kit.clients.cluster import Cluster, librdkafka_settings
from kit.engine.model.plan import Plan
from kit.errors import InputError
from kit.groups.read.offset_syncs import Syncs, read_syncs
from kit.groups.read.record_prints import Print, Window, read_prints
from kit.moves.offsets.build import build_plan
from kit.moves.offsets.clamping import GONE, Excluded, Selected
from kit.moves.offsets.equal_records import (
    METHODS,
    RECORD,
    SYNCS,
    TIMESTAMP,
    Translation,
    by_equal_record,
    by_sync,
    nearest,
)
from kit.moves.offsets.fetch import Stores, fetch_logs, fetch_stores, fetch_unsure
from kit.moves.offsets.inputs import PlanInputs, PlanOptions
from kit.moves.offsets.moves import NOTHING, OffsetTarget, item_of
from kit.moves.offsets.plan import gaps
from kit.moves.offsets.refusals import picked_offsets, refuse_merging, refuse_unread
from kit.moves.offsets.resets import bounds
from kit.moves.offsets.rules import source_finding
from kit.moves.offsets.selection import Key, Place, Selection
from kit.tables.groups import KAFKA, LogOffset
from kit.text.quantity import quantity

BEFORE, AFTER = 20, 5
"""Offsets on each side of a committed offset whose records are read on the source."""
MOST = 2_000
"""Records of the copy that are compared with them, from the first record of their time on."""


@dataclass(frozen=True, slots=True)
class OtherCluster:
    """The relation of the other cluster's names and offsets to this one's.

    ``by`` is one of ``METHODS``; ``topic_prefix`` is put before each topic's name, as MirrorMaker 2 does;
    ``to_groups`` maps a group that is read to the one that is written; ``syncs_topic`` is on the source cluster.

    Raises:
        InputError: there is no such method, or its topic is not named.
    """

    by: str = RECORD
    topic_prefix: str = ""
    to_groups: Mapping[str, str] = field(default_factory=dict)
    syncs_topic: str | None = None

    def __post_init__(self) -> None:
        if self.by not in METHODS:
            raise InputError(f"offsets can't be found by {self.by!r}; choose one of {', '.join(METHODS)}")
        if (self.by == SYNCS) != (self.syncs_topic is not None):
            raise InputError("--by syncs and --syncs-topic belong together: name both, or none")

    def copy_of(self, place: Place) -> Place:
        return self.topic_prefix + place[0], place[1]


def plan_copy_to_cluster(
    source: Cluster, target: Cluster, selection: Selection, other: OtherCluster, options: PlanOptions
) -> Plan:
    """Copy committed offsets of Kafka groups from one cluster to another, by the records on both sides.

    Each offset is translated as ``other.by`` reports; ``record`` and ``syncs`` fall back to the timestamp of the next
    record. The plan names the method, the distance and the doubt of each partition. An offset that can't be translated
    is left out and listed.

    Raises:
        InputError: both are one cluster, or two groups would be copied into one.
        NotFound: a named group, topic or partition has no offset on the source; no such topic of syncs.
        NothingToDo: every offset on the target has the wanted value already.
        UnsafePlan: a rule of ``kit.moves.offsets.rules`` forbids the plan.
        ConnectError, ReadError: a cluster could not be read.
    """
    if source.confirmed_id() == target.confirmed_id():
        raise InputError(f"{source.name!r} and {target.name!r} are one cluster, {source.cluster_id}: nothing to copy")
    groups = other.to_groups
    there = fetch_stores(source, selection.accepts)
    picked = picked_offsets(there, KAFKA, selection)
    written = {each: groups.get(each, each) for each in sorted({key[0] for key in picked})}
    refuse_merging(KAFKA, "kafka of the other cluster", written)
    stores = fetch_stores(target, set(written.values()).__contains__)
    places = {key[1:] for key in picked}
    logs = fetch_logs(target, {other.copy_of(place)[0] for place in places})
    unsure = fetch_unsure(target, {other.copy_of(place)[0] for place in places} - {topic for topic, _ in logs})
    translated = _Translator(source, target, other, logs, unsure).translate(picked)
    offsets = {(written[key[0]], *other.copy_of(key[1:])): each for key, each in translated.items()}
    inputs = PlanInputs(
        target,
        f"copy offsets from cluster {source.name} to kafka",
        KAFKA,
        stores,
        logs,
        options,
        parameters={
            "source_cluster_id": source.cluster_id,
            "groups": tuple(written.items()),
            "by": other.by,
            "translation": {item_of(key): _describe(each) for key, each in sorted(offsets.items())},
        },
        unread=refuse_unread(selection, there.groups(KAFKA), KAFKA),
        risks=(
            *_risks(source, offsets),
            *(f"Cluster {source.name}: {gap}" for gap in gaps(source, there, KAFKA, selection)),
        ),
        findings=(source_finding({each: there.group(KAFKA, each) for each in written}),),
    )
    return build_plan(inputs, [_selected(stores, key, each) for key, each in sorted(offsets.items())])


def _describe(each: Translation | str) -> str:
    return each if isinstance(each, str) else each.sentence


def _selected(stores: Stores, key: Key, each: Translation | str) -> Selected:
    before = stores.group(KAFKA, key[0]).offsets.get(key[1:], NOTHING)
    return Excluded(key, each) if isinstance(each, str) else OffsetTarget(key, before, each.offset)


def _risks(source: Cluster, offsets: Mapping[Key, Translation | str]) -> tuple[str, ...]:
    found = [each for each in offsets.values() if isinstance(each, Translation)]
    methods = Counter(each.method for each in found)
    doubtful = sum(bool(each.doubt) for each in found)
    how = ", ".join(f"{n:,} by {name}" for name, n in sorted(methods.items()))
    return (
        f"{quantity(len(found), 'offset')} translated: {how}; of {doubtful:,} it is in doubt where the group continues,"
        " see the parameter translation",
        f"Keep the groups stopped on cluster {source.name}: their later commits there are not copied, and"
        " the run does not read that cluster",
    )


class _Translator:
    """Reads both clusters in batches. A translation, or why there is none, by partition and offset of the source."""

    def __init__(
        self,
        source: Cluster,
        target: Cluster,
        other: OtherCluster,
        logs: Mapping[Place, LogOffset],
        unsure: Mapping[str, str],
    ) -> None:
        """``unsure``: topics that the target does not list, and that may exist there all the same, with the reason."""
        self._source, self._target, self._other, self._logs, self._unsure = source, target, other, logs, unsure
        self._syncs: Syncs = {}

    def translate(self, picked: Mapping[Key, object]) -> dict[Key, Translation | str]:
        """Groups that share an offset share its translation; offsets of one partition are read one after another."""
        if self._other.syncs_topic is not None:
            self._syncs = read_syncs(librdkafka_settings(self._source.profile), self._other.syncs_topic)
        logs = fetch_logs(self._source, {topic for _, topic, _ in picked})
        wanted = {(key[1:], stored.offset) for key, stored in picked.items()}  # type: ignore[attr-defined]
        found: dict[tuple[Place, int], Translation | str] = {}
        while layer := dict(sorted(wanted - found.keys(), reverse=True)):
            found |= {(place, layer[place]): each for place, each in self._layer(layer, logs).items()}
        return {key: found[key[1:], stored.offset] for key, stored in picked.items()}  # type: ignore[attr-defined]

    def _layer(self, offsets: Mapping[Place, int], logs: Mapping[Place, LogOffset]) -> dict[Place, Translation | str]:
        """One offset of each partition."""
        why = {place: self._hindrance(place, offset, logs) for place, offset in offsets.items()}
        clear = {place: offset for place, offset in offsets.items() if why[place] is None}
        ends = {place: bounds(logs[place]) or (0, 0) for place in clear}
        windows = {
            place: Window(max(ends[place][0], offset - BEFORE), ends[place][1], partial(_is_behind, offset + AFTER))
            for place, offset in clear.items()
        }
        prints, failed = read_prints(librdkafka_settings(self._source.profile), windows)
        source = {place: nearest(offset, prints[place]) for place, offset in clear.items()}
        copy, unread = self._copies({place: source[place] for place in clear if place not in failed})
        failed |= unread
        at_time = self._at_time({place: (offset, source[place]) for place, offset in clear.items()})
        return {
            place: why[place] or failed.get(place) or self._one(place, offset, source[place], copy[place], at_time)
            for place, offset in offsets.items()
        }

    def _hindrance(self, place: Place, offset: int, logs: Mapping[Place, LogOffset]) -> str | None:
        here, there = bounds(logs.get(place)), bounds(self._logs.get(self._other.copy_of(place)))
        if here is None or there is None:
            topic = place[0] if here is None else self._other.copy_of(place)[0]
            cluster, why = (self._source, GONE) if here is None else (self._target, self._unsure.get(topic, GONE))
            return f"cluster {cluster.name}, {topic}-{place[1]}: {why}"
        if offset > here[1]:
            return f"the offset {offset} is beyond the end of the log, {here[1]}: the group's position is lost"
        return None

    def _one(
        self, place: Place, offset: int, source: list[Print], copy: list[Print], at_time: Mapping[Place, int | None]
    ) -> Translation | str:
        if self._other.by == SYNCS and (found := by_sync(offset, self._syncs.get(place, []))):
            return found
        if self._other.by == RECORD and (found := by_equal_record(offset, source, copy)):
            return found
        if place not in at_time:
            return "near the offset, the source has no record with a timestamp that a producer set"
        end = bounds(self._logs[self._other.copy_of(place)])
        at = at_time[place]
        doubt = "records out of the order of time are read again or not at all"
        if at is None:
            return Translation(end[1] if end else 0, TIMESTAMP, None, "all records of the copy are older")
        return Translation(at, TIMESTAMP, None, doubt)

    def _copies(self, source: Mapping[Place, list[Print]]) -> tuple[dict[Place, list[Print]], dict[Place, str]]:
        """The copy's records of the time of the source's, and why some could not be read."""
        spans = {place: times for place, records in source.items() if (times := _times(records))}
        if self._other.by != RECORD or not spans:
            return {place: [] for place in source}, {}
        firsts, failed = self._first_at({place: min(times) for place, times in spans.items()})
        windows = {}
        for place, first in firsts.items():
            if first is not None:
                end = (bounds(self._logs[self._other.copy_of(place)]) or (0, 0))[1]
                is_later = partial(_is_later, max(spans[place]))
                windows[self._other.copy_of(place)] = Window(first, min(end, first + MOST), is_later)
        prints, unread = read_prints(librdkafka_settings(self._target.profile), windows)
        found = {place: prints.get(self._other.copy_of(place), []) for place in source}
        return found, failed | {
            place: unread[copy] for place in source if (copy := self._other.copy_of(place)) in unread
        }

    def _at_time(self, offsets: Mapping[Place, tuple[int, list[Print]]]) -> dict[Place, int | None]:
        """The copy's first record that is not older than the next one to read, or newer than the last one read."""
        times = {}
        for place, (offset, records) in offsets.items():
            following = _times([each for each in records if each.offset >= offset])
            before = _times([each for each in records if each.offset < offset])
            if following or before:
                times[place] = following[0] if following else before[-1] + 1
        return self._first_at(times)[0]

    def _first_at(self, times: Mapping[Place, int]) -> tuple[dict[Place, int | None], dict[Place, str]]:
        """The copy's first record at or after a time (epoch ms); None: there is none. And why some are not known."""
        asked = {self._other.copy_of(place): at_ms for place, at_ms in times.items()}
        client = self._target.broker_client
        listed, failed = client.run(_list_at, client, asked)
        found = {place: listed[copy][0] for place in times if (copy := self._other.copy_of(place)) in listed}
        why = {place: failed[copy] for place in times if (copy := self._other.copy_of(place)) in failed}
        return {place: None if offset < 0 else offset for place, offset in found.items()}, why


async def _list_at(client: BrokerClient, times: Mapping[Place, int]) -> tuple[dict[Place, Listed], dict[Place, str]]:
    deadline = Deadline()
    leaders = await fetch_leaders(client, set(times), deadline)
    (listed,), failed = await list_offsets(client, leaders, (times,), deadline)
    return listed, failed


def _times(records: Collection[Print]) -> list[int]:
    return [each.at_ms for each in records if each.at_ms is not None]


def _is_behind(offset: int, record: Print) -> bool:
    return record.offset >= offset


def _is_later(at_ms: int, record: Print) -> bool:
    return record.at_ms is None or record.at_ms > at_ms
