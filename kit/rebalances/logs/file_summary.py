"""The account of every file of a read: its lines, what became of them, and what is wrong with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from kit.errors import PartialRead
from kit.rebalances.logs.records import ZONE_STEP_S
from kit.rebalances.logs.scan import LONGEST
from kit.rebalances.logs.task_summary import COUNTS
from kit.tables import schema as tables
from kit.tables.polars import frame
from kit.tables.rebalances import LogFile
from kit.text.quantity import quantity
from kit.text.visible import visible

if TYPE_CHECKING:
    import pyarrow as pa

    from kit.rebalances.logs.lines import Lines

_PROBLEMS = {
    "empty": "is empty",
    "binary": "is not text",
    "truncated": "is damaged: the part before the damage was read, the rest is missing",
    "layout": "has no line of the layout given",
    "no coordination": "holds no line about coordination (a Java client ≤ 0.9 and librdkafka print none below DEBUG)",
    "zones differ": "names the zone of some times only, so its other times can't be compared with these: give the zone",
    "times go back": "has times that go back: rotated files in a wrong order, several consumers, a clock that was set",
    "zone unknown": "does not name its time zone, so its times are not in UTC: give the zone",
}
FATAL = ("binary", "truncated", "layout")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RECORDS = ("n_events", "n_context", "n_unknown")
FileCounts: TypeAlias = dict[str, dict[str, Any]]
"""File → its counts, if it has any."""


def counts_by_file(rows: pa.Table) -> FileCounts:
    """The rows of ``extract`` that hold counts."""
    counted = pl.DataFrame(rows.select(["file", *COUNTS])).filter(pl.col("n_events").is_not_null())
    return {row["file"]: _as_proved(row) for row in counted.iter_rows(named=True)}


def _as_proved(account: dict[str, Any]) -> dict[str, Any]:
    """With the times that are known by what the file proves of its zone: all its proofs must agree."""
    step = account["least_step"]
    if step is None or step != account["most_step"]:
        return account | {"shift_us": None}
    shift_us = step * ZONE_STEP_S * 1_000_000
    times = [account["first_at"], account["last_at"]]
    times += [
        _EPOCH + timedelta(microseconds=local - shift_us)
        for local in (account["first_local"], account["last_local"])
        if local is not None
    ]
    known = [at for at in times if at is not None]
    return account | {
        "shift_us": shift_us,
        "n_unzoned": 0,
        "first_at": min(known, default=None),
        "last_at": max(known, default=None),
    }


def proved(counts: FileCounts) -> dict[str, int]:
    """File → µs its times are ahead of UTC, of those that prove it."""
    return {file: account["shift_us"] for file, account in counts.items() if account["shift_us"] is not None}


def log_files(counts: FileCounts, read: Lines, layout: str | None) -> pl.DataFrame:
    """``tables.LOG_FILES``: a row for every file of ``read``."""
    rows = []
    for file, n_lines in sorted(read.n_lines.items()):
        account = counts.get(file, {})
        is_binary = file in read.odd and not account
        rows.append(
            LogFile(
                file=file,
                n_lines=n_lines,
                n_events=account.get("n_events", 0),
                n_context=account.get("n_context", 0),
                n_unknown=account.get("n_unknown", 0),
                layouts=tuple(sorted(account.get("layouts", ()))),
                n_time_regressions=account.get("n_time_regressions", 0),
                first_at=account.get("first_at"),
                last_at=account.get("last_at"),
                n_cut=read.n_cut[file],
                problem=_problem(account, n_lines, file in read.damaged, is_binary, layout),
            )
        )
    return frame(tables.LOG_FILES.columns_of(rows))


def _problem(
    account: dict[str, Any], n_lines: int, is_damaged: bool, is_binary: bool, layout: str | None
) -> str | None:
    nothing = not any(account.get(key) for key in _RECORDS)
    problems = {
        "truncated": is_damaged,
        "empty": n_lines == 0,
        "binary": is_binary,
        "layout": nothing and layout is not None,
        "no coordination": nothing,
        "zones differ": bool(account.get("n_unzoned") and account.get("first_at")),
        "times go back": bool(account.get("n_time_regressions")),
        "zone unknown": bool(account.get("n_unzoned")),
    }
    return next((name for name, applies in problems.items() if applies), None)


def verified(files: pl.DataFrame) -> str:
    """Return what was read, in sentences; raises PartialRead for damaged files, for no text, and for another layout."""
    sentences = [
        f"{quantity(len(files), 'file')}, {quantity(files['n_lines'].sum(), 'line')}: "
        f"{quantity(files['n_events'].sum(), 'event')}, "
        f"{quantity(files['n_context'].sum(), 'known line')} without an event, "
        f"{quantity(files['n_unknown'].sum(), 'line')} about coordination that offramp does not understand."
    ]
    problems = files.filter(pl.col("problem").is_not_null())
    sentences += [
        f"{visible(file)} {_PROBLEMS[problem]}." for file, problem in problems.select("file", "problem").iter_rows()
    ]
    sentences += [
        f"{visible(file)}: {quantity(n_cut, 'line is', 'lines are')} longer than {LONGEST >> 20} MiB; the "
        "rest of it was not read."
        for file, n_cut in files.filter(pl.col("n_cut") > 0).select("file", "n_cut").iter_rows()
    ]
    fatal = problems.filter(pl.col("problem").is_in(FATAL))
    if not fatal.is_empty():
        raise PartialRead(" ".join(sentences))
    return "\n".join(sentences)
