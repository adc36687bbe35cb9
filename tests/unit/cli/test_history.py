"""``offramp history`` reports each folder."""

from __future__ import annotations

from kit.cli import history


def incident(number: int, minutes: int) -> dict[str, object]:
    since = number * 3_600_000
    until = since + minutes * 60_000
    why = {"cause": "no members", "evidence": "nobody was there"}
    return {"group_id": f"g{number}", "store": "kafka", "since_ms": since, "until_ms": until, **why}


def test_few_incidents_are_all_reported_in_order_of_time():
    assert list(history._incidents([])) == []
    lines = list(history._incidents([incident(0, 5), incident(1, 50)]))
    assert lines == [
        "1970-01-01 00:00:00 to 1970-01-01 00:05:00 UTC  g0 in kafka: no members. nobody was there",
        "1970-01-01 01:00:00 to 1970-01-01 01:50:00 UTC  g1 in kafka: no members. nobody was there",
    ]


def test_the_longest_of_many_are_reported():
    *lines, last = history._incidents([incident(number, 1 + number % 5) for number in range(1000)])
    assert [line.split()[-8] for line in lines] == [f"g{number}" for number in range(4, 104, 5)]
    assert last == "These are the 20 longest of 1,000 incidents; the report has all."
