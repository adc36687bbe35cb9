"""What is wrong with the operator's own files for a migration to KRaft: what a node refuses at its start, or misreads.

Rules: validation of ``KafkaConfig`` in 3.9, and KIP-866. Each finding is of one file, or of all of them (N11).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from kit.analyze.metadata.node_settings import (
    ACL_AUTHORIZER,
    BOOTSTRAP,
    CONTROLLER,
    FINAL_CONTROLLER,
    FLAG,
    KRAFT,
    LISTENERS,
    MIGRATION,
    PROTOCOLS,
    STANDARD_AUTHORIZER,
    VERSION,
    VOTERS,
    ZOOKEEPER,
    NodeSettings,
    entries,
    inter_broker_listener,
    level,
    voter_ids,
)
from kit.tables.preflight import PreflightFinding

PHASE = "settings"
_NEW = (MIGRATION, KRAFT, CONTROLLER, FINAL_CONTROLLER)
_PLAIN_PROTOCOLS = frozenset(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"))
_MIGRATES, _SEVERAL_DIRS = level("3.4") or 0, level("3.7-IV2") or 0

Found = Iterator[tuple[str, str]]
"""A sentence without the node's name, and a remedy."""


def lint(files: Sequence[NodeSettings]) -> list[PreflightFinding]:
    """Every rule on every file; a file without a finding has one row that says so."""
    rows = []
    for node in files:
        findings = [_row(check_id, node, *each) for check_id, rule in RULES.items() for each in rule(node)]
        sentence = f"{node.source} starts a node in {node.mode} mode, and nothing is wrong with it."
        rows += findings or [PreflightFinding("N00", "block", PHASE, node.name, True, sentence, "", node.source)]
    return [*rows, *_together(files)]


def _row(check_id: str, node: NodeSettings, sentence: str, remedy: str) -> PreflightFinding:
    whole_sentence = f"{node.source} ({node.mode} mode): {sentence}."
    return PreflightFinding(check_id, "block", PHASE, node.name, False, whole_sentence, remedy, node.source)


def _node_id(node: NodeSettings) -> Found:
    if node.mode == MIGRATION and (node.node_id is None or node.node_id < 0):
        yield (
            "broker.id is missing or negative: a generated id is refused",
            "Write broker.id, from its meta.properties.",
        )
    if node.mode in (KRAFT, CONTROLLER, FINAL_CONTROLLER) and "node.id" not in node.given:
        yield "node.id is missing", "Write node.id."


def _quorum(node: NodeSettings) -> Found:
    has_quorum = bool(node.get(VOTERS) or node.get(BOOTSTRAP))
    if node.mode in _NEW and not has_quorum:
        yield f"{VOTERS} is missing", "Write the same list as on every other node."
    if node.mode == ZOOKEEPER and (node.get(LISTENERS) or has_quorum):
        yield f"{LISTENERS} or a quorum is set without {FLAG}", f"Set {FLAG}=true, or remove them."
    if node.get(BOOTSTRAP) and not node.get(VOTERS):
        yield f"{BOOTSTRAP} makes a dynamic quorum, which this tool does not support", f"Use {VOTERS}."


def _listener_names(node: NodeSettings) -> Found:
    names = entries(node.get(LISTENERS))
    if node.mode in _NEW and not names:
        yield f"{LISTENERS} is missing or empty", f"Write {LISTENERS}=CONTROLLER."
    own = [each.partition(":")[0] for each in entries(node.get("listeners"))]
    others = [each for each in own if each not in names]
    if node.role == CONTROLLER and names and others:
        yield f"a controller has only controller listeners, and {', '.join(others)} are others", "Remove them."
    if node.role != CONTROLLER and set(own) & set(names):
        yield f"a broker does not listen on {', '.join(names)}", "Remove it from listeners."


def _flag(node: NodeSettings) -> Found:
    if node.get(FLAG) == "true" and not node.get("zookeeper.connect"):
        yield f"{FLAG} is true without zookeeper.connect", "Write zookeeper.connect, or remove the flag."
    if node.mode == KRAFT and node.get(FLAG) == "true":
        yield f"a broker in KRaft mode has {FLAG}", "Remove it."


