"""The lock of a run, on a real ZooKeeper: lost answers, other people's data, names that are no znode's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.exceptions import ConnectionLoss
from kazoo.interfaces import IAsyncResult

from kit.clients.cluster import Cluster, connect
from kit.engine.lock import _CLAIMED, CLUSTER_LOCKS, LOCKS, ClusterLock, ZookeeperLock
from kit.errors import ConnectError, LockLost, TargetBusy
from kit.lab import Lab
from kit.lab.process import wait_until
from kit.moves.locks import held_locks
from kit.moves.locks.run_lock import RunLock
from kit.profile import load_profile
from tests.servers.awaiting import SECONDS


@pytest.fixture
def cluster(lab: Lab, tmp_path: Path) -> Iterator[Cluster]:
    path = tmp_path / "offramp.toml"
    path.write_text(lab.profile_toml(), encoding="utf-8")
    with connect(load_profile(file=path)) as connected:
        yield connected


@pytest.fixture
def answers_lost(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Creations reach the server; their answers don't come back while a word is in this list."""
    create, lost = cluster.zookeeper.create_async, []

    def create_async(path, *arguments, **options):
        result = create(path, *arguments, **options)
        if lost and options.get("ephemeral"):
            result.get(timeout=10)
            result = cluster.zookeeper.handler.async_result()
            result.set_exception(ConnectionLoss())
        return result

    monkeypatch.setattr(cluster.zookeeper, "create_async", create_async)
    return lost


def test_a_lock_whose_answer_was_lost_is_had(cluster: Cluster, answers_lost: list[str]) -> None:
    answers_lost.append("lost")
    lock = ZookeeperLock(cluster)
    lock.acquire(["lost-answer"], "run-1")
    lock.assert_held()
    with pytest.raises(TargetBusy, match="run-1"):
        ZookeeperLock(cluster).acquire(["lost-answer"], "run-2")
    lock.release()
    assert not cluster.zookeeper.exists(f"{LOCKS}/lost-answer")


