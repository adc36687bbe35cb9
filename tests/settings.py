"""Every key of ``offramp.toml`` for the docs, from the models that read it; a key that is not explained here fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from kit.profile import Profile, SecretReference

EXPLAINED = {
    "bootstrap_servers": "brokers to ask first, `host:port`, commas between",
    "zookeeper_connect": "ZooKeeper's servers, a chroot behind the last; without it the brokers alone are read",
    "cluster_id": "the cluster that must answer; another one is refused",
    "spark.master": "where Spark runs: `local[*]` is this machine",
    "spark.remote": "a Spark Connect URL; wins over `master`",
    "spark.conf": "settings handed to Spark as they are",
    "security.kafka.ca_file": "authorities that sign the brokers' certificates",
    "security.kafka.certificate_file": "our own certificate, for mutual TLS",
    "security.kafka.key_file": "its key",
    "security.kafka.key_password": "the key's password",
    "security.kafka.protocol": "as the brokers' listener has it",
    "security.kafka.mechanism": "of SASL",
    "security.kafka.username": "of SASL",
    "security.kafka.password": "of SASL",
    "security.zookeeper.ca_file": "authorities that sign ZooKeeper's certificates; turns TLS on",
    "security.zookeeper.certificate_file": "our own certificate; turns TLS on",
    "security.zookeeper.key_file": "its key",
    "security.zookeeper.key_password": "the key's password",
    "security.zookeeper.digest": "`user:password` of ZooKeeper's digest scheme",
    "security.zookeeper.username": "of SASL (DIGEST-MD5): whom znodes' access lists name, most often the brokers' own",
    "security.zookeeper.password": "of SASL",
    "security.zookeeper.check_host_name": "`false` only where certificates don't name their servers",
    "deploy.kind": "who replaces processes: a person, your command, or the lab",
    "deploy.command": "program and arguments, with placeholders: `kit/migrate/group/deploy.py`",
    "deploy.timeout_s": "for which a command may run; then it is ended",
    "deploy.allow_any_characters": "lets names through that hold more than letters, digits and `._:-`",
    "deploy.nodes.kind": "who restarts brokers and controllers: a person, your command, or the lab",
    "deploy.nodes.command": "program and arguments, with placeholders: `kit/migrate/kraft/nodes.py`",
    "deploy.nodes.timeout_s": "for which such a command may run; then it is ended",
    "deploy.nodes.allow_any_characters": "lets values through that hold more than letters, digits and `._:/-`",
    "approvals.require_second_person": "who makes a plan may not approve it",
    "approvals.require_signature": "an approval needs an SSH signature",
    "approvals.longest_hours": "for which an approval may hold",
    "kraft.controllers": "controllers while the cluster moves to KRaft, `id@host:port`, commas between",
    "kraft.settings_dir": "folder with each node's settings for each mode: `docs/kraft-move.md`",
    "kraft.history_dir": "what `offramp kraft watch` fills; without it finalising asks for the override `soak`",
    "kraft.soak_hours": "for which it must have looked at KRaft mode before the end",
    "approvals.signers": "whose signature counts: a name, and lines as in `id_ed25519.pub`",
}
_KINDS = {str: "text", bool: "true or false", float: "number", int: "number", Path: "file"}


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Key, kind, default, what it is."""
    for key, field, kind in _fields(Profile, ""):
        yield f"`{key}`", _kind(kind), _default(field), EXPLAINED[key]


def _fields(section: Any, above: str) -> Iterator[tuple[str, Field[Any], Any]]:
    kinds = get_type_hints(section)
    for field in fields(section):
        kind = kinds[field.name]
        if is_dataclass(kind) and kind is not SecretReference:
            yield from _fields(kind, f"{above}{field.name}.")
        elif field.name not in ("name", "file"):  # Where the section was found.
            yield f"{above}{field.name}", field, kind


def _kind(annotation: Any) -> str:
    arguments = [each for each in get_args(annotation) if each is not type(None)]
    if get_origin(annotation) is tuple:
        return "list of texts"
    if get_origin(annotation) is dict:
        return "section"
    if arguments and all(isinstance(each, str) for each in arguments):
        return ", ".join(f"`{each}`" for each in arguments)
    if arguments:
        return _kind(arguments[0])
    return "`{ env = … }` or `{ file = … }`" if annotation is SecretReference else _KINDS[annotation]


def _default(field: Field[Any]) -> str:
    if field.default is MISSING and field.default_factory is MISSING:
        return "**must be given**"
    value = field.default if field.default_factory is MISSING else field.default_factory()
    if value is None or value in ((), {}):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
