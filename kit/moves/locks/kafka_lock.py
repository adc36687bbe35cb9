"""The lock of runs on a cluster without ZooKeeper: a lease in Kafka per group, or one of the whole cluster.

A run of more than ``MOST_LEASES`` groups takes the lease of the whole cluster instead. It is two-sided, as ZooKeeper's:
each side takes its own lease first and searches for the other's then, so of two that begin at once at least one sees
the other. The marks are per group in both cases.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from platform import node
from urllib.parse import unquote

from kafka.protocol.admin import CreateTopicsRequest
from kafka.protocol.metadata import MetadataRequest

from kit.clients.broker_client import Deadline, describe_code
from kit.clients.cluster import Cluster, connect_kafka
from kit.engine.lock import escaped
from kit.errors import ConnectError, RunError, TargetBusy
from kit.groups.read.coordinator import LOCK_GROUPS, fetch_groups
from kit.moves.locks.lease import TOPIC, UNKNOWN_TOPIC, Lease, Member, describe_holder, described, remove_member
from kit.moves.locks.mark import Mark, parse_mark
from kit.moves.offsets.kafka import KafkaWriter
from kit.moves.offsets.moves import Stored
from kit.profile.identity.login import system_user

MOST_LEASES = 8
"""Each has a connection of its own, and heartbeats of its own."""
WHOLE_CLUSTER = f"{LOCK_GROUPS}:cluster"
"""No group's: a colon is always escaped."""
_CREATE_S, _LOOK_S = 30.0, 10.0
_LONGEST_NAME = 249
_TOPIC_EXISTS, _NOT_CONTROLLER = 36, 41


def lock_group(target: str) -> str:
    """The name of the group that is the lock of a target, itself a group."""
    name = LOCK_GROUPS + escaped(target)
    return name if len(name) <= _LONGEST_NAME else f"{LOCK_GROUPS}:{hashlib.sha256(target.encode()).hexdigest()}"


def target_of(name: str) -> str:
    """Return the group that a lock's group locks, as it is shown, as far as the name shows it."""
    return "the whole cluster" if name == WHOLE_CLUSTER else unquote(name.removeprefix(LOCK_GROUPS))


