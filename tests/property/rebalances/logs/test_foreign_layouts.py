"""Any wording, behind any stack of prefixes, in any client's time format or in none: each line is accounted for."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from kit.rebalances.logs.local import files_here, read_logs_here
from kit.rebalances.logs.wordings import CONTEXT, LIBRDKAFKA
from tests.generators.pasted_lines import Pasted, every_said, lines, pasted
from tests.soak import IS_SOAK


def wrongly_told(every: Sequence[Pasted]) -> list[str]:
    """Each line alone in a file: those that are not exactly one event of the right kind and group, nor shown."""
    with tempfile.TemporaryDirectory() as folder:
        for number, each in enumerate(every):
            Path(folder, f"{number:05}.log").write_text(f"{each.line}\n")
        logs = read_logs_here(files_here([folder]))
    counts = {Path(row["file"]).stem: row for row in logs.files.iter_rows(named=True)}
    events = {Path(row["file"]).stem: row for row in logs.events.iter_rows(named=True)}
    told = ((each, counts[f"{number:05}"], events.get(f"{number:05}")) for number, each in enumerate(every))
    return [f"{wrong}: {each.line!r}" for each, counted, event in told if (wrong := _wrong(each, counted, event))]


def _wrong(each: Pasted, counted: dict, event: dict | None) -> str | None:
    """Return what is wrong with the account of a line. A text that shows no event may be left uncounted, but not
    counted twice; a doubtful one may be shown.
    """
    account = tuple(counted[name] for name in ("n_events", "n_context", "n_unknown"))
    if each.kinds == {CONTEXT}:
        return None if account[0] == 0 and sum(account) <= 1 else f"told as {account}, holds no event"
    if CONTEXT in each.kinds and account == (0, 1, 0):  # as another client's text, which shows none
        return None
    if event is None:
        return None if each.is_doubtful and account == (0, 0, 1) else f"told as {account}"
    if account != (1, 0, 0):
        return f"told as {account}"
    if event["kind"] not in each.kinds:
        return f"is {event['kind']}, not {sorted(each.kinds)}"
    return None if event["group_id"] == each.group else f"group {event['group_id']!r}, not {each.group!r}"


@settings(max_examples=1_000 if IS_SOAK else 5, deadline=None)
@given(st.lists(lines(), min_size=40, max_size=80))
def test_each_line_is_one_event_or_shown(every):
    assert wrongly_told(every) == []


OF_RDKAFKA = [said for said in every_said() if said.source == LIBRDKAFKA]
LAYOUTS = {
    "nothing": ("", "", "{}", every_said()),
    "librdkafka without a time": ("rdkafka: ", "", "{}", OF_RDKAFKA),
    "a stack of prefixes": ("web-1 | > ", "2021-02-03 04:05:06,007 MainThread INFO ", "{}", every_said()),
    "JSON in JSON": (
        "",
        "",
        r'{{"log":"{{\"level\":\"INFO\",\"message\":\"{}\"}}\n","stream":"stdout"}}',
        every_said(),
    ),
}
if IS_SOAK:
    LAYOUTS["Kafka's own"] = ("", "[2021-02-03 04:05:06,007] INFO ", "{} (a.b.Coordinator:77)", every_said())


@pytest.mark.parametrize(("front", "before", "wrapping", "texts"), LAYOUTS.values(), ids=LAYOUTS)
def test_each_wording_is_reported(front, before, wrapping, texts):
    assert wrongly_told([pasted(said, before, front, wrapping) for said in texts]) == []


@settings(max_examples=100 if IS_SOAK else 3, deadline=None)
@given(st.lists(lines(), min_size=40, max_size=80))
def test_no_line_of_a_file_is_reported_twice(every):
    """A line shows the same with other lines around it: the first witness is each line alone."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "pasted.log")
        log.write_text("".join(f"{each.line}\n" for each in every))
        logs = read_logs_here(files_here([str(log)]))
    told = [*logs.events["line"], *logs.unknown_lines["line"]]
    assert len(told) == len(set(told))
    must = {number for number, each in enumerate(every, 1) if CONTEXT not in each.kinds}
    assert must <= set(told)
    assert logs.files["n_context"].sum() + len(told) <= len(every)
