"""The toggle: one conditional write of ``migration/mode``, judged by what each member then owns and commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError

from kit.cluster import Cluster, zookeeper_settings
from kit.errors import AuthenticationFailed, ConnectError, OfframpError, RunError
from kit.migrate.lock import ANSWER_S
from kit.migrate.performer import ActedRecord, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.migrate.standing import KC, Partition, Standing, counted, look, told
from kit.migrate.step import Change, Step
from kit.migrate.values import Json
from kit.model import KAFKA, ZOOKEEPER
from kit.read.access import inherited
from kit.read.owner_history import OwnerWatch
from kit.read.paths import group_path

KIND = "toggle"
NAMES = {KAFKA: "Kafka", ZOOKEEPER: "ZooKeeper"}
SETTLE_S = 180.0
"""An old consumer's auto-commit comes every minute by default; two of them prove that it hands out."""


def mode_path(group_id: str) -> str:
    """KIP-125, ZooKeeper State. Raises InputError for a group of which ZooKeeper can hold nothing."""
    return f"{group_path(group_id)}/migration/mode"


def toggle_step(step_id: str, group_id: str, before: str | None, after: str, deadline_s: float = SETTLE_S) -> Step:
    """Set the coordination of one group to ``kafka`` or ``zookeeper``."""
    name = NAMES[after]
    back = f"the znode is set to {before!r} again" if before is not None else "the znode is deleted again"
    return Step(
        step_id=step_id,
        kind=KIND,
        title=f"Toggle {group_id} to {name}'s assignment",
        precondition="every member is a MEZKCC, each partition has an owner, no rebalance goes on, and the toggle "
        f"holds {before!r} still",
        verification=f"each member owns what {name}'s assignment gives it, each partition has one owner, and its "
        "committed offset moves on or has reached the end",
        deadline_s=deadline_s,
        changes=(Change(mode_path(group_id), before, after),),
        undo=f"If it still holds {after!r}, {back}.",
        affects=("stage", "toggle"),
        parameters={"group": group_id, "before": before, "after": after},
    )


