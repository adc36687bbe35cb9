"""Known texts in layouts that nobody told us: behind foreign prefixes, in Markdown, in HTML, in JSON."""

from __future__ import annotations

import polars as pl
import pytest

from kit.rebalances.logs import ClientLogs, known_text
from tests.unit.rebalances.logs.pasted import read, read_each

JOINED = "Successfully joined group pies with generation 7"
NAMED = "[Consumer clientId=c-1, groupId=pies] Successfully joined group with generation 7"
ESCAPED = r'{"log":"{\"level\":\"INFO\",\"message\":\"%s\"}\n","stream":"stdout","time":"2021-02-03T04:05:06.007Z"}'


LAYOUTS = [
    (f"2021 Feb 03 04:05:09  | 2021-02-03 04:05:06,007 - kafka.coordinator - INFO - {JOINED}", 6, False),
    (f"2021-02-03 04:05:06,007 MainThread INFO {JOINED}", 6, False),
    (f"2021-02-03 04:05:06,007.7.123:kafka.coordinator:140:INFO:1:{JOINED}", 6, False),
    (f"21/02/03 04:05:06.007 INFO ConsumerCoordinator: {NAMED}", 6, False),
    (f"03.02.2021 04:05:06.007 [main] INFO {NAMED}", 6, False),
    (f"03/Feb/2021:04:05:06.007 app {NAMED}", 6, False),
    (f"Wed Feb 03 04:05:06.007 2021 {NAMED}", 6, False),
    (f"[pod/a/b] web-1 | 2021-02-03T04:05:06.007Z INFO x - {NAMED}", 6, True),
    (f"Feb 03, 2021 4:05:06 AM a.B c INFO: {NAMED}", 5.993, False),
    (f"> **2021-02-03 04:05:06.007 INFO** `{NAMED}`", 6, False),
    (f"&gt; [2021-02-03 04:05:06,007] INFO {NAMED} (a.b.C)", 6, False),
    (f"2021-02-03 04:05:06.007 \x1b[32mINFO\x1b[0m 1 --- {NAMED}", 6, False),
    (ESCAPED % NAMED, 6, True),
    (f'{{"log":"2021-02-03 09:09:09,009 INFO a.B - {NAMED}\\n","time":"2021-02-03T04:05:06.007Z"}}', 6, True),
    (f'time="2021-02-03T04:05:06.007Z" level=info msg="{NAMED}" x=1', 6, True),
    (f"[2021-02-03 04:05:06,007] INFO [conn|task-0] {NAMED} (a.b.C:5)", 6, False),
    (f"04:05:06.007 INFO {JOINED}", None, False),
    (f"INFO {NAMED}", None, False),
    (JOINED, None, False),
]  # fmt: skip
SENTENCES = {
    "alone": "Offset commit",
    "behind a name": "app: Seeking to",
    "behind many words and a level": f"It left many of our consumers stuck with the error {JOINED}, and stopped",
    "behind few words and a level": f"I get the error {JOINED}",
    "in a sentence of a known layout": f"2021-02-03 04:05:06.007 INFO 1 --- [main] a.B : my own text says {JOINED}",
}
GROUPS = [
    ("web: Group Coordinator lookup failed: [Error 15]", "coordinator_failed", None),
    ("web: Group coordinator lookup", "coordinator_failed", None),
    ("web: Successfully joined group with generation 866", "joined", None),
    ("[Debug] Client log: Offset commit", "commit_failed", None),
    ("Sep 1 x stdout F Sending follower SyncGroup", "sync_sent", None),
    ("web: Leaving group pies, member c-1", "leaving", "pies"),
    ("app says [GroupId pies] Static Member m-1 left the consumer group", "member_left", "pies"),
]


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> dict[str, ClientLogs[pl.DataFrame]]:
    """Line → the log of this line alone."""
    lines = [*(line for line, *_ in LAYOUTS), *SENTENCES.values(), *(line for line, *_ in GROUPS)]
    return read_each(tmp_path_factory.mktemp("logs"), lines)


@pytest.mark.parametrize(("line", "local", "is_utc"), LAYOUTS)
def test_a_known_text_is_an_event_in_any_layout(alone, line, local, is_utc):
    (event,) = alone[line].events.rows(named=True)
    assert (event["kind"], event["group_id"], event["generation"]) == ("joined", "pies", 7)
    assert (event["observed_at"] is not None) is is_utc
    printed = None if event["local_at"] is None else event["local_at"] % 60_000_000 / 1e6
    assert printed == (None if local is None else local + 0.007)


