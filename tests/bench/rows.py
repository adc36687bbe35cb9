"""Keep the result of a comparison: its row, the table, and ``build/bench.json``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
RESULTS = REPOSITORY / "build" / "bench.json"
_WIDTHS = (62, 10, 10, 4, 8, 6)


@dataclass(frozen=True, slots=True)
class Row:
    """Two medians in ``unit`` (less is better) and how many times ours goes into the peer's.

    ``goal`` is the smallest ratio wanted; None: shown for information.
    """

    name: str
    ours: float
    peer: float
    unit: str
    goal: float | None

    @property
    def ratio(self) -> float:
        return self.peer / self.ours

    @property
    def is_missed(self) -> bool:
        return self.goal is not None and self.ratio < self.goal

    def record(self) -> dict[str, object]:
        """Return the record of the results' file."""
        return {**asdict(self), "ratio": round(self.ratio, 2), "ours": round(self.ours, 4), "peer": round(self.peer, 4)}

    def line(self) -> str:
        """Its line of the table."""
        digits = 0 if self.unit == "MB" else 3
        verdict = "" if self.goal is None else "MISSED" if self.is_missed else "ok"
        goal = "–" if self.goal is None else f"≥ {self.goal:g}"
        cells = (self.name, f"{self.ours:.{digits}f}", f"{self.peer:.{digits}f}", self.unit, f"{self.ratio:.1f}", goal)
        return f"{_columns(cells)}  {verdict}".rstrip()


def table(rows: Sequence[Row]) -> str:
    """The rows for people, missed goals named below."""
    heading = _columns(("name", "ours", "peer", "unit", "ratio", "goal")) + "  ok?"
    missed = [f"MISSED: {row.name}: {row.ratio:.2f}, wanted {row.goal:g}" for row in rows if row.is_missed]
    return "\n".join([heading, "-" * len(heading), *(row.line() for row in rows), *missed])


def write(rows: Sequence[Row], path: Path = RESULTS) -> None:
    """Write the results: a list of name, ours, peer, unit, ratio and goal."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([row.record() for row in rows], indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _columns(cells: Sequence[str]) -> str:
    first, *others = (f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS))
    return " ".join([f"{first.strip():<{_WIDTHS[0]}}", *others])
