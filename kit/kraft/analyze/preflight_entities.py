"""Checks of brokers' settings, quotas, SCRAM users and ACLs in ZooKeeper: one bad value aborts the whole copy."""

from __future__ import annotations

import json
from collections.abc import Iterator

import polars as pl

from kit.kraft.analyze.preflight_checks import CONTROLLERS, PreflightFacts, Problem, check, unread, unread_znode
from kit.kraft.read.metadata_values import is_address
from kit.tables.conditions import BLOCK, WARN
from kit.tables.kraft import REFUSED

_QUOTAS = frozenset(
    (
        "producer_byte_rate",
        "consumer_byte_rate",
        "request_percentage",
        "controller_mutation_rate",
        "connection_creation_rate",
    )
)
_LEAST_ITERATIONS = 4096
_RESOURCES = frozenset(("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"))
_OPERATIONS = frozenset(
    (
        "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS",
    )
)  # fmt: skip
_ENDS = "A broker that starts while this value exists can end with an error."
_ABORTS = f"The copy to KRaft aborts at this value, and one controller after another ends with an error. {_ENDS}"


def broken_broker_configs(facts: PreflightFacts) -> Iterator[Problem]:
    """Z07: ``/config/brokers`` holds ids or ``<default>``, and maps of settings."""
    for entity, _, _, error, is_refused in _items(facts, "config", "brokers/"):
        if error is not None:
            again = "Set the broker's setting again with kafka-configs, or delete its znode."
            sentence = f"{error}. The copy to KRaft loses this value or aborts. {_ENDS}"
            wrong = Problem(f"/config/{entity}", sentence, again)
            yield unread(wrong.subject, f"{error}.", is_refused=True) if is_refused else wrong


def broken_quotas(facts: PreflightFacts) -> Iterator[Problem]:
    """Z08: a quota that is no number, of a kind that 3.9 doesn't know, or of a host that brokers can't resolve."""
    for entity, item, _, error, is_refused in _items(facts, "quota"):
        if error is not None:
            again = "Set the quota again with kafka-configs, or delete its znode."
            yield _bad(f"/config/{entity}", error, again, is_refused)
        elif item not in _QUOTAS:
            sentence = f"/config/{entity} has the quota {item}, which Kafka 3.9 does not know"
            yield _bad(f"/config/{entity}", sentence, f"Remove the key {item} from the znode.")
        elif entity.startswith("ips/") and not is_address(entity.removeprefix("ips/")):
            sentence = f"/config/{entity} is of a host name. A broker that starts and can't resolve the name ends."
            remedy = "Set a quota for the IP address, and delete the znode of the host name."
            yield Problem(f"/config/{entity}", sentence, remedy, is_met=None, severity=WARN)


def broken_credentials(facts: PreflightFacts) -> Iterator[Problem]:
    """Z09: a SCRAM credential that can't be parsed; with few iterations it works, and can't be set again so."""
    for user, item, value, error, is_refused in _items(facts, "scram"):
        iterations = int((value or "").partition("=")[2] or _LEAST_ITERATIONS)
        if error is not None:
            again = "Set the user's password again with kafka-configs, or delete the credential."
            yield _bad(f"user {user}", error, again, is_refused)
        elif iterations < _LEAST_ITERATIONS:
            yield Problem(
                f"user {user}",
                f"The {item} credential of user {user} has {iterations} iterations. It is copied, but in KRaft mode "
                f"no client can set a credential with fewer than {_LEAST_ITERATIONS} iterations.",
                "Set the user's password again, with more iterations.",
                severity=WARN,
            )


def broken_acls(facts: PreflightFacts) -> Iterator[Problem]:
    """Z10: an ACL that aborts the copy (brokers don't start with it either), or is lost in silence."""
    rewrite = "Remove the ACL from the znode, and add it again with kafka-acls."
    for entity, rule, _, error, is_refused in _items(facts, "acl"):
        if error is not None:
            yield _bad(f"ACL of {entity}", error, rewrite, is_refused)
            continue
        kind, _, rest = entity.partition(":")
        pattern, _, name = rest.partition(":")
        if kind not in _RESOURCES:
            sentence = f"Kafka 3.9 does not know the resource type {kind} of {entity}, so the copy loses its ACLs"
            yield Problem(f"ACL of {entity}", f"{sentence}.", f"Note the ACLs of {entity}. Then delete their znode.")
        elif pattern == "PREFIXED" and name == "*":
            sentence = f"{entity} uses the wildcard * as a prefix, which Kafka 3.9 refuses"
            yield _bad(
                f"ACL of {entity}", sentence, "Add the ACL again as a literal pattern, and remove the prefixed one."
            )
        yield from _odd_rule(entity, rule)
    if facts.znodes is None:
        yield unread("/kafka-acl", "Whether an ACL znode lies below another ACL znode could not be read.")
        return
    hidden = (each for each in facts.znodes.problem_rows if each.kind == REFUSED)
    yield from (unread_znode(each) for each in hidden if each.path.startswith("/kafka-acl"))
    for path in facts.znodes.nested_acls:
        yield Problem(
            path,
            f"{path} lies below the znode of another resource. The copy loses this ACL, and dual write never begins.",
            (
                "The resource's name contains a slash. Note the resource's ACLs, remove them, and add them again "
                "in KRaft mode."
            ),
        )


def _odd_rule(entity: str, rule: str) -> Iterator[Problem]:
    operation, permission = json.loads(rule)[-2:]
    if operation not in _OPERATIONS or permission not in ("ALLOW", "DENY"):
        sentence = f"An ACL of {entity} has {permission} {operation}, which Kafka 3.9 does not know."
        yield Problem(f"ACL of {entity}", sentence, "Remove this ACL from the znode.")


def _items(
    facts: PreflightFacts, kind: str, prefix: str = ""
) -> Iterator[tuple[str, str, str | None, str | None, bool | None]]:
    """Entity, item, value, error and whether that is a refusal; an empty entity is of all of them."""
    assert facts.items is not None
    rows = facts.items.filter(
        pl.col("kind") == kind, pl.col("entity").str.starts_with(prefix) | (pl.col("entity") == "")
    )
    return rows.select("entity", "item", "value", "error", "is_refused").sort("entity", "item").iter_rows()


def _bad(subject: str, sentence: str, remedy: str, is_refused: bool | None = False) -> Problem:
    if is_refused:
        return unread(subject, f"{sentence}.", is_refused=True)
    return Problem(subject, f"{sentence}. {_ABORTS}", remedy)


_READ = ("items",)
CHECKS = (
    check(
        "Z07",
        BLOCK,
        CONTROLLERS,
        "Every broker's dynamic settings can be copied.",
        "ZooKeeper",
        broken_broker_configs,
        _READ,
    ),
    check("Z08", BLOCK, CONTROLLERS, "Every quota is a number of a known kind.", "ZooKeeper", broken_quotas, _READ),
    check("Z09", BLOCK, CONTROLLERS, "Every SCRAM credential can be copied.", "ZooKeeper", broken_credentials, _READ),
    check("Z10", BLOCK, CONTROLLERS, "Every ACL can be copied.", "ZooKeeper", broken_acls, _READ),
)
