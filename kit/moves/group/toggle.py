"""The toggle: one conditional write of ``migration/mode``, judged by what each member then owns and commits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, KazooException, NoAuthError, NodeExistsError, NoNodeError

from kit.clients.access import inherited, lacking
from kit.clients.cluster import Cluster, zookeeper_settings
from kit.clients.paths import group_path
from kit.clients.zookeeper_rights import DELETE
from kit.engine.lock import ANSWER_S
from kit.engine.model.parameters import StepParameters
from kit.engine.model.performer import ActedRecord, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.engine.model.step import Change, Step
from kit.engine.model.values import Json
from kit.errors import AuthenticationFailed, ConnectError, OfframpError
from kit.groups.read.owner_history import LOOK_S, OwnerWatch
from kit.moves.group.group_state import (
    MEZKCC,
    OZKCC,
    GroupState,
    Partition,
    counted,
    describe_toggle,
    listed,
    read_group_state,
)
from kit.moves.group.rules import SETTLE_S
from kit.moves.undo_rights import zookeeper_finding
from kit.tables.conditions import Condition
from kit.tables.groups import KAFKA, STORE_NAMES, ZOOKEEPER, ZnodeLife
from kit.text.quantity import quantity

KIND = "toggle"


def group_of_mode(path: str) -> str:
    """The group of a path that :func:`mode_path` made."""
    return path.split("/")[2]


def mode_path(group_id: str) -> str:
    """KIP-125, ZooKeeper State. Raises InputError for a group of which ZooKeeper can hold nothing."""
    return f"{group_path(group_id)}/migration/mode"


@dataclass(frozen=True, slots=True)
class ToggleParameters(StepParameters):
    """Set the coordination of one group to ``after``, ``kafka`` or ``zookeeper``.

    ``before`` and ``version`` are of the znode as it was seen; None: there was none.
    """

    group: str
    before: str | None
    version: int | None
    after: str
    deadline_s: float = SETTLE_S


def toggle_step(step_id: str, parameters: ToggleParameters) -> Step:
    name = STORE_NAMES[parameters.after]
    back = (
        f"the znode is set to {parameters.before!r} again"
        if parameters.before is not None
        else "the znode is deleted again"
    )
    return Step(
        step_id=step_id,
        kind=KIND,
        title=f"Toggle {parameters.group} to {name}'s assignment",
        precondition="every member is a MEZKCC, each partition has an owner, no rebalance is in progress, and "
        f"{describe_toggle(parameters.before)}{of_version(parameters.version)}, as planned",
        verification=f"each member owns what {name}'s assignment gives it, each partition has one owner, and its "
        "committed offset moves or has reached the end",
        deadline_s=parameters.deadline_s,
        changes=(Change(mode_path(parameters.group), parameters.before, parameters.after),),
        undo=f"If the znode is as this step left it, {back}.",
        affects=("stage", "toggle"),
        parameters=parameters.to_json(),
    )


def of_version(version: int | None) -> str:
    return "" if version is None else f" (version {version})"


class ToggleActor:
    """Writes on the condition of the znode's version; nothing when another operator or tool changed it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._watches: dict[str, _Watch] = {}
        self._at_first: dict[str, GroupState] = {}

    def check(self, step: Step) -> Checked:
        parameters = ToggleParameters.of(step)
        state, toggle = (
            read_group_state(self._cluster, parameters.group),
            read_toggle(self._cluster.zookeeper, parameters.group),
        )
        planned = Toggle(parameters.before, parameters.version)
        if toggle.mode != parameters.after and (toggle.mode, toggle.version) != (planned.mode, planned.version):
            return Checked(False, f"the toggle holds {toggle}, not {planned}: another operator or tool set it")
        if set(state.counts) != {"MEZKCC"}:
            return Checked(False, f"not every member is a MEZKCC: {counted(state.counts)}")
        if not state.is_settled:
            return Checked(False, f"the group is not settled: {state.unsettled}")
        return Checked(True, f"{counted(state.counts)}; all {quantity(len(state.partitions), 'partition')} owned")

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        parameters = ToggleParameters.of(step)
        toggle = read_toggle(self._cluster.zookeeper, parameters.group)
        is_there = toggle.mode == parameters.after if acted is None else any(map(toggle.was_left_by, acted.written))
        return StepState.DONE if is_there else StepState.NOT_DONE

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        parameters = ToggleParameters.of(step)
        self.close_watches()
        self._watches[step.step_id] = _Watch(self._cluster, parameters.group)
        planned = Toggle(parameters.before, parameters.version)
        return [set_toggle(self._cluster.zookeeper, planned, parameters.group, parameters.after, report)]

    def verify(self, step: Step) -> Verified:
        parameters = ToggleParameters.of(step)
        state = read_group_state(self._cluster, parameters.group)
        first = self._at_first.setdefault(step.step_id, state)
        problem = not_following(state, parameters.after) or not_moving(first, state)
        if problem is not None:
            return Verified(False, problem)
        self._at_first.pop(step.step_id)
        evidence = self._handovers(step)
        assignment = f"{STORE_NAMES[parameters.after]}'s assignment of {quantity(len(state.partitions), 'partition')}"
        who = quantity(state.count("MEZKCC"), "member follows", "members follow")
        return Verified(True, f"{who} {assignment}", evidence)

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        """Return whether the znode is as this run left it, and no two members would read one partition once it is set
        back.
        """
        parameters = ToggleParameters.of(step)
        toggle = read_toggle(self._cluster.zookeeper, parameters.group)
        if not any(map(toggle.was_left_by, acted.written)) and toggle.mode != parameters.before:
            return Checked(
                False,
                f"the toggle of {parameters.group} holds {toggle}: another operator or tool set it since this run did."
                " Plan the rollback from the group's present stage: offramp plan group",
            )
        problem = not_ready_for_back(read_group_state(self._cluster, parameters.group), parameters.after)
        return Checked(problem is None, problem or "the toggle is as this run left it")

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        parameters, client = ToggleParameters.of(step), self._cluster.zookeeper
        return [unset_toggle(client, outcome, parameters.group, parameters.before, report) for outcome in acted.written]

    def close_watches(self) -> None:
        """Each is a connection of its own, of which a server allows 60 per address."""
        while self._watches:
            self._watches.popitem()[1].close()

    def _handovers(self, step: Step) -> Mapping[str, Json]:
        watch = self._watches.pop(step.step_id, None)
        if watch is None:
            return NOT_WATCHED
        watch.close()
        return watch.handovers()


