"""Deletes persistent znodes of a group one by one, and creates them again.

ZooKeeper compares a version when it deletes, but not whether the znode is ephemeral: a member can delete an owner znode
that is not its own, and create one with the same version. So each deletion is a transaction that first creates a child
below the znode and deletes this child. ZooKeeper refuses children of ephemeral znodes (``NoChildrenForEphemerals``),
and then nothing of the transaction is done. No client sees the child.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)

from kit.clients.access import inherited, lacking
from kit.clients.cluster import Cluster
from kit.clients.multiread import READ_TIMEOUT_S, Znode, refusal
from kit.engine.model.performer import ActedRecord, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.engine.model.step import Step
from kit.errors import AuthenticationFailed, ConnectError, ReadError, RunError
from kit.moves.znodes.read import fetch_member_znodes, fetch_znodes
from kit.moves.znodes.steps import DeleteZnodesParameters
from kit.text.naming import shortened
from kit.text.quantity import quantity

PROBE = "offramp"
"""The name of the child that proves a znode to be persistent."""
_REFUSALS = {
    BadVersionError: "another client wrote this znode meanwhile",
    NoNodeError: "another client deleted this znode, or the one above it, meanwhile",
    NodeExistsError: "another client created this znode meanwhile",
    NoChildrenForEphemeralsError: "the znode is ephemeral now: a live member may hold it",
    NotEmptyError: "the znode has children",
}
_ROLLED_BACK = (RolledBackError, RuntimeInconsistency)
Found: TypeAlias = Znode | KazooException | None


class ZnodeDeleter:
    """The actor of :data:`kit.moves.znodes.steps.KIND`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def check(self, step: Step) -> Checked:
        """Return whether the group has no live member, unless the plan allows members."""
        parameters = DeleteZnodesParameters.of(step)
        count = quantity(len(step.changes), "znode")
        if parameters.beside_members:
            return Checked(True, f"{count} to delete; live members were allowed")
        now = fetch_member_znodes(self._client, parameters.group)
        if now.live or now.unread:
            found = shortened([*now.live, *(f"{path} {why}" for path, why in now.unread.items())])
            return Checked(False, f"group {parameters.group!r} has live members, or may have: {found}")
        return Checked(True, f"{count} to delete; the group has no live member")

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        """By which of the paths have a persistent znode; of ``acted``: which have none at all.

        Raises:
            ReadError: one of them can't be read.
        """
        parameters = DeleteZnodesParameters.of(step)
        paths = parameters.paths()
        if acted is not None:
            paths = {it.item: paths[it.item] for it in acted.written}
        found = self._read(paths)
        away = [each for each, znode in found.items() if (znode is None if acted else not _is_persistent(znode))]
        if len(away) == len(paths) and paths:
            return StepState.DONE
        return StepState.PARTLY if away else StepState.NOT_DONE

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Delete each znode that has the czxid and version of the plan, and report it."""
        parameters, outcomes = DeleteZnodesParameters.of(step), list[ItemOutcome]()
        for item, path in parameters.paths().items():
            outcomes.append(outcome := self._delete(item, path, parameters, report))
            report([outcome])
        return outcomes

    def verify(self, step: Step) -> Verified:
        found = self._read(DeleteZnodesParameters.of(step).paths())
        there = [each for each, znode in found.items() if _is_persistent(znode)]
        evidence = {"n_znodes": len(found), "n_deleted": len(found) - len(there)}
        if there:
            return Verified(False, f"{len(there):,} of {len(found):,} still there: {shortened(there)}", evidence)
        return Verified(True, f"{quantity(len(found), 'znode')} read back as deleted.", evidence)

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        """Always true: ``undo`` creates only what is missing."""
        return Checked(True, f"{quantity(len(acted.written), 'znode was', 'znodes were')} deleted by this run")

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """Create each znode that this run deleted, where none is by now.

        Raises:
            RunError: some were not created; the message has their number and the first ones.
        """
        parameters, outcomes = DeleteZnodesParameters.of(step), list[ItemOutcome]()
        ours = {it.item for it in acted.written}
        for item, path in reversed(parameters.paths().items()):
            if item in ours:
                outcomes.append(outcome := self._create(item, path, parameters.texts[item], report))
                report([outcome])
        left = [f"{it.item}: {it.error}" for it in outcomes if it.outcome in (Outcome.NOT_ATTEMPTED, Outcome.UNKNOWN)]
        if left:
            raise RunError(f"not created again: {len(left):,} of {quantity(len(outcomes), 'znode')}: {shortened(left)}")
        return outcomes

    def _delete(self, item: str, path: str, planned: DeleteZnodesParameters, report: Report) -> ItemOutcome:
        text, found = planned.texts[item], self._found(path)
        if isinstance(found, KazooException):
            return ItemOutcome(item, Outcome.NOT_ATTEMPTED, text, None, f"it {refusal(found)}")
        if found is None:
            return ItemOutcome(item, Outcome.UNCHANGED, text, None)
        if (found.czxid, found.version) != (planned.czxids[item], planned.versions[item]) or found.ephemeral_owner:
            return ItemOutcome(
                item, Outcome.REFUSED, text, _text(found), "the znode was deleted and created again since the plan"
            )
        report.attempt([item])
        error = self._sent(path, found.version)
        back = self._found(path)
        is_refused = isinstance(error, (AuthenticationFailed, *_REFUSALS))
        if error is None or (back is None and not is_refused):
            return ItemOutcome(item, Outcome.CONFIRMED, text, None)
        outcome = Outcome.REFUSED if is_refused else Outcome.UNKNOWN
        return ItemOutcome(item, outcome, text, _text(back), _said(error))

    def _sent(self, path: str, version: int) -> Exception | None:
        transaction, probe = self._client.transaction(), f"{path}/{PROBE}"
        needed = (("CREATE", path), ("DELETE", path), ("DELETE", path.rpartition("/")[0]))
        transaction.create(probe, b"")
        transaction.delete(probe)
        transaction.delete(path, version=version)
        try:
            answers = transaction.commit()
        except (KazooException, self._client.handler.timeout_exception) as error:
            failure: Exception = error
            return failure
        errors: list[Exception] = [
            AuthenticationFailed(lacking(*right)) if isinstance(each, NoAuthError) else each
            for right, each in zip(needed, answers, strict=True)
            if isinstance(each, Exception)
        ]
        causes = [each for each in errors if not isinstance(each, _ROLLED_BACK)] or errors
        return causes[0] if causes else None

    def _create(self, item: str, path: str, text: str, report: Report) -> ItemOutcome:
        found = self._found(path)
        if isinstance(found, KazooException):
            return ItemOutcome(item, Outcome.NOT_ATTEMPTED, text, None, f"it {refusal(found)}")
        if found is not None:
            is_as_before = _is_persistent(found) and _text(found) == text
            error = (
                None
                if is_as_before
                else ("another client has created a znode at this path, and the run does not change it")
            )
            outcome = Outcome.UNCHANGED if is_as_before else Outcome.REFUSED
            return ItemOutcome(item, outcome, text, _text(found), error)
        report.attempt([item])
        try:
            access = inherited(self._client, path, READ_TIMEOUT_S)
            self._client.create(path, text.encode(), acl=access)
        except NoAuthError:
            parent = path.rpartition("/")[0]
            return ItemOutcome(item, Outcome.NOT_ATTEMPTED, text, None, lacking("CREATE", parent))
        except (AuthenticationFailed, *_REFUSALS) as error:
            return ItemOutcome(item, Outcome.NOT_ATTEMPTED, text, None, _said(error))
        except (ConnectError, KazooException, self._client.handler.timeout_exception) as error:
            found = self._found(path)
            if not (_is_persistent(found) and _text(found) == text):
                return ItemOutcome(item, Outcome.UNKNOWN, text, _text(found), repr(error))
        return ItemOutcome(item, Outcome.CONFIRMED, text, text)

    def _found(self, path: str) -> Found:
        return fetch_znodes(self._client, [path])[path]

    def _read(self, paths: Mapping[str, str]) -> dict[str, Znode | None]:
        by_path = fetch_znodes(self._client, paths.values())
        found, unread = dict[str, Znode | None](), list[str]()
        for item, path in paths.items():
            znode = by_path[path]
            if isinstance(znode, KazooException):
                unread.append(f"{path} {refusal(znode)}")
            else:
                found[item] = znode
        if unread:
            raise ReadError(shortened(unread))
        return found

    @property
    def _client(self) -> KazooClient:
        if self._cluster.zookeeper is None:
            raise ConnectError(
                f"cluster {self._cluster.name!r} has no zookeeper_connect in offramp.toml, which this plan needs"
            )
        return self._cluster.zookeeper


def _is_persistent(found: Found) -> bool:
    return isinstance(found, Znode) and found.ephemeral_owner == 0


def _text(found: Found) -> str | None:
    return found.data.decode("utf-8", "replace") if isinstance(found, Znode) else None


def _said(error: Exception) -> str:
    return _REFUSALS.get(type(error), str(error) or repr(error))
