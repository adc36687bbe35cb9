"""The transaction that repairs control znodes, on a real ZooKeeper: all or nothing, each part on its version."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl

from kit.engine.model.performer import Outcome
from kit.kraft.move.hand_back import _read, _transaction
from kit.lab import Lab

ACL = [make_acl("world", "anyone", all=True, admin=False)]


@pytest.fixture
def client(lab: Lab, request) -> Iterator[KazooClient]:
    chroot = "/" + request.node.name.replace("/", "")
    with_root = KazooClient(lab.zookeeper_connect)
    with_root.start(15)
    with_root.create(chroot)
    with_root.chroot = chroot
    with_root.create("/controller", b'{"brokerid":1}', ephemeral=True)
    with_root.create("/controller_epoch", b"3")
    with_root.create("/migration", b"stale")
    yield with_root
    with_root.stop()
    with_root.close()


def test_the_epoch_is_raised_and_the_claim_deleted_at_once(client):
    outcome = _transaction(client, _read(client), 10, ["/controller"])
    assert (outcome.outcome, outcome.before["/controller_epoch"]["text"]) == (Outcome.CONFIRMED, "3")
    assert client.get("/controller_epoch")[0] == b"10"
    assert client.exists("/controller") is None
    assert client.get("/migration")[0] == b"stale"


def test_an_epoch_that_another_client_deleted_is_made_again_with_the_rights_of_the_claim(client):
    client.delete("/controller_epoch")
    client.delete("/controller")
    client.create("/controller", b"{}", ephemeral=True, acl=ACL)
    assert _transaction(client, _read(client), 10, ["/controller"]).outcome == Outcome.CONFIRMED
    assert client.get("/controller_epoch")[0] == b"10"
    assert client.get_acls("/controller_epoch")[0] == ACL


@pytest.mark.parametrize("written", ["/controller", "/controller_epoch", "/migration"])
def test_nothing_is_written_when_another_client_wrote_one_of_them_since(client, written):
    before = _read(client)
    client.set(written, b"7")
    outcome = _transaction(client, before, 10, ["/controller", "/migration"])
    assert outcome.outcome == Outcome.REFUSED
    assert "another client wrote one of the znodes at the same time" in outcome.error
    left = _read(client)
    assert {path: each.text for path, each in left.items()} == {
        **{path: each.text for path, each in before.items()},
        written: "7",
    }


def test_a_migration_is_not_deleted_when_controllers_have_claimed_the_cluster_since(client):
    before = _read(client)
    client.set("/controller", b'{"brokerid":3000}')
    assert _transaction(client, before, None, ["/migration"]).outcome == Outcome.REFUSED
    assert client.exists("/migration")


@pytest.mark.parametrize(
    ("closed", "refused", "right"),
    [("/controller_epoch", "write", "WRITE on /controller_epoch"), ("", "delete", "DELETE on /")],
    ids=["write", "delete"],
)
def test_the_right_that_the_login_lacks_is_named(client, closed, refused, right):
    rights = {each: each != refused for each in ("read", "write", "create", "delete", "admin")}
    client.set_acls(closed or "/", [make_acl("world", "anyone", **rights)])
    outcome = _transaction(client, _read(client), 10, ["/controller"])
    assert outcome.outcome == Outcome.REFUSED
    assert f"needs the right {right}:" in outcome.error
    assert client.get("/controller_epoch")[0] == b"3"
    client.set_acls(closed or "/", [make_acl("world", "anyone", all=True)])
