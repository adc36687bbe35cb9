"""A cluster's metadata as ZooKeeper has it: ``/migration`` first, then every znode that KIP-866 copies.

One session, whose reads ZooKeeper answers in their order: what is read is at least as new as the checkpoint that
``/migration`` names. Three rounds of multiRead. A znode that vanished between two rounds is not there; one that holds
something else, or that these credentials may not read, is a row with its error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar
from urllib.parse import unquote

import pyarrow as pa
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from kit.read import metadata_values as values
from kit.read.control_znodes import fetch_control
from kit.read.metadata_values import BadValue
from kit.read.multiread import Names, Znode, fetch_children, fetch_data, refusal
from kit.read.values import shown
from kit.read.znode_secrets import shown_data
from kit.tables import schema as tables
from kit.tables.metadata import MetadataControl, MetadataItem, MetadataPartition
from kit.text.fingerprints import Hide, is_fingerprint, stars
from kit.text.withholding import WITHHELD

ZOOKEEPER = "zookeeper"
_ACLS, _PREFIXED = "/kafka-acl", "/kafka-acl-extended/prefixed"
_ENCIPHERED = {"encryptedPassword", "passwordLength"}
"""Of the parts of an enciphered password those that each has; they come in any order."""
_TOKENS, _TOPICS = "/delegation_token/tokens", "/brokers/topics"

_REFUSAL = re.compile(r"can't be ((?:read|listed): .*)")
_STATE_EPOCH = re.compile(rb'"controller_epoch":\s*(\d{1,9})\b')

Parsed = TypeVar("Parsed")
Entity: TypeAlias = tuple[str, str]
"""Kind and entity."""


@dataclass(frozen=True)
class MetadataZnodes:
    """``control`` (a row), ``partitions`` and ``items`` (``tables.METADATA_PARTITIONS``, ``METADATA_ITEMS``).

    An item with an ``error`` and an empty ``item`` is an entity that can't be read; with an empty ``entity`` a kind.
    """

    control: MetadataControl
    partitions: pa.Table
    items: pa.Table


def fetch_metadata_znodes(client: KazooClient, is_secret: Callable[[str], bool], hide: Hide = stars) -> MetadataZnodes:
    """Everything. ``is_secret`` says of a broker's setting whether its value is to be withheld.

    With a ``hide`` that makes fingerprints, secrets are told by them; but an enciphered password can't be compared.

    Raises:
        ConnectError: ZooKeeper stopped answering.
    """
    control = fetch_control(client)
    reader = _Reader(client)
    partitions, topics, highest = _topics(reader)
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
        partitions=tables.METADATA_PARTITIONS.from_rows(partitions),
        items=tables.METADATA_ITEMS.from_rows(items),
    )


def with_max_state_epoch(client: KazooClient, control: MetadataControl) -> MetadataControl:
    """The same with the highest ``controller_epoch`` in the state of any partition; None: no state says one.

    Of states that can't be read there may be a higher one: that is a problem of ``/brokers/topics``.

    Raises:
        ConnectError: ZooKeeper stopped answering.
    """
    refusals = list[str]()
    topics = [f"{path}/partitions" for path in _below(client, [_TOPICS], refusals)]
    states = fetch_data(client, [f"{path}/state" for path in _below(client, topics, refusals)])
    refusals += [refusal(each) for each in states.refusals.values()]
    epochs = [int(match[1]) for data in states.data if data and (match := _STATE_EPOCH.search(data))]
    return _with_epoch(control, max(epochs, default=None), refusals)


def _with_epoch(control: MetadataControl, highest: int | None, refusals: Sequence[str]) -> MetadataControl:
    told = f"{_TOPICS}: the epochs of partitions are not all known, because {len(refusals):,} of its znodes"
    problems = (*control.problems, f"{told} {refusals[0]}") if refusals else control.problems
    return replace(control, max_state_epoch=highest, problems=problems)


def _below(client: KazooClient, paths: Sequence[str], refusals: list[str]) -> list[str]:
    """The children's paths; why some could not be listed."""
    listed = list(zip(paths, fetch_children(client, paths)))
    refusals += [refusal(names, "listed") for _, names in listed if isinstance(names, KazooException)]
    return [f"{path}/{name}" for path, names in listed if isinstance(names, list) for name in names]


