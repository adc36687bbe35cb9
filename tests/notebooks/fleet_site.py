"""Four real groups of migration-enabled members on a lab of their own: for the fleet's runbook and its wizard.

The conftest of either folder registers it as a plugin, so that a run of both starts one lab.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kit.clients.cluster import connect
from kit.errors import LabError
from kit.groups.snapshot import observe
from kit.lab import Lab
from kit.lab.members.handles import Consumer
from kit.lab.members.python import PythonMember
from kit.lab.process import wait_until
from kit.moves.fleet.plan import fleet
from kit.profile import Profile, load_profile
from kit.tables.groups import KAFKA
from tests.interop.group import gauges_of
from tests.notebooks import znodes

GROUPS = ("billing", "mail", "search", "shop")
TOPIC = "events"
PARTITIONS, RECORDS = 2, 40
SETTLE_SECONDS = 120
LONG_SESSIONS = {"zookeeper.session.timeout.ms": 60_000, "coordination.migration.session.timeout.ms": 60_000}
"""No member loses its session on a busy machine: then only a migration changes the groups."""


@dataclass
class FleetSite:
    """The lab, a member per group (all in one process), and a client that only reads."""

    lab: Lab
    members: list[Consumer]
    zookeeper: KazooClient
    profile_file: Path

    @property
    def profile(self) -> Profile:
        return load_profile(file=self.profile_file)

    def tree(self) -> znodes.Tree:
        return znodes.tree(self.zookeeper, ("/consumers", "/offramp"))

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
        """Return whether nobody has anything left to commit: then only a migration writes."""
        paths = [f"/consumers/{name}/offsets/{TOPIC}/{number}" for name in GROUPS for number in range(PARTITIONS)]
        found = [int(self.zookeeper.get(path)[0]) for path in paths if self.zookeeper.exists(path)]
        return sum(found) == RECORDS * len(GROUPS)

    def await_ready(self, to: str = KAFKA) -> None:
        """Wait until a plan to that assignment would have every group."""
        self.await_(lambda: self._not_ready(to) == dict.fromkeys(GROUPS), f"all groups are ready for {to}")

    def await_in_kafka(self, count: int) -> None:
        """Wait until so many members follow Kafka's coordination; each reports a change a quarter of a second later."""
        self.await_(lambda: self.n_in_kafka() == count, f"{count} members follow Kafka's coordination")

    def await_(self, condition: Callable[[], bool], what: str) -> None:
        """A failure shows the toggles, what keeps groups from being ready, and what every member said last."""
        try:
            wait_until(condition, what, SETTLE_SECONDS)
        except LabError as error:
            said = {each.group: [(it.at_ms, it.name, it.details) for it in each.events()[-5:]] for each in self.members}
            raise LabError(f"{error}\n{self.modes()}\n{self._not_ready(KAFKA)}\n{said}") from None

    def _not_ready(self, to: str) -> dict[str, str | None]:
        """Group → why no plan to that assignment would have it; None: a plan would."""
        with connect(self.profile) as cluster:
            found = fleet(observe(cluster), to, 0.0)
        return dict(found.select("group_id", "not_ready_reason").rows())


def register(config: pytest.Config) -> None:
    """Register like ``shop.register``."""
    if not config.pluginmanager.has_plugin(__name__):
        config.pluginmanager.register(sys.modules[__name__], __name__)


@pytest.fixture(scope="session")
def fleet_site() -> Iterator[FleetSite]:
    with Lab(brokers=1) as lab:
        lab.create_topics({TOPIC: PARTITIONS})
        lab.produce(TOPIC, RECORDS)
        profile_file = lab.folder / "offramp.toml"
        profile_file.write_text(lab.profile_toml(), encoding="utf-8")
        wanted = [PythonMember("mezkcc", name, [TOPIC], settings=LONG_SESSIONS) for name in GROUPS]
        members = lab.start_python_members(wanted, wait=False)
        for each in members:
            each.await_ready(SETTLE_SECONDS)
        client = KazooClient(lab.zookeeper_connect)
        client.start(15)
        try:
            site = FleetSite(lab, members, client, profile_file)
            site.await_ready()
            site.await_(site.have_committed, "all groups have committed")
            yield site
        finally:
            client.stop()
            client.close()
