"""Read what matters in ZooKeeper before a migration to KRaft and isn't copied: queues, generated ids, access lists."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError

from kit.clients.multiread import READ_TIMEOUT_S, fetch_children, fetch_data, refusal
from kit.errors import ConnectError
from kit.tables.kraft import ACCESS_LIST, REFUSED, ZnodeProblem, problem_columns
from kit.tables.preflight import PreflightZnodes

SEQID, CHANGES = "/brokers/seqid", "/config/changes"
_ACLS = ("/kafka-acl", "/kafka-acl-extended/prefixed")
TOP_LEVEL = (
    "/admin", "/brokers", "/brokers/topics", "/cluster", "/config", "/config/users", "/controller", "/controller_epoch",
    "/delegation_token", "/feature", "/isr_change_notification", "/kafka-acl", "/kafka-acl-changes",
    "/kafka-acl-extended", "/latest_producer_id_block", "/log_dir_event_notification", "/migration",
)  # fmt: skip
"""The places that controllers read and write and that have an access list of their own."""
_EVERYTHING = 31


def fetch_preflight_znodes(client: KazooClient) -> PreflightZnodes:
    """One row. A znode that isn't there holds nothing and forbids nothing.

    Raises:
        ConnectError: ZooKeeper stopped answering.
    """
    problems: list[ZnodeProblem] = []
    seqid = fetch_data(client, [SEQID])
    refused = seqid.refusals.get(0)
    if refused is not None:
        problems.append(ZnodeProblem(SEQID, REFUSED, f"{SEQID}: it {refusal(refused)}"))
    changes = _names(client, [CHANGES], problems)[CHANGES]
    span = _span(client, [f"{CHANGES}/{name}" for name in sorted(changes or ())])
    return PreflightZnodes(
        read_at=datetime.now(UTC),
        seqid_version=None if refused is not None else seqid.stat("version")[0],
        n_config_changes=len(changes) if changes is not None else None,
        config_changes_s=span,
        nested_acls=tuple(sorted(_nested(client, problems))),
        restricted=tuple(_restricted(client, problems)),
        **problem_columns(problems),
    )


def _names(client: KazooClient, paths: list[str], problems: list[ZnodeProblem]) -> dict[str, list[str] | None]:
    """Children by path; None where they can't be listed."""
    listed: dict[str, list[str] | None] = {}
    for path, names in zip(paths, fetch_children(client, paths)):
        if isinstance(names, KazooException):
            problems.append(ZnodeProblem(path, REFUSED, f"{path}: it {refusal(names, 'listed')}"))
        listed[path] = None if isinstance(names, KazooException) else names or []
    return listed


def _span(client: KazooClient, paths: list[str]) -> float | None:
    """Seconds from the first of these sequential znodes to the last; None without any, or if one vanished."""
    times = fetch_data(client, [paths[0], paths[-1]]).stat("created_ms") if paths else [None]
    return None if None in times else (max(times) - min(times)) / 1000  # type: ignore[type-var,operator]


def _below(client: KazooClient, paths: Iterable[str], problems: list[ZnodeProblem]) -> list[str]:
    listed = _names(client, list(paths), problems)
    return [f"{path}/{name}" for path, names in listed.items() for name in names or ()]


def _nested(client: KazooClient, problems: list[ZnodeProblem]) -> list[str]:
    """Znodes below the znodes of resources: ``/kafka-acl/<type>/<name>/<here>``."""
    types = _below(client, _ACLS, problems)
    return _below(client, _below(client, types, problems), problems)


def _restricted(client: KazooClient, problems: list[ZnodeProblem]) -> list[str]:
    asked = [(path, client.get_acls_async(path)) for path in TOP_LEVEL]
    restricted = []
    for path, answer in asked:
        try:
            acls, _ = answer.get(timeout=READ_TIMEOUT_S)
        except NoNodeError:
            continue
        except client.handler.timeout_exception as error:
            raise ConnectError(f"ZooKeeper stopped answering: the access list of {path} did not come") from error
        except KazooException as error:
            problems.append(ZnodeProblem(path, ACCESS_LIST, f"{path}: its access list {refusal(error)}"))
            continue
        if not any(_is_open(each) for each in acls):
            restricted.append(f"{path}: {', '.join(map(_shown, acls))}")
    return restricted


def _is_open(acl: Any) -> bool:
    return bool(acl.perms == _EVERYTHING and acl.id.scheme == "world")


def _shown(acl: Any) -> str:
    """Without a digest: that is made of a password."""
    who = acl.id.id.partition(":")[0] if acl.id.scheme == "digest" else acl.id.id
    letters = "".join(letter for bit, letter in ((1, "r"), (2, "w"), (4, "c"), (8, "d"), (16, "a")) if acl.perms & bit)
    return f"{acl.id.scheme}:{who}:{letters}"
