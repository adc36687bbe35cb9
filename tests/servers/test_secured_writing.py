"""The znodes that the kit makes in a closed ZooKeeper are closed, too; in an open one they are as open as before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import TopicPartition
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id, make_digest_acl

from kit.clients.cluster import Cluster, connect
from kit.consumer.zookeeper.znodes import GroupZnodes
from kit.engine.lock import LOCKS, ZookeeperLock
from kit.engine.model.performer import Outcome
from kit.errors import AuthenticationFailed
from kit.lab import Lab
from kit.moves.group.group_state import PartitionOffsets
from kit.moves.group.raised_offsets import raise_zookeeper_offsets
from kit.moves.group.toggle import Toggle, mode_path, set_toggle
from kit.moves.offsets.moves import Stored
from kit.moves.offsets.zookeeper import ZookeeperWriter
from kit.profile import load_profile
from tests.reporting import Permissive
from tests.servers.awaiting import SECONDS
from tests.servers.coordinators import commit, committed
from tests.servers.offset_verbs import OffsetVerbs

NO_TOGGLE = Toggle(None, None)


@pytest.fixture
def cluster(secured_lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    for name, secret in secured_lab.secrets.items():
        monkeypatch.setenv(name, secret)
    path = tmp_path / "offramp.toml"
    path.write_text(secured_lab.profile_toml("SASL_SSL"), encoding="utf-8")
    with connect(load_profile(file=path), SECONDS) as connected:
        yield connected


@contextmanager
def client_of(lab: Lab, *auth: tuple[str, str]) -> Iterator[KazooClient]:
    client = KazooClient(lab.zookeeper_connect, auth_data=list(auth))
    client.start(SECONDS)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def make_all(cluster: Cluster, group: str) -> list[str]:
    """Everything that the kit makes in ZooKeeper, for one group; the paths."""
    assert set_toggle(cluster.zookeeper, NO_TOGGLE, group, "kafka", Permissive()).outcome is Outcome.CONFIRMED
    key = (group, "orders", 0)
    answers = ZookeeperWriter(cluster.zookeeper).write({key: Stored(7)}, {key: Stored()})
    assert answers[key].error is None
    found = SimpleNamespace(group_id=group, offsets={("orders", 1): PartitionOffsets(None, None, 9, 0, 9)})
    assert raise_zookeeper_offsets(cluster, found) == ({"orders-1": (None, 9)}, [])
    member = GroupZnodes(cluster.zookeeper, group, "me", print, print, print, True, True, 10)
    assert member.register(b"{}")
    assert member.claim_all({("orders", 0): "me-0"}) == frozenset()
    assert member.write_offsets({("orders", 2): 5}, {("orders", 2): None})
    ZookeeperLock(cluster).acquire([group], "run-1")
    base = f"/consumers/{group}"
    made = [f"{base}/offsets/orders/{number}" for number in range(3)] + [f"{base}/owners/orders/0", mode_path(group)]
    made += [f"{base}/ids/me", f"{base}/migration/ids/me", base, f"{base}/offsets", f"{base}/owners/orders"]
    return [*made, f"{LOCKS}/{group}", LOCKS]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"])
def test_offsets_of_both_stores_are_reset_and_put_back_by_password(
    cluster: Cluster, secured_lab: Lab, tmp_path: Path, mechanism: str
) -> None:
    """Brokers by the mechanism over TLS, ZooKeeper by digest; no file of a run has a secret."""
    group = topic = f"by-{mechanism.lower()}"
    secured_lab.create_topic(topic, 1)
    secured_lab.produce(topic, 5)
    offset = f"/consumers/{group}/offsets/{topic}/0"
    cluster.zookeeper.create(offset, b"1", makepath=True)
    commit(secured_lab, group, TopicPartition(topic, 0, 1))
    file = tmp_path / "mechanism.toml"
    text = secured_lab.profile_toml("SASL_SSL").replace("SCRAM-SHA-512", mechanism)
    file.write_text(text, encoding="utf-8")
    verbs, seen = OffsetVerbs(file, tmp_path / "runs"), []

    def offsets() -> tuple[int, bytes]:
        (kafka,) = committed(secured_lab, group, TopicPartition(topic, 0))
        return kafka, cluster.zookeeper.get(offset)[0]

    for store in ("kafka", "zookeeper"):
        verbs.reset(group, 3, store)
        seen.append(offsets())
        verbs.undo()
        seen.append(offsets())
    assert seen == [(3, b"1"), (1, b"1"), (1, b"3"), (1, b"1")]
    assert "ApiVersions" in verbs.typed("kraft", "status")
    written = "".join(each.read_text(errors="replace") for each in (tmp_path / "runs").rglob("*") if each.is_file())
    assert [name for name, secret in secured_lab.secrets.items() if secret in written] == []


def test_znodes_made_below_a_closed_znode_are_closed(cluster: Cluster, secured_lab: Lab) -> None:
    with client_of(secured_lab) as stranger:
        for path in make_all(cluster, "made-closed"):
            with pytest.raises(NoAuthError):
                stranger.set(path, b"zookeeper")
            assert cluster.zookeeper.get_acls(path)[0] == cluster.zookeeper.get_acls("/consumers")[0]


def test_a_group_that_is_open_stays_so(cluster: Cluster, secured_lab: Lab) -> None:
    """Its members may not log in at all: those of 0.8 can't."""
    cluster.zookeeper.create("/consumers/made-open", b"", acl=OPEN_ACL_UNSAFE)
    for path in make_all(cluster, "made-open"):
        if path.startswith("/consumers"):
            assert cluster.zookeeper.get_acls(path)[0] == OPEN_ACL_UNSAFE


def test_in_a_cluster_without_protection_everything_is_open(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "offramp.toml"
    path.write_text(lab.profile_toml(), encoding="utf-8")
    with connect(load_profile(file=path)) as cluster:
        for made in make_all(cluster, "made-in-the-open"):
            assert cluster.zookeeper.get_acls(made)[0] == OPEN_ACL_UNSAFE


HIDDEN = [make_digest_acl("bob", "secret", all=True), ACL(31 & ~16, Id("world", "anyone"))]
"""The world may do everything but change the list: ZooKeeper then hides whose digest may."""


@pytest.mark.parametrize("acls", [HIDDEN, [make_digest_acl("bob", "s", all=True), ACL(4, Id("world", "anyone"))]])
def test_an_access_list_that_is_hidden_is_not_guessed(cluster: Cluster, secured_lab: Lab, acls: list[ACL]) -> None:
    name = f"hidden-{len(acls[1])}-{acls[1].perms}"
    cluster.zookeeper.create(f"/consumers/{name}", b"", acl=acls)
    outcome = set_toggle(cluster.zookeeper, NO_TOGGLE, name, "kafka", Permissive())
    assert outcome.outcome is Outcome.REFUSED
    assert f"would get the access list of /consumers/{name}" in str(outcome.error)
    assert cluster.zookeeper.exists(mode_path(name)) is None
    key = (name, "orders", 0)
    answers = ZookeeperWriter(cluster.zookeeper).write({key: Stored(7)}, {key: Stored()})
    assert answers[key].error
    found = SimpleNamespace(group_id=name, offsets={("orders", 1): PartitionOffsets(None, None, 9, 0, 9)})
    raised, (refused,) = raise_zookeeper_offsets(cluster, found)
    assert raised == {}
    assert "access list" in refused
    member = GroupZnodes(cluster.zookeeper, name, "me", print, print, print, True, True, 10)
    with pytest.raises(AuthenticationFailed, match="access list"):
        member.register(b"{}")
