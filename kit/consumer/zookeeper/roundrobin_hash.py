"""Detection of which of the two roundrobin orders a group's other members use: their release is not in ZooKeeper."""

from __future__ import annotations

import time
from collections.abc import Set

from kit.consumer.zookeeper.assignors import Assignment, Members, Partitions, assign_roundrobin
from kit.consumer.zookeeper.config import HASH_0_8_2, HASH_1_0, ROUNDROBIN, ConsumerConfig
from kit.consumer.zookeeper.znodes import GroupZnodes
from kit.errors import InputError

NEW_SECONDS = 15.0
SILENCED_SECONDS = 2.0
"""The time for which other members may own nothing because of a newcomer before it leaves; an old consumer gives up
after 6 seconds.
"""


class RoundrobinGuard:
    """Refuses a group whose members order roundrobin otherwise: no member would get the partitions that it claims.

    To be asked before this member registers, while it is new, and when its claims keep failing. With range there is
    nothing to examine.
    """

    def __init__(self, config: ConsumerConfig, consumer_id: str, znodes: GroupZnodes) -> None:
        self._is_needed = config["partition.assignment.strategy"] == ROUNDROBIN
        self._form: str = config["roundrobin.hash"]
        self._group_id = config.group_id
        self._consumer_id = consumer_id
        self._znodes = znodes
        self._new_until = 0.0
        self._owned_before: set[str] | None = None
        self._silenced_since: float | None = None

    @property
    def is_watching(self) -> bool:
        """Return whether this member is new, so that an observation is due every ``SILENCED_SECONDS / 4``."""
        return self._is_needed and time.monotonic() < self._new_until

    def look(self) -> None:
        """Compare the owners with both forms; InputError, which reports what to set, when the members use the other."""
        if not self._is_needed:
            return
        view = self._znodes.read_group()
        owners = {pair: znode.data.decode() for pair, znode in self._znodes.read_owners().items()}
        if self._owned_before is None:
            self._owned_before = {thread.rpartition("-")[0] for thread in owners.values()}
            self._new_until = time.monotonic() + NEW_SECONDS
        facts = (self._form, self._consumer_id, view.members, view.partitions, owners)
        if other_hash_form(*facts) is not None:
            self._refuse("with the hash of the other releases")
        if not silenced(*facts, self._owned_before):
            self._silenced_since = None
            return
        self._silenced_since = self._silenced_since or time.monotonic()
        if time.monotonic() - self._silenced_since > SILENCED_SECONDS:
            self._refuse("with another hash: since this member joined, they get no partitions")

    def _refuse(self, how: str) -> None:
        raise InputError(
            f"{self._consumer_id} assigns partitions by the roundrobin hash of {self._form}, but the members of "
            f"{self._group_id} assign {how}. They would not agree, so this member leaves the group. Set "
            f"roundrobin.hash={_other(self._form)}, or use range in "
            "the whole group"
        )


def other_hash_form(
    mine: str, consumer_id: str, members: Members, partitions: Partitions, owners: Assignment
) -> str | None:
    """The other form, when it explains what every other member holds and ``mine`` doesn't; else None."""
    other = _other(mine)
    theirs = {
        pair: thread for pair, thread in owners.items() if thread.rpartition("-")[0] in members.keys() - {consumer_id}
    }
    explained = {form: assign_roundrobin(members, partitions, form) for form in (mine, other)}
    if not theirs or not _agrees(theirs, explained[other]) or _agrees(theirs, explained[mine]):
        return None
    return other


def silenced(
    mine: str, consumer_id: str, members: Members, partitions: Partitions, owners: Assignment, owned_before: Set[str]
) -> set[str]:
    """Members that owned something before this one joined and own nothing now, because it holds what they want.

    That is how to recognise members of the other form: their claims are all or nothing. Up to two threads both forms
    may agree, so that nothing could be reported before the newcomer joined.
    """
    other = assign_roundrobin(members, partitions, _other(mine))
    owning = {thread.rpartition("-")[0] for thread in owners.values()}
    held = {pair for pair, thread in owners.items() if thread.rpartition("-")[0] == consumer_id}
    wanting = {other[pair].rpartition("-")[0] for pair in held if pair in other} - {consumer_id}
    return wanting & owned_before & members.keys() - owning


def _agrees(owners: Assignment, assignment: Assignment) -> bool:
    return all(assignment.get(pair) == thread for pair, thread in owners.items())


def _other(form: str) -> str:
    return HASH_1_0 if form == HASH_0_8_2 else HASH_0_8_2
