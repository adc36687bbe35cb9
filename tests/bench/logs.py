"""The reader of logs beside Spark that merely counts the lines, and beside a plain reader in one Python process."""

# ruff: noqa: E501  # lines of logs are as long as clients print them

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from kit.rebalances.logs import read_client_logs
from kit.rebalances.logs.wordings import BY_SOURCE, CONTEXT, JAVA
from kit.spark.session import spark_session
from tests.bench.clock import expect, in_turn, say, timed
from tests.bench.rows import Row
from tests.bench.site import Site

MEGABYTES = 400
LOGS = ((1, 0.001), (1, 0.01), (5, 0.001))
"""The number of files of that size; and the share of lines that show an event: the rest is what a consumer prints
about its fetches at DEBUG. Ours has a part that does not grow with the files.
"""
COUNT_GOAL, PYTHON_GOAL = 0.3, 1.5
_WARM_UPS, _ROUNDS = 3, 5

_PREFIX = "[Consumer clientId=web-1, groupId=carts]"
_NODE = "kafka-1:9092 (id: 1 rack: null)"
_MEMBER = "web-1-0a0a0a0a-0b0b-0c0c-0d0d-0e0e0e0e0e0e"
_HEADER = "RequestHeader(apiKey=FETCH, apiVersion=13, clientId=web-1, correlationId={n}, headerVersion=2)"
_POSITION = "FetchPosition{{offset={n}, offsetEpoch=Optional[3], currentLeader=LeaderAndEpoch{{leader=Optional[" + (
    f"{_NODE}], epoch=3}}}}}}}}"
)
_GENERATION = f"Generation{{{{generationId={{n}}, memberId='{_MEMBER}', protocol='range'}}}}"
_INTERNALS = "org.apache.kafka.clients.consumer.internals."
_CHATTER = (
    (f"{_INTERNALS}Fetcher", f"Added READ_UNCOMMITTED fetch request for partition carts-1 at position {_POSITION} to node {_NODE}"),
    ("org.apache.kafka.clients.FetchSessionHandler", "Built incremental fetch (sessionId=1283746, epoch={n}) for node 1. Added 0 partition(s), altered 1 partition(s), removed 0 partition(s), replaced 0 partition(s) out of 12 partition(s)"),
    (f"{_INTERNALS}Fetcher", f"Sending READ_UNCOMMITTED IncrementalFetchRequest(toSend=(carts-1), toForget=(), toReplace=(), implied=(carts-0, carts-2), canUseTopicIds=True) to broker {_NODE}"),
    ("org.apache.kafka.clients.NetworkClient", f"Sending FETCH request with header {_HEADER} and timeout 30000 to node 1: FetchRequestData(clusterId=null, replicaId=-1, maxWaitMs=500, minBytes=1, maxBytes=52428800, isolationLevel=0, sessionId=1283746, sessionEpoch={{n}}, topics=[], forgottenTopicsData=[], rackId='')"),
    ("org.apache.kafka.clients.NetworkClient", f"Received FETCH response from node 1 for request with header {_HEADER}: FetchResponseData(throttleTimeMs=0, errorCode=0, sessionId=1283746, responses=[])"),
    ("org.apache.kafka.clients.FetchSessionHandler", "Node 1 sent an incremental fetch response with throttleTimeMs = 0 for session 1283746 with 0 response partition(s), 12 implied partition(s)"),
)  # fmt: skip
_TOLD = (
    ("ConsumerCoordinator", "Revoke previously assigned partitions carts-0, carts-1"),
    ("ConsumerCoordinator", "(Re-)joining group"),
    ("ConsumerCoordinator", f"Successfully joined group with generation {_GENERATION}"),
    ("ConsumerCoordinator", f"Successfully synced group in generation {_GENERATION}"),
    ("ConsumerCoordinator", "Adding newly assigned partitions: carts-0, carts-1"),
    ("ConsumerCoordinator", f"Setting offset for partition carts-0 to the committed offset {_POSITION}"),
    ("AbstractCoordinator", f"Sending Heartbeat request with generation {{n}} and member id {_MEMBER} to coordinator {_NODE}"),
    ("AbstractCoordinator", "Received successful Heartbeat response"),
)  # fmt: skip


