"""A watcher of owner znodes sees every life that a real ZooKeeper held, and says of what it can't be sure."""

from __future__ import annotations

import socket
from itertools import pairwise

import pytest
from kazoo.client import KazooClient

from kit.errors import AuthenticationFailed
from kit.groups.read.owner_history import OwnerWatch, load_owner_history
from kit.lab.process import wait_until
from kit.lab.servers.zookeeper import ZooKeeper
from kit.tables.groups import ZnodeLife

SECONDS = 60.0


@pytest.fixture
def client(lab):
    yield from connected(lab.zookeeper_connect)


@pytest.fixture
def other(lab):
    yield from connected(lab.zookeeper_connect)


def connected(address: str):
    client = KazooClient(address)
    client.start(15)
    yield client
    client.stop()
    client.close()


def owners(watch: OwnerWatch) -> list[ZnodeLife]:
    return sorted((row for row in watch.rows() if row.kind == "owner"), key=lambda row: row.from_ms)


def watched(watch: OwnerWatch) -> list[ZnodeLife]:
    return sorted((row for row in watch.rows() if row.kind == "watch"), key=lambda row: row.from_ms)


def test_every_life_with_its_czxid(client, other):
    path = "/consumers/life/owners/t/0"
    other.create(path, b"life_h-0-0", ephemeral=True, makepath=True)
    czxids = [other.exists(path).czxid]
    with OwnerWatch(client, "life") as watch:
        for number in range(1, 6):
            other.delete(path)
            other.create(path, f"life_h-{number}-0".encode(), ephemeral=True)
            czxids.append(other.exists(path).czxid)
            wait_until(lambda: len(owners(watch)) == len(czxids), "the life", SECONDS)
        lives = owners(watch)
    assert [life.member_id for life in lives] == [f"life_h-{number}" for number in range(6)]
    assert [life.czxid for life in lives] == czxids
    assert {life.session_id for life in lives} == {other.client_id[0]}
    for before, after in pairwise(lives):
        assert before.from_ms <= before.until_ms <= after.from_ms
    assert lives[-1].until_ms is None


def test_lives_too_short_to_be_read_have_an_owner_that_is_not_known(client, other):
    path = "/consumers/short/owners/t/0"
    other.ensure_path("/consumers/short/owners/t")
    with OwnerWatch(client, "short") as watch:
        last = None
        for number in range(30):
            other.create_async(path, f"short_h-{number}-0".encode(), ephemeral=True)
            last = other.delete_async(path)
        last.get(SECONDS)
        lives = owners(watch)
    assert 1 <= len(lives) <= 30
    assert all(life.until_ms is not None for life in lives)
    assert any(life.is_seen_late for life in lives)
    assert all((life.member_id is None) == life.is_seen_late == bool(life.error) for life in lives)


def test_members_the_toggle_and_a_group_that_is_not_there_yet(client, other):
    with OwnerWatch(client, "later") as watch:
        other.create("/consumers/later/migration/ids/later_h-1", b"{}", ephemeral=True, makepath=True)
        other.create("/consumers/later/ids/later_h-1", b"{}", ephemeral=True, makepath=True)
        other.create("/consumers/later/migration/mode", b"zookeeper")
        other.set("/consumers/later/migration/mode", b"kafka")
        wait_until(
            lambda: {row.value for row in watch.rows() if row.kind == "mode"} >= {"kafka"}, "the toggle", SECONDS
        )
        rows = watch.rows()
    assert {row.member_id for row in rows if row.kind == "member"} == {"later_h-1"}
    assert {row.member_id for row in rows if row.kind == "migration_member"} == {"later_h-1"}
    mode = [row for row in rows if row.kind == "mode"]
    assert [(row.value, row.until_ms) for row in mode][-1] == ("kafka", None)


def test_a_time_without_connection_is_not_called_watched(client, other, tmp_path):
    path = "/consumers/cut/owners/t/0"
    other.create(path, b"cut_h-1-0", ephemeral=True, makepath=True)
    file = tmp_path / "owners.jsonl"
    with OwnerWatch(client, "cut", file) as watch:
        client._connection._socket.shutdown(socket.SHUT_RDWR)
        other.delete(path)
        other.create(path, b"cut_h-1-0", ephemeral=True)
        wait_until(lambda: len(watched(watch)) == 2, "watching again", SECONDS)
        wait_until(lambda: len(owners(watch)) == 2, "both lives", SECONDS)
        first, second = owners(watch)
    assert first.czxid < second.czxid
    assert first.until_ms == second.from_ms
    before, after = watched(watch)
    assert (before.ended_by, after.ended_by) == ("missed", "stopped")
    assert before.until_ms <= second.from_ms + 1
    assert after.from_ms >= before.until_ms
    assert set(load_owner_history(file)) == set(watch.rows())


def test_a_server_without_recursive_watches_is_polled(lab):
    server = ZooKeeper(lab.supervisor, version="3.4", name="zookeeper-3.4-owners")
    server.start()
    path = "/consumers/old/owners/t/0"
    try:
        for client in connected(server.connect):
            client.create(path, b"old_h-1-0", ephemeral=True, makepath=True)
            with OwnerWatch(client, "old") as watch:
                client.delete(path)
                client.create(path, b"old_h-2-0", ephemeral=True)
                first, second = owners(watch)
                assert (first.member_id, first.until_ms) == ("old_h-1", second.from_ms)
                client.delete(path)
                wait_until(lambda: owners(watch)[-1].until_ms is not None, "the end", SECONDS)
            assert watched(watch) == []
    finally:
        server.process.kill()


def test_a_group_that_may_not_be_listed_is_reported_at_once(secured_lab):
    for client in connected(secured_lab.zookeeper_connect):
        with pytest.raises(AuthenticationFailed, match="list the group"):
            OwnerWatch(client, "vault-payments").start()
