"""One declaration per table: rows, Arrow and Spark agree."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from kit.tables import schema as tables
from kit.tables.groups import CommittedOffset, TopicPartition

SCHEMA_VERSIONS = {2: "e674d8ffb065d05c"}
"""Version → digest of the tables that a history of it holds."""
AT = datetime(2026, 11, 21, 6, 30, tzinfo=UTC)


def test_nullability_and_widths_come_from_the_row_class():
    schema = tables.COMMITTED_OFFSETS.schema
    assert schema.field("partition") == pa.field("partition", pa.int32(), nullable=False)
    assert schema.field("committed_offset") == pa.field("committed_offset", pa.int64(), nullable=True)
    assert schema.field("committed_at").type == pa.timestamp("us", "UTC")
    assert tables.TOPIC_PARTITIONS.schema.field("replicas").type == pa.list_(pa.int32())


def test_rows_go_to_arrow_and_back_with_unknown_as_null():
    row = CommittedOffset("g", "kafka", "t", 3, None, None, None, AT, None, None, "refused")
    (back,) = tables.COMMITTED_OFFSETS.from_rows([row]).to_pylist()
    assert CommittedOffset(**back) == row


def test_columns_that_are_not_given_are_null_and_arrow_columns_are_cast():
    columns = {"group_id": ["g"], "store": ["zookeeper"], "topic": ["t"], "partition": [0]}
    times = pa.array([1000], pa.timestamp("ms", "UTC"))
    (row,) = tables.COMMITTED_OFFSETS.from_columns(columns | {"committed_at": times}).to_pylist()
    assert row["committed_at"] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert row["committed_offset"] is None


def test_a_value_that_does_not_fit_is_refused():
    row = TopicPartition("t", 2**31, False, None, None, (), ())
    with pytest.raises(pa.ArrowInvalid):
        tables.TOPIC_PARTITIONS.from_rows([row])


def test_stamped_tables_start_with_the_snapshot():
    for table in tables.ALL:
        stamped = table.stamp(table.schema.empty_table(), "s1", AT)
        assert stamped.schema.names[:2] == ["snapshot_id", "observed_at"]
        assert stamped.schema == table.stamped_schema


def test_names_are_unique_and_spark_types_are_spark_s():
    assert len({table.name for table in tables.ALL}) == len(tables.ALL)
    ddl = tables.TOPIC_PARTITIONS.spark_schema
    assert ddl.startswith(
        "snapshot_id string NOT NULL, observed_at timestamp NOT NULL, topic string NOT NULL, partition int"
    )
    assert "leader int, " in ddl
    assert "replicas array<int> NOT NULL" in ddl


def test_a_changed_table_of_a_history_needs_a_new_schema_version():
    """Then add the new version here, and to ``kit.history`` a reader of the old columns."""
    schemas = "\n".join(f"{table.name}: {table.spark_schema}" for table in tables.ALL)
    assert SCHEMA_VERSIONS[tables.SCHEMA_VERSION] == hashlib.sha256(schemas.encode()).hexdigest()[:16]
