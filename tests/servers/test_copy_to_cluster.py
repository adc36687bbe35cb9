"""Offsets copied to another cluster by the records on both sides: two clusters whose topics are copies, in part."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from typer.testing import CliRunner

from kit.cli.main import app
from kit.clients.cluster import Cluster, connect
from kit.engine.model.states import RunState
from kit.errors import InputError, NothingToDo
from kit.lab import Lab
from kit.lab.members.new_consumers import NewMember
from kit.lab.topics import QUIET
from kit.moves.offsets.fetch import fetch_stores
from kit.moves.offsets.other_cluster import OtherCluster, plan_copy_to_cluster
from kit.moves.offsets.plan import PlanOptions, select
from kit.operations.operations import Operations
from kit.profile import load_profile
from tests.servers.awaiting import awaited
from tests.servers.offset_operations import OffsetOperations

GROUP, TOPIC, SYNCS = "crossing", "crossed", "mm2-offset-syncs.there.internal"
MIRRORED, LATE, TRUNCATED, COMPACTED, ALIKE, FINISHED, EMPTY = range(7)
COMMITTED = {MIRRORED: 60, LATE: 60, TRUNCATED: 60, COMPACTED: 61, ALIKE: 52, FINISHED: 100, EMPTY: 0}
FILLER = 40
OPTIONS = PlanOptions(made_by="ann", now=datetime.now(UTC))
BEGAN = int(time.time() * 1000) - 3_600_000


def record(number: int) -> tuple[bytes, int]:
    return b"record %d" % number, BEGAN + number


def alike(number: int) -> tuple[bytes, int]:
    return record(50 if 50 <= number < 55 else number)


def write(lab: Lab, topic: str, partition: int, records: Iterable[tuple[bytes, int]]) -> None:
    producer = Producer({**QUIET, "bootstrap.servers": lab.servers.addresses()})
    for value, at_ms in records:
        producer.produce(topic, value, partition=partition, timestamp=at_ms)
    assert producer.flush(60) == 0


def copies(lab: Lab, topic: str) -> None:
    """Older records first, so the copy of a record has another offset."""
    filler = [(b"older", BEGAN - 1000)] * FILLER
    for partition, numbers in {
        MIRRORED: range(100), LATE: range(50), TRUNCATED: range(100), COMPACTED: range(0, 100, 10), FINISHED: range(100)
    }.items():  # fmt: skip
        write(lab, topic, partition, [*filler, *map(record, numbers)])
    write(lab, topic, ALIKE, [*filler, *map(alike, range(100))])
    low = TopicPartition(topic, TRUNCATED, FILLER + 80)
    for future in lab.admin.delete_records([low]).values():
        future.result(60)


@pytest.fixture(scope="module")
def labs(kraft_lab: Lab) -> Iterator[tuple[Lab, Lab]]:
    with Lab(kraft=True) as other:
        kraft_lab.create_topics({TOPIC: len(COMMITTED), SYNCS: 1})
        other.create_topics({TOPIC: len(COMMITTED), f"here.{TOPIC}": len(COMMITTED)})
        for partition in (MIRRORED, LATE, TRUNCATED, COMPACTED, FINISHED):
            write(kraft_lab, TOPIC, partition, map(record, range(100)))
        write(kraft_lab, TOPIC, ALIKE, map(alike, range(100)))
        copies(other, TOPIC)
        copies(other, f"here.{TOPIC}")
        yield kraft_lab, other


@pytest.fixture(scope="module")
def profile(labs: tuple[Lab, Lab]) -> Path:
    path = labs[0].folder / "two-clusters.toml"
    named = zip(("here", "there"), labs)
    path.write_text(
        "".join(f'[clusters.{name}]\nbootstrap_servers = "{lab.bootstrap_servers}"\n' for name, lab in named)
    )
    return path


@pytest.fixture(scope="module")
def clusters(profile: Path) -> Iterator[tuple[Cluster, Cluster]]:
    with connect(load_profile("here", profile)) as here, connect(load_profile("there", profile)) as there:
        OffsetOperations(here, profile.parent).commit(GROUP, TOPIC, COMMITTED)
        yield here, there


def offsets_of(cluster: Cluster, group: str) -> dict[int, int | None]:
    stored = fetch_stores(cluster, group.__eq__).group("kafka", group).offsets
    return {partition: each.offset for (_, partition), each in sorted(stored.items())}


def planned(clusters: tuple[Cluster, Cluster], **how):
    return plan_copy_to_cluster(*clusters, select(groups=GROUP), OtherCluster(**how), OPTIONS)


def told(plan, topic: str = TOPIC, group: str = GROUP) -> dict[int, str]:
    return {each: plan.parameters["translation"][f"{group}/{topic}-{each}"] for each in COMMITTED}


def test_each_offset_is_found_by_the_records_on_both_sides_and_undone(clusters, tmp_path):
    desk = Operations(clusters[1], tmp_path)
    plan = desk.save_plan(planned(clusters))
    how = told(plan)
    assert how[MIRRORED] == how[FINISHED] == how[ALIKE] == "by equal record"
    assert how[COMPACTED] == "by equal record: the next record is not in the copy"
    assert how[TRUNCATED].startswith("by timestamp: ")
    assert how[LATE] == "by timestamp: all records of the copy are older"
    assert "no record" in how[EMPTY]
    desk.approve(plan, plan.subject, plan.digest[:8], approver="Bob")
    run = desk.begin(plan)
    assert run.act().state == RunState.VERIFIED
    wanted = {
        MIRRORED: FILLER + 60, LATE: FILLER + 50, TRUNCATED: FILLER + 80, COMPACTED: FILLER + 7, ALIKE: FILLER + 52,
        FINISHED: FILLER + 100,
    }  # fmt: skip
    assert offsets_of(clusters[1], GROUP) == wanted
    stored = fetch_stores(clusters[1], GROUP.__eq__).group("kafka", GROUP).offsets.values()
    assert {each.leader_epoch for each in stored} == {None}  # An epoch of another cluster can stop consumers.
    with pytest.raises(NothingToDo, match="as requested already"):  # The proof: records of both sides, read again.
        planned(clusters)
    assert run.undo().state == RunState.UNDONE
    assert offsets_of(clusters[1], GROUP) == {}


def test_offsets_are_found_by_time_or_by_the_syncs_of_mirrormaker(labs, clusters):
    by_time = told(planned(clusters, by="timestamp"))
    assert by_time[MIRRORED].startswith("by timestamp: records out of the order")
    pairs = ((0, 0, FILLER), (MIRRORED, 50, FILLER + 50), (MIRRORED, 80, FILLER + 80))
    producer = Producer({**QUIET, "bootstrap.servers": labs[0].servers.addresses()})
    for partition, upstream, downstream in pairs:
        key = struct.pack(f">h{len(TOPIC)}si", len(TOPIC), TOPIC.encode(), partition)
        producer.produce(SYNCS, struct.pack(">qq", upstream, downstream), key, partition=0)
    assert producer.flush(60) == 0
    plan = planned(clusters, by="syncs", syncs_topic=SYNCS, topic_prefix="here.")
    how = told(plan, f"here.{TOPIC}")
    assert how[MIRRORED] == "by offset sync, 10 records away: up to 9 records are read again"
    assert how[ALIKE].startswith("by timestamp: ")  # No sync of that partition.
    (change,) = [each for step in plan.steps for each in step.changes if each.item.endswith(f"-{MIRRORED}")]
    assert change.after == FILLER + 51


def test_the_verb_names_the_cluster_whose_plan_it_is(clusters, profile, tmp_path):
    command = ["plan", "offsets", "copy", "--profile-file", str(profile), "--profile", "here", "-g", GROUP]
    command += ["--runs", str(tmp_path), "--to-cluster"]
    made = CliRunner().invoke(app, [*command, "there", "--to-group", "arrived"], catch_exceptions=False)
    assert made.exit_code == 0, made.output
    assert "execute it with --profile there" in made.output
    for words in (["here"], ["there", "--by", "syncs"], ["nowhere"]):
        refused = CliRunner().invoke(app, [*command, *words])
        assert refused.exit_code not in (0, 1), refused.output


def test_a_group_that_still_reads_on_the_source_is_named(labs, clusters):
    (member,) = labs[0].start_new_consumers([NewMember(GROUP, [TOPIC], "reader")])
    awaited(lambda: fetch_stores(clusters[0], GROUP.__eq__).group("kafka", GROUP).members, len, "its member")
    assert any("their commits after this plan are not copied" in each for each in planned(clusters).risks)
    member.stop()


def test_a_cluster_is_not_copied_to_itself(clusters):
    with pytest.raises(InputError, match="are one cluster"):
        plan_copy_to_cluster(clusters[0], clusters[0], select(groups=GROUP), OtherCluster(), OPTIONS)
