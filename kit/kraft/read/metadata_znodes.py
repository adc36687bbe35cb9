"""A cluster's metadata as ZooKeeper has it: ``/migration`` first, then every znode that KIP-866 copies.

One session, whose reads ZooKeeper answers in their order: what is read is at least as new as the checkpoint that
``/migration`` names. Three rounds of multiRead. A znode that vanished between two rounds is not there; one that holds
something else, or that these credentials may not read, is a row with its error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

import pyarrow as pa
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from kit.clients.multiread import Znode, fetch_batches, fetch_children, refusal
from kit.clients.values import shown
from kit.kraft.read import metadata_values as values
from kit.kraft.read.control_znodes import fetch_control
from kit.kraft.read.metadata_partitions import TOPICS, fetch_topics
from kit.kraft.read.metadata_reader import Reader, item
from kit.kraft.read.metadata_values import BadValue
from kit.tables import schema as tables
from kit.tables.kraft import REFUSED, MetadataControl, ZnodeProblem, problem_columns
from kit.tables.metadata import MetadataItem
from kit.text.fingerprints import Hide, is_fingerprint, stars

_ACLS, _PREFIXED = "/kafka-acl", "/kafka-acl-extended/prefixed"
_ENCIPHERED = {"encryptedPassword", "passwordLength"}
"""The parts that each enciphered password has; they come in any order."""
_TOKENS = "/delegation_token/tokens"
_NAMES: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "/config/brokers": (values.is_broker_name, "no broker id"),
    "/config/ips": (values.is_host_name, "neither an IP address nor a host name"),
}
"""Folder → which names brokers can read (they end otherwise), and what another name is not."""

_STATE_EPOCH = re.compile(rb'"controller_epoch":\s*(\d{1,9})\b')


@dataclass(frozen=True)
class MetadataZnodes:
    """``control`` (a row), ``partitions`` and ``items`` (``tables.METADATA_PARTITIONS``, ``METADATA_ITEMS``).

    An item with an ``error`` and an empty ``item`` is an entity that can't be read; with an empty ``entity`` a kind.
    """

    control: MetadataControl
    partitions: pa.Table
    items: pa.Table


def fetch_metadata_znodes(client: KazooClient, is_secret: Callable[[str], bool], hide: Hide = stars) -> MetadataZnodes:
    """Everything. ``is_secret`` reports of a broker's setting whether its value is to be redacted.

    With a ``hide`` that makes fingerprints, secrets are reported by them; but an enciphered password can't be compared.

    Raises:
        ConnectError: ZooKeeper stopped answering.
    """
    control = fetch_control(client)
    reader = Reader(client)
    partitions, topics, highest = fetch_topics(reader)
    items = [
        *topics,
        *_settings(reader, is_secret, hide),
        *_limits(reader, hide),
        *_acls(reader),
        *_others(reader),
        *reader.errors,
    ]
    return MetadataZnodes(
        control=_with_epoch(control, highest, _refused_epochs(partitions, reader.errors)),
        partitions=partitions,
        items=tables.METADATA_ITEMS.from_rows(items),
    )


def with_max_state_epoch(client: KazooClient, control: MetadataControl) -> MetadataControl:
    """The same with the highest ``controller_epoch`` in the state of any partition; None: no state reports one.

    An unreadable state may have a higher one: that is a problem of ``/brokers/topics``.

    Raises:
        ConnectError: ZooKeeper stopped answering.
    """
    refusals = list[str]()
    topics = [f"{path}/partitions" for path in _below(client, [TOPICS], refusals)]
    states = set[bytes | None]()
    for batch in fetch_batches(client, [f"{path}/state" for path in _below(client, topics, refusals)]):
        states.update(batch.data)
        refusals += [refusal(each) for each in batch.refusals.values()]
    epochs = [int(match[1]) for data in states if data and (match := _STATE_EPOCH.search(data))]
    return _with_epoch(control, max(epochs, default=None), refusals)


def _with_epoch(control: MetadataControl, highest: int | None, refusals: Sequence[str]) -> MetadataControl:
    sentence = (
        f"{TOPICS}: the epochs of partitions are not all known, because {len(refusals):,} of the znodes "
        f"below were refused"
    )
    problems = [ZnodeProblem(TOPICS, REFUSED, f"{sentence}: {refusals[0]}")] if refusals else []
    return replace(control, max_state_epoch=highest, **problem_columns([*control.problem_rows, *problems]))


def _below(client: KazooClient, paths: Sequence[str], refusals: list[str]) -> list[str]:
    """The children's paths; why some could not be listed."""
    listed = list(zip(paths, fetch_children(client, paths)))
    refusals += [refusal(names, "listed") for _, names in listed if isinstance(names, KazooException)]
    return [f"{path}/{name}" for path, names in listed if isinstance(names, list) for name in names]


def _refused_epochs(partitions: pa.Table, errors: Iterable[MetadataItem]) -> list[str]:
    """Return why the states of partitions, or the topics that would name them, can't be read."""
    refused: list[str] = partitions.filter(partitions["is_refused"])["error"].to_pylist()
    return refused + [str(each.error) for each in errors if each.kind in ("topic", "partition") and each.is_refused]