def test_librdkafka_through_loggers_of_others(tmp_path):
    text = '[thrd:main]: Group "g": Rejoining group without an assignment: why'
    lines = [
        f"D, [2023-06-09T09:35:10.457572 #216] DEBUG -- : rdkafka: {text}",
        f"rdkafka: {text}",
        f"2021-02-10 08:49:47.862: LOG-7-REJOIN: {text}",
        f"1524281233.094 RDKAFKA-7-REJOIN: rdkafka#consumer-1: {text}",
        '7|2016-09-15 09:13:58.448|rdkafka#consumer-1|REJOIN| Group "g": Rejoining group without an assignment: why',
    ]
    events = read(tmp_path, *lines).events
    assert events.select("source", "kind", "group_id", "reason").unique().rows() == [
        ("librdkafka", "join_reason", "g", "why")
    ]
    assert events["local_at"].is_null().to_list() == [False, True, False, False, False]
    assert events["logger"].to_list()[2:] == ["REJOIN"] * 3


def test_a_list_of_librdkafka_is_read_behind_a_prefix(tmp_path):
    front = "web | %7|1795264659.784|GRPASSIGNMENT|till#consumer-2| [thrd:main]: "
    lines = [f"{front}List with 2 partition(s):", f"{front} a-b [0] offset INVALID", f"{front} a-b [1] offset INVALID"]
    (event,) = read(tmp_path, *lines).events.rows(named=True)
    assert event["partitions"] == ["a-b-0", "a-b-1"]


def test_a_block_is_read_in_markdown_and_in_json(tmp_path):
    block = ["Assigned partitions:    [t-0, t-1]", "Current owned partitions:    [t-0]"]
    head = "2021-02-03 04:05:06 INFO x.Y - [Consumer clientId=c, groupId=g] Updating assignment with"
    quoted = [f"> {head}", *(f"> \t{each}" for each in block)]
    folded = [f'{{"log":"{head}\\n"}}', *(f'{{"log":"\\t{each}\\n"}}' for each in block)]
    for lines in (quoted, folded):
        (event,) = read(tmp_path, *lines).events.rows(named=True)
        assert (event["kind"], event["owned_after"], event["owned_before"]) == (
            "assignment_diff", ["t-0", "t-1"], ["t-0"],
        )  # fmt: skip


def test_a_known_text_in_a_sentence_is_shown_and_no_event(tmp_path):
    logs = read(tmp_path, f"Then my consumer printed {JOINED} and stopped", "java.lang.Error: Error: " + JOINED)
    assert logs.events.is_empty()
    assert logs.unknown_lines["text"].str.contains(JOINED).to_list() == [True, True]


def test_an_unknown_text_about_coordination_in_an_unknown_layout_is_shown(tmp_path):
    logs = read(
        tmp_path, "03.02.2021 04:05:06 app: the rebalance did what it never did", "of a rebalance", "\tat a.B(c)"
    )
    assert (len(logs.events), len(logs.unknown_lines)) == (0, 1)


def test_a_line_of_a_program_is_no_line_of_a_log(tmp_path):
    logs = read(
        tmp_path,
        f'+        log.info("{JOINED}");',
        f'    _logger.LogDebug($"{JOINED}");',
        '-   log.error("Error {} occurred while committing offsets for group {}", error, groupId);',
        '    future.raise(new CommitFailedException("Commit cannot be completed due to group rebalance"));',
        '+              info(s"Assignment received from leader for group ${group.groupId} for generation 3")',
        '        info!("Committed offset: {:?}", result);',
        '-            case t: Throwable => error("error during syncedRebalance", t)',
        '        "Commit cannot be completed since the group has already " +',
        '+                "Offset commit cannot be completed since the consumer is not part of an active group"',
        "clients/src/main/java/org/apache/kafka/clients/consumer/internals/AbstractCoordinator.java:1086",
        "    at Consumer.rebalance_cb (/srv/app/node_modules/node-rdkafka/lib/kafka-consumer.js:82:20)",
        "    at new RebalanceInProgress (/srv/app/node_modules/kafka-node/lib/errors/RebalanceInProgressError.js:4:9)",
        '  File "/srv/env/aiokafka/consumer/group_coordinator.py", line 820, in commit_offsets',
    )
    assert (len(logs.events), len(logs.unknown_lines)) == (0, 0)


