"""Logs that a terminal or a paste has wrapped: a list is read whole, or not at all."""

from __future__ import annotations

import re
import textwrap

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from polars.testing import assert_frame_equal

from kit.rebalances.logs.wrapped import _ENOUGH, rejoined
from tests.unit.rebalances.logs.pasted import read, read_each

AT = "[2024-05-01 10:00:0{},100] INFO "
WHO = "[Consumer clientId=app-1, groupId=orders] "
CLASS = " (org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)"
GENERATION = "Generation{generationId=7, memberId='app-1-11111111-1111-4111-8111-111111111111', protocol='range'}"
TEXTS = (
    "(Re-)joining group",
    f"Successfully joined group with generation {GENERATION}",
    f"Successfully synced group in generation {GENERATION}",
    "Adding newly assigned partitions: clicks-0, clicks-1, clicks-10, clicks-11, orders-2, orders-23",
)
LINES = [f"{AT.format(number)}{WHO}{text}{CLASS}" for number, text in enumerate(TEXTS)]
FACTS = ("kind", "generation", "member_id", "partitions")


def at_width(width: int) -> list[str]:
    """The first record is short, and whole."""
    return [LINES[0]] + [line[start : start + width] for line in LINES[1:] for start in range(0, len(line), width)]


def facts(folder, *lines: str) -> list[tuple]:
    return read(folder, *lines).events.select(FACTS).rows()


@pytest.mark.parametrize("width", [110, 125, 140, 150])
def test_lines_that_a_terminal_wrapped_are_read_as_one(tmp_path, width):
    wrapped = [
        piece
        for line in LINES
        for piece in ((line[:width], line[width:]) if len(line) - len(CLASS) > width else (line,))
    ]
    assert len(wrapped) > len(LINES)
    assert facts(tmp_path, *wrapped) == facts(tmp_path, *LINES)


def test_lines_that_were_wrapped_between_words_are_read_as_one(tmp_path):
    wrapped = [piece for line in LINES for piece in textwrap.wrap(line, 150, break_on_hyphens=False)]
    assert len(wrapped) > len(LINES)
    assert facts(tmp_path, *wrapped) == facts(tmp_path, *LINES)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(width=st.integers(50, 230))
def test_no_part_of_a_list_is_taken_for_the_whole(tmp_path, width):
    whole = {kind: (partitions, member) for kind, _, member, partitions in facts(tmp_path, *LINES)}
    for kind, _, member, partitions in facts(tmp_path, *at_width(width)):
        assert partitions in (None, whole[kind][0])
        assert member in (None, whole[kind][1])


def test_a_line_whose_end_is_missing_reports_it(tmp_path):
    reason = "Request joining group due to: group is already rebal"
    logs = read(tmp_path, LINES[0], f"{AT.format(1)}{WHO}{reason}", LINES[3])
    assert logs.events["reason"].to_list() == [None, "group is already rebal … (the line is cut here)", None]


def test_a_layout_without_loggers_has_whole_lines(tmp_path):
    """No record of the file closes with a logger, so the missing logger proves nothing."""
    bare = [line.removesuffix(CLASS) for line in LINES]
    assert facts(tmp_path, *bare) == facts(tmp_path, *LINES)


def test_lines_of_another_layout_are_no_parts_of_records(tmp_path):
    head = "%7|1795264659.784|GRPASSIGNMENT|till#consumer-2| [thrd:main]: "
    listed = [f"{head}List with 2 partition(s):", *(f"{head} orders [{number}] offset INVALID" for number in range(2))]
    (event,) = read(tmp_path, *LINES, *listed).events.filter(pl.col("kind") == "group_assignment").rows(named=True)
    assert (event["partitions"], event["reason"]) == (["orders-0", "orders-1"], None)


@pytest.mark.parametrize("portion", [1, 3, 7, 99, 101])
@pytest.mark.parametrize("width", [60, 110])
def test_it_does_not_matter_where_a_portion_of_wrapped_lines_ends(portion, width):
    texts = [*["an old line"] * 90, *at_width(width) * 5]
    assert len(texts) > _ENOUGH
    files = [pl.DataFrame({"value": texts}).select(file=pl.lit(name), line=pl.int_range(pl.len()) + 1, value="value")
             for name in ("a", "b", "c")]  # fmt: skip
    lines = pl.concat([files[0], files[1].tail(30), files[2]])
    whole = pl.concat(rejoined([lines]))
    assert len(whole) < len(lines)
    assert_frame_equal(pl.concat(rejoined(lines.iter_slices(portion))), whole)


def test_the_line_after_a_record_is_not_its_rest(tmp_path):
    trace = ["org.apache.kafka.common.errors.DisconnectException: x", "\tat a.B.c(B.java:1)", "some words (a.b.C)"]
    logs = read_each(tmp_path, ["\n".join([LINES[0], *trace, LINES[3]])])
    (only,) = logs.values()
    assert only.events.select(FACTS).rows() == [facts(tmp_path, *LINES)[number] for number in (0, 3)]


def test_a_record_of_several_lines_is_no_wrapped_one(tmp_path):
    block = [
        f"{AT.format(1)}{WHO}Updating assignment with",
        "\tAssigned partitions:                       [clicks-0]",
        "\tCurrent owned partitions:                  []",
        "\tAdded partitions (assigned - owned):       [clicks-0]",
        "\tRevoked partitions (owned - assigned):     []",
        CLASS,
    ]
    (event,) = read(tmp_path, *block).events.rows(named=True)
    assert (event["kind"], event["partitions"], event["owned_after"]) == (
        "assignment_diff",
        ["clicks-0"],
        ["clicks-0"],
    )
    assert not re.search("cut", str(event["reason"]))


@pytest.mark.parametrize(("end", "group"), [("", None), (" for generation 7", "orders")])
def test_a_name_at_which_a_record_is_cut_is_no_name(tmp_path, end, group):
    said = "[GroupCoordinator 1]: {} group orders{}"
    prepared = said.format("Preparing to rebalance", " in state X with old generation 6 (reason: x)")
    whole = f"{AT.format(1)}{prepared} (kafka.coordinator.group.GroupCoordinator)"
    cut = f"{AT.format(2)}{said.format('Assignment received from leader for', end)}"
    assert read(tmp_path, whole, cut).events["group_id"].to_list() == ["orders", group]