class KafkaLock:
    """Holds the groups of one run, by leases of their own or by the one of the whole cluster.

    ``is_alone=False``: ZooKeeper has marks as well, so a run from before the brokers' move left none in Kafka.
    """

    def __init__(self, groups: LockGroups, is_alone: bool = True) -> None:
        self._groups, self._is_alone = groups, is_alone
        self._leases: dict[str, Lease] = {}

    def acquire(self, targets: Sequence[str], run_id: str) -> None:
        """All or none.

        Raises:
            TargetBusy: another run has one of them; which, of whom, on which host, since when.
            ConnectError: a coordinator does not answer, or can't write.
            RunError: the brokers refuse it: a right is missing.
        """
        names = {lock_group(target): f"group {target}" for target in targets}
        is_whole = len(names) > MOST_LEASES
        try:
            self._groups.prepare()
            self._take({WHOLE_CLUSTER: "the whole cluster"} if is_whole else names, run_id)
            self._refuse_holders() if is_whole else self._refuse_whole()
        except BaseException:
            self.release()
            raise

    def assert_held(self) -> None:
        """Let each coordinator confirm through its log that the lock is still this run's.

        Raises:
            LockLost: it is not, or it can't be confirmed.
        """
        self._each(lambda lease: lease.confirm())

    def mark(self, targets: Sequence[str], run_id: str) -> None:
        """Leave the run's id in the lock's group of each target.

        Raises:
            LockLost: another run may have a target by now.
            ConnectError: a mark can't be written.
        """
        names = {lock_group(target) for target in targets}
        self._each(lambda lease: lease.confirm(run_id) if lease.group_id in names else lease.confirm())
        left = names - self._leases.keys()
        self._groups.write_marks(left, _mark(run_id, is_held=False, changed_by=run_id))

    def followed_by(self, targets: Sequence[str], run_id: str) -> Mapping[str, str]:
        """Return the targets that a later run changed, each with that run. Asked of runs that left a mark.

        Raises:
            ConnectError: the marks can't be read.
            RunError: a mark is gone, so it is not known.
        """
        names = {target: lock_group(target) for target in targets}
        texts = self._groups.read_marks(names.values())
        later = {}
        for target, name in names.items():
            text = texts[name]
            mark = parse_mark(text)
            if text and mark is None:
                later[target] = f"(unreadable: {text[:80]!r})"
            elif mark is None or mark.changed_by is None:
                if not self._is_alone:
                    continue
                raise RunError(
                    f"the mark that run {run_id} left in group {name} no longer exists: it expired "
                    f"(offsets.retention.minutes), or another client deleted the group or topic {TOPIC}. So offramp "
                    "can't know whether a later run"
                    f" changed group {target}, and nothing was done. Make a new plan from the present offsets"
                )
            elif mark.changed_by != run_id:
                later[target] = mark.changed_by
        return later

    def mark_settled(self, targets: Sequence[str], run_id: str) -> None:
        """Nothing: a plan of groups waits by itself until they are stable."""

    def unsettled(self, targets: Sequence[str], run_id: str) -> str | None:
        return None

    def release(self) -> None:
        """Leave each lease's group. If its coordinator does not answer, the lease ends with its session."""
        leases, self._leases = self._leases, {}
        with ExitStack() as stack:  # All of them, whatever ends the wait for one.
            for lease in leases.values():
                stack.callback(lease.close)

    def _take(self, names: Mapping[str, str], run_id: str) -> None:
        mark = _mark(run_id)
        for name, target in names.items():
            self._leases[name] = self._groups.lease(name, target, mark)
        self._each(lambda lease: lease.take())

    def _each(self, do: Callable[[Lease], None]) -> None:
        """Side by side: the first broker that waits for nothing holds up no other."""
        leases = list(self._leases.values())
        if len(leases) == 1:
            do(leases[0])
            return
        with ThreadPoolExecutor(max_workers=MOST_LEASES) as pool:
            for done in [pool.submit(do, lease) for lease in leases]:
                done.result()

    def _refuse_whole(self) -> None:
        members = self._groups.members(WHOLE_CLUSTER)
        if members:
            raise TargetBusy(
                f"a run holds the lock of the whole cluster: {describe_holder(members[0])}. Wait until that run has "
                "ended"
            )

    def _refuse_holders(self) -> None:
        holders = [each for each in self._groups.locks() if each.is_held and each.group_id != WHOLE_CLUSTER]
        if holders:
            more = f", and {len(holders) - 1} more groups are" if len(holders) > 1 else ""
            raise TargetBusy(
                f"group {target_of(holders[0].group_id)} is locked by a run "
                f"({describe_holder(holders[0].members[0])}){more}. Wait until these runs have ended"
            )


@dataclass(frozen=True, slots=True)
class LockState:
    """One lock in Kafka as it is now: its group, its members, and the mark of its last holder."""

    group_id: str
    members: tuple[Member, ...]
    mark: Mark | None

    @property
    def is_held(self) -> bool:
        return bool(self.members)


def fetch_locks(cluster: Cluster) -> list[LockState]:
    """Read every lock in Kafka, held or not, by name.

    Raises:
        ConnectError: a broker can't list its groups, or a lock can't be read.
    """
    read = fetch_groups(cluster.broker_client, locks=True)
    problems = [each.error for each in read.errors] + [each for each in read.groups["error"] if each is not None]
    if problems:
        raise ConnectError(f"the locks in Kafka can't be read: {problems[0]}")
    offsets = zip(*(read.committed_offsets[column] for column in ("group_id", "topic", "partition", "metadata")))
    marks = {name: parse_mark(text) for name, *place, text in offsets if place == [TOPIC, 0]}
    members: dict[str, list[Member]] = {name: [] for name in read.groups["group_id"]}
    columns = [read.members[column] for column in ("group_id", "member_id", "client_id", "client_host")]
    for name, member_id, client_id, host in zip(*columns):
        members[name].append(Member(member_id, client_id, host, marks.get(name)))
    return [LockState(name, tuple(members[name]), marks.get(name)) for name in sorted(members)]


