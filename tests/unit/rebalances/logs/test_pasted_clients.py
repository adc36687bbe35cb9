"""Lines that people paste of clients whose texts differ between versions; each was told wrong or not at all once."""

# ruff: noqa: E501  # lines of logs

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from kit.rebalances.logs import ClientLogs
from tests.unit.rebalances.logs.pasted import read, read_each

M = "till-0a0a0a0a-0b0b-0c0c-0d0d-0e0e0e0e0e0e"
BROKER_7 = {"coordinator": "k-1:9092", "coordinator_id": 7}


EVENTS = [
    (f'{{"level":"DEBUG","message":"[Connection] Response JoinGroup(key: 11, version: 5)","clientId":"till","data":{{"errorCode":0,"generationId":7,"groupProtocol":"RoundRobinAssigner","leaderId":"{M}","memberId":"{M}"}}}}',
     "kafkajs", "joined", {"generation": 7, "member_id": M, "leader_id": M, "assignor": "RoundRobinAssigner"}),
    (f'{{"level":"WARN","message":"[ConsumerGroup] Topic has been updated, resync group","groupId":"g","memberId":"{M}"}}',
     "kafkajs", "join_reason", {"group_id": "g", "member_id": M}),
    ("[sarama] 2015/01/02 03:04:05 client/coordinator Requesting coordinator for consumergoup g from k-1:9092.", "sarama", "coordinator_query", {"group_id": "g"}),
    ("[sarama] 2015/01/02 03:04:05 client/coordinator Coordinator for consumergoup g is #7 (k-1:9092).", "sarama", "coordinator_found", {"group_id": "g", **BROKER_7}),
    ("[sarama] 2019/01/02 03:04:05 client/coordinator the __consumer_offsets topic is not initialized completely yet. Waiting 2 seconds...", "sarama", "coordinator_failed", {}),
    ('{"time":"2024-01-02T03:04:05Z","message":"syncing","group":"g","protocol":"range"}', "franz-go", "sync_sent", {"group_id": "g"}),
    ('{"time":"2024-01-02T03:04:05Z","msg":"synced","group":"g","assigned":{"a-b":[0,12]}}', "franz-go", "group_assignment", {"group_id": "g", "partitions": ["a-b-0", "a-b-12"]}),
    (r'{"log":"{\"msg\":\"synced\",\"group\":\"g\",\"assigned\":{\"a-b\":[0]}}\n"}', "franz-go", "group_assignment", {"group_id": "g", "partitions": ["a-b-0"]}),
    ("I, [2018-01-02T03:04:05.006 #9]  INFO -- : Joining group `g`", "ruby-kafka", "joining", {"group_id": "g"}),
    ('{"level":"INFO","message":"[[g] {}:] Joining group `g`"}', "ruby-kafka", "joining", {"group_id": "g"}),
    (f"I, [2018-01-02T03:04:05.006 #9]  INFO -- : Joined group `g` with member id `{M}`", "ruby-kafka", "joined", {"group_id": "g", "member_id": M}),
    ("I, [2018-01-02T03:04:05.006 #9]  INFO -- : Partitions assigned for `a-b`: 12, 0", "ruby-kafka", "assigned", {"partitions": ["a-b-0", "a-b-12"]}),
    ('{"level":"ERROR","message":"[[g] {}:] Error sending heartbeat: Kafka::UnknownMemberId"}', "ruby-kafka", "heartbeat_failed", {"reason": "Kafka::UnknownMemberId"}),
    (f"2020-01-02T03:04:05.006 DEBUG kafka.coordinator Heartbeat: g[7] {M}", "kafka-python", "heartbeat_sent", {"group_id": "g", "member_id": M, "generation": 7}),
    ("INFO:kafka.coordinator:Heartbeat successful", "kafka-python", "heartbeat_ok", {}),
    ("2019-01-02 03:04:05,006 - kafka.coordinator - WARNING - Marking the coordinator dead (node 7) for group g: Heartbeat session expired.",
     "kafka-python", "coordinator_lost", {"group_id": "g", "reason": "Heartbeat session expired"}),
    ("2016-01-02 03:04:05,006 - kafka.coordinator.consumer - WARNING - Auto offset commit failed: UnknownMemberIdError - 25 - the memberId is not in the generation.",
     "kafka-python", "commit_failed", {"member_id": None}),
    (f"2022-01-02 03:04:05.006 INFO group_coordinator - perform_group_join: Joined group 'g' (generation 7) with member_id {M}",
     "kafka-python", "joined", {"group_id": "g", "member_id": M, "generation": 7}),
    (f'rdkafka: [thrd:main]: k-1:9092/7: Joining group "g" with 1 subscribed topic(s) and member id "{M}"', "librdkafka", "join_requested", {"group_id": "g", "member_id": M}),
    ("[2025-01-02 03:04:05,006] INFO [Worker clientId=w, groupId=g] Joined group at generation 7 with protocol version 2 and got assignment: Assignment{error=0, leader='w-1', taskIds=[]} (a.DistributedHerder:9)",
     "java", "rebalance_ended", {"group_id": "g", "generation": 7, "leader_id": "w-1"}),
    ("[2025-01-02 03:04:05,006] INFO [Worker clientId=w, groupId=g] Joined group at generation 7 with protocol version 2 and got assignment: Assignment{error=0, leader='w-1', connectorIds=[in, out], taskIds=[in-0, out-1]} (a.DistributedHerder:9)",
     "java", "rebalance_ended", {"partitions": ["connector in", "connector out", "task in-0", "task out-1"]}),
    ("[2025-01-02 03:04:05,006] INFO [Worker clientId=w, groupId=g] Connector sink config updated (a.DistributedHerder:9) - pod=w-1",
     "java", "join_reason", {"reason": "Connector sink config updated"}),
    ("[2025-01-02 03:04:05,006] INFO [Worker clientId=w, groupId=g] Tasks [sink-0, sink-1] configs updated (a.DistributedHerder:9)",
     "java", "join_reason", {"reason": "Tasks [sink-0, sink-1] configs updated"}),
    ("[Nest] 1  - 2025-01-02 03:04:05   ERROR [ServerKafka] ERROR [Consumer] Crash: KafkaJSError: no {\"groupId\":\"g\"}", "kafkajs", "crashed", {"reason": "KafkaJSError: no"}),
    ('{"level":"ERROR","msg":"unable to commit"} in default commit: unable to commit offsets for topic partition; group: g, topic: a-b, partition: 3, error: NO: x',
     "franz-go", "commit_failed", {"group_id": "g", "partitions": ["a-b-3"], "reason": "NO: x"}),
    ("2025-01-02 03:04:05 kafka: error while consuming a.b-c/12: kafka server: The requested offset is outside the range of offsets.",
     "sarama", "offset_reset", {"partitions": ["a.b-c-12"]}),
    ("%1|1735787045.006|FATAL|c#consumer-1| [thrd:main]: Fatal error: Broker: Static consumer fenced by other consumer with same group.instance.id: x",
     "librdkafka", "member_fatal", {"client_id": "c"}),
    (f"[2025-01-02 03:04:05,006] INFO [Consumer clientId=c, groupId=g] Request joining group due to: need to re-join with the given member-id: {M} (a.B:9)",
     "java", "join_reason", {"group_id": "g", "member_id": M}),
    (f"[2025-01-02 03:04:05,006] INFO [GroupCoordinator id=1] Preparing to rebalance group g in state PreparingRebalance with old generation 0 (reason: Adding new member {M} with group instance id null; client reason: need to re-join with the given member-id: {M}). (a.b.C)",
     "broker", "group_rebalancing", {"group_id": "g", "member_id": M}),
    ("\t3:04 {\"level\":\"info\",\"ts\":1735787045.006,\"caller\":\"kgo.go:317\",\"msg\":\"heartbeat errored\",\"group\":\"g\"}",
     "franz-go", "heartbeat_failed", {"group_id": "g", "reason": None}),
    ("2024-01-02 03:04:05,006 INFO [GroupCoordinator 3]: Preparing to rebalance group g in state Empty with old generation 2 (o-9) (reason: x; client reason: not provided) (kafka.coordinator.group.GroupCoordinator) [executor-7]",
     "broker", "group_rebalancing", {"group_id": "g", "generation": 2, "reason": "x"}),
    ('2024-01-02T03:04:05.006Z DEBUG librdkafka: librdkafka: REJOIN [thrd:main]: Group "g": Rejoining group without an assignment: x',
     "librdkafka", "join_reason", {"group_id": "g", "origin": None, "observed_at": datetime(2024, 1, 2, 3, 4, 5, 6000, tzinfo=UTC)}),
    ("o.a.k.c.c.i.Fetcher   [main] [Consumer clientId=c,   groupId=g] Resetting offset for partition   a-b-0 to offset 7.",
     "java", "offset_reset", {"client_id": "c", "group_id": "g", "partitions": ["a-b-0"], "offset": 7}),
    ("2021-01-02T03:04:05,006 INFO [main] a.b.Fetcher - [Consumer clientId=c, groupId=g] Fetch position FetchPosition{offset=7, offsetEpoch=Optional[0]} is out of range for partition a-b-0, raising error to the application since no reset policy is configured",
     "java", "out_of_range", {"group_id": "g", "partitions": ["a-b-0"], "offset": 7}),
    ("[2025-01-02 03:04:05,006] INFO [Consumer clientId=c, groupId=g] Seeking to AutoOffsetResetStrategy{type=earliest} offset of partition a-b-0 (a.b.SubscriptionState:9)",
     "java", "sought", {"group_id": "g", "partitions": ["a-b-0"]}),
    ("COOPERATIVE rebalance: 2 new partition(s) assigned: [a-b[0]@unset c[12]@7]", "librdkafka", "assigned", {"partitions": ["a-b-0", "c-12"]}),
    ("  kafka-node:ConsumerGroup generationId 43 +1ms", "kafka-node", "synced", {"generation": 43}),
    ("time=2021-12-06T20:01:14+01:00 level=info msg=joining group[group g-1] group=g-1 reporter=r", "franz-go", "joining", {"group_id": "g-1"}),
    ('\tJune 21st 2019, 16:07:09.146\tOnLog :: Name: w#consumer-1 Message: [thrd:main]: k:9092/7: Group "g" coordinator is k:9092 id 3 Facility: CGRPCOORD  Level: Debug',
     "librdkafka", "coordinator_found", {"group_id": "g", "local_at": 1561133229146000}),
    ("a.b.ConsumerCoordinator$Handler pool-1 Error UNKNOWN_MEMBER_ID occurred while committing offsets for group g",
     "java", "commit_failed", {"group_id": "g", "reason": "UNKNOWN_MEMBER_ID"}),
    ("kafka.common.ConsumerRebalanceFailedException :g_h-1400000000000-0a0b0c0d can't rebalance after 3 retries",
     "zookeeper", "rebalance_failed", {"group_id": "g", "member_id": "g_h-1400000000000-0a0b0c0d"}),
    ("kafka.coordinator: [WARNING] Heartbeat failed (ConnectionError: no); retrying", "kafka-python", "heartbeat_failed", {"reason": "ConnectionError: no"}),
    ("2020-01-02 03:04:05,006 New partitions assigned: {Partition(topic=Topic(name='a-b'), index=0): 7, Partition(topic=Topic(name='c'), index=12): 8}",
     "librdkafka", "assigned", {"partitions": ["a-b-0", "c-12"]}),
    ("2020-01-02 03:04:05,006 Partitions revoked: [Partition(topic=Topic(name='a-b'), index=0)]", "librdkafka", "revoked", {"partitions": ["a-b-0"]}),
    ("03:04:05 [INFO] arroyo.processing.processor: Partitions to revoke: [Partition(topic=Topic(name='a-b'), index=0)]", "librdkafka", "revoked", {"partitions": ["a-b-0"]}),
    (f"03:04:05 [INFO] arroyo.processing.processor: Member id: '{M}'", "librdkafka", "member_id", {"member_id": M}),
    ("2024.01.02 03:04:05.006 [ 7 ] {} <Trace> StorageKafka (t): Topics/partitions assigned: [ a-b[0:#], c[12:#] ]",
     "librdkafka", "assigned", {"partitions": ["a-b-0", "c-12"]}),
    ("2024-01-02 03:04:05,006 [1] INFO a.b.C - Error occurred:Local: Maximum application poll interval (max.poll.interval.ms) exceeded", "librdkafka", "poll_timeout", {}),
    ('Post rebalance Assign(TPL {a-b/0: offset=Invalid metadata=""; c/12: offset=Invalid metadata=""})', "librdkafka", "assigned", {"partitions": ["a-b-0", "c-12"]}),
    ("ERRO[0098] kafka: error while consuming a.b-c/12: kafka server: The provided member is not known in the current generation.  offset=-3 topic=unknown",
     "sarama", "commit_failed", {"partitions": ["a.b-c-12"], "reason": "The provided member is not known in the current generation"}),
    ("ERRO[0098] kafka: error while consuming /-1: kafka server: The provided member is not known in the current generation", "sarama", "heartbeat_failed", {"partitions": None}),
    ("2018/01/02 03:04:05 Consumer error: kafka server: The provided member is not known in the current generation.", "sarama", "member_reset", {}),
    ("2018/01/02 03:04:05 Error from consumer: kafka server: A rebalance for the group is in progress. Please re-join the group.", "sarama", "rebalancing", {}),
    ('{"level":"error","ts":"2021-01-02T03:04:05Z","msg":"consume","error":"kafka server: The provided generation id is not the current generation."}', "sarama", "member_reset", {}),
    ("2018/01/02 03:04:05 Rebalanced: &{Type:rebalance OK Claimed:map[a-b:[0]] Released:map[] Current:map[a-b:[0] c:[12]]}",
     "sarama", "group_assignment", {"partitions": ["a-b-0", "c-12"]}),
    ("RebalanceCb: Local: Assign partitions: a-b[0], c[12], ", "librdkafka", "assigned", {"partitions": ["a-b-0", "c-12"]}),
    ('x.OffsetOutOfRange: KafkaError{code=_AUTO_OFFSET_RESET,val=-140,str="fetch failed due to requested offset not available on the broker: Broker: Offset out of range (broker 7)"}',
     "librdkafka", "out_of_range", {}),
    ('KafkaError{code=UNKNOWN_MEMBER_ID,val=25,str="Commit failed: Broker: Unknown member"}', "librdkafka", "commit_failed", {"reason": "Broker: Unknown member"}),
    ("WARN :: WorkerSinkTask:337 - Ignoring invalid task provided offset a-b-0/OffsetAndMetadata{offset=7, metadata=''} -- partition not assigned",
     "java", "commit_failed", {"partitions": ["a-b-0"], "reason": "partition not assigned"}),
    ("[INFO] 2026-01-02 03:04:05,006 [group-coordinator-event-processor-1] a.b.GroupMetadataManager join - app=kafka - [GroupCoordinator id=0 topic=__consumer_offsets partition=8] Stabilized group g generation 5 with 1 members.",
     "broker", "group_stabilized", {"group_id": "g", "generation": 5}),
    ("2024-01-02T03:04:05.006123456+02:00 stdout F [Consumer clientId=c, groupId=g] (Re-)joining group",
     "java", "joining", {"group_id": "g", "observed_at": datetime(2024, 1, 2, 1, 4, 5, 6123, tzinfo=UTC)}),
    ("%5|1735787045.006|REQTMOUT|c#consumer-5| [thrd:GroupCoordinator]: GroupCoordinator/1: Timed out OffsetFetchRequest in flight (after 7ms)",
     "librdkafka", "offsets_failed", {"client_id": "c"}),
    ('{"level":"ERROR","timestamp":"2024-01-02T03:04:05.006Z","message":"[Connection] Response OffsetCommit(key: 8, version: 3)","error":"x"}',
     "kafkajs", "commit_failed", {"reason": "x"}),
    ('{"time":"2024-01-02T03:04:05Z","message":"join group failed","group":"g","err":"FENCED_INSTANCE_ID: x"}',
     "franz-go", "join_failed", {"group_id": "g", "reason": "FENCED_INSTANCE_ID: x"}),
    (r'{"msg":"ERROR [Runner] The group is rebalancing, re-joining {\"timestamp\":\"2020-01-02T03:04:05.006Z\",\"groupId\":\"g\"}"}',
     "kafkajs", "rebalancing", {"group_id": "g", "observed_at": datetime(2020, 1, 2, 3, 4, 5, 6000, tzinfo=UTC)}),
    ("[Nest] 9  - 01/22/2022, 3:04:05 PM   DEBUG [Kafka: Connection] Request GroupCoordinator(key: 10, version: 2)", "kafkajs", "coordinator_query", {}),
    ("I, [2018-01-02T03:04:05.006 #9]  INFO -- : [[g] {a: 0}:] Leaving group `g`", "ruby-kafka", "leaving", {"group_id": "g"}),
    ("E, [2018-01-02T03:04:05.006 #9] ERROR -- : Failed to find coordinator for group `g`; retrying...", "ruby-kafka", "coordinator_failed", {"group_id": "g"}),
    ("E, [2018-01-02T03:04:05.006 #9] ERROR -- : Group coordinator not available for group `g`", "ruby-kafka", "coordinator_failed", {"group_id": "g"}),
    ("E, [2018-01-02T03:04:05.006 #9] ERROR -- : Connection error while trying to join group `g`; retrying...", "ruby-kafka", "join_failed", {"group_id": "g"}),
    ("E, [2018-01-02T03:04:05.006 #9] ERROR -- : Error committing offsets: Kafka::IllegalGeneration", "ruby-kafka", "commit_failed", {"reason": "Kafka::IllegalGeneration"}),
    ("D, [2018-01-02T03:04:05.006 #9] DEBUG -- : [[g] {}:] Getting group coordinator for `g`", "ruby-kafka", "coordinator_query", {"group_id": "g"}),
    ("D, [2018-01-02T03:04:05.006 #9] DEBUG -- : [[g] {}:] Connected to coordinator: k-1:9092 (node_id=7) for `g`",
     "ruby-kafka", "coordinator_found", {"group_id": "g", **BROKER_7}),
    ("2019-01-02 03:04:05,006 INFO Revoking previously assigned partitions frozenset({TopicPartition(topic='a-b', partition=3)}) for group g",
     "java", "revoked", {"group_id": "g", "partitions": ["a-b-3"]}),
    ("2019-01-02 03:04:05,006 - kafka.coordinator - WARNING - Heartbeat session expired, marking coordinator dead",
     "kafka-python", "heartbeat_failed", {"reason": "Heartbeat session expired"}),
    ("DEBUG:aiokafka.conn:<AIOKafkaConnection host=k port=9> Request 3: JoinGroupRequest_v5(group='g', session_timeout=6, member_id='')",
     "kafka-python", "join_requested", {"group_id": "g", "member_id": None}),
    (f"DEBUG:aiokafka.conn:<AIOKafkaConnection host=k port=9> Response 3: JoinGroupResponse_v5(throttle_time_ms=0, error_code=0, generation_id=7, group_protocol='range', leader_id='{M}', member_id='{M}', members=[])",
     "kafka-python", "joined", {"generation": 7, "member_id": M, "leader_id": M}),
    ("[2025-01-02 03:04:05,006] INFO [Worker clientId=w, groupId=g] Current config state offset -1 does not match group assignment 1. Forcing rebalance. (a.DistributedHerder:9)",
     "java", "join_reason", {"group_id": "g", "reason": "Current config state offset -1 does not match group assignment 1"}),
    ("%7|1478546491.390|JOINGROUP|c#consumer-1| JoinGroup response: GenerationId 0, Protocol , LeaderId  (me), my MemberId , 0 members in group: Broker: Not coordinator for group",
     "librdkafka", "join_failed", {"reason": "Broker: Not coordinator for group"}),
    ("%7|1478546491.390|JOINGROUP|c#consumer-1| [thrd:main]: JoinGroup response: GenerationId 3, Protocol range, LeaderId m-1 (me), my MemberId m-1, member metadata count 2: (no error)",
     "librdkafka", "joined", {"reason": None, "generation": 3}),
    ('%7|1735787045.006|MEMBERID|c#consumer-1| [thrd:main]: Group "g": updating member id "m-1" -> ""',
     "librdkafka", "member_reset", {"group_id": "g", "member_id": None}),
    ('%7|1735787045.006|MEMBERID|c#consumer-1| [thrd:main]: Group "g": updating member id "" -> "m-1"', "librdkafka", "member_id", {"member_id": "m-1"}),
    ("2015-01-02 03:04:05,006 WARN kafka.consumer.RangeAssignor: No broker partitions consumed by consumer thread g-1_host-1-1445884909915-d6a99924-2 for topic t",
     "zookeeper", "without_partitions", {"group_id": "g-1", "member_id": "g-1_host-1-1445884909915-d6a99924"}),
    ("kafka-go: 2020/01/02 03:04:05 Failed to join group g: [16] Not Coordinator For Group: the broker returns this", "kafka-python", "join_failed", {"group_id": "g"}),
    ("kafka-go: 2020/01/02 03:04:05 Failed to sync group g: [27] Rebalance In Progress: x", "kafka-go", "sync_failed",
     {"group_id": "g", "reason": "[27] Rebalance In Progress: x"}),
    ("kafka-go: 2020/01/02 03:04:05 Unable to establish connection to consumer group coordinator for group g: EOF", "kafka-go", "coordinator_failed",
     {"group_id": "g", "reason": "EOF"}),
    ("kafka-go: 2020/01/02 03:04:05 Failed to fetch offsets for group g: EOF", "kafka-go", "offsets_failed", {"group_id": "g", "reason": "EOF"}),
    ("2021-01-02T03:04:05.006+0100\tERROR\tc:t\tkafka-go@v0.4.8/logger.go:17\tProblem getting partitions during startup, [3] Unknown Topic: x",
     "kafka-go", "join_reason", {"reason": "[3] Unknown Topic: x"}),
    ("kafka-go: 2020/01/02 03:04:05 Partition changes found, rebalancing group: g.", "kafka-go", "join_reason", {"group_id": "g"}),
    ('2025-01-02T03:04:05.006-0400    info    franz   kzap@v1.1.2/kzap.go:114 joined, balancing group {"resource": {"service.name": "x"}, "group": "g", "member_id": "m-1", "generation": 7}',
     "franz-go", "joined", {"group_id": "g", "member_id": "m-1", "generation": 7}),
    ('time="2023-01-02T03:04:05Z" name=w_0[INFO] assigning partitions; why: clearing assignment at end of group management session, how: unassigning everything, input:   ',
     "franz-go", "unassigned", {"group_id": None}),
    ('{"level":20,"namespace":"Connection","timestamp":"2019-01-02T03:04:05.006Z","message":"Request GroupCoordinator(key: 10, version: 1)","clientId":"c","v":1}',
     "kafkajs", "coordinator_query", {}),
    (r'{"level":20,"namespace":"Connection","timestamp":"2019-01-02T03:04:05.006Z","message":"Response JoinGroup(key: 11, version: 2)","data":"{\"generationId\":7,\"memberId\":\"m-1\"}","v":1}',
     "kafkajs", "joined", {"generation": 7, "member_id": "m-1"}),
    ('{"level":"DEBUG","timestamp":"2019-01-02T03:04:05.006Z","message":"[Connection] Response Heartbeat(key: 12, version: 0)","clientId":"c","error":"x"}',
     "kafkajs", "heartbeat_failed", {"client_id": "c", "reason": "x"}),
    (f'{{"level":"ERROR","timestamp":"2019-01-02T03:04:05.006Z","message":"[Runner] The coordinator is not aware of this member, re-joining the group","groupId":"g","memberId":"{M}","error":"x"}}',
     "kafkajs", "member_reset", {"group_id": "g", "member_id": M, "reason": "x"}),
    ("[sarama] 2023/01/02 03:04:05 client/coordinator coordinator for g is #7 (k-1:9092)", "sarama", "coordinator_found", {"group_id": "g", **BROKER_7}),
    ("[sarama] 2023/01/02 03:04:05 client/coordinator coordinator for g is not available", "sarama", "coordinator_failed", {"group_id": "g"}),
    ("[sarama] 2023/01/02 03:04:05 client/coordinator requesting coordinator for g from k-1:9092", "sarama", "coordinator_query", {"group_id": "g"}),
    ("[sarama] 2023/01/02 03:04:05 consumergroup/g: lost ownership of map[a-b:[0]] due to EOF", "sarama", "lost", {"group_id": "g", "reason": "EOF"}),
    ('{"time":"2025-01-02T03:04:05Z","level":"info","msg":"group manage loop errored","group":"g","err":"EOF"}', "franz-go", "join_failed", {"group_id": "g", "reason": "EOF"}),
    ('{"time":"2025-01-02T03:04:05Z","level":"info","msg":"consumer group heartbeat error, abandoning assignment and rejoining","group":"g","err":"x"}',
     "franz-go", "heartbeat_failed", {"group_id": "g", "reason": "x"}),
    ('{"time":"2025-01-02T03:04:05Z","level":"info","msg":"assigning partitions","why":"clearing assignment at end of group management session","how":1}',
     "franz-go", "unassigned", {"group_id": None}),
    ("2019/01/02 03:04:05 rebalance failed for consumer group, g: joinGroup failed: EOF", "kafka-go", "join_failed", {"group_id": "g", "reason": "joinGroup failed: EOF"}),
    ("2019/01/02 03:04:05 coordinator for group, g, set to k-1:9092", "kafka-go", "coordinator_found", {"group_id": "g"}),
    ("2020/01/02 03:04:05 leave group failed for group, g, and member, m-1: EOF", "kafka-go", "leaving", {"group_id": "g", "member_id": "m-1", "reason": "EOF"}),
    ("W, [2018-01-02T03:04:05.006 #9]  WARN -- : Group rebalance in progress, re-joining...", "ruby-kafka", "rebalancing", {}),
    ("I, [2018-01-02T03:04:05.006 #9]  INFO -- : [[g] {}:] Kicked out of group; rejoining", "ruby-kafka", "member_reset", {}),
    (f'kafka-node:ConsumerGroup joinGroupResponse {{"members":[],"generationId":7,"groupProtocol":"range","leaderId":"{M}","memberId":"{M}"}} from c +3ms',
     "kafka-node", "joined", {"generation": 7, "member_id": M, "leader_id": M, "assignor": "range"}),
    ("kafka-node:ConsumerGroup c leaving group +1ms", "kafka-node", "leaving", {}),
    ("INFO:pykafka.balancedconsumer:Rebalancing consumer \"pykafka-1\" for topic \"a-b\".", "pykafka", "rebalance_begun", {"member_id": "pykafka-1"}),
    ("INFO:pykafka.managedbalancedconsumer:Error code 25 encountered on heartbeat.", "pykafka", "heartbeat_failed", {"reason": "Error code 25"}),
    ("INFO:pykafka.cluster:Attempting to discover offset manager for consumer group 'g'", "pykafka", "coordinator_query", {"group_id": "g"}),
    ("2024-01-02 03:04:05,006 - aiokafka.consumer.group_coordinator - ERROR - Error sending HeartbeatRequest_v1 to node 7 [x: y] -- marking coordinator dead",
     "kafka-python", "coordinator_lost", {"reason": "x: y"}),
    ("2024-01-02 03:04:05,006 - aiokafka.consumer.group_coordinator - ERROR - Heartbeat send request failed: x. Will retry.",
     "kafka-python", "heartbeat_failed", {}),
    ("[2024-01-02 03:04:05,006] INFO stream-client [app-1] State transition from RUNNING to REBALANCING (org.apache.kafka.streams.KafkaStreams)",
     "java", "state_change", {"reason": "stream-client [app-1] State transition from RUNNING to REBALANCING"}),
    ("[2024-01-02 03:04:05,006] WARN stream-thread [app-1] Detected that the thread is being fenced. This implies that this thread missed a rebalance and dropped out of the consumer group. Will close (a.B)",
     "java", "member_reset", {"reason": "missed a rebalance and dropped out of the consumer group"}),
    ("[2024-01-02 03:04:05,006] INFO [Worker clientId=w, groupId=g] Broker coordinator was unreachable for 3000ms. Revoking previous assignment Assignment{error=0} to avoid (a.B)",
     "java", "lost_all", {"group_id": "g"}),
    ("%4|1735787045.006|SESSTMOUT|c#consumer-1| [thrd:main]: Consumer group session timed out (in join-state steady) after 9 ms without a successful response from the group coordinator (broker 0, last error was Local: Broker transport failure): revoking assignment and rejoining group",
     "librdkafka", "session_timeout", {"reason": "Local: Broker transport failure"}),
    ("[app] Tue Oct 18 03:04:05 CST 2016 DEBUG [t-1] a.b.AbstractCoordinator x 3: (Re-)joining group g", "java", "joining",
     {"group_id": "g", "observed_at": None, "local_at": 1_476_759_845_000_000}),
    ("2025-01-02 03:04:05 [Consumer clientId=c, groupId=g] Member c-1-... sending LeaveGroup request to coordinator k:9092 (id: 7 rack: null) due to x",
     "java", "leaving", {"member_id": None}),
    ("[2025-01-02 03:04:05,006] INFO [GroupCoordinator 1]: Group g remove dynamic members who haven't joined: Set(m-1, m-2) (a.b.C)",
     "broker", "group_members_removed", {"group_id": "g", "reason": "m-1, m-2"}),
    ("[2025-01-02 03:04:05,006] WARN [Worker clientId=w, groupId=g] worker poll timeout has expired. The last known action is : x (a.B:9)",
     "java", "poll_timeout", {"group_id": "g", "client_id": "w"}),
    ("[2025-01-02 03:04:05,006] ERROR [ShareConsumer clientId=c, groupId=g] ShareGroupHeartbeatRequest failed due to x: y (a.B:9)",
     "java", "heartbeat_failed", {"group_id": "g"}),
    (f"[03:04:05 DBG] Partition: a-b [[12]] was assigned to: {M}", "librdkafka", "assigned", {"partitions": ["a-b-12"], "member_id": M}),
    ('Caught OffsetOutOfRange(\'KafkaError{code=OFFSET_OUT_OF_RANGE,val=1,str="Broker: Offset out of range"}\'), shutting down...',
     "librdkafka", "out_of_range", {}),
    ("web-65d5566bf8-p9ccl app 03:04:05 [INFO] a.b: New partitions assigned: {Partition(topic=Topic(name='a-b'), index=0): 46}",
     "librdkafka", "assigned", {"origin": "web-65d5566bf8-p9ccl", "partitions": ["a-b-0"]}),
    (f"[03:04:05 DBG] Partition: a-b [[12]] was lost on {M}", "librdkafka", "lost", {"partitions": ["a-b-12"], "member_id": M}),
    ("Revoking assignment: [a-b [[0]] @Unset [-1001], c [[12]] @Unset [-1001]]", "librdkafka", "revoked", {"partitions": ["a-b-0", "c-12"]}),
    ("Partitions incrementally assigned: [0,12], all: [0,12]", "librdkafka", "assigned", {"partitions": None}),
    ("% AssignedPartitions: [a-b[0]@unset c[12]@7]", "librdkafka", "assigned", {"partitions": ["a-b-0", "c-12"]}),
    ('{"level":"info","msg":"Event: RevokedPartitions: [a-b[0]@unset]","time":"2019-08-08T10:35:47Z"}', "librdkafka", "revoked", {"partitions": ["a-b-0"]}),
    ("[Sarama]2015/05/23 14:28:43 [g/0a1b2c3d4e5f] a-b/12 :: Partition consumer starting at offset 2.", "sarama", "owned", {"group_id": "g", "partitions": ["a-b-12"]}),
    ("[Sarama]2015/05/23 14:28:43 [g/0a1b2c3d4e5f] a-b/12 :: FAILED to claim the partition: it is claimed", "sarama", "rebalance_failed",
     {"group_id": "g", "partitions": ["a-b-12"], "reason": "claim the partition: it is claimed"}),
    ("[Sarama]2015/05/23 14:28:43 [g/0a1b2c3d4e5f] Consumer instance registered (h:m-1).", "sarama", "registered", {"group_id": "g", "member_id": "h:m-1"}),
    ("  kafka-node:ConsumerGroup c owns topics:  { 'a-b': [ 0, 12 ], c: [ 3 ] } +0ms", "kafka-node", "group_assignment", {"partitions": ["a-b-0", "a-b-12", "c-3"]}),
    ("  kafka-node:HighLevelConsumer HighLevelConsumer c-1 rebalance attempt failed +5ms", "kafka-node", "rebalance_failed", {"member_id": "c-1"}),
    ("1 Wed, 26 Oct 2016 11:18:13 GMT kafka-node:HighLevelConsumer HighLevelConsumer c-1 is attempting to rebalance", "kafka-node", "rebalance_begun",
     {"member_id": "c-1", "local_at": 1_477_480_693_000_000}),
    ("2015-01-02 03:04:05,006 : INFO : Rebalancing consumer h:m-1 for topic a-b.", "pykafka", "rebalance_begun", {"member_id": "h:m-1"}),
    ('{"time":"2025-01-02T03:04:05Z","level":"info","msg":"share group heartbeating","group":"g"}', "franz-go", "heartbeat_sent", {"group_id": "g"}),
    ("[2025-01-02 03:04:05,006] INFO [Consumer clientId=c, groupId=g] Successfully joined group with generation Generation{generationId=7, memberId=***protocol='x'} (a.B:9)",
     "java", "joined", {"generation": 7, "member_id": None}),
    ('time=2025-01-02T03:04:05.006+03:00 level=INFO msg="joined, balancing group" group=g member_id=m-1 instance_id=<nil> generation=7 balance_protocol=range leader=true',
     "franz-go", "joined", {"group_id": "g", "member_id": "m-1", "generation": 7, "assignor": "range", "leader_id": "m-1"}),
    ('time=2025-01-02T03:04:05.006+03:00 level=INFO msg=synced group=g assigned="a-b[0 12]"', "franz-go", "group_assignment", {"group_id": "g", "partitions": ["a-b-0", "a-b-12"]}),
    ('time=2025-01-02T03:04:05.006Z level=INFO msg="heartbeat errored" group=g err="REBALANCE_IN_PROGRESS: x"',
     "franz-go", "heartbeat_failed", {"group_id": "g", "reason": "REBALANCE_IN_PROGRESS: x"}),
    ('[app] 2021/01/02 03:04:05.006 s.go:3: level=ERROR msg="Sarama internal error" consumer_group=g-1 err="kafka: error while consuming a.b/1: kafka server: The provided member is not known in the current generation." topic=a.b',
     "sarama", "commit_failed", {"group_id": "g-1", "partitions": ["a.b-1"]}),
    ('Jun 12, 2023 @ 18:08:12.336 log.msg:The group is rebalancing, re-joining log.data:{"groupId":"g","memberId":"m-1","error":"x"} log.level:error',
     "kafkajs", "rebalancing", {"group_id": "g", "member_id": "m-1", "reason": "x", "local_at": 1_686_593_292_336_000}),
    ('Jun 12, 2023 @ 18:08:12.336 log.msg:Response Heartbeat(key: 12, version: 2) log.data:{"clientId":"c","error":"x"}', "kafkajs", "heartbeat_failed", {"reason": "x"}),
    (f'{{"level":"INFO","timestamp":"2019-01-02T03:04:05.006Z","message":"[Runner] Consumer has joined the group","groupId":"g","memberId":"{M}","memberAssignment":{{"a-b":[1,0]}}}}',
     "kafkajs", "group_assignment", {"group_id": "g", "member_id": M, "partitions": ["a-b-0", "a-b-1"]}),
    ("stream-thread [a-StreamThread-1-consumer] Assigned tasks to clients as {u=[activeTasks: ([0_0]) capacity: 1]}.", "java", "leader_assigning", {"client_id": "a-StreamThread-1-consumer"}),
    ("[2022-01-02 03:04:05,006] INFO Static member MemberMetadata(memberId=m-1, groupInstanceId=Some(i), clientId=c, ).groupInstanceId of group g loaded with member id m-1 at generation 7. (a.b.GroupMetadata$)",
     "broker", "group_loaded", {"group_id": "g", "member_id": "m-1", "generation": 7}),
    *((rf"[WARNING] longlang\phpkafka\Exception\KafkaErrorException: [{code}] {text}. in /a/b.php:385", "phpkafka", kind, {"reason": text}) for code, text, kind in (
        (25, "The coordinator is not aware of this member", "member_reset"), (27, "The group is rebalancing, so a rejoin is needed", "rebalancing"),
        (82, "The broker rejected this static consumer since another consumer with the same group.instance.id has registered", "member_fenced"))),
]  # fmt: skip
NOTHING_NEW = [
    "[sarama] 2018/01/02 03:04:05 consumer/broker/1 abandoned subscription to t/0 because kafka server: The requested offset is outside the range of offsets",
    "2018-09-14 12:05:40,436 [DEBUG] kafka.request.logger Completed request:RequestHeader(apiKey=SYNC_GROUP, apiVersion=2) -- {group_id=g,generation_id=3,member_id=m}",
    "04:05:06.007 [t-0] [] INFO  a.b.RebalanceCoordinator - 2 partitions are assigned",
    "%7|1735787045.006|JOINGROUP|c#consumer-1| [thrd:main]: JoinGroup response: GenerationId -1, Protocol , Lea",
    "2018-01-02 03:04:05.006 o.a.s.k.s.KafkaSpout Thread-4-executor[2 2] [INFO] Partitions revoked. [consumer-group=g, consumer=a.B@1, topic-partitions=[]]",
    '%7|1735787045.006|MEMBERID|c#consumer-1| [thrd:app]: Group "g": updating member id "(not-set)" -> ""',
    '%7|1735787045.006|UNSUBSCRIBE|c#consumer-1| [thrd:main]: Group "g": unsubscribe from current unset subscription of 0 topics (leave group=no, join state init, v1)',
    f"2020-01-02T03:04:05.006 DEBUG kafka.protocol.parser Sending request HeartbeatRequest_v1(group='g', generation_id=7, member_id='{M}')",
    "2020-01-02T03:04:05.006 DEBUG kafka.protocol.parser Processing response HeartbeatResponse_v1",
    f"2022-01-02 03:04:05.006 DEBUG group_coordinator - perform_group_join: Join group response JoinGroupResponse_v2(generation_id=7, member_id='{M}')",
    'rdkafka: [thrd:main]: Group "g": resetting group leader info: JoinGroup response clean-up',
    "rdkafka: [thrd:GroupCoordinator]: GroupCoordinator: Received CONNECT op",
    "OUT [thrd:GroupCoordinator]: GroupCoordinator/<broker-1>: Sent partial SyncGroupRequest (v3, 5+1/6 bytes, CorrId 2)",
    "OUT [thrd:main]: GroupCoordinator/<broker-1>: SyncGroupRequest failed: Unknown broker error: actions Permanent",
    "OUT [thrd:main]: GroupCoordinator/1: JoinGroupRequest failed: Broker: Group member needs a valid member ID: explicit actions Ignore",
]  # fmt: skip
TIMES = [
    ("2021.02.03 04:05:06.007891 [ 56 ] {} <Debug> app: [rdk:CGRPSTATE] ", datetime(2021, 2, 3, 4, 5, 6, 7891), None),
    ("2021-02-03_04:05:06.00789 rdkafka: ", datetime(2021, 2, 3, 4, 5, 6, 7890), None),
    ("2021-02-03 12:05:06|1612325106.007|CGRPSTATE|c#consumer-2| ", datetime(2021, 2, 3, 4, 5, 6, 7000),
     datetime(2021, 2, 3, 4, 5, 6, 7000, tzinfo=UTC)),
]  # fmt: skip
BEHIND_TIMES = '[thrd:main]: Group "g" changed state up -> query-coord (join-state init)'


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> dict[str, ClientLogs[pl.DataFrame]]:
    """Line → the log of this line alone."""
    lines = [*(line for line, *_ in EVENTS), *NOTHING_NEW, *(f"{front}{BEHIND_TIMES}" for front, *_ in TIMES)]
    return read_each(tmp_path_factory.mktemp("logs"), lines)


