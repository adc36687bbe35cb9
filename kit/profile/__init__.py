"""A cluster's profile: addresses, expected cluster id, and security with secrets by reference.

``offramp.toml``::

    [clusters.production]
    bootstrap_servers = "kafka-1:9092,kafka-2:9092"
    zookeeper_connect = "zk-1:2181,zk-2:2181/kafka"    # a chroot is allowed; leave out for a cluster without ZooKeeper
    cluster_id = "lkc-…"                               # a cluster with another id is refused
    leave_out_groups = ["tmp-.*"]                      # not read unless a verb names groups by --groups or --group

    [clusters.production.spark]
    master = "local[*]"                                # or: remote = "sc://spark:15002"

    [clusters.production.deploy]                       # how processes are replaced, see kit.moves.group.deploy
    kind = "manual"                                    # or "command", or "lab"

    [clusters.production.deploy.nodes]                 # how brokers and controllers are restarted: kit.kraft.move
    kind = "manual"                                    # or "command", or "lab"

    [clusters.production.kraft]                        # while the cluster moves to KRaft (KIP-866)
    controllers = "3000@controller-1:9093,3001@controller-2:9093"    # their controller listener; security as brokers
    history_dir = "soak"                               # what `offramp kraft watch` fills, for soak_hours before the end

    [clusters.production.approvals]
    require_second_person = true                       # the planner may not approve, by name or by login
    longest_hours = 24                                 # the longest validity of an approval
    require_signature = true                           # offramp approve --sign-with ~/.ssh/id_ed25519

    [clusters.production.approvals.signers]            # public keys of approvers: lines of id_ed25519.pub
    ann = ["ssh-ed25519 AAAA… ann@laptop"]

    [clusters.production.security.kafka]
    protocol = "SASL_SSL"
    mechanism = "SCRAM-SHA-512"
    username = "offramp"
    password = { env = "KAFKA_PASSWORD" }              # or { file = "/run/secrets/kafka" }
    ca_file = "ca.pem"                                 # mTLS: certificate_file and key_file too

    # Kerberos: mechanism = "GSSAPI", service_name = "kafka", principal = "offramp@REALM", keytab = "offramp.keytab"
    # (or ticket_cache, or neither: the tickets of kinit)
    # OAuth: mechanism = "OAUTHBEARER", token_url, client_id, client_secret = { env = "…" }, scope, token_ca_file
    # (or token = { file = "…" }, or token_command = ["program", "argument"])
    # Amazon MSK: mechanism = "AWS_MSK_IAM", region = "eu-west-1"; the credentials are those of the AWS SDK

    [clusters.production.security.zookeeper]
    digest = { env = "ZOOKEEPER_DIGEST" }              # "user:password"; TLS: ca_file, certificate_file, key_file
    username = "kafka"                                 # or, and beside it: SASL (DIGEST-MD5), as JAAS's Client has it
    password = { env = "ZOOKEEPER_PASSWORD" }
    # Kerberos: mechanism = "GSSAPI", and the keys as above
    check_host_name = true                             # of TLS; false only where certificates don't name their servers

The profile never holds a secret, only where it is. File names are relative to ``offramp.toml``.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
import typing
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Literal

from kit.errors import ProfileError
from kit.profile.security.secret import REFERENCE, SecretReference
from kit.profile.security.settings import Security
from kit.text.numbers import partition_in
from kit.text.regular_file import read_regular
from kit.text.visible import visible

FILE_NAME = "offramp.toml"
CLUSTERS = "clusters"
FILE_VARIABLE = "OFFRAMP_PROFILE_FILE"
MANUAL: Literal["manual"] = "manual"
COMMAND = "command"
LAB = "lab"


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """``remote`` (a Spark Connect URL) wins over ``master``; ``conf`` goes to Spark unchanged."""

    master: str = "local[*]"
    remote: str | None = None
    conf: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DeploySettings:
    """The other keys are for kind ``command``; ``command`` is a list: program and arguments, with placeholders.

    ``allow_any_characters`` permits names with other characters than letters, digits and ``._:-``.
    """

    kind: Literal["manual", "command", "lab"] = MANUAL
    command: tuple[str, ...] = ()
    timeout_s: float = 300.0
    allow_any_characters: bool = False

    def __post_init__(self) -> None:
        if not self.timeout_s > 0:
            raise ValueError("timeout_s must be more than 0")


@dataclass(frozen=True, kw_only=True)
class GroupDeploySettings(DeploySettings):
    """The deployer that replaces members; ``nodes``: the deployer that restarts brokers and controllers."""

    nodes: DeploySettings = DeploySettings()


@dataclass(frozen=True, kw_only=True)
class ApprovalSettings:
    """``signers``: name → public SSH keys. ``longest_hours``: the longest validity of an approval."""

    require_second_person: bool = False
    require_signature: bool = False
    longest_hours: float = 24.0
    signers: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.longest_hours > 0 and math.isfinite(self.longest_hours)):
            raise ValueError("longest_hours must be a number of hours, more than 0")
        object.__setattr__(self, "signers", _public_keys(self.signers))
        if self.require_signature and not self.signers:
            raise ValueError("require_signature needs [approvals.signers]: add the approvers and their public SSH keys")


def _public_keys(signers: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Without their comments."""
    if not signers:
        return {}
    from kit.profile.identity.ssh_signature import public_key  # Only signatures need it, and it takes time to load.

    try:
        keys = {name: tuple(map(public_key, lines)) for name, lines in signers.items()}
    except ValueError as problem:
        raise ValueError(f"signers: {problem}") from None
    of_all = [key for name in keys for key in keys[name]]
    if len(set(of_all)) < len(of_all):
        raise ValueError("signers: one key is given for two names: its signature would prove neither")
    return keys