def _version(node: NodeSettings) -> Found:
    known = level(node.get(VERSION))
    if node.mode == MIGRATION and known is not None and known < _MIGRATES:
        yield f"{VERSION} is {node.get(VERSION)}, and a migration needs 3.4 at least", f"Set {VERSION}=3.9."
    too_old = known is not None and known < _SEVERAL_DIRS
    if node.mode == MIGRATION and too_old and len(entries(node.get("log.dirs"))) > 1:
        yield f"several log.dirs need {VERSION} 3.7-IV2", f"Set {VERSION}=3.9."


def _voter(node: NodeSettings) -> Found:
    ids = voter_ids(node.get(VOTERS))
    if len(ids) != len(entries(node.get(VOTERS))):
        yield f"{VOTERS} is no list of id@host:port", "Write it as 3000@controller-1:9093,…"
    if node.role == CONTROLLER and ids and node.node_id not in ids:
        yield f"its id {node.node_id} is not in {VOTERS}", "Write the same list as on every other node."
    if node.role != CONTROLLER and node.node_id in ids:
        yield f"its id {node.node_id} is in {VOTERS}, and it is no controller", "Give controllers ids of their own."


def _authorizer(node: NodeSettings) -> Found:
    name = node.get("authorizer.class.name")
    if node.mode in (KRAFT, CONTROLLER, FINAL_CONTROLLER) and name == ACL_AUTHORIZER:
        yield "AclAuthorizer needs ZooKeeper: the node dies at its start", f"Use {STANDARD_AUTHORIZER}."
    if node.mode in (ZOOKEEPER, MIGRATION) and name == STANDARD_AUTHORIZER:
        yield "StandardAuthorizer needs KRaft mode", f"Use {ACL_AUTHORIZER}."


def _left_over(node: NodeSettings) -> Found:
    if node.mode == KRAFT:
        names = [name for name in node.given if name.startswith("zookeeper.") and name != FLAG]
        names += [name for name in (VERSION, "control.plane.listener.name") if name in node.given]
        if names:
            yield f"{', '.join(names)} must go in KRaft mode", "Remove them."
    if node.mode == FINAL_CONTROLLER and node.get("zookeeper.connect"):
        yield f"zookeeper.connect is left without {FLAG}", "Remove every zookeeper setting; or give the flag back."


def _protocol_map(node: NodeSettings) -> Found:
    protocols = {each.partition(":")[0] for each in entries(node.get(PROTOCOLS))} or _PLAIN_PROTOCOLS
    wanted = {each.partition(":")[0] for each in entries(node.get("listeners"))} | {inter_broker_listener(node)}
    if node.mode in _NEW:
        wanted |= set(entries(node.get(LISTENERS)))
    missing = sorted(wanted - protocols)
    if missing:
        yield f"{PROTOCOLS} lacks {', '.join(missing)}", "Add them."


def _combined(node: NodeSettings) -> Found:
    if set(entries(node.get("process.roles"))) >= {"broker", "controller"}:
        yield "broker and controller in one process can't migrate", "Use controllers of their own."


def _together(files: Sequence[NodeSettings]) -> Iterator[PreflightFinding]:
    """N11: what must differ, and what must be the same, over all files. A node may have a file for each mode."""
    by_id = dict[int, list[NodeSettings]]()
    for node in files:
        if node.node_id is not None:
            by_id.setdefault(node.node_id, []).append(node)
    for node_id, of_it in by_id.items():
        if len({each.mode for each in of_it}) < len(of_it) or len({each.role for each in of_it}) > 1:
            sentence = f"Id {node_id} is in {' and in '.join(each.source for each in of_it)}."
            yield _whole(sentence, "Give each node an id of its own; keep one file per node and mode.")
    lists = {frozenset(entries(node.get(VOTERS))) for node in files if node.get(VOTERS)}
    if len(lists) > 1:
        yield _whole(f"{VOTERS} differs between files.", "Write the same list into every file.")


def _whole(sentence: str, remedy: str) -> PreflightFinding:
    return PreflightFinding("N11", "block", PHASE, "files", False, sentence, remedy, "files")


RULES: Mapping[str, Callable[[NodeSettings], Found]] = {
    "N01": _node_id,
    "N02": _quorum,
    "N03": _listener_names,
    "N04": _flag,
    "N05": _version,
    "N06": _voter,
    "N07": _authorizer,
    "N08": _left_over,
    "N09": _protocol_map,
    "N10": _combined,
}