class ToggleActor:
    """Writes on the condition of the znode's version; nothing when somebody else changed it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._watches: dict[str, _Watch] = {}
        self._at_first: dict[str, Standing] = {}

    def check(self, step: Step) -> Checked:
        group, before = _words(step)[:2]
        found = look(self._cluster, group)
        if self.state(step) != StepState.DONE and found.mode != before:
            return Checked(False, f"the toggle holds {found.mode!r}, not {before!r}: somebody else set it")
        if set(found.counts) != {"MEZKCC"}:
            return Checked(False, f"not every member is a MEZKCC: {counted(found.counts)}")
        if not found.is_settled:
            return Checked(False, f"the group is not settled: {found.unsettled}")
        return Checked(True, f"{found.count('MEZKCC')} MEZKCCs own all {len(found.partitions)} partitions")

    def state(self, step: Step) -> StepState:
        group, _, after = _words(step)
        return StepState.DONE if read_mode(self._cluster.zookeeper, group)[0] == after else StepState.NOT_DONE

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        group, before, after = _words(step)
        self._watches[step.step_id] = _Watch(self._cluster, group)
        return [write_mode(self._cluster.zookeeper, group, before, after)]

    def verify(self, step: Step) -> Verified:
        group, _, after = _words(step)
        found = look(self._cluster, group)
        first = self._at_first.setdefault(step.step_id, found)
        problem = not_following(found, after) or not_moving(first, found)
        if problem is not None:
            return Verified(False, problem)
        self._at_first.pop(step.step_id)
        evidence = self._pauses(step)
        name = NAMES[after]
        return Verified(
            True,
            f"{found.count('MEZKCC')} members follow {name}'s assignment of {len(found.partitions)} partitions",
            evidence,
        )

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """Raises:
        RunError: plain Kafka consumers are members, and ZooKeeper's assignment would come back.
        """
        group, before, after = _words(step)
        found = look(self._cluster, group)
        if after == KAFKA and found.count(KC):
            raise RunError(
                f"{group} has {counted(found.counts)}: replace the KCs by MEZKCCs before the toggle goes back"
            )
        return [write_mode(self._cluster.zookeeper, group, after, before)]

    def _pauses(self, step: Step) -> Mapping[str, Json]:
        watch = self._watches.pop(step.step_id, None)
        return watch.pauses() if watch is not None else {"unowned_ms": None}


def write_mode(client: KazooClient, group: str, before: str | None, after: str | None) -> ItemOutcome:
    """Write the toggle if it holds ``before``, on the condition of its version; None: no znode."""
    path = mode_path(group)
    try:
        mode, version = read_mode(client, group)
        if mode == after:
            return ItemOutcome(path, Outcome.UNCHANGED, mode, after)
        if mode != before:
            return ItemOutcome(path, Outcome.REFUSED, mode, mode, f"it holds {mode!r}, not {before!r}")
        if after is None:
            client.delete_async(path, version=version).get(timeout=ANSWER_S)
        elif before is None:
            acl = inherited(client, path, ANSWER_S)
            client.create_async(path, after.encode(), acl=acl, makepath=True).get(timeout=ANSWER_S)
        else:
            client.set_async(path, after.encode(), version=version).get(timeout=ANSWER_S)
    except AuthenticationFailed as error:
        return ItemOutcome(path, Outcome.REFUSED, before, None, str(error))
    except (BadVersionError, NodeExistsError, NoNodeError):
        return ItemOutcome(path, Outcome.REFUSED, before, None, "somebody else changed it at the same time")
    except (KazooException, client.handler.timeout_exception) as error:
        return ItemOutcome(path, Outcome.UNKNOWN, before, None, f"ZooKeeper did not answer: {error!r}")
    found = read_mode(client, group)[0]
    outcome = Outcome.CONFIRMED if found == after else Outcome.REFUSED
    return ItemOutcome(path, outcome, before, found, None if found == after else "it was overwritten at once")


def read_mode(client: KazooClient, group: str) -> tuple[str | None, int]:
    """The toggle's text as the leader has it, None without a znode, and its version.

    Raises:
        ConnectError: ZooKeeper does not answer.
    """
    try:
        client.sync_async(mode_path(group))
        data, stat = client.get_async(mode_path(group)).get(timeout=ANSWER_S)
    except NoNodeError:
        return None, -1
    except (KazooException, client.handler.timeout_exception) as error:
        raise ConnectError(f"{mode_path(group)} can't be read: ZooKeeper says {error!r}") from error
    return data.decode("utf-8", "replace"), stat.version


class _Watch:
    """Owner znodes from just before the write until it is verified, by a client of its own."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        self._client = KazooClient(cluster.profile.zookeeper_connect, **zookeeper_settings(cluster.profile))
        self._watch: OwnerWatch | None = None
        with suppress(OfframpError, KazooException, self._client.handler.timeout_exception):
            self._client.start(timeout=10)
            self._watch = OwnerWatch(self._client, group).start()

    def pauses(self) -> Mapping[str, Json]:
        """How many partitions changed hands, and the longest time in which one had no owner znode (ms)."""
        lives: dict[Partition, list[tuple[int, int | None]]] = {}
        if self._watch is not None:
            self._watch.stop()
            for life in self._watch.rows():
                if life.kind == "owner" and life.topic is not None and life.partition is not None:
                    lives.setdefault((life.topic, life.partition), []).append((life.from_ms, life.until_ms))
        self._client.stop()
        self._client.close()
        gaps = [
            after[0] - before[1]
            for each in lives.values()
            for before, after in zip(sorted(each), sorted(each)[1:])
            if before[1] is not None
        ]
        return {"partitions_that_changed_hands": len(gaps), "longest_unowned_ms": max(gaps, default=0)}


def _words(step: Step) -> tuple[str, str | None, str]:
    group, before, after = (step.parameters[name] for name in ("group", "before", "after"))
    return str(group), None if before is None else str(before), str(after)


def not_following(found: Standing, mode: str) -> str | None:
    """Why this group doesn't follow that coordination, by what its members own; None: it does."""
    if found.effective_mode != mode:
        return f"its effective mode is {found.effective_mode}, by the toggle {found.mode!r} and {counted(found.counts)}"
    if not found.is_settled:
        return f"it is not settled yet: {found.unsettled}"
    if mode == KAFKA and not found.follows_kafka:
        return "some members don't own what Kafka's coordinator assigned to them"
    if mode == ZOOKEEPER and found.assignor is None:
        return "the owner znodes are no ZooKeeper assignor's assignment"
    return None


def not_moving(first: Standing, found: Standing) -> str | None:
    """Why it can't be told that records are handed out; None: each partition with records left has a later commit than
    at the first look."""
    still = frozenset(
        pair
        for pair, now in found.positions.items()
        if pair in found.partitions and now.lag and not _moved(first, found, pair)
    )
    return f"nothing was committed since for {told(still)}, which have records left" if still else None


def _moved(first: Standing, found: Standing, pair: Partition) -> bool:
    before, now = first.positions.get(pair), found.positions[pair]
    if before is None:
        return True
    return (now.zookeeper or 0) > (before.zookeeper or 0) or (now.kafka or 0) > (before.kafka or 0)