def test_a_lock_whose_answer_never_came_is_no_hindrance_to_the_same_session(
    cluster: Cluster, answers_lost: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers_lost.append("lost")
    lock = ZookeeperLock(cluster)
    with monkeypatch.context() as silent:
        stat = lock._stat
        silent.setattr(lock, "_stat", lambda path: None if path.endswith("/never-came") else stat(path))
        with pytest.raises(ConnectError):
            lock.acquire(["never-came"], "run-1")
    assert cluster.zookeeper.exists(f"{LOCKS}/never-came")
    answers_lost.clear()
    again = ZookeeperLock(cluster)
    again.acquire(["never-came"], "run-2")
    assert b"run-2" in cluster.zookeeper.get(f"{LOCKS}/never-came")[0]
    again.assert_held()
    again.release()


def await_lock(lock: ZookeeperLock, target: str) -> None:
    """Take a lock that this session's client deletes at its own time."""

    def taken() -> bool:
        try:
            lock.acquire([target], "next")
        except TargetBusy:
            return False
        return True

    wait_until(taken, f"the lock {target}", SECONDS)


@pytest.mark.parametrize("is_applied", [False, True])
def test_a_deletion_whose_answer_is_lost_leaves_no_lock_and_takes_no_other_clients(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_applied: bool
) -> None:
    path = tmp_path / "offramp.toml"
    path.write_text(lab.profile_toml(), encoding="utf-8")
    with connect(load_profile(file=path)) as cluster, connect(load_profile(file=path)) as elsewhere:
        client, lost = cluster.zookeeper, list[str]()
        delete, theirs = client.delete_async, ZookeeperLock(elsewhere)

        def delete_async(znode: str, version: int = -1) -> IAsyncResult:
            if len(lost) == 2:
                return delete(znode, version)
            lost.append(znode)
            if is_applied and len(lost) == 1:
                delete(znode, version).get(timeout=SECONDS)
                theirs.acquire(["lost-deletion"], "theirs")
            result = client.handler.async_result()
            result.set_exception(ConnectionLoss())
            return result

        monkeypatch.setattr(client, "delete_async", delete_async)
        mine = ZookeeperLock(cluster)
        mine.acquire(["lost-deletion"], "mine")
        mine.release()
        if is_applied:
            wait_until(lambda: not _CLAIMED[client], "the end of the deletion", SECONDS)
            theirs.assert_held()
            theirs.release()
        await_lock(mine, "lost-deletion")
        mine.release()
        assert len(lost) == 2


def test_a_broken_lock_is_the_one_that_was_seen(cluster: Cluster) -> None:
    """Another run may have taken it since the list was read."""
    lock = ZookeeperLock(cluster)
    lock.acquire(["seen"], "run-1")
    (shown,) = [each for each in held_locks.held_locks(cluster) if each.target == "seen"]
    lock.release()
    lock.acquire(["seen"], "run-2")
    held_locks.end(cluster, shown)
    lock.assert_held()
    held_locks.break_locks(cluster, "seen", "run-2")
    with pytest.raises(LockLost):
        lock.assert_held()


def test_two_runs_of_one_session_exclude_each_other(cluster: Cluster) -> None:
    first, second = ZookeeperLock(cluster), ZookeeperLock(cluster)
    first.acquire(["a", "b"], "run-1")
    with pytest.raises(TargetBusy, match="group b is locked by a run of this process: run run-1"):
        second.acquire(["b", "c"], "run-2")
    first.assert_held()
    first.release()
    second.acquire(["b", "c"], "run-2")
    second.release()


@pytest.mark.parametrize("data", [b"[1, 2]", b"7", b'"text"', b"null", b"\xff\xfe", b"", b"{}", b"[" * 100_000, None])
def test_a_lock_of_another_shape_is_reported_as_it_is(cluster: Cluster, data: bytes | None) -> None:
    cluster.zookeeper.create(f"{LOCKS}/strange", data or b"", makepath=True)
    try:
        with pytest.raises(TargetBusy, match=r"group strange is locked by a run: .*, which offramp did not write"):
            ZookeeperLock(cluster).acquire(["strange"], "run-1")
    finally:
        cluster.zookeeper.delete(f"{LOCKS}/strange")


NAMES = ["", ".", "..", "a/b", "x/../y", "%", "%2E", "\x00", "\x1b[2J", "\N{PILE OF POO}", "a\nb", "ü" * 249]


def test_each_name_has_a_lock_of_its_own(cluster: Cluster) -> None:
    lock = ZookeeperLock(cluster)
    lock.acquire(NAMES, "run-1")
    assert len(cluster.zookeeper.get_children(LOCKS)) == len(NAMES)
    lock.assert_held()
    cluster.zookeeper.delete(f"{LOCKS}/%2E%2E")
    with pytest.raises(LockLost):
        lock.assert_held()
    lock.release()
    assert cluster.zookeeper.get_children(LOCKS) == []


def test_a_read_of_the_lock_is_as_fresh_as_the_leader(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    call = cluster.zookeeper._call
    monkeypatch.setattr(
        cluster.zookeeper, "_call", lambda it, result: (sent.append(type(it).__name__), call(it, result))[1]
    )
    lock = ZookeeperLock(cluster)
    lock.acquire(["fresh"], "run-1")
    sent.clear()
    lock.assert_held()
    lock.release()
    assert sent[0] == "Sync"
    assert "Exists" in sent[1:]


def test_an_interrupt_while_giving_back_takes_no_lock_from_who_has_it_by_then(lab: Lab, tmp_path: Path) -> None:
    """One of two is given back, and another run has it already when Ctrl-C comes."""
    path = tmp_path / "offramp.toml"
    path.write_text(lab.profile_toml(), encoding="utf-8")
    with connect(load_profile(file=path)) as cluster, connect(load_profile(file=path)) as elsewhere:
        mine, theirs = ZookeeperLock(cluster), ZookeeperLock(elsewhere)
        mine.acquire(["given-1", "given-2"], "mine")
        real, seen = mine._stat, list[str]()

        def interrupted(znode: str) -> object:
            seen.append(znode)
            if len(seen) == 2:
                theirs.acquire(["given-1"], "theirs")
                raise KeyboardInterrupt
            return real(znode)

        mine._stat = interrupted  # type: ignore[method-assign, assignment]
        with pytest.raises(KeyboardInterrupt):
            mine.release()
        mine._stat = real  # type: ignore[method-assign]
        await_lock(mine, "given-2")
        theirs.assert_held()
        mine.release()
        theirs.release()


def test_a_cluster_is_not_moved_while_a_group_is_worked_on_and_the_other_way_round(cluster: Cluster) -> None:
    target = f"cluster {cluster.cluster_id}"
    group, whole = ZookeeperLock(cluster), ClusterLock(cluster)
    group.acquire(["busy-group"], "run-1")
    with pytest.raises(TargetBusy, match=r"group busy-group is locked by a run .*run-1"):
        whole.acquire([target], "run-2")
    assert not cluster.zookeeper.get_children(CLUSTER_LOCKS), "what was refused holds nothing"
    group.release()
    whole.acquire([target], "run-2")
    whole.assert_held()
    with pytest.raises(TargetBusy, match=r"a run moves the whole cluster .*run-2"):
        ZookeeperLock(cluster).acquire(["busy-group"], "run-3")
    assert not cluster.zookeeper.exists(f"{LOCKS}/busy-group")
    with pytest.raises(TargetBusy, match="is locked by a run"):
        ClusterLock(cluster).acquire([target], "run-4")
    whole.release()
    group.acquire(["busy-group", target], "run-5")  # A group may have any name.
    group.release()


def test_a_run_that_moved_the_cluster_is_marked_apart_from_groups(cluster: Cluster) -> None:
    target = f"cluster {cluster.cluster_id}"
    ClusterLock(cluster).mark([target], "run-1")
    assert ClusterLock(cluster).followed_by([target], "run-0") == {target: "run-1"}
    assert ZookeeperLock(cluster).followed_by([target], "run-0") == {}


def test_a_mark_shows_whether_its_run_has_settled_and_only_its_own_run_writes_that(cluster: Cluster) -> None:
    target = "cluster at-rest"
    lock, other = ClusterLock(cluster), ClusterLock(cluster)
    assert lock.unsettled([target], "run-1") is None
    lock.mark([target], "run-1")
    assert (lock.unsettled([target], "run-1"), other.unsettled([target], "run-2")) == (None, "run-1")
    other.mark_settled([target], "run-2")
    assert other.unsettled([target], "run-2") == "run-1"
    lock.mark_settled([target], "run-1")
    assert other.unsettled([target], "run-2") is None
    assert other.followed_by([target], "run-2") == {target: "run-1"}
    lock.mark([target], "run-1")  # Resumed: there is something to come again.
    assert other.unsettled([target], "run-2") == "run-1"


@pytest.mark.parametrize("data", [b"", b"[]", b'{"run_id": "run-1"}', b'{"run_id": "run-1", "at_rest": 1}', b"\xff"])
def test_a_mark_without_that_field_has_not_settled(cluster: Cluster, data: bytes) -> None:
    target = "cluster odd-mark"
    lock = ClusterLock(cluster)
    lock.mark([target], "run-1")
    cluster.zookeeper.set("/offramp/cluster_runs/cluster%20odd-mark", data)
    assert lock.unsettled([target], "run-2")


def test_the_lock_of_a_run_follows_from_the_brokers(cluster: Cluster) -> None:
    """All of them use ZooKeeper here: a lock in Kafka besides would only be one more thing to lose."""
    lock = RunLock(cluster)
    lock.acquire(["chosen"], "run-1")
    assert [type(each) for each in lock._locks] == [ZookeeperLock]
    lock.assert_held()
    lock.mark(["chosen"], "run-1")
    assert lock.followed_by(["chosen"], "run-0") == {"chosen": "run-1"}
    lock.release()
