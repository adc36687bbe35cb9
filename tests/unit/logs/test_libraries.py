"""Clients of other languages: kafkajs, franz-go, sarama, ruby-kafka, and Connect's workers."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from kit.analyze.rebalances.attempts import member_rebalances
from kit.logs.local import files_here, read_logs_here

KAFKAJS = (
    '{"level":"WARN","timestamp":"2022-05-16T12:22:16.484Z","message":"[Runner] The group is rebalancing, re-joining",'
    '"groupId":"g","memberId":"c-1","error":"The group is rebalancing, so a rejoin is needed"}\n'
    '{"level":"INFO","timestamp":"2022-05-16T12:22:16.517Z","logger":"kafkajs","message":"[ConsumerGroup] Consumer has '
    'joined the group","groupId":"g","memberId":"c-1","leaderId":"c-1","isLeader":true,'
    '"memberAssignment":{"a-b":[0,12],"c":[]},"groupProtocol":"RoundRobinAssigner","duration":33}\n'
)
FRANZ_GO = """[2022-02-25 10:35:00.307] [INFO] joining group; group: g
[2022-02-25 10:35:05.317] [INFO] joined, balancing group; group: g, member_id: c-1, instance_id: <nil>, generation: 4, balance_protocol: sticky, leader: true
[2022-02-25 10:35:05.467] [INFO] synced; group: g, assigned: a-b[0 12]
"""  # noqa: E501


def events(tmp_path: Path, text: str) -> pl.DataFrame:
    log = tmp_path / "app.log"
    log.write_text(text)
    return read_logs_here(files_here([str(log)]), zone="UTC").events


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (KAFKAJS, ("g", None, "c-1", "c-1", "RoundRobinAssigner")),
        (KAFKAJS.replace("}\n", "}}\n"), ("g", None, "c-1", "c-1", "RoundRobinAssigner")),
        (FRANZ_GO, ("g", 4, "c-1", "c-1", "sticky")),
    ],
    ids=["kafkajs", "kafkajs with a brace too many", "franz-go"],
)  # fmt: skip
def test_a_rebalance_is_told(tmp_path, text, facts):
    (row,) = member_rebalances(events(tmp_path, text)).rows(named=True)
    assert tuple(row[name] for name in ("group_id", "generation", "member_id", "leader_id", "assignor")) == facts
    assert (row["owned"], row["outcome"], row["is_leader"]) == (["a-b-0", "a-b-12"], "assigned", True)


@pytest.mark.parametrize(
    ("line", "source", "kind", "said"),
    [
        ("[sarama] 2020/04/30 10:15:44 client/coordinator coordinator for consumergroup g is #7 (k-1:9092)",
         "sarama", "coordinator_found", {"group_id": "g", "coordinator": "k-1:9092", "coordinator_id": 7}),
        ("[sarama] 2020/04/30 10:15:44 consumergroup/g loop check partition number coroutine will exit, topics [t]",
         "sarama", "rebalancing", {"group_id": "g"}),
        ('{"ts":"2025-10-15T17:20:39.395+0800","msg":"heartbeat errored","group":"g","err":"REBALANCE_IN_PROGRESS: x"}',
         "franz-go", "heartbeat_failed", {"group_id": "g", "reason": "REBALANCE_IN_PROGRESS: x"}),
        ("[{g}:] Error sending heartbeat: Kafka::RebalanceInProgress", "ruby-kafka", "heartbeat_failed", {}),
        ("[2025-01-02 03:04:05,000] INFO [Worker clientId=w, groupId=g] (Re-)joining group (a.WorkerCoordinator:290)",
         "java", "joining", {"group_id": "g", "client_id": "w"}),
        ("2021-02-03 04:05:06,007 | 2021-02-03 04:05:06,007 - kafka.coordinator - INFO - (Re-)joining group g",
         "kafka-python", "joining", {"group_id": "g"}),
    ],
)  # fmt: skip
def test_one_line(tmp_path, line, source, kind, said):
    (event,) = events(tmp_path, f"{line}\n").rows(named=True)
    assert (event["source"], event["kind"]) == (source, kind)
    assert {name: event[name] for name in said} == said
