"""Plans that delete persistent registrations and owner znodes of groups in ZooKeeper.

A live member's znodes are ephemeral. A persistent one is left by a tool, a script or a restored copy of ZooKeeper: no
session deletes it, no member can claim its partition, and members assign partitions to a registration that reads none.
Planning only reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from kit.clients.cluster import Cluster
from kit.clients.multiread import Znode
from kit.clients.paths import group_path
from kit.clients.zookeeper_rights import CREATE, DELETE
from kit.engine.model.actor import ClusterPerformer
from kit.engine.model.plan import STOP, Plan
from kit.engine.plan_kind import PlanContext
from kit.errors import InputError, NotFound, NothingToDo, PlanError
from kit.moves.undo_rights import zookeeper_finding
from kit.moves.znodes.deleter import ZnodeDeleter
from kit.moves.znodes.read import MemberZnodes, fetch_member_znodes
from kit.moves.znodes.steps import KIND, RECIPES, DeleteZnodesParameters, delete_step
from kit.moves.znodes.subject import DELETE_ZNODES
from kit.tables.conditions import NEVER, Condition, Rule, raise_if_unsafe
from kit.text.naming import shortened
from kit.text.quantity import quantity

NO_LIVE_MEMBERS = Rule(
    "no_live_members",
    "The group has no live member. A member without an ephemeral znode is no consumer of Kafka: see that it does not"
    " run either.",
)
READABLE_ZNODES = Rule(
    "readable_znodes", "Every registration and owner znode of the group can be read.", overridden_by=NEVER
)
KEPT_TEXTS = Rule(
    "kept_texts", "Each znode holds text, which the plan keeps, so that an undo can write it.", overridden_by=NEVER
)
RULES: tuple[Rule, ...] = (
    NO_LIVE_MEMBERS,
    READABLE_ZNODES,
    KEPT_TEXTS,
)


@dataclass(frozen=True, slots=True)
class DeleteZnodesRequest:
    """The groups whose persistent znodes are deleted.

    Raises:
        InputError: none is named.
    """

    groups: tuple[str, ...]
    on_failure: str = STOP

    def __post_init__(self) -> None:
        if not self.groups:
            raise InputError("name the groups whose persistent znodes are to be deleted")

    def plan(self, context: PlanContext, made_by: str, overrides: Iterable[str]) -> Plan:
        """Raises as :func:`plan_delete_znodes`."""
        return plan_delete_znodes(context.cluster, self, made_by, context.clock.now(), overrides)


def plan_delete_znodes(
    cluster: Cluster, request: DeleteZnodesRequest, made_by: str, now: datetime, overrides: Iterable[str] = ()
) -> Plan:
    """Read the groups and plan; writes nothing.

    Raises:
        NotFound: a group has no znode.
        NothingToDo: no named group has a persistent registration or owner znode.
        UnsafePlan: a group has live members, a znode can't be read or kept, or the login lacks rights for an undo.
        PlanError: the profile names no ZooKeeper.
        ConnectError: ZooKeeper did not answer.
    """
    if cluster.zookeeper is None:
        raise PlanError(
            f"cluster {cluster.name!r} has no zookeeper_connect in offramp.toml, so offramp can't see znodes of groups"
        )
    found = {each: fetch_member_znodes(cluster.zookeeper, each) for each in sorted(set(request.groups))}
    absent = [each for each, znodes in found.items() if not znodes.is_there]
    if absent:
        raise NotFound(f"group {absent[0]!r} is not in ZooKeeper: see offramp groups")
    held = {each: znodes.persistent for each, znodes in found.items() if znodes.persistent}
    unread = {path: why for znodes in found.values() for path, why in znodes.unread.items()}
    if not held and not unread:
        raise NothingToDo(
            f"{quantity(len(found), 'group has', 'groups have')} no persistent registration and no persistent owner"
            " znode: nothing to delete"
        )
    overridden = raise_if_unsafe(
        [
            _no_live_members(found),
            READABLE_ZNODES.found(not unread, f"{len(unread)} can't be read: {_named(unread)}"),
            _kept(held),
            zookeeper_finding(cluster, _parents(held)),
        ],
        overrides,
    )
    beside = NO_LIVE_MEMBERS.check_id in overridden
    return Plan(
        kind=DELETE_ZNODES,
        cluster_id=cluster.confirmed_id(),
        targets=tuple(held),
        made_by=made_by,
        made_at=now,
        observed={},
        steps=tuple(
            delete_step(f"delete-znodes-{number}", _parameters(each, held[each], beside and bool(found[each].live)))
            for number, each in enumerate(held, 1)
        ),
        overridden=overridden,
        on_failure=request.on_failure,
    )


def performer_of(context: PlanContext) -> ClusterPerformer:
    """Executes these plans. Nothing that they observed voids them: each znode is compared before it is deleted."""
    cluster = context.cluster
    return ClusterPerformer(cluster.confirmed_id, {KIND: ZnodeDeleter(cluster)}, RECIPES, lambda plan: {})


def _no_live_members(found: Mapping[str, MemberZnodes]) -> Condition:
    live = [path for znodes in found.values() for path in znodes.live]
    count = quantity(len(live), "registration is", "registrations are")
    return NO_LIVE_MEMBERS.found(
        not live,
        f"{count} ephemeral: {shortened(live)}. Stop these members, then plan again" if live else "It has none.",
    )


def _kept(held: Mapping[str, Mapping[str, Znode]]) -> Condition:
    odd = [path for znodes in held.values() for path, znode in znodes.items() if not _is_text(znode.data)]
    return KEPT_TEXTS.found(not odd, f"{len(odd)} hold no UTF-8 text: {shortened(odd)}. Delete them in zkCli.sh")


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _parents(held: Mapping[str, Mapping[str, Znode]]) -> dict[str, int]:
    return {path.rpartition("/")[0]: CREATE | DELETE for znodes in held.values() for path in znodes}


def _parameters(group_id: str, znodes: Mapping[str, Znode], beside_members: bool) -> DeleteZnodesParameters:
    below = {path.removeprefix(f"{group_path(group_id)}/"): znode for path, znode in znodes.items()}
    return DeleteZnodesParameters(
        group=group_id,
        texts={name: znode.data.decode() for name, znode in below.items()},
        czxids={name: znode.czxid for name, znode in below.items()},
        versions={name: znode.version for name, znode in below.items()},
        beside_members=beside_members,
    )


def _named(unread: Mapping[str, str]) -> str:
    return shortened(f"{path} {why}" for path, why in sorted(unread.items()))
