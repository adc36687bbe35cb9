"""The nastiest tree a real ZooKeeper takes: every group is read, and all but the ill ones go back at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kit import observe
from kit.clients.cluster import Cluster, connect
from kit.engine.model.performer import Outcome
from kit.groups import views
from kit.lab import Lab
from kit.moves.fleet.plan import fleet
from kit.moves.fleet.wave import WaveActor, WaveParameters, wave_step
from kit.moves.group.group_state import read_group_state
from kit.moves.group.toggle import Toggle, mode_path, read_toggle
from kit.moves.offsets.zookeeper import ZookeeperWriter
from kit.profile import load_profile
from tests.generators import hostile
from tests.generators.nasty_znodes import NASTY, PLACES, REGISTRATION
from tests.reporting import Permissive

TOPIC = "nasty-orders"


@pytest.fixture(scope="module")
def cluster(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    path: Path = tmp_path_factory.mktemp("profile") / "offramp.toml"
    path.write_text(lab.profile_toml(), encoding="utf-8")
    lab.create_topic(TOPIC, 2)
    with connect(load_profile(file=path)) as connected:
        yield connected


@pytest.fixture
def members(cluster: Cluster) -> Iterator[list[str]]:
    """Three groups of a migration-enabled member each under Kafka's coordination, one with a bad offset."""
    names = ["nasty-fine-1", "nasty-ill", "nasty-fine-2"]
    data = REGISTRATION.replace(b"orders", TOPIC.encode())
    for name in names:
        base = f"/consumers/{name}"
        for path in (f"{base}/ids/{name}_me", f"{base}/migration/ids/{name}_me"):
            cluster.zookeeper.create(path, data, ephemeral=True, makepath=True)
        for number in range(2):
            cluster.zookeeper.create(
                f"{base}/owners/{TOPIC}/{number}", f"{name}_me-0".encode(), ephemeral=True, makepath=True
            )
        cluster.zookeeper.create(mode_path(name), b"kafka")
        offset = b"9" * 20 if name == "nasty-ill" else b"0"
        cluster.zookeeper.create(f"{base}/offsets/{TOPIC}/0", offset, makepath=True)
        cluster.zookeeper.create(f"{base}/offsets/{TOPIC}/99999999999", b"1", makepath=True)
    yield names
    for name in names:
        cluster.zookeeper.delete(f"/consumers/{name}", recursive=True)


def test_the_nastiest_tree_is_read(cluster: Cluster) -> None:
    client = cluster.zookeeper
    names = [name for name in hostile.ZNODES if len(name) < 300]
    for number, name in enumerate(names):
        data = NASTY[number % len(NASTY)][:900_000]
        for place in PLACES:
            client.create(f"/consumers/{name}/offsets/{TOPIC}/{place}", data[:5_000], makepath=True)
        client.create(f"/consumers/{name}/ids/member", data, makepath=True)
        client.create(f"/consumers/{name}/migration/mode", data[:100_000], makepath=True)
    client.create("/consumers/nasty-fine/offsets/" + TOPIC + "/0", b"0", makepath=True)
    client.create("/brokers/ids/nobody", b"[" * 100_000)
    try:
        found = observe(cluster)
        assert {*names, "nasty-fine"} <= set(found.groups["group_id"])
        assert found.committed_offsets.filter(group_id="nasty-fine")["committed_offset"].to_list() == [0]
        assert views.summary(found).height == found.groups["group_id"].n_unique()
        assert "/brokers/ids/nobody" in str(found.read_errors["subject"].to_list())
    finally:
        client.delete("/brokers/ids/nobody")
        for name in [*names, "nasty-fine"]:
            client.delete(f"/consumers/{name}", recursive=True)


def test_one_bad_znode_keeps_no_other_group_from_going_back(cluster: Cluster, members: list[str]) -> None:
    rows = fleet(observe(cluster, "nasty-.*"), "zookeeper", 0.0)
    not_ready_reason = dict(rows.select("group_id", "not_ready_reason").rows())
    assert "can't be read: the znode holds '99999999999999999999', not an offset" in str(not_ready_reason["nasty-ill"])
    actor = WaveActor(cluster)
    step = wave_step(
        WaveParameters.of_toggles(1, {name: read_toggle(cluster.zookeeper, name) for name in members}, "zookeeper")
    )
    checked = actor.check(step)
    assert checked.ok, checked.sentence
    assert "left out, not readable: 1 group: nasty-ill" in checked.sentence
    outcomes = {outcome.item: outcome for outcome in actor.act(step, Permissive())}
    assert [str(outcomes[mode_path(name)].outcome) for name in members] == ["CONFIRMED", "REFUSED", "CONFIRMED"]
    assert "not an offset" in str(outcomes[mode_path("nasty-ill")].error)
    assert [read_toggle(cluster.zookeeper, name).mode for name in members] == ["zookeeper", "kafka", "zookeeper"]
    assert outcomes[mode_path("nasty-ill")].outcome is Outcome.REFUSED


def test_on_the_way_there_a_group_that_can_not_be_read_stops_its_wave(cluster: Cluster, members: list[str]) -> None:
    checked = WaveActor(cluster).check(
        wave_step(WaveParameters.of_toggles(1, dict.fromkeys(members, Toggle("zookeeper", 0)), "kafka"))
    )
    assert not checked.ok
    assert "1 of 3 groups can't be read: nasty-ill" in checked.sentence


def test_decisive_znodes_are_read_after_a_sync(
    cluster: Cluster, members: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A follower may lag behind its leader; requests of one session are answered in their order."""
    sent: list[str] = []
    call = cluster.zookeeper._call

    def spy(request, result):
        sent.append(type(request).__name__)
        return call(request, result)

    monkeypatch.setattr(cluster.zookeeper, "_call", spy)
    writer = ZookeeperWriter(cluster.zookeeper)
    for read in (
        lambda: observe(cluster, "nasty-fine-1"),
        lambda: read_group_state(cluster, "nasty-fine-1"),
        lambda: read_toggle(cluster.zookeeper, "nasty-fine-1"),
        lambda: writer.read([("nasty-fine-1", TOPIC, 0)]),
        lambda: writer._registered({"nasty-fine-1"}),
    ):
        sent.clear()
        read()
        assert sent[0] == "Sync"
        assert len(sent) > 1