@dataclass
class _Reader:
    """Lists and reads, and notes as rows what it can't."""

    client: KazooClient
    errors: list[MetadataItem] = field(default_factory=list)

    def children(self, paths: Sequence[str], kind: str) -> dict[str, list[str]]:
        """Names by path; a path that isn't there has none."""
        answers = dict(zip(paths, fetch_children(self.client, paths)))
        return {path: sorted(self._names(path, names, kind)) for path, names in answers.items()}

    def _names(self, path: str, names: Names, kind: str) -> list[str]:
        if isinstance(names, KazooException):
            self.fail(kind, "", f"{path} {refusal(names, 'listed')}")
        return names if isinstance(names, list) else []

    def znodes(self, paths: Sequence[str]) -> Iterator[tuple[str, Znode | KazooException | None]]:
        return zip(paths, fetch_data(self.client, paths))

    def parse(
        self, what: Sequence[Entity], path: str, held: Znode | KazooException, how: Callable[[bytes], Parsed]
    ) -> Parsed | None:
        """What the znode says; None if that can't be read, which is then an error of each of these entities."""
        try:
            if isinstance(held, KazooException):
                raise BadValue(f"it {refusal(held)}")
            if shown_data(path, held.data) == WITHHELD.encode():
                raise BadValue("it is no JSON object with a config; what it holds is withheld")
            return how(held.data)
        except BadValue as problem:
            for kind, entity in what:
                self.fail(kind, entity, f"{path}: {problem}", None if isinstance(held, KazooException) else held.mzxid)
            return None

    def fail(self, kind: str, entity: str, error: str, mzxid: int | None = None) -> None:
        self.errors.append(_item(kind, entity, "", None, mzxid, error=error))


def _refused_epochs(partitions: Iterable[MetadataPartition], errors: Iterable[MetadataItem]) -> list[str]:
    """Why the states of partitions, or the topics that would name them, can't be read."""
    told = [each.error for each in partitions] + [each.error for each in errors if each.kind in ("topic", "partition")]
    return [f"can't be {found[1]}" for each in told if each and (found := _REFUSAL.search(each))]


def _item(
    kind: str,
    entity: str,
    item: str,
    value: str | None,
    mzxid: int | None,
    is_secret: bool = False,
    error: str | None = None,
) -> MetadataItem:
    return MetadataItem(ZOOKEEPER, kind, entity, item, value, is_secret, mzxid, None, error)


def _topics(reader: _Reader) -> tuple[list[MetadataPartition], list[MetadataItem], int | None]:
    """Partitions, topic ids, and the highest ``controller_epoch`` of any state."""
    names = reader.children([_TOPICS], "topic")[_TOPICS]
    items, readable = list[MetadataItem](), list[tuple[str, values.TopicValue, int, int]]()
    for name, (path, held) in zip(names, reader.znodes([f"{_TOPICS}/{name}" for name in names])):
        if held is None:
            continue
        topic = reader.parse([("topic", name), ("partition", name)], path, held, values.topic_value)
        if topic is None or not isinstance(held, Znode):
            continue
        items.append(_item("topic", name, "id", topic.topic_id, held.mzxid))
        readable += [(name, topic, number, held.mzxid) for number in sorted(topic.replicas)]
    paths = [f"{_TOPICS}/{name}/partitions/{number}/state" for name, _, number, _ in readable]
    rows = [_partition(reader, path, *each, held) for each, (path, held) in zip(readable, reader.znodes(paths))]
    return rows, items, max((row.controller_epoch for row in rows if row.controller_epoch is not None), default=None)


