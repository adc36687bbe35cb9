"""Check the operator's own files for a migration to KRaft: what a node refuses at its start, or misreads.

Rules: what Kafka 3.9.1 refuses (:mod:`kit.kraft.analyze.kafka_rules`), and KIP-866. Each finding is of one file, or
of all of them (N11).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from kit.kraft.analyze.kafka_config import Config, NotKnown, Refused
from kit.kraft.analyze.kafka_rules import Judgement, judgements
from kit.kraft.analyze.node_settings import (
    ACL_AUTHORIZER,
    BOOTSTRAP,
    CONTROLLER,
    FINAL_CONTROLLER,
    FLAG,
    KRAFT,
    MIGRATION,
    STANDARD_AUTHORIZER,
    VERSION,
    VOTERS,
    ZOOKEEPER,
    NodeSettings,
    entries,
    is_template,
    voter_ids,
)
from kit.tables.conditions import BLOCK, NEVER, WARN, Condition, Rule
from kit.text.kafka_settings import settings

PHASE = "settings"
_REMARK = "N14"
_MARK = b"\xef\xbb\xbf".decode("latin-1")
"""The byte order mark that some editors put at the begin of a file, as Kafka reads it."""
_COMMENT = re.compile(r"\s#")

Found = Iterator[tuple[str, str]]
"""A sentence without the node's name, and a remedy."""


def lint(files: Sequence[NodeSettings]) -> list[Condition]:
    """Every rule on every file; a file without a finding has one row that reports it."""
    rows = []
    for node in files:
        findings = [_row(node, each) for each in dict.fromkeys((*judgements(node), *_own(node)))]
        if all(each.check_id == _REMARK for each in findings):
            sentence = f"{node.source} starts a node in {node.mode} mode. No rule found a problem in it."
            findings.append(answer("N00", node.name, True, sentence, source=node.source))
        rows += findings
    return [*rows, *_together(files)]


def _own(node: NodeSettings) -> Iterator[Judgement]:
    for check_id, rule in _OWN.items():
        yield from (Judgement(check_id, *each) for each in rule(node))


def _row(node: NodeSettings, found: Judgement) -> Condition:
    sentence = f"{node.source} ({node.mode} mode): {found.sentence}."
    return answer(found.check_id, node.name, found.is_met, sentence, found.remedy, node.source)


def answer(
    check_id: str, subject: str, is_met: bool | None, sentence: str, remedy: str = "", source: str = ""
) -> Condition:
    """Return the answer of one rule of ``RULES`` about one file, which is also how it is known."""
    found = _BY_ID[check_id].found(is_met, sentence, subject=subject, remedy=remedy)
    return replace(found, source=source or subject)


def _dynamic_quorum(node: NodeSettings) -> Found:
    has_voters = bool(entries(node.get(VOTERS)))
    if entries(node.get(BOOTSTRAP)) and not has_voters:
        yield (
            f"{BOOTSTRAP} makes a dynamic quorum, which offramp does not support",
            f"Set {VOTERS} in place of {BOOTSTRAP}.",
        )
    if node.mode == ZOOKEEPER and (has_voters or entries(node.get(BOOTSTRAP))):
        yield f"a quorum is set without {FLAG}", f"Set {FLAG}=true, or remove the settings of the quorum."


_OTHER_IDS = "Give the controllers other ids than the brokers."


def _migrating_voter(node: NodeSettings) -> Found:
    """Kafka examines this in KRaft mode only, where the next step leads."""
    if node.mode == MIGRATION and node.node_id in voter_ids(node.get(VOTERS)):
        yield f"the node's id {node.node_id} is in {VOTERS}, but the node is no controller", _OTHER_IDS


def _flag(node: NodeSettings) -> Found:
    if node.mode == KRAFT and (node.get(FLAG) or "").strip().lower() == "true":
        yield f"a broker in KRaft mode has {FLAG}", f"Remove {FLAG}."


def _authorizer(node: NodeSettings) -> Found:
    name = (node.get("authorizer.class.name") or "").strip()
    if node.mode in (KRAFT, CONTROLLER, FINAL_CONTROLLER) and name == ACL_AUTHORIZER:
        yield (
            "AclAuthorizer needs ZooKeeper, so the node ends when it starts",
            f"Set authorizer.class.name={STANDARD_AUTHORIZER}.",
        )
    if node.mode in (ZOOKEEPER, MIGRATION) and name == STANDARD_AUTHORIZER:
        yield "StandardAuthorizer needs KRaft mode", f"Set authorizer.class.name={ACL_AUTHORIZER}."


def _left_over(node: NodeSettings) -> Found:
    """Yield the settings that Kafka accepts in KRaft mode and does not use (``test_node_files.py`` asks it)."""
    if node.mode == KRAFT:
        names = [name for name in node.given if name.startswith("zookeeper.") and name != FLAG]
        names += [name for name in (VERSION,) if name in node.given]
        if names:
            yield (
                f"{', '.join(names)} has no meaning in KRaft mode",
                "Remove the setting: it has no effect, and misleads readers.",
            )
    if node.mode == FINAL_CONTROLLER and node.get("zookeeper.connect"):
        yield (
            f"zookeeper.connect is left without {FLAG}",
            ("Remove every zookeeper setting, or set the migration flag again."),
        )


