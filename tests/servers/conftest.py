"""Real servers for a whole test run: one lab of each kind, tests keep apart by topic and group names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kit.lab import Lab


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """ZooKeeper and one broker, without any protection."""
    with Lab(brokers=1) as running:
        yield running


@pytest.fixture(scope="session")
def secured_lab() -> Iterator[Lab]:
    """ZooKeeper with ``/consumers`` behind a digest, and a TLS port; one broker with SASL_SSL and mutual TLS."""
    with Lab(brokers=1, secured=True) as running:
        yield running


@pytest.fixture(scope="session")
def kraft_lab() -> Iterator[Lab]:
    """One broker without ZooKeeper, for groups of the classic protocol and of KIP-848."""
    with Lab(kraft=True) as running:
        yield running
