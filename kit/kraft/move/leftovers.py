"""List what stays in ZooKeeper when a move is finalised: how much of which kind, which clients read it still, who may
delete it.

offramp deletes none of it. Once the log reports state 3 no node of the cluster reads or writes ZooKeeper; old consumers
may, and offramp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from kit.clients.multiread import catch_up, fetch_children
from kit.clients.paths import CONSUMERS
from kit.engine.lock import OFFRAMP
from kit.engine.model.values import Json
from kit.text.quantity import quantity

ZOOKEEPERS_OPERATOR = "the operator of ZooKeeper, together with all znodes of Kafka"
_NOBODY = "no process of Kafka: brokers and controllers in KRaft mode do not read ZooKeeper"


@dataclass(frozen=True, slots=True)
class Kind:
    """``one``: the name of one; ``above``: znodes whose children count; ``alone``: that count themselves."""

    name: str
    one: str
    above: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    read_by: str = _NOBODY
    may_delete: str = ZOOKEEPERS_OPERATOR


KINDS = (
    Kind(
        "topics",
        "topic",
        ("/brokers/topics",),
        read_by="clients that search for topics in ZooKeeper; no process of Kafka",
    ),
    Kind(
        "entities with settings, quotas or SCRAM credentials",
        "entity with settings, quotas or SCRAM credentials",
        tuple(f"/config/{kind}" for kind in ("topics", "brokers", "users", "clients", "ips")),
    ),
    Kind(
        "resources with ACLs",
        "resource with ACLs",
        tuple(
            f"{top}/{kind}"
            for top in ("/kafka-acl", "/kafka-acl-extended/prefixed")
            for kind in ("Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User")
        ),
    ),
    Kind("delegation tokens", "delegation token", ("/delegation_token/tokens",)),
    Kind(
        "znodes of Kafka's control",
        "znode of Kafka's control",
        alone=("/controller", "/controller_epoch", "/migration", "/cluster", "/feature", "/latest_producer_id_block"),
    ),
    Kind(
        "znodes of administration and notifications",
        "znode of administration and notifications",
        alone=("/admin", "/isr_change_notification", "/log_dir_event_notification"),
    ),
    Kind(
        "groups of old consumers",
        "group of old consumers",
        (CONSUMERS,),
        read_by="old consumers, and operators who move the groups' offsets",
        may_delete="the owner of the group, after the group is moved or given up",
    ),
    Kind(
        "znodes of offramp",
        "znode of offramp",
        (OFFRAMP,),
        read_by="offramp: locks, and marks of runs",
        may_delete="the operator of offramp, when no run is in progress and no group remains to be moved",
    ),
)
_KAFKAS = frozenset(
    f"/{path.split('/')[1]}" for kind in KINDS for path in (*kind.above, *kind.alone)
) | {"/kafka-acl-changes", "/kafka-acl-extended-changes", "/zookeeper"}  # fmt: skip
OTHERS = Kind(
    "znodes that are not Kafka's",
    "znode that is not Kafka's",
    read_by="unknown",
    may_delete="the client that created them, which offramp does not know",
)


@dataclass(frozen=True, slots=True)
class Leftover:
    """One kind; ``count`` None: it could not be read."""

    kind: str
    one: str
    count: int | None
    read_by: str
    may_delete: str

    @property
    def sentence(self) -> str:
        unknown = f"an unknown number of {self.kind}"
        stays = unknown if self.count is None else quantity(self.count, self.one, self.kind)
        return f"{stays}. Read by {self.read_by}. May be deleted by {self.may_delete}"

    def to_json(self) -> dict[str, Json]:
        return {"kind": self.kind, "count": self.count, "read_by": self.read_by, "may_delete": self.may_delete}


def leftovers(client: KazooClient) -> list[Leftover]:
    """Every kind of which there is something, or of which it is not known. Raises ConnectError."""
    catch_up(client)
    rows = (Leftover(kind.name, kind.one, count, kind.read_by, kind.may_delete) for kind, count in _counted(client))
    return [each for each in rows if each.count != 0]


def _counted(client: KazooClient) -> Iterator[tuple[Kind, int | None]]:
    paths = list(dict.fromkeys(path for kind in KINDS for path in (*kind.above, *kind.alone)))
    (tops, *children) = fetch_children(client, ["/", *paths])
    names = dict(zip(paths, children))
    for kind in KINDS:
        yield kind, _number(kind, names)
    yield OTHERS, None if isinstance(tops, KazooException) else len({f"/{each}" for each in tops or ()} - _KAFKAS)


def _number(kind: Kind, names: Mapping[str, Sequence[str] | KazooException | None]) -> int | None:
    """A znode that is not there has no children: None."""
    total = 0
    for path in (*kind.above, *kind.alone):
        children = names[path]
        if isinstance(children, KazooException):
            return None
        if children is not None:
            total += len(children) if path in kind.above else 1
    return total
