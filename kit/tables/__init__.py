"""Rows, one frozen class per table, and their Arrow and Spark schemas; ``kit.tables.GROUPS`` is one of the tables.

The tables are loaded when first used: those who only make rows must not pay for Arrow.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'kit.tables' has no attribute {name!r}")
    return getattr(import_module("kit.tables.schema"), name)
