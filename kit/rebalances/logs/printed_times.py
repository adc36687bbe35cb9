"""Times as other programs print them, found in the front of a line, written as ISO 8601."""

from __future__ import annotations

import polars as pl

from kit.rebalances.logs.texts import extracted, replaced

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
ISO = rf"\d{{3,4}}-\d\d-\d\d[ T]{_CLOCK}"
_DAYS = (
    (rf"(\d{{4}}[/.-]\d\d[/.-]\d\d[ T_]{_CLOCK})", "%Y/%m/%d %H:%M:%S%.f"),
    (rf"\b(\d\d/\d\d/\d\d {_CLOCK})", "%y/%m/%d %H:%M:%S%.f"),
    (rf"\b(\d\d\.\d\d\.\d{{4}} {_CLOCK})", "%d.%m.%Y %H:%M:%S%.f"),
    (rf"\b(\d{{1,2}}[ /-][A-Z][a-z]{{2}}[ /-]\d{{4}}[ :T]{_CLOCK})", "%d %b %Y %H:%M:%S%.f"),
    (rf"\b(\d{{4}} [A-Z][a-z]{{2}} \d{{1,2}} {_CLOCK})", "%Y %b %d %H:%M:%S%.f"),
    (r"\b([A-Z][a-z]{2} \d{1,2}, \d{4},? \d{1,2}:\d\d:\d\d\s?[AP]M)", "%b %d %Y %I:%M:%S %p"),
    (rf"\b([A-Z][a-z]{{2}} \d{{1,2}}, \d{{4}} @ {_CLOCK})", "%b %d %Y @ %H:%M:%S%.f"),  # Kibana's
    (rf"\b([A-Z][a-z]{{2,8}} \d{{1,2}}(?:st|nd|rd|th) \d{{4}}, {_CLOCK})", "%B %d %Y %H:%M:%S%.f"),
    (
        rf"\b(?:[A-Z][a-z]{{2}} )?([A-Z][a-z]{{2}} {{1,2}}\d{{1,2}} {_CLOCK} (?:[A-Z]{{3,4}} )?\d{{4}})\b",
        "%b %d %H:%M:%S%.f %Y",
    ),
)
"""Day before month is not distinguished from month before day: such a time stays unread."""
_EPOCH = r"\b(1\d{9}\.\d{3})\b"
ANY = rf"{_CLOCK}|{_EPOCH}"


def time_in(front: pl.Expr) -> pl.Expr:
    """The last ISO time of a text, else the first in another writing, else the first clock; null: none."""
    days = [_as_iso(extracted(front, pattern), form) for pattern, form in _DAYS]
    return pl.coalesce(
        extracted(front, rf"^(?:.*[^\d])?({ISO})"), *days, extracted(front, _EPOCH), extracted(front, rf"({_CLOCK})")
    )


def epoch_in(front: pl.Expr) -> pl.Expr:
    """Seconds since 1970: they are of no zone."""
    return extracted(front, _EPOCH)


def zone_in(front: pl.Expr, zone: str) -> pl.Expr:
    """The zone behind the last ISO time."""
    return extracted(front, rf"^(?:.*[^\d])?{ISO} ?({zone})")


def _as_iso(text: pl.Expr, form: str) -> pl.Expr:
    plain = replaced(replaced(text, r"(\d+), (\d{4}),?", "${1} ${2}"), r"\s?([AP]M)$", " ${1}")
    plain = replaced(
        replaced(
            plain.str.replace_all(",", ".", literal=True), r"^(\d{4})[/.-](\d\d)[/.-](\d\d)[ T_]", "${1}/${2}/${3} "
        ),
        " +",
        " ",
    )
    plain = replaced(plain, r" [A-Z]{3,4} (\d{4})$", " ${1}")  # the name of a zone is of several places
    if form.startswith("%B"):
        plain = replaced(plain, r"^(\w+ \d+)[a-z]{2} (\d{4})\. ", "${1} ${2} ")
    if form.startswith("%d %b"):
        plain = replaced(
            replaced(plain, r"^(\d+)[/-](\w+)[/-](\d+)", "${1} ${2} ${3}"), r"^(\S+ \S+ \d{4})[:T]", "${1} "
        )
    return plain.str.to_datetime(form, time_unit="us", strict=False).dt.to_string("%Y-%m-%d %H:%M:%S%.6f")
