"""Logs in the wordings of real clients (of their sources by release tag, of librdkafka 2.16 as run), with values of our own."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

from kit.rebalances.logs import ClientLogs, read_client_logs

A = "consumer-7-11111111-2222-3333-4444-555555555555"
B = "consumer-7-66666666-7777-8888-9999-aaaaaaaaaaaa"
_RANGE = "group_protocols=[{protocol_name=range,protocol_metadata=java.nio.HeapByteBuffer[pos=0 lim=20 cap=20]}]"


def _hdp(text: str, day: str = "2017-03-04") -> str:
    """``time logger: message`` per line → HDP's layout."""
    lines = [line.split(" ", 2) for line in text.strip().splitlines()]
    return "\n".join(f"{day} {at} DEBUG {logger} - {message}" for at, logger, message in lines) + "\n"


JAVA_0_9 = _hdp(f"""
10:00:00 clients.NetworkClient:619 Sending metadata request ClientRequest(expectResponse=true, callback=null, request=RequestSend(header={{api_key=3,api_version=0,correlation_id=1,client_id=consumer-7}}, body={{topics=[orders-eu]}}), isInitiatedByNetworkClient, createdTimeMs=1488627000100, sendTimeMs=0) to node -1
10:00:01 internals.AbstractCoordinator:471 Issuing group metadata request to broker 5
10:00:02 internals.AbstractCoordinator:484 Group metadata response ClientResponse(receivedTimeMs=1488627002300, disconnected=false, request=ClientRequest(expectResponse=true, request=RequestSend(header={{api_key=10,api_version=0,correlation_id=2,client_id=consumer-7}}, body={{group_id=billing}}), createdTimeMs=1488627001100, sendTimeMs=1488627001200), responseBody={{error_code=0,coordinator={{node_id=5,host=kafka-5.example,port=9092}}}})
10:00:03 internals.ConsumerCoordinator:241 Revoking previously assigned partitions []
10:00:03 internals.AbstractCoordinator:324 Issuing request (JOIN_GROUP: {{group_id=billing,session_timeout=30000,member_id=,protocol_type=consumer,{_RANGE}}}) to coordinator 2147483642
10:00:06 internals.AbstractCoordinator:342 Joined group: {{error_code=0,generation_id=1,group_protocol=range,leader_id={A},member_id={A},members=[{{member_id={A},member_metadata=java.nio.HeapByteBuffer[pos=0 lim=20 cap=20]}}]}}
10:00:06 internals.ConsumerCoordinator:219 Performing range assignment for subscriptions {{{A}=org.apache.kafka.clients.consumer.internals.PartitionAssignor$Subscription@1}}
10:00:06 internals.ConsumerCoordinator:223 Finished assignment: {{{A}=org.apache.kafka.clients.consumer.internals.PartitionAssignor$Assignment@2}}
10:00:06 internals.AbstractCoordinator:403 Issuing leader SyncGroup (SYNC_GROUP: {{group_id=billing,generation_id=1,member_id={A},group_assignment=[{{member_id={A},member_assignment=java.nio.HeapByteBuffer[pos=0 lim=33 cap=33]}}]}}) to coordinator 2147483642
10:00:07 internals.AbstractCoordinator:429 Received successful sync group response for group billing: {{error_code=0,member_assignment=java.nio.HeapByteBuffer[pos=0 lim=33 cap=33]}}
10:00:07 internals.ConsumerCoordinator:185 Setting newly assigned partitions [orders-eu-1, orders-eu-0]
10:00:07 internals.ConsumerCoordinator:575 Fetching committed offsets for partitions: [orders-eu-1, orders-eu-0]
10:00:08 internals.Fetcher:160 Resetting offset for partition orders-eu-1 to the committed offset 41
10:01:00 clients.NetworkClient:619 Sending metadata request ClientRequest(expectResponse=true, callback=null, request=RequestSend(header={{api_key=3,api_version=0,correlation_id=1,client_id=consumer-7}}, body={{topics=[orders-eu]}}), isInitiatedByNetworkClient, createdTimeMs=1488627060100, sendTimeMs=0) to node -1
10:01:00 internals.AbstractCoordinator:471 Issuing group metadata request to broker 5
10:01:01 internals.AbstractCoordinator:484 Group metadata response ClientResponse(receivedTimeMs=1488627061300, disconnected=false, request=ClientRequest(expectResponse=true, request=RequestSend(header={{api_key=10,api_version=0,correlation_id=2,client_id=consumer-7}}, body={{group_id=billing}}), createdTimeMs=1488627060100, sendTimeMs=1488627060200), responseBody={{error_code=0,coordinator={{node_id=5,host=kafka-5.example,port=9092}}}})
10:01:02 internals.ConsumerCoordinator:241 Revoking previously assigned partitions []
10:01:02 internals.AbstractCoordinator:324 Issuing request (JOIN_GROUP: {{group_id=billing,session_timeout=30000,member_id=,protocol_type=consumer,{_RANGE}}}) to coordinator 2147483642
10:01:04 internals.AbstractCoordinator:342 Joined group: {{error_code=0,generation_id=2,group_protocol=range,leader_id={A},member_id={B},members=[]}}
10:01:04 internals.AbstractCoordinator:392 Issuing follower SyncGroup (SYNC_GROUP: {{group_id=billing,generation_id=2,member_id={B},group_assignment=[]}}) to coordinator 2147483642
10:01:05 internals.AbstractCoordinator:429 Received successful sync group response for group billing: {{error_code=0,member_assignment=java.nio.HeapByteBuffer[pos=0 lim=29 cap=29]}}
10:01:05 internals.ConsumerCoordinator:185 Setting newly assigned partitions [orders-eu-1]
10:01:05 internals.ConsumerCoordinator:575 Fetching committed offsets for partitions: [orders-eu-1]
""")

