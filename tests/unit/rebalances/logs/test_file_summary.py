"""The sentences about files: each problem in its sentence; problems that make an answer worthless are raised."""

from __future__ import annotations

import polars as pl
import pytest

from kit.errors import PartialRead
from kit.rebalances.logs.file_summary import log_files, verified
from kit.rebalances.logs.lines import Lines
from kit.tables import schema as tables

EVENTS = {"n_events": 3, "n_context": 1, "n_unknown": 2, "layouts": ["kafka"], "n_time_regressions": 0, "n_unzoned": 0}


def files(
    account: dict[str, object], n_lines: int = 9, given: str | None = None, n_cut: int = 0, **kind: set[str]
) -> pl.DataFrame:
    found = {"a.log": EVENTS | account} if account.get("n_events", 1) else {}
    damaged, odd = kind.get("damaged", set()), kind.get("binary", set())
    read = Lines({"a.log": n_lines}, pl.DataFrame(), 0, None, damaged, odd, {"a.log": n_cut})
    return log_files(found, read, given)


NOTHING = {"n_events": 0}


@pytest.mark.parametrize(
    ("account", "told"),
    [
        (
            files({}),
            "3 events, 1 known line without an event, 2 lines about coordination that offramp does not understand.$",
        ),
        (files(NOTHING, n_lines=0), "a.log is empty"),
        (files(NOTHING), "a.log holds no line about coordination"),
        (files({"n_time_regressions": 2}), "a.log has times that go back"),
        (files({"n_unzoned": 2}), "a.log does not name its time zone"),
        (files({"n_unzoned": 2, "first_at": 1, "n_time_regressions": 1}), "a.log names the zone of some times only"),
        (files({}, n_cut=1), "a.log: 1 line is longer than 2 MiB; the rest of it was not read.$"),
    ],
    ids=["sound", "empty", "no coordination", "times go back", "zone unknown", "zones differ", "cut"],
)
def test_tolerable_problems_are_reported(account, told):
    assert pl.Series([verified(account)]).str.contains(told).item()


@pytest.mark.parametrize(
    ("account", "told"),
    [
        (files(NOTHING, binary={"a.log"}), r"a\.log is not text"),
        (files({}, damaged={"a.log"}), r"a\.log is damaged"),
        (files(NOTHING, given="spring"), r"a\.log has no line of the layout given"),
    ],
    ids=["binary", "truncated", "layout"],
)
def test_problems_that_spoil_the_answer_are_raised(account, told):
    with pytest.raises(PartialRead, match=told):
        verified(account)


def test_the_account_is_as_declared():
    assert files({}).columns == list(tables.LOG_FILES.schema.names)
    assert files({})["layouts"].to_list() == [["kafka"]]
