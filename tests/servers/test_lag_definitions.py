"""Kafka's own command, Burrow and KMinion, asked in the same second: what they show is what ``lag_as`` says of them.

To the record. Burrow and KMinion where their binaries are given: ``$BURROW``, ``$KMINION``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import polars as pl
import pytest
from confluent_kafka import Consumer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from kit import analyze, connect, observe, of_group
from kit.groups import views
from kit.lab.java import jars, jvm
from kit.lab.process import wait_until
from kit.lab.topics import QUIET
from kit.profile import load_profile
from tests.bench import kminion
from tests.servers import burrow
from tests.servers.awaiting import SECONDS
from tests.servers.coordinators import commit

COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
KMINION_LAG = "kminion_kafka_consumer_group_topic_partition_lag"
GROUP, TOPIC = "explained", "explained"
ENDS = 100


@pytest.fixture(scope="module")
def standing(lab) -> Iterator[None]:
    """A group with a member that commits nothing: one partition well, one cut short, one beyond its end, one bare."""
    lab.create_topic(TOPIC, 4)
    lab.produce(TOPIC, 4 * ENDS)
    commit(lab, GROUP, *(TopicPartition(TOPIC, *place) for place in ((0, 40), (1, 10), (2, ENDS + 7))))
    lab.admin.delete_records([TopicPartition(TOPIC, 1, 30)])[TopicPartition(TOPIC, 1)].result(SECONDS)
    settings = {**QUIET, "bootstrap.servers": lab.servers.addresses(), "group.id": GROUP}
    member = Consumer({**settings, "enable.auto.commit": False, "auto.offset.reset": "latest"})
    try:
        member.subscribe([TOPIC])
        wait_until(lambda: member.poll(0.2) is None and len(member.assignment()) == 4, "all partitions", SECONDS)
        yield
    finally:
        member.close()


def describe_by_kafka(lab) -> dict[int, tuple[str, str, str]]:
    """Partition → CURRENT-OFFSET, LOG-END-OFFSET and LAG as the command prints them."""
    arguments = ["--bootstrap-server", lab.servers.addresses(), "--describe", "--group", GROUP]
    arguments += ["--timeout", "60000"]  # It gives up after 5 s otherwise.
    command = jvm.java(jars.class_path(jars.SERVERS), COMMAND, arguments, 128, lab.folder)
    printed = subprocess.run(command, capture_output=True, text=True, timeout=2 * SECONDS, check=True).stdout
    rows = [line.split() for line in printed.splitlines() if line.startswith(GROUP)]
    return {int(row[2]): (row[3], row[4], row[5]) for row in rows}


def lag_of(lab) -> pl.DataFrame:
    path = lab.folder / "definitions.toml"
    path.write_text(lab.profile_toml())
    with connect(load_profile(file=path)) as cluster:
        return views.lag(of_group(observe(cluster, GROUP), GROUP))


@pytest.mark.skipif(kminion.binary() is None, reason=kminion.HOW_TO_GIVE)
def test_kminion_shows_what_is_documented(lab, standing):
    with kminion.served(lab) as (port, _):
        page = kminion.scraped(port, "/metrics").decode()
    families = {family.name: family.samples for family in text_string_to_metric_families(page)}
    samples = [each for each in families[KMINION_LAG] if each.labels["group_id"] == GROUP]
    told = {int(each.labels["partition_id"]): each.value for each in samples}
    assert told == {0: 60, 1: 90, 2: 0}
    assert told == listed(lag_of(lab), "kminion")


@pytest.mark.skipif(burrow.binary() is None, reason=burrow.HOW_TO_GIVE)
def test_burrow_shows_what_is_documented(lab, standing):
    with burrow.served(lab) as asked:
        wait_until(lambda: len(asked.partitions(GROUP)) == 3, "all commits read", SECONDS)
        told = {each["partition"]: each["current_lag"] for each in asked.partitions(GROUP)}
    assert told == {0: 60, 1: 90, 2: 0}
    assert told == listed(lag_of(lab), "burrow")


def listed(lag: pl.DataFrame, tool: str) -> dict[int, int]:
    shown = analyze.lag_definitions(lag).filter(pl.col("tool") == tool, "is_listed")
    return dict(shown.select("partition", "lag").iter_rows())


def test_kafka_s_command_shows_what_is_documented(lab, standing):
    lag = lag_of(lab)
    told = describe_by_kafka(lab)
    shown = {row["partition"]: row["lag"] for row in analyze.lag_as(lag, "kafka").to_dicts()}
    assert shown == {0: 60, 1: 90, 2: -7, 3: None}
    assert {number: None if each[2] == "-" else int(each[2]) for number, each in told.items()} == shown
    offsets = {
        row["partition"]: (str(row["committed_offset"] or "-"), str(row["log_end_offset"])) for row in lag.to_dicts()
    }
    assert {number: each[:2] for number, each in told.items()} == offsets
    sentences = {row["partition"]: row["sentence"] for row in analyze.lag_explained(lag).to_dicts()}
    assert sentences[1].startswith("20 records were deleted before the group read them: Kafdrop shows the 70")
