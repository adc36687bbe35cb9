"""What an offset becomes: where it is wanted, clamped to its log, and whether that goes backwards. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kit.errors import InputError
from kit.migrate.offsets.selection import Key


@dataclass(frozen=True, slots=True)
class Stored:
    """One committed offset as a store holds it; ``offset`` None and no ``error``: there is none.

    ``version`` is the offset znode's, ``metadata`` and ``leader_epoch`` are Kafka's; ``error`` says why the offset
    isn't known.
    """

    offset: int | None = None
    metadata: str | None = None
    leader_epoch: int | None = None
    version: int | None = None
    error: str | None = None

    @property
    def is_hidden(self) -> bool:
        """Whether anything may be there; a znode that was read and holds no offset is not hidden."""
        return self.error is not None and self.version is None


NOTHING = Stored()
_ITEM = re.compile(r"(?P<group_id>.*)/(?P<topic>[^/]+)-(?P<partition>0|[1-9][0-9]{0,9})", re.DOTALL)
_LARGEST_PARTITION = 2**31 - 1


@dataclass(frozen=True, slots=True)
class OffsetTarget:
    """Where an offset shall be, before it is clamped; ``note`` says what isn't plain about it.

    ``wanted`` None: nowhere, it is deleted. ``metadata`` and ``leader_epoch`` go with it to Kafka.
    """

    key: Key
    before: Stored
    wanted: int | None
    note: str | None = None
    metadata: str | None = None
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's offset, ``before`` → ``after``; ``reason`` where that isn't what was wanted."""

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
        """Whether records that count as read would be read again. Of what is deleted another rule asks that."""
        return self.before is not None and self.after is not None and self.after < self.before

    @property
    def leader_epoch(self) -> int | None:
        """The epoch belongs to the wanted record; of a clamped offset it is unknown."""
        return self.target.leader_epoch if self.after == self.target.wanted else None


def clamp(target: OffsetTarget, log_start: int, log_end: int) -> Move:
    """The move to where ``target`` wants, at least to the log's start and at most to its end (the high watermark)."""
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
    """The inverse of :func:`item_of`, whatever a group is called: no topic's name holds a slash, no partition a dash.

    Raises:
        InputError: it is no item, or another spelling of one.
    """
    found = _ITEM.fullmatch(item)
    if found is None or int(found["partition"]) > _LARGEST_PARTITION:
        raise InputError(f"{item!r} is not a group, a slash, a topic, a dash and a partition")
    return found["group_id"], found["topic"], int(found["partition"])


def shortened(items: Iterable[str], shown: int = 3) -> str:
    """The first of them, and how many more there are."""
    items = list(items)
    more = f" and {len(items) - shown} more" if len(items) > shown else ""
    return ", ".join(items[:shown]) + more
