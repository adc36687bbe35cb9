"""Rights that an undo needs and a run does not: a plan is refused before its first write where they are missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from kazoo.security import OPEN_ACL_UNSAFE, make_acl

from kit import connect
from kit.clients.broker_client import BrokerClient
from kit.engine.model.performer import Outcome
from kit.errors import PlanError, UnsafePlan
from kit.groups.read import rights
from kit.lab import Lab
from kit.moves.group.deploy import Manual
from kit.moves.group.toggle import toggle_rights
from kit.moves.offsets import open_transactions
from kit.moves.offsets.delete_groups import DeleteGroupsRequest, plan_delete_groups
from kit.moves.offsets.group_deleter import GroupDeleter
from kit.moves.offsets.plan import PlanOptions, Reset, plan_copy, plan_delete, plan_reset, select
from kit.moves.protocol.plan import ProtocolPlanRequest, plan_protocol
from kit.moves.undo_rights import kafka_finding
from kit.profile import load_profile
from tests.reporting import Permissive
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.coordinators import await_coordinator
from tests.servers.offset_operations import OffsetOperations
from tests.servers.test_open_transactions import DEADLINE_S, OPEN, sent
from tests.servers.tuned_lab import TunedLab

AUTHORIZERS = {
    "3.9": "kafka.security.authorizer.AclAuthorizer",
    "4.4": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}
TOPIC, GROUP, NEW = "orders", "orders-app", "orders-new"
NOW = datetime.now(UTC)
OPTIONS = PlanOptions("ann", NOW, new_groups=True, overrides=("kept_elsewhere",))
READ, DELETE = AclOperation.READ, AclOperation.DELETE
CODES = {
    READ: rights.READ,
    DELETE: rights.DELETE,
    AclOperation.ALTER_CONFIGS: rights.ALTER_CONFIGS,
    AclOperation.DESCRIBE_CONFIGS: rights.DESCRIBE_CONFIGS,
}


@pytest.fixture(scope="module", params=AUTHORIZERS)
def site(request, tmp_path_factory) -> Iterator[OffsetOperations]:
    """One broker with an authorizer that allows everything that no test denies."""
    settings = {"authorizer.class.name": AUTHORIZERS[request.param], "allow.everyone.if.no.acl.found": "true"}
    folder = tmp_path_factory.mktemp("rights")
    with TunedLab(settings, kraft=request.param == "4.4") as lab:
        await_coordinator(lab)
        lab.create_topic(TOPIC, 2)
        lab.produce(TOPIC, 20)
        path = folder / "offramp.toml"
        path.write_text(lab.profile_toml())
        with connect(load_profile(file=path)) as cluster:
            site = OffsetOperations(cluster, folder / "runs")
            site.lab = lab
            site.commit(GROUP, TOPIC, {0: 3, 1: 4})
            yield site


@contextmanager
def lacking(site, kind: ResourceType, name: str, operation: AclOperation) -> Iterator[None]:
    """The login may do everything with the resource but this."""
    fetch = rights.fetch_topic_rights if kind == ResourceType.TOPIC else rights.fetch_group_rights
    code = CODES[operation]
    how = (kind, name, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*")
    allowed = [AclBinding(*how, AclOperation.ALL, AclPermissionType.ALLOW)]
    for future in site.lab.admin.create_acls([*allowed, AclBinding(*how, operation, AclPermissionType.DENY)]).values():
        future.result(SECONDS)
    awaited(lambda: fetch(site.cluster.broker_client, [name])[name], lambda found: code not in found, "the right lost")
    try:
        yield
    finally:
        every = AclBindingFilter(
            kind, name, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
        )
        for future in site.lab.admin.delete_acls([every]).values():
            future.result(SECONDS)
        awaited(lambda: fetch(site.cluster.broker_client, [name])[name], lambda found: code in found, "the right back")


def test_a_plan_whose_undo_deletes_offsets_needs_delete_on_the_group(site):
    """The group does not exist yet; the brokers of both releases tell the rights on it."""
    plans = [
        lambda: plan_reset(site.cluster, "kafka", select(groups=[NEW], topics=[TOPIC]), Reset("earliest"), OPTIONS),
        lambda: plan_copy(site.cluster, "kafka", "kafka", select(groups=[GROUP]), OPTIONS, {GROUP: NEW}),
    ]
    for plan in plans:
        plan()
    with lacking(site, ResourceType.GROUP, NEW, DELETE):
        for plan in plans:
            with pytest.raises(
                UnsafePlan,
                match=f"undo_rights: .* DELETE on group '{NEW}'.*Grant it: .*--operation Delete --group {NEW}",
            ):
                plan()
        back = PlanOptions("ann", NOW, allow_backwards=True)
        plan_reset(site.cluster, "kafka", select(groups=[GROUP]), Reset("earliest"), back)  # Its undo deletes nothing.


def test_a_deletion_needs_the_rights_to_commit_again(site):
    plans = [
        lambda: plan_delete(site.cluster, "kafka", select(groups=GROUP), OPTIONS),
        lambda: plan_delete_groups(site.cluster, DeleteGroupsRequest((GROUP,)), "ann", NOW),
    ]
    for plan in plans:
        plan()
    for kind, name, words in ((ResourceType.GROUP, GROUP, "group"), (ResourceType.TOPIC, TOPIC, "topic")):
        with lacking(site, kind, name, READ):
            for plan in plans:
                with pytest.raises(UnsafePlan, match=f"undo_rights: .* READ on {words} '{name}'"):
                    plan()
    overridden = plan_delete_groups(site.cluster, DeleteGroupsRequest((GROUP,)), "ann", NOW)
    assert "undo_rights" not in overridden.overridden


def test_a_plan_of_protocols_needs_the_rights_to_restore_the_groups_configs(site):
    """Brokers since 4.0 have configs of groups, and report these rights."""
    if site.cluster.zookeeper is not None:
        pytest.skip("brokers of 3.9 have no configs of groups")
    wanted = ProtocolPlanRequest(GROUP, "consumer", configs={"consumer.session.timeout.ms": "50000"})
    for operation, name in ((AclOperation.ALTER_CONFIGS, "Alter"), (AclOperation.DESCRIBE_CONFIGS, "Describe")):
        with (
            lacking(site, ResourceType.GROUP, GROUP, operation),
            pytest.raises(
                UnsafePlan, match=f"undo_rights: .* {name.upper()}_CONFIGS on group.*--operation {name}Configs"
            ),
        ):
            plan_protocol(site.cluster, Manual(), wanted, "ann")
    with pytest.raises(PlanError, match="has no members"):  # The rights are there.
        plan_protocol(site.cluster, Manual(), replace(wanted, observe_s=0.0), "ann")


def test_a_deletion_knows_of_open_transactions_without_read_on_the_offsets_topic(site, monkeypatch):
    """Partitions for which only the transaction has an offset are read by name, or the plan is refused."""
    site.group, site.topic = "sent", TOPIC
    site.commit(site.group, TOPIC, {0: 1})
    request = DeleteGroupsRequest((site.group,))
    with lacking(site, ResourceType.TOPIC, "__consumer_offsets", READ):
        plan = plan_delete_groups(site.cluster, request, "ann", NOW)
        with sent(site, {1: 9}):
            (outcome,) = GroupDeleter(site.cluster, DEADLINE_S).act(plan.steps[0], Permissive())
            assert (outcome.outcome, OPEN in outcome.error) == (Outcome.NOT_ATTEMPTED, True), outcome
        assert site.offsets("kafka", site.group) == {(TOPIC, 0): 1, (TOPIC, 1): 9}
        monkeypatch.setattr(open_transactions, "MOST_ASKED", 1)
        with pytest.raises(
            UnsafePlan, match=r"open_transactions \(unknown\): .*--operation Read --topic __consumer_off"
        ):
            plan_delete_groups(site.cluster, request, "ann", NOW)
        assert plan_delete_groups(site.cluster, request, "ann", NOW, ("open_transactions",)).overridden
    plan_delete_groups(site.cluster, request, "ann", NOW)  # One partition of the offsets topic is asked.


def test_rights_that_brokers_do_not_report_are_unknown(site, lab, monkeypatch):
    """Brokers before 2.3. Without an authorizer they allow everything."""
    monkeypatch.setattr(BrokerClient, "supports", lambda client, request, version: False)
    needed = {GROUP: {rights.READ, rights.DELETE}}, {TOPIC}
    found = kafka_finding(site.cluster.broker_client, *needed)
    assert found.is_met is None
    assert "READ on each group, DELETE on each group, READ on each topic" in found.sentence
    assert "not known" in rights.fetch_unseen_groups(site.cluster.broker_client)
    path = site.lab.folder / "open.toml"
    path.write_text(lab.profile_toml())
    with connect(load_profile(file=path)) as cluster:
        assert kafka_finding(cluster.broker_client, *needed).is_met
        assert rights.fetch_unseen_groups(cluster.broker_client) is None


@pytest.fixture(scope="module")
def closed(lab: Lab, tmp_path_factory) -> Iterator[OffsetOperations]:
    """A group in ZooKeeper with offsets, on a cluster without an authorizer."""
    folder = tmp_path_factory.mktemp("closed")
    path = folder / "offramp.toml"
    path.write_text(lab.profile_toml())
    lab.create_topic("closed", 2)
    lab.produce("closed", 20)
    with connect(load_profile(file=path)) as cluster:
        site = OffsetOperations(cluster, folder / "runs")
        site.put("closed-app", "closed", {0: 3})
        yield site
        cluster.zookeeper.delete("/consumers/closed-app", recursive=True)


def test_an_undo_in_zookeeper_needs_the_parents_rights(closed):
    plans = {
        "delete": lambda: plan_reset(
            closed.cluster, "zookeeper", select(groups=["closed-app"], topics=["closed"]), Reset("latest"), OPTIONS
        ),
        "create": lambda: plan_delete(closed.cluster, "zookeeper", select(groups=["closed-app"]), OPTIONS),
    }
    parent = "/consumers/closed-app/offsets/closed"
    client = closed.cluster.zookeeper
    for verb, plan in plans.items():
        plan()
        rest = make_acl(
            "world", "anyone", read=True, write=True, admin=True, create=verb != "create", delete=verb != "delete"
        )
        client.set_acls(parent, [rest])
        with pytest.raises(UnsafePlan, match=f"undo_rights: .*{verb} below {parent}"):
            plan()
        client.set_acls(parent, OPEN_ACL_UNSAFE)


def test_a_toggle_that_is_created_must_be_deletable(closed):
    client, group = closed.cluster.zookeeper, "closed-app"
    assert toggle_rights(closed.cluster, [(group, None)]).is_met
    client.set_acls(f"/consumers/{group}", [make_acl("world", "anyone", read=True, create=True, admin=True)])
    found = toggle_rights(closed.cluster, [(group, None)])
    assert (found.is_met, f"delete below /consumers/{group}/migration" in found.sentence) == (False, True)
    assert toggle_rights(closed.cluster, [(group, "zookeeper")]).is_met
    client.set_acls(f"/consumers/{group}", OPEN_ACL_UNSAFE)
