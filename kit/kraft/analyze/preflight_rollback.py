"""Checks of a rollback to ZooKeeper, and of any time."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from kit.kraft.analyze.contradictions import findings
from kit.kraft.analyze.node_settings import (
    DECIDING,
    ZOOKEEPER as ZOOKEEPER_MODE,
)
from kit.kraft.analyze.phase import KRAFT, UNKNOWN, phase
from kit.kraft.analyze.preflight_checks import ANY, ROLLBACK, PreflightFacts, Problem, check, unread
from kit.tables.conditions import ALARM, BLOCK
from kit.text.quantity import quantity


def epochs(facts: PreflightFacts) -> Iterator[Problem]:
    """R01: after a rollback the ZooKeeper controller must have the highest epoch of all."""
    control = facts.control
    assert control is not None
    paths = ("/controller_epoch", "/controller", "/migration", "/brokers/topics")
    refused = {path: sentence for path in paths if (sentence := control.refused(path)) is not None}
    if refused:
        yield from (unread(path, f"{sentence}.", is_refused=True) for path, sentence in refused.items())
    elif control.controller_epoch is None or control.max_state_epoch is None:
        yield unread("/controller_epoch", "/controller_epoch, or the epochs of partitions, could not be read.")
    if control.controller_epoch is None or control.max_state_epoch is None:
        return
    yield from facts.unparsed()
    kraft = control.kraft_controller_epoch if control.is_controller_persistent else None
    highest = max(control.max_state_epoch, kraft or 0, control.checkpoint_epoch or 0)
    if highest > control.controller_epoch:
        sentence = (
            f"/controller_epoch is {control.controller_epoch}, but epoch {highest} was used (partitions "
            f"{control.max_state_epoch}"
        )
        sentence += (
            f", /controller {kraft}, /migration {control.checkpoint_epoch}). Partitions would stay offline after a "
            "rollback."
        )
        yield Problem("/controller_epoch", sentence, _RAISED)


def not_alike(facts: PreflightFacts) -> Iterator[Problem]:
    """R02: what ZooKeeper lacks is lost with the controllers."""
    assert facts.differences is not None
    for verdict, name in (
        ("diverged", "with a difference"),
        ("in_flight", "on the way"),
        ("unknown", "not compared"),
    ):
        n_rows = facts.differences.filter(pl.col("verdict") == verdict).height
        if n_rows:
            sentence = f"{quantity(n_rows, 'value')} {name} between ZooKeeper and KRaft."
            is_met = None if verdict == "unknown" else False
            yield Problem(verdict, sentence, "Repair the differences until `offramp kraft diff` reports none.", is_met)


def formatted(facts: PreflightFacts) -> Iterator[Problem]:
    """R03: a broker that was formatted for KRaft can't go back, nor one whose file for ZooKeeper mode is gone."""
    brokers = {each.node_id for each in facts.brokers} | {each.node_id for each in facts.facts.brokers}
    brokers |= set(facts.control.brokers if facts.control else ())
    for meta in facts.metas:
        if meta.version is None:
            yield unread(meta.file, f"{meta.file} has no version that can be read.")
        elif meta.version != 0 and meta.node_id in brokers:
            sentence = (
                f"{meta.file} of broker {meta.node_id} has version {meta.version}, but ZooKeeper mode needs version 0."
            )
            yield Problem(meta.file, sentence, "Move its replicas to other brokers before a rollback.")
    yield from _not_saved(facts)


def _not_saved(facts: PreflightFacts) -> Iterator[Problem]:
    """Yield each broker that has left, or may have left, ZooKeeper mode and whose earlier file is missing; of a
    node's files the first mode's counts.
    """
    gone = {each.node_id for each in facts.facts.brokers if each.mode != ZOOKEEPER_MODE}
    for broker in facts.brokers:
        if broker.node_id not in gone or (not broker.is_told and broker.mode == ZOOKEEPER_MODE):
            continue
        if broker.is_told:
            sentence = (
                f"Whether the file of {broker.name} for ZooKeeper mode was saved could not be read: no file was given."
            )
            yield unread(broker.name, sentence, f"Put this file into the folder of --settings-dir. {_MAKE_IT}")
        else:
            sentence = (
                f"No file starts {broker.name} in ZooKeeper mode: {broker.source} starts it in {broker.mode} mode."
            )
            yield Problem(
                broker.name,
                sentence,
                f"Put the file from before the move into the folder of --settings-dir. {_MAKE_IT}",
            )


def still_kraft(facts: PreflightFacts) -> Iterator[Problem]:
    """R04: a broker in KRaft mode hangs when the controllers stop."""
    if not facts.facts.brokers:
        yield unread("brokers", "The brokers' modes could not be read: no broker was asked.")
    for node in facts.facts.brokers:
        if node.mode is None:
            yield unread(f"broker {node.address}", f"{node.error or node.address + ' did not report its mode'}.")
        elif node.mode == KRAFT:
            sentence = f"The broker at {node.address} runs in KRaft mode, so it hangs when the controllers stop."
            yield Problem(
                f"broker {node.address}",
                sentence,
                "Restart this broker in migration mode, and wait until it is in sync.",
            )
    asked = {each.node_id for each in facts.facts.brokers}
    for node_id in sorted({each.node_id for each in facts.facts.registered_brokers} - asked):
        yield unread(f"broker {node_id}", f"Broker {node_id} is registered with the controllers, but was not asked.")


def contradictions(facts: PreflightFacts) -> Iterator[Problem]:
    """P01: facts that can't be true at once, in any phase."""
    for each in findings(facts.facts):
        if each.severity == ALARM:
            yield Problem(each.subject, each.sentence, each.remedy, severity=each.severity)
    if not facts.facts.has_log and not all(each.is_stopped for each in facts.facts.controllers):
        why = facts.facts.log_error or "no plan asked for it"
        yield unread("the metadata log", f"The metadata log could not be read: {why}.", "Run: offramp kraft status")
    if phase(facts.facts) == UNKNOWN:
        why = facts.facts.log_error or facts.facts.control_error or "the facts contradict each other or are incomplete"
        yield unread("cluster", f"The phase of the migration is not known: {why}.", "Run: offramp kraft status")


_RAISED = (
    "To roll back, use a plan, which raises the epoch in the transaction that deletes /controller: offramp plan "
    "kraft --to zookeeper. Do not write /controller_epoch while controllers run."
)
_MAKE_IT = "offramp kraft preflight --write-settings FOLDER makes the file, without its secrets."
_LOG = "ApiVersions, DescribeQuorum, the metadata log"
CHECKS = (
    check("R01", BLOCK, ROLLBACK, "/controller_epoch is the highest epoch.", "ZooKeeper", epochs, ("control",)),
    check("R02", BLOCK, ROLLBACK, "ZooKeeper and KRaft hold the same values.", "the diff", not_alike, ("differences",)),
    check(
        "R03",
        BLOCK,
        ROLLBACK,
        "No broker was formatted for KRaft, and each broker's file for ZooKeeper mode was saved.",
        "files",
        formatted,
        ("metas",),
        DECIDING,
    ),
    check("R04", BLOCK, ROLLBACK, "No broker runs in KRaft mode.", "ApiVersions", still_kraft),
    check("P01", ALARM, ANY, "No fact contradicts another.", _LOG, contradictions),
)
