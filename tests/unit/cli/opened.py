"""Verbs of the command line that find operations already open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from kit.terminal.terminal import refusals


def find_open(monkeypatch: pytest.MonkeyPatch, verbs: ModuleType, operations: Any) -> None:
    """Let the verbs of a module use these operations. By themselves they connect to a cluster."""

    @contextmanager
    def opened(*_: object, **__: object) -> Iterator[Any]:
        with refusals():
            yield operations

    monkeypatch.setattr(f"{verbs.__name__}.open_operations", opened)
