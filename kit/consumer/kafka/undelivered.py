"""Records that librdkafka has given and the consumer has not delivered yet."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Message, TopicPartition


class Undelivered:
    """``in_hand``: the records to deliver next. Those of partitions that a callback paused meanwhile are held back."""

    def __init__(self) -> None:
        self.in_hand: list[Message] = []
        self._held_back: list[Message] = []

    def take(self, wanted: int) -> list[Message]:
        """Return the first records, which are delivered now."""
        records, self.in_hand = self.in_hand[:wanted], self.in_hand[wanted:]
        return records

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the records of partitions that were revoked or moved: no commit includes them."""
        partitions = list(partitions)
        _, self.in_hand = _split(self.in_hand, partitions)
        _, self._held_back = _split(self._held_back, partitions)

    def hold_back(self, paused: Iterable[TopicPartition]) -> None:
        """Deliver no record of these partitions until :meth:`give_back`."""
        held_back, self.in_hand = _split(self.in_hand, paused)
        self._held_back += held_back

    def give_back(self, resumed: Iterable[TopicPartition]) -> None:
        """Deliver the records of these partitions next."""
        given_back, self._held_back = _split(self._held_back, resumed)
        self.in_hand = given_back + self.in_hand


def _split(messages: list[Message], partitions: Iterable[TopicPartition]) -> tuple[list[Message], list[Message]]:
    """The values of these partitions, and the values of all other partitions."""
    keys = {(each.topic, each.partition) for each in partitions}
    chosen = [each for each in messages if (each.topic(), each.partition()) in keys]
    return chosen, [each for each in messages if (each.topic(), each.partition()) not in keys] if chosen else messages
