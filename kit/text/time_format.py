"""Times in words. A log that doesn't report its zone has times as it printed them: they must not pass for UTC."""

from __future__ import annotations

from datetime import datetime

import polars as pl
import polars.selectors as cs

_FORMAT = "%Y-%m-%d %H:%M:%S"
_UTC, _PRINTED = " UTC", " (as printed)"


def worded(at: datetime, is_utc: bool) -> str:
    """To the second, with what kind of time it is."""
    return at.strftime(_FORMAT) + (_UTC if is_utc else _PRINTED)


def with_worded_times(frame: pl.DataFrame) -> pl.DataFrame:
    """Every time of the frame as :func:`worded`, by the row's ``is_utc``, which goes; without it all are UTC."""
    kind = (
        pl.when("is_utc").then(pl.lit(_UTC)).otherwise(pl.lit(_PRINTED)) if "is_utc" in frame.columns else pl.lit(_UTC)
    )
    return frame.with_columns(cs.datetime().dt.strftime(_FORMAT) + kind).drop("is_utc", strict=False)
