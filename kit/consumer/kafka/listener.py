"""Rebalance listeners of an application (KAFKA-20385).

Three kinds of listeners are accepted:

1. a :class:`RebalanceListener`: ``on_partitions_…(partitions, consumer)``, with the restricted view of the consumer;
2. a :class:`ConsumerRebalanceListener`, the deprecated interface with both forms. Python has no overloading by the
   number of arguments, so its one-argument forms have the names without ``on_``: ``partitions_revoked(partitions)``
   is Java's ``onPartitionsRevoked(Collection)``;
3. any object with ``on_partitions_assigned`` and ``on_partitions_revoked`` (and perhaps ``on_partitions_lost``), each
   taking one argument or two, as listeners written for other Python clients do.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

from confluent_kafka import TopicPartition

from kit.consumer.kafka.rebalance_consumer import RebalanceConsumer
from kit.errors import InputError

Partitions: TypeAlias = list[TopicPartition]
Callback: TypeAlias = Callable[[Partitions, RebalanceConsumer], None]


class RebalanceListener(ABC):
    """Called at each rebalance by the thread that polls, with a view that is valid until the callback returns.

    With eager assignors the lists are whole assignments. Otherwise (cooperative, KIP-848) they are changes, which may
    be empty. ``poll()`` raises the error of a callback; the rebalance continues.
    """

    @abstractmethod
    def on_partitions_assigned(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        """The partitions are assigned and no record was fetched yet: ``seek`` and ``pause`` here."""

    @abstractmethod
    def on_partitions_revoked(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        """The partitions are assigned until this returns, then others may get them: commit here."""

    def on_partitions_lost(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        """The partitions are no longer assigned here, and others may own them already; by default as if revoked.

        ``position``, ``seek``, ``pause`` and ``resume`` refuse them. A commit without offsets leaves them out. A commit
        that names them is refused.
        """
        self.on_partitions_revoked(partitions, consumer)


class ConsumerRebalanceListener(RebalanceListener):
    """The deprecated interface: every two-argument form calls its one-argument form unless overridden.

    A loss goes ``on_partitions_lost`` → ``partitions_lost`` → ``partitions_revoked``, also where only
    ``on_partitions_revoked`` was overridden ("Delegation Mechanics" of KAFKA-20385).
    """

    @abstractmethod
    def partitions_assigned(self, partitions: Partitions) -> None:
        """The partitions are assigned."""

    @abstractmethod
    def partitions_revoked(self, partitions: Partitions) -> None:
        """The partitions will be revoked."""

    def partitions_lost(self, partitions: Partitions) -> None:
        """The partitions are lost; by default as if revoked."""
        self.partitions_revoked(partitions)

    def on_partitions_assigned(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        self.partitions_assigned(partitions)

    def on_partitions_revoked(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        self.partitions_revoked(partitions)

    def on_partitions_lost(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        self.partitions_lost(partitions)


class _Silent(RebalanceListener):
    """The listener of a consumer without one: does nothing."""

    def on_partitions_assigned(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        pass

    def on_partitions_revoked(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        pass


SILENT = _Silent()


class _Adapted(RebalanceListener):
    """Adds the two-argument methods to an object of the third kind."""

    def __init__(self, listener: object) -> None:
        self._assigned = _callback(listener, "on_partitions_assigned")
        self._revoked = _callback(listener, "on_partitions_revoked")
        tells_loss = hasattr(listener, "on_partitions_lost")
        self._lost = _callback(listener, "on_partitions_lost") if tells_loss else self._revoked

    def on_partitions_assigned(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        self._assigned(partitions, consumer)

    def on_partitions_revoked(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        self._revoked(partitions, consumer)

    def on_partitions_lost(self, partitions: Partitions, consumer: RebalanceConsumer) -> None:
        self._lost(partitions, consumer)


def adapt(listener: object) -> RebalanceListener:
    """Turn a listener of any of the three kinds into one with two-argument methods.

    Raises:
        InputError: a callback is missing, or takes another number of arguments than its interface requires.
    """
    if isinstance(listener, type):
        raise InputError(f"{listener.__name__} is a class; pass an instance of it as the rebalance listener")
    if not isinstance(listener, RebalanceListener):
        return _Adapted(listener)
    for name in ("on_partitions_assigned", "on_partitions_revoked", "on_partitions_lost"):
        if not _takes(getattr(listener, name), 2):
            raise InputError(
                f"{type(listener).__name__}.{name} doesn't take (partitions, consumer), as its interface requires. "
                f"A one-argument callback is {name.removeprefix('on_')} of a ConsumerRebalanceListener, or a method "
                "of a class that derives from neither"
            )
    return listener


def _callback(listener: object, name: str) -> Callback:
    """The object's method of that name; it is called with as many arguments as it accepts."""
    method: Any = getattr(listener, name, None)
    if not callable(method):
        raise InputError(f"{type(listener).__name__} is no rebalance listener: the method {name} is missing")
    if _takes(method, 2):
        return lambda partitions, consumer: method(partitions, consumer)
    if _takes(method, 1):
        return lambda partitions, consumer: method(partitions)
    raise InputError(f"{type(listener).__name__}.{name} takes neither (partitions) nor (partitions, consumer)")


def _takes(method: Callable[..., object], n_arguments: int) -> bool:
    try:
        inspect.signature(method).bind(*[None] * n_arguments)
    except TypeError:
        return False
    return True
