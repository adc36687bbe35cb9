"""Pure analyses of all subjects under one name: DataFrames in, a DataFrame out; on Spark and polars alike."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kit.subjects import registered

_HOMES = {name: home for home in map(import_module, registered("ANALYSES")) for name in home.__all__}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_HOMES[name], name)
