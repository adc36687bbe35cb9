"""Limits of sizes, counts and times that a test lowers, so that a small input reaches them."""

from __future__ import annotations

from types import ModuleType

import pytest


def lower(monkeypatch: pytest.MonkeyPatch, module: ModuleType, **limits: float) -> None:
    """Give constants of a module other numbers, until ``monkeypatch`` is undone."""
    for name, limit in limits.items():
        assert name.isupper(), f"{name} is no constant"
        assert isinstance(getattr(module, name), int | float), f"{name} is no number"
        monkeypatch.setattr(module, name, limit)
