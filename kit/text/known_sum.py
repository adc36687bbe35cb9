"""A sum of polars that stays unknown."""

from __future__ import annotations

import polars as pl


def known_sum(name: str) -> pl.Expr:
    """The sum of the known values of a column; null where none is: polars' own sum over nulls is 0.

    >>> pl.DataFrame({"lag": [None, 3]}).select(known_sum("lag")).item()
    3
    >>> pl.DataFrame({"lag": [None]}, {"lag": pl.Int64}).select(known_sum("lag")).item() is None
    True
    """
    return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)
