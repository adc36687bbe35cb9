"""The order of listings: rows that need attention come first. A terminal shows the first rows alone."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from kit.groups.analyses import ATTENTION
from kit.groups.analyze.blocking import BLOCKERS
from kit.groups.analyze.findings import FINDINGS


def by_attention(summary: pl.DataFrame) -> pl.DataFrame:
    """``group_summary``: the worst finding first, of equals the largest lag, then by name."""
    return summary.sort(_rank("attention", ATTENTION), -pl.col("lag").fill_null(-1), "group_id")


def most_behind(lags: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """By lag, the largest first; where it is unknown, last; behind all of them what is left in a store out of use."""
    left = ["is_stale"] if "is_stale" in lags.columns else []
    descending = [*[False] * len(left), True, *[False] * len(keys)]
    return lags.sort(*left, "lag", *keys, descending=descending, nulls_last=True)


def worst_findings(findings: pl.DataFrame) -> pl.DataFrame:
    """``ownership_findings``, or their ``finding_summary``: the worst kind first, then where it is found most often."""
    often = [pl.col("times")] if "times" in findings.columns else []
    keys = [name for name in ("group_id", "topic", "partition") if name in findings.columns]
    return findings.sort(
        _rank("finding", FINDINGS), *often, *keys, descending=[False, *[True] * len(often), *[False] * len(keys)]
    )


def worst_owned(owners: pl.DataFrame, findings: pl.DataFrame) -> pl.DataFrame:
    """``partition_owners`` of one group: first the partitions of which there is a finding."""
    place = ["topic", "partition"]
    worst = findings.select(*place, rank=_rank("finding", FINDINGS)).group_by(place).agg(pl.min("rank"))
    rows = owners.join(worst, on=place, how="left")
    return rows.sort("rank", *place, nulls_last=True).drop("rank")


def worst_blockers(blockers: pl.DataFrame) -> pl.DataFrame:
    """``blockers``: the worst kind first, then by name."""
    return blockers.sort(_rank("blocker", BLOCKERS), "group_id", "blocker", "sentence")


def most_blocked(readiness: pl.DataFrame, blockers: pl.DataFrame) -> pl.DataFrame:
    """``group_readiness``: groups with blockers, by the worst one; unknown ones; ready ones; all other groups."""
    worst = blockers.group_by("group_id").agg(rank=_rank("blocker", BLOCKERS).min())
    rows = readiness.join(worst, on="group_id", how="left")
    is_unknown, is_ready = pl.col("stage") == "unknown", pl.col("is_ready").fill_null(False)
    without = pl.when(is_unknown).then(0).when(is_ready).then(1).otherwise(2) + len(BLOCKERS) + 1
    order = pl.col("rank").fill_null(without), -pl.col("n_blockers"), pl.col("group_id")
    return rows.sort(*order).drop("rank")


def _rank(column: str, worst_first: Sequence[str]) -> pl.Expr:
    ranks = {name: at for at, name in enumerate(worst_first)}
    return pl.col(column).replace_strict(ranks, default=len(ranks), return_dtype=pl.Int32)
