"""The rights to write what a rollback writes are reported from access lists, as ZooKeeper itself then decides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, make_acl, make_digest_acl

from kit.clients.zookeeper_rights import READ, WRITE, fetch_acl, fetch_identities, missing
from kit.engine.lock import ClusterLock
from kit.errors import OfframpError, ReadError
from kit.kraft.move.cluster_state import live_old_members
from kit.kraft.move.rights import hidden_problem, writes_problem
from kit.kraft.read.control_znodes import fetch_control
from kit.kraft.read.metadata_znodes import fetch_metadata_znodes, with_max_state_epoch
from kit.lab import Lab
from kit.profile.security.settings import Security, ZookeeperSecurity

NODES = [make_digest_acl("node", "pw", all=True), *READ_ACL_UNSAFE]
CLOSED = [make_digest_acl("node", "pw", all=True)]
HELD = {"/controller": b"{}", "/controller_epoch": b"5", "/migration": b"{}", "/config/users/ann": b"{}"}
LOCK = "cluster abc"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(brokers=0) as lab:
        yield lab


@contextmanager
def session(connect: str, *logins: str) -> Iterator[KazooClient]:
    client = KazooClient(connect, auth_data=[("digest", each) for each in logins])
    client.start(15)
    try:
        yield client
    finally:
        client.stop()
        client.close()


@pytest.fixture
def connect(lab, request) -> str:
    """A chroot of its own: nodes wrote there, and let the world read; of a group nobody may know the list."""
    chroot = f"/{abs(hash(request.node.name))}"
    with session(lab.zookeeper_connect, "node:pw") as client:
        client.create(chroot, acl=NODES)
        client.create(f"{chroot}/consumers", acl=OPEN_ACL_UNSAFE)
        client.create(f"{chroot}/config", acl=NODES)
        client.create(f"{chroot}/config/users", acl=CLOSED)
        for path, data in HELD.items():
            client.create(chroot + path, data, acl=NODES)
    return f"{lab.zookeeper_connect}{chroot}"


def cluster(client: KazooClient):
    profile = SimpleNamespace(security=Security(zookeeper=ZookeeperSecurity()))
    return SimpleNamespace(zookeeper=client, profile=profile, name="production", cluster_id="abc")


def test_the_nodes_own_login_may_all(connect):
    with session(connect, "node:pw") as client:
        assert writes_problem(cluster(client)) is None
        assert hidden_problem(cluster(client)) is None


def test_the_rights_that_a_stranger_lacks_are_named_without_a_digest(connect):
    with session(connect, "ann:secret") as client:
        told = writes_problem(cluster(client))
        assert "(digest:ann, ip:127.0.0.1) may not create below /, delete below /, write /controller_epoch:" in told
        assert "[clusters.production.security.zookeeper]" in told
        assert "offramp's ZooKeeper login may not read: /config/users can't be listed" in hidden_problem(
            cluster(client)
        )


def test_digests_that_are_hidden_from_the_login_are_reported(connect):
    """ZooKeeper masks them for a session without ADMIN, so whether the right is there is not known."""
    with session(connect, "node:pw") as client:
        own = make_digest_acl("ann", "secret", read=True, write=True)
        client.set_acls("/controller_epoch", [*NODES, own])
    with session(connect, "ann:secret") as client:
        assert writes_problem(cluster(client)).endswith(
            "Its digest in the access list of /controller_epoch is hidden from a login without ADMIN there"
        )


@pytest.mark.parametrize("login", ["node:pw", "ann:secret", "node:wrong"])
def test_zookeeper_decides_as_was_reported(connect, login):
    with session(connect, login) as client:
        who = fetch_identities(client)
        told = missing(fetch_acl(client, "/controller_epoch"), who, READ | WRITE)
        try:
            client.set("/controller_epoch", b"6")
            assert told == 0
        except NoAuthError:
            assert told == WRITE


CONTROL = ("/controller", "/controller_epoch", "/migration", "/cluster/id", "/admin/reassign_partitions")
LISTED = ("/brokers/ids", "/admin/delete_topics", "/isr_change_notification", "/log_dir_event_notification")


@pytest.mark.parametrize("path", [*CONTROL, *LISTED])
def test_a_control_znode_that_is_hidden_is_reported_with_the_missing_right_and_as_nothing_else(connect, path):
    with session(connect, "node:pw") as client:
        if path in HELD:
            client.set_acls(path, CLOSED)
        else:
            client.create(path, b"{}", acl=CLOSED, makepath=True)
    with session(connect, "ann:secret") as client:
        found = fetch_control(client)
    right = "NoAuthError (the login needs the right READ there)"
    assert (
        found.refused(path) == f"{path} can't be listed: {right}"
        if path in LISTED
        else f"{path}: it can't be read: {right}"
    )
    others = [each for each in (*CONTROL, *LISTED) if each != path]
    assert [each for each in others if found.refused(each)] == []
    assert found.has_migration is (None if path == "/migration" else True)


def test_epochs_of_partitions_that_are_hidden_are_reported(connect):
    with session(connect, "node:pw") as client:
        for number, acl in enumerate([OPEN_ACL_UNSAFE, CLOSED]):
            path = f"/brokers/topics/orders/partitions/{number}/state"
            state = {"version": 1, "leader": 1, "leader_epoch": 0, "controller_epoch": 5 + number, "isr": [1]}
            client.create(path, json.dumps(state).encode(), makepath=True)
            client.set_acls(path, acl)
        client.set("/brokers/topics/orders", b'{"version":3,"partitions":{"0":[1],"1":[1]}}')
    with session(connect, "ann:secret") as client:
        alone, whole = (
            with_max_state_epoch(client, fetch_control(client)),
            fetch_metadata_znodes(client, lambda _: False),
        )
    told = "/brokers/topics: the epochs of partitions are not all known, because 1 of the znodes below were refused: "
    for found in (alone, whole.control):
        assert found.max_state_epoch == 5
        assert found.refused("/brokers/topics").startswith(told)


@pytest.mark.parametrize("path", ["/consumers", "/consumers/orders/ids"])
def test_groups_whose_members_are_hidden_are_reported_with_the_missing_right(connect, path):
    """A group with hidden members may have live ones, which a plan to KRaft mode refuses."""
    with session(connect, "node:pw") as client:
        client.ensure_path(path)
        client.set_acls(path, CLOSED)
    with session(connect, "ann:secret") as client:
        told = f"{path} can't be listed: NoAuthError .the login needs the right READ there"
        with pytest.raises(ReadError, match=told):
            live_old_members(client)


def test_a_lock_of_another_tool_is_reported(connect):
    """The first lock gets the list of ``/consumers``, and offramp has to be able to use what it then made."""
    with session(connect, "node:pw") as client:
        client.set_acls("/consumers", [make_acl("ip", "10.9.9.9", all=True), *READ_ACL_UNSAFE])
        assert "use a lock whose znode inherits the access list of /consumers" in writes_problem(cluster(client))
        with pytest.raises(OfframpError, match="NoAuthError"):
            ClusterLock(cluster(client)).acquire([LOCK], "run")


def test_after_a_lock_its_own_folders_count(connect):
    with session(connect, "node:pw") as client:
        lock = ClusterLock(cluster(client))
        lock.acquire([LOCK], "run")
        lock.mark([LOCK], "run")
        lock.release()
        assert writes_problem(cluster(client)) is None
        client.set_acls("/offramp/cluster_locks", list(READ_ACL_UNSAFE))
        assert "create below /offramp/cluster_locks, delete below /offramp/cluster_locks" in writes_problem(
            cluster(client)
        )


def test_nothing_was_written_to_find_out(connect):
    with session(connect, "node:pw") as client:
        before = {path: client.get(path)[1] for path in ("/", *HELD)}
        assert writes_problem(cluster(client)) is None
        assert {path: client.get(path)[1] for path in ("/", *HELD)} == before
