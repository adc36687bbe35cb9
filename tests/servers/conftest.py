"""Real servers for a whole test run: one lab of each kind, tests keep apart by topic and group names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kit.lab import Lab
from tests.servers.coordinators import await_coordinator
from tests.servers.tuned_lab import TunedLab

KEEPS_GROUPS = {"offsets.retention.check.interval.ms": "86400000"}
"""At each check a coordinator removes the empty groups without offsets; by default it checks every ten minutes."""


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """ZooKeeper and one broker, without any protection."""
    with TunedLab(KEEPS_GROUPS) as running:
        await_coordinator(running)
        yield running


@pytest.fixture(scope="session")
def secured_lab() -> Iterator[Lab]:
    """ZooKeeper with ``/consumers`` behind a digest, and a TLS port; one broker with SASL_SSL and mutual TLS."""
    with TunedLab(KEEPS_GROUPS, secured=True) as running:
        await_coordinator(running)
        yield running


@pytest.fixture(scope="session")
def kraft_lab() -> Iterator[Lab]:
    """One broker without ZooKeeper, for groups of the classic protocol and of KIP-848."""
    with TunedLab(KEEPS_GROUPS, kraft=True) as running:
        await_coordinator(running)
        yield running
