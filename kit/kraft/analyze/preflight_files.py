"""Checks of what controllers must have as the brokers have it; most need the controllers' files."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from kit.kraft.analyze.kafka_values import NotAllowed, value_of
from kit.kraft.analyze.node_settings import (
    CONTROLLER,
    DECIDING,
    ENCODER_SECRET,
    KRAFT,
    NodeSettings,
    advertised_listeners,
    inter_broker_listener,
)
from kit.kraft.analyze.preflight_checks import CONTROLLERS, PreflightFacts, Problem, check, numbers, unread
from kit.tables.conditions import BLOCK, WARN
from kit.text.kafka_settings import settings

_DEFAULTS = (
    "delete.topic.enable",
    "auto.create.topics.enable",
    "default.replication.factor",
    "num.partitions",
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "message.max.bytes",
)


def listeners(facts: PreflightFacts) -> Iterator[Problem]:
    """A05: controllers dial brokers on one listener, which every broker has; so do brokers among each other."""
    of_brokers = {inter_broker_listener(each) for each in facts.brokers}
    if any(not of_brokers <= advertised_listeners(each) for each in facts.brokers):
        sentence = (
            f"The brokers use different inter-broker listeners ({numbers(of_brokers)}), and not every broker "
            "has each of them."
        )
        yield Problem(
            "brokers", sentence, "Set the same inter-broker listener on every broker. Restart the brokers one by one."
        )
    for controller in facts.controllers:
        name = inter_broker_listener(controller)
        lacking = [each.name for each in facts.brokers if name not in advertised_listeners(each)]
        if lacking and controller.mode == CONTROLLER:
            yield Problem(
                controller.name,
                f"{controller.name} has inter.broker.listener.name {name}, which {numbers(lacking)} lacks; the "
                f"brokers use {numbers(of_brokers)}. The controllers can't send requests to the brokers (KAFKA-15670).",
                f"Set inter.broker.listener.name={min(of_brokers)} and its entry in listener.security.protocol.map.",
            )


def defaults(facts: PreflightFacts) -> Iterator[Problem]:
    """A07: what brokers decided for new topics, controllers decide in KRaft."""
    for key in _DEFAULTS:
        values = {_effective(each, key) for each in facts.brokers if key in each.given}
        for controller in facts.controllers:
            if values and _effective(controller, key) not in values:
                yield Problem(
                    controller.name,
                    f"Brokers set {key}={numbers(values)}, and {controller.name} sets "
                    f"{controller.given.get(key, 'nothing')}. In KRaft mode, the controller's value applies.",
                    f"Set {key} on every controller as on the brokers.",
                )


def _effective(node: NodeSettings, key: str) -> str:
    """The value in force, in one spelling; of what Kafka does not read (N12) the text."""
    text = node.get(key)
    try:
        value = value_of(settings()[key], settings()[key].default if text is None else text)
    except NotAllowed:
        return str(text)
    return str(value).lower()


def encoder_secret(facts: PreflightFacts) -> Iterator[Problem]:
    """Z12: encrypted passwords among dynamic settings need the same encoder secret on controllers."""
    assert facts.items is not None
    rows = facts.items.filter((facts.items["kind"] == "config") & facts.items["is_secret"])
    wrong = facts.items_of("config").filter(
        pl.col("entity").str.contains("^brokers/|^$"), pl.col("error").is_not_null()
    )
    for error, is_refused in wrong.select("error", "is_refused").iter_rows():
        sentence = f"{error}. Whether this znode holds encrypted settings is unknown."
        yield unread("brokers", sentence, is_refused=is_refused)
    if rows.is_empty():
        return
    if not facts.controllers:
        sentence = (
            f"ZooKeeper holds encrypted settings, and whether the controllers have {ENCODER_SECRET} could not be read."
        )
        yield unread("controllers", sentence, "Give the controllers' files in --settings-dir.")
    prints = {each.secrets.get(ENCODER_SECRET) for each in facts.brokers} - {None, ""}
    for controller in facts.controllers:
        print_ = controller.secrets.get(ENCODER_SECRET)
        if print_ is None:
            sentence = (
                f"{controller.name} has no {ENCODER_SECRET}. The copy would store encrypted settings as cipher text."
            )
            yield Problem(
                controller.name,
                sentence,
                f"Give {ENCODER_SECRET} and the other password.encoder settings the brokers' values.",
            )
        elif not print_ or not prints:
            sentence = f"Whether {controller.name} has the brokers' {ENCODER_SECRET} could not be read."
            yield unread(controller.name, sentence, "Give the files of controllers and brokers in --settings-dir.")
        elif {print_} != prints:
            sentence = f"{controller.name} has another {ENCODER_SECRET} than the brokers, so the copy aborts."
            yield Problem(controller.name, sentence, f"Give {ENCODER_SECRET} the brokers' value on every controller.")


def cluster_ids(facts: PreflightFacts) -> Iterator[Problem]:
    """Z13: every formatted folder is of this cluster."""
    assert facts.control is not None
    if facts.control.cluster_id is None:
        refused = facts.control.refused("/cluster/id")
        sentence = f"{refused or 'ZooKeeper holds no /cluster/id'}."
        yield unread("/cluster/id", sentence, is_refused=refused is not None)
        return
    for meta in facts.metas:
        if meta.cluster_id is None:
            yield unread(meta.file, f"{meta.file} names no cluster.id.")
        elif meta.cluster_id != facts.control.cluster_id:
            sentence = (
                f"{meta.file} is of cluster {meta.cluster_id}, but ZooKeeper is of cluster {facts.control.cluster_id}."
            )
            yield Problem(
                meta.file,
                sentence,
                "Do not format this disk: it may hold the data of another cluster. Find out to which cluster it "
                "belongs.",
            )


def chroots(facts: PreflightFacts) -> Iterator[Problem]:
    """Z15: controllers with another chroot find an empty namespace, which they make themselves.

    Brokers that are all in KRaft mode name no ZooKeeper any more, and these controllers lead them.
    """
    if facts.brokers and all(each.mode == KRAFT for each in facts.brokers):
        return
    of_brokers = {_chroot(each) for each in facts.brokers} - {None}
    for controller in facts.controllers:
        chroot = _chroot(controller)
        if chroot is None:
            yield unread(
                controller.name,
                f"{controller.name} has no zookeeper.connect.",
                "Write the brokers' zookeeper.connect into the controller's file.",
            )
        elif not of_brokers:
            yield unread(controller.name, "The brokers' zookeeper.connect could not be read.")
        elif {chroot} != of_brokers:
            yield Problem(
                controller.name,
                f"zookeeper.connect of {controller.name} has the chroot {chroot}, but the brokers have "
                f"{numbers(of_brokers)}. The controllers would wait forever in an empty namespace.",
                "Write the brokers' zookeeper.connect into every controller's file.",
            )


def _chroot(node: NodeSettings) -> str | None:
    connect = node.get("zookeeper.connect")
    return None if not connect else "/" + connect.strip().partition("/")[2].strip("/")


_BOTH = ("brokers", "controllers")
_OF_ZOOKEEPER = ("zookeeper.connect", *DECIDING)
_OF_LISTENERS = (
    "inter.broker.listener.name",
    "security.inter.broker.protocol",
    "listeners",
    "advertised.listeners",
    *DECIDING,
)
_FILES = "DescribeConfigs, files"
CHECKS = (
    check(
        "Z12",
        BLOCK,
        CONTROLLERS,
        "The controllers have the secret of every encrypted setting.",
        _FILES,
        encoder_secret,
        ("items",),
    ),
    check(
        "Z13",
        BLOCK,
        CONTROLLERS,
        "Every meta.properties is of this cluster.",
        "files",
        cluster_ids,
        ("control", "metas"),
    ),
    check(
        "Z15",
        BLOCK,
        CONTROLLERS,
        "Controllers and brokers use the same ZooKeeper chroot.",
        _FILES,
        chroots,
        _BOTH,
        _OF_ZOOKEEPER,
    ),
    check(
        "A05",
        BLOCK,
        CONTROLLERS,
        "Controllers use the brokers' inter-broker listener.",
        _FILES,
        listeners,
        _BOTH,
        _OF_LISTENERS,
    ),
    check(
        "A07",
        WARN,
        CONTROLLERS,
        "The controllers have the same defaults for topics as the brokers.",
        _FILES,
        defaults,
        _BOTH,
        _DEFAULTS,
    ),
)
