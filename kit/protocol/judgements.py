"""Judge each check of ``kit.protocol.checks`` for one group: problems, or nothing if the check is met."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kit.protocol.brokers import (
    ASSIGNORS,
    CLASSIC_MAX_SIZE,
    MAX_SIZE,
    RETENTION,
    RETENTION_CHECK,
)
from kit.protocol.cluster_judgements import Problem, unknown_settings
from kit.protocol.facts import GroupFacts
from kit.protocol.stage import Stage
from kit.tables.groups import CLASSIC, CONSUMER
from kit.text.duration import duration
from kit.text.naming import shortened
from kit.text.quantity import quantity
from kit.text.visible import argument, visible

STREAMS_ASSIGNOR = "stream"
KAFKAS_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""The assignors of Kafka's Java client; librdkafka and Sarama have the same names."""
_SHOWN = 3


def protocol_type(facts: GroupFacts) -> Iterator[Problem]:
    kind = facts.group.protocol_type
    if kind not in ("", CONSUMER):
        yield Problem(
            f"The protocol type of the group is {visible(kind)} (Kafka Connect, Schema Registry, or the like). The"
            " brokers convert groups of the protocol type consumer alone.",
            "Leave this group on the classic protocol.",
        )


def streams(facts: GroupFacts) -> Iterator[Problem]:
    if facts.group.group_type != CONSUMER and facts.group.assignor == STREAMS_ASSIGNOR:
        yield Problem(
            "The group is an application of Kafka Streams. It has a protocol of its own (KIP-1071).",
            "Use group.protocol=streams with brokers of 4.2.1 or later, with all instances stopped.",
        )


def user_data(facts: GroupFacts) -> Iterator[Problem]:
    if facts.group.group_type == CONSUMER or facts.group.protocol_type not in ("", CONSUMER):
        return
    for each in facts.members:
        if each.user_data:
            yield Problem(
                f"The assignment of member {visible(each.member_id)} has {quantity(each.user_data, 'byte')} of user"
                f" data (assignor {visible(facts.group.assignor or 'unknown')}). The brokers refuse to convert the"
                " group while it has members.",
                "Change the assignor first (Sarama: range or cooperative-sticky), or stop all members for the move.",
            )
        elif each.user_data is None and each.error is None:
            yield _not_reported(each.member_id)


def malformed(facts: GroupFacts) -> Iterator[Problem]:
    for each in facts.members:
        if each.error is not None:
            yield Problem(
                f"Member {visible(each.member_id)}: {each.error}.",
                "Upgrade or repair this client, then run the check again.",
            )


def stable(facts: GroupFacts) -> Iterator[Problem]:
    group = facts.group
    if not group.is_settled:
        epochs = (
            "" if group.epoch is None else f", group epoch {group.epoch}, assignment epoch {group.assignment_epoch}"
        )
        yield Problem(f"The group is in the state {group.state}{epochs}.", "Wait until the rebalance has ended.")


def size(facts: GroupFacts) -> Iterator[Problem]:
    name = MAX_SIZE if facts.request.to == CONSUMER else CLASSIC_MAX_SIZE
    unread = [each for each in facts.all.cluster.brokers if each.unread is not None]
    limits = facts.all.cluster.numbers(name)
    if limits and len(facts.members) > min(limits):
        yield Problem(
            f"The group has {quantity(len(facts.members), 'member')}; {name} is {min(limits)}.",
            f"Raise {name} on every broker, or stop members.",
        )
    elif unread:
        yield from map(unknown_settings, unread)


def copartition(facts: GroupFacts) -> Iterator[Problem]:
    n_topics = len(facts.topics)
    if facts.group.group_type == CONSUMER or facts.group.assignor != "range" or n_topics < 2:
        return
    chosen = facts.answers.assignor
    defaults = {names[0] for each in facts.all.cluster.brokers if (names := each.names(ASSIGNORS))}
    if chosen is None and defaults == {"range"}:
        return
    if chosen != "range":
        yield Problem(
            f"The assignor range gives equal partitions of {n_topics} topics to one member. The assignor"
            f" {visible(chosen or ', '.join(sorted(defaults)) or 'uniform')} does not.",
            "If the application needs it, set group.remote.assignor=range in every new member.",
        )


