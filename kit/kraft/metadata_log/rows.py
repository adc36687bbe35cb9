"""Records and images as tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import polars as pl

from kit.kraft.metadata_log.folding import with_lists
from kit.kraft.metadata_log.image import Body, Entity, Image, Value
from kit.kraft.metadata_log.records import Record
from kit.kraft.metadata_log.secrets import is_secret_config
from kit.tables import schema as tables
from kit.tables.metadata import MetadataItem, MetadataNode
from kit.tables.polars import polars_types
from kit.text.fingerprints import is_fingerprint

if TYPE_CHECKING:
    import pyarrow as pa

KRAFT = "kraft"
DEFAULT = "<default>"
_BATCH = 10_000
_LAST_MS = 253_402_300_799_999
"""The end of the year 9999: Python has no later time."""
_CONFIG_TYPES = {2: "topics", 4: "brokers", 8: "broker-loggers", 16: "client-metrics", 32: "groups"}
_QUOTA_TYPES = {"user": "users", "client-id": "clients", "ip": "ips"}
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_RESOURCES = {2: "TOPIC", 3: "GROUP", 4: "CLUSTER", 5: "TRANSACTIONAL_ID", 6: "DELEGATION_TOKEN", 7: "USER"}
_PATTERNS = {3: "LITERAL", 4: "PREFIXED"}
_OPERATIONS = {
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}
_PERMISSIONS = {2: "DENY", 3: "ALLOW"}
_MIGRATION_STATES = {0: "NONE", 1: "MIGRATION", 2: "PRE_MIGRATION", 3: "POST_MIGRATION", 4: "ZK"}


def record_batches(records: Iterable[tuple[Record, str]]) -> Iterator[pa.RecordBatch]:
    """``tables.METADATA_RECORDS``, some thousand rows at a time."""
    waiting = iter(records)
    while chunk := list(islice(waiting, _BATCH)):
        yield from _record_table(chunk).to_batches()


def _record_table(records: list[tuple[Record, str]]) -> pa.Table:
    import pyarrow as pa

    times = [each.written_ms if 0 <= each.written_ms <= _LAST_MS else None for each, _ in records]
    return tables.METADATA_RECORDS.from_columns(
        {
            "file": [each.file for each, _ in records],
            "offset": [each.offset for each, _ in records],
            "epoch": [each.epoch for each, _ in records],
            "written_at": pa.array(times, pa.timestamp("ms", "UTC")),
            "api_key": [each.api_key for each, _ in records],
            "version": [each.version for each, _ in records],
            "name": [each.name for each, _ in records],
            "transaction": [transaction for _, transaction in records],
            "body": [None if each.body is None else json_text(each.body) for each, _ in records],
            "raw": [each.raw for each, _ in records],
            "error": [each.error for each, _ in records],
        }
    )


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def json_text(body: object) -> str:
    """JSON without spaces."""
    return _ENCODER.encode(body)


def partition_frame(image: Image) -> pl.DataFrame:
    """``tables.METADATA_PARTITIONS`` of KRaft's side, by topic and partition."""
    if image.folded is None:
        return pl.DataFrame(partition_table(image)).sort("topic", "partition")
    rows, heads = image.folded.rows, [image.heads.get(each) for each in image.folded.topic_ids]
    names = pl.Series([each and each.name for each in heads], dtype=pl.String)
    ranks = names.rank("ordinal").gather(rows["topic"]).cast(pl.Int64)
    rows = with_lists(rows[((ranks * 2**32) + rows["partition"]).arg_sort()])
    frame = rows.with_columns(
        side=pl.lit(KRAFT),
        topic_id=pl.Series(image.folded.topic_ids, dtype=pl.String).gather(rows["topic"]),
        topic=names.gather(rows["topic"]),
        assignment_key=_assignment_keys(rows),
        isr_key=_listed_each(rows["isr"], is_sorted=True),
        leader=pl.when(pl.col("leader") >= 0).then("leader"),
        recovery=pl.col("recovery").fill_null(0),
        partition_epoch="epoch",
    )
    kinds = polars_types(tables.METADATA_PARTITIONS)
    return frame.select(
        pl.col(name).cast(kind) if name in frame.columns else pl.lit(None, kind).alias(name)
        for name, kind in kinds.items()
    )


def _assignment_keys(rows: pl.DataFrame) -> pl.Series:
    """:func:`assignment_key` of each row."""
    keys = _listed_each(rows["replicas"])
    moving = ((rows["adding"].list.len() + rows["removing"].list.len()) > 0).arg_true()
    texts = [assignment_key(*row) for row in rows.select("replicas", "adding", "removing")[moving].iter_rows()]
    return keys.scatter(moving, texts) if texts else keys


