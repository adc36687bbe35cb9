"""Every key of ``offramp.toml`` for the docs, from the models that read it; a key that is not explained here fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from kit.profile import Profile
from kit.profile.security.secret import SecretReference

EXPLAINED = {
    "bootstrap_servers": "brokers to ask first: `host:port`, separated by commas",
    "zookeeper_connect": "ZooKeeper's servers, the chroot after the last one; without it only the brokers are read",
    "cluster_id": "id of the cluster that must answer; another one is refused (exit code 6)",
    "leave_out_groups": "regular expressions of whole group ids: such groups are read only by `--groups` or `--group`",
    "spark.master": "where Spark runs: `local[*]` is this machine",
    "spark.remote": "a Spark Connect URL; wins over `master`",
    "spark.conf": "settings passed to Spark unchanged",
    "security.kafka.ca_file": "authorities that sign the brokers' certificates",
    "security.kafka.certificate_file": "our own certificate, for mutual TLS",
    "security.kafka.key_file": "its key",
    "security.kafka.key_password": "the key's password",
    "security.kafka.protocol": "protocol of the brokers' listener",
    "security.kafka.mechanism": "SASL mechanism",
    "security.kafka.username": "SASL user of PLAIN and SCRAM",
    "security.kafka.password": "SASL password",
    "security.kafka.service_name": "Kerberos: first part of the brokers' principals; without it `kafka`",
    "security.kafka.principal": "Kerberos: who logs in; without it whom the tickets are for",
    "security.kafka.keytab": "Kerberos: file with the principal's key; needs `principal`",
    "security.kafka.ticket_cache": "Kerberos: where the tickets are, as in `KRB5CCNAME`; else the user's own",
    "security.kafka.token_url": "OAuth: the issuer's token endpoint, for the client credentials grant",
    "security.kafka.client_id": "OAuth: the client at `token_url`",
    "security.kafka.client_secret": "OAuth: its secret",
    "security.kafka.scope": "OAuth: scope to ask for",
    "security.kafka.token_ca_file": "OAuth: authorities that sign the issuer's certificate; else those of the system",
    "security.kafka.token": "OAuth: a token that another program renews; it is read again before it ends",
    "security.kafka.token_command": "OAuth: program and arguments; its first line of output is the token",
    "security.kafka.region": "Amazon MSK: region of the cluster; credentials are those of the AWS SDK",
    "security.zookeeper.ca_file": "authorities that sign ZooKeeper's certificates; turns TLS on",
    "security.zookeeper.certificate_file": "our own certificate; turns TLS on",
    "security.zookeeper.key_file": "its key",
    "security.zookeeper.key_password": "the key's password",
    "security.zookeeper.digest": "`user:password` of ZooKeeper's digest scheme",
    "security.zookeeper.mechanism": "SASL mechanism; without it DIGEST-MD5 where `username` is given",
    "security.zookeeper.service_name": "Kerberos: first part of the servers' principals; without it `zookeeper`",
    "security.zookeeper.principal": "Kerberos: as for `security.kafka`",
    "security.zookeeper.keytab": "Kerberos: as for `security.kafka`",
    "security.zookeeper.ticket_cache": "Kerberos: as for `security.kafka`",
    "security.zookeeper.username": "SASL user (DIGEST-MD5) whom the znodes' access lists name, mostly the brokers' own",
    "security.zookeeper.password": "SASL password",
    "security.zookeeper.check_host_name": "set `false` only where certificates don't name their servers",
    "deploy.kind": "who replaces processes: a person, your command, or the lab",
    "deploy.command": "program and arguments, with placeholders: `kit/moves/group/deploy.py`",
    "deploy.timeout_s": "seconds after which a command is ended",
    "deploy.allow_any_characters": "allow names with other characters than letters, digits and `._:-`",
    "deploy.nodes.kind": "who restarts brokers and controllers: a person, your command, or the lab",
    "deploy.nodes.command": "program and arguments, with placeholders: `kit/kraft/move/nodes.py`",
    "deploy.nodes.timeout_s": "seconds after which such a command is ended",
    "deploy.nodes.allow_any_characters": "allow values with other characters than letters, digits and `._:/-`",
    "approvals.require_second_person": "the person who made a plan may not approve it",
    "approvals.require_signature": "an approval needs an SSH signature",
    "approvals.longest_hours": "hours that an approval may hold at most",
    "kraft.controllers": "controllers while the cluster moves to KRaft: `id@host:port`, separated by commas",
    "kraft.settings_dir": "folder with each node's settings for each mode: `docs/kraft-move.md`",
    "kraft.history_dir": "history of `offramp kraft watch`; without it a plan to finalise needs the override `soak`",
    "kraft.soak_hours": "hours of KRaft mode that this history must hold before a plan to finalise",
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
        elif field.name not in ("name", "file"):  # The place of the section.
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
    if value is None or value in ((), {}, ""):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
