"""Consumers over ZooKeeper: each try of a rebalance has an end in the log, also one that failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.rebalances.sources import Rebalances, read_rebalances

WHO = "g_host-1488627000000-0a1b2c3d"
EXCEPTION = f"kafka.common.ConsumerRebalanceFailedException: {WHO} can't rebalance after 4 retries"
TRY = (
    f"begin rebalancing consumer {WHO} try #0",
    "Releasing partition ownership",
    f"Consumer {WHO} rebalancing the following partitions: ArrayBuffer(0) for topic clicks with consumers: List(x)",
    f"{WHO} successfully owned partition 0 for topic clicks",
    f"end rebalancing consumer {WHO} try #0",
)
BROKEN = (TRY[0], "exception during rebalance", TRY[-1])
FAILED = "Rebalancing attempt failed. Clearing the cache before the next rebalancing operation is triggered"


def read(tmp_path: Path, *lines: str) -> Rebalances:
    head = "2014-05-01 10:00:{:02d},100 INFO kafka.consumer.ZookeeperConsumerConnector: [{}], {}"
    own = [head.format(number, WHO, line) if line[0] not in "k\tEC" or line in TRY else line
           for number, line in enumerate(lines)]  # fmt: skip
    log = tmp_path / "old.log"
    log.write_text("\n".join(own) + "\n")
    return read_rebalances(None, str(log), zone="UTC")


def outcomes(found: Rebalances) -> list[tuple[str, list[str] | None]]:
    return found.members.select("outcome", "owned").rows()


def test_a_try_that_failed_has_no_partition(tmp_path):
    found = read(tmp_path, *TRY, FAILED)
    assert outcomes(found) == [("failed", [])]
    assert found.findings["finding"].to_list() == ["unfinished"]


def test_a_try_that_ended_without_a_failure_has_its_partitions(tmp_path):
    found = read(tmp_path, *TRY)
    assert outcomes(found) == [("assigned", ["clicks-0"])]
    assert found.findings.is_empty()


@pytest.mark.parametrize("lines", [BROKEN, (*BROKEN, FAILED)])
def test_a_try_that_was_broken_off_reports_nothing_of_partitions(tmp_path, lines):
    assert outcomes(read(tmp_path, *lines)) == [("failed", None)]


def test_a_second_try_may_succeed(tmp_path):
    found = read(tmp_path, *TRY, FAILED, *TRY)
    assert outcomes(found) == [("failed", []), ("assigned", ["clicks-0"])]
    assert found.findings.is_empty()


def test_no_old_consumer_is_a_leader(tmp_path):
    found = read(tmp_path, *TRY)
    assert found.members["is_leader"].to_list() == [None]
    assert "leader" not in found.describe()[0]


@pytest.mark.parametrize(
    "line",
    [
        EXCEPTION,
        f'Exception in thread "main" {EXCEPTION}',
        f"Caused by: {EXCEPTION}",
        f"java.lang.RuntimeException: {EXCEPTION}",
        f"\t{EXCEPTION}",
        rf"Error: {EXCEPTION}\n\tat kafka.consumer.X",
    ],
)
def test_the_exception_alone_is_a_failure(tmp_path, line):
    found = read(tmp_path, line, "\tat kafka.consumer.X.syncedRebalance(X.scala:432)")
    (finding,) = found.findings.rows(named=True)
    assert (finding["finding"], finding["group_id"], finding["consumer"]) == ("unfinished", "g", WHO)
    assert finding["sentence"].endswith("can't rebalance after 4 retries")


def test_the_exception_behind_its_report_is_the_same_failure(tmp_path):
    found = read(tmp_path, *TRY, FAILED, "error during syncedRebalance", EXCEPTION)
    assert outcomes(found) == [("failed", [])]
    assert found.findings.height == 1


@pytest.mark.parametrize("text", ["ZKConsumerConnector shutdown completed", "ZKConsumerConnector shut down completed"])
def test_it_shuts_down(tmp_path, text):
    assert read(tmp_path, f"{text} in 12 ms").events["kind"].to_list() == ["left"]