@pytest.mark.parametrize(
    "line",
    [
        "`Heartbeat failed for group <group> because it is rebalancing`",
        "`GroupHeartbeatRequest failed because member epoch %s is invalid`",
        "- Revoking previously assigned partitions",
        "Successfully synced group.",
        "We saw that `kafka.common.ConsumerRebalanceFailedException: ... can't rebalance after 4 retries` is thrown",
    ],
)
def test_a_text_without_names_and_numbers_is_shown(tmp_path, line):
    logs = read(tmp_path, line)
    assert (len(logs.events), len(logs.unknown_lines)) == (0, 1)


REFUSED = "Offset commit cannot be completed since the consumer is not part of an active group"
THROWN = f"org.apache.kafka.clients.consumer.CommitFailedException: {REFUSED}"
STACK = "\tat a.b.ConsumerCoordinator.sendOffsetCommitRequest(ConsumerCoordinator.java:1109)"
LOGGED = "2021-02-03 04:05:06.007 ERROR 1 --- [main] a.B : Offset commit failed on partition t-0 at offset 7: x"


@pytest.mark.parametrize(
    ("lines", "n_events", "n_context"),
    [
        ([THROWN, STACK], 1, 0),
        ([f"web | {THROWN}", f"web | {STACK}"], 1, 0),
        (["a.b.TaskMigratedException: fenced", STACK, f"Caused by: {THROWN}", STACK], 1, 0),
        ([THROWN, STACK, f"Caused by: {THROWN}", STACK], 1, 1),
        ([LOGGED, THROWN, STACK], 1, 1),
        ([THROWN, *[STACK] * 300, THROWN], 2, 0),
        ([f"2021-02-03 04:05:06 ERROR [t] a.B - it ended; nested exception is {THROWN}"], 1, 0),
    ],
)
def test_the_text_of_an_exception_is_an_event_once(tmp_path, lines, n_events, n_context):
    logs = read(tmp_path, *lines)
    assert set(logs.events["kind"]) == {"commit_failed"}
    assert logs.files.select("n_events", "n_context", "n_unknown").rows() == [(n_events, n_context, 0)]


def test_a_layout_that_was_given_is_the_only_one(tmp_path):
    logs = read(tmp_path, f"web: {JOINED}", layout="kafka")
    assert logs.files.select("n_events", "n_unknown", "problem").rows() == [(0, 0, "layout")]


def test_the_logger_behind_the_text_is_no_part_of_it(tmp_path):
    (event,) = read(tmp_path, f"web: {NAMED} (a.b.Coordinator:77)").events.rows(named=True)
    assert (event["logger"], pl.Series([event["text"]]).str.ends_with("77)").item()) == ("a.b.Coordinator", True)


def test_a_long_line_is_not_read_from_each_of_its_places(tmp_path, monkeypatch):
    """The rest of the line is not examined at each place: of 2 MB with 10,000 places that was 20 GB."""
    seen = []
    with_kinds = known_text._with_kinds
    monkeypatch.setattr(known_text, "_with_kinds", lambda tails: seen.append(tails) or with_kinds(tails))
    line = "2024-01-01 00:00:00 INFO [Consumer clientId=c, groupId=g] Successfully joined group with generation 5 "
    logs = read(tmp_path, '{"log":"' + line * 1_000)
    assert logs.events["kind"].to_list() == ["joined"]
    assert 0 < sum(tails["tail"].str.len_bytes().sum() for tails in seen) <= 2 * known_text._TRIED


def test_the_end_of_a_quotation_is_no_part_of_a_name(tmp_path):
    front = "2021-02-03 04:05:06,007 - kafka.coordinator - INFO - (Re-)joining group pies"
    quoted = 'time="2021-02-03T04:05:06Z" level=info msg="app: Failed to write empty metadata for group pies" x=1'
    lines = [f"{front}**", f"{front}`", f"{front}</code>", f'msg="{front}"', quoted]
    assert read(tmp_path, *lines).events["group_id"].to_list() == ["pies"] * 5


@pytest.mark.parametrize("line", SENTENCES.values(), ids=SENTENCES)
def test_a_known_text_that_may_be_a_sentence_is_shown(alone, line):
    logs = alone[line]
    assert (len(logs.events), logs.unknown_lines["text"].to_list()) == (0, [line])


@pytest.mark.parametrize(("line", "kind", "group"), GROUPS)
def test_a_line_names_its_group_or_none(alone, line, kind, group):
    (event,) = alone[line].events.rows(named=True)
    assert (event["kind"], event["group_id"]) == (kind, group)
