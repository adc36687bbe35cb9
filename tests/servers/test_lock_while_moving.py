"""The locks of a run while the cluster moves to KRaft: ZooKeeper's, and from dual write on Kafka's too."""

from __future__ import annotations

import pytest

from kit import connect
from kit.errors import TargetBusy
from kit.lab import Lab
from kit.moves.locks.held_locks import held_locks
from kit.moves.locks.run_lock import RunLock
from kit.profile import load_profile
from kit.tables.groups import KAFKA, ZOOKEEPER

pytestmark = pytest.mark.timeout(600)
BOTH = {ZOOKEEPER, KAFKA}
STORES = {"zookeeper": {ZOOKEEPER}, "controllers": {ZOOKEEPER}, "dual-write": BOTH, "kraft": BOTH, "finalised": BOTH}
GROUP = "payments"


def test_each_phase_has_its_locks_and_a_mark_of_an_earlier_phase_is_seen(tmp_path):
    with Lab(brokers=1, controllers=1) as lab:
        lab.create_topic("orders", 2)
        for number, (phase, stores) in enumerate(STORES.items()):
            lab.migration.reach(phase)
            file = tmp_path / f"{phase}.toml"
            file.write_text(lab.profile_toml(), encoding="utf-8")
            with connect(load_profile(file=file)) as cluster:
                first, second = RunLock(cluster), RunLock(cluster)
                first.acquire([GROUP], f"run-{number}")
                try:
                    assert {each.store for each in held_locks(cluster)} == stores
                    with pytest.raises(TargetBusy, match=f"run-{number}"):
                        second.acquire([GROUP], "another")
                    first.assert_held()
                    before = f"run-{number - 1}"
                    assert first.followed_by([GROUP], before) == {}
                    first.mark([GROUP], f"run-{number}")
                    assert first.followed_by([GROUP], before) == ({GROUP: f"run-{number}"})
                finally:
                    first.release()
                assert held_locks(cluster) == []