def assignor(facts: GroupFacts) -> Iterator[Problem]:
    name = facts.group.assignor
    if facts.group.group_type != CONSUMER and name and name not in (*KAFKAS_ASSIGNORS, STREAMS_ASSIGNOR):
        yield Problem(
            f"The assignor {visible(name)} is not one of Kafka's. The first consumer-protocol member ends its"
            " placement: the brokers assign partitions then, and take no assignor of clients (KAFKA-18327).",
            "If the application needs this placement, leave the group on the classic protocol.",
        )


def assignor_known(facts: GroupFacts) -> Iterator[Problem]:
    wanted = facts.answers.assignor
    for each in facts.all.cluster.brokers if wanted else ():
        names = each.names(ASSIGNORS)
        if names is None:
            yield unknown_settings(each)
        elif wanted not in names:
            yield Problem(
                f"Broker {each.broker_id} has {ASSIGNORS}={','.join(names)}, without {visible(wanted or '')}. A client"
                f" with group.remote.assignor={visible(wanted or '')} ends with UNSUPPORTED_ASSIGNOR.",
                f"Add the assignor to {ASSIGNORS} on every broker, or choose one that all brokers have.",
            )


def rack(facts: GroupFacts) -> Iterator[Problem]:
    racks = {each.rack for each in facts.members if each.rack}
    if racks:
        yield Problem(
            f"Members name racks: {_some(racks)}. The brokers' assignors use racks only in part (KAFKA-19387).",
            "Compare the traffic between racks before and after the canary.",
        )


def session(facts: GroupFacts) -> Iterator[Problem]:
    if facts.group.stage not in (Stage.CLASSIC, Stage.CANARY, Stage.MIXED) or facts.session_ms is None:
        return
    commits, new = facts.all.commits, duration(facts.session_ms)
    if commits is None or facts.group.group_type == CONSUMER:
        yield Problem(
            f"A lost consumer-protocol member is noticed after {new}. The session timeouts of classic members are"
            " unknown.",
            "Compare session.timeout.ms of the clients. A group has its own value: "
            + _session_command(facts, "MILLISECONDS"),
            None,
        )
        return
    old = commits.sessions.get(facts.group.group_id, frozenset()) - {facts.session_ms}
    if old:
        longest = max(old)
        yield Problem(
            f"A lost classic member is noticed after {duration(longest)}, a lost consumer-protocol member after {new}.",
            f"To keep the old timeout, within the brokers' limits: {_session_command(facts, str(longest))}",
        )


def static(facts: GroupFacts) -> Iterator[Problem]:
    names = [each.instance_id for each in facts.members if each.instance_id]
    if names:
        after = "the session timeout" if facts.session_ms is None else duration(facts.session_ms)
        yield Problem(
            f"{quantity(len(names), 'member')} {'is' if len(names) == 1 else 'are'} static: {_some(names)}. A second"
            " consumer-protocol process with the instance id of a living one ends with UNRELEASED_INSTANCE_ID.",
            f"Keep the instance ids, and stop each process before its replacement starts. After a kill, wait {after}.",
        )


