"""The move of a cluster's metadata from ZooKeeper to KRaft, and back.

The names of ``kit.kraft.status`` are here, too; they are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("kit.kraft.status"), name)
