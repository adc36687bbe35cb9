"""Prove what members consumed, with a verdict: lost, consumed twice, owned twice.

The names of ``kit.proof.verify`` are here, too; they are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("kit.proof.verify"), name)