@dataclass(frozen=True, kw_only=True)
class KraftSettings:
    """``controllers``: ``host:port`` or ``id@host:port`` of each KRaft controller, comma between.

    ``settings_dir``: a folder with each node's settings for each mode, named as ``offramp kraft preflight
    --write-settings`` names them; plans to move check them, and the deployer gets their names. ``history_dir``: what
    ``offramp kraft watch`` fills; ``soak_hours``: how long it must have observed before a move is finalised.
    """

    controllers: str = ""
    settings_dir: Path | None = None
    history_dir: Path | None = None
    soak_hours: float = 168.0

    def __post_init__(self) -> None:
        if not (self.soak_hours > 0 and math.isfinite(self.soak_hours)):
            raise ValueError("soak_hours must be a number of hours, more than 0")
        found = _controllers_in(self.controllers)
        ids = [number for number, _ in found if number is not None]
        if len(set(ids)) < len(ids) or len({address for _, address in found}) < len(found):
            raise ValueError("controllers: an id or an address occurs twice")

    @property
    def addresses(self) -> tuple[str, ...]:
        """``host:port`` of each."""
        return tuple(address for _, address in _controllers_in(self.controllers))

    @property
    def ids(self) -> dict[int, str]:
        """Id → ``host:port``, of those that have an id here."""
        return {number: address for number, address in _controllers_in(self.controllers) if number is not None}


