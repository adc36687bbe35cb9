"""One declaration per table: a row class of ``kit.tables.groups`` gives the Arrow schema and the Spark schema.

Every stored table starts with ``snapshot_id`` (string) and ``observed_at`` (UTC, when the snapshot was complete).
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property
from types import NoneType
from typing import Any

import pyarrow as pa

from kit.tables import groups as model
from kit.tables import metadata as metadata_model
from kit.tables import preflight as preflight_model
from kit.tables import rebalances as rebalance_model

SCHEMA_VERSION = 2
"""Raised with every change of a table in ``ALL``; a history of another version is refused."""

_ARROW = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    datetime: pa.timestamp("us", tz="UTC"),
}
_STAMP = [
    pa.field("snapshot_id", pa.string(), nullable=False),
    pa.field("observed_at", _ARROW[datetime], nullable=False),
]


@dataclass(frozen=True)
class Table:
    """A named table of one row class."""

    name: str
    row: type

    @cached_property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows as read, without the stamp."""
        hints = typing.get_type_hints(self.row, include_extras=True)
        return pa.schema([_field(f.name, hints[f.name]) for f in fields(self.row)])

    @cached_property
    def stamped_schema(self) -> pa.Schema:
        """Arrow schema of the stored table: the stamp, then the row."""
        return pa.schema([*_STAMP, *self.schema])

    @property
    def spark_schema(self) -> str:
        """The stored table's Spark schema as DDL."""
        return spark_ddl(self.stamped_schema)

    @property
    def spark_row_schema(self) -> str:
        """The Spark schema of the rows as read, without the stamp, as DDL."""
        return spark_ddl(self.schema)

    def from_rows(self, rows: Iterable[Any]) -> pa.Table:
        """Frozen rows → Arrow."""
        rows = list(rows)
        return self.from_columns({name: [getattr(row, name) for row in rows] for name in self.schema.names})

    def from_columns(self, columns: Mapping[str, Sequence[Any] | pa.Array]) -> pa.Table:
        """Columns of equal length → Arrow; a column that is not given is null. Large reads come this way."""
        n_rows = len(next(iter(columns.values()), ()))
        arrays = [
            _array(columns[f.name], f.type) if f.name in columns else pa.nulls(n_rows, f.type) for f in self.schema
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def stamp(self, rows: pa.Table, snapshot_id: str, observed_at: datetime) -> pa.Table:
        """Rows as read → rows as stored."""
        stamped = [pa.repeat(pa.scalar(v, f.type), len(rows)) for v, f in zip((snapshot_id, observed_at), _STAMP)]
        return pa.Table.from_arrays([*stamped, *rows.columns], schema=self.stamped_schema)


def _array(values: Sequence[Any] | pa.Array, to: pa.DataType) -> pa.Array:
    return values.cast(to) if isinstance(values, pa.Array) else pa.array(values, to)


def _field(name: str, hint: Any) -> pa.Field:
    if typing.get_origin(hint) is typing.Annotated:
        return pa.field(name, _arrow_type(hint), nullable=False)
    options = typing.get_args(hint)
    if NoneType in options:
        (inner,) = (option for option in options if option is not NoneType)
        return pa.field(name, _arrow_type(inner), nullable=True)
    return pa.field(name, _arrow_type(hint), nullable=False)


def _arrow_type(hint: Any) -> pa.DataType:
    if typing.get_origin(hint) is typing.Annotated:
        return pa.type_for_alias(typing.get_args(hint)[1])
    if typing.get_origin(hint) is tuple:
        return pa.list_(_arrow_type(typing.get_args(hint)[0]))
    return _ARROW[hint]


def spark_ddl(schema: pa.Schema) -> str:
    """An Arrow schema as Spark's, in DDL."""
    nullability = {True: "", False: " NOT NULL"}
    return ", ".join(f"{f.name} {_spark_type(f.type)}{nullability[f.nullable]}" for f in schema)


def _spark_type(arrow: pa.DataType) -> str:
    if pa.types.is_list(arrow):
        return f"array<{_spark_type(arrow.value_type)}>"
    return {"int32": "int", "int64": "bigint", "bool": "boolean"}.get(
        str(arrow), "timestamp" if pa.types.is_timestamp(arrow) else str(arrow)
    )


BROKERS = Table("brokers", model.Broker)
TOPIC_PARTITIONS = Table("topic_partitions", model.TopicPartition)
GROUPS = Table("groups", model.Group)
MEMBERS = Table("members", model.Member)
SUBSCRIPTIONS = Table("subscriptions", model.Subscription)
OWNERSHIP = Table("ownership", model.Ownership)
COMMITTED_OFFSETS = Table("committed_offsets", model.CommittedOffset)
LOG_OFFSETS = Table("log_offsets", model.LogOffset)
MIGRATION_STATES = Table("migration_states", model.MigrationState)
READ_ERRORS = Table("read_errors", model.ReadError)
READ_TIMINGS = Table("read_timings", model.ReadTiming)
SNAPSHOTS = Table("snapshots", model.SnapshotInfo)

ALL = (
    BROKERS,
    TOPIC_PARTITIONS,
    GROUPS,
    MEMBERS,
    SUBSCRIPTIONS,
    OWNERSHIP,
    COMMITTED_OFFSETS,
    LOG_OFFSETS,
    MIGRATION_STATES,
    READ_ERRORS,
    READ_TIMINGS,
    SNAPSHOTS,
)

CONSUMPTION = Table("consumption", model.ConsumedRecord)
PRODUCTION = Table("production", model.Produced)
UNREAD_LINES = Table("unread_lines", model.UnreadLine)
OWNER_HISTORY = Table("owner_history", model.ZnodeLife)
LOG_EVENTS = Table("log_events", rebalance_model.LogEvent)
LOG_LINES = Table("log_lines", rebalance_model.LogLine)
LOG_FILES = Table("log_files", rebalance_model.LogFile)
MEMBER_REBALANCES = Table("member_rebalances", rebalance_model.MemberRebalance)
REBALANCES = Table("rebalances", rebalance_model.Rebalance)
LOG_FINDINGS = Table("log_findings", rebalance_model.LogFinding)
OFFSET_COMMITS = Table("offset_commits", rebalance_model.OffsetCommit)
GROUP_GENERATIONS = Table("group_generations", rebalance_model.GroupGeneration)
GROUP_EPOCHS = Table("group_epochs", rebalance_model.GroupEpoch)
OFFSETS_PARTITIONS = Table("offsets_partitions", rebalance_model.OffsetsPartition)
PREFLIGHT_FINDINGS = Table("preflight_findings", preflight_model.PreflightFinding)
METADATA_RECORDS = Table("metadata_records", metadata_model.MetadataRecord)
METADATA_FILES = Table("metadata_files", metadata_model.MetadataFile)
METADATA_PARTITIONS = Table("metadata_partitions", metadata_model.MetadataPartition)
METADATA_ITEMS = Table("metadata_items", metadata_model.MetadataItem)
METADATA_NODES = Table("metadata_nodes", metadata_model.MetadataNode)
METADATA_CONTROL = Table("metadata_control", metadata_model.MetadataControl)
METADATA_REMOVALS = Table("metadata_removals", metadata_model.MetadataRemoval)
METADATA_DIFFERENCES = Table("metadata_differences", metadata_model.MetadataDifference)
NODE_FACTS = Table("node_facts", metadata_model.NodeFact)
NODE_SETTINGS = Table("node_settings", metadata_model.NodeSetting)
KRAFT_STATES = Table("kraft_states", metadata_model.KraftState)
KRAFT_FACTS = Table("kraft_facts", metadata_model.KraftFact)
KRAFT_FINDINGS = Table("kraft_findings", metadata_model.KraftFinding)
"""Not of a snapshot, so not in ``ALL``: what happened over time, without the stamp."""
