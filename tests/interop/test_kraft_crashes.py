"""Three brokers, three controllers, a producer and members: to KRaft and back by commands that are killed, nodes too.

The cluster has one of every kind of metadata: topics, settings, quotas, SCRAM users, ACLs, a token.
Every verb is a process of its own (``kraft_scene``). Runs are killed at their items and between them, and resumed; a
broker and the active controller are killed in a roll. In the end the cluster is finalised. ``make soak``.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from kit.errors import UnsafePlan
from kit.kraft import KraftStatus
from kit.lab import Lab, faults
from kit.lab.entities import make_one_of_everything
from kit.lab.process import wait_until
from tests.interop.kraft_scene import TRANSACTION, LeaderWatch, Scene
from tests.soak import soak_only

pytestmark = soak_only
PARTITIONS = 6
RATE = 1500.0
FEWEST_RECORDS = 500_000
TOPIC = "load"


@dataclass
class Story:
    """What was seen: after each run the status, after each way back ZooKeeper's znodes."""

    scene: Scene
    statuses: dict[str, KraftStatus] = field(default_factory=dict)
    dumps: dict[str, dict] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    n_acknowledged: int = 0
    lost: set[tuple[int, int]] | None = None
    unread: set[tuple[int, int]] | None = None
    pauses_ms: list[int] = field(default_factory=list)
    n_looks: int = 0

    def note(self, name: str) -> None:
        self.statuses[name] = self.scene.status()
        self.dumps[name] = self.scene.dump()


def kill_broker(scene: Scene, broker_id: int) -> None:
    """kill -9 of a broker that the roll has not ordered, and its start as it was."""
    victim = faults.broker(scene.lab, broker_id)
    faults.kill(victim)
    faults.await_gone(scene.lab, f"/brokers/ids/{broker_id}")
    victim.launch()


def forward_and_back(story: Story) -> None:
    """From dual write, our own process killed at every item of the way there and back."""
    scene = story.scene
    scene.go_killed("controllers", ("attempted/01-start", 0.5), ("verified/01-start/ok", 0.0))
    story.note("controllers")
    scene.go_killed(
        "dual write",
        ("attempted/01-roll-to-migration/*", 1.0),
        ("acted/01-roll-to-migration/*/CONFIRMED", 0.0),
        ("verified/01-roll-to-migration/ok", 0.0),
        ("attempted/02-roll-to-migration-last/*", 1.0),
    )
    story.note("dual write")
    scene.go_killed(
        "zookeeper",
        ("verified/01-compare/ok", 0.0),
        ("attempted/02-stop-controllers", 0.3),
        ("verified/02-stop-controllers/ok", 0.0),
        (TRANSACTION, 0.0),
        ("attempted/04-roll-to-zookeeper/*", 1.0),
        ("acted/04-roll-to-zookeeper/*/CONFIRMED", 0.0),
        ("attempted/05-wipe", 0.0),
    )
    story.note("back from dual write")


def kraft_and_back(story: Story) -> None:
    """A broker and the active controller are killed in the roll to KRaft mode; our process on the way back."""
    scene, lab = story.scene, story.scene.lab
    scene.go("controllers")
    scene.go("dual write")
    refused = scene.offramp("plan", "kraft", "--to", "kraft")
    story.told["old members"] = refused.err
    assert refused.exit_code == UnsafePlan.exit_code
    for old in lab.consumers("shop"):
        old.stop()
    _await_no_members(scene)
    killing = scene.meanwhile("acted/01-roll-to-kraft/broker 1/*", lambda: kill_broker(scene, 3))
    run, ended = scene.begin("kraft")
    killing.join()
    story.told["broker killed"] = ended.err
    scene.await_sound()
    if ended.exit_code != 0:
        ended = scene.resume(run)
        assert ended.exit_code == 0, ended.err
    story.note("kraft")
    assert scene.resume(run, verb="undo").exit_code == 0
    story.note("undone")
    active = lab.migration.controlling()
    victim = faults.controller(lab, active)
    killing = scene.meanwhile("acted/01-roll-to-kraft/broker 2/*", lambda: faults.kill(victim))
    run, ended = scene.begin("kraft")
    killing.join()
    story.told["controller killed"] = ended.err
    assert ended.exit_code != 0
    lab.migration.restart_controller(victim, has_flag=True)
    scene.await_sound()
    ended = scene.resume(run)
    assert ended.exit_code == 0, ended.err
    story.note("kraft again")
    scene.go_killed(
        "zookeeper",
        ("attempted/01-roll-to-migration/*", 1.0),
        ("attempted/04-hand-back/*", 0.0),
        ("attempted/05-roll-to-zookeeper/*", 1.0),
    )
    story.note("back from kraft")


