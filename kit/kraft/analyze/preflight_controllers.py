"""Checks of the controllers before brokers join them, of a rollback, and of any time."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from kit.kraft.analyze.node_settings import (
    KRAFT as KRAFT_MODE,
    MIGRATION as MIGRATION_MODE,
    VOTERS,
    ZOOKEEPER as ZOOKEEPER_MODE,
)
from kit.kraft.analyze.phase import MIGRATION, POST_MIGRATION, PRE_MIGRATION
from kit.kraft.analyze.preflight_checks import DUAL_WRITE, PreflightFacts, Problem, check, numbers, unread
from kit.tables.conditions import BLOCK
from kit.text.quantity import quantity

_FIRST_EPOCHS = 2
"""Controllers that were started together had agreed at epoch 1 or 2 (3.9.1)."""


def alike(facts: PreflightFacts) -> Iterator[Problem]:
    """L01: every controller answers, has the flag and the same voters; the log holds nothing but the wait."""
    nodes = facts.facts.controllers
    if not nodes:
        yield unread("controllers", "The profile names no controller, so no controller could be asked.", _NAME_THEM)
    for node in nodes:
        if node.has_flag is None:
            yield unread(f"controller {node.address}", f"{node.error or node.address + ' did not answer'}.")
        elif not node.has_flag:
            sentence = f"The controller at {node.address} runs without zookeeper.metadata.migration.enable."
            remedy = (
                "Set zookeeper.metadata.migration.enable=true on every controller. A controller without the "
                "flag finalises the migration when it is elected."
            )
            yield Problem(f"controller {node.address}", sentence, remedy)
    leader = facts.facts.leader
    if leader is not None and len(leader.voters) > len(nodes):
        named = quantity(len(nodes), "controller")
        sentence = f"The quorum has the voters {numbers(leader.voters)}, and the profile names {named}."
        yield unread("voters", sentence, _NAME_THEM)
    if nodes and leader is None:
        sentence = "The voters of the quorum are unknown: none of the profile's controllers leads the quorum."
        yield unread("voters", sentence, _NAME_THEM)
    voters = {each.given[VOTERS] for each in facts.settings if VOTERS in each.given}
    if len({frozenset(each.replace(" ", "").split(",")) for each in voters}) > 1:
        yield Problem("voters", f"{VOTERS} differs between nodes.", "Write the same list into every node's file.")
    yield from _unreached(facts)
    yield from _log(facts)


def _unreached(facts: PreflightFacts) -> Iterator[Problem]:
    """Yield who fetches the log, or is registered and not fenced, reaches the controller that leads.

    A new leader has no observers at first, and a broker in ZooKeeper mode doesn't try yet.
    """
    leader = facts.facts.leader
    live = {each.node_id for each in facts.facts.registered_brokers if each.is_fenced is False}
    for node in facts.facts.brokers:
        has_to = node.mode in (MIGRATION_MODE, KRAFT_MODE) and node.node_id is not None
        if leader is not None and has_to and node.node_id not in {*leader.observers, *live}:
            sentence = (
                f"The broker at {node.address} runs in {node.mode} mode, but is not registered and does not fetch "
                f"the metadata log from the active controller {leader.node_id}. Either it can't reach that "
                "controller, or its file names other voters."
            )
            remedy = (
                f"Compare {VOTERS} and the controllers' listener in the broker's file with the controllers' files, and "
                "check the network between both."
            )
            yield Problem(f"broker {node.address}", sentence, remedy)


def _log(facts: PreflightFacts) -> Iterator[Problem]:
    if facts.kraft_items is None:
        if facts.facts.controllers:
            yield unread(
                "the metadata log", f"The metadata log could not be read: {facts.facts.log_error or 'not asked for'}."
            )
        return
    n_topics = facts.kraft_items.filter(pl.col("kind") == "topic").height
    state = facts.facts.zk_state
    if state not in (PRE_MIGRATION, MIGRATION):
        sentence = (
            f"The migration state in the metadata log is {state or 'missing'}, not PRE_MIGRATION. The controllers were "
            "first started without the migration flag."
        )
        yield Problem("the metadata log", sentence, _begin_again(facts))
    elif state == PRE_MIGRATION and n_topics:
        sentence = (
            f"The metadata log holds {quantity(n_topics, 'topic')} before the copy, so the log belongs to "
            "another attempt."
        )
        yield Problem("the metadata log", sentence, _begin_again(facts))


def disks(facts: PreflightFacts) -> Iterator[Problem]:
    """L02: what is on the controllers' disks is of this attempt."""
    if facts.facts.zk_state in (PRE_MIGRATION, MIGRATION):
        return
    ids = {each.node_id for each in facts.controllers} - {None}
    known = {each.node_id for each in facts.metas}
    if facts.facts.zk_state is not None:
        yield Problem(
            "controllers",
            f"The migration state in the controllers' log is {facts.facts.zk_state}.",
            _begin_again(facts),
        )
    elif not ids or not ids <= known:
        sentence = "Whether the controllers' disks are empty, or formatted for this attempt, could not be read."
        yield unread(
            "controllers", sentence, "List the folder metadata.log.dir on each controller before its first start."
        )
    else:
        sentence = (
            "The controllers' disks are formatted. Whether they hold the metadata log of another attempt "
            "could not be read."
        )
        yield unread("controllers", sentence, "Search for __cluster_metadata-0 in each controller's metadata.log.dir.")


