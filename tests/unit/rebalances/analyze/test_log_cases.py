"""Small logs of our own that show one kind of fault each: what is reported of them, in sentences and in ``--json``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.rebalances.sources import Rebalances, read_rebalances
from kit.rebalances.verbs.rebalances import story_data

CASES = Path("tests/excerpts/cases")
A, B, C = (f"app-{digit * 8}-{digit * 4}-4{digit * 3}-8{digit * 3}-{digit * 12}" for digit in "123")
KIP848_A, KIP848_B = "A" * 22, "B" * 22


class Told:
    """The sentences about a case."""

    def __init__(self, found: Rebalances) -> None:
        self.found = found
        self.sentences = "\n".join(found.describe())
        self.json = json.dumps(story_data(found), default=str)
        self.findings = sorted(found.findings["finding"])
        self.unknown = found.unknown_wordings()["n_lines"].sum()

    def column(self, name: str) -> list[object]:
        return self.found.generations[name].to_list()

    def at(self, name: str) -> list[str | None]:
        """Times of the generations, as printed."""
        return [at and f"{at:%H:%M:%S}" for at in self.column(name)]

    def says(self, *parts: str) -> bool:
        """Return whether the sentences and the JSON have each part."""
        return all(part in self.sentences and part in self.json for part in parts)

    def count(self, kind: str) -> int:
        return self.found.events["kind"].to_list().count(kind)


def told(name: str) -> Told:
    paths = sorted((CASES / name).iterdir()) if (CASES / name).is_dir() else sorted(CASES.glob(f"{name}-*"))
    return Told(read_rebalances(None, list(map(str, paths))))


def no_duration_by_two_clocks(case: Told) -> bool:
    (ms,) = case.column("duration_ms")
    return (ms is None or ms < 1_000) and "32400" not in case.sentences and "9 h" in case.sentences


def lives_apart(case: Told) -> bool:
    numbers = list(zip(case.column("life"), case.column("generation"), case.column("duration_ms")))
    return numbers == [(1, 1, 3000), (1, 2, 1), (2, 1, 3000)] and "2024-05-01 10:20:00" in case.sentences


def clocks_are_not_compared(case: Told) -> bool:
    return "(no time)" not in case.sentences and case.at("started_at") == ["10:00:00"]


def list_is_whole_or_cut(case: Told) -> bool:
    (row,) = case.found.members.rows(named=True)
    return (row["generation"], row["member_id"], row["owned"]) == (7, f"app-1-{A[4:]}", ["clicks-0", "clicks-1"])


CHECKS: dict[str, Callable[[Told], object]] = {
    "29": lambda case: case.findings == [] and len(case.column("members")[0]) == 5,
    "27": lambda case: "owned_twice" in case.findings,
    "28": lambda case: case.findings == [],
    "30": lambda case: case.found.findings["consumer"].to_list() == ["app in host-1.log"]
    and case.findings == ["unfinished"],
    "18c": lambda case: case.says("orders", A, B, "10:00:00") and "2024-05-01 10:00:00" in case.sentences,
    "03d": lambda case: case.column("left")[-1] == [A, B, C],
    "18": lambda case: case.says("app-1", "the consumer is being closed"),
    "18b": lambda case: case.says("app-1", "UNKNOWN_MEMBER_ID"),
    "04": lambda case: (case.at("started_at"), case.at("ended_at"), case.column("duration_ms"))
    == (["10:00:00", "10:05:00"], [None, None], [None, None])
    and "0 s" not in case.sentences
    and A in case.column("left")[-1],
    "04b": lambda case: (case.at("started_at"), case.at("ended_at"), case.column("duration_ms"))
    == ([None], ["10:00:03"], [None])
    and "0 s" not in case.sentences
    and "10:00:03" in case.sentences,
    "05": lives_apart,
    "07": lambda case: case.column("members") == [[f"app-1-{A[4:]}"]]
    and case.column("leader_id") == [f"app-1-{A[4:]}"]
    and case.column("members_without_log") == [[]]
    and "1 member seen" in case.sentences,
    "01": no_duration_by_two_clocks,
    "02": clocks_are_not_compared,
    "03": lambda case: case.says("error when storing group assignment during SyncGroup"),
    "03e": list_is_whole_or_cut,
    "10b": lambda case: case.findings == []
    and case.column("generation") == [6]
    and case.column("members") == [[KIP848_A, KIP848_B]]
    and case.sentences.count("has clicks-0") == 2
    and f"AAAA ({KIP848_B})" not in case.sentences,
    "10e": lambda case: case.findings == [],
    "09e": lambda case: case.column("assignor") == ["uniform", "uniform", None]
    and case.column("joined")[:2] == [[KIP848_A], [KIP848_B]]
    and case.column("members") == [[KIP848_A], [KIP848_A, KIP848_B], [KIP848_A]]
    and "generation" not in case.sentences,
    "08": lambda case: case.column("moved")[-1] == ["clicks-1"],
    "11": lambda case: case.findings == ["commit_failed"] and "times" not in case.sentences,
    "13b": lambda case: case.findings == ["commit_failed"]
    and "times" not in case.sentences
    and ".." not in case.sentences,
    "14": lambda case: "offset_reset" in case.findings and case.says("clicks-26"),
    "09d": lambda case: case.says("API version not supported") and len(case.findings) == 1,
    "02c": lambda case: case.says("KafkaJSNumberOfRetriesExceeded: boom", "10388ms", "orders"),
    "06": lambda case: case.column("n_members") == [2]
    and case.column("members_without_log") == [[]]
    and "1 of 2 members" in case.sentences,
    "06b": lambda case: case.column("members_without_log") == [[], []]
    and case.column("members") == [[A], [A, B]],
    "17": lambda case: "(NotCoordinatorException)." in case.sentences
    and "app=connect" not in case.sentences
    and ".." not in case.sentences,
    "20": lambda case: case.says("sink-0") and "connector sink" in case.sentences,
    "22": lambda case: "commit_failed" in case.findings and case.says("clicks-1", "orders"),
    "23": lambda case: case.says("orders", "unknown_member_id", "generation 20, as leader")
    and case.unknown == 0
    and case.column("generation") == [20],
    "21": lambda case: case.unknown == 0,
    "26": lambda case: case.findings == [] and "not through" not in case.sentences,
    "15": lambda case: case.count("poll_timeout") == 1 and "2024-05-01 10:00:00" in case.sentences,
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_the_case_is_reported_correctly(name: str) -> None:
    case = told(name)
    assert CHECKS[name](case), case.sentences


def test_every_case_is_tried() -> None:
    names = {path.name.split("-")[0] for path in CASES.iterdir()}
    assert names == set(CHECKS)


def test_two_consumers_of_two_names_own_one_partition_twice() -> None:
    paths = [CASES / "27-same-client-id-host-1.log", CASES / "28-other-client-id.log"]
    assert "owned_twice" in Told(read_rebalances(None, list(map(str, paths)))).findings
