"""Commit times of offsets and session timeouts of members, from ``__consumer_offsets``: no request returns them.

The topic is read once in this process, between fixed bounds, and only the newest record of each key is kept. Many
millions of records are for ``kit.rebalances.offsets_topic.read_offsets_topic``, which reads them by Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kit.profile import Profile
from kit.protocol.read import Key
from kit.rebalances.offsets_topic.bounds import fetch_bounds
from kit.rebalances.offsets_topic.commits import commit_rows
from kit.rebalances.offsets_topic.fetching import Fetch, Records
from kit.rebalances.offsets_topic.generations import generation_rows
from kit.rebalances.offsets_topic.keys import Keys, parse_keys
from kit.text.java_hash import OFFSETS_TOPIC


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """``times``: epoch ms of each commit that is stored, by group and partition. ``sessions``: session timeouts in ms
    of the members in each classic group's newest generation. ``errors``: partitions of the topic that could not be read
    completely; then no group is known completely. ``undecoded``: by group, why a commit of it can't be decoded.
    """

    times: Mapping[str, Mapping[Key, int]]
    sessions: Mapping[str, frozenset[int]]
    errors: tuple[str, ...] = ()
    undecoded: Mapping[str, str] = field(default_factory=dict)

    def of(self, group_id: str) -> Mapping[Key, int] | None:
        """Commit times of one group; None: not known completely."""
        return None if self.errors or group_id in self.undecoded else self.times.get(group_id, {})

    def problem(self, group_id: str) -> str | None:
        """Return why the commit times of a group are not known."""
        return self.errors[0] if self.errors else self.undecoded.get(group_id)


def read_commit_times(profile: Profile) -> CommitTimes:
    """Read the topic from its start to its end of this moment.

    Raises:
        ConnectError, AuthenticationFailed, WrongCluster: see ``kit.clients.cluster.connect``.
        NotFound: the cluster has no such topic yet.
    """
    bounds = fetch_bounds(profile, OFFSETS_TOPIC, None)
    times: dict[str, dict[Key, int]] = {}
    sessions: dict[str, frozenset[int]] = {}
    undecoded: dict[str, str] = {}
    problems = [f"{OFFSETS_TOPIC}-{partition}: {error}" for partition, error in sorted(bounds.errors.items())]
    fetch = Fetch(profile, OFFSETS_TOPIC, bounds.parts)
    for records in fetch:
        keys = parse_keys(records.keys)
        _take_commits(records, keys, times, undecoded)
        _take_sessions(records, keys, sessions)
    problems += [f"{OFFSETS_TOPIC}-{partition}: {error}" for partition, error in sorted(fetch.errors.items())]
    ends = {part.partition: part.end for part in bounds.parts}
    problems += [
        f"{OFFSETS_TOPIC}-{partition}: read to offset {until} of {ends[partition]}, an open transaction follows"
        for partition, until in sorted(fetch.read_until.items())
        if until < ends[partition]
    ]
    return CommitTimes(times, sessions, tuple(problems), undecoded)


def _take_commits(records: Records, keys: Keys, times: dict[str, dict[Key, int]], undecoded: dict[str, str]) -> None:
    """Keep the newest record of each offset."""
    if not len(keys.commits):
        return
    rows = commit_rows(records, keys).to_pydict()
    names = ("group_id", "topic", "topic_partition", "committed_at", "is_tombstone", "error")
    for group_id, topic, partition, at, is_gone, error in zip(*(rows[name] for name in names), strict=True):
        if is_gone:
            times.get(group_id, {}).pop((topic, partition), None)
        elif error is not None or at is None:
            undecoded[group_id] = f"the offset of {topic}-{partition}: {error or 'it has no commit time'}"
        else:
            times.setdefault(group_id, {})[topic, partition] = int(at.timestamp() * 1000)


def _take_sessions(records: Records, keys: Keys, sessions: dict[str, frozenset[int]]) -> None:
    """Keep the newest generation of each group."""
    if not len(keys.generations):
        return
    found: dict[tuple[str, int, int], set[int]] = {}
    for row in generation_rows(records, keys).to_pylist():
        here = found.setdefault((row["group_id"], row["partition"], row["offset"]), set())
        if row["session_timeout_ms"] is not None:
            here.add(row["session_timeout_ms"])
    for (group_id, _, _), values in found.items():  # In the order of the log: the newest record comes last.
        sessions[group_id] = frozenset(values)
