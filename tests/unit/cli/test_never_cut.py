"""No value of any table is cut without a mark, at any width: long names of strangers, numbers of many digits.

The listings of ``kit.cli.groups`` are in ``test_listing.py``. What a table is handed is held against what it prints,
character by character; what it is handed, against the rows themselves.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from datetime import UTC, date, datetime
from itertools import product
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from kit.cli import idle, outlook, time_lag
from kit.engine.model.record import RunRow
from kit.engine.runs_folder import PlanRow
from kit.health.verbs import watch
from kit.kraft.verbs import kraft, znodes
from kit.operations.verbs import runs
from kit.rebalances.verbs import rebalances
from kit.terminal import listing
from kit.terminal.listing import Listing
from kit.terminal.table import table_lines

WIDTHS = (60, 80, 100, 140, 200)
DIGITS = "98765432109876543210"
BIG = 9_223_372_036_854_775_807
AT = datetime(2026, 11, 24, 1, 2, 3, tzinfo=UTC)
SENTENCE = f"the group was read at {DIGITS} and the member {DIGITS}-a stayed where it was for ever and a day."
RUN_ID = f"20261124T010203Z-orders-of-the-shop-in-the-north-{DIGITS}-0a1b2c3d"
NAMES = (
    f"a-group-with-a-name-that-is-as-long-as-names-in-real-clusters-become-after-some-years-{DIGITS}",
    f"注文注文注文注文注文注文注文注文注文注文注文注文-{DIGITS}",
    f"\x1b[31mred\u202e{DIGITS}\u200b-and-then-some-more-of-it-so-that-it-has-to-wrap-somewhere",
    DIGITS * 12 + "123456789",  # 249, the most of a topic
    "g",
)
Rows = Callable[[str], Any]


def _runs(name: str) -> None:
    values = ("DONE", "fleet", name, "cluster", DIGITS, name, name, AT.isoformat(), AT.isoformat(), 7, SENTENCE)
    runs._print([RunRow(RUN_ID, *values)], runs._COLUMNS, Listing())
    runs._print([RunRow(RUN_ID, error=f"{name} {SENTENCE}")], runs._COLUMNS, Listing())


def _plans(name: str) -> None:
    row = PlanRow(DIGITS, "group", name, name, AT.isoformat(), name, AT.isoformat(), "STOPPED", RUN_ID, SENTENCE)
    runs._print([row], list(row.__slots__), Listing())


def _rebalances(name: str) -> None:
    times = {
        "life": 1,
        "n_members": 1,
        "is_utc": True,
        "started_at": AT,
        "ended_at": AT,
        "duration_ms": BIG,
        "leader_id": f"{name}-leader",
    }
    row = {"group_id": name, "generation": BIG, **times, "assignor": f"range-{name}"}
    lists = {each: [[name]] for each in ("members", "joined", "left", "moved")}
    generations = pl.DataFrame([row]).with_columns(**{each: pl.Series(value) for each, value in lists.items()})
    unknown = pl.DataFrame({"wording": [name], "n_lines": [BIG], "example": [f"{name}: {SENTENCE}"]})
    rebalances.print_story(
        SimpleNamespace(generations=generations, unknown_wordings=lambda: unknown, describe=list)  # type: ignore[arg-type]
    )


def _watch(name: str) -> None:
    row = {"group_id": name, "store": "kafka", "lag": BIG, "trend": "standing"}
    rates = dict.fromkeys(("lag_per_s", "read_per_s", "written_per_s"), 1234567890.25)
    watch._print(pl.DataFrame([{**row, **rates, "lags": [1, BIG], "n_unknown": BIG}]), "headline")


def _kraft_status(name: str) -> None:
    fact = {"fact": f"broker {name}", "value": DIGITS, "source": name, "read_at": AT, "error": SENTENCE}
    no_findings = pl.DataFrame(schema=dict.fromkeys(("check_id", "severity", "sentence", "remedy"), pl.String))
    facts = pl.DataFrame([fact, {**fact, "error": None}])
    kraft._tell_status(SimpleNamespace(describe=list, facts=facts), no_findings)  # type: ignore[arg-type]


def _kraft_diff(name: str) -> None:
    counts = ("n_values", "n_equal", "n_expected", "n_in_flight", "n_diverged", "n_unknown")
    row = {"kind": "topic", "entity": name, "item": f"config {name}", "verdict": "diverged", "cause": "hand_edit"}
    rows = pl.DataFrame([{**row, "zookeeper_value": name + DIGITS, "kraft_value": DIGITS + name}])
    found = SimpleNamespace(
        summary=pl.DataFrame([{"kind": "topic", **dict.fromkeys(counts, BIG)}]),
        differences=rows,
    )
    kraft._tell_diff(found, rows)


def _idle(name: str) -> None:
    row = {"group_id": name, "store": "kafka", "class": "random name", "commit_age_ms": BIG, "lag": BIG}
    rows = pl.DataFrame([{**row, "n_committed": BIG, "evidence": f"{name}: {SENTENCE}"}])
    Listing().print(rows, idle._SPARE, idle._in_words)


def _time_lag(name: str) -> None:
    ages = dict.fromkeys(("time_lag_ms", "lower_ms", "upper_ms"), BIG)
    row = {"group_id": name, "store": "kafka", "topic": name, "partition": BIG, "member_id": name, "lag": BIG, **ages}
    flags = dict.fromkeys(("is_idle", "is_extrapolated", "is_truncated"), True)
    rows = pl.DataFrame([{**row, **flags, "method": "bisection", "committed_offset": BIG, "error": SENTENCE}])
    Listing().print(rows, time_lag._SPARE, time_lag._in_words)


def _outlook(name: str) -> None:
    row = {"group_id": name, "store": "kafka", "topic": name, "partition": BIG, "lag": BIG, "trend": "growing"}
    times = {f"{what}_{bound}_ms": BIG - 1 for what in ("close", "deletion") for bound in ("lower", "upper")}
    flags = {"is_never_closed": False, "is_never_deleted": False, "deletion_by": "size", "pause_ms": BIG}
    rates = {
        "consumed_per_s": 1e15 / 3,
        "produced_per_s": 0.1,
        "lag_retained": 0,
        "expired_unread": BIG,
        "error": f"{name} {SENTENCE}",
    }
    Listing().print(pl.DataFrame([row | times | flags | rates]), outlook._SPARE, outlook._in_words)


def _history(name: str) -> None:
    counts = dict.fromkeys(("n_snapshots", "n_compacted", "n_files", "n_bytes"), BIG)
    Listing().print(pl.DataFrame([{"date": date(2026, 11, 24), **counts}]))


def _znodes(name: str) -> None:
    row = {"path": f"/consumers/{name}", "version": BIG, "mzxid": BIG, "modified_at": AT, "session_id": BIG}
    rows = pl.DataFrame([{**row, "ephemeral_owner": BIG, "data": DIGITS.encode(), "error": SENTENCE}])
    znodes._print(rows, znodes._SHOWN, False)


FACES: dict[str, Rows] = {
    "runs": _runs,
    "plan list": _plans,
    "rebalances": _rebalances,
    "watch": _watch,
    "kraft status": _kraft_status,
    "kraft diff": _kraft_diff,
    "groups --idle": _idle,
    "lag --time": _time_lag,
    "lag --outlook": _outlook,
    "history info": _history,
    "znodes": _znodes,
}


def printed(face: Rows, name: str, width: int, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any, list[str]]]:
    """Each table: its columns, its rows as texts, its lines."""
    tables = []

    def record(columns, rows, *more, **options):
        with redirect_stdout(io.StringIO()) as out:
            show(columns, rows, *more, **options)
        tables.append((columns, rows, out.getvalue().splitlines()))

    show = listing.print_table
    with monkeypatch.context() as recording, redirect_stdout(io.StringIO()):
        recording.setattr(listing, "print_table", record)
        recording.setenv("COLUMNS", str(width))
        face(name)
    return tables


def cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


@pytest.mark.parametrize("face", FACES)
def test_every_character_is_there_or_its_column_is_named(face, monkeypatch):
    for width, name in product(WIDTHS, NAMES):
        tables = printed(FACES[face], name, width, monkeypatch)
        assert tables
        for table in tables:
            assert_whole(*table, width)


def assert_whole(columns, rows, lines: list[str], width: int) -> None:
    left_out = [line for line in lines if line.startswith("No room for ")]
    dropped = left_out[0].removeprefix("No room for ").partition(":")[0].split(", ") if left_out else []
    body = [line for line in lines if line not in left_out]
    shown = [at for at, column in enumerate(columns) if column not in dropped]
    assert set(dropped) <= set(columns)
    assert len(shown) >= min(2, len(columns))
    assert max(map(cells, body)) <= width
    wanted = "".join([*(list(columns)[at] for at in shown), *(row[at] for row in rows for at in shown)])
    assert Counter("".join("".join(body).split())) == Counter("".join(wanted.split()))
    words = Counter(" ".join(body).split())
    numbers = Counter(row[at] for row in rows for at in shown if list(columns.values())[at] and row[at] != "–")
    assert not numbers - words, "a number wraps"


@pytest.mark.parametrize("face", FACES)
def test_a_table_is_handed_whole_values(face, monkeypatch):
    """The rows of a verb are cut by nothing either."""
    name = NAMES[0]
    texts = [text for _, rows, _ in printed(FACES[face], name, 200, monkeypatch) for row in rows for text in row]
    whole = {"history info": str(BIG), "plan list": DIGITS, "kraft status": DIGITS, "runs": RUN_ID}.get(face, name)
    assert any(text.endswith(whole) for text in texts)
    if face in ("runs", "plan list"):
        assert RUN_ID in texts
    if face not in ("history info", "runs", "plan list"):
        assert any(name in text for text in texts)
    if face in ("rebalances", "watch", "kraft diff", "groups --idle", "lag --time", "lag --outlook"):
        assert str(BIG) in texts


def test_the_two_values_of_a_difference_stay_at_60_columns(monkeypatch):
    columns = ("entity", "item", "zookeeper_value", "kraft_value", "verdict", "cause", "kind")
    values = ("topics/orders", "retention.ms", "7", "–", "diverged", "hand_edit", "config")
    lines, _ = table_lines(dict.fromkeys(columns, False), [values], 60)
    assert lines[0].split()[:4] == list(columns[:4])
