"""Distinguish the consumer inside a migration-enabled member from a plain one in the Kafka group."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kit.consumer.zookeeper.effects import KafkaGroup, Pairs


@dataclass(frozen=True, slots=True)
class KafkaMember:
    """A member as the coordinator describes it. ``is_embedded`` is None while the group rebalances: it shows no
    subscription.
    """

    member_id: str
    client_id: str
    is_embedded: bool | None
    partitions: Pairs = frozenset()


class KafkaMembers:
    """Distinguishes embedded consumers from plain ones by the mark in their subscription, and remembers it by member
    id.

    A client id proves nothing: deployers deliver the embedded consumer's own as ``{client_id}``. While the group
    rebalances, a member that is new is guessed: embedded if its client id is a registered consumer's, and no other
    member is known as that one's.
    """

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}

    def group(self, members: Sequence[KafkaMember], is_stable: bool, consumer_ids: Collection[str]) -> KafkaGroup:
        """``consumer_ids``: the consumers that are registered now."""
        described = {each.member_id: each.is_embedded for each in members if each.is_embedded is not None}
        here = {each.member_id for each in members}
        self._known = {member_id: it for member_id, it in (self._known | described).items() if member_id in here}
        taken = {each.client_id for each in members if self._known.get(each.member_id)}
        guessed = set(consumer_ids) - taken
        plain, embedded = dict[str, Pairs](), dict[str, Pairs]()
        for each in members:
            if self._known.get(each.member_id, each.client_id in guessed):
                embedded[each.client_id] = embedded.get(each.client_id, frozenset()) | each.partitions
            else:
                plain[each.member_id] = each.partitions
        unsure = frozenset(here - self._known.keys())
        return KafkaGroup(plain, embedded, is_stable, unsure)