def compared(site: Site) -> Iterator[Row]:
    """With what a user waits for: the account of the file, and all its events."""
    say("logs: starting Spark")
    spark = spark_session(app_name="bench")
    try:
        with TemporaryDirectory() as folder:
            for n_files, share in LOGS:
                yield from _compared(spark, Path(folder), n_files, share)
    finally:
        spark.stop()


def _compared(spark: SparkSession, folder: Path, n_files: int, share: float) -> Iterator[Row]:
    logs, small = [folder / f"debug-{number}.log" for number in range(n_files)], folder / "small.log"
    say(f"logs: writing {MEGABYTES} MB, {share:.1%} of the lines about coordination")
    of_one, few = write_log(logs[0], MEGABYTES, share), write_log(small, 1, share)
    for log in logs[1:]:
        log.unlink(missing_ok=True)
        log.hardlink_to(logs[0])
    wanted = (n_files * of_one[0], n_files * of_one[1])
    for _ in range(_WARM_UPS):
        expect("lines and events of the small log", _by_spark(spark, [small]), few)
    expect("lines and events by Python", _by_python(logs), wanted)
    ways = {
        "ours": timed(lambda: _by_spark(spark, logs), lambda found: expect("lines and events", found, wanted)),
        "count": timed(lambda: spark.read.text(list(map(str, logs))).count(), lambda n: expect("lines", n, wanted[0])),
        "python": timed(lambda: _by_python(logs)),
    }
    name = f"logs of {n_files} × {MEGABYTES} MB, {share:.1%} of it events"
    ours, count, python = in_turn(name, ways, _ROUNDS)
    yield Row(f"{name}, vs Spark's count", ours, count, "s", COUNT_GOAL)
    yield Row(f"{name}, vs plain Python", ours, python, "s", PYTHON_GOAL)


def write_log(path: Path, megabytes: int, share: float) -> tuple[int, int]:
    """Return how many lines, and how many of them tell an event."""
    chance, at, told = random.Random(7), datetime(2022, 10, 5), 0
    size = number = 0
    with path.open("w", encoding="ascii") as log:
        while size < megabytes * 1_000_000:
            is_told = chance.random() < share
            logger, text = _TOLD[told % len(_TOLD)] if is_told else _CHATTER[number % len(_CHATTER)]
            told, number = told + is_told, number + 1
            name, when = _INTERNALS + logger if is_told else logger, at + timedelta(milliseconds=20 * number)
            size += log.write(
                f"[{when:%F %T},{when.microsecond // 1000:03}] DEBUG {_PREFIX} {text.format(n=number)} ({name})\n"
            )
    return number, told


def _by_spark(spark: SparkSession, paths: list[Path]) -> tuple[int, int]:
    logs = read_client_logs(spark, map(str, paths), zone="UTC")
    events = logs.events.toArrow()
    return int(logs.files["n_lines"].sum()), int(events.num_rows)


_LAYOUT = re.compile(
    rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] ([A-Z]+) (?:\[Consumer clientId=([^,\]]*), groupId=([^\]]*)\] )?"
)
_HEADS = re.compile(
    b"|".join(re.escape(known.head.encode()) for known in BY_SOURCE[JAVA] if known.head and known.kind != CONTEXT)
)
_FACTS = tuple(
    re.compile(fact)
    for fact in (
        rb"generation(?:Id=| )(\d+)",
        rb"member(?:Id='| id )([\w-]+)",
        rb"partitions?:? ([\w, -]+)",
        rb"offset=(\d+)",
    )
)


def _by_python(logs: list[Path]) -> tuple[int, int]:
    counts = [_one_by_python(log) for log in logs]
    return sum(n_lines for n_lines, _ in counts), sum(n_events for _, n_events in counts)


def _one_by_python(log: Path) -> tuple[int, int]:
    """Two patterns on every line, four more on those that tell something: less than ours finds, in one layout."""
    number, events = 0, []
    with log.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            prefix = _LAYOUT.match(line)
            if prefix and (head := _HEADS.match(line, prefix.end())):
                facts = [found and found[1] for found in (fact.search(line) for fact in _FACTS)]
                events.append((number, prefix.groups(), head[0], facts))
    return number, len(events)
