"""The move of one offset: the wanted value, clamped to the log; and whether the move goes backwards. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kit.errors import InputError
from kit.moves.offsets.selection import Key


@dataclass(frozen=True, slots=True)
class Stored:
    """One committed offset in a store; ``offset`` None without an ``error``: there is none.

    ``version`` is the offset znode's, ``metadata`` and ``leader_epoch`` are Kafka's; ``error`` gives the reason the
    offset is not known. ``topic_id`` is the id that the topic had before the offset was read, None if unknown; no store
    holds it, so two offsets with different topic ids may be equal.
    """

    offset: int | None = None
    metadata: str | None = None
    leader_epoch: int | None = None
    version: int | None = None
    error: str | None = None
    topic_id: str | None = field(default=None, compare=False)

    @property
    def is_hidden(self) -> bool:
        """Return whether the store may hold any offset here. A znode that was read, but holds no offset, is not
        hidden.
        """
        return self.error is not None and self.version is None


NOTHING = Stored()
_ITEM = re.compile(r"(?P<group_id>.*)/(?P<topic>[^/]+)-(?P<partition>0|[1-9][0-9]{0,9})", re.DOTALL)
_LARGEST_PARTITION = 2**31 - 1


@dataclass(frozen=True, slots=True)
class OffsetTarget:
    """The wanted offset of one partition, not yet clamped. ``wanted`` None: delete the offset.

    ``note`` explains an unusual wanted offset. ``metadata`` and ``leader_epoch`` are committed beside it in Kafka.
    """

    key: Key
    before: Stored
    wanted: int | None
    note: str | None = None
    metadata: str | None = None
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's offset, ``before`` → ``after``; ``reason`` gives the reason ``after`` is not the wanted
    offset."""

    target: OffsetTarget
    after: int | None
    reason: str | None = None

    @property
    def key(self) -> Key:
        return self.target.key

    @property
    def before(self) -> int | None:
        return self.target.before.offset

    @property
    def item(self) -> str:
        return item_of(self.key)

    @property
    def is_change(self) -> bool:
        return self.before != self.after

    @property
    def is_backwards(self) -> bool:
        """Return whether records would be read again. A deletion has a rule of its own."""
        return self.before is not None and self.after is not None and self.after < self.before

    @property
    def leader_epoch(self) -> int | None:
        """The epoch of the wanted record; unknown if the offset was clamped."""
        return self.target.leader_epoch if self.after == self.target.wanted else None


def clamp(target: OffsetTarget, log_start: int, log_end: int) -> Move:
    """The move to the wanted offset, at least to the log's start and at most to its end (the high watermark)."""
    if target.wanted is None:
        return Move(target, None)
    after = min(max(target.wanted, log_start), log_end)
    reasons = [target.note] if target.note else []
    if after > target.wanted:
        reasons.append(f"{target.wanted} is before the log's start: raised to {after}")
    elif after < target.wanted:
        reasons.append(f"{target.wanted} is beyond the log's end: lowered to {after}")
    return Move(target, after, "; ".join(reasons) or None)


def item_of(key: Key) -> str:
    """``group/topic-partition``."""
    group_id, topic, partition = key
    return f"{group_id}/{topic}-{partition}"


def parse_item(item: str) -> Key:
    """The inverse of :func:`item_of` for any group id: a topic has no slash, a partition has no dash.

    Raises:
        InputError: the text is no item, or spells the partition in another way.
    """
    match = _ITEM.fullmatch(item)
    if match is None or int(match["partition"]) > _LARGEST_PARTITION:
        raise InputError(f"{item!r} does not have the form GROUP/TOPIC-PARTITION")
    return match["group_id"], match["topic"], int(match["partition"])


def parse_place(text: str) -> tuple[str, int]:
    """Topic and partition of ``topic-partition``."""
    topic, _, partition = text.rpartition("-")
    return topic, int(partition)
