"""Any wording of an event, behind any stack of prefixes, in any client's time format: none is dropped silently."""

# ruff: noqa: E501  # lists of what stands in front

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from kit.logs import wordings
from kit.logs.local import files_here, read_logs_here
from kit.logs.wordings import BY_SOURCE, CONTEXT

_GROUP, _CLIENT = "g-1", "[Consumer clientId=c-1, groupId=g-1] "
TEXTS = [
    (source, each.template.replace("{}", _GROUP))
    for source, table in BY_SOURCE.items()
    for each in table
    if each.kind not in (CONTEXT, "group_assignment")
]
"""Without librdkafka's lists: which of them is the group's, its facility alone says."""
OWN = {
    wordings.JAVA: (_CLIENT, ""),
    wordings.PYTHON: ("",),
    wordings.OLD_CONSUMER: ("[g-1_host-1488627000000-0a1b2c3d], ",),
    wordings.BROKER: ("[GroupCoordinator 4]: ", "[GroupCoordinator id=4 topic=__consumer_offsets partition=12] ", ""),
    **dict.fromkeys(wordings.LIBRARIES, ("",)),
    wordings.LIBRDKAFKA: ("[thrd:main]: ", "[thrd:sasl_ssl://k:9092/1]: sasl_ssl://k:9092/1: "),
}
"""What a client of that kind writes before its texts itself."""
PREFIXES = st.sampled_from(
    [
        "web-1  | ", "server-3.log:17:", "2019 Apr 10 06:22:03  | ", "[pod/web-7d9f/app] ", "> ", "&gt; ", "**", "`", "- ",
        "2024-01-02T03:04:05.123456789Z stdout F ", "May  1 08:00:00 host7 stock[99]: ", "\x1b[32m", "<code>", "app[web.1]: ",
        "<134>1 2024-01-02T03:04:05Z host app - - - ", "I0521 10:11:12.123456       1 log.go:12] ", "rdkafka: ", "\t",
    ]
)  # fmt: skip
TIMES = st.sampled_from(
    [
        "[2021-02-03 04:05:06,007] INFO ", "2021-02-03 04:05:06.007  INFO 71 --- [main] o.a.k.c.c.i.Consumer  : ",
        "2021-02-03 04:05:06 DEBUG internals.AbstractCoordinator:342 - ", "2021-02-03 04:05:06,007 - kafka.coordinator - INFO - ",
        "21/02/03 04:05:06 INFO ConsumerCoordinator: ", "2021-02-03 04:05:06,007 MainThread INFO ", "04:05:06.007 [main] INFO  a.B - ",
        "2021-02-03 04:05:06,007.7.123:kafka.coordinator:140:INFO:1:", "D, [2021-02-03T04:05:06.457254 #216] DEBUG -- : ",
        "INFO:kafka.coordinator:",
        "2021-02-03T04:05:06.007+0000\tinfo\tkgo/group.go:1\t", "03.02.2021 04:05:06.007 INFO ", "Feb 03, 2021 4:05:06 AM a.B c INFO: ",
        "2021-02-03 04:05:06,007 INFO  org.apache.kafka.A [] - ", "[2021-02-03T04:05:06.007Z] [INFO] ",
    ]
)  # fmt: skip
OF_LIBRDKAFKA = st.sampled_from(
    ["%7|1612325106.007|CGRP|c-1#consumer-1| ", "1612325106.007 RDKAFKA-7-CGRP: rdkafka#consumer-1: ",
     "2021-02-03 04:05:06.007: LOG-7-CGRP: "]
)  # fmt: skip
WRAPPINGS = st.sampled_from(
    [
        "{}", "{} (org.apache.kafka.clients.consumer.internals.AbstractCoordinator:505)", "{}`", "{}**", "{}</code>",
        '{{"message":"{}","level":"INFO"}}', '{{"log":"{}\\n","stream":"stdout","time":"2021-02-03T04:05:06.007Z"}}',
        r'{{"log":"{{\"level\":\"INFO\",\"message\":\"{}\"}}\n","stream":"stdout"}}', 'time="2021-02-03T04:05:06Z" level=info msg="{}"',
    ]
)  # fmt: skip


@st.composite
def lines(draw: st.DrawFn) -> str:
    source, text = draw(st.sampled_from(TEXTS))
    front = "".join(draw(st.lists(PREFIXES, max_size=3)))
    own = draw(st.sampled_from(OWN[source]))
    wrapping = draw(WRAPPINGS)
    times = st.one_of(TIMES, OF_LIBRDKAFKA) if source == wordings.LIBRDKAFKA else TIMES
    said = draw(times) + own + text
    if wrapping.startswith(("{{", "time=")):
        depth = 2 if r"\"" in wrapping else 1
        for _ in range(depth):
            said = said.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    return front + wrapping.format(said)


def silently_dropped(pasted: list[str]) -> list[str]:
    """The lines that are no event, no known line without one, and not shown as unknown."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "pasted.log"
        log.write_text("".join(f"{line}\n" for line in pasted))
        logs = read_logs_here(files_here([str(log)]))
        told = {*logs.events["line"], *logs.unknown_lines["line"]}
        if len(told) + logs.files["n_context"].sum() >= len(pasted):
            return []
    return [line for number, line in enumerate(pasted, 1) if number not in told]


@settings(max_examples=15, deadline=None)
@given(st.lists(lines(), min_size=40, max_size=80))
def test_no_known_wording_is_dropped_silently(pasted):
    assert silently_dropped(pasted) == []


def test_each_wording_is_told_alone_behind_a_prefix_and_a_time():
    pasted = [f"web-1 | > 2021-02-03 04:05:06,007 MainThread INFO {OWN[source][0]}{text}" for source, text in TEXTS]
    assert silently_dropped(pasted) == []