def first_epoch(facts: PreflightFacts) -> Iterator[Problem]:
    """L03: a high first epoch is above ``/controller_epoch`` soon, which a rollback must then raise."""
    leader, control = facts.facts.leader, facts.control
    if leader is None or leader.leader_epoch is None:
        remedy = _START_THEM if facts.facts.controllers else _NAME_THEM
        yield unread("controllers", "KRaft's epoch could not be read: no controller leads.", remedy)
        return
    least = control.controller_epoch if control and control.controller_epoch is not None else _FIRST_EPOCHS
    if leader.leader_epoch > max(least, _FIRST_EPOCHS):
        sentence = (
            f"KRaft is at epoch {leader.leader_epoch}, above /controller_epoch {least}. The controllers did not "
            "start at the same time, or many elections took place."
        )
        yield Problem("controllers", sentence, f"{_begin_again(facts)} {_RAISE_IT}")


def _begin_again(facts: PreflightFacts) -> str:
    """Return how to begin again, only if each fact shows that nothing would be lost.

    Fresh controllers that find ``/migration`` of a copy delete from ZooKeeper what they don't know (Z02). Controllers
    with content, or with a broker that is registered in KRaft mode, hold the only copy of the metadata.
    """
    if facts.facts.zk_state == POST_MIGRATION:
        return "The move is final, and the controllers hold the only copy of the metadata. Do not wipe a controller."
    control, items, modes = facts.control, facts.kraft_items, {each.mode for each in facts.facts.brokers}
    is_copied = control is None or control.checkpoint is not None or facts.facts.zk_state == MIGRATION
    has_content = items is None or not _CONTENT.isdisjoint(items["kind"])
    is_used = has_content or any(each.is_migrating is not True for each in facts.facts.registered_brokers)
    is_in_zookeeper = bool(modes) and modes <= {ZOOKEEPER_MODE, MIGRATION_MODE}
    return _WIPE if is_in_zookeeper and not is_copied and not is_used else _KEEP


_CONTENT = frozenset(("topic", "config", "quota", "scram", "acl", "token"))
_NAME_THEM = 'Name them in the profile: [clusters.NAME.kraft] controllers = "host:port,…".'
_START_THEM = (
    "Start all controllers at the same time. If a controller runs but does not answer, or no leader is "
    "elected, see the finding L01."
)
_WIPE = "Stop the controllers, wipe their metadata folders, format them, and start them together with the flag."
_KEEP = (
    "Do not wipe a controller: its log may hold the only copy of the metadata. First check /migration (Z02), the "
    "brokers' modes and the topics in the log."
)
_RAISE_IT = (
    "Or continue the move: a later rollback plan raises /controller_epoch above it (offramp plan kraft --to zookeeper)."
)
_LOG = "ApiVersions, DescribeQuorum, the metadata log"
CHECKS = (
    check(
        "L01",
        BLOCK,
        DUAL_WRITE,
        "All controllers have the same settings, and wait with an empty log.",
        _LOG,
        alike,
        settings=(VOTERS,),
    ),
    check(
        "L02",
        BLOCK,
        DUAL_WRITE,
        "The controllers' disks hold no log of another attempt.",
        "the metadata log, files",
        disks,
    ),
    check("L03", BLOCK, DUAL_WRITE, "KRaft's epoch is low.", "DescribeQuorum, ZooKeeper", first_epoch),
)
