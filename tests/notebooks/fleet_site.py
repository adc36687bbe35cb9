"""Four real groups of migration-enabled members on a lab of their own: for the fleet's runbook and its wizard.

The conftest of either folder registers it as a plugin, so that a run of both starts one lab.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kit.cluster import connect
from kit.lab import Lab
from kit.lab.members.handles import Consumer
from kit.lab.members.python import PythonMember
from kit.lab.process import wait_until
from kit.migrate.fleet.plan import fleet
from kit.profile import Profile, load_profile
from kit.snapshot import observe
from kit.tables.groups import KAFKA
from tests.interop.group import gauges_of

GROUPS = ("billing", "mail", "search", "shop")
TOPIC = "events"
PARTITIONS, RECORDS = 2, 40


@dataclass
class FleetSite:
    """The lab, a member per group (all in one process), and a client that only looks."""

    lab: Lab
    members: list[Consumer]
    zookeeper: KazooClient
    profile_file: Path

    @property
    def profile(self) -> Profile:
        return load_profile(file=self.profile_file)

    def tree(self) -> dict[str, tuple[int, ...]]:
        """Every znode below /consumers and /offramp, with all that a write to it or below it would change."""
        found: dict[str, tuple[int, ...]] = {}
        todo = [path for path in ("/consumers", "/offramp") if self.zookeeper.exists(path)]
        while todo:
            path = todo.pop()
            children, stat = self.zookeeper.get_children(path, include_data=True)
            found[path] = (stat.czxid, stat.mzxid, stat.version, stat.cversion, stat.pzxid)
            todo += [f"{path}/{child}" for child in children]
        return found

    def modes(self) -> dict[str, str]:
        """Group → toggle, of those that have one."""
        paths = {name: f"/consumers/{name}/migration/mode" for name in GROUPS}
        return {
            name: self.zookeeper.get(path)[0].decode() for name, path in paths.items() if self.zookeeper.exists(path)
        }

    def n_in_kafka(self) -> int:
        """Members that say they follow Kafka's coordination."""
        return sum(gauges_of(each)["ActiveKafkaCoordinationCount"] == 1 for each in self.members)

    def have_committed(self) -> bool:
        """Whether nobody has anything left to commit: then only a migration writes."""
        paths = [f"/consumers/{name}/offsets/{TOPIC}/{number}" for name in GROUPS for number in range(PARTITIONS)]
        found = [int(self.zookeeper.get(path)[0]) for path in paths if self.zookeeper.exists(path)]
        return sum(found) == RECORDS * len(GROUPS)

    def are_ready(self) -> bool:
        with connect(self.profile) as cluster:
            found = fleet(observe(cluster), KAFKA, 0.0)
        return dict(found.select("group_id", "not_ready_reason").rows()) == dict.fromkeys(GROUPS)


def register(config: pytest.Config) -> None:
    """As ``shop.register``."""
    if not config.pluginmanager.has_plugin(__name__):
        config.pluginmanager.register(sys.modules[__name__], __name__)


@pytest.fixture(scope="session")
def fleet_site() -> Iterator[FleetSite]:
    with Lab(brokers=1) as lab:
        lab.create_topics({TOPIC: PARTITIONS})
        lab.produce(TOPIC, RECORDS)
        profile_file = lab.folder / "offramp.toml"
        profile_file.write_text(lab.profile_toml(), encoding="utf-8")
        members = lab.start_python_members([PythonMember("mezkcc", name, [TOPIC]) for name in GROUPS])
        client = KazooClient(lab.zookeeper_connect)
        client.start(15)
        try:
            site = FleetSite(lab, members, client, profile_file)
            wait_until(site.are_ready, "all groups are ready", 120)
            wait_until(site.have_committed, "all groups have committed", 60)
            yield site
        finally:
            client.stop()
            client.close()
