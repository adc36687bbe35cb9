"""One lab for members of all kinds; tests keep apart by topic and group names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kit.lab import Lab
from tests.interop.group import Group
from tests.soak import Record


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """ZooKeeper and one broker."""
    with Lab(brokers=1) as running:
        yield running


@pytest.fixture
def group(lab: Lab, request: pytest.FixtureRequest, record_property: Record) -> Iterator[Callable[..., Group]]:
    """Makes a group under load; its members and its producer are ended after the test."""
    ending = ExitStack()

    def make(partitions: dict[str, int] | int = 24, rate: float = 400, name: str = "") -> Group:
        topics = partitions if isinstance(partitions, dict) else {f"{request.node.name[:60]}-t": partitions}
        clean = {"".join(c if c.isalnum() or c in "._-" else "-" for c in topic): n for topic, n in topics.items()}
        made = Group(lab, name or f"{next(iter(clean))}-g", clean, rate, record_property)
        ending.callback(made.close)
        return made

    with ending:
        yield make
