"""How tables and charts look in a notebook: drawn offline, sorted by the caller, no types, digits grouped."""

from __future__ import annotations

import polars as pl

from kit import charts


def prepare() -> None:
    """Set this kernel's charts to SVG and its tables to offramp's look."""
    charts.enable_svg()
    pl.Config(
        tbl_rows=100,
        tbl_cols=-1,
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        tbl_cell_numeric_alignment="RIGHT",
        fmt_str_lengths=400,
        float_precision=2,
        thousands_separator=" ",
    )