_AC = "org.apache.kafka.clients.consumer.internals.AbstractCoordinator"
_CC = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"
JAVA_0_11 = f"""[2018-05-01 08:00:00,100] INFO Discovered coordinator kafka-2:9092 (id: 2147483645 rack: null) for group stock.eu. ({_AC})
[2018-05-01 08:00:00,110] INFO Revoking previously assigned partitions [] for group stock.eu ({_CC})
[2018-05-01 08:00:00,120] INFO (Re-)joining group stock.eu ({_AC})
[2018-05-01 08:00:03,140] INFO Successfully joined group stock.eu with generation 8 ({_AC})
[2018-05-01 08:00:03,150] INFO Setting newly assigned partitions [moves-0, moves-1] for group stock.eu ({_CC})
[2018-05-01 08:05:00,000] INFO Marking the coordinator kafka-2:9092 (id: 2147483645 rack: null) dead for group stock.eu ({_AC})
[2018-05-01 08:05:00,000] INFO Something new that the coordinator says about a rebalance ({_AC})
java.lang.IllegalStateException: no group coordinator
	at org.apache.kafka.clients.consumer.internals.AbstractCoordinator.poll(AbstractCoordinator.java:200)
"""

_P = "[Consumer clientId=web-1, groupId=carts]"
_M = "web-1-0a0a0a0a-0b0b-0c0c-0d0d-0e0e0e0e0e0e"
_GEN = f"Generation{{generationId=4, memberId='{_M}', protocol='cooperative-sticky'}}"
SPRING_3_4 = "".join(
    f"2023-02-03 04:05:{second:06.3f}  INFO 71 --- [ntainer#0-0-C-1] o.a.k.c.c.internals.{logger}  : {message}\n"
    for second, logger, message in [
        (1.0, "ConsumerCoordinator", f"{_P} Discovered group coordinator kafka-1:9092 (id: 2147483646 rack: null)"),
        (1.1, "ConsumerCoordinator", f"{_P} (Re-)joining group"),
        (1.2, "ConsumerCoordinator", f"{_P} Request joining group due to: need to re-join with the given member-id: {_M}"),
        (4.3, "ConsumerCoordinator", f"{_P} Successfully joined group with generation {_GEN}"),
        (4.4, "ConsumerCoordinator", f"{_P} Finished assignment for group at generation 4: {{{_M}=Assignment(partitions=[carts-0, carts-1]), web-2-ffffffff-0b0b-0c0c-0d0d-0e0e0e0e0e0e=Assignment(partitions=[carts-2])}}"),
        (4.5, "ConsumerCoordinator", f"{_P} Successfully synced group in generation {_GEN}"),
        (4.6, "ConsumerCoordinator", f"{_P} Updating assignment with\n\tAssigned partitions:                       [carts-0, carts-1]\n\tCurrent owned partitions:                  [carts-0]\n\tAdded partitions (assigned - owned):       [carts-1]\n\tRevoked partitions (owned - assigned):     []\n"),
        (4.7, "ConsumerCoordinator", f"{_P} Notifying assignor about the new Assignment(partitions=[carts-0, carts-1])"),
        (4.8, "ConsumerCoordinator", f"{_P} Adding newly assigned partitions: carts-1"),
        (4.9, "ConsumerCoordinator", f"{_P} Setting offset for partition carts-1 to the committed offset FetchPosition{{offset=77, offsetEpoch=Optional.empty, currentLeader=LeaderAndEpoch{{leader=Optional[kafka-1:9092 (id: 1 rack: null)], epoch=3}}}}"),
        (5.0, "ConsumerCoordinator", f"{_P} Found no committed offset for partition carts-0"),
        (5.1, "SubscriptionState", f"{_P} Resetting offset for partition carts-0 to position FetchPosition{{offset=5, offsetEpoch=Optional.empty, currentLeader=LeaderAndEpoch{{leader=Optional[kafka-1:9092 (id: 1 rack: null)], epoch=3}}}}."),
        (50.0, "ConsumerCoordinator", f"{_P} Attempt to heartbeat with {_GEN} and group instance id Optional.empty failed due to UNKNOWN_MEMBER_ID, resetting generation"),
        (50.1, "ConsumerCoordinator", f"{_P} Resetting generation and member id due to: encountered UNKNOWN_MEMBER_ID from HEARTBEAT response"),
        (50.2, "ConsumerCoordinator", f"{_P} Giving away all assigned partitions as lost since generation/memberID has been reset,indicating that consumer is in old state or no longer part of the group"),
        (50.3, "ConsumerCoordinator", f"{_P} Lost previously assigned partitions carts-0, carts-1"),
        (51.0, "ConsumerCoordinator", f"{_P} Member {_M} sending LeaveGroup request to coordinator kafka-1:9092 (id: 2147483646 rack: null) due to the consumer is being closed"),
    ]
)  # fmt: skip

