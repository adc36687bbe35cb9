"""The analyses of this subject by name, each loaded when it is first used: a verb pays for its own alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kit.text.lazy_names import lazy_names

if TYPE_CHECKING:
    from kit.rebalances.analyze.epochs import epoch_rebalances as epoch_rebalances
    from kit.rebalances.analyze.stored import topic_rebalances as topic_rebalances

__all__, __getattr__ = lazy_names(__name__)