def old_commits(facts: GroupFacts) -> Iterator[Problem]:
    """Under the consumer protocol an offset expires by the time of its commit, in a classic group by the time at which
    the group became empty (``ConsumerGroup.offsetExpirationCondition``, 3.8 to 4.4)."""
    count, commits, name = facts.n_expiring, facts.all.commits, argument(facts.group.group_id)
    if count is None:
        if commits is None:
            why, remedy = (
                "only __consumer_offsets has the time of each commit",
                f"Run: offramp protocol check --offsets-topic -g {name}",
            )
        elif (problem := commits.problem(facts.group.group_id)) is not None:
            why, remedy = f"__consumer_offsets was not read completely ({problem})", "Run this again."
        else:
            why, remedy = f"a broker does not report {RETENTION}", "Grant the login DESCRIBE_CONFIGS on the cluster."
        yield Problem(f"The commit time of each offset is unknown: {why}.", remedy, None)
    elif count and facts.retention_ms is not None:
        every = min(facts.all.cluster.numbers(RETENTION_CHECK), default=600_000)
        yield Problem(
            f"{quantity(count, 'offset')} of the group {'was' if count == 1 else 'were'} last committed more than"
            f" {duration(facts.retention_ms)} ago ({RETENTION}). If the group has no members under the consumer"
            f" protocol for {duration(every)}, the brokers delete {'it' if count == 1 else 'them'}.",
            f"Raise {RETENTION} on every broker. Or commit every offset again after the last classic member stopped and"
            " before the first consumer-protocol member starts: kafka-consumer-groups.sh --bootstrap-server HOST:PORT"
            f" --reset-offsets --to-current --all-topics --execute --group {name}",
        )


def regex(facts: GroupFacts) -> Iterator[Problem]:
    patterns = [each for each in facts.members if each.pattern]
    classic = [each for each in facts.members if each.protocol == CLASSIC]
    if len({each.topics for each in classic}) > 1:
        yield Problem(
            "Members subscribe to different topics, so some may subscribe by a pattern. The brokers match a pattern"
            " with the whole name of a topic (RE2/J).",
            "In librdkafka, write ^prefix.* instead of ^prefix in consumer-protocol members.",
        )
    elif patterns and classic:
        yield Problem(
            f"Member {visible(patterns[0].member_id)} subscribes by the pattern {visible(patterns[0].pattern or '')}."
            " The brokers match it with the whole name of a topic (RE2/J).",
            "Check that the pattern matches every topic of the classic members.",
        )


def rights(facts: GroupFacts) -> Iterator[Problem]:
    hidden = facts.topics & facts.all.hidden if facts.all.hidden is not None else set()
    if hidden:
        yield Problem(
            f"The login may not describe {_some(hidden)}. Once the group is converted, the brokers refuse to describe"
            " the whole group.",
            "Grant the login DESCRIBE on every topic of the group.",
        )
    if not facts.answers.rights_granted:
        yield Problem(
            "No request reports the rights of the clients. Each client needs READ on the group and DESCRIBE on its"
            " topics.",
            "Check the ACLs, then answer with --rights-granted.",
            None if facts.answers.rights_granted is None else False,
        )


def clients(facts: GroupFacts) -> Iterator[Problem]:
    if not facts.answers.clients_ready:
        yield Problem(
            "No request reports the release and the settings of clients. The consumer protocol needs Java clients of"
            " 4.0 or later, or librdkafka of 2.15 or later.",
            "In each client remove session.timeout.ms, heartbeat.interval.ms and partition.assignment.strategy, and"
            " check that its rebalance callbacks are incremental. Then answer with --clients-ready.",
            None if facts.answers.clients_ready is None else False,
        )


def monitoring(facts: GroupFacts) -> Iterator[Problem]:
    tools = facts.answers.monitoring
    if tools is None:
        yield Problem(
            "Tools that read groups by DescribeGroups alone show a converted group as Dead. Which tools do is unknown.",
            "Answer with --monitoring TOOL for each such tool, or with --monitoring none.",
            None,
        )
    elif tools:
        yield Problem(
            f"{_some(tools)} will show the group as Dead from the first consumer-protocol member on.",
            "Upgrade each of these tools, or inform its users before the canary.",
        )


def _not_reported(member_id: str) -> Problem:
    return Problem(
        f"The assignment of member {visible(member_id)} is not reported, as while the group rebalances.",
        "Wait until the group is stable, then run the check again.",
        None,
    )


def _session_command(facts: GroupFacts, value: str) -> str:
    return (
        f"kafka-configs.sh --bootstrap-server HOST:PORT --alter --group {argument(facts.group.group_id)}"
        f" --add-config consumer.session.timeout.ms={value}"
    )


def _some(names: Iterable[str]) -> str:
    return shortened(sorted(visible(each) for each in names), _SHOWN)
