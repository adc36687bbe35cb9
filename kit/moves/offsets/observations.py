"""The observations of a plan for offsets, and the same observations when the plan is executed.

``<store> group <group>`` has the members; ``<store> offsets <group>`` has all offsets of the group in that store, and
``versions``, ``metadata`` and ``leader epochs`` have what is stored beside them. ``log starts`` and ``log ends`` are of
the partitions that the plan writes. All are plain numbers by partition: a plan for a thousand groups has 20,000 each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kit.clients.cluster import Cluster
from kit.engine.model.observation import EXACT, IGNORED, MAY_GROW, Observation, differences
from kit.engine.model.values import Json
from kit.errors import ReadError
from kit.moves.offsets.fetch import (
    STORES,
    GroupInStore,
    Stores,
    fetch_kafka,
    fetch_logs,
    fetch_unsure,
    fetch_zookeeper,
)
from kit.moves.offsets.moves import Stored, parse_place
from kit.moves.offsets.selection import Place
from kit.moves.offsets.steps import (
    GROUP,
    LEADER_EPOCHS,
    METADATA,
    OFFSET_PARTS,
    OFFSETS,
    PARTS_OF_STORE,
    VERSIONS,
    observed_name,
)
from kit.tables.groups import KAFKA, ZOOKEEPER, LogOffset
from kit.text.naming import shortened

LOG_STARTS, LOG_ENDS = "log starts", "log ends"
_BY_PLACE = (LOG_STARTS, LOG_ENDS, *(observed_name(store, OFFSETS, "") for store in STORES))
_FIELDS = {OFFSETS: "offset", VERSIONS: "version", METADATA: "metadata", LEADER_EPOCHS: "leader_epoch"}


def group_observations(
    stores: Stores, written: tuple[str, Collection[str]], read: tuple[str, Collection[str]] | None
) -> dict[str, Observation]:
    """Observations of the groups that are ``written`` (store, group ids) and, for a copy, ``read``.

    Offsets in the written store must not change. Offsets that are read must not change either, unless the group has
    members: then they may grow. Other offsets are only shown. A group without members must stay without members, in
    either store.
    """
    observed: dict[str, Observation] = {}
    for store in STORES if stores.zookeeper is not None else (KAFKA,):
        for group_id in sorted({*written[1], *(read[1] if read else ())}):
            group = stores.group(store, group_id)
            is_written = group_id in written[1]
            is_read = read is not None and read[0] == store and group_id in read[1]
            tolerance = EXACT if is_written and written[0] == store else IGNORED
            if is_read and tolerance == IGNORED:
                tolerance = MAY_GROW if group.members else EXACT
            is_calm = not group.members and (is_written or is_read)
            members = EXACT if is_calm or (is_written and written[0] == store) else IGNORED
            observed[observed_name(store, GROUP, group_id)] = Observation(_group(store, group), members)
            for part in OFFSET_PARTS:
                value = _part(part, group.offsets)
                is_moved = is_written and written[0] == store and part in PARTS_OF_STORE[store]
                if value or is_moved or (part == OFFSETS and tolerance != IGNORED):
                    observed[observed_name(store, part, group_id)] = Observation(value, _of_part(part, tolerance))
    return observed


def log_observations(logs: Mapping[Place, LogOffset], places: Iterable[Place]) -> dict[str, Observation]:
    """Retention raises the starts and producers raise the ends. A topic that was created again has lower ones."""
    asked = sorted(set(places))
    return {
        LOG_STARTS: Observation(_log(logs, asked, "log_start_offset"), MAY_GROW),
        LOG_ENDS: Observation(_log(logs, asked, "log_end_offset"), MAY_GROW),
    }


def observe_offsets(cluster: Cluster, observed: Mapping[str, Observation]) -> dict[str, Json]:
    """The observations of this module among ``observed``, read again, under the same names.

    An offset that can't be read any more has not changed: it is unknown.

    Raises:
        ConnectError, ReadError: the cluster, a group, an offset or a log could not be read, or a topic is hidden.
    """
    now: dict[str, Json] = {}
    for store, fetch in ((ZOOKEEPER, fetch_zookeeper), (KAFKA, fetch_kafka)):
        named = {part: _groups_named(observed, store, part) for part in (GROUP, *OFFSET_PARTS)}
        asked = frozenset().union(*named.values())
        groups = fetch(cluster, asked.__contains__) if asked else {}
        stores = Stores(groups, groups)
        for part, group_ids in named.items():
            for group_id in group_ids:
                group, name = stores.group(store, group_id), observed_name(store, part, group_id)
                now[name] = _group(store, group) if part == GROUP else _part(part, group.offsets)
                if (error := _unread(part, group)) and differences({name: observed[name]}, {name: now[name]}):
                    raise ReadError(f"{store} group {group_id!r} can't be read: {error}")
    now |= _observe_logs(cluster, observed)
    if unsure := fetch_unsure(cluster, _lost_topics(observed, now)):
        raise ReadError(shortened(unsure.values()))
    return now


def _unread(part: str, group: GroupInStore) -> str | None:
    """Return why the group, or one of its offsets, can't be read."""
    errors = [stored.error for stored in group.offsets.values() if stored.error is not None] if part == OFFSETS else []
    return group.error or next(iter(errors), None)