def _controllers_in(text: str) -> list[tuple[int | None, str]]:
    """``3000@host:9093, …`` → id → address; ValueError where an id is no number."""
    entries = [each.strip().rpartition("@") for each in text.split(",") if each.strip()]
    wrong = [number for number, at, _ in entries if at and partition_in(number) is None]
    if wrong:
        raise ValueError(f"controllers: {wrong[0]!r} is no id of a controller: write id@host:port, with commas between")
    for _, _, address in entries:
        if not re.fullmatch(r"\S+:\d{1,5}", address):
            raise ValueError(f"controllers: {address!r} is no host:port")
    return [(int(number) if at else None, address) for number, at, address in entries]


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One cluster of ``offramp.toml``.

    ``leave_out_groups``: regular expressions of whole group ids. Such a group is read only if it is asked for.
    """

    name: str
    file: Path
    bootstrap_servers: str
    zookeeper_connect: str | None = None
    cluster_id: str | None = None
    leave_out_groups: tuple[str, ...] = ()
    spark: SparkSettings = SparkSettings()
    security: Security = field(default_factory=Security)
    deploy: GroupDeploySettings = GroupDeploySettings()
    approvals: ApprovalSettings = ApprovalSettings()
    kraft: KraftSettings = KraftSettings()

    def __post_init__(self) -> None:
        for pattern in self.leave_out_groups:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"leave_out_groups: {pattern!r} is not a regular expression: {error}") from None


def load_profile(name: str | None = None, file: str | Path | None = None) -> Profile:
    """The cluster called ``name`` (the only one when None).

    The file is ``file``, else ``$OFFRAMP_PROFILE_FILE``, else ``offramp.toml`` here or in a folder above, else
    ``~/.config/offramp/offramp.toml``.

    Raises:
        ProfileError: there is no such file or cluster, it is not TOML, or a key is unknown, missing or wrong.
    """
    path = _find(file)
    sections = _parse(path)
    _refuse_unknown(path, sections)
    clusters = sections.get(CLUSTERS)
    if not isinstance(clusters, dict) or not clusters:
        raise ProfileError(f"{path} names no cluster: add a [clusters.<name>] section")
    if name is None and len(clusters) > 1:
        raise ProfileError(f"{path} has several clusters: choose one of {', '.join(sorted(clusters))}")
    name = name or next(iter(clusters))
    if name not in clusters:
        raise ProfileError(f"{path} has no cluster {name!r}; name one of {', '.join(sorted(clusters))}")
    return _validated(path, name, clusters[name])


def _find(file: str | Path | None) -> Path:
    named = file or os.environ.get(FILE_VARIABLE)
    if named:
        if not Path(named).is_file():
            raise ProfileError(f"there is no profile file {named}: check --profile-file or ${FILE_VARIABLE}")
        return Path(named).resolve()
    here = Path.cwd()
    places = [*(folder / FILE_NAME for folder in (here, *here.parents)), Path.home() / ".config/offramp" / FILE_NAME]
    for place in places:
        if place.is_file():
            return place
    raise ProfileError(
        f"there is no {FILE_NAME} here, above, or in ~/.config/offramp, and ${FILE_VARIABLE} is not set; "
        "`offramp lab up` starts a cluster to try and prints a profile for it"
    )


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_regular(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProfileError(f"{path} is not TOML: {error}; repair that line") from error
    except OSError as error:
        raise ProfileError(f"{path} can't be read: {error.strerror}; check its rights") from error


def _refuse_unknown(path: Path, sections: Mapping[str, Any]) -> None:
    unknown = [visible(name) for name in sections if name != CLUSTERS]
    if unknown:
        known = [name for name, kind in typing.get_type_hints(Profile).items() if is_dataclass(kind)]
        raise ProfileError(
            f"{path}: {', '.join(map(repr, unknown))} at the top level of the file is unknown. The only known section"
            f" there is [{CLUSTERS}.NAME], with its own sections {', '.join(known)}, for instance"
            f" [{CLUSTERS}.NAME.{known[0]}]. Move the settings there"
        )


def _validated(path: Path, name: str, section: Any) -> Profile:
    if not isinstance(section, dict):
        raise ProfileError(f"{path}: clusters.{name} is not a section: write [clusters.{name}]")
    reading = _Reading(path.parent)
    profile = reading.section(Profile, {**section, "name": name, "file": path.name}, f"clusters.{name}")
    if profile is None:
        raise ProfileError(f"{path}: {'; '.join(reading.problems)}")
    return typing.cast(Profile, profile)


_WANTED: dict[Any, str] = {
    str: "a text in quotes",
    Path: "a file name in quotes",
    float: "a number",
    bool: "true or false",
    tuple: "a list",
    dict: "a section",
}


class _Reading:
    """TOML's values as the sections above want them; ``problems`` names every key that is wrong, and no secret."""

    def __init__(self, folder: Path) -> None:
        self.problems: list[str] = []
        self._folder = folder

    def section(self, kind: type[Any], given: Mapping[str, Any], key: str) -> Any:
        """A section of this class; None: there is a problem."""
        hints, n_problems = typing.get_type_hints(kind), len(self.problems)
        values = {name: self._value(hints[name], given[name], f"{key}.{name}") for name in hints if name in given}
        required = [each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING]
        self.problems += [f"{key}.{name}: Field required" for name in required if name not in given]
        self.problems += [f"{key}.{name} is not a known key" for name in given if name not in hints]
        if len(self.problems) > n_problems:
            return None
        try:
            return kind(**values)
        except ValueError as problem:
            return self._refuse(kind, key, str(problem))

    def _value(self, hint: Any, given: Any, key: str) -> Any:
        kind = _without_none(hint)
        arguments = typing.get_args(kind)
        if typing.get_origin(kind) is Literal:
            return given if given in arguments else self._refuse(kind, key, f"must be {_listed(arguments)}")
        is_section = is_dataclass(kind)
        of = dict if is_section else typing.get_origin(kind) or kind
        if not _is_toml_of(of, given):
            return self._refuse(kind, key, f"must be {_WANTED[of]}")
        if is_section:
            return self.section(kind, given, key)
        if of is dict:
            return {name: self._value(arguments[1], each, f"{key}.{name}") for name, each in given.items()}
        if of is tuple:
            return tuple(self._value(arguments[0], each, key) for each in given)
        return self._folder / Path(given).expanduser() if of is Path else of(given)

    def _refuse(self, kind: Any, key: str, why: str) -> None:
        is_secret = kind is SecretReference  # The value may be the secret itself.
        self.problems.append(
            f"{key} must be a reference, {REFERENCE}, never the secret itself" if is_secret else f"{key}: {why}"
        )


def _is_toml_of(kind: type, given: Any) -> bool:
    """Return whether TOML gives such a value for this type; for Python, true is a number."""
    forms: dict[type, type | tuple[type, ...]] = {Path: str, float: (int, float), tuple: list}
    return isinstance(given, forms.get(kind, kind)) and not (kind is float and isinstance(given, bool))


def _without_none(hint: Any) -> Any:
    options = typing.get_args(hint)
    return next(each for each in options if each is not NoneType) if NoneType in options else hint


def _listed(choices: Iterable[str]) -> str:
    return " or ".join(map(repr, choices))
