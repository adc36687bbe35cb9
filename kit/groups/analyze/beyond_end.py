"""A committed offset beyond the end of its log: nothing seems to wait, but the group's position is lost.

A fetch from such an offset is answered with OFFSET_OUT_OF_RANGE. The consumer then moves by its ``auto.offset.reset``
(Kafka's ``FetchCollector`` and ``OffsetFetcher``).
"""

from __future__ import annotations

import narwhals as nw

BEYOND_END = "beyond the end"
"""The trend and the attention of such a partition and its group."""
REMEDY = (
    "at its next fetch a consumer moves by auto.offset.reset: to the start of the log (earliest), to its end (latest),"
    " or it stops (none)"
)


def beyond_end_of(committed_offset: nw.Expr, log_end_offset: nw.Expr) -> nw.Expr:
    """Records by which the offset is beyond the end, at least 0; null where one of both is unknown."""
    beyond = committed_offset - log_end_offset
    return nw.when(beyond < 0).then(nw.lit(0, nw.Int64)).otherwise(beyond)


def beyond_end_error(beyond_end: nw.Expr) -> nw.Expr:
    """Return why an age or a forecast of such a partition is unknown; null where its commit is within the log."""
    parts = [nw.lit("the commit is "), beyond_end.cast(nw.String), nw.lit(f" beyond the end of the log: {REMEDY}")]
    return nw.when(beyond_end > 0).then(nw.concat_str(parts))
