"""Lines as a task gets them → portions small enough to hold, and what of one portion has to wait for the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl
import pyarrow as pa

_BYTES, _ROWS = 32 << 20, 20_000
"""The size of a portion."""


def portions(batches: Iterable[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
    """Yield portions of as many lines as are extracted at once."""
    held: list[pl.DataFrame] = []
    for batch in batches:
        held.append(pl.DataFrame(batch))
        if sum(map(len, held)) > _ROWS or sum(each.estimated_size() for each in held) > _BYTES:
            yield pl.concat(held)
            held = []
    if held:
        yield pl.concat(held)


def with_last(portions: Iterable[pl.DataFrame]) -> Iterator[tuple[pl.DataFrame, bool]]:
    """Each portion, and whether it is the last."""
    before = None
    for each in portions:
        if before is not None:
            yield before, False
        before = each
    if before is not None:
        yield before, True


def detached(rows: pl.DataFrame) -> pl.DataFrame:
    """A copy: a few rows that wait would otherwise keep all the texts of their portion in memory."""
    return pl.DataFrame(rows.to_arrow(compat_level=pl.CompatLevel.oldest()))