@dataclass(frozen=True, slots=True)
class Toggle:
    """The znode ``migration/mode`` of a group; all None: there is none. ``mzxid`` is its last write's alone."""

    mode: str | None
    version: int | None
    mzxid: int | None = None

    def __str__(self) -> str:
        return f"{self.mode!r}{of_version(self.version)}"

    def was_left_by(self, written: ItemOutcome) -> bool:
        """Return whether a run wrote this, and no client has written since.

        If the answer of a write was lost, only the version is known that it would have made.
        """
        details = written.details if isinstance(written.details, Mapping) else {}
        if written.outcome == Outcome.CONFIRMED:
            return self.mzxid is not None and self.mzxid == details.get("mzxid")
        return self.mode is not None and (self.mode, self.version) == (details.get("mode"), details.get("version"))


def set_toggle(client: KazooClient, planned: Toggle, group: str, after: str, report: Report) -> ItemOutcome:
    """Write the toggle if it is as it was planned, on the condition of its version.

    Raises:
        ConnectError: ZooKeeper does not answer.
        Stopped, LockLost, ApprovalError: it may not be written now.
    """
    path, toggle = mode_path(group), read_toggle(client, group)
    if toggle.mode == after:
        return ItemOutcome(path, Outcome.UNCHANGED, toggle.mode, after)
    if (toggle.mode, toggle.version) != (planned.mode, planned.version):
        return ItemOutcome(path, Outcome.REFUSED, toggle.mode, toggle.mode, f"the toggle holds {toggle}, not {planned}")
    left: dict[str, Json] = {"mode": after, "version": 0 if planned.version is None else planned.version + 1}
    report.attempt([path], left)
    return _write(client, group, toggle, after, left)