def _remarks(node: NodeSettings) -> Found:
    yield from _misread(node)
    yield from _left_over(node)


def _combined(node: NodeSettings) -> Found:
    if set(entries(node.get("process.roles"))) >= {"broker", "controller"}:
        yield "broker and controller in one process can't migrate", "Run each controller in a process of its own."


def _misread(node: NodeSettings) -> Found:
    """Values that Kafka accepts, and reads otherwise than a person does."""
    known = {name.lower(): name for name in settings()}
    for name, value in node.given.items():
        meant = known.get(name.removeprefix(_MARK).strip().lower())
        if meant is not None and name not in settings():
            yield f"{name} is unknown to Kafka, which ignores it. Kafka knows {meant}", f"Write {meant} for {name}."
        if name in settings() and settings()[name].type in ("STRING", "LIST") and _COMMENT.search(value):
            sentence = f"the value of {name} contains a comment, which Kafka reads as a part of the value"
            yield sentence, f"Move the comment after {name} to a line of its own."


def _controller_login(node: NodeSettings) -> Found:
    """The mechanism by which this node logs in to controllers. Kafka's default is GSSAPI."""
    config, name = Config(node), "sasl.mechanism.controller.protocol"
    if node.mode == ZOOKEEPER:
        return
    try:
        first = config.controller_names[0]
        if not config.protocols.get(first.upper(), first).startswith("SASL"):
            return
        mechanism, own = config.text(name), config.overridden(first).get("sasl.enabled.mechanisms")
        offered = config.items("sasl.enabled.mechanisms") if own is None else entries(own)
        between = config.text("sasl.mechanism.inter.broker.protocol")
    except (NotKnown, Refused, IndexError):  # They are findings themselves.
        return
    is_offered = mechanism in offered if node.role == CONTROLLER else config.is_set(name) or mechanism == between
    if not is_offered:
        yield f"{name} is {mechanism}, which the controllers do not offer", f"Set {name}={between} on every node."


def _together(files: Sequence[NodeSettings]) -> Iterator[Condition]:
    """N11: what must differ, and what must be the same, over all files. A node may have a file for each mode."""
    by_id = dict[int, list[NodeSettings]]()
    for node in files:
        if node.node_id is not None:
            by_id.setdefault(node.node_id, []).append(node)
    for node_id, of_it in by_id.items():
        if len({each.mode for each in of_it}) < len(of_it) or len({each.role for each in of_it}) > 1:
            sentence = f"Id {node_id} is in {' and in '.join(each.source for each in of_it)}."
            yield _whole(sentence, "Give each node a different id, and keep one file per node and mode.")
    known = [text for node in files if (text := node.get(VOTERS)) and not is_template(text)]
    if len({frozenset(entries(text)) for text in known}) > 1:
        yield _whole(f"{VOTERS} differs between files.", f"Give {VOTERS} the same value in every file.")


def _whole(sentence: str, remedy: str) -> Condition:
    return answer("N11", "files", False, sentence, remedy)


_OWN: Mapping[str, Callable[[NodeSettings], Found]] = {
    "N02": _dynamic_quorum,
    "N04": _flag,
    "N06": _migrating_voter,
    "N07": _authorizer,
    "N10": _combined,
    "N14": _remarks,
    "N15": _controller_login,
}
"""Rules of a migration; what Kafka itself refuses is N01 to N06, N08, N09, N12 and N13 of
``kafka_rules`` and ``kafka_role_rules``.
"""
RULES: tuple[Rule, ...] = tuple(
    Rule(check_id, holds, WARN if check_id == _REMARK else BLOCK, NEVER, PHASE, "the node's file")
    for check_id, holds in (
        ("N00", "The file's settings start a node in the mode that the file's name gives."),
        ("N01", "The node has one id, and the id is not negative."),
        ("N02", "The quorum is static, and set together with the migration flag."),
        ("N03", "The listeners are well-formed, complete, and advertised by an address."),
        ("N04", "zookeeper.connect is set if the mode needs it, and the migration flag only together with it."),
        ("N05", "The version is high enough for the mode and its log dirs."),
        ("N06", "The node's id is among the voters exactly if it is a controller."),
        ("N07", "The authorizer belongs to the node's mode."),
        ("N08", "No control plane listener is set in KRaft mode."),
        ("N09", "Every listener has a protocol, and one is for traffic between brokers."),
        ("N10", "Broker and controller run in separate processes."),
        ("N11", "Each id belongs to one node, and all files name the same voters."),
        ("N12", "Every value has the type and the range that Kafka accepts."),
        ("N13", "No two settings exclude each other."),
        (_REMARK, "Kafka reads every line as it is written, and every class that it needs is part of Kafka."),
        ("N15", "The controllers offer the SASL mechanism that the node uses."),
    )
)
_BY_ID = {each.check_id: each for each in RULES}
