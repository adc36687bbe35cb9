"""A small shop on a lab of one broker, and what is true of it: for the tests of the notebooks and of the browser.

The conftest of either folder registers it as a plugin, so that a run of both starts one lab.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from kit.clients.cluster import connect
from kit.errors import LabError
from kit.groups.report import Report, run_report
from kit.groups.snapshot import observe
from kit.lab import Lab, NewMember, OldMember
from kit.lab.members.handles import Consumer
from kit.lab.process import wait_until
from kit.profile import Profile, load_profile

TOPICS = {"orders": 4, "payments": 3, "clicks": 4}
READ = {"orders": 40, "payments": 30, "clicks": 40}
"""Records that every group has read and committed."""
UNREAD = {"payments": 30, "clicks": 80}
"""Records that came while the readers of these topics were halted."""
LEDGER, LOYALTY, ALERTS, ARCHIVE = "ledger", "loyalty", "alerts", "click-archive"
ZOOKEEPER, KAFKA = "zookeeper", "kafka"
START_SECONDS = 150
# A halted member stays a member for as long as ZooKeeper and the broker allow: what is true stays true.
HALTED_OLD = {"zookeeper.session.timeout.ms": "1800000"}
HALTED_NEW = {"session.timeout.ms": 1_800_000, "max.poll.interval.ms": 1_800_000}


@dataclass(frozen=True)
class Group:
    """One group of one member: its topic, and the stores that have its offsets."""

    topic: str
    member: Consumer
    stores: tuple[str, ...]


class Shop:
    """The lab, the groups by name, and how many records each partition holds."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.profile_file = lab.folder / "offramp.toml"
        self.profile_file.write_text(lab.profile_toml(), encoding="utf-8")
        self.written = {topic: dict.fromkeys(range(count), 0) for topic, count in TOPICS.items()}
        self.groups: dict[str, Group] = {}

    @property
    def profile(self) -> Profile:
        return load_profile(file=self.profile_file)

    def produce(self, counts: Mapping[str, int]) -> None:
        """Write records, by topic, spread evenly."""
        for topic, count in counts.items():
            for partition, more in self.lab.produce(topic, count).items():
                self.written[topic][partition] += more

    def committed(self, group_id: str) -> dict[int, int]:
        """Partition → committed offset, the same in every store of the group."""
        topic = self.groups[group_id].topic
        if topic not in UNREAD:
            return dict(self.written[topic])
        return dict.fromkeys(self.written[topic], READ[topic] // TOPICS[topic])

    def lag(self, group_id: str) -> dict[int, int]:
        """Partition → records behind."""
        ends, committed = self.written[self.groups[group_id].topic], self.committed(group_id)
        return {partition: end - committed[partition] for partition, end in ends.items()}


def open_shop(lab: Lab) -> Shop:
    """Start four groups, wait until all is committed, halt three of them and let two topics grow."""
    shop = Shop(lab)
    lab.create_topics(TOPICS)
    shop.produce(READ)
    old = [
        OldMember(LEDGER, "orders", threads=2, settings=HALTED_OLD),
        OldMember(LOYALTY, "payments", threads=2, offsets="both", settings=HALTED_OLD),
    ]
    ledger, loyalty = lab.start_old_consumers(old, wait=False)
    (alerts,) = lab.start_new_consumers([NewMember(ALERTS, ["orders"])], wait=False)
    (archive,) = lab.start_new_consumers([NewMember(ARCHIVE, ["clicks"], settings=HALTED_NEW)], wait=False)
    shop.groups = {
        LEDGER: Group("orders", ledger, (ZOOKEEPER,)),
        LOYALTY: Group("payments", loyalty, (ZOOKEEPER, KAFKA)),
        ALERTS: Group("orders", alerts, (KAFKA,)),
        ARCHIVE: Group("clicks", archive, (KAFKA,)),
    }
    await_commits(shop)
    for halted in (ledger, archive):  # loyalty shares ledger's process
        halted.pause()
    shop.produce(UNREAD)
    return shop


def await_commits(shop: Shop) -> None:
    """Wait until every store of every group holds what was written."""
    wanted = {
        (name, store, group.topic, partition, count)
        for name, group in shop.groups.items()
        for store in group.stores
        for partition, count in shop.written[group.topic].items()
    }
    columns = ("group_id", "store", "topic", "partition", "committed_offset")
    for group in shop.groups.values():
        group.member.await_ready(START_SECONDS)
    found = set[Any]()
    with connect(shop.profile) as cluster:

        def all_committed() -> bool:
            found.clear()
            found.update(observe(cluster).committed_offsets.select(columns).iter_rows())
            return found == wanted

        try:
            wait_until(all_committed, "all commits", START_SECONDS)
        except LabError as error:
            raise LabError(f"{error}\nmissing: {wanted - found}\nunexpected: {found - wanted}") from None


def register(config: pytest.Config) -> None:
    """Make this module a plugin: its fixtures are then one for all folders, where an import would make one each."""
    if not config.pluginmanager.has_plugin(__name__):
        config.pluginmanager.register(sys.modules[__name__], __name__)


@pytest.fixture(scope="session")
def shop() -> Iterator[Shop]:
    """The running shop."""
    with Lab(brokers=1) as lab:
        yield open_shop(lab)


@dataclass(frozen=True)
class Reports:
    """Two reports with one history, and how far ``ARCHIVE`` was behind at each."""

    reports: tuple[Report, Report]
    archive_lag: tuple[int, int]


@pytest.fixture(scope="session")
def reports(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """Two reports, between them forty more records."""
    folder = tmp_path_factory.mktemp("reports")
    made, lags = [], []
    for more in ({}, {"clicks": 40}):
        shop.produce(more)
        lags.append(sum(shop.lag(ARCHIVE).values()))
        made.append(run_report(shop.profile, folder, ".*", str(folder / "history")))
    return Reports((made[0], made[1]), (lags[0], lags[1]))
