"""Whether dual write goes on is watched, whatever the clocks of ZooKeeper, controllers and this machine say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from kit import kraft
from kit.analyze.metadata.contradictions import SILENT, findings
from kit.errors import ConnectError
from kit.migrate.kraft import standing
from tests.kraft_records import AT, SOUND, WAITING, control

ZOOKEEPER = object()
AHEAD = replace(SOUND, control=control(read_at=AT + timedelta(hours=1)))
"""This machine's clock is an hour ahead of ZooKeeper's."""


@pytest.fixture
def offsets(monkeypatch) -> list[int | None]:
    """What ``/migration`` holds, look by look; the last stays. Each look takes as long as one sleep."""
    left, clock = [79], [0.0]

    def looks() -> Iterator[int | None]:
        while True:
            yield left.pop(0) if len(left) > 1 else left[0]

    found = looks()
    monkeypatch.setattr(kraft, "fetch_control", lambda client: control(checkpoint=next(found)))
    monkeypatch.setattr(
        kraft,
        "time",
        SimpleNamespace(monotonic=lambda: clock[0], sleep=lambda s: clock.__setitem__(0, clock[0] + s)),
    )
    return left


def test_one_that_moves_while_it_is_watched_is_well_by_any_clock(offsets):
    offsets[:] = [79, 79, 80]
    seen = kraft.watched(ZOOKEEPER, AHEAD)
    assert 0 < seen.stood_still_s < 1
    assert findings(seen) == []


def test_one_that_does_not_move_for_as_long_as_it_is_watched_stands_still_by_any_clock(offsets):
    behind = replace(SOUND, control=control(read_at=AT - timedelta(hours=1)))
    for facts in (SOUND, AHEAD, behind):
        seen = kraft.watched(ZOOKEEPER, facts)
        assert seen.stood_still_s > SILENT.total_seconds()
        assert [each.check_id for each in findings(seen)] == ["P02"]


def test_only_dual_write_that_may_go_on_is_watched(monkeypatch):
    monkeypatch.setattr(kraft, "fetch_control", lambda client: pytest.fail("it was watched"))
    for facts in (WAITING, replace(SOUND, zk_state="POST_MIGRATION"), replace(SOUND, behind=2 * SILENT)):
        assert kraft.watched(ZOOKEEPER, facts) == facts
    assert kraft.watched(None, SOUND) == SOUND


@pytest.mark.parametrize(("moved_to", "is_late"), [(99, False), (50, True)])
def test_what_the_log_tells_is_no_older_than_the_read_of_the_log(monkeypatch, moved_to, is_late):
    """A record a second. Nodes that are silent, and a big log, take longer than dual write may stand still."""
    checkpoints = iter([50, moved_to])
    log = SimpleNamespace(behind=lambda offset: timedelta(seconds=99 - offset), image=None)
    monkeypatch.setattr(kraft, "fetch_control", lambda client: control(checkpoint=next(checkpoints)))
    monkeypatch.setattr(kraft, "kafka_settings", lambda profile: {})
    monkeypatch.setattr(kraft, "fetch_node_facts", lambda *given: SOUND.nodes)
    monkeypatch.setattr(kraft, "_log", lambda *given: (log, None))
    monkeypatch.setattr(kraft, "node_rows", lambda image: SOUND.registrations)
    monkeypatch.setattr(kraft, "_zk_state", lambda log: SOUND.zk_state)
    profile = SimpleNamespace(name="production", kraft=SimpleNamespace(addresses=("host:9093",)))
    cluster = SimpleNamespace(zookeeper=ZOOKEEPER, profile=profile, cluster_id="abc")
    found = findings(kraft.read_facts(cluster, {1: "host:9092"}))
    assert [each.check_id for each in found] == (["P02"] if is_late else [])


def test_a_zookeeper_that_stops_answering_meanwhile_is_an_error_of_a_fact(monkeypatch):
    def gone(client):
        raise ConnectError("ZooKeeper stopped answering")

    monkeypatch.setattr(kraft, "fetch_control", gone)
    seen = kraft.watched(ZOOKEEPER, SOUND)
    assert (seen.control, seen.control_error) == (None, "ZooKeeper stopped answering")


def test_a_plan_does_not_go_on_where_zookeeper_stops_answering_while_it_is_watched(monkeypatch):
    def gone(client):
        raise ConnectError("ZooKeeper stopped answering")

    monkeypatch.setattr(kraft, "fetch_control", gone)
    held = standing.Standing(SOUND, {1: "host:9092"})
    with pytest.raises(ConnectError, match="could not be read: ZooKeeper stopped answering"):
        standing.contradictions(SimpleNamespace(zookeeper=ZOOKEEPER), held)


def test_what_a_plan_may_not_go_on_with_is_watched_too(offsets):
    cluster = SimpleNamespace(zookeeper=ZOOKEEPER)
    held = standing.Standing(AHEAD, {1: "host:9092"})
    assert [each.check_id for each in standing.contradictions(cluster, held)] == ["P02"]
    offsets[:] = [80]
    assert standing.contradictions(cluster, held) == []
