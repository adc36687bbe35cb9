"""Lag in time: measured, judged, kept and exported.

The names of ``kit.health.sources`` and ``kit.health.idle`` are here, too; they are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_OF_IDLE = ("activity_of_history", "activity_of_topic", "idle_groups", "verify_idle")


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("kit.health.idle" if name in _OF_IDLE else "kit.health.sources"), name)