_K = "[Consumer instanceId=till-9, clientId=pos-9, groupId=tills]"
_MM = "org.apache.kafka.clients.consumer.internals.ConsumerMembershipManager"
KIP_848 = f"""[2025-01-02 03:04:05,000] INFO {_K} Member Zk3bQ1rTTtK0jW0nq8d5Jw with epoch 0 transitioned from UNSUBSCRIBED to JOINING. ({_MM})
[2025-01-02 03:04:05,300] INFO {_K} Member Zk3bQ1rTTtK0jW0nq8d5Jw with epoch 6 transitioned from JOINING to RECONCILING. ({_MM})
[2025-01-02 03:04:05,310] INFO {_K} Reconciling assignment with local epoch 1
	Member:                                    Zk3bQ1rTTtK0jW0nq8d5Jw
	Assigned partitions:                       [sales-3, sales-4]
	Current owned partitions:                  []
	Added partitions (assigned - owned):       [sales-3, sales-4]
	Revoked partitions (owned - assigned):     []
 ({_MM})
[2025-01-02 03:04:05,320] INFO {_K} Adding newly assigned partitions: sales-3, sales-4 (org.apache.kafka.clients.consumer.internals.ConsumerRebalanceListenerInvoker)
[2025-01-02 03:04:05,330] INFO {_K} Member Zk3bQ1rTTtK0jW0nq8d5Jw with epoch 6 transitioned from RECONCILING to ACKNOWLEDGING. ({_MM})
[2025-01-02 03:09:05,330] ERROR {_K} OffsetCommit failed for member Zk3bQ1rTTtK0jW0nq8d5Jw with stale member epoch error. Last epoch sent: 6 (org.apache.kafka.clients.consumer.internals.CommitRequestManager)
"""

JSON_LINES = """{"@timestamp":"2022-06-07T08:09:10.123+02:00","level":"INFO","logger_name":"org.apache.kafka.clients.consumer.internals.ConsumerCoordinator","message":"[Consumer clientId=j-1, groupId=json] Successfully joined group with generation Generation{generationId=12, memberId='j-1-x', protocol='range'}"}
{"ts":1654582151.5,"level":"INFO","logger":"kafka.coordinator","msg":"[Consumer clientId=j-1, groupId=json] Adding newly assigned partitions: t-0"}
"""