def remove_members(cluster: Cluster, name: str, member_ids: Iterable[str]) -> None:
    """Remove these members from a lock's group: they are refused from now on. A member that joined since stays.

    Raises:
        ConnectError: the coordinator does not answer.
        RunError: it refuses.
    """
    client = cluster.broker_client
    for member_id in member_ids:
        client.run(remove_member, client, name, member_id, Deadline(_LOOK_S))


class LockGroups:
    """The groups of one cluster that are locks, with the requests that a lock needs."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def prepare(self) -> None:
        """Raises as ``make_topic``."""
        make_topic(self._cluster)

    def lease(self, name: str, target: str, mark: Mark) -> Lease:
        """A lease that is not yet taken, on a connection of its own. Raises as ``connect_kafka``."""
        return Lease(connect_kafka(self._cluster.profile, client_id=f"offramp {mark.run_id}"), name, target, mark)

    def members(self, name: str) -> list[Member]:
        """Raises as ``described``."""
        client = self._cluster.broker_client
        return client.run(described, client, name, Deadline(_LOOK_S))[1]

    def locks(self) -> list[LockState]:
        """Raises as ``fetch_locks``."""
        return fetch_locks(self._cluster)

    def read_marks(self, names: Iterable[str]) -> dict[str, str | None]:
        """The text of each mark, None where there is none. Raises ConnectError: one can't be read."""
        stored = KafkaWriter(self._cluster.broker_client).read((name, TOPIC, 0) for name in names)
        for (name, _, _), found in stored.items():
            if found.error is not None:
                raise ConnectError(f"the mark in group {name} can't be read: {found.error}")
        return {name: found.metadata for (name, _, _), found in stored.items()}

    def write_marks(self, names: Iterable[str], mark: Mark) -> None:
        """Write a mark into groups without members. Raises ConnectError: one can't be written."""
        wanted = {(name, TOPIC, 0): Stored(0, mark.to_text()) for name in names}
        for (name, _, _), answer in KafkaWriter(self._cluster.broker_client).write(wanted, {}).items():
            if answer.error is not None:
                raise ConnectError(f"the run's id can't be written to the lock, group {name}: {answer.error}")


def make_topic(cluster: Cluster) -> None:
    """Create the topic of the marks, unless it is there.

    Raises:
        RunError: the brokers refuse it.
    """
    client = cluster.broker_client
    named = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
    (known,) = client.run(client.ask, named, None, Deadline(_LOOK_S)).topics
    if known.error_code != UNKNOWN_TOPIC:
        return
    topic = CreateTopicsRequest.CreatableTopic(
        name=TOPIC, num_partitions=1, replication_factor=-1, assignments=[], configs=[]
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=int(_CREATE_S * 1000), validate_only=False)
    for broker_id in client.broker_ids():  # In ZooKeeper mode only the controller creates topics.
        (made,) = client.run(client.ask, request, broker_id, Deadline(_CREATE_S)).topics
        if made.error_code != _NOT_CONTROLLER:
            break
    if made.error_code not in (0, _TOPIC_EXISTS):
        raise RunError(
            f"topic {TOPIC}, which offramp's lock needs, can't be created: {describe_code(made.error_code)}. Create it"
            f" with one partition: kafka-topics.sh --bootstrap-server ADDRESS --create --topic {TOPIC} --partitions 1"
        )


def _mark(run_id: str, is_held: bool = True, changed_by: str | None = None) -> Mark:
    return Mark(run_id, node(), system_user(), datetime.now(UTC).isoformat(timespec="seconds"), is_held, changed_by)
