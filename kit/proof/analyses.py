"""The analyses of this subject by name, each loaded when it is first used: a verb pays for its own alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kit.text.lazy_names import lazy_names

if TYPE_CHECKING:
    from kit.proof.analyze.consumption_intervals import (
        consumption_intervals as consumption_intervals,
        with_intervals as with_intervals,
    )
    from kit.proof.analyze.duplicates import duplicates as duplicates
    from kit.proof.analyze.exclusivity import overlaps as overlaps
    from kit.proof.analyze.lost import lost as lost
    from kit.proof.analyze.ownership_at import unowned_consumption as unowned_consumption
    from kit.proof.analyze.records import records_of as records_of
    from kit.proof.analyze.stalls import (
        handovers as handovers,
        stalls as stalls,
    )
    from kit.proof.analyze.verdict import (
        verdict as verdict,
        verdict_sentences as verdict_sentences,
        verdict_summary as verdict_summary,
    )

__all__, __getattr__ = lazy_names(__name__)
