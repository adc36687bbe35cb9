"""A profile that the command line finds, and a cluster that is observed without a connection."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, Protocol

import polars as pl
import pytest

from kit.groups.read.topics import TopicSight
from kit.groups.snapshot import Snapshot
from kit.profile import FILE_VARIABLE

SEEING = SimpleNamespace(broker_client=SimpleNamespace(run=lambda *_: TopicSight()))
"""A cluster all of whose topics the login can see."""


@pytest.fixture
def profile(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the only cluster of the profile file that every verb finds."""
    file = tmp_path_factory.mktemp("profile") / "offramp.toml"
    file.write_text('[clusters.fake]\nbootstrap_servers = "127.0.0.1:1"\n', encoding="utf-8")
    monkeypatch.setenv(FILE_VARIABLE, str(file))
    return "fake"


class Observe(Protocol):
    def __call__(self, read: Callable[[Any], Snapshot[pl.DataFrame]], cluster: object = None) -> None: ...


@pytest.fixture
def observe(profile: str, monkeypatch: pytest.MonkeyPatch) -> Observe:
    """Let the verbs connect to a cluster of the test, and read each snapshot by a function of the test.

    A verb connects by itself, so no argument of the command line reaches these places.
    """

    def observe(read: Callable[[Any], Snapshot[pl.DataFrame]], cluster: object = None) -> None:
        connected = SEEING if cluster is None else cluster
        monkeypatch.setattr("kit.clients.cluster.connect", lambda profile, **named: nullcontext(connected))
        for name in ("kit.groups.snapshot.observe", "kit.health.live.observe"):
            monkeypatch.setattr(name, lambda cluster, pattern: read(cluster))

    return observe
