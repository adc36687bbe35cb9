"""Logs without a zone: two hosts whose clocks show different zones are seen, named, and not compared."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from kit.rebalances.sources import Rebalances, read_rebalances

PODS = "[{}] INFO [Consumer clientId={}, groupId=g] {} (a.B)"


def host(name: str, hour: int, *generations: int, minute: int = 0, zone: str = "") -> str:
    """A classic consumer's lines: it joins each generation, one a minute, and has it in three seconds."""
    lines = []
    for generation in generations:
        at = f"2025-01-02 {hour:02d}:{minute + generation:02d}:{{:02d}},000{zone}"
        said = f"generationId={generation}, memberId='{name}-1', protocol='range'"
        lines += [
            PODS.format(at.format(1), name, "(Re-)joining group"),
            PODS.format(at.format(3), name, f"Successfully joined group with generation Generation{{{said}}}"),
            PODS.format(at.format(4), name, "Adding newly assigned partitions: t-0"),
        ]
    return "\n".join(lines) + "\n"


def read(tmp_path: Path, **texts: str) -> Rebalances:
    for name, text in texts.items():
        (tmp_path / f"{name}.log").write_text(text)
    return read_rebalances(None, [str(tmp_path / f"{name}.log") for name in texts])


def apart(found: Rebalances) -> list[str]:
    return found.findings.filter(finding="clocks_apart")["sentence"].to_list()


def test_hosts_of_one_zone_are_one_clock(tmp_path):
    found = read(tmp_path, a=host("a", 10, 1, 2), b=host("b", 10, 1, 2))
    assert apart(found) == []
    assert found.generations["duration_ms"].to_list() == [3000, 3000]


@pytest.mark.parametrize(("hour", "minute", "words"), [
    (19, 0, "9 h ahead of"), (4, 30, "5.5 h behind"), (10, 45, "0.75 h ahead of"),
])  # fmt: skip
def test_hosts_of_two_zones_are_named_and_not_compared(tmp_path, hour, minute, words):
    found = read(tmp_path, a=host("a", 10, 1, 2), b=host("b", hour, 1, 2, minute=minute))
    (sentence,) = apart(found)
    assert f"b.log prints times {words} a.log, by generation 1" in sentence
    assert found.generations.select("life", "generation", "duration_ms").rows() == [(1, 1, None), (1, 2, None)]
    assert found.generations["join_spread_ms"].to_list() == [None, None]
    assert found.members["join_ms"].to_list() == [2000] * 4


def test_a_clock_that_is_wrong_by_minutes_is_no_zone(tmp_path):
    assert apart(read(tmp_path, a=host("a", 10, 1, 2), b=host("b", 10, 1, 2, minute=7))) == []


def test_generations_that_disagree_prove_no_zone(tmp_path):
    found = read(tmp_path, a=host("a", 10, 1) + host("a", 12, 2), b=host("b", 10, 1, 2))
    assert apart(found) == []


def test_lines_without_a_zone_beside_lines_with_one_keep_their_time(tmp_path):
    text = "".join(f"pod-a | {line}\n" for line in host("a", 10, 1, zone="Z").splitlines())
    text += "".join(f"pod-b | {line}\n" for line in host("b", 12, 1).splitlines())
    found = read(tmp_path, both=text)
    assert dict(found.members.select("consumer", pl.col("started_at").dt.hour()).rows()) == {"a": 10, "b": 12}
    assert found.generations["duration_ms"].to_list() == [None]
    assert not any("(no time)" in sentence for sentence in found.describe())