def _lost_topics(observed: Mapping[str, Observation], now: Mapping[str, Json]) -> set[str]:
    """Topics of planned offsets and logs that are not found now. They may be hidden from the login."""
    lost = set[str]()
    for name, observation in observed.items():
        found, planned = now.get(name), observation.value
        if observation.tolerance != IGNORED and name.startswith(_BY_PLACE) and isinstance(planned, Mapping):
            there = found if isinstance(found, Mapping) else {}
            lost |= {
                parse_place(place)[0]
                for place, value in planned.items()
                if value is not None and there.get(place) is None
            }
    return lost


def _groups_named(observed: Iterable[str], store: str, part: str) -> frozenset[str]:
    prefix = observed_name(store, part, "")
    return frozenset(name.removeprefix(prefix) for name in observed if name.startswith(prefix))


def _of_part(part: str, tolerance: str) -> str:
    """Metadata and leader epochs can't grow: where offsets may grow, they are only shown."""
    return IGNORED if tolerance == MAY_GROW and part in (METADATA, LEADER_EPOCHS) else tolerance


def _observe_logs(cluster: Cluster, observed: Mapping[str, Observation]) -> dict[str, Json]:
    planned = {name: observed[name].value for name in (LOG_STARTS, LOG_ENDS) if name in observed}
    places = {parse_place(name) for value in planned.values() if isinstance(value, Mapping) for name in value}
    if not planned:
        return {}
    logs = fetch_logs(cluster, {topic for topic, _ in places})
    fields = {LOG_STARTS: "log_start_offset", LOG_ENDS: "log_end_offset"}
    known = {
        parse_place(name) for by in planned.values() if isinstance(by, Mapping) for name in by if by[name] is not None
    }
    errors = {place: log.error for place in sorted(known) if (log := logs.get(place)) and log.error is not None}
    if errors:
        unread = (f"{topic}-{partition}: {error}" for (topic, partition), error in errors.items())
        raise ReadError(f"these logs can't be read: {shortened(unread)}")
    return {name: _log(logs, sorted(places), fields[name]) for name in planned}


def _group(store: str, group: GroupInStore) -> Json:
    """A group that can't be read must not resemble a group without members."""
    members: dict[str, Json] = {"members": group.members} if group.error is None else {"error": group.error}
    return members | ({"state": group.state} if store == KAFKA else {})


def _part(part: str, offsets: Mapping[Place, Stored]) -> dict[str, Json]:
    """One number or text by partition; for an offset that can't be read, the error."""
    field = _FIELDS[part]
    values: dict[str, Json] = {}
    for (topic, partition), stored in sorted(offsets.items()):
        value = stored.error if part == OFFSETS and stored.error is not None else getattr(stored, field)
        if value is not None:
            values[f"{topic}-{partition}"] = value
    return values


def _log(logs: Mapping[Place, LogOffset], places: Iterable[Place], field: str) -> Json:
    return {f"{topic}-{partition}": getattr(logs.get((topic, partition)), field, None) for topic, partition in places}
