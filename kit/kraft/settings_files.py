"""The nodes' own files, read as Kafka reads them and linted without a cluster.

linted = lint_files([Path("server.properties")])
linted.rows                                         # what is wrong, a row each
linted.verify()                                     # raises if Kafka would refuse one
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kit.errors import InputError, OfframpError, PartialRead, UnsafePlan
from kit.kraft.analyze.node_lint import answer, lint
from kit.kraft.analyze.node_settings import CONTROLLER, DECIDING, FINAL_CONTROLLER, MIGRATION, NodeSettings, of_file
from kit.kraft.read.node_variables import nodes_in
from kit.tables.conditions import BLOCK, Condition
from kit.tables.preflight import NodeMeta
from kit.text.numbers import partition_in
from kit.text.properties import is_malformed, parse_properties
from kit.text.quantity import quantity
from kit.text.regular_file import read_regular

_BIGGEST_FILE = 1_000_000
_OF_A_NODE = frozenset(("broker.id", "node.id", "process.roles", "zookeeper.connect", "log.dirs"))
_UTF_8 = (".env", ".yml", ".yaml")
_KINDS = (".properties", *_UTF_8)
_MALFORMED = "\\u without four hexadecimal digits, which Java refuses"
_ESCAPE_IT = "To write a backslash, double it."
_SIGNS = ("KAFKA_", "strimzi.io")
"""The texts of a YAML file of nodes; a folder may hold other files."""


@dataclass(frozen=True)
class SettingsFolder:
    """The nodes' own files: ``server.properties`` of each as ``settings``, ``meta.properties`` as ``metas``."""

    settings: Sequence[NodeSettings] = ()
    metas: Sequence[NodeMeta] = ()


@dataclass(frozen=True)
class LintedFiles:
    """``rows``: what is wrong with the files, or not known; of a file without a finding a row that reports it."""

    rows: Sequence[Condition]

    @property
    def summary(self) -> str:
        n_sound = sum(each.is_met is True for each in self.rows)
        return f"Kafka 3.9.1 accepts the settings of {quantity(n_sound, 'node')}."

    def verify(self) -> str:
        """The summary.

        Raises:
            UnsafePlan: Kafka, or a migration, refuses a file.
            PartialRead: whether it does is not known.
        """
        wrong = [each for each in self.rows if each.severity == BLOCK and each.is_met is False]
        if wrong:
            raise UnsafePlan(
                f"{_named(wrong)} can't be used. Follow the remedy of each finding, then lint the files again."
            )
        dark = [each for each in self.rows if each.severity == BLOCK and each.is_met is None]
        if dark:
            raise PartialRead(
                f"{_named(dark)}: values from elsewhere can't be read on this machine: the node was not checked."
                " Lint the file on the node's machine."
            )
        return self.summary


def _named(rows: Sequence[Condition]) -> str:
    return ", ".join(dict.fromkeys(each.source for each in rows))


def lint_files(paths: Sequence[Path], mode: str | None = None) -> LintedFiles:
    """Judge files of settings. ``mode``: ``zookeeper``, ``migration``, ``kraft`` or ``controller``, if it must be that.

    Raises:
        InputError: a file can't be read, or holds no settings of a node.
    """
    key, nodes, malformed = secrets.token_bytes(32), list[NodeSettings](), list[Condition]()
    for path in paths:
        text = _text(path)
        if path.suffix not in _UTF_8 and is_malformed(text):
            malformed.append(_malformed(str(path)))
            continue
        found = nodes_in(str(path), text)
        if not any(found.values()):
            raise InputError(f"{path} has no settings of a node: name its server.properties, or a Compose file")
        nodes += [of_file(held, name, key) for name, held in found.items()]
    wrong = [row for each in nodes if mode is not None and (row := _other_mode(each, mode)) is not None]
    return LintedFiles([*malformed, *wrong, *lint(nodes)])


def _malformed(name: str) -> Condition:
    return answer("N12", name, False, f"{name}: {_MALFORMED}.", _ESCAPE_IT)


