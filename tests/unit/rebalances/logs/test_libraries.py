"""Clients of other languages, Connect's workers, and what Spring and Flink print beside the client."""

from __future__ import annotations

import polars as pl
import pytest

from kit.rebalances.analyze.attempts import member_rebalances
from kit.rebalances.logs import ClientLogs
from tests.unit.rebalances.logs.pasted import read, read_each

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
KAFKA_GO = """2021-11-08T12:05:37.191Z INFO joined group g as member c-1 in generation 4
2021-11-08T12:05:37.192Z INFO selected as leader for group, g
2021-11-08T12:05:37.193Z INFO joinGroup succeeded for response, g.  generationID=4, memberID=c-1
2021-11-08T12:05:37.194Z INFO Joined group g as member c-1 in generation 4
2021-11-08T12:05:37.195Z INFO Syncing 1 assignments for generation 4 as member c-1
2021-11-08T12:05:37.196Z INFO sync group finished for group, g
2021-11-08T12:05:37.197Z INFO subscribed to topics and partitions: map[{topic:a-b partition:0}:591 {topic:a-b partition:12}:-2]
"""  # noqa: E501
SPRING = "2018-11-15 20:24:12.640  INFO 3 --- [g-0-C-1] o.s.k.l.KafkaMessageListenerContainer    : "


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (KAFKAJS, ("g", None, "c-1", "c-1", "RoundRobinAssigner")),
        (KAFKAJS.replace("}\n", "}}\n"), ("g", None, "c-1", "c-1", "RoundRobinAssigner")),
        (FRANZ_GO, ("g", 4, "c-1", "c-1", "sticky")),
        (KAFKA_GO, ("g", 4, "c-1", "c-1", None)),
    ],
    ids=["kafkajs", "kafkajs with a brace too many", "franz-go", "kafka-go"],
)  # fmt: skip
def test_a_rebalance_is_reported(tmp_path, text, facts):
    (row,) = member_rebalances(read(tmp_path, text, zone="UTC").events).rows(named=True)
    assert tuple(row[name] for name in ("group_id", "generation", "member_id", "leader_id", "assignor")) == facts
    assert (row["owned"], row["outcome"], row["is_leader"]) == (["a-b-0", "a-b-12"], "assigned", True)


EVENTS = [
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
    ('{"app":{"message":"Joined group g as member c@h (x)-1 in generation 4","timestamp":"2021-04-28T06:35:34Z"}}',
     "kafka-go", "joined", {"group_id": "g", "member_id": "c@h (x)-1", "generation": 4}),
    ('%7|1460517613.661|CGRPQUERY|r#consumer-1| :0/internal: Group "g": querying for coordinator: intervaled',
     "librdkafka", "coordinator_query", {"group_id": "g"}),
    ("2024-05-06 07:08:09,01 ERROR o.a.f.KafkaSourceReader [] - Failed to commit consumer offsets for checkpoint 7",
     "java", "commit_failed", {}),
]  # fmt: skip


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> dict[str, ClientLogs[pl.DataFrame]]:
    """Line → the log of this line alone."""
    return read_each(tmp_path_factory.mktemp("logs"), [line for line, *_ in EVENTS], zone="UTC")


@pytest.mark.parametrize(("line", "source", "kind", "said"), EVENTS)
def test_a_line_of_a_client_is_an_event(alone, line, source, kind, said):
    (event,) = alone[line].events.rows(named=True)
    assert (event["source"], event["kind"]) == (source, kind)
    assert {name: event[name] for name in said} == said


@pytest.mark.parametrize(
    ("line", "n_context", "n_unknown"),
    [
        (f"{SPRING}partitions assigned: [a-0]", 1, 0),
        (f"{SPRING}g: partitions revoked: [a-0]", 1, 0),
        ("%5|1611332028.032|REQTMOUT|r#consumer-3| [thrd:a]: k-1:9092/2: Timed out JoinGroupRequest in flight", 1, 0),
        ("2020-10-14 00:14:53,000 INFO [main] my.Listener - onPartitionsRevoked: [a-0], generation of mine 7", 0, 1),
        ("2024-05-06 07:08:09,010 INFO  o.a.f.KafkaSourceEnumerator [] - Discovered new partitions: [a-0]", 1, 0),
    ],
    ids=["spring", "spring with the group", "a request that timed out", "the application's own words", "flink"],
)  # fmt: skip
def test_lines_that_frameworks_repeat_are_known_and_no_event(tmp_path, line, n_context, n_unknown):
    logs = read(tmp_path, line, zone="UTC")
    assert logs.events.is_empty()
    assert (logs.files["n_context"].sum(), len(logs.unknown_lines)) == (n_context, n_unknown)


@pytest.mark.parametrize("edge", ["x", "|", "│"])
def test_partitions_in_fausts_table_are_those_of_the_line_before(tmp_path, edge):
    rows = [f"{edge} a-b  {edge} {{0-2, 7}} {edge}", f"{edge} c.d  {edge} {{12}}     {edge}"]
    said = "[2020-01-02 03:04:05,006] [9] [INFO] Setting newly assigned partitions "
    head = ["lTopic Partition Setqk", f"{edge} topic {edge} partitions {edge}", "tqqnqqu"]
    (event,) = read(tmp_path, said, *head, *rows, "mqqvqqj for group g").events.rows(named=True)
    assert (event["kind"], event["partitions"]) == ("assigned", ["a-b-0", "a-b-1", "a-b-2", "a-b-7", "c.d-12"])


def test_a_list_whose_lines_are_missing_is_unknown(tmp_path):
    said = "[2020-01-02 03:04:05,006] [9] [INFO] Setting newly assigned partitions "
    assert read(tmp_path, said).events["partitions"].to_list() == [None]
