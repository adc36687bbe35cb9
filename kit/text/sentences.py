"""Sentences about rows: each rule is one column of text, null where it doesn't apply; applying ones become rows."""

from __future__ import annotations

from collections.abc import Mapping

import narwhals as nw
from narwhals.typing import FrameT


def words(*parts: str | nw.Expr) -> nw.Expr:
    """The parts as one text; whole numbers are written out."""
    return nw.concat_str([nw.lit(part) if isinstance(part, str) else part.cast(nw.String) for part in parts])


def sentence(applies: nw.Expr, *parts: str | nw.Expr) -> nw.Expr:
    """``Group <group_id>: `` and the parts, where the rule applies; else null. Whole numbers are written out."""
    return nw.when(applies).then(words("Group ", nw.col("group_id"), ": ", *parts))


def counted(number: nw.Expr, one: str, many: str = "") -> nw.Expr:
    """A whole number and what it counts; ``many`` where more than one is not ``one`` and an s. Null stays null."""
    noun = nw.when(number == 1).then(nw.lit(f" {one}")).otherwise(nw.lit(f" {many or f'{one}s'}"))
    return nw.concat_str([number.cast(nw.String), noun])


def applying(rows: FrameT, rules: Mapping[str, nw.Expr], keep: list[str], code: str) -> FrameT:
    """One row per row and rule that applies: the columns to keep, the rule's name in ``code``, ``sentence``.

    All rules examine one wide row, so that what leads to it is computed once.
    """
    sentences = rows.select(*keep, **rules)
    rows = sentences.unpivot(on=list(rules), index=keep, variable_name=code, value_name="sentence")
    return rows.filter(~nw.col("sentence").is_null())
