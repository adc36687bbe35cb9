"""One declaration per table: a row class of ``kit.tables.groups`` gives the Arrow schema and the Spark schema.

Every stored table starts with ``snapshot_id`` (string) and ``observed_at`` (UTC, when the snapshot was complete).
"""

from __future__ import annotations

import pkgutil
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from types import NoneType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 2
"""Raised when a column of a table in ``ALL`` gets another type or meaning: a history of another version is refused.

A column that is added may be null, and needs no new version: where a file lacks it, it is.
"""

_STAMP = {"snapshot_id": str, "observed_at": datetime}


@dataclass(frozen=True)
class Table:
    """A named table of one row class, ``module:class`` in ``kit.tables``. Arrow is loaded by who asks for Arrow.

    ``only``: the fields of the class that are columns, in this order; none: all.
    """

    name: str
    home: str
    only: tuple[str, ...] = ()

    @cached_property
    def row(self) -> type:
        row: type = pkgutil.resolve_name(f"kit.tables.{self.home}")
        return row

    @cached_property
    def hints(self) -> Mapping[str, Any]:
        """The type of each column, as the row class declares it."""
        hints = typing.get_type_hints(self.row, include_extras=True)
        return {name: hints[name] for name in self.only or hints}

    @cached_property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows as read, without the stamp."""
        return _arrow_schema(self.hints)

    @cached_property
    def stamped_schema(self) -> pa.Schema:
        """Arrow schema of the stored table: the stamp, then the row."""
        return _arrow_schema({**_STAMP, **self.hints})

    @property
    def spark_schema(self) -> str:
        """The stored table's Spark schema as DDL."""
        return spark_ddl(self.stamped_schema)

    @property
    def spark_row_schema(self) -> str:
        """The Spark schema of the rows as read, without the stamp, as DDL."""
        return spark_ddl(self.schema)

    def columns_of(self, rows: Iterable[Any]) -> Columns:
        """Frozen rows → their columns."""
        rows = list(rows)
        return Columns(self, {name: [getattr(row, name) for row in rows] for name in self.hints})

    def columns(self, values: Mapping[str, list[Any]]) -> Columns:
        """Lists of equal length → columns; one that is not given is null. Large reads come this way."""
        nulls = [None] * len(next(iter(values.values()), ()))
        return Columns(self, {name: values.get(name, nulls) for name in self.hints})

    def from_rows(self, rows: Iterable[Any]) -> pa.Table:
        """Frozen rows → Arrow."""
        return self.columns_of(rows).arrow()

    def from_columns(self, columns: Mapping[str, Sequence[Any] | pa.Array]) -> pa.Table:
        """Columns of equal length → Arrow; a column that is not given is null."""
        import pyarrow as pa

        n_rows = len(next(iter(columns.values()), ()))
        arrays = [
            _array(columns[f.name], f.type) if f.name in columns else pa.nulls(n_rows, f.type) for f in self.schema
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def stamp(self, rows: pa.Table, snapshot_id: str, observed_at: datetime) -> pa.Table:
        """Rows as read → rows as stored."""
        import pyarrow as pa

        fields = [self.stamped_schema.field(name) for name in _STAMP]
        stamped = [pa.repeat(pa.scalar(v, f.type), len(rows)) for v, f in zip((snapshot_id, observed_at), fields)]
        return pa.Table.from_arrays([*stamped, *rows.columns], schema=self.stamped_schema)


@dataclass(frozen=True)
class Columns:
    """Rows of one table as they were read, by column, as Python's values; a time may be epoch microseconds."""

    table: Table
    values: Mapping[str, list[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def __getitem__(self, name: str) -> list[Any]:
        return self.values[name]

    def arrow(self) -> pa.Table:
        return self.table.from_columns(self.values)

    def rows(self, *names: str) -> Iterable[tuple[Any, ...]]:
        """Row by row, the values of these columns."""
        return zip(*(self.values[name] for name in names))

    @classmethod
    def concat(cls, parts: Sequence[Columns]) -> Columns:
        """The rows of several, of one table, in that order."""
        names = parts[0].values
        return cls(parts[0].table, {name: [value for part in parts for value in part[name]] for name in names})


def _array(values: Sequence[Any] | pa.Array, to: pa.DataType) -> pa.Array:
    import pyarrow as pa

    return values.cast(to) if isinstance(values, pa.Array) else pa.array(values, to)


def without_null(hint: Any) -> Any:
    """A column's type; of one that may be null that of its values."""
    options = typing.get_args(hint)
    if NoneType not in options:
        return hint
    (inner,) = (option for option in options if option is not NoneType)
    return inner


def _arrow_schema(hints: Mapping[str, Any]) -> pa.Schema:
    import pyarrow as pa

    inner = {name: without_null(hint) for name, hint in hints.items()}
    fields = [pa.field(name, _arrow_type(each), each is not hints[name]) for name, each in inner.items()]
    return pa.schema(fields)


def _arrow_type(hint: Any) -> pa.DataType:
    import pyarrow as pa

    if typing.get_origin(hint) is typing.Annotated:
        return pa.type_for_alias(typing.get_args(hint)[1])
    if typing.get_origin(hint) is tuple:
        return pa.list_(_arrow_type(typing.get_args(hint)[0]))
    if hint is datetime:
        return pa.timestamp("us", tz="UTC")
    return {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}[hint]


def spark_ddl(schema: pa.Schema) -> str:
    """An Arrow schema as Spark's, in DDL."""
    nullability = {True: "", False: " NOT NULL"}
    return ", ".join(f"{_spark_name(f.name)} {_spark_type(f.type)}{nullability[f.nullable]}" for f in schema)


def _spark_name(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else f"`{name.replace('`', '``')}`"


def _spark_type(arrow: pa.DataType) -> str:
    import pyarrow as pa

    if pa.types.is_list(arrow):
        return f"array<{_spark_type(arrow.value_type)}>"
    return {"int32": "int", "int64": "bigint", "bool": "boolean"}.get(
        str(arrow), "timestamp" if pa.types.is_timestamp(arrow) else str(arrow)
    )


BROKERS = Table("brokers", "groups:Broker")
TOPIC_PARTITIONS = Table("topic_partitions", "groups:TopicPartition")
GROUPS = Table("groups", "groups:Group")
MEMBERS = Table("members", "groups:Member")
SUBSCRIPTIONS = Table("subscriptions", "groups:Subscription")
OWNERSHIP = Table("ownership", "groups:Ownership")
COMMITTED_OFFSETS = Table("committed_offsets", "groups:CommittedOffset")
LOG_OFFSETS = Table("log_offsets", "groups:LogOffset")
MIGRATION_STATES = Table("migration_states", "groups:MigrationState")
READ_ERRORS = Table("read_errors", "groups:ReadError")
READ_TIMINGS = Table("read_timings", "groups:ReadTiming")
SNAPSHOTS = Table("snapshots", "groups:SnapshotInfo")

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

GROUP_HOURS = Table("group_hours", "groups:GroupHour")
RECORD_TIMES = Table("record_times", "groups:RecordTime")
LOG_ANCHORS = Table("log_anchors", "groups:LogAnchor")
LOG_RETENTION = Table("log_retention", "groups:LogRetention")
CONSUMPTION = Table("consumption", "groups:ConsumedRecord")
PRODUCTION = Table("production", "groups:Produced")
UNREAD_LINES = Table("unread_lines", "groups:UnreadLine")
OWNER_HISTORY = Table("owner_history", "groups:ZnodeLife")
LOG_EVENTS = Table("log_events", "rebalances:LogEvent")
LOG_LINES = Table("log_lines", "rebalances:LogLine")
LOG_FILES = Table("log_files", "rebalances:LogFile")
MEMBER_REBALANCES = Table("member_rebalances", "rebalances:MemberRebalance")
REBALANCES = Table("rebalances", "rebalances:Rebalance")
LOG_FINDINGS = Table("log_findings", "rebalances:LogFinding")
LOG_REMARKS = Table("log_remarks", "rebalances:LogRemark")
OFFSET_COMMITS = Table("offset_commits", "rebalances:OffsetCommit")
GROUP_GENERATIONS = Table("group_generations", "rebalances:GroupGeneration")
GROUP_EPOCHS = Table("group_epochs", "rebalances:GroupEpoch")
OFFSETS_PARTITIONS = Table("offsets_partitions", "rebalances:OffsetsPartition")
METADATA_RECORDS = Table("metadata_records", "metadata:MetadataRecord")
METADATA_FILES = Table("metadata_files", "metadata:MetadataFile")
METADATA_PARTITIONS = Table("metadata_partitions", "metadata:MetadataPartition")
METADATA_ITEMS = Table("metadata_items", "metadata:MetadataItem")
METADATA_NODES = Table("metadata_nodes", "metadata:MetadataNode")
METADATA_CONTROL = Table("metadata_control", "kraft:MetadataControl")
METADATA_REMOVALS = Table("metadata_removals", "metadata:MetadataRemoval")
METADATA_DIFFERENCES = Table("metadata_differences", "kraft:MetadataDifference")
NODE_FACTS = Table("node_facts", "kraft:NodeFact")
NODE_SETTINGS = Table("node_settings", "kraft:NodeSetting")
KRAFT_STATES = Table("kraft_states", "kraft:KraftState")
KRAFT_NODES = Table("kraft_nodes", "kraft:KraftNode")
KRAFT_FACTS = Table("kraft_facts", "kraft:KraftFact")
KRAFT_FINDINGS = Table(
    "kraft_findings", "conditions:Condition", ("check_id", "severity", "subject", "sentence", "remedy")
)
ZNODES = Table("znodes", "znodes:Znode")
ZNODE_CHANGES = Table("znode_changes", "znodes:ZnodeChange")
ZNODE_ACLS = Table("znode_acls", "znodes:ZnodeAcl")
ZOOKEEPER_FILES = Table("zookeeper_files", "znodes:ZooKeeperFile")
ZOOKEEPER_SESSIONS = Table("zookeeper_sessions", "znodes:ZooKeeperSession")
PREFLIGHT_FINDINGS = Table(
    "preflight_findings",
    "conditions:Condition",
    ("check_id", "severity", "phase", "subject", "is_met", "sentence", "remedy", "source"),
)
PREFLIGHT_ZNODES = Table("preflight_znodes", "preflight:PreflightZnodes")
BROKER_LOG_DIRS = Table("broker_log_dirs", "preflight:BrokerLogDir")
REHEARSAL_FINDINGS = Table("rehearsal_findings", "preflight:RehearsalFinding")
REHEARSAL_STEPS = Table("rehearsal_steps", "preflight:RehearsalStep")
NODE_SETTING_CHANGES = Table("node_setting_changes", "preflight:NodeSettingChange")
"""Not of a snapshot, so not in ``ALL``: what happened over time, without the stamp."""
