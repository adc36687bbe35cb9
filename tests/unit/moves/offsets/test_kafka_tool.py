"""Options and files of kafka-consumer-groups."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from kit.errors import InputError
from kit.moves.offsets.kafka_tool import by_duration, load_tool_file, to_datetime
from kit.moves.offsets.moves import Stored
from kit.moves.offsets.resets import Reset


def test_a_time_without_a_zone_is_of_utc():
    wanted = Reset("time", datetime(2026, 1, 31, 12, tzinfo=UTC))
    assert to_datetime("2026-01-31T12:00:00.000") == wanted
    assert to_datetime("2026-01-31T13:00:00.000+01:00") == wanted
    with pytest.raises(InputError, match="--to-datetime 'yesterday'"):
        to_datetime("yesterday")


@pytest.mark.parametrize(
    ("text", "parts"),
    [("P7D", {"days": 7}), ("PT1H30M", {"hours": 1, "minutes": 30}), ("P1DT0.5S", {"days": 1, "seconds": 0.5})],
)
def test_a_duration_is_that_long_ago(text, parts):
    assert by_duration(text) == Reset("ago", timedelta(**parts))


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1h", "P-1D", "P1M", "P999999D"])
def test_no_duration_is_refused(text):
    with pytest.raises(InputError):
        by_duration(text)


def test_files_of_the_tool_with_and_without_groups(tmp_path):
    file = tmp_path / "offsets.csv"
    file.write_text('"orders",0,5\r\norders,1,7\r\n\r\n')
    assert load_tool_file(file, ["g"]) == {("g", "orders", 0): Stored(5), ("g", "orders", 1): Stored(7)}
    file.write_text('"g,1",orders,0,5\n')
    assert load_tool_file(file, []) == {("g,1", "orders", 0): Stored(5)}


KAFKACTL = {
    "Group": {"Name": "g", "ProtocolType": "consumer", "Topics": None},
    "Protocol": "range",
    "State": "Empty",
    "Topics": [
        {
            "Name": "orders",
            "Partitions": [
                {"Partition": 0, "newestOffset": 9, "oldestOffset": 0, "consumerOffset": 5, "Lead": 5, "Lag": 4},
                {"Partition": 1, "newestOffset": 9, "oldestOffset": 0, "consumerOffset": 7, "Lead": 7, "Lag": 2},
                {"Partition": 2, "newestOffset": 9, "oldestOffset": 0, "consumerOffset": -1, "Lead": -1, "Lag": 10},
            ],
            "totalLag": 16,
        }
    ],
}
AKHQ = [{"topic": "orders", "partition": 0, "offset": 5}, {"topic": "orders", "partition": 1, "offset": 7}]
KCAT = {"orders": {"topic": "orders", "0": {"partition": 0, "offset": 5}, "1": {"partition": 1, "offset": 7}}}


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        (json.dumps(KAFKACTL), []),
        (json.dumps({"id": "g", "state": "EMPTY", "offsets": [*AKHQ, {"topic": "orders", "partition": 2}]}), []),
        (json.dumps(AKHQ, indent=1), ["g"]),
        (json.dumps(KCAT), ["g"]),
        ("orders [0] offset 5\norders [1] offset 7\n", ["g"]),
        ("\ufefforders,0,5\norders,1,7\n", ["g"]),
    ],
    ids=["kafkactl", "AKHQ's group", "AKHQ's list", "kcat -J", "kcat", "with a byte order mark"],
)
def test_files_of_other_tools_are_recognised(tmp_path, text, groups):
    file = tmp_path / "offsets"
    file.write_text(text)
    assert load_tool_file(file, groups) == {("g", "orders", 0): Stored(5), ("g", "orders", 1): Stored(7)}


@pytest.mark.parametrize(
    ("text", "groups", "why"),
    [
        ("orders [0] offset 5: Broker: Leader not available\n", ["g"], "names no offset"),
        ("orders [0] offset -1\n", ["g"], "offset 1: partition and offset are whole numbers from 0"),
        ("orders [0] offset 5\norders,1,7\n", ["g"], "'orders,1,7' names no offset"),
        ('{"orders": {"0": {"partition": 0, "offset": 5, "error": "gone"}}}', ["g"], r"orders \[0\]: gone"),
        ('{"a": 1}', ["g"], "no JSON of offsets by kafkactl, AKHQ or kcat"),
        ("[1]", ["g"], "no JSON of offsets"),
        ("{", ["g"], "no JSON of offsets"),
        (json.dumps(AKHQ), [], "names no group"),
        (json.dumps([*AKHQ, AKHQ[0]]), ["g"], "offset 3: g/orders-0 is there twice"),
    ],
)
def test_an_unknown_form_is_refused(tmp_path, text, groups, why):
    file = tmp_path / "offsets"
    file.write_text(text)
    with pytest.raises(InputError, match=why):
        load_tool_file(file, groups)


@pytest.mark.parametrize(
    ("text", "groups", "why"),
    [
        ("orders,0,5\n", [], "line 1 names no group"),
        ("orders,0,5\n", ["a", "b"], "line 1 names no group"),
        ("orders,0\n", ["g"], "line 1: give topic,partition,offset"),
        ("orders,-1,5\n", ["g"], "whole numbers from 0"),
        ("orders,0,5\norders,0,6\n", ["g"], "line 2: g/orders-0 is there twice"),
        ("topic,partition,offset\n", ["g"], "whole numbers from 0"),
        ("", ["g"], "has no offset"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, text, groups, why):
    file = tmp_path / "offsets.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=why):
        load_tool_file(file, groups)