def unset_toggle(
    client: KazooClient, written: ItemOutcome, group: str, before: str | None, report: Report
) -> ItemOutcome:
    """Put the toggle back to ``before`` (None: no znode) if it is as this run left it. Raises as :func:`set_toggle`."""
    path, toggle = mode_path(group), read_toggle(client, group)
    if toggle.was_left_by(written):
        report.attempt([path])
        return _write(client, group, toggle, before, {})
    if toggle.mode == before:
        return ItemOutcome(path, Outcome.UNCHANGED, toggle.mode, before)
    why = f"the toggle holds {toggle}, which this run did not write: another operator or tool set it since"
    return ItemOutcome(path, Outcome.REFUSED, toggle.mode, toggle.mode, why)


def toggle_rights(cluster: Cluster, toggles: Iterable[tuple[str, str | None]]) -> Condition:
    """Return whether an undo may delete the toggles that a run creates: ``toggles`` are groups with their present mode.

    Raises:
        ConnectError: ZooKeeper does not answer.
    """
    created = [group for group, mode in toggles if mode is None]
    return zookeeper_finding(cluster, {mode_path(group).rpartition("/")[0]: DELETE for group in created})


def read_toggle(client: KazooClient, group: str) -> Toggle:
    """The toggle as the leader has it now.

    Raises:
        ConnectError: ZooKeeper does not answer, or refuses the login (AuthenticationFailed).
    """
    try:
        client.sync_async(mode_path(group))
        data, stat = client.get_async(mode_path(group)).get(timeout=ANSWER_S)
    except NoNodeError:
        return Toggle(None, None)
    except NoAuthError as error:
        path = mode_path(group)
        raise AuthenticationFailed(f"{path} can't be read: {lacking('READ', path)}") from error
    except (KazooException, client.handler.timeout_exception) as error:
        raise ConnectError(f"{mode_path(group)} can't be read: ZooKeeper says {error!r}") from error
    return Toggle(data.decode("utf-8", "replace"), stat.version, stat.mzxid)


def _write(client: KazooClient, group: str, toggle: Toggle, after: str | None, left: Mapping[str, Json]) -> ItemOutcome:
    path, before = mode_path(group), toggle.mode
    parent = path.rpartition("/")[0]
    try:
        if after is None:
            client.delete_async(path, version=toggle.version).get(timeout=ANSWER_S)
        elif toggle.version is None:
            acl = inherited(client, path, ANSWER_S)
            client.create_async(path, after.encode(), acl=acl, makepath=True).get(timeout=ANSWER_S)
        else:
            client.set_async(path, after.encode(), version=toggle.version).get(timeout=ANSWER_S)
    except AuthenticationFailed as error:
        return ItemOutcome(path, Outcome.REFUSED, before, None, str(error))
    except NoAuthError:
        is_set = after is not None and toggle.version is not None
        needed = ("WRITE", path) if is_set else ("DELETE" if after is None else "CREATE", parent)
        return ItemOutcome(path, Outcome.REFUSED, before, None, lacking(*needed))
    except (BadVersionError, NodeExistsError, NoNodeError):
        return ItemOutcome(
            path, Outcome.REFUSED, before, None, "another operator or tool changed the toggle at the same time"
        )
    except (ConnectError, KazooException, client.handler.timeout_exception) as error:
        return ItemOutcome(path, Outcome.UNKNOWN, before, None, f"ZooKeeper did not answer: {error!r}", left)
    try:
        back = read_toggle(client, group)
    except ConnectError as error:
        return ItemOutcome(path, Outcome.UNKNOWN, before, None, str(error), left)
    if back.mode == after and back.version == (left.get("version") if left else back.version):
        return ItemOutcome(path, Outcome.CONFIRMED, before, after, details={**left, "mzxid": back.mzxid})
    why = f"the toggle was written, but another operator or tool immediately set it to {back}"
    return ItemOutcome(path, Outcome.REFUSED, before, back.mode, why)


