"""A thousand seeded differences over all kinds are found, with no other row, on polars and on Spark alike."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from kit.kraft.analyze.diff import metadata_diff
from kit.tables import schema as tables
from kit.tables.metadata import MetadataItem, MetadataPartition, MetadataRemoval
from kit.tables.spark import in_spark

CHECKPOINT = 1_000
KINDS = {
    "topic": ("t{}", "id"),
    "config": ("topics/t{}", "retention.ms"),
    "quota": ("users/u{}", "producer_byte_rate"),
    "scram": ("u{}", "SCRAM-SHA-512"),
    "acl": ("TOPIC:LITERAL:t{}", '["User:u","*","READ","ALLOW"]'),
    "token": ("token{}", "token"),
}
SEEDED, PER_KIND = 1_000, 700


@dataclass
class Stores:
    """Both stores, and what must be found: (kind, entity, item) → verdict."""

    rows: dict[str, list[Any]] = field(default_factory=lambda: {"zookeeper": [], "kraft": []})
    removals: list[MetadataRemoval] = field(default_factory=list)
    expected: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def tables(self) -> list[pa.Table]:
        found = []
        for side in ("zookeeper", "kraft"):
            for table, kind in ((tables.METADATA_PARTITIONS, MetadataPartition), (tables.METADATA_ITEMS, MetadataItem)):
                found.append(table.from_rows(each for each in self.rows[side] if isinstance(each, kind)))
        pending = pa.table({"topic": pa.array([], pa.string())})
        return [*found, tables.METADATA_REMOVALS.from_rows(self.removals), pending]


def partition(side: str, topic: str, number: int) -> MetadataPartition:
    isr = random.sample([1, 2, 3], 3)
    return MetadataPartition(
        side, topic, "id", number, (1, 2, 3), (), (), tuple(isr), "1,2,3", "1,2,3", 1, 5, 0, None, 1, 7, 20, None
    )


@pytest.fixture(scope="module")
def stores() -> Stores:
    """Same values on both sides, shuffled; SEEDED of them are changed or removed, some behind the checkpoint."""
    random.seed(866)
    made = Stores()
    keys = [(kind, entity.format(at), item) for kind, (entity, item) in KINDS.items() for at in range(PER_KIND)]
    keys += [("partition", f"t{at}", str(number)) for at in range(PER_KIND) for number in range(2)]
    seeded = dict.fromkeys(random.sample(keys, SEEDED))
    for key in keys:
        _add(made, key, random.choice(("changed", "zookeeper", "kraft", "late", "removed")) if key in seeded else None)
    for side in made.rows.values():
        random.shuffle(side)
    return made


def _add(made: Stores, key: tuple[str, str, str], how: str | None) -> None:
    """``zookeeper``, ``kraft``: on that side alone; ``late``, ``removed``: behind the checkpoint."""
    kind, entity, item = key
    zookeeper, kraft = (_row(side, key) for side in ("zookeeper", "kraft"))
    if how == "changed":
        how = "kraft" if kind == "acl" else how  # An ACL has no value that could differ.
        kraft = _other(kraft)
    if how == "late":
        kraft = replace(_other(kraft), offset=CHECKPOINT + 1)
    if how == "removed":
        made.removals.append(MetadataRemoval(kind, entity, item, CHECKPOINT + 1))
    if how not in ("kraft",) and not (how == "late" and kind == "acl"):
        made.rows["zookeeper"].append(zookeeper)
    if how not in ("zookeeper", "removed"):
        made.rows["kraft"].append(kraft)
    if how is not None:
        made.expected[key] = "in_flight" if how in ("late", "removed") else "diverged"


def _row(side: str, key: tuple[str, str, str]) -> Any:
    kind, entity, item = key
    if kind == "partition":
        return partition(side, entity, int(item))
    return MetadataItem(side, kind, entity, item, None if kind == "acl" else "1", kind == "scram", 7, 20, None)


def _other(row: Any) -> Any:
    return replace(row, leader=None) if isinstance(row, MetadataPartition) else replace(row, value=row.value and "2")


def verdicts(rows: pl.DataFrame) -> dict[tuple[str, str, str], str]:
    differing = rows.filter(pl.col("verdict") != "equal")
    return {tuple(row[:3]): row[3] for row in differing.select("kind", "entity", "item", "verdict").rows()}


def test_each_seeded_difference_is_found_and_no_other(stores: Stores) -> None:
    found = metadata_diff(*map(pl.DataFrame, stores.tables()), CHECKPOINT)
    assert len(stores.expected) == SEEDED
    assert {kind for kind, _, _ in stores.expected} == {*KINDS, "partition"}
    assert verdicts(found) == stores.expected
    assert len(found) == PER_KIND * (len(KINDS) + 2)


def test_spark_gives_the_same(spark: Any, stores: Stores) -> None:
    expected = metadata_diff(*map(pl.DataFrame, stores.tables()), CHECKPOINT)
    found = pl.DataFrame(metadata_diff(*(in_spark(spark, each) for each in stores.tables()), CHECKPOINT).toArrow())
    key = ["kind", "entity", "item"]
    assert found.schema == expected.schema
    assert found.sort(key).equals(expected.sort(key))