_MOST_CODES = 16
"""More numbers of a combination than so many a row, and a table of them is no gain."""


def _listed_each(lists: pl.Series, is_sorted: bool = False) -> pl.Series:
    """Each list as text; those of one length side by side."""
    lengths = lists.list.len()
    kinds = lengths.unique().drop_nulls().to_list()
    if len(kinds) == 1 and not lengths.null_count():
        return _texts(lists.list.to_array(kinds[0]).to_numpy(), is_sorted)
    listed = pl.repeat("", len(lists), dtype=pl.String, eager=True)
    for length in kinds:
        places = (lengths == length).arg_true()
        values = lists.gather(places).list.to_array(length).to_numpy()
        listed = listed.scatter(places, _texts(values, is_sorted))
    return listed


def _texts(values: npt.NDArray[np.int32], is_sorted: bool) -> pl.Series:
    """Rows of numbers as text. The same few brokers are in nearly all: each combination is written once."""
    lowest = int(values.min(initial=0))
    base = int(values.max(initial=0)) - lowest + 1
    known, place = np.zeros((1, 0), np.int64), np.zeros(len(values), np.int64)
    for column in values.T:
        if len(known) * base > _MOST_CODES * len(values):
            return _written(np.sort(values, axis=1) if is_sorted else values)
        code = place * base + (column - lowest)
        is_there = np.zeros(len(known) * base, np.bool_)
        is_there[code] = True
        codes = np.flatnonzero(is_there)
        known = np.column_stack([known[codes // base], codes % base + lowest])
        place = (np.cumsum(is_there) - 1)[code]
    return _written(np.sort(known, axis=1) if is_sorted else known).gather(place)


def _written(values: npt.NDArray[Any]) -> pl.Series:
    columns = [pl.lit(pl.Series(each)) for each in values.T]
    return pl.select(text=pl.concat_str(columns, separator=",") if columns else pl.repeat("", len(values))).to_series()


def partition_table(image: Image) -> pa.Table:
    """``tables.METADATA_PARTITIONS`` of KRaft's side; by columns, because there may be a million."""
    topics = [(topic_id, each.name, len(each.partitions)) for topic_id, each in image.topics.items()]
    numbers = [number for topic in image.topics.values() for number in topic.partitions]
    partitions = [each for topic in image.topics.values() for each in topic.partitions.values()]
    columns: dict[str, Any] = {name: [getattr(each, name) for each in partitions] for name in _SAME}
    return tables.METADATA_PARTITIONS.from_columns(
        columns
        | {
            "side": [KRAFT] * len(partitions),
            "topic": [name for _, name, n in topics for _ in range(n)],
            "topic_id": [topic_id for topic_id, _, n in topics for _ in range(n)],
            "partition": numbers,
            "assignment_key": [assignment_key(each.replicas, each.adding, each.removing) for each in partitions],
            "isr_key": [_listed(sorted(each.isr)) for each in partitions],
            "leader": [each.leader if each.leader >= 0 else None for each in partitions],
            "partition_epoch": [each.epoch for each in partitions],
        }
    )


_SAME = ("replicas", "adding", "removing", "isr", "leader_epoch", "recovery", "offset")
"""Columns that are called as in the image."""


def assignment_key(replicas: Sequence[int], adding: Sequence[int], removing: Sequence[int]) -> str:
    """Replicas in order, then what is added and removed, sorted: ``1,2,3 +3 -1``."""
    if not adding and not removing:
        return _listed(replicas)
    parts = [_listed(replicas), *(f"+{each}" for each in sorted(adding)), *(f"-{each}" for each in sorted(removing))]
    return " ".join(parts)


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def item_rows(image: Image) -> Iterator[MetadataItem]:
    """``tables.METADATA_ITEMS`` of KRaft's side."""
    for topic_id, topic in image.heads.items():
        yield _item("topic", topic.name, "id", topic_id, topic.offset)
    for (kind, name), settings in image.configs.items():
        entity = f"{_CONFIG_TYPES.get(kind, f'type-{kind}')}/{entity_name(name or None)}"
        for key, each in settings.items():
            is_secret = is_secret_config(kind, key)
            value = None if is_secret and not is_fingerprint(each.fields["value"]) else each.fields["value"]
            yield _item("config", entity, key, value, each.offset, is_secret)
    for owner, limits in image.quotas.items():
        for key, each in limits.items():
            yield _item("quota", quota_entity(owner), key, number_text(each.fields["value"]), each.offset)
    for (user, mechanism), each in image.credentials.items():
        shown = _credential(each.fields)
        yield _item("scram", user, mechanism_name(mechanism), shown, each.offset, True)
    for each in image.acls.values():
        yield _acl(each)
    for token_id, each in image.tokens.items():
        shown = json_text({key: value for key, value in each.fields.items() if key != "tokenId"})
        yield _item("token", token_id, "token", shown, each.offset)
    yield from _single_items(image)


def _credential(fields: Body) -> str:
    """The iterations; and by fingerprints, where the log was read with some, as ZooKeeper's znode has it."""
    parts = {"salt": "salt", "stored_key": "storedKey", "server_key": "serverKey"}
    prints = [f"{name}={fields[part]}" for name, part in parts.items() if is_fingerprint(fields[part])]
    return ",".join([*prints, f"iterations={fields['iterations']}"])


def _single_items(image: Image) -> Iterator[MetadataItem]:
    for name, each in image.features.items():
        yield _item("feature", name, "level", str(each.fields["featureLevel"]), each.offset)
    if image.producer_ids is not None:
        each = image.producer_ids
        yield _item("producer_ids", "", "next", str(each.fields["nextProducerId"]), each.offset)
    if image.migration_state is not None:
        each = image.migration_state
        state = each.fields["zkMigrationState"]
        yield _item("migration", "", "state", _MIGRATION_STATES.get(state, f"state {state}"), each.offset)


def _item(kind: str, entity: str, item: str, value: str | None, offset: int, is_secret: bool = False) -> MetadataItem:
    return MetadataItem(KRAFT, kind, entity, item, value, is_secret, None, offset, None)


def _acl(each: Value) -> MetadataItem:
    entity, rule = acl_key(each.fields)
    return _item("acl", entity, rule, None, each.offset)


def acl_key(fields: Body) -> tuple[str, str]:
    """Entity and item of an ACL."""
    resource, pattern = _named(_RESOURCES, fields["resourceType"]), _named(_PATTERNS, fields["patternType"])
    rule = [
        fields["principal"],
        fields["host"],
        _named(_OPERATIONS, fields["operation"]),
        _named(_PERMISSIONS, fields["permissionType"]),
    ]
    return f"{resource}:{pattern}:{fields['resourceName']}", json_text(rule)


def mechanism_name(number: int) -> str:
    """Return the name of a SCRAM mechanism."""
    return _MECHANISMS.get(number, f"mechanism {number}")


def _named(names: dict[int, str], code: int) -> str:
    return names.get(code, str(code))


def entity_name(name: str | None) -> str:
    """A name as ZooKeeper's paths have it (``Sanitizer`` in Kafka), so that a slash in it is no slash."""
    return DEFAULT if name is None else quote(name, safe="").replace("~", "%7E")


def quota_entity(entity: Entity) -> str:
    """``users/alice/clients/c1``, users first."""
    order = {kind: at for at, kind in enumerate(_QUOTA_TYPES)}
    parts = sorted(entity, key=lambda part: order.get(part[0], len(order)))
    return "/".join(f"{_QUOTA_TYPES.get(kind, kind)}/{entity_name(name)}" for kind, name in parts)


def number_text(value: float | str) -> str:
    """A whole number without its decimals, as people write quotas."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def node_rows(image: Image) -> Iterator[MetadataNode]:
    """``tables.METADATA_NODES``."""
    for node_id, each in image.brokers.items():
        yield _node(node_id, "broker", each)
    for node_id, each in image.controllers.items():
        yield _node(node_id, "controller", each)


def _node(node_id: int, role: str, each: Value) -> MetadataNode:
    fields, is_broker = each.fields, role == "broker"
    return MetadataNode(
        node_id=node_id,
        role=role,
        epoch=fields.get("brokerEpoch"),
        incarnation_id=fields["incarnationId"],
        listeners=tuple(sorted(f"{at['name']}://{at['host']}:{at['port']}" for at in fields["endPoints"])),
        features=tuple(sorted(map(_feature, fields["features"]))),
        rack=fields.get("rack"),
        is_fenced=fields.get("fenced"),
        is_shutting_down=fields.get("inControlledShutdown"),
        is_migrating=fields.get("isMigratingZkBroker", False) if is_broker else None,
        is_migration_ready=fields.get("zkMigrationReady"),
        log_dirs=tuple(fields.get("logDirs", ())) if is_broker else None,
        offset=each.offset,
    )


def _feature(fields: Body) -> str:
    return f"{fields['name']}={fields['minSupportedVersion']}..{fields['maxSupportedVersion']}"
