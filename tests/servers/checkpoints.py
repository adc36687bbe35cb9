"""ZooKeeper's own log beside the metadata log: what ZooKeeper held at the moment each checkpoint was written.

Written apart from the diff on purpose: its own reading of the znodes, by plain dictionaries.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kit.kraft.metadata_log import MetadataLog
from kit.kraft.metadata_log.image import Image
from kit.kraft.metadata_log.log import stream
from kit.kraft.metadata_log.rows import item_rows, number_text
from kit.kraft.metadata_log.transactions import with_transactions
from kit.kraft.zookeeper_files.files import find_files
from kit.kraft.zookeeper_files.transactions import Log

DONE = ("create", "set_data", "delete")


@dataclass(frozen=True)
class Checkpoint:
    """A write of ``/migration`` that moved it to ``offset``; ``early``: what ZooKeeper lacked then, by key."""

    zxid: int
    offset: int
    n_values: int
    n_changed: int
    early: Mapping[tuple[str, ...], tuple[object, object]]


def checkpoints(zookeeper: Path, log: MetadataLog) -> Iterator[Checkpoint]:
    """Each move of the checkpoint, with all values compared: topics, partitions, settings of topics, ACLs."""
    znodes: dict[str, bytes] = {}
    images = _Images(log)
    last = -1
    for change in (
        each
        for file in find_files([zookeeper])
        if file.kind == "log"
        for each in Log(file.read()[0], file.path).changes()
    ):
        if change.error or change.refusal or change.path is None or change.operation not in DONE:
            continue
        if change.operation == "delete":
            znodes.pop(change.path, None)
            continue
        znodes[change.path] = change.data or b""
        if change.path != "/migration":
            continue
        offset = json.loads(change.data or b"{}").get("kraft_metadata_offset", -1)
        if offset > last:
            kraft = images.at(offset)
            held = _of_zookeeper(znodes)
            early = {
                key: (held.get(key), kraft.get(key))
                for key in held.keys() | kraft.keys()
                if held.get(key) != kraft.get(key)
            }
            yield Checkpoint(change.zxid or 0, offset, len(kraft), images.n_changed, early)
            last = offset


class _Images:
    """The image as of one offset after the other."""

    def __init__(self, log: MetadataLog) -> None:
        self._records = with_transactions(
            stream([each for each in log.sources if each.kind != "checkpoint"], log.until)
        )
        self._image = Image()
        self._next = next(self._records, None)
        self.n_changed = 0

    def at(self, offset: int) -> dict[tuple[str, ...], object]:
        self.n_changed = 0
        while self._next is not None and (self._next[0].offset is None or self._next[0].offset <= offset):
            self._image.replay([self._next])
            self.n_changed += self._next[0].name not in ("NoOp", None)
            self._next = next(self._records, None)
        return _of_kraft(self._image)


def _of_kraft(image: Image) -> dict[tuple[str, ...], object]:
    found: dict[tuple[str, ...], object] = {}
    for topic_id, topic in image.topics.items():
        found["topic", topic.name] = topic_id
        for number, each in topic.partitions.items():
            state = (
                each.replicas,
                sorted(each.adding),
                sorted(each.removing),
                each.leader,
                each.leader_epoch,
                sorted(each.isr),
            )
            found["partition", topic.name, str(number)] = state
    for row in item_rows(image):
        if row.kind in ("acl", "quota", "scram") or (row.kind == "config" and row.entity.startswith("topics/")):
            found[row.kind, row.entity, row.item] = row.value
    return found


def _of_zookeeper(znodes: Mapping[str, bytes]) -> dict[tuple[str, ...], object]:
    found: dict[tuple[str, ...], object] = {}
    for path, data in znodes.items():
        parts = path.split("/")[1:]
        if parts[:2] == ["brokers", "topics"] and len(parts) == 3:
            topic = json.loads(data)
            found["topic", parts[2]] = topic["topic_id"]
            for number, replicas in topic["partitions"].items():
                adding, removing = (
                    sorted(topic[f"{word}_replicas"].get(number, [])) for word in ("adding", "removing")
                )
                state = json.loads(znodes.get(f"{path}/partitions/{number}/state", b"{}"))
                told = (state.get("leader"), state.get("leader_epoch"), sorted(state.get("isr", [])))
                found["partition", parts[2], number] = (replicas, adding, removing, *told)
        elif parts[:2] == ["config", "topics"] and len(parts) == 3:
            for key, value in json.loads(data)["config"].items():
                found["config", f"topics/{parts[2]}", key] = value
        elif parts[0] == "config" and parts[1:2] and parts[1] in ("users", "clients", "ips") and data:
            for key, value in json.loads(data)["config"].items():
                if key.startswith("SCRAM-"):
                    found["scram", parts[2], key] = value[value.index("iterations=") :]
                else:
                    found["quota", "/".join(parts[1:]), key] = number_text(float(value))
        elif parts[0] in ("kafka-acl", "kafka-acl-extended") and data.startswith(b"{"):
            pattern = "LITERAL" if parts[0] == "kafka-acl" else "PREFIXED"
            for each in json.loads(data)["acls"]:
                words = [each["principal"], each["host"], each["operation"].upper(), each["permissionType"].upper()]
                kind = parts[-2].upper().replace("TRANSACTIONALID", "TRANSACTIONAL_ID")
                found["acl", f"{kind}:{pattern}:{parts[-1]}", json.dumps(words, separators=(",", ":"))] = None
    return found
