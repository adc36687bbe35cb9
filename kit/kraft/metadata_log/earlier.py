"""Find earlier values in a metadata log: for each value, the table rows of every record that set it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from kit.kraft.metadata_log.files import CHECKPOINT
from kit.kraft.metadata_log.image import Image
from kit.kraft.metadata_log.log import MetadataLog
from kit.kraft.metadata_log.records import Record
from kit.kraft.metadata_log.replay import stream
from kit.kraft.metadata_log.rows import item_rows, mechanism_name, partition_table
from kit.kraft.metadata_log.transactions import COMMITTED, NONE, with_transactions
from kit.tables import schema as tables
from kit.tables.metadata import MetadataItem

_OF_PARTITIONS = ("Topic", "RemoveTopic", "Partition", "PartitionChange")
_COPIED = 1


@dataclass(frozen=True)
class Earlier:
    """``partitions`` (``tables.METADATA_PARTITIONS``), ``items`` (``tables.METADATA_ITEMS``): a row per record.

    ``copied_until``: the last offset of the copy out of ZooKeeper; None: the log no longer holds it, so it doesn't
    report everything that the values ever were. ``removed_mechanisms``: SCRAM mechanisms of which a credential was
    removed.
    """

    partitions: pl.DataFrame
    items: pl.DataFrame
    copied_until: int | None
    removed_mechanisms: frozenset[str] = frozenset()


def earlier_values(log: MetadataLog, owners: Collection[tuple[str, str]]) -> Earlier:
    """All that the log reports of these owners (kind, entity), read once more; records without effect are left out.

    Secrets are hidden as they were when the log was read, so that they compare with its.
    """
    topics = {entity for kind, entity in owners if kind == "partition"}
    image, rows, items, copied_until = Image(), list[pa.Table](), list[MetadataItem](), None
    mechanisms = set[str]()
    segments = stream([each for each in log.sources if each.kind != CHECKPOINT], log.until, log.hide)
    for record, transaction in with_transactions(segments):
        if transaction not in (NONE, COMMITTED) or record.body is None or record.offset is None:
            continue
        if record.name == "ZkMigrationState" and record.body["zkMigrationState"] == _COPIED:
            copied_until = record.offset if copied_until is None else copied_until
        if record.name == "RemoveUserScramCredential":
            mechanisms.add(mechanism_name(record.body["mechanism"]))
        if record.name in _OF_PARTITIONS and _concerns(record, image, topics):
            image.replay([(record, transaction)])
            rows.append(partition_table(image))
        items += [each for each in _alone(record) if (each.kind, each.entity) in owners]
    has_checkpoint = any(each.kind == CHECKPOINT for each in log.sources)
    return Earlier(
        pl.DataFrame(pa.concat_tables([tables.METADATA_PARTITIONS.from_rows(()), *rows])),
        pl.DataFrame(tables.METADATA_ITEMS.from_rows(items)),
        None if has_checkpoint else copied_until,
        frozenset(mechanisms),
    )


def _concerns(record: Record, image: Image, topics: Collection[str]) -> bool:
    body = record.body or {}
    return body.get("name") in topics if record.name == "Topic" else body["topicId"] in image.topics


def _alone(record: Record) -> list[MetadataItem]:
    """Return the rows of one record, as if it were the only one."""
    image = Image()
    image.replay([(record, NONE)])
    return list(item_rows(image))
