"""The listener's methods call each other by the "Delegation Mechanics" of KAFKA-20385; listeners of other clients."""

from __future__ import annotations

import pytest

from kit.consumer.kafka.listener import ConsumerRebalanceListener, RebalanceListener, adapt
from kit.errors import InputError

PARTITIONS, VIEW = ["t-0"], "view"


class Calls:
    """Notes what was called, in order."""

    def __init__(self) -> None:
        self.made: list[tuple] = []

    def note(self, name: str, *arguments: object) -> None:
        self.made.append((name, *arguments))


class New(Calls, RebalanceListener):
    def on_partitions_assigned(self, partitions, consumer):
        self.note("assigned", partitions, consumer)

    def on_partitions_revoked(self, partitions, consumer):
        self.note("revoked", partitions, consumer)


class NewWithLost(New):
    def on_partitions_lost(self, partitions, consumer):
        self.note("lost", partitions, consumer)


class Legacy(Calls, ConsumerRebalanceListener):
    def partitions_assigned(self, partitions):
        self.note("assigned", partitions)

    def partitions_revoked(self, partitions):
        self.note("revoked", partitions)


class LegacyWithLost(Legacy):
    def partitions_lost(self, partitions):
        self.note("lost", partitions)


class LegacyWithViews(Legacy):
    """Overrides the two-argument forms; only a loss still reaches a one-argument form."""

    def on_partitions_assigned(self, partitions, consumer):
        self.note("assigned", partitions, consumer)

    def on_partitions_revoked(self, partitions, consumer):
        self.note("revoked", partitions, consumer)


class LegacyWithEverything(LegacyWithViews):
    def on_partitions_lost(self, partitions, consumer):
        self.note("lost", partitions, consumer)


class OneArgument(Calls):
    def on_partitions_assigned(self, assigned):
        self.note("assigned", assigned)

    def on_partitions_revoked(self, revoked):
        self.note("revoked", revoked)


class OneArgumentWithLost(OneArgument):
    def on_partitions_lost(self, lost):
        self.note("lost", lost)


class TwoArguments(Calls):
    def on_partitions_assigned(self, assigned, consumer):
        self.note("assigned", assigned, consumer)

    def on_partitions_revoked(self, revoked, consumer=None):
        self.note("revoked", revoked, consumer)


class Mixed(OneArgument):
    def on_partitions_revoked(self, *arguments):
        self.note("revoked", *arguments)


ONE, TWO = (PARTITIONS,), (PARTITIONS, VIEW)
CHAINS = [
    (New, ("assigned", *TWO), ("revoked", *TWO), ("revoked", *TWO)),
    (NewWithLost, ("assigned", *TWO), ("revoked", *TWO), ("lost", *TWO)),
    (Legacy, ("assigned", *ONE), ("revoked", *ONE), ("revoked", *ONE)),
    (LegacyWithLost, ("assigned", *ONE), ("revoked", *ONE), ("lost", *ONE)),
    (LegacyWithViews, ("assigned", *TWO), ("revoked", *TWO), ("revoked", *ONE)),
    (LegacyWithEverything, ("assigned", *TWO), ("revoked", *TWO), ("lost", *TWO)),
    (OneArgument, ("assigned", *ONE), ("revoked", *ONE), ("revoked", *ONE)),
    (OneArgumentWithLost, ("assigned", *ONE), ("revoked", *ONE), ("lost", *ONE)),
    (TwoArguments, ("assigned", *TWO), ("revoked", *TWO), ("revoked", *TWO)),
    (Mixed, ("assigned", *ONE), ("revoked", *TWO), ("revoked", *TWO)),
]


@pytest.mark.parametrize(("kind", "assigned", "revoked", "lost"), CHAINS, ids=[chain[0].__name__ for chain in CHAINS])
def test_each_callback_ends_where_the_kip_defines(kind, assigned, revoked, lost):
    listener = kind()
    adapted = adapt(listener)
    adapted.on_partitions_assigned(PARTITIONS, VIEW)
    adapted.on_partitions_revoked(PARTITIONS, VIEW)
    adapted.on_partitions_lost(PARTITIONS, VIEW)
    assert listener.made == [assigned, revoked, lost]


def test_the_interfaces_themselves_are_not_wrapped():
    for listener in (New(), Legacy()):
        assert adapt(listener) is listener


def test_a_listener_lacks_no_callback():
    with pytest.raises(TypeError, match="on_partitions_revoked"):
        type("Half", (RebalanceListener,), {"on_partitions_assigned": New.on_partitions_assigned})()
    with pytest.raises(TypeError, match="partitions_revoked"):
        type("Half", (ConsumerRebalanceListener,), {"partitions_assigned": Legacy.partitions_assigned})()


class Wordless:
    def on_partitions_assigned(self):
        pass

    def on_partitions_revoked(self, partitions):
        pass


class WrongArity(New):
    def on_partitions_revoked(self, partitions):
        pass


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (object(), "object is no rebalance listener: the method on_partitions_assigned is missing"),
        (Wordless(), r"Wordless.on_partitions_assigned takes neither \(partitions\) nor"),
        (New, "New is a class; pass an instance"),
        (WrongArity(), r"WrongArity.on_partitions_revoked doesn't take \(partitions, consumer\)"),
        (print, "the method on_partitions_assigned is missing"),
    ],
)
def test_an_object_that_is_no_listener_is_refused(wrong, said):
    with pytest.raises(InputError, match=said):
        adapt(wrong)
