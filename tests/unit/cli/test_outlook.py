"""An outlook is reported to people."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from kit.cli.main import app
from kit.cli.outlook import _in_words
from kit.cli.time_lag import _in_words as ages_in_words

MINUTE, HOUR = 60_000, 3_600_000
ROW = {
    "group_id": "g",
    "store": "kafka",
    "topic": "t",
    "partition": 0,
    "lag": 5,
    "trend": "growing",
    "close_ms": None,
    "close_lower_ms": None,
    "close_upper_ms": None,
    "is_never_closed": True,
    "deletion_ms": HOUR,
    "deletion_lower_ms": HOUR - 1,
    "deletion_upper_ms": 2 * HOUR + 1,
    "is_never_deleted": False,
    "deletion_by": "size",
    "pause_ms": 90_999,
    "consumed_per_s": 1234.56,
    "produced_per_s": None,
    "lag_retained": 0,
    "expired_unread": 0,
    "error": None,
}


@pytest.mark.parametrize(
    ("changes", "closed", "deleted"),
    [
        ({}, "never at this rate", "59 min – 2 h 1 min by size"),
        ({"is_never_deleted": True, "deletion_lower_ms": None}, "never at this rate", "never at this rate"),
        ({"deletion_upper_ms": None, "deletion_by": "time"}, "never at this rate", "not before 59 min by time"),
        ({"is_never_deleted": None, "deletion_lower_ms": None}, "never at this rate", None),
        ({"is_never_closed": False, "close_lower_ms": 0, "close_upper_ms": 0}, "0 s", "59 min – 2 h 1 min by size"),
        ({"is_never_closed": False, "close_lower_ms": MINUTE}, "not before 1 min", "59 min – 2 h 1 min by size"),
        ({"is_never_closed": None}, None, "59 min – 2 h 1 min by size"),
    ],
)
def test_brackets_are_rounded_outwards_and_never_is_shown(changes: dict[str, Any], closed: str, deleted: str) -> None:
    (row,) = _in_words(pl.DataFrame([ROW | changes])).to_dicts()
    assert (row["closed_in"], row["unread_deleted_in"]) == (closed, deleted)
    assert (row["may_pause"], row["read_per_s"], row["written_per_s"]) == ("1 min 30 s", "1,234.6", None)


def test_ages_are_words_in_their_place_and_the_bracket_is_rounded_outwards() -> None:
    ages = {"time_lag_ms": [61_999, None], "lower_ms": [61_500, 1], "upper_ms": [62_001, None]}
    rows = ages_in_words(pl.DataFrame({"group_id": "g", "lag": 5, **ages, "is_idle": False}))
    assert rows.columns == ["group_id", "lag", "time_lag", "lower", "upper", "is_idle"]
    assert rows.select("time_lag", "lower", "upper").rows() == [
        ("1 min 1 s", "1 min 1 s", "1 min 3 s"),
        (None, "0 s", None),
    ]


def test_two_listings_at_once_are_refused() -> None:
    ended = CliRunner().invoke(app, ["lag", "--time", "--outlook"])
    assert ended.exit_code == 2
    assert "choose one" in ended.stderr
