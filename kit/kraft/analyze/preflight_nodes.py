"""Checks of nodes' settings: what brokers and controllers must have alike before the controllers start."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kit.kraft.analyze.node_settings import (
    DECIDING,
    KRAFT,
    STANDARD_AUTHORIZER,
    VERSION,
    VOTERS,
    NodeSettings,
    entries,
    level,
    voter_ids,
)
from kit.kraft.analyze.preflight_checks import (
    COLLECT_FILES,
    CONTROLLERS,
    PreflightFacts,
    Problem,
    check,
    numbers,
    unread,
)
from kit.tables.conditions import BLOCK, WARN

_OLDEST, _SEVERAL_DIRS = level("3.6-IV1") or 0, level("3.7-IV2") or 0
_POLICIES = ("alter.config.policy.class.name", "create.topic.policy.class.name")
_OBSTACLES = ("control.plane.listener.name", "log.message.format.version", "authorizer.class.name")
_AUTHORIZERS = ("", "kafka.security.authorizer.AclAuthorizer", STANDARD_AUTHORIZER)


def versions(facts: PreflightFacts) -> Iterator[Problem]:
    """A01: one inter.broker.protocol.version, not too old, and the controllers' metadata.version."""
    by_version = _by_version(facts)
    for version, names in by_version.items():
        known = level(version)
        if known is None:
            yield unread(
                ", ".join(names),
                f"{VERSION} of {', '.join(names)} is {version or 'not reported'}, so its level is unknown.",
            )
        elif known < _OLDEST:
            sentence = (
                f"{VERSION} of {', '.join(names)} is {version}, but a migration needs 3.6-IV1 or later; 3.9 "
                "is recommended."
            )
            yield Problem(
                ", ".join(names),
                sentence,
                f"Upgrade the brokers to Kafka 3.9, set {VERSION}=3.9, and restart the brokers one by one.",
            )
    if len(by_version) > 1:
        sentence = "; ".join(
            f"{version} of {', '.join(names)}" for version, names in sorted(by_version.items(), key=str)
        )
        yield Problem(
            "brokers",
            f"{VERSION} differs between the brokers: {sentence}.",
            "Set the same version on every broker, and restart the brokers one by one.",
        )
    yield from _finalized(facts, by_version)


def _by_version(facts: PreflightFacts) -> dict[str | None, list[str]]:
    """Return the names of brokers by the version that they are set to, and that they run with if it differs.

    Versions of one level are one: 3.9 in a file, and 3.9-IV0 in a node's answer.
    """
    by_level = dict[int | str | None, tuple[str | None, list[str]]]()
    for broker in _in_zookeeper(facts):
        versions = {broker.name: broker.get(VERSION)}
        if VERSION in broker.running:
            versions[f"{broker.name} as it runs"] = broker.running[VERSION]
        for name, version in versions.items():
            names = by_level.setdefault(level(version) or version, (version, []))[1]
            if broker.name not in names:
                names.append(name)
    return dict(by_level.values())


def _finalized(facts: PreflightFacts, by_version: dict[str | None, list[str]]) -> Iterator[Problem]:
    answered = [each for each in facts.facts.controllers if each.metadata_version is not None]
    if not answered:
        remedy = (
            'Name the controllers in the profile, [clusters.NAME.kraft] controllers = "host:port,…", and start them.'
        )
        yield unread("controllers", "metadata.version of the controllers could not be read: none answered.", remedy)
    for node in answered:
        for version, names in by_version.items():
            if level(version) is not None and level(version) != node.metadata_version:
                yield Problem(
                    ", ".join(names),
                    f"{VERSION} of {', '.join(names)} is {version}, but the controller at {node.address} has "
                    f"metadata.version {node.metadata_version}. These brokers appear healthy, but never register.",
                    f"Set {VERSION} on the brokers to the controllers' version, and restart the brokers one by one.",
                )


def identities(facts: PreflightFacts) -> Iterator[Problem]:
    """A02: every broker's id is in its file, and no controller has it."""
    for broker in _in_zookeeper(facts):
        if re.fullmatch(r"\s*\+?[0-9]+\s*", broker.given.get("broker.id", broker.given.get("node.id", ""))) is None:
            yield Problem(
                broker.name,
                f"{broker.name} has no broker.id in its file. The controllers refuse a broker with a generated id "
                "(KAFKA-17543).",
                "Write broker.id into its file, from its meta.properties.",
            )
    brokers = {each.node_id for each in facts.brokers} | set(facts.control.brokers if facts.control else ())
    controllers = {each.node_id for each in facts.controllers}
    controllers |= {each for node in facts.settings for each in voter_ids(node.get(VOTERS))}
    controllers |= {each for node in facts.facts.nodes for each in node.voters}
    both = sorted(each for each in brokers & controllers if each is not None)
    if both:
        yield Problem(
            "controllers",
            f"A broker and a controller have the same id: {numbers(both)}.",
            "Give the controllers other ids than the brokers.",
        )
    if not controllers:
        yield unread("controllers", "The controllers' ids could not be read: no node names its voters.", COLLECT_FILES)


