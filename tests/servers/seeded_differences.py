"""A copy of a real cluster in dual write, its znodes in a chroot and its log in a folder, with differences put in.

Every znode and every record was written by Kafka; some are changed manually, in ZooKeeper or at the log's end.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
from kazoo.client import KazooClient

from kit.clients.multiread import fetch_data
from kit.kraft.both_stores import MetadataDiff, diff_stores
from kit.kraft.metadata_log import read_log
from kit.kraft.read.metadata_values import RESOURCE_TYPES
from kit.kraft.read.znode_tree import fetch_znodes
from kit.lab import Lab
from kit.lab.servers.migrating import connected
from tests import metadata_records as written

CHROOT = "/copy"
_TOPS = ("/admin", "/brokers/topics", "/config", "/kafka-acl", "/kafka-acl-extended", "/delegation_token")
_ALONE = ("/migration", "/controller", "/controller_epoch", "/cluster/id", "/latest_producer_id_block")
Key = tuple[str, str, str]
"""Kind, entity, item."""


@dataclass
class Seeded:
    """``before``: of the copy as it was; ``expected``: every key that was made to differ; ``found``: the diff then."""

    before: MetadataDiff
    expected: set[Key] = field(default_factory=set)
    found: MetadataDiff | None = None


def seed(lab: Lab, folder: Path) -> Seeded:
    """Copy, compare, change about a thousand values of every kind, compare again; the lab stays as it is."""
    source = lab.folder / lab.migration.controllers[0].name / "data" / "__cluster_metadata-0"
    with connected(lab.zookeeper_connect) as root:
        copy_znodes(root)  # Before the log: it has all that ZooKeeper has, and perhaps more.
    log_folder = Path(shutil.copytree(source, folder / "log"))
    with copied(lab) as client:
        _set_checkpoint(client, log_folder)
        seeded = Seeded(diff_stores("copy", client, [log_folder]))  # type: ignore[arg-type]
        edits = _Edits(client, seeded.before.differences.filter(pl.col("verdict") == "equal"), log_folder)
        seeded.expected = edits.make()
        _set_checkpoint(client, log_folder)
        seeded.found = diff_stores("copy", client, [log_folder])  # type: ignore[arg-type]
    return seeded


@contextmanager
def copied(lab: Lab) -> Iterator[KazooClient]:
    with connected(f"{lab.zookeeper_connect}{CHROOT}") as client:
        yield client


def copy_znodes(client: KazooClient) -> None:
    """Copy what a diff reads, below ``CHROOT``."""
    client.create(CHROOT)
    paths = [path for top in (*_TOPS, *_ALONE) for path in fetch_znodes(client, top)["path"].to_pylist()]
    rows = dict(zip(paths, fetch_data(client, paths).data))
    parents = {path[:at] for path in rows for at in range(1, len(path)) if path[at] == "/"} - set(rows)
    for some in _levels({path: rows.get(path) or b"" for path in {*parents, *rows}}):
        for answer in [client.create_async(f"{CHROOT}{path}", data) for path, data in some]:
            answer.get(30)


def _levels(rows: dict[str, bytes]) -> Iterable[list[tuple[str, bytes]]]:
    by_depth: dict[int, list[tuple[str, bytes]]] = {}
    for path, data in rows.items():
        by_depth.setdefault(path.count("/"), []).append((path, data))
    return [by_depth[depth] for depth in sorted(by_depth)]


def _set_checkpoint(client: KazooClient, log_folder: Path) -> None:
    """Set the checkpoint as if everything in the log had been written to ZooKeeper."""
    image = read_log(log_folder).image
    held = json.loads(client.get("/migration")[0])
    client.set("/migration", _json(held | {"kraft_metadata_offset": image.offset, "kraft_metadata_epoch": image.epoch}))


def _json(held: object) -> bytes:
    return json.dumps(held, separators=(",", ":")).encode()


class _Edits:
    """Changes znodes of the copy, each kind in several ways in turn, and notes which keys must differ then."""

    def __init__(self, client: KazooClient, equal: pl.DataFrame, log_folder: Path) -> None:
        self.client, self.log_folder = client, log_folder
        self.expected: set[Key] = set()
        self._held: dict[str, Any] = {}
        many = pl.col("entity").str.contains("^(many-|topics/many-|users/many|u[0-9]+$|TOPIC:LITERAL:many-)")
        keys = equal.filter(many).select("kind", "entity", "item").sort("kind", "entity", "item").rows()
        self._keys = {kind: [key for key in keys if key[0] == kind] for kind in {key[0] for key in keys}}
        self._others = equal.filter(~many).select("kind", "entity", "item").rows()

    def make(self) -> set[Key]:
        topics = [entity for _, entity, _ in self._keys["topic"]]
        for number, topic in enumerate(topics[:4]):
            self._new_id(topic, number)
        ways = cycle((self._epoch, self._leader, self._isr, self._recovery, self._replicas, self._no_state))
        for kind, topic, item in self._keys["partition"]:
            if topic not in topics[:5]:  # The fifth stays for the log.
                next(ways)(topic, item)
                self.expected.add((kind, topic, item))
        for kind in ("config", "quota", "scram"):
            self._settings(kind, self._keys[kind][:-2])
        self._acls()
        self._single_ones()
        self._odd_settings()
        for path, held in self._held.items():
            self.client.set(path, _json(held))
        self._at_the_end_of_the_log(topics[4])
        return self.expected

    def _edit(self, path: str, change: Callable[[Any], None]) -> None:
        if path not in self._held:
            self._held[path] = json.loads(self.client.get(path)[0])
        change(self._held[path])

    def _new_id(self, topic: str, number: int) -> None:
        """It is a part of each partition's value, too."""
        self._edit(f"/brokers/topics/{topic}", lambda held: held.update(topic_id=written.uuid(1000 + number)))
        self.expected |= {("topic", topic, "id")} | {key for key in self._keys["partition"] if key[1] == topic}

    def _state(self, topic: str, number: str, **changed: Any) -> None:
        self._edit(f"/brokers/topics/{topic}/partitions/{number}/state", lambda held: held.update(changed))

    def _epoch(self, topic: str, number: str) -> None:
        self._state(topic, number, leader_epoch=77)

    def _leader(self, topic: str, number: str) -> None:
        self._state(topic, number, leader=-1)

    def _isr(self, topic: str, number: str) -> None:
        self._state(topic, number, isr=[1, 2])

    def _recovery(self, topic: str, number: str) -> None:
        self._state(topic, number, leader_recovery_state=1)

    def _replicas(self, topic: str, number: str) -> None:
        self._edit(f"/brokers/topics/{topic}", lambda held: held["partitions"].update({number: [1, 2]}))

    def _no_state(self, topic: str, number: str) -> None:
        self.client.delete(f"/brokers/topics/{topic}/partitions/{number}/state")

    def _settings(self, kind: str, keys: list[Key]) -> None:
        """Every third has none any more, the others another value."""
        others = {
            "config": "12345",
            "quota": "7.5",
            "scram": "salt=eA==,stored_key=eA==,server_key=eA==,iterations=4097",
        }
        for at, (_, entity, item) in enumerate(keys):
            path = f"/config/users/{quote(entity, safe='')}" if kind == "scram" else f"/config/{entity}"
            if at % 3 == 0:
                self._edit(path, lambda held, item=item: held["config"].pop(item))
            else:
                self._edit(path, lambda held, item=item: held["config"].update({item: others[kind]}))
            self.expected.add((kind, entity, item))

    def _acls(self) -> None:
        """Each rule but the first of a resource removed; one added to it."""
        added = {"principal": "User:new", "permissionType": "Allow", "operation": "Write", "host": "*"}
        by_entity: dict[str, list[str]] = {}
        for _, entity, rule in self._keys["acl"]:
            by_entity.setdefault(entity, []).append(rule)
        for entity, (kept, *removed) in by_entity.items():
            principal = json.loads(kept)[0]
            kind, _, name = entity.split(":")
            (folder,) = (each for each, named in RESOURCE_TYPES.items() if named == kind)
            self._edit(f"/kafka-acl/{folder}/{name}", lambda held, it=principal: _keep(held, it, added))
            self.expected |= {("acl", entity, rule) for rule in removed}
            self.expected.add(("acl", entity, '["User:new","*","WRITE","ALLOW"]'))

    def _single_ones(self) -> None:
        """Tokens, the producer ids, and one of the values that were there before the copy."""
        for kind, entity, item in self._others:
            if kind == "token":
                self._edit(f"/delegation_token/tokens/{entity}", lambda held: held.update(expiryTimestamp=1))
                self.expected.add((kind, entity, item))
        self._edit("/latest_producer_id_block", lambda held: held.update(block_start="900000", block_end="900999"))
        self.expected.add(("producer_ids", "", "next"))
        self._edit("/config/topics/orders", lambda held: held["config"].update({"cleanup.policy": "compact"}))
        self.expected.add(("config", "topics/orders", "cleanup.policy"))

    def _odd_settings(self) -> None:
        """Make settings of topics that never were, and of one that is made and deleted at the end of the log."""
        for name in ("never", "brief"):
            self.client.create(f"/config/topics/{name}", _json({"version": 1, "config": {"retention.ms": "1"}}))
            self.expected.add(("config", f"topics/{name}", "retention.ms"))

    def _at_the_end_of_the_log(self, topic: str) -> None:
        """A batch that no controller wrote: each kind of record on values that ZooKeeper was left with."""
        log = read_log(self.log_folder)
        topic_id = log.partitions.filter(pl.col("topic") == topic)["topic_id"][0]
        records = [
            written.topic("brief", 4711),
            written.config(2, "brief", "retention.ms", "1"),
            written.value("RemoveTopic", {"topicId": written.uuid(4711)}),
            written.value("PartitionChange", {"partitionId": 0, "topicId": topic_id, "leader": 1}),
        ]
        self.expected.add(("partition", topic, "0"))
        for kind, entity, item in self._keys["config"][-2:]:
            records.append(written.config(2, entity.removeprefix("topics/"), item, "54321"))
            self.expected.add((kind, entity, item))
        for kind, entity, item in self._keys["quota"][-2:]:
            records.append(written.quota({"user": entity.removeprefix("users/").replace("%20", " ")}, item, 3.0))
            self.expected.add((kind, entity, item))
        for kind, entity, item in self._keys["scram"][-2:]:
            number = 1 if item == "SCRAM-SHA-256" else 2
            records.append(written.credential(entity, b"another", number, 4099))
            self.expected.add((kind, entity, item))
        (segment,) = self.log_folder.glob("*.log")
        with segment.open("ab") as file:
            file.write(written.batch(log.image.offset + 1, records, log.image.epoch))


def _keep(held: dict[str, Any], principal: str, added: dict[str, str]) -> None:
    held["acls"] = [*(each for each in held["acls"] if each["principal"] == principal), added]