JUL = f"""Mar 4, 2018 9:15:00 PM {_AC} sendJoinGroupRequest
INFO: [Consumer clientId=jul-1, groupId=jules] (Re-)joining group
Mar 4, 2018 9:15:03 PM com.example.Main main
INFO: nothing about it
Mar 4, 2018 9:15:04 PM {_AC} onSuccess
INFO: [Consumer clientId=jul-1, groupId=jules] Successfully joined group with generation 3
"""

KAFKA_PYTHON = """2021-09-10 11:12:13,100 - kafka.coordinator - INFO - Discovered coordinator coordinator-1 for group pies
2021-09-10 11:12:13,200 - kafka.coordinator.consumer - INFO - Revoking previously assigned partitions set() for group pies
2021-09-10 11:12:13,210 - kafka.coordinator - INFO - (Re-)joining group pies
2021-09-10 11:12:16,000 - kafka.coordinator - INFO - Elected group leader -- performing partition assignments using range
2021-09-10 11:12:16,100 - kafka.coordinator - INFO - Successfully joined group pies with generation 2
2021-09-10 11:12:16,110 - kafka.coordinator.consumer - INFO - Setting newly assigned partitions {TopicPartition(topic='pie-orders', partition=0), TopicPartition(topic='pie-orders', partition=1)} for group pies
2021-09-10 11:20:00,000 - kafka.coordinator - WARNING - Heartbeat failed for group pies because it is rebalancing
INFO:kafka.coordinator:Leaving consumer group (pies).
"""

BROKER = f"""[2020-01-02 03:04:05,006] INFO [GroupCoordinator 4]: Preparing to rebalance group carts in state PreparingRebalance with old generation 3 (__consumer_offsets-12) (reason: Adding new member {_M} with group instance id None) (kafka.coordinator.group.GroupCoordinator)
[2020-01-02 03:04:08,006] INFO [GroupCoordinator 4]: Stabilized group carts generation 4 (__consumer_offsets-12) (kafka.coordinator.group.GroupCoordinator)
[2020-01-02 03:04:08,010] INFO [GroupCoordinator 4]: Assignment received from leader for group carts for generation 4 (kafka.coordinator.group.GroupCoordinator)
[2020-01-02 03:05:08,010] INFO [GroupCoordinator 4]: Member {_M} in group carts has failed, removing it from the group (kafka.coordinator.group.GroupCoordinator)
[2020-01-02 03:05:09,010] INFO [GroupCoordinator id=4 topic=__consumer_offsets partition=12] [GroupId tills] Bumped group epoch to 7. (org.apache.kafka.coordinator.group.GroupMetadataManager)
[2020-01-02 03:05:10,010] INFO [GroupCoordinator id=4 topic=__consumer_offsets partition=12] [GroupId tills] Member Zk3b joins the consumer group using the consumer protocol. (org.apache.kafka.coordinator.group.GroupMetadataManager)
"""

_Z = "legacy_host-a-1488627000000-0a1b2c3d"
OLD_CONSUMER = "".join(
    f"[2016-02-03 04:05:{second:02},000] INFO [{_Z}], {message} (kafka.consumer.ZookeeperConsumerConnector)\n"
    for second, message in [
        (1, f"begin registering consumer {_Z} in ZK"),
        (1, f"end registering consumer {_Z} in ZK"),
        (2, f"begin rebalancing consumer {_Z} try #0"),
        (2, "Releasing partition ownership"),
        (3, f"{_Z}-0 successfully owned partition 3 for topic old.topic"),
        (3, "waiting for the partition ownership to be deleted: 4 for topic old.topic"),
        (4, f"end rebalancing consumer {_Z} try #0"),
    ]
)