def log_dirs(facts: PreflightFacts) -> Iterator[Problem]:
    """A03: several log dirs need 3.7-IV2; one that fails stops a broker in migration mode. All are healthy."""
    for broker in facts.brokers:
        dirs, known = entries(broker.get("log.dirs") or broker.get("log.dir")), level(broker.get(VERSION))
        if len(dirs) > 1 and broker.mode != KRAFT and (known is None or known < _SEVERAL_DIRS):
            sentence = (
                f"{broker.name} has {len(dirs)} log.dirs, which needs {VERSION} 3.7-IV2 or later; its value is "
                f"{broker.get(VERSION)}."
            )
            yield Problem(
                broker.name, sentence, f"Set {VERSION}=3.9 on every broker, and restart the brokers one by one."
            )
        if not dirs:
            yield unread(broker.name, f"log.dirs of {broker.name} could not be read.")
    for each in facts.log_dirs:
        if each.path is None:
            sentence = f"Whether the log dirs of broker {each.node_id} are healthy could not be read: {each.error}."
            yield unread(f"broker {each.node_id}", sentence)
        elif each.error is not None:
            sentence = f"The log dir {each.path} of broker {each.node_id} has failed: {each.error}."
            yield Problem(
                f"broker {each.node_id}",
                sentence,
                "Repair the disk and restart the broker. Remove the folder from log.dirs only if each of its "
                "partitions has another replica in sync. Otherwise records are lost.",
            )
    silent = {each.node_id for each in facts.brokers} - {each.node_id for each in facts.log_dirs} - {None}
    for node_id in sorted(silent):  # type: ignore[type-var]
        yield unread(f"broker {node_id}", f"Whether the log dirs of broker {node_id} are healthy was not asked.")


def obstacles(facts: PreflightFacts) -> Iterator[Problem]:
    """A04: settings that behave differently in KRaft, or are gone."""
    for broker in _in_zookeeper(facts):
        authorizer = (broker.get("authorizer.class.name") or "").strip()
        if broker.get("control.plane.listener.name"):
            sentence = (
                f"{broker.name} sets control.plane.listener.name. With this setting, a broker does not start in "
                "KRaft mode (KAFKA-17790)."
            )
            yield Problem(broker.name, sentence, "Remove the setting when the broker goes to KRaft mode.")
        if (
            "log.message.format.version" in broker.given
            and (level(broker.given["log.message.format.version"]) or 0) < 1
        ):
            sentence = (
                f"{broker.name} sets log.message.format.version={broker.given['log.message.format.version']}, "
                "below 3.0."
            )
            yield Problem(broker.name, sentence, "Remove it.")
        if authorizer == _AUTHORIZERS[1]:
            sentence = (
                f"{broker.name} uses AclAuthorizer. With this authorizer, a broker in KRaft mode ends when it starts."
            )
            yield Problem(
                broker.name,
                sentence,
                f"Set authorizer.class.name={STANDARD_AUTHORIZER} when the broker goes to KRaft mode, not before.",
            )
        elif authorizer not in _AUTHORIZERS:
            sentence = (
                f"{broker.name} uses the authorizer {authorizer}. In KRaft mode it also runs on the controllers, "
                "without ZooKeeper."
            )
            yield Problem(broker.name, sentence, "Ask the vendor whether it supports KRaft, and test it in a lab.")
        for key in filter(broker.get, _POLICIES):
            sentence = (
                f"{broker.name} sets {key}={broker.get(key)}. In KRaft mode the policy runs on the controllers, with "
                "other arguments (KIP-1252)."
            )
            yield Problem(broker.name, sentence, "Add its class to the controllers' class path, and test it in a lab.")


def _in_zookeeper(facts: PreflightFacts) -> list[NodeSettings]:
    return [each for each in facts.brokers if each.mode != KRAFT]


_BROKERS = ("brokers",)
_DIRS = "DescribeConfigs, DescribeLogDirs"
_ASKED, _FILES = "DescribeConfigs", "DescribeConfigs, files"
CHECKS = (
    check(
        "A01",
        BLOCK,
        CONTROLLERS,
        "All versions are the same, and new enough.",
        f"{_ASKED}, ApiVersions",
        versions,
        _BROKERS,
        (VERSION, *DECIDING),
    ),
    check(
        "A02",
        BLOCK,
        CONTROLLERS,
        "Every broker has a unique id in its file.",
        _FILES,
        identities,
        _BROKERS,
        (VOTERS, *DECIDING),
    ),
    check(
        "A03",
        BLOCK,
        CONTROLLERS,
        "The version allows as many log.dirs as there are, and all are healthy.",
        _DIRS,
        log_dirs,
        _BROKERS,
        ("log.dirs", "log.dir", VERSION, *DECIDING),
    ),
    check(
        "A04",
        WARN,
        CONTROLLERS,
        "No broker has a setting whose meaning changes in KRaft mode.",
        _ASKED,
        obstacles,
        _BROKERS,
        (*_OBSTACLES, *_POLICIES, *DECIDING),
    ),
)
