"""Judge the checks of ``kit.protocol.checks`` that concern the whole cluster: problems, or nothing if met."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kit.protocol.brokers import (
    POLICY,
    PROTOCOLS,
    BrokerFacts,
)
from kit.protocol.facts import GroupFacts
from kit.tables.groups import CONSUMER
from kit.text.visible import visible

_UPGRADE, _DOWNGRADE = ("upgrade", "bidirectional"), ("downgrade", "bidirectional")


@dataclass(frozen=True, slots=True)
class Problem:
    """``is_met`` None: the answer is unknown."""

    sentence: str
    remedy: str = ""
    is_met: bool | None = False


def brokers(facts: GroupFacts) -> Iterator[Problem]:
    for each in facts.all.cluster.brokers:
        if each.error is not None:
            yield _unknown_broker(each)
        elif (each.heartbeat or 0) < 1:
            release = f"Kafka {_release(each)}" if each.release else "a release before 4.0"
            yield Problem(
                f"Broker {each.broker_id} runs {release}. Groups of the consumer protocol need 4.0 on every broker.",
                f"Upgrade broker {each.broker_id} to 4.3 or later.",
            )


def feature(facts: GroupFacts) -> Iterator[Problem]:
    level = facts.all.cluster.group_version
    if level is None:
        yield Problem("No broker reports the finalized features.", "Check the brokers, then run the check again.", None)
    elif level < 1:
        yield Problem(
            "The feature group.version is not finalized. The brokers refuse the consumer protocol, whatever their"
            " release.",
            "Run: kafka-features.sh --bootstrap-server HOST:PORT upgrade --feature group.version=1. After a group used"
            " the protocol, the brokers can't be downgraded below 3.4.1.",
        )


def protocols(facts: GroupFacts) -> Iterator[Problem]:
    for each in facts.all.cluster.brokers:
        names = each.names(PROTOCOLS)
        if each.unread is not None:
            yield unknown_settings(each)
        elif names is not None and CONSUMER not in names:
            yield Problem(
                f"Broker {each.broker_id} has {PROTOCOLS}={','.join(names)}, without consumer.",
                f"Set {PROTOCOLS}=classic,consumer on broker {each.broker_id} and restart it.",
            )


def policy(facts: GroupFacts) -> Iterator[Problem]:
    """Conversions of groups without members are always allowed."""
    wanted, name = (_UPGRADE, "upgrade") if facts.request.to == CONSUMER else (_DOWNGRADE, "downgrade")
    yield from _policies(facts, wanted, f"The {name} of a group with members is off")
    values = {_policy(each) for each in facts.all.cluster.brokers} - {None}
    if len(values) > 1:
        yield Problem(
            f"Brokers differ in {POLICY}: {', '.join(sorted(map(str, values)))}. A group's coordinator can change.",
            f"Set {POLICY}=bidirectional on every broker and restart the brokers one by one.",
        )


def way_back(facts: GroupFacts) -> Iterator[Problem]:
    yield from _policies(facts, _DOWNGRADE, "A group with members can't be moved back")


def release(facts: GroupFacts) -> Iterator[Problem]:
    for each in facts.all.cluster.brokers:
        if each.level is None:
            yield _unknown_broker(each) if each.error else _unknown_release(each)
        elif each.release in ((4, 0), (4, 1)):
            fixed = {(4, 0): "4.0.2", (4, 1): "4.1.2"}[each.release]
            yield Problem(
                f"Broker {each.broker_id} runs Kafka {_release(each)}; no request gives the patch release."
                f" Before {fixed} a coordinator may fail to load __consumer_offsets during compaction (KAFKA-19862).",
                f"If broker {each.broker_id} runs a release before {fixed}, upgrade it, best to 4.3.1 or later.",
                None,
            )
        elif each.release == (4, 2):
            yield Problem(
                f"Broker {each.broker_id} runs Kafka 4.2. Before 4.3 a commit with an older epoch is refused during a"
                " rebalance (KIP-1251).",
                f"Upgrade broker {each.broker_id} to 4.3.1 or later.",
            )


def downgrade_bug(facts: GroupFacts) -> Iterator[Problem]:
    levels = [each.level for each in facts.all.cluster.brokers]
    if None in levels or any(each.release is None for each in facts.all.cluster.brokers):
        yield Problem(
            "The release of a broker is unknown, so it is unknown whether it has the fix of KAFKA-21117.",
            "Find KAFKA-21117 in the release notes of the brokers.",
            None,
        )
        return
    yield Problem(
        "KAFKA-21117 is open in every release up to 4.4. After a move back, a coordinator that loads __consumer_offsets"
        " while it is compacted may fail to load.",
        "Restart no broker after the move back until log.cleaner.delete.retention.ms (1 day by default) has passed.",
    )


def _policy(broker: BrokerFacts) -> str | None:
    value = broker.settings.get(POLICY)
    return value.lower() if value is not None else None


def _policies(facts: GroupFacts, allowed: tuple[str, ...], effect: str) -> Iterator[Problem]:
    for each in facts.all.cluster.brokers:
        value = _policy(each)
        if each.unread is not None:
            yield unknown_settings(each)
        elif value is None:
            yield Problem(f"Broker {each.broker_id} does not report {POLICY}.", "Upgrade the broker to 4.0.", None)
        elif value not in allowed:
            yield Problem(
                f"Broker {each.broker_id} has {POLICY}={visible(value)}. {effect}.",
                f"Set {POLICY}=bidirectional on every broker and restart the brokers one by one. Or stop all members"
                " for the move.",
            )


def _unknown_broker(broker: BrokerFacts) -> Problem:
    return Problem(f"The release of broker {broker.broker_id} is unknown: {broker.error}.", "Check the broker.", None)


def _unknown_release(broker: BrokerFacts) -> Problem:
    return Problem(
        f"Broker {broker.broker_id} does not report its newest metadata.version.", "Check its release.", None
    )


def unknown_settings(broker: BrokerFacts) -> Problem:
    why = broker.unread or f"broker {broker.broker_id} does not report the setting"
    return Problem(
        f"The settings of broker {broker.broker_id} are unknown: {why}.",
        "Grant the login DESCRIBE_CONFIGS on the cluster.",
        None,
    )


def _release(broker: BrokerFacts) -> str:
    return ".".join(map(str, broker.release or ()))
