"""The story of a migration driver, by lines of real controllers (3.9.1)."""

from __future__ import annotations

import gzip

import pytest

from kit.errors import InputError
from kit.kraft.analyze.driver_story import ABORTED, COPIED, FAILS, STATE, SYNCED, WAITS, driver_events
from kit.kraft.story import read_story

LAB = (
    "{} INFO [controller-3000-migration-driver-event-handler] KRaftMigrationDriver - [KRaftMigrationDriver id=3000] {}"
)
KAFKA = "[{}] INFO [KRaftMigrationDriver id=3000] {} (org.apache.kafka.metadata.migration.KRaftMigrationDriver)"
SEEN = (
    ("Initial migration of ZK metadata is not done.", None),
    (
        "3000 transitioning from INACTIVE to WAIT_FOR_CONTROLLER_QUORUM state",
        (STATE, "waits for the other"),
    ),
    (
        "Still waiting for all controller nodes ready to begin the migration. Not ready due to:No registration found "
        "for controller 3001 in [3001]",
        (WAITS, "No registration found for controller 3001"),
    ),
    ("No brokers are known to KRaft, waiting for brokers to register.", (WAITS, "no broker in migration mode")),
    ("Still waiting for ZK brokers [2] to register with KRaft.", (WAITS, "brokers [2] are not in migration mode")),
    ("Starting ZK migration", ("copies", "copies ZooKeeper's metadata")),
    (
        "Completed migration of metadata from ZooKeeper to KRaft. 9 records were generated in 232 ms across 1 batches. "
        "The average time spent waiting on a batch was 46.00 ms. The record types were {TOPIC_RECORD=1}.",
        (COPIED, "has copied: 9 records were generated in 232 ms"),
    ),
    ("Made the following ZK writes when reconciling with KRaft state: {UpdateClientQuota=5}", (SYNCED, "UpdateClient")),
    ("3000 transitioning from KRAFT_CONTROLLER_TO_BROKER_COMM to DUAL_WRITE state", (STATE, "every change to both")),
    ("Encountered ZooKeeper error during event PollEvent. Will retry.", (FAILS, "ZooKeeper failed at PollEvent")),
)


@pytest.mark.parametrize("layout", [LAB, KAFKA], ids=["lab", "kafka"])
def test_each_line_of_the_driver_becomes_a_sentence(layout):
    lines = [layout.format(f"2026-11-27 22:46:{second:02},113", told) for second, (told, _) in enumerate(SEEN)]
    events = driver_events(lines, "c.log")
    wanted = [each for _, each in SEEN if each is not None]
    assert [each.kind for each in events] == [kind for kind, _ in wanted]
    assert all(part in each.sentence for each, (_, part) in zip(events, wanted))
    assert {each.controller for each in events} == {3000}


def test_a_repeated_line_is_one_event():
    line = LAB.format("2026-11-27 22:46:{:02},113", SEEN[3][0])
    (event,) = driver_events([line.format(second) for second in range(5)], "c.log")
    assert event.sentence.endswith("has registered, 5 times")
    assert event.time.endswith(":00,113")


def aborted(before: str, *trace: str) -> list[str]:
    at = "2026-11-27 22:46:00,113"
    named = [f"{at} ERROR [driver] ZkConfigMigrationClient - {before}"] if before else []
    told = LAB.format(at, "Aborting the metadata migration from ZooKeeper to KRaft. 0 records.").replace(
        "INFO", "ERROR"
    )
    return [
        *named,
        told,
        "java.lang.RuntimeException: outer",
        *trace,
        "Caused by: java.lang.IllegalStateException: salt",
    ]


ZNODES = (
    ("Error in topic config consumer. Topic was orders.", "/brokers/topics/orders"),
    ("Error in broker config consumer. Broker was 1.", "/config/brokers/1"),
    (
        "Error in client quota visitor for SCRAM credential. User was ["
        "EntityData(entityType='user', entityName='al')].",
        "/config/users/al",
    ),
    (
        "Error in client quota entity visitor. Entity was [EntityData(entityType='user', entityName=null), "
        "EntityData(entityType='client-id', entityName='app')].",
        "/config/users/<default>/clients/app",
    ),
    (
        "Error in ACL consumer. Resource was "
        "ResourcePattern(resourceType=TRANSACTIONAL_ID, name=a, patternType=LITERAL).",
        "/kafka-acl/TransactionalId/a",
    ),
)


@pytest.mark.parametrize(("line", "znode"), ZNODES)
def test_an_abort_names_the_znode_and_the_innermost_exception(line, znode):
    event = driver_events(aborted(line), "c.log")[-1]
    assert (event.kind, event.znode, event.cause) == (ABORTED, znode, "java.lang.IllegalStateException: salt")


def test_an_abort_that_names_nothing_has_the_folder_that_was_read():
    trace = "\tat kafka.zk.migration.ZkConfigMigrationClient.iterateClientQuotas(ZkConfigMigrationClient.scala:142)"
    (event,) = driver_events(aborted("", trace), "c.log")
    assert event.znode == "a znode under /config/users, /config/clients or /config/ips"


def test_the_story_of_several_logs_is_in_order(tmp_path):
    first, second = tmp_path / "a.log", tmp_path / "b.log.gz"
    first.write_text("\n".join(aborted(ZNODES[1][0])))
    done = LAB.format("2026-11-27 22:47:00,000", SEEN[6][0])
    second.write_bytes(gzip.compress(done.encode()))
    assert "was aborted 1 time, last at /config/brokers/1" in read_story([first]).summary
    story = read_story([second, first], is_one_zone=True)
    assert [each.kind for each in story.events] == [ABORTED, COPIED]
    assert story.summary == "The copy from ZooKeeper ended after 1 abort."


def test_logs_of_unknown_zones_are_not_compared(tmp_path):
    """By their hosts' clocks an abort of 22:46 may be later than a copy of 22:47."""
    first, second = tmp_path / "a.log", tmp_path / "b.log"
    second.write_text("\n".join(aborted(ZNODES[1][0])))
    first.write_text(LAB.format("2026-11-27 22:47:00,000", SEEN[6][0]))
    story = read_story([first, second])
    assert [each.kind for each in story.events] == [COPIED, ABORTED]
    assert "Which log is newer is unknown" in story.summary
    heads = [line for line in story.describe() if not line.startswith(" ")]
    assert heads == [f"{first}:", f"{second}:"]


def test_a_log_keeps_its_own_order(tmp_path):
    """An hour comes twice when summer time ends."""
    log = tmp_path / "a.log"
    log.write_text("\n".join([*aborted(ZNODES[1][0]), LAB.format("2026-11-27 21:47:00,000", SEEN[6][0])]))
    assert read_story([log]).summary == "The copy from ZooKeeper ended after 1 abort."


@pytest.mark.parametrize("held", [b"", b"INFO something else\n", b"\x1f\x8b broken"])
def test_a_log_without_the_driver_is_refused(tmp_path, held):
    log = tmp_path / "c.log.gz"
    log.write_bytes(held)
    with pytest.raises(InputError, match=r"c\.log\.gz"):
        read_story([log])
