"""Check whether offramp's session of ZooKeeper may write what a rollback writes, and sees all that it rests on.

Asked before every plan, also before those that write nothing there: a rollback that is refused only when it is needed
is useless. Rights are reported from access lists; nothing is written to find them out.
"""

from __future__ import annotations

from kazoo.client import KazooClient

from kit.clients.access import inherited
from kit.clients.cluster import Cluster
from kit.clients.paths import CONSUMERS
from kit.clients.zookeeper_rights import (
    CREATE,
    DELETE,
    READ,
    WRITE,
    Identity,
    fetch_acl,
    fetch_identities,
    hides_own_digest,
    missing,
)
from kit.engine.lock import ANSWER_S, CLUSTER_LOCKS, CLUSTER_RUNS, OFFRAMP, escaped
from kit.kraft.metadata_log.secrets import is_secret_config
from kit.kraft.move.cluster_state import SHOWN, zookeeper_of
from kit.kraft.move.steps import MIGRATION_ZNODE, target_of
from kit.kraft.read.control_znodes import CONTROLLER, EPOCH
from kit.kraft.read.metadata_znodes import fetch_metadata_znodes
from kit.tables.kraft import REFUSED
from kit.text.naming import shortened
from kit.text.visible import toml_key

_WORDS = {READ: "read {}", WRITE: "write {}", CREATE: "create below {}", DELETE: "delete below {}"}
_BROKER = 4


def writes_problem(cluster: Cluster) -> str | None:
    """Return which part of the one transaction back, or of the lock, ZooKeeper would refuse. Raises ConnectError,
    AuthenticationFailed.
    """
    client = zookeeper_of(cluster)
    who = fetch_identities(client, cluster.profile.security.zookeeper.username)
    wanted = _wanted(client, target_of(cluster.cluster_id))
    lists = {path: fetch_acl(client, path) or () for path in wanted}
    lacking = [each for path in wanted for each in _lacking(path, missing(lists[path], who, wanted[path]))]
    above = CLUSTER_LOCKS if fetch_acl(client, OFFRAMP) is not None else CONSUMERS
    copied = inherited(client, f"{above}/any", ANSWER_S)
    if missing(copied, who, WRITE | CREATE | DELETE):
        lacking.append(f"use a lock whose znode inherits the access list of {above}")
    if not lacking:
        return None
    problem = (
        f"offramp's session of ZooKeeper ({', '.join(sorted(map(_shown, who)))}) may not {', '.join(lacking)}: give it"
        f" the brokers' own login, [clusters.{toml_key(cluster.name)}.security.zookeeper]"
    )
    hidden = sorted(path for path, acl in lists.items() if hides_own_digest(acl, who))
    if not hidden:
        return problem
    return f"{problem}. Its digest in the access list of {', '.join(hidden)} is hidden from a login without ADMIN there"


def _wanted(client: KazooClient, target: str) -> dict[str, int]:
    """Rights by znode. If one is missing, its nearest above has to let it be made."""
    mark = f"{CLUSTER_RUNS}/{escaped(target)}"
    own = {MIGRATION_ZNODE: READ, CONTROLLER: READ, EPOCH: READ | WRITE, CLUSTER_LOCKS: CREATE | DELETE, mark: WRITE}
    wanted = {"/": DELETE}
    for path, rights in own.items():
        is_there = fetch_acl(client, path) is not None
        if not is_there:
            while fetch_acl(client, path) is None and path != "/":
                path = path.rpartition("/")[0] or "/"
        wanted[path] = wanted.get(path, 0) | (rights if is_there else CREATE)
    return wanted


def _lacking(path: str, rights: int) -> list[str]:
    return [words.format(path) for right, words in _WORDS.items() if rights & right]


def _shown(identity: Identity) -> str:
    """Without a digest: that is made of a password."""
    return f"{identity[0]}:{identity[1].partition(':')[0]}" if identity[0] == "digest" else ":".join(identity)


def hidden_problem(cluster: Cluster) -> str | None:
    """Return which of Kafka's znodes this session may not read: what is not seen is neither compared nor exceeded.
    Raises ConnectError.
    """
    read = fetch_metadata_znodes(zookeeper_of(cluster), lambda key: is_secret_config(_BROKER, key))
    errors = {each.sentence for each in read.control.problem_rows if each.kind == REFUSED}
    for table in (read.partitions, read.items):
        errors.update(table.filter(table["is_refused"])["error"].to_pylist())
    return f"offramp's ZooKeeper login may not read: {shortened(sorted(errors), SHOWN, '; ')}" if errors else None
