"""Rights that a run or its undo needs, asked before the first write.

The rule that an undo may write what it has to write is judged while the plan is made. An undo needs rights that the run
does not need. For example, a run that commits the first offset of a partition needs READ on the group, and its undo
deletes this offset, which needs DELETE.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from shlex import quote

from kit.clients.broker_client import BrokerClient
from kit.clients.cluster import Cluster
from kit.clients.zookeeper_rights import CREATE, DELETE as DELETE_BELOW, Acls, fetch_acls, fetch_identities, missing
from kit.groups.read.rights import (
    ALTER_CONFIGS,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    READ,
    Rights,
    fetch_group_rights,
    fetch_topic_rights,
)
from kit.tables.conditions import Condition, Rule
from kit.text.naming import shortened

UNDO_RIGHTS = Rule("undo_rights", "The login has each right that an undo of the plan needs.")
RULES: tuple[Rule, ...] = (UNDO_RIGHTS,)
_NAMES = {
    READ: "READ",
    DELETE: "DELETE",
    DESCRIBE: "DESCRIBE",
    DESCRIBE_CONFIGS: "DESCRIBE_CONFIGS",
    ALTER_CONFIGS: "ALTER_CONFIGS",
}
_WITHOUT_DESCRIBE = frozenset({DESCRIBE_CONFIGS, ALTER_CONFIGS})
"""Operations that do not include DESCRIBE."""
_BELOW = {CREATE: "create", DELETE_BELOW: "delete"}
_SHOWN = 3
_MEANS = "An undo would fail there, if the same login runs it"


def kafka_finding(client: BrokerClient, groups: Mapping[str, Collection[int]], topics: Collection[str]) -> Condition:
    """``groups``: operations (``kit.groups.read.rights``) by group. Each of ``topics`` that exists needs READ.

    Raises:
        ConnectError, ReadError: the brokers did not answer, or refused.
    """
    wanted, rights = _fetched(client, groups, topics)
    unknown = [f"{kind} {name!r}: {it}" for (kind, name), it in rights.items() if isinstance(it, str)]
    lacking = list(_lacking(wanted, rights))
    if not lacking and not unknown:
        return UNDO_RIGHTS.found(True, "The login has each right that an undo needs.")
    if not lacking:
        needed = sorted({(kind, code) for (kind, _), codes in wanted.items() for code in codes})
        asked = ", ".join(f"{_NAMES[code]} on each {kind}" for kind, code in needed)
        return UNDO_RIGHTS.found(
            None, f"The rights of the login are not known: {shortened(unknown)}. An undo needs {asked}"
        )
    return UNDO_RIGHTS.found(False, f"The login does not have {_named(lacking)}. {_MEANS}. {_grant(lacking)}")


def kafka_refusal(client: BrokerClient, groups: Mapping[str, Collection[int]], topics: Collection[str]) -> str | None:
    """Return why the brokers would refuse a write now, as a sentence with the commands that grant the missing rights.

    Asked before the first write: the brokers refuse each item alone, so a write without one of its rights is half done.
    None: the login has the rights, or the brokers do not report them. Arguments and errors as of :func:`kafka_finding`.
    """
    lacking = list(_lacking(*_fetched(client, groups, topics)))
    return f"The login does not have {_named(lacking)}. {_grant(lacking)}" if lacking else None


def _fetched(
    client: BrokerClient, groups: Mapping[str, Collection[int]], topics: Collection[str]
) -> tuple[dict[tuple[str, str], Collection[int]], dict[tuple[str, str], Rights]]:
    """The operations that are needed on each group and topic, and the rights there."""
    of_topics = fetch_topic_rights(client, topics)
    wanted: dict[tuple[str, str], Collection[int]] = {("group", each): groups[each] for each in sorted(groups)}
    wanted |= {("topic", each): (READ,) for each in sorted(of_topics)}
    rights: dict[tuple[str, str], Rights] = {("topic", each): it for each, it in of_topics.items()}
    return wanted, rights | {("group", each): it for each, it in fetch_group_rights(client, groups).items()}


def zookeeper_finding(cluster: Cluster, needed: Mapping[str, int]) -> Condition:
    """``needed``: rights to create and delete below a znode, by its path.

    A znode that does not exist yet gets the access list of the nearest existing znode above, which counts then.

    Raises:
        ConnectError: ZooKeeper did not answer.
    """
    if not needed:
        return UNDO_RIGHTS.found(True, "No right is needed.")
    who = fetch_identities(cluster.zookeeper, cluster.profile.security.zookeeper.username)
    acls = fetch_acls(cluster.zookeeper, sorted(needed))
    unknown = [f"{path}: {acl}" for path, acl in acls.items() if isinstance(acl, str)]
    if unknown:
        return UNDO_RIGHTS.found(
            None,
            f"The rights of the login are not known: {shortened(unknown)}. An undo creates or deletes znodes there",
        )
    lacking = list(_lacking_below(needed, acls, who))
    if not lacking:
        return UNDO_RIGHTS.found(True, "The login has each right that an undo needs.")
    return UNDO_RIGHTS.found(
        False,
        f"The access lists do not let the login {shortened(lacking)}. {_MEANS}. Grant"
        f" {'this right' if len(lacking) == 1 else 'these rights'} there",
    )


def _lacking(
    wanted: Mapping[tuple[str, str], Collection[int]], rights: Mapping[tuple[str, str], Rights]
) -> Iterator[tuple[str, str, int]]:
    for (kind, name), codes in wanted.items():
        has = rights[kind, name]
        if not has and _WITHOUT_DESCRIBE.issuperset(codes):
            yield kind, name, DESCRIBE  # Without it the brokers report no right at all.
        elif not isinstance(has, str):
            yield from ((kind, name, code) for code in sorted(codes) if code not in has)


def _lacking_below(needed: Mapping[str, int], acls: Acls, who: set[tuple[str, str]]) -> Iterator[str]:
    for path, wanted in needed.items():
        acl = acls[path]
        lacks = 0 if isinstance(acl, str) else missing(acl, who, wanted)
        yield from (f"{verb} below {path}" for right, verb in _BELOW.items() if lacks & right)


def _named(lacking: Collection[tuple[str, str, int]]) -> str:
    return shortened([f"{_NAMES[code]} on {kind} {name!r}" for kind, name, code in lacking])


def _grant(lacking: Collection[tuple[str, str, int]]) -> str:
    """One command for each kind and operation, with the first names."""
    named: dict[tuple[str, int], list[str]] = {}
    for kind, name, code in lacking:
        named.setdefault((kind, code), []).append(name)
    return f"Grant {'it' if len(lacking) == 1 else 'them'}: " + "; ".join(
        f"kafka-acls --add --allow-principal User:LOGIN --operation {_NAMES[code].title().replace('_', '')}"
        + "".join(f" --{kind} {quote(each)}" for each in names[:_SHOWN])
        + (f" (and {len(names) - _SHOWN:,} more)" if len(names) > _SHOWN else "")
        for (kind, code), names in named.items()
    )
