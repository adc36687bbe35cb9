"""The analyses of this subject by name, each loaded when it is first used: a verb pays for its own alone."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kit.rebalances.analyze.epochs import epoch_rebalances as epoch_rebalances
    from kit.rebalances.analyze.stored import topic_rebalances as topic_rebalances

_MODULES = {
    "epoch_rebalances": "epochs",
    "topic_rebalances": "stored",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"kit.rebalances.analyze.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
