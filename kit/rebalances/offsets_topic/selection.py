"""Select records: groups by pattern, and times of writing."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from kit.rebalances.offsets_topic.binary_column import Ints, Mask
from kit.rebalances.offsets_topic.fetching import Records
from kit.rebalances.offsets_topic.keys import Keys


@dataclass(frozen=True)
class Selection:
    """``group_pattern`` matches whole group ids; ``since_ms`` is included, ``until_ms`` not. None: no limit."""

    group_pattern: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def of(self, records: Records, keys: Keys) -> Keys:
        """The keys without those of other groups or times; a record of unknown time is of no time."""
        if self == Selection():
            return keys
        is_commit = self._is_asked(keys.commit_groups, records.written_ms[keys.commits])
        is_epoch = self._is_asked(keys.epoch_groups, records.written_ms[keys.epochs])
        is_generation = self._is_asked(keys.generation_groups, records.written_ms[keys.generations])
        return replace(
            keys,
            commits=keys.commits[is_commit],
            commit_groups=keys.commit_groups.filter(pa.array(is_commit)),
            commit_topics=keys.commit_topics.filter(pa.array(is_commit)),
            commit_partitions=keys.commit_partitions[is_commit],
            generations=keys.generations[is_generation],
            generation_groups=keys.generation_groups.filter(pa.array(is_generation)),
            epochs=keys.epochs[is_epoch],
            epoch_groups=keys.epoch_groups.filter(pa.array(is_epoch)),
            epoch_members=keys.epoch_members.filter(pa.array(is_epoch)),
        )

    def _is_asked(self, groups: pa.Array, written_ms: Ints) -> Mask:
        asked = np.ones(len(groups), np.bool_)
        if self.group_pattern is not None:
            matches = re.compile(self.group_pattern, re.DOTALL).fullmatch
            encoded = groups.dictionary_encode()
            is_match = np.array([matches(each) is not None for each in encoded.dictionary.to_pylist()], np.bool_)
            asked &= is_match[encoded.indices.to_numpy()]
        if self.since_ms is not None:
            asked &= written_ms >= self.since_ms
        if self.until_ms is not None:
            asked &= (written_ms >= 0) & (written_ms < self.until_ms)
        return asked