def _settings(reader: Reader, is_secret: Callable[[str], bool], hide: Hide) -> Iterator[MetadataItem]:
    """Dynamic settings of topics and brokers."""
    for kind in ("topics", "brokers"):
        for name, _, config, mzxid in _configs(reader, "config", f"/config/{kind}"):
            for key, value in config.items():
                withheld = kind == "brokers" and is_secret(key)
                shown = _fingerprint(value, hide) if withheld else value
                yield item("config", f"{kind}/{name}", key, shown, mzxid, withheld)


def _fingerprint(secret: str, hide: Hide) -> str | None:
    """None of what is enciphered by a key that controllers don't share with ZooKeeper's readers, or is hidden."""
    shown_as = hide(secret)
    is_enciphered = {each.partition(":")[0] for each in secret.split(",")} >= _ENCIPHERED
    return shown_as if is_fingerprint(shown_as) and not is_enciphered else None


def _limits(reader: Reader, hide: Hide) -> Iterator[MetadataItem]:
    """Quotas and SCRAM credentials."""
    for kind in ("users", "clients", "ips"):
        for name, path, config, mzxid in _configs(reader, "quota", f"/config/{kind}"):
            user = unquote(name) if kind == "users" else None
            yield from _limit(f"{kind}/{name}", path, config, mzxid, user, hide)
    users = reader.children(["/config/users"], "quota")["/config/users"]
    folders = [f"/config/users/{user}/clients" for user in users]
    for folder, clients in reader.children(folders, "quota").items():
        for name, path, config, mzxid in _configs(reader, "quota", folder, clients):
            yield from _limit(f"{folder.removeprefix('/config/')}/{name}", path, config, mzxid, None, hide)


def _limit(
    entity: str, path: str, config: dict[str, str], mzxid: int, user: str | None, hide: Hide
) -> Iterator[MetadataItem]:
    for key, value in config.items():
        is_scram = user is not None and key in values.SCRAM_MECHANISMS
        kind, owner = ("scram", user or "") if is_scram else ("quota", entity)
        try:
            if not is_scram and key.upper().startswith("SCRAM"):
                raise BadValue(f"{shown(key)} is no mechanism of Kafka")
            content = values.scram_value(value, hide) if is_scram else values.quota_value(key, value)
            yield item(kind, owner, key, content, mzxid, is_scram)
        except BadValue as problem:
            yield item(kind, owner, key, None, mzxid, is_scram, f"{path}: {problem}")


def _configs(
    reader: Reader, kind: str, folder: str, names: list[str] | None = None
) -> Iterator[tuple[str, str, dict[str, str], int]]:
    """Name, path, settings and mzxid of each config znode in a folder; one without data (a mere folder) has none.

    Brokers parse the names of some, whatever the znode holds.
    """
    names = reader.children([folder], kind)[folder] if names is None else names
    is_name, what = _NAMES.get(folder, (None, ""))
    odd = [name for name in names if is_name is not None and not is_name(name)]
    for name in odd:
        entity = f"{folder}/{name}".removeprefix("/config/")
        reader.fail(kind, entity, f"{folder}/{name}: its name is {what}")
    names = [name for name in names if name not in odd]
    for name, (path, held) in zip(names, reader.znodes([f"{folder}/{name}" for name in names])):
        if held is None or (isinstance(held, Znode) and not held.data):
            continue
        entities = [(kind, path.removeprefix("/config/"))]
        if folder == "/config/users":
            entities.append(("scram", unquote(name)))
        config = reader.parse(entities, path, held, values.config_value)
        if config is not None and isinstance(held, Znode):
            yield name, path, config, held.mzxid


def _acls(reader: Reader) -> Iterator[MetadataItem]:
    for root, pattern in ((_ACLS, "LITERAL"), (_PREFIXED, "PREFIXED")):
        types = reader.children([root], "acl")[root]
        folders = {f"{root}/{each}": each for each in types}
        for folder, names in reader.children(list(folders), "acl").items():
            resource = values.RESOURCE_TYPES.get(folders[folder], folders[folder])
            for name, (path, held) in zip(names, reader.znodes([f"{folder}/{name}" for name in names])):
                entity = f"{resource}:{pattern}:{name}"
                if held is None:
                    continue
                rules = reader.parse([("acl", entity)], path, held, values.acl_value)
                mzxid = held.mzxid if isinstance(held, Znode) else None
                yield from (item("acl", entity, rule, None, mzxid) for rule in rules or ())


def _others(reader: Reader) -> Iterator[MetadataItem]:
    """Producer ids and delegation tokens."""
    path = "/latest_producer_id_block"
    for _, held in reader.znodes([path]):
        if held is not None:
            first = reader.parse([("producer_ids", "")], path, held, values.next_producer_id)
            if first is not None and isinstance(held, Znode):
                yield item("producer_ids", "", "next", first, held.mzxid)
    names = reader.children([_TOKENS], "token")[_TOKENS]
    for name, (path, held) in zip(names, reader.znodes([f"{_TOKENS}/{name}" for name in names])):
        token = None if held is None else reader.parse([("token", name)], path, held, values.token_value)
        if token is not None and isinstance(held, Znode):
            yield item("token", name, "token", token, held.mzxid)