def _partition(
    reader: _Reader,
    path: str,
    name: str,
    topic: values.TopicValue,
    number: int,
    mzxid: int,
    held: Znode | KazooException | None,
) -> MetadataPartition:
    state, error = None, None
    try:
        if isinstance(held, KazooException):
            raise BadValue(f"it {refusal(held)}")
        if held is not None:
            state, mzxid = values.state_value(held.data), max(mzxid, held.mzxid)
    except BadValue as problem:
        error = f"{path}: {problem}"
    replicas, adding, removing = (each.get(number, ()) for each in (topic.replicas, topic.adding, topic.removing))
    isr = state.isr if state else ()
    return MetadataPartition(
        side=ZOOKEEPER,
        topic=name,
        topic_id=topic.topic_id,
        partition=number,
        replicas=replicas,
        adding=adding,
        removing=removing,
        isr=isr,
        assignment_key=assignment_key(replicas, adding, removing),
        isr_key=",".join(map(str, sorted(isr))),
        leader=state.leader if state else None,
        leader_epoch=state.leader_epoch if state else None,
        recovery=state.recovery if state else None,
        partition_epoch=None,
        controller_epoch=state.controller_epoch if state else None,
        mzxid=mzxid,
        offset=None,
        error=error,
    )


def assignment_key(replicas: Iterable[int], adding: Iterable[int], removing: Iterable[int]) -> str:
    """Replicas in order, then what is added and removed, sorted: ``1,2,3 +3 -1``."""
    parts = [
        ",".join(map(str, replicas)),
        *(f"+{each}" for each in sorted(adding)),
        *(f"-{each}" for each in sorted(removing)),
    ]
    return " ".join(parts)


def _settings(reader: _Reader, is_secret: Callable[[str], bool], hide: Hide) -> Iterator[MetadataItem]:
    """Dynamic settings of topics and brokers."""
    for kind in ("topics", "brokers"):
        for name, _, config, mzxid in _configs(reader, "config", f"/config/{kind}"):
            for key, value in config.items():
                withheld = kind == "brokers" and is_secret(key)
                shown = _fingerprint(value, hide) if withheld else value
                yield _item("config", f"{kind}/{name}", key, shown, mzxid, withheld)


def _fingerprint(secret: str, hide: Hide) -> str | None:
    """None of what is enciphered by a key that controllers don't share with ZooKeeper's readers, or is hidden."""
    shown_as = hide(secret)
    is_enciphered = {each.partition(":")[0] for each in secret.split(",")} >= _ENCIPHERED
    return shown_as if is_fingerprint(shown_as) and not is_enciphered else None


def _limits(reader: _Reader, hide: Hide) -> Iterator[MetadataItem]:
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
            content = values.scram_value(value, hide) if is_scram else values.quota_value(value)
            yield _item(kind, owner, key, content, mzxid, is_scram)
        except BadValue as problem:
            yield _item(kind, owner, key, None, mzxid, is_scram, f"{path}: {problem}")


def _configs(
    reader: _Reader, kind: str, folder: str, names: list[str] | None = None
) -> Iterator[tuple[str, str, dict[str, str], int]]:
    """Name, path, settings and mzxid of each config znode in a folder; one without data (a mere folder) has none."""
    names = reader.children([folder], kind)[folder] if names is None else names
    for name, (path, held) in zip(names, reader.znodes([f"{folder}/{name}" for name in names])):
        if held is None or (isinstance(held, Znode) and not held.data):
            continue
        what = [(kind, path.removeprefix("/config/"))]
        if folder == "/config/users":
            what.append(("scram", unquote(name)))
        config = reader.parse(what, path, held, values.config_value)
        if config is not None and isinstance(held, Znode):
            yield name, path, config, held.mzxid


def _acls(reader: _Reader) -> Iterator[MetadataItem]:
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
                yield from (_item("acl", entity, rule, None, mzxid) for rule in rules or ())


def _others(reader: _Reader) -> Iterator[MetadataItem]:
    """Producer ids and delegation tokens."""
    path = "/latest_producer_id_block"
    for _, held in reader.znodes([path]):
        if held is not None:
            first = reader.parse([("producer_ids", "")], path, held, values.next_producer_id)
            if first is not None and isinstance(held, Znode):
                yield _item("producer_ids", "", "next", first, held.mzxid)
    names = reader.children([_TOKENS], "token")[_TOKENS]
    for name, (path, held) in zip(names, reader.znodes([f"{_TOKENS}/{name}" for name in names])):
        token = None if held is None else reader.parse([("token", name)], path, held, values.token_value)
        if token is not None and isinstance(held, Znode):
            yield _item("token", name, "token", token, held.mzxid)
