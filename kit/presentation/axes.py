"""Axes of charts."""

from __future__ import annotations

from typing import Any

import altair as alt


def of_counts(**options: Any) -> alt.Axis:
    """Return the axis of whole numbers; ``options`` are Vega's.

    If the largest count is 1 or 2, Vega puts a tick at each half, whatever ``tickMinStep`` reports, and a format of
    whole numbers draws 0, 1, 1.
    """
    whole = alt.condition("datum.value % 1 === 0", alt.value(1), alt.value(0))
    shown: dict[str, Any] = {"labelExpr": "datum.value % 1 ? '' : datum.label", "gridOpacity": whole}
    return alt.Axis(tickMinStep=1, tickOpacity=whole, **shown, **options)