_R = "[thrd:main]: "
RDKAFKA = "".join(
    f"%7|17952646{at:06.3f}|{facility}|till#consumer-2| {_R}{message}\n"
    for at, facility, message in [
        (56.729, "CGRPQUERY", '127.0.0.1:9092/bootstrap: Group "kiosk": querying for coordinator: intervaled in state query-coord'),
        (56.730, "CGRPCOORD", '127.0.0.1:9092/bootstrap: Group "kiosk" coordinator is kafka-1:9092 id 1'),
        (56.780, "JOIN", 'kafka-1:9092/1: Joining group "kiosk" with 1 subscribed topic(s) and member id ""'),
        (59.782, "JOINGROUP", "JoinGroup response: GenerationId 2, Protocol range, LeaderId till-1 (me), my MemberId till-1, member metadata count 1: (no error)"),
        (59.782, "JOINGROUP", 'I am elected leader for group "kiosk" with 1 member(s)'),
        (59.783, "SYNCGROUP", "SyncGroup response: Success (41 bytes of MemberState data)"),
        (59.783, "ASSIGN", 'Group "kiosk": delegating assign of 2 partition(s) to application on queue rd_kafka_cgrp_new: new assignment'),
        (59.784, "GRPASSIGNMENT", "List with 2 partition(s):"),
        (59.784, "GRPASSIGNMENT", " kiosk-orders [0] offset INVALID"),
        (59.784, "GRPASSIGNMENT", " kiosk-orders [1] offset INVALID"),
        (59.790, "HEARTBEAT", 'GroupCoordinator/1: Heartbeat for group "kiosk" generation id 2'),
        (59.800, "CGRPNEW", 'Group "kiosk" does what no version known does'),
    ]
)  # fmt: skip

NOISE = "".join(
    f"[2022-10-05 18:00:00,{n % 1000:03}] DEBUG [Consumer clientId=web-1, groupId=carts] Added READ_UNCOMMITTED fetch "
    f"request for partition carts-{n % 3} at position FetchPosition{{offset={n}, offsetEpoch=Optional.empty}} to node "
    "kafka-1:9092 (id: 1 rack: null) (org.apache.kafka.clients.consumer.internals.Fetcher)\n"
    for n in range(50)
)


SEEDS = list((Path(__file__).parents[2].parent / "shared" / "seeds").glob("*coordination-log.txt"))
"""A real log as an article shows it, where it lies beside the project."""


@dataclass(frozen=True)
class Read:
    logs: ClientLogs
    events: pl.DataFrame


_READ: dict[SparkSession, Read] = {}


def read_all(spark: SparkSession, folders: pytest.TempPathFactory) -> Read:
    """All texts, in one read for all tests: to plan it takes Spark longer than to do it."""
    if spark not in _READ:
        folder = write(folders.mktemp("logs"))
        for seed in SEEDS:
            (folder / seed.name).write_bytes(seed.read_bytes())
        logs = read_client_logs(spark, str(folder))
        _READ[spark] = Read(logs, pl.DataFrame(logs.events.toArrow()))
    return _READ[spark]


def prefixed(text: str, prefix: str) -> str:
    return "".join(prefix + line for line in text.splitlines(keepends=True))


TEXTS = {
    "java09.log": JAVA_0_9,
    "java011.log": JAVA_0_11,
    "spring34.log": SPRING_3_4,
    "kip848.log": KIP_848,
    "json.log": JSON_LINES,
    "jul.log": JUL,
    "python.log": KAFKA_PYTHON,
    "broker.log": BROKER,
    "old.log": OLD_CONSUMER,
    "rdkafka.log": RDKAFKA,
    "noise.log": NOISE,
    "empty.log": "",
    "compose.log": prefixed(JAVA_0_11, "stock-1  | ") + prefixed(RDKAFKA, "kiosk-1  | "),
    "syslog.log": prefixed(JAVA_0_11, "May  1 08:00:00 host7 stock[99]: "),
    "grep.log": prefixed(JAVA_0_11, "server-3.log:"),
    "pasted.log": " ".join(JAVA_0_9.splitlines()) + " will know the rest 017-03-04 10:02:00 DEBUG "
    "internals.AbstractCoordinator:471 - Issuing group metadata request to broker 5 and so on\n",
    "mixed.log": f"[2023-02-03 04:05:04,600] INFO {_P} Updating assignment with\n"
    + RDKAFKA.splitlines(keepends=True)[0]
    + "\tAssigned partitions:                       [carts-0, carts-1]\n"
    + f"\tCurrent owned partitions:                  [carts-0]\n ({_CC})\n",
    "back.log": "".join(reversed(JAVA_0_11.splitlines(keepends=True)[:5])),
}


def write(folder: Path) -> Path:
    """All of them, one zipped, one zipped and torn, one that is no text."""
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    (folder / "rotated.log.1.gz").write_bytes(gzip.compress(JAVA_0_11.encode()))
    (folder / "binary.log").write_bytes(bytes(range(256)) * 40)
    return folder


def write_torn(path: Path) -> Path:
    whole = gzip.compress((NOISE * 40 + JAVA_0_11).encode(), compresslevel=1)
    path.write_bytes(whole[: len(whole) // 2])
    return path