@pytest.mark.parametrize(("line", "source", "kind", "said"), EVENTS)
def test_a_line_is_an_event(alone, line, source, kind, said):
    (event,) = alone[line].events.rows(named=True)
    assert (event["source"], event["kind"]) == (source, kind)
    assert {name: event[name] for name in said} == said


@pytest.mark.parametrize("line", NOTHING_NEW)
def test_lines_with_nothing_new_are_known_and_no_event(alone, line):
    assert alone[line].files.select("n_events", "n_context", "n_unknown").rows() == [(0, 1, 0)]


def test_a_line_of_nodes_package_debug_is_shown(tmp_path):
    logs = read(tmp_path, "  mine:orders c-1 says that the group rebalances +5ms")
    assert len(logs.unknown_lines) == 1


@pytest.mark.parametrize(
    "line",
    [
        "[orders] heartbeat thread died",
        "kafka_consumer.go:12: rebalance started",
        "rebalance callback for member=c-1 after 3 s",
        '{"level":"warning","msg":"error received","error":"GroupCoordinator: 1 request(s) timed out"}',
        '[app] 2021/01/02 03:04:05.006 s.go:3: level=ERROR msg="Group consume error" consumer_group=g err="EOF"',
        "10:35:47 [INFO] a.b: Partitions lost to the other member: clicks[0]",
    ],
)
def test_lines_of_an_application_about_coordination_are_shown(tmp_path, line):
    logs = read(tmp_path, line)
    assert (len(logs.events), len(logs.unknown_lines)) == (0, 1)


