"""A topic that is deleted and made again while nothing reaches ZooKeeper; then controllers are elected.

Kafka 3.9.1 creates in ZooKeeper what is new before it deletes, by name, what is gone: with the first controller dual
write is stalled, the second one deletes the topic's znode, the third one makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import polars as pl
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from kit.errors import OfframpError
from kit.kraft.both_stores import MetadataDiff
from kit.kraft.metadata_log import read_log
from kit.kraft.metadata_log.controllers import Controllers
from kit.lab import Lab, faults
from kit.lab.entities import done
from kit.lab.process import wait_until
from tests.servers.kraft_walk import KraftWalk, stands_still
from tests.soak import soak_only

pytestmark = [soak_only, pytest.mark.timeout(600)]
AGAIN = "again"


def ids(lab: Lab) -> list[str]:
    """Return the ids of the topics of that name that the log has made."""
    log = read_log(Controllers(lab.migration.controller_addresses))
    return [body for name, body in log.records.select("name", "body").rows() if name == "Topic" and AGAIN in body]


def make_again(lab: Lab) -> bool:
    """Nobody learns of it while the controllers are cut off, so the request times out."""
    with suppress(KafkaException, OfframpError):
        done(lab.admin.create_topics([NewTopic(AGAIN, 3, 1)], request_timeout=10), "topic")
    return len(ids(lab)) == 2


def has_diverged(found: MetadataDiff) -> bool:
    return not found.of("diverged").is_empty()


@pytest.fixture(scope="module")
def walk() -> Iterator[KraftWalk]:
    with Lab(brokers=1, controllers=1) as lab:
        lab.migration.reach("dual-write")
        seen = KraftWalk(lab)
        lab.create_topic(AGAIN, 2)
        seen.await_diff("before", lambda found: found.is_clean, "both stores hold the topic")
        faults.cut_controllers_from_zookeeper(lab)
        done(lab.admin.delete_topics([AGAIN]), "topic")
        wait_until(lambda: make_again(lab), "the topic, made again", 120)
        restart(lab, faults.mend_controllers_to_zookeeper)
        seen.await_status("elected", stands_still, "a dual write that is stalled")
        seen.diff("elected", settle_s=1)
        restart(lab)
        seen.await_diff("elected again", has_diverged, "a topic that ZooKeeper lacks")
        restart(lab)
        seen.await_diff("healed", lambda found: found.is_clean, "both stores hold the same")
        seen.status("healed")
        yield seen


def restart(lab: Lab, meanwhile: Callable[[Lab], None] = lambda lab: None) -> None:
    (active,) = lab.migration.controllers
    faults.kill(active)
    meanwhile(lab)
    lab.migration.restart_controller(active, has_flag=True)


def rows(found: MetadataDiff) -> list[tuple[str, ...]]:
    """Return what differs, and whether ZooKeeper has anything of that name."""
    told = found.of("in_flight", "diverged").with_columns(is_there=pl.col("zookeeper_value").is_not_null())
    return told.select("kind", "item", "is_there", "verdict", "cause").rows()


def test_the_first_controller_is_stalled_and_the_diff_names_the_topic(walk):
    assert rows(walk.diffs["elected"]) == [
        ("partition", "0", True, "in_flight", "made_again"),
        ("partition", "1", True, "in_flight", "made_again"),
        ("partition", "2", False, "in_flight", "made_again"),
        ("topic", "id", True, "in_flight", "made_again"),
    ]
    (alarm,) = (each for each in walk.statuses["elected"].findings if each.check_id == "P02")
    assert "If offramp kraft diff shows made_again, restart the active controller twice" in alarm.remedy


def test_the_second_one_deletes_the_topic_in_zookeeper(walk):
    assert rows(walk.diffs["elected again"]) == [
        *(("partition", str(number), False, "diverged", "made_again") for number in range(3)),
        ("topic", "id", False, "diverged", "made_again"),
    ]


def test_the_third_one_heals(walk):
    assert walk.statuses["healed"].findings == []
    held = walk.diffs["healed"].of("equal").select("kind", "entity").rows()
    assert held.count(("partition", AGAIN)) == 3
