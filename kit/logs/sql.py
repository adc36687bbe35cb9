"""Steps of SQL, as texts: Spark reads and resolves a chain of them at once, where it would resolve a DataFrame again at
each of its steps, and ask Python for each Column.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def through(rows: DataFrame, *steps: str) -> DataFrame:
    """The rows behind these steps, in pipe syntax: ``|> WHERE …``. Spark takes longest for one step at a time, and for
    dozens at once. Whoever uses them holds ``rows``, too: Spark Connect forgets what was kept when Python does.
    """
    text = "\n".join(steps).replace("{", "{{").replace("}", "}}")
    return rows.sparkSession.sql(f"FROM {{rows}}\n{text}", rows=rows)


def named(columns: dict[str, str]) -> list[str]:
    """Expressions with the names that they get."""
    return [f"{expression} AS {name}" for name, expression in columns.items()]


def regex(pattern: str) -> str:
    """A raw string of SQL, which can hold no quote of its own kind."""
    return "r'" + pattern.replace("'", r"\x27") + "'"


def json(text: str) -> str:
    """As :func:`regex`, for JSON."""
    return "r'" + text.replace("'", r"\u0027") + "'"


def extracted(text: str, pattern: str, group: int = 1) -> str:
    """A group of the first place where the pattern is found; null where there is none, or it is empty there."""
    return f"nullif(regexp_extract({text}, {regex(pattern)}, {group}), '')"


def replaced(text: str, pattern: str, by: str) -> str:
    """The text with every place that the pattern finds replaced; ``$1`` is its first group."""
    return f"regexp_replace({text}, {regex(pattern)}, '{by}')"


def without(text: str, patterns: Iterable[str]) -> str:
    """The text without what the patterns find, in this order."""
    for pattern in patterns:
        text = replaced(text, pattern, "")
    return text
