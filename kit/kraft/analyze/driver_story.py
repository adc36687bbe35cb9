"""Read controllers' logs of the migration: lines of ``KRaftMigrationDriver`` (3.9.1), and the reason why a copy
aborted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

_LINE = re.compile(r"\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,]\d{3})\]? +(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b(.*)")
_DRIVER = re.compile(r".*?\[KRaftMigrationDriver id=(\d+)\] (.*?)(?: \(org\.apache\.kafka\.[\w.]+\))?\s*")
_FAULT = re.compile(
    r".*?Encountered \w[\w ]*? fault: (?:Unhandled error in|Encountered ZooKeeper authentication in) (.*)"
)
_READING = re.compile(r".*?Error in [\w ]+?(?:consumer|visitor)[\w ]*\. (\w+) was (.*?)\.?(?: \(kafka\.zk[\w.]*\))?\s*")
_CAUSE = re.compile(r"(?:Caused by: )?([\w.$]+(?:Exception|Error)(?:: .*)?)")
_FRAME = re.compile(r"\s+at kafka\.zk\.([\w.$]+)\(")
_RESOURCE = re.compile(r"ResourcePattern\(resourceType=(\w+), name=(.*), patternType=(\w+)\)")
_ENTITY = re.compile(r"EntityData\(entityType='([\w-]+)', entityName=(?:'(.*?)'|null)\)")

STATE, WAITS, CLAIMS, NO_CLAIM, COPIES, COPIED, ABORTED, SYNCED, FAILS, REFUSES, OTHER = KINDS = (
    "state", "waits", "claims", "claim refused", "copies", "copied", "aborted", "synced", "fails", "refuses", "other",
)  # fmt: skip
_STATES = {
    "INACTIVE": "does nothing: it is not the active controller, or the migration is not enabled",
    "WAIT_FOR_CONTROLLER_QUORUM": "is the active controller, and waits for the other controllers",
    "WAIT_FOR_BROKERS": "waits for brokers in migration mode",
    "BECOME_CONTROLLER": "claims /controller",
    "ZK_MIGRATION": "begins the copy",
    "SYNC_KRAFT_TO_ZK": "compares ZooKeeper with the metadata log, and writes the differences",
    "KRAFT_CONTROLLER_TO_BROKER_COMM": "sends the metadata to the brokers",
    "DUAL_WRITE": "writes every change to both stores",
}
_MESSAGES = (
    (STATE, r"\d+ transitioning from \w+ to (\w+) state", ""),
    (
        WAITS,
        r"Still waiting for all controller nodes ready.*?Not ready due to:\s*(.*)",
        "not ready: {}",
    ),
    (WAITS, r"No brokers are known to KRaft.*()", "no broker in migration mode has registered"),
    (WAITS, r"No brokers are registered in ZK.*()", "no broker is in /brokers/ids: is the chroot right?"),
    (WAITS, r"Still waiting for ZK brokers (\[.*?\]) to register.*", "brokers {} are not in migration mode"),
    (
        WAITS,
        r"Still waiting for ZK brokers (\[.*?\]) found in metadata.*",
        "brokers {} have replicas, but are not registered",
    ),
    (
        WAITS,
        r"Ignoring image (.*?) which does not contain a superset.*",
        "its log is older than the offset in /migration",
    ),
    (CLAIMS, r"Claimed ZK controller leadership()\b.*", "holds /controller"),
    (NO_CLAIM, r"Unable to claim leadership.*()", "can't claim /controller, and tries again"),
    (COPIES, r"Starting ZK migration()", "copies ZooKeeper's metadata"),
    (COPIED, r"Completed migration of metadata from ZooKeeper to KRaft\. (\d+ records were generated.*?)\..*", "{}"),
    (ABORTED, r"Aborting the metadata migration.*()", "aborts the copy"),
    (SYNCED, r"Made the following ZK writes when reconciling with KRaft state: \{(.*)\}", "writes to ZooKeeper: {}"),
    (SYNCED, r"Did not make any ZK writes when reconciling.*()", "has nothing to write to ZooKeeper"),
    (FAILS, r"Encountered ZooKeeper error during event (.*?)\. Will retry.*", "ZooKeeper failed at {}; it tries again"),
    (
        REFUSES,
        r"The controller's ZkMigrationState is NONE.*()",
        "does not migrate: the cluster was created in KRaft mode",
    ),
    (
        REFUSES,
        r"KRaft controller indicates an active migration, but.*()",
        "does nothing: /migration belongs to another metadata log",
    ),
    (REFUSES, r"KRaft controller indicates a completed migration.*()", "does nothing: the migration is finalised"),
)
_KNOWN = [(kind, re.compile(pattern), action) for kind, pattern, action in _MESSAGES]
_FOLDERS = {
    "TopicMigrationClient": "/brokers/topics",
    "iterateBrokerConfigs": "/config/brokers",
    "iterateTopicConfigs": "/config/topics",
    "iterateClientQuotas": "/config/users, /config/clients or /config/ips",
    "AclMigrationClient": "/kafka-acl or /kafka-acl-extended",
    "DelegationToken": "/delegation_token/tokens",
    "migrateProducerId": "/latest_producer_id_block",
}


@dataclass(frozen=True, slots=True)
class DriverEvent:
    """``time``: as the log prints it; ``kind``: one of ``KINDS``; ``n_times``: in a row.

    ``znode``: what aborted a copy, or the folder that was read; ``cause``: the innermost exception.
    """

    time: str
    controller: int | None
    kind: str
    action: str
    source: str
    n_times: int = 1
    znode: str | None = None
    cause: str | None = None

    @property
    def sentence(self) -> str:
        who = "a controller" if self.controller is None else f"controller {self.controller}"
        action = f"{self.action}, {self.n_times} times" if self.n_times > 1 else self.action
        where = f" at {self.znode}" if self.znode else ""
        return f"{self.time}  {who} {action}{where}" + (f": {self.cause}" if self.cause else "")


def driver_events(lines: Iterable[str], source: str) -> list[DriverEvent]:
    """Return the events of the driver of one log, in order; a repeated line is one event."""
    events = list[DriverEvent]()
    for event in _with_causes(lines, source):
        last = events[-1] if events else None
        if last is not None and replace(last, time=event.time, n_times=1) == event:
            events[-1] = replace(last, n_times=last.n_times + 1)
        else:
            events.append(event)
    return events


def _with_causes(lines: Iterable[str], source: str) -> Iterator[DriverEvent]:
    """Each event, with the exception whose lines follow it, and the znode that a line before it names."""
    event: DriverEvent | None = None
    reading: str | None = None
    for line in lines:
        head = _LINE.match(line)
        if head is None:
            event = event and _with_trace(event, line)
            continue
        if event is not None:
            yield event
        event = _event(head[1], head[2], source, reading)
        read = _READING.fullmatch(head[2])
        reading = _znode(read[1], read[2]) if read else reading if event is None else None
    if event is not None:
        yield event


def _event(time: str, rest: str, source: str, reading: str | None) -> DriverEvent | None:
    fault = _FAULT.match(rest)
    if fault is not None:
        return DriverEvent(time, None, FAILS, f"fails at {fault[1].strip()}", source, znode=reading)
    own = _DRIVER.fullmatch(rest)
    if own is None:
        return None
    for kind, pattern, action in _KNOWN:
        match = pattern.fullmatch(own[2])
        if match is not None:
            sentence = _STATES.get(match[1], match[1]) if kind == STATE else _action(kind, action, match[1])
            return DriverEvent(time, int(own[1]), kind, sentence, source, znode=reading if kind == ABORTED else None)
    return None


def _action(kind: str, action: str, detail: str) -> str:
    sentence = action.format(detail)
    return f"waits: {sentence}" if kind == WAITS else f"has copied: {sentence}" if kind == COPIED else sentence


def _with_trace(event: DriverEvent, line: str) -> DriverEvent:
    """A line of an exception: its innermost cause, and what was read when nothing else names it."""
    if event.kind not in (ABORTED, FAILS):
        return event
    cause, frame = _CAUSE.match(line), _FRAME.match(line)
    if cause is not None:
        return replace(event, cause=cause[1].strip())
    if frame is not None and event.znode is None:
        folder = next((path for name, path in _FOLDERS.items() if name in frame[1]), None)
        return replace(event, znode=folder and f"a znode under {folder}")
    return event


def _znode(kind: str, named: str) -> str:
    """The znode of what a migration client was reading."""
    resource, entities = _RESOURCE.search(named), _ENTITY.findall(named)
    if resource is not None:
        root = "/kafka-acl" if resource[3] == "LITERAL" else "/kafka-acl-extended/prefixed"
        return f"{root}/{''.join(each.capitalize() for each in resource[1].split('_'))}/{resource[2]}"
    if entities:
        folders = {"user": "users", "client-id": "clients", "ip": "ips"}
        return "/config/" + "/".join(f"{folders.get(each, each)}/{name or '<default>'}" for each, name in entities)
    folders = {"Topic": "/brokers/topics", "Broker": "/config/brokers", "TopicPartition": "/brokers/topics"}
    return f"{folders.get(kind, kind)}/{named or '<default>'}"
