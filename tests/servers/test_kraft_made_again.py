"""A topic that is deleted and made again while nothing reaches ZooKeeper; then controllers are elected.

Kafka 3.9.1 creates in ZooKeeper what is new before it deletes, by name, what is gone: with the first controller dual
write stands still, the second one deletes the topic's znode, the third one makes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import polars as pl
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from kit.cluster import connect
from kit.errors import OfframpError
from kit.kraft import KraftStatus, MetadataDiff, kraft_diff, kraft_status
from kit.lab import Lab, faults
from kit.lab.entities import done
from kit.lab.process import wait_until
from kit.metadata_log import read_log
from kit.metadata_log.controllers import Controllers
from kit.profile import load_profile
from tests.soak import soak_only

pytestmark = [soak_only, pytest.mark.timeout(600)]
AGAIN = "again"
STANDS_S = 60
"""Longer than the 30 s after which a status says that dual write stands still."""


@dataclass
class Story:
    lab: Lab
    statuses: dict[str, KraftStatus] = field(default_factory=dict)
    diffs: dict[str, MetadataDiff] = field(default_factory=dict)

    def look(self, moment: str) -> None:
        file = self.lab.folder / "offramp.toml"
        file.write_text(self.lab.profile_toml())
        with connect(load_profile(file=file)) as cluster:
            self.statuses[moment] = kraft_status(cluster)
            self.diffs[moment] = kraft_diff(cluster, settle_s=1)

    def ids(self) -> list[object]:
        """Of the topics of that name that the log has made."""
        log = read_log(Controllers(self.lab.migration.controller_addresses))
        return [body for name, body in log.records.select("name", "body").rows() if name == "Topic" and AGAIN in body]

    def make_again(self) -> bool:
        """Nobody learns of it while the controllers are cut off, so the request times out."""
        with suppress(KafkaException, OfframpError):
            done(self.lab.admin.create_topics([NewTopic(AGAIN, 3, 1)], request_timeout=10), "topic")
        return len(self.ids()) == 2

    def stands_still(self, moment: str) -> bool:
        with suppress(OfframpError):
            self.look(moment)
            return any(each.check_id == "P02" for each in self.statuses[moment].findings)
        return False

    def has_diverged(self, moment: str) -> bool:
        with suppress(OfframpError):
            self.look(moment)
            return not self.diffs[moment].of("diverged").is_empty()
        return False

    def is_clean(self, moment: str) -> bool:
        with suppress(OfframpError):
            self.look(moment)
            return self.diffs[moment].is_clean
        return False


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    with Lab(brokers=1, controllers=1) as lab:
        lab.migration.reach("dual-write")
        told = Story(lab)
        lab.create_topic(AGAIN, 2)
        wait_until(lambda: told.is_clean("before"), "both stores hold the topic", 30)
        faults.cut_controllers_from_zookeeper(lab)
        done(lab.admin.delete_topics([AGAIN]), "topic")
        wait_until(told.make_again, "the topic, made again", 60)
        restart(lab, faults.mend_controllers_to_zookeeper)
        wait_until(lambda: told.stands_still("elected"), "a dual write that stands still", STANDS_S)
        restart(lab)
        wait_until(lambda: told.has_diverged("elected again"), "a topic that ZooKeeper lacks", STANDS_S)
        restart(lab)
        wait_until(lambda: told.is_clean("mended"), "both stores hold the same", 60)
        yield told


def restart(lab: Lab, meanwhile=lambda lab: None) -> None:
    (active,) = lab.migration.controllers
    faults.kill(active)
    meanwhile(lab)
    lab.migration.restart_controller(active, has_flag=True)


def rows(found: MetadataDiff) -> list[tuple[str, ...]]:
    """What differs, and whether ZooKeeper has anything of that name."""
    told = found.of("in_flight", "diverged").with_columns(is_there=pl.col("zookeeper_value").is_not_null())
    return told.select("kind", "item", "is_there", "verdict", "cause").rows()


def test_the_first_controller_stands_still_and_the_diff_names_the_topic(story):
    assert rows(story.diffs["elected"]) == [
        ("partition", "0", True, "in_flight", "made_again"),
        ("partition", "1", True, "in_flight", "made_again"),
        ("partition", "2", False, "in_flight", "made_again"),
        ("topic", "id", True, "in_flight", "made_again"),
    ]
    (alarm,) = (each for each in story.statuses["elected"].findings if each.check_id == "P02")
    assert "(offramp kraft diff names it: made_again; two restarts help)" in alarm.remedy


def test_the_second_one_deletes_the_topic_in_zookeeper(story):
    assert rows(story.diffs["elected again"]) == [
        *(("partition", str(number), False, "diverged", "made_again") for number in range(3)),
        ("topic", "id", False, "diverged", "made_again"),
    ]


def test_the_third_one_heals(story):
    assert story.statuses["mended"].findings == []
    held = story.diffs["mended"].of("equal").select("kind", "entity").rows()
    assert held.count(("partition", AGAIN)) == 3