class _Watch:
    """Owner znodes from just before the write until it is verified, by a client of its own."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        self._client = KazooClient(cluster.profile.zookeeper_connect, **zookeeper_settings(cluster.profile))
        self._watch: OwnerWatch | None = None
        try:
            with suppress(OfframpError, KazooException, self._client.handler.timeout_exception):
                self._client.start(timeout=10)
                self._watch = OwnerWatch(self._client, group).start()
        except BaseException:
            self.close()
            raise

    def handovers(self) -> Mapping[str, Json]:
        """Return the changes of owners that were seen until ``close``."""
        return handovers_of(self._watch.rows()) if self._watch is not None else NOT_WATCHED

    def close(self) -> None:
        if self._watch is not None:
            self._watch.stop()
        self._client.stop()
        self._client.close()


NOT_WATCHED: Mapping[str, Json] = {
    "partitions_that_changed_hands": None,
    "longest_unowned_ms": None,
    "owners_watched": None,
}


def handovers_of(rows: Sequence[ZnodeLife]) -> Mapping[str, Json]:
    """Return the changes of owners in a watch of a group's znodes.

    partitions_that_changed_hands: whose owner znode was made again. longest_unowned_ms: from when a deletion was seen,
    which is a little after it, to the creation of the next one; 0: the next one was there by then. owners_watched:
    ``each change``, ``every 200 ms`` (by a ZooKeeper older than 3.6), or ``with interruptions``.
    """
    lives: dict[Partition, list[tuple[int, int | None]]] = {}
    for life in rows:
        if life.kind == "owner" and life.topic is not None and life.partition is not None:
            lives.setdefault((life.topic, life.partition), []).append((life.from_ms, life.until_ms))
    gaps = {
        place: [after[0] - before[1] for before, after in pairwise(sorted(each)) if before[1] is not None]
        for place, each in lives.items()
    }
    longest = max((gap for each in gaps.values() for gap in each), default=None)
    watches = [life.ended_by for life in rows if life.kind == "watch"]
    how = f"every {LOOK_S * 1000:.0f} ms" if not watches else "each change"
    if len(watches) > 1 or "missed" in watches:
        how = "with interruptions"
    changed = sum(bool(each) for each in gaps.values())
    return {"partitions_that_changed_hands": changed, "longest_unowned_ms": longest, "owners_watched": how}


def not_ready_for_back(state: GroupState, after: str) -> str | None:
    """Return why the toggle of this group may not go back from ``after``: two members would read one partition."""
    allowed = {MEZKCC, OZKCC} if after == KAFKA else {MEZKCC}
    if set(state.counts) <= allowed:
        return None
    return f"{state.group_id} has {counted(state.counts)}: all of them must be MEZKCCs before the toggle goes back"


def not_following(state: GroupState, mode: str) -> str | None:
    """Return why this group doesn't follow that coordination, by what its members own; None: it does."""
    if state.effective_mode != mode:
        holds = f"{describe_toggle(state.mode)}, and there are {counted(state.counts)}"
        return f"the effective mode is {state.effective_mode}: {holds}"
    if not state.is_settled:
        return f"the group is not settled yet: {state.unsettled}"
    if mode == KAFKA and not state.follows_kafka:
        return "some members don't own what Kafka's coordinator assigned to them"
    if mode == ZOOKEEPER and state.assignor is None:
        return "the owner znodes match no ZooKeeper assignor"
    return None


def not_moving(first: GroupState, state: GroupState) -> str | None:
    """Return why it is unknown whether records are delivered.

    None: each partition with records left has a later commit than at the first observation.
    """
    still = frozenset(
        pair
        for pair, now in state.offsets.items()
        if pair in state.partitions and now.lag and not _moved(first, state, pair)
    )
    return f"no offset was committed since for {listed(still)}, which have records left" if still else None


def _moved(first: GroupState, state: GroupState, pair: Partition) -> bool:
    before, now = first.offsets.get(pair), state.offsets[pair]
    if before is None:
        return True
    return (now.zookeeper or 0) > (before.zookeeper or 0) or (now.kafka or 0) > (before.kafka or 0)
