"""Verbs of the command line that find operations already open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kit.terminal.terminal import refusals


def find_open(monkeypatch: pytest.MonkeyPatch, operations: Any) -> None:
    """Let the verbs use these operations. By themselves they connect to a cluster."""

    @contextmanager
    def opened(*_: object, **__: object) -> Iterator[Any]:
        with refusals():
            yield operations

    monkeypatch.setattr("kit.operations.verbs.operations.open_operations", opened)
