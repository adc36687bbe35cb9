"""Names that no person chose: a tool or a start-up made them, so a restart makes another one."""

from __future__ import annotations

import narwhals as nw

_HEX = "[0-9a-fA-F]"
_EITHER = f"(?:[0-9]{_HEX.replace('0-9', '')}|{_HEX.replace('0-9', '')}[0-9])"
# No lookaround in polars' expressions: a digit beside a letter is at place 0, 1, … or later.
_MIXED_HEX = (
    "|".join(f"{_HEX}{{{n}}}{_EITHER}{_HEX}{{{10 - n},}}" for n in range(10)) + f"|{_HEX}{{10,}}{_EITHER}{_HEX}*"
)
_BEGIN, _END = r"(?:\A|[^0-9a-zA-Z])", r"(?:[^0-9a-zA-Z]|\z)"

_TURNS = "letters and digits by turns, 16 or more"

NAME_RULES = {
    "a tool's name and a number": r"\A(?:console-(?:share-)?consumer|perf-consumer)-[0-9]+\z",
    "a UUID": rf"{_BEGIN}{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}{_END}",
    "an anonymous group's name": r"\Aanonymous[.-].",
    "a pod's suffix": r"-[0-9a-f]{8,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\z",
    "a hash of 12 or more hex digits": rf"{_BEGIN}(?:{_MIXED_HEX}){_END}",
    "a number of 10 or more digits": rf"{_BEGIN}[0-9]{{10,}}{_END}",
    "an address and a process": r"[0-9]{1,3}(?:[.-][0-9]{1,3}){3}[-_@:][0-9]{2,7}\z",
    "a host and a process": r"[a-zA-Z0-9-]+\.[a-zA-Z]{2,}[-_@:][0-9]{5,7}\z",
    _TURNS: r"(?:[0-9]+[a-zA-Z]+){4}[0-9a-zA-Z]*\z",
}
"""The content of a name → an expression that both Java's and Rust's engine read alike. The first that fits is
reported.
"""
_LONG = r"[0-9a-zA-Z]{16,}\z"


def name_rule() -> nw.Expr:
    """Return what makes a name appear random, a key of ``NAME_RULES``; null: nothing does.

    >>> import polars as pl
    >>> names = ["orders", "console-consumer-4711", "tail-0f8fad5b-d9cb-469f-a165-70867728950e", "orders-v2"]
    >>> names += ["worker-host7.example.com-12345", "deadbeef", "job-1f2e3d4c5b6a", "OrdersServiceV2Consumer"]
    >>> found = nw.from_native(pl.DataFrame({"group_id": names})).select(rule=name_rule())
    >>> found["rule"].to_list()[1:5:2], found["rule"].to_list()[2::2]
    (["a tool's name and a number", None], ['a UUID', 'a host and a process', 'a hash of 12 or more hex digits'])
    """
    rule = nw.lit(None, nw.String)
    for label, pattern in reversed(NAME_RULES.items()):
        fits = nw.col("group_id").str.contains(pattern)
        if label == _TURNS:
            fits &= nw.col("group_id").str.contains(_LONG)
        rule = nw.when(fits).then(nw.lit(label)).otherwise(rule)
    return rule