def _other_mode(node: NodeSettings, mode: str) -> Condition | None:
    """A row unless the file starts a node in that mode."""
    if node.mode == mode or (mode == CONTROLLER and node.mode == FINAL_CONTROLLER):
        return None
    is_known = not any(node.is_template(name) for name in DECIDING)
    sentence = f"{node.source} starts a node in {node.mode} mode, not in {mode} mode."
    remedy = f"Name the node's file for {mode} mode: offramp kraft preflight --write-settings FOLDER makes one."
    return answer("N00", node.name, False if is_known else None, sentence, remedy, node.source)


def read_settings_folder(path: Path) -> SettingsFolder:
    """Every file of settings in a folder and those below; what names ``cluster.id`` is a ``meta.properties``.

    Read are ``*.properties``, ``*.env`` and Compose files; others, as log4j's, are left alone. Secrets stay in the
    files: of each only a fingerprint is kept, by a key that is made here and forgotten.

    Raises:
        InputError: it is no folder, has no such file, or one can't be read.
    """
    files = sorted(each for each in path.rglob("*") if each.suffix in _KINDS) if path.is_dir() else []
    if not files:
        raise InputError(f"{path} is no folder with *.properties of nodes")
    key = secrets.token_bytes(32)
    settings, metas = list[NodeSettings](), list[NodeMeta]()
    for file in files:
        name, text = str(file.relative_to(path)), _text(file)
        if file.suffix != ".properties" and not any(sign in text for sign in _SIGNS):
            continue
        is_refused = file.suffix == ".properties" and is_malformed(text)
        for source, held in nodes_in(name, text).items():
            if is_refused and not (_OF_A_NODE | {"cluster.id"}).isdisjoint(held):
                raise InputError(f"{file}: {_MALFORMED}. {_ESCAPE_IT}")
            if "cluster.id" in held or file.name == "meta.properties":
                metas.append(_meta(source, held))
            elif not _OF_A_NODE.isdisjoint(held):
                settings.append(of_file(held, source, key))
    if not settings and not metas:
        raise InputError(f"{path} has no settings of a node: no file has one of {', '.join(sorted(_OF_A_NODE))}")
    return SettingsFolder(settings, metas)


def _text(file: Path) -> str:
    """The file as Java reads properties: in Latin-1, in which every byte is a character. Others are UTF-8."""
    try:
        if file.stat().st_size > _BIGGEST_FILE:
            raise InputError(f"{file} is no node's settings: it has more than {_BIGGEST_FILE:,} bytes")
        held = read_regular(file)
        return held.decode(errors="replace") if file.suffix in _UTF_8 else held.decode("latin-1")
    except OSError as error:
        raise InputError(f"{file} can't be read: {error}") from error


def _meta(name: str, held: Mapping[str, str]) -> NodeMeta:
    number = held.get("node.id", held.get("broker.id", ""))
    return NodeMeta(name, partition_in(number), partition_in(held.get("version", "")), held.get("cluster.id"))


def lint_text(text: str, name: str) -> list[Condition]:
    """Yield what forbids a start with a text of properties, the certain first; nothing if Kafka takes it."""
    node = of_file(parse_properties(text), name, secrets.token_bytes(32))
    rows = [each for each in lint([node]) if each.severity == BLOCK and not each.is_met]
    return sorted(rows, key=lambda each: each.is_met is None)


def lint_settings_file(path: Path, role: str, node_id: int, mode: str) -> str | None:
    """Return why a file does not start that node in that mode (``migration``, ``finalised`` … as in its name); None: it
    does.

    A value that is filled in later is a reason, too, where the answer depends on it. Secrets stay in the file.
    """
    try:
        text = _text(path)
    except OfframpError as error:
        return str(error)
    if is_malformed(text):
        return f"{path}: {_MALFORMED}. {_ESCAPE_IT}"
    node = of_file(parse_properties(text), str(path), secrets.token_bytes(32))
    later = [name for name in DECIDING if node.is_template(name)]
    if later:
        return f"{path}: {later[0]} is a placeholder, so its value is unknown. Give the final file of the node"
    wanted = {MIGRATION: CONTROLLER, "finalised": FINAL_CONTROLLER}[mode] if role == CONTROLLER else mode
    if (node.role, node.node_id, node.mode) != (role, node_id, wanted):
        return f"{path} starts {node.name} in {node.mode} mode, not {role} {node_id} in {wanted} mode"
    wrong = lint_text(text, str(path))
    return f"{wrong[0].check_id} {wrong[0].sentence} {wrong[0].remedy}" if wrong else None