def finalise(story: Story) -> None:
    scene = story.scene
    for phase in ("controllers", "dual write", "kraft"):
        scene.go(phase)
    scene.go_killed("finalised", ("attempted/03-finalise/*", 1.0), ("acted/03-finalise/*/CONFIRMED", 0.0))
    story.note("finalised")


def _await_no_members(scene: Scene) -> None:
    faults.await_gone(scene.lab, f"/consumers/shop/ids/{scene.lab.consumers('shop')[0].consumer_id}")


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    with Lab(brokers=3, controllers=3) as lab:
        profile = lab.folder / "offramp.toml"
        profile.write_text(lab.profile_toml())
        make_one_of_everything(lab.migration, secrets.token_hex(12))
        lab.create_topic(TOPIC, PARTITIONS, 3)
        producer = lab.start_producer(TOPIC, RATE)
        readers = [lab.start_new_consumer("readers", TOPIC) for _ in range(2)]
        lab.start_old_consumer("shop", TOPIC)
        seen = Story(Scene(lab, profile))
        watch = LeaderWatch(seen.scene)
        watch.start()
        seen.note("before")
        forward_and_back(seen)
        kraft_and_back(seen)
        finalise(seen)
        watch.end()
        producer.stop()
        seen.n_acknowledged, seen.lost = seen.scene.lost(TOPIC, PARTITIONS)
        # What was sent again is acknowledged without its offset: it is among the lost, if it is.
        rows = [row for row in producer.acknowledged() if row["offset"] is not None]
        acknowledged = {(row["partition"], row["offset"]) for row in rows}
        wait_until(lambda: len(_read(readers)) >= len(acknowledged), "the members to read all", 60)
        seen.unread = acknowledged - _read(readers)
        seen.pauses_ms, seen.n_looks = seen.scene.longest_pauses_ms(), watch.n_looks
        print(f"\nacknowledged {seen.n_acknowledged}, pauses {seen.pauses_ms} ms, leaderless {seen.scene.offline}")
        print(f"{len(seen.scene.ended)} processes, {seen.scene.n_killed} of them killed; {seen.n_looks} looks")
        yield seen


def _read(members) -> set[tuple[int, int]]:
    return {(row["partition"], row["offset"]) for each in members for row in each.records()}


def test_no_acknowledged_record_is_lost(story):
    assert story.n_acknowledged > FEWEST_RECORDS
    assert story.lost == set()
    assert story.unread == set()


def test_no_partition_is_offline_longer_than_a_restart(story):
    """Every partition has three replicas: none is without a leader, but where a node was killed."""
    assert story.n_looks > 1000
    assert max((seconds for each in story.scene.offline.values() for seconds in each), default=0.0) < 20.0
    assert len(story.pauses_ms) == PARTITIONS
    assert max(story.pauses_ms) < 60_000


def test_each_run_ends_in_its_phase_however_often_it_was_killed(story):
    assert {name: status.state.phase for name, status in story.statuses.items()} == {
        "before": "zookeeper",
        "controllers": "controllers",
        "dual write": "dual write",
        "back from dual write": "zookeeper",
        "kraft": "kraft",
        "undone": "dual write",
        "kraft again": "kraft",
        "back from kraft": "zookeeper",
        "finalised": "finalised",
    }


KINDS = ("topics", "brokers", "users", "clients", "ips")


def test_zookeeper_had_every_kind_of_metadata(story):
    before = story.dumps["before"]
    folders = [f"/config/{kind}/" for kind in KINDS] + ["/brokers/topics/", "/kafka-acl/", "/kafka-acl-extended/"]
    for folder in [*folders, "/delegation_token/tokens/"]:
        assert any(path.startswith(folder) for path in before), folder


@pytest.mark.parametrize("back", ["back from dual write", "back from kraft"])
def test_after_a_way_back_zookeeper_is_as_before_but_for_leaders_and_epochs(story, back):
    before, after = story.dumps["before"], story.dumps[back]
    differing = {path for path in before | after if before.get(path) != after.get(path)}
    assert {path: (before.get(path), after.get(path)) for path in differing} == {}
    assert [each.check_id for each in story.statuses[back].findings if each.severity in ("alarm", "block")] == []


def test_the_transaction_is_made_once(story):
    """Killed after it, and before it: no second one, and no half of one."""
    for run in story.scene.run_ids():
        acted = [
            it for it in story.scene.events(run) if (it["event"], it["item"]) == ("acted", "control of the cluster")
        ]
        assert [it["outcome"] for it in acted if it["outcome"] == "CONFIRMED"] in ([], ["CONFIRMED"])


def test_old_members_are_named_before_they_would_find_no_broker(story):
    assert "shop (1)" in story.told["old members"]
    assert "offramp plan group shop --to 'all KC'" in story.told["old members"]


def test_a_run_says_which_node_is_missing(story):
    assert "controller 300" in story.told["controller killed"]
    assert "offramp resume" in story.told["controller killed"]
