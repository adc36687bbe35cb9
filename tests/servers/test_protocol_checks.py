"""Each check of a move to the consumer protocol (KIP-848), provoked on a real broker: 4.4, 4.1 and 3.9."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from typer.testing import CliRunner

from kit import connect
from kit.cli.main import app
from kit.clients.cluster import Cluster
from kit.consumer.kafka.consumer import KafkaConsumer
from kit.lab import Lab
from kit.lab.topics import QUIET
from kit.profile import load_profile
from kit.protocol.checks import CHECKS, check_group
from kit.protocol.facts import Answers, ProtocolFacts, Request
from kit.protocol.verdicts import read_facts, verdict, verdicts
from kit.tables.conditions import Condition
from tests.servers.awaiting import awaited
from tests.servers.many_groups import commit_groups
from tests.servers.raw_member import RawMember, answer_to_new_member, assignment, subscription
from tests.servers.tuned_lab import TunedLab

TOPIC, OTHER = "protocol-checks", "protocol-checks-too"
DAY_MS = 86_400_000
REFUSED = "The group id does not exist"
"""GROUP_ID_NOT_FOUND, with which a broker refuses to convert a group."""
READY = Answers(clients_ready=True, rights_granted=True, monitoring=())


@pytest.fixture(scope="module")
def profile_file(kraft_lab: Lab) -> Path:
    path = kraft_lab.folder / "protocol-checks.toml"
    path.write_text(kraft_lab.profile_toml())
    kraft_lab.create_topics({TOPIC: 2, OTHER: 2})
    return path


@pytest.fixture(scope="module")
def cluster(profile_file: Path) -> Iterator[Cluster]:
    with connect(load_profile(file=profile_file)) as connected:
        yield connected


def facts_of(cluster: Cluster, group: str, **more) -> ProtocolFacts:
    return read_facts(cluster, lambda name: name == group, **more)


def found(facts: ProtocolFacts, request: Request, *, to_group: str = "") -> dict[str, Condition]:
    """The first finding of each check that is not met, or unknown."""
    (group,) = facts.groups.values()
    every = check_group(facts, group, request)
    assert {each.check_id for each in every} == {each.rule.check_id for each in CHECKS if request.to in each.to}
    assert all(each.sentence and each.source for each in every)
    assert all(bool(each.remedy) == (each.is_met is not True) for each in every)
    problems: dict[str, Condition] = {}
    for each in every:
        if each.is_met is not True:
            problems.setdefault(each.check_id, each)
    return problems


def test_a_group_that_is_ready_passes_every_check_that_can_be_read(cluster):
    RawMember("ready", subscription([TOPIC]), assignment()).join(cluster.broker_client)
    facts = facts_of(cluster, "ready", offsets_topic=True)
    problems = found(facts, Request(answers=READY))
    assert set(problems) == {"k848_session"}
    row = verdict(facts, facts.groups["ready"], Request(answers=READY))
    assert (row.stage, row.rolling, row.stopped, row.loses_offsets) == ("classic", "yes", "yes", 0)
    assert (row.blocked_by, row.unknown, row.to_answer) == ((), (), ())
    unanswered = found(facts, Request())
    assert set(unanswered) == {"k848_session", "k848_rights", "k848_clients", "k848_monitoring"}
    assert {unanswered[each].is_met for each in ("k848_rights", "k848_clients", "k848_monitoring")} == {None}
    refused = found(facts, Request(answers=Answers(False, False, ("a dashboard",))))
    assert {refused[each].is_met for each in ("k848_rights", "k848_clients", "k848_monitoring")} == {False}


@pytest.mark.parametrize(
    ("check_id", "member"),
    [
        ("k848_protocol_type", RawMember("of-connect", b"any", b"any", "default", "connect")),
        ("k848_streams", RawMember("of-streams", subscription([TOPIC]), assignment(b"tasks"), "stream")),
        ("k848_user_data", RawMember("of-sarama", subscription([TOPIC]), assignment(b"sticky"), "sticky")),
        ("k848_malformed", RawMember("malformed", b"\x00\x01\x00\x00\x00\x09", assignment())),
    ],
)
def test_a_blocked_group_is_one_that_the_broker_refuses_to_convert(kraft_lab, cluster, check_id, member):
    member.join(cluster.broker_client)
    facts = facts_of(cluster, member.group)
    problem = found(facts, Request(answers=READY))[check_id]
    assert (problem.is_met, problem.severity) == (False, "block")
    row = verdict(facts, facts.groups[member.group], Request(answers=READY))
    assert row.rolling == "no"
    assert check_id in row.blocked_by
    assert answer_to_new_member(kraft_lab, member.group, TOPIC).endswith(REFUSED)


@pytest.mark.parametrize(
    ("check_id", "member"),
    [
        ("k848_copartition", RawMember("joins-topics", subscription([TOPIC, OTHER]), assignment())),
        ("k848_assignor", RawMember("custom", subscription([TOPIC]), assignment(), "our-own")),
        ("k848_rack", RawMember("in-racks", subscription([TOPIC], "rack-a"), assignment())),
        ("k848_static", RawMember("static", subscription([TOPIC]), assignment(), instance_id="one")),
    ],
)
def test_a_warning_does_not_hold_a_group_back(cluster, check_id, member):
    member.join(cluster.broker_client)
    facts = facts_of(cluster, member.group)
    problem = found(facts, Request(answers=READY))[check_id]
    assert (problem.is_met, problem.severity) == (False, "warn")
    row = verdict(facts, facts.groups[member.group], Request(answers=READY))
    assert (row.rolling, check_id in row.warnings) == ("yes", True)


def test_an_assignor_of_new_members_that_no_broker_has_blocks(cluster):
    RawMember("asks-assignor", subscription([TOPIC, OTHER]), assignment()).join(cluster.broker_client)
    facts = facts_of(cluster, "asks-assignor")
    unknown = found(facts, Request(answers=replace(READY, assignor="rack-aware")))
    assert (unknown["k848_assignor_known"].is_met, unknown["k848_assignor_known"].severity) == (False, "block")
    known = found(facts, Request(answers=replace(READY, assignor="range")))
    assert not {"k848_assignor_known", "k848_copartition"} & set(known)


def test_the_session_timeout_of_a_group_is_compared_with_its_classic_members(kraft_lab, cluster):
    RawMember("sessions", subscription([TOPIC]), assignment()).join(cluster.broker_client)
    entry = ConfigEntry("consumer.session.timeout.ms", "30000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, "sessions", incremental_configs=[entry])
    (done,) = kraft_lab.admin.incremental_alter_configs([resource]).values()
    done.result(30)
    read = lambda: facts_of(cluster, "sessions", offsets_topic=True)  # noqa: E731
    facts = awaited(read, lambda it: it.session_ms.get("sessions") == 30_000, "the setting of the group")
    assert facts.commits.sessions["sessions"] == {120_000}
    problem = found(facts, Request(answers=READY))["k848_session"]
    assert problem.is_met is False
    assert "consumer.session.timeout.ms=120000" in problem.remedy
    assert found(replace(facts, commits=None), Request(answers=READY))["k848_session"].is_met is None


def test_members_that_subscribe_to_different_topics_may_use_a_pattern(kraft_lab, cluster):
    base = {**QUIET, "bootstrap.servers": kraft_lab.bootstrap_servers, "group.id": "patterns"}
    with KafkaConsumer(base) as first, KafkaConsumer(base) as second:
        first.subscribe([TOPIC])
        second.subscribe([TOPIC, OTHER])

        def read() -> ProtocolFacts:
            first.poll(0.05), second.poll(0.05)
            return facts_of(cluster, "patterns")

        facts = awaited(read, lambda it: both_settled(it, "patterns"), "two members")
        assert found(facts, Request(answers=READY))["k848_regex"].is_met is False


def both_settled(facts: ProtocolFacts, name: str) -> bool:
    group = facts.groups.get(name)
    return group is not None and len(group.members) == 2 and group.is_settled


def test_a_group_that_rebalances_waits(kraft_lab, cluster):
    member = RawMember("rebalances", subscription([TOPIC]), assignment())
    member.join(cluster.broker_client)
    base = {**QUIET, "bootstrap.servers": kraft_lab.bootstrap_servers, "group.id": "rebalances"}
    with KafkaConsumer({**base, "partition.assignment.strategy": "range"}) as second:
        second.subscribe([TOPIC])  # The first member never rejoins, so the rebalance does not end.
        read = lambda: (second.poll(0.05), facts_of(cluster, "rebalances"))[1]  # noqa: E731
        facts = awaited(read, lambda it: it.groups["rebalances"].state != "Stable", "a rebalance")
    problems = found(facts, Request(answers=READY))
    assert (problems["k848_stable"].is_met, problems["k848_user_data"].is_met) == (False, None)
    assert verdict(facts, facts.groups["rebalances"], Request(answers=READY)).rolling == "no"


def test_old_commits_block_a_stopped_move_and_warn_a_rolling_one(kraft_lab, cluster):
    offsets = ConsumerGroupTopicPartitions("old-commits", [TopicPartition(TOPIC, 0, 0), TopicPartition(TOPIC, 1, 0)])
    (done,) = kraft_lab.admin.alter_consumer_group_offsets([offsets]).values()
    done.result(30)
    facts = facts_of(cluster, "old-commits", offsets_topic=True)
    committed = facts.commits.times["old-commits"]
    assert set(committed) == {(TOPIC, 0), (TOPIC, 1)}
    assert all(abs(at - facts.at_ms) < DAY_MS for at in committed.values())
    assert "old_commits" not in found(facts, Request(how="stopped", answers=READY))
    later = replace(facts, at_ms=facts.at_ms + 8 * DAY_MS)
    stopped = found(later, Request(how="stopped", answers=READY))["old_commits"]
    assert (stopped.is_met, stopped.severity) == (False, "block")
    assert found(later, Request(answers=READY))["old_commits"].severity == "warn"
    row = verdict(later, later.groups["old-commits"], Request(answers=READY))
    assert (row.rolling, row.stopped, row.loses_offsets) == (None, "no", len(committed))
    unread = found(replace(later, commits=None), Request(how="stopped", answers=READY))["old_commits"]
    assert (unread.is_met, unread.severity) == (None, "block")


def test_the_bug_of_the_move_back_is_reported_for_the_move_back(cluster):
    RawMember("way-back", subscription([TOPIC]), assignment()).join(cluster.broker_client)
    facts = facts_of(cluster, "way-back")
    assert found(facts, Request(to="classic"))["k848_downgrade_bug"].is_met is False
    newer = replace(facts.cluster, brokers=tuple(replace(each, level=99) for each in facts.cluster.brokers))
    assert found(replace(facts, cluster=newer), Request(to="classic"))["k848_downgrade_bug"].is_met is None


def test_a_thousand_groups_are_checked_by_a_few_requests(cluster):
    names = {f"many-{number:04}" for number in range(1_001)}
    commit_groups(cluster.broker_client, sorted(names), TOPIC, 2)
    sent = cluster.broker_client.n_sent
    facts = read_facts(cluster, names.__contains__)
    assert cluster.broker_client.n_sent - sent < 20
    rows = verdicts(facts, Request())
    assert {row.group_id for row in rows} == names
    assert {(row.stage, row.stopped) for row in rows} == {("empty", "unknown")}


def test_the_verb_shows_one_group_and_all(profile_file, cluster):
    RawMember("by-verb", subscription([TOPIC]), assignment(b"x")).join(cluster.broker_client)
    run = lambda *words: CliRunner().invoke(app, ["protocol", "check", *words, "--profile-file", str(profile_file)])  # noqa: E731
    one = run("-g", "by-verb")
    assert one.exit_code == 15, one.output
    assert "k848_user_data (block)" in one.output
    stopped = run("-g", "by-verb", "--how", "stopped", "--json")
    assert stopped.exit_code == 12, stopped.output  # the commit times were not read
    rows = {each["check_id"]: each for each in json.loads(stopped.stdout)}
    assert (rows["k848_user_data"]["severity"], rows["k848_user_data"]["is_met"]) == ("info", False)
    ready = run("-g", "by-verb", "--how", "stopped", "--offsets-topic", "--clients-ready")
    assert ready.exit_code == 0, ready.output
    every = run("--groups", "by-.*", "--json")
    assert every.exit_code == 0, every.output
    (row,) = json.loads(every.stdout)
    assert (row["rolling"], row["stopped"], row["blocked_by"]) == ("no", "unknown", ["k848_user_data"])
    assert run("-g", "nobody").exit_code == 8
    assert run("--to", "anything").exit_code == 2


@contextmanager
def other_lab(settings: dict[str, str], version: str) -> Iterator[tuple[Lab, Cluster]]:
    with TunedLab(settings, kraft=True, kafka_version=version) as lab:
        path = lab.folder / "offramp.toml"
        path.write_text(lab.profile_toml())
        lab.create_topics({TOPIC: 2})
        with connect(load_profile(file=path)) as connected:
            yield lab, connected


def test_policies_and_releases_of_brokers_of_4_1():
    settings = {"group.consumer.migration.policy": "upgrade", "group.consumer.max.size": "1"}
    with other_lab(settings, "4.1.1") as (lab, cluster):
        RawMember("alone", subscription([TOPIC]), assignment()).join(cluster.broker_client)
        facts = facts_of(cluster, "alone")
        assert facts.cluster.brokers[0].release == (4, 1)
        problems = found(facts, Request(answers=READY))
        assert (problems["k848_way_back"].is_met, problems["k848_way_back"].severity) == (False, "warn")
        assert problems["k848_release"].is_met is None
        assert not {"k848_policy", "k848_size", "k848_brokers", "k848_feature"} & set(problems)
        back = found(facts, Request(to="classic"))
        assert (back["k848_policy"].is_met, back["k848_policy"].severity) == (False, "block")
        assert found(facts, Request(to="classic", how="stopped"))["k848_policy"].severity == "info"
        check_size(lab, cluster)


def check_size(lab: Lab, cluster: Cluster) -> None:
    """A group with more members than the brokers allow under the consumer protocol is not converted."""
    base = {**QUIET, "bootstrap.servers": lab.bootstrap_servers, "group.id": "large"}
    with KafkaConsumer(base) as first, KafkaConsumer(base) as second:
        for consumer in (first, second):
            consumer.subscribe([TOPIC])

        def read() -> ProtocolFacts:
            first.poll(0.05), second.poll(0.05)
            return facts_of(cluster, "large")

        facts = awaited(read, lambda it: both_settled(it, "large"), "two members")
        problem = found(facts, Request(answers=READY))["k848_size"]
        assert (problem.is_met, problem.severity) == (False, "block")
        assert answer_to_new_member(lab, "large", TOPIC).endswith(REFUSED)


def test_a_policy_that_forbids_the_upgrade_is_seen_before_a_client_ends():
    with other_lab({"group.consumer.migration.policy": "disabled"}, "4.4.0") as (lab, cluster):
        RawMember("kept", subscription([TOPIC]), assignment()).join(cluster.broker_client)
        facts = facts_of(cluster, "kept")
        problem = found(facts, Request(answers=READY))["k848_policy"]
        assert (problem.is_met, problem.severity) == (False, "block")
        assert answer_to_new_member(lab, "kept", TOPIC).endswith(REFUSED)


def test_brokers_of_3_9_are_too_old():
    with other_lab({}, "3.9.1") as (_, cluster):
        RawMember("old", subscription([TOPIC]), assignment()).join(cluster.broker_client)
        facts = facts_of(cluster, "old")
        problems = found(facts, Request(answers=READY))
        expected = {"k848_brokers": False, "k848_feature": False, "k848_protocols": False, "k848_policy": None}
        assert {name: problems[name].is_met for name in expected} == expected
        assert verdict(facts, facts.groups["old"], Request(answers=READY)).rolling == "no"