@pytest.mark.parametrize(
    "end", ["clicks-0, clicks-1, clic...", "clicks-0, clicks-1, … (12 more)", "clicks-0, clicks-1,"]
)
def test_no_part_of_a_list_that_was_left_out_is_the_whole(tmp_path, end):
    front = "2024-01-02 03:04:05,006 INFO [Consumer clientId=c, groupId=g] Adding newly assigned partitions: "
    (event,) = read(tmp_path, front + end).events.rows(named=True)
    assert (event["kind"], event["partitions"]) == ("assigned", None)


def test_the_pod_that_kubectl_names_is_an_origin(tmp_path):
    text = "2024-01-02 03:04:05,006 INFO [Consumer clientId=c, groupId=g] (Re-)joining group"
    events = read(tmp_path, f"[pod/app-1/main] {text}", f"[pod/app-2/main] {text}").events
    assert events["origin"].to_list() == ["app-1", "app-2"]


def test_a_client_that_no_one_knows_is_shown_by_its_generation(tmp_path):
    logs = read(tmp_path, "2016-08-07T22:05:11.868Z INFO engine Joined group g-06 generationId 2 as engine-cb24")
    assert len(logs.unknown_lines) == 1


@pytest.mark.parametrize(("front", "printed", "utc"), TIMES)
def test_the_time_in_front_is_read(alone, front, printed, utc):
    (event,) = alone[f"{front}{BEHIND_TIMES}"].events.rows(named=True)
    assert datetime.fromtimestamp(event["local_at"] / 1e6, UTC).replace(tzinfo=None) == printed
    assert event["observed_at"] == utc
