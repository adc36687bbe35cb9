"""Controllers of 3.9.1 report when they give up a copy, or fail at it repeatedly."""

from __future__ import annotations

import pytest

from kit.kraft.rehearsal_lab import Stage, cause, stuck_in

TIME = "2026-11-23 15:00:42,422"
ABORTED = f"""{TIME} ERROR [driver] KRaftMigrationDriver - Error in config visitor. User was [].
{TIME} ERROR [driver] KRaftMigrationDriver - Aborting the metadata migration from ZooKeeper to KRaft. 0 records.
java.lang.RuntimeException: outer
\tat kafka.zk.ZkMigrationClient.migrateClientQuotas(ZkMigrationClient.scala:196)
Caused by: java.lang.IllegalArgumentException: Credentials not valid: salt=!
\tat org.apache.kafka.common.security.scram.internals.ScramCredentialUtils.credentialFromString(A.java:66)
{TIME} ERROR [driver] ProcessTerminatingFaultHandler - Encountered fatal fault: Aborting the ZK migration
"""
UNREADABLE = f"""{TIME} ERROR [driver] Fault - Encountered zk migration fault: Unhandled error in WaitForZkBrokersEvent
com.fasterxml.jackson.databind.JsonMappingException: Expected `String` value, received null
\tat kafka.zk.TopicZNode$.decode(ZkData.scala:412)
"""
RETRIED = (
    f"{TIME} INFO [driver] KRaftMigrationDriver - Encountered ZooKeeper error during event SyncKRaftMetadataEvent.\n"
)


def test_an_abort_is_reported_by_what_was_read_and_the_innermost_exception():
    found = cause(ABORTED)
    assert found.kind == "aborts"
    assert (
        found.words
        == "Error in config visitor. User was [].: java.lang.IllegalArgumentException: Credentials not valid: salt=!"
    )
    assert "migrateClientQuotas" in found.stack


@pytest.mark.parametrize(
    ("log", "stage", "words"),
    [(UNREADABLE, Stage.BEFORE_THE_COPY, "Expected `String`"), (RETRIED, Stage.BEFORE_DUAL_WRITE, "Sync")],
)
def test_a_controller_that_tries_repeatedly_is_seen(log, stage, words):
    found = stuck_in(ABORTED.replace("Abort", "") + log)
    assert (found.kind, found.stage) == ("waits", stage)
    assert words in found.words


def test_a_controller_that_aborts_or_continues_is_not_stuck():
    assert stuck_in(ABORTED) is None
    assert stuck_in("") is None
