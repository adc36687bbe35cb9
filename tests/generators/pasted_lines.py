"""Every wording of ``kit.rebalances.logs`` as a client would print it, behind what people and programs put in front of it."""

# ruff: noqa: E501  # lists of what is in front

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from hypothesis import strategies as st

from kit.rebalances.logs import wordings
from kit.rebalances.logs.not_logged import SAY_WHAT
from kit.rebalances.logs.wordings import BY_SOURCE, CONTEXT, LogTemplate

GROUP = "g-1"
MEMBER = "till-0a0a0a0a-0b0b-0c0c-0d0d-0e0e0e0e0e0e"
SHORT = 15
_LISTS = "List with"
"""The list of the group: of librdkafka's lists, the one of the facility GRPASSIGNMENT; the rest add nothing."""
_IS_GROUP = r"(?<!kafka-node:Consumer)[Gg]roup [\"'`]?$|coordinator for (?:group, )?$|consumergroup/$|\[Group(?:Id)? $|group: $|joining from group $|^\[$"
_IS_MEMBER = r"[Mm]ember [\"']?$|member id $"
_ENDS = (
    (r"[Gg]roup ([\"'`])$", lambda found: f"{GROUP}{found[1]} "),
    (r"\bconsumerg$|\bconsumergr$|\bconsumergo$", lambda found: ("roup "[5 - len("roup ") :] if found[0].endswith("g") else {"r": "oup ", "o": "up "}[found[0][-1]]) + f"{GROUP} is #1 (k-1:9092)"),
    (r"(?:; group:|for group|metadata for group)$", lambda found: f" {GROUP}"),
    (r"(?:rebalance|restabilize|Stabilized) group$", lambda found: f" {GROUP} generation 7"),
    (r"assigned for `$", lambda found: "a-b`: 0, 12"),
    (r"[Mm]ember ([\"'`])$", lambda found: f"{MEMBER}{found[1]}"),
)  # fmt: skip
OWN = {
    wordings.JAVA: (f"[Consumer clientId=c-1, groupId={GROUP}] ", f"[Worker clientId=c-1, groupId={GROUP}] ", ""),
    wordings.PYTHON: ("",),
    wordings.OLD_CONSUMER: (f"[{GROUP}_host-1488627000000-0a1b2c3d], ",),
    wordings.BROKER: ("[GroupCoordinator 4]: ", "[GroupCoordinator id=4 topic=__consumer_offsets partition=12] ", ""),
    **dict.fromkeys(wordings.LIBRARIES, ("",)),
    wordings.LIBRDKAFKA: ("[thrd:main]: ", "[thrd:sasl_ssl://k:9092/1]: sasl_ssl://k:9092/1: "),
}
"""The text that a client of that kind writes before its texts itself."""
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
        "INFO:kafka.coordinator:", "2021.02.03 04:05:06.007891 [ 56 ] {} <Debug> app: ",
        "2021-02-03T04:05:06.007+0000\tinfo\tkgo/group.go:1\t", "03.02.2021 04:05:06.007 INFO ", "Feb 03, 2021 4:05:06 AM a.B c INFO: ",
        "2021-02-03 04:05:06,007 INFO  org.apache.kafka.A [] - ", "[2021-02-03T04:05:06.007Z] [INFO] ", "2021-02-03_04:05:06.00789 INFO:",
    ]
)  # fmt: skip
NOTHING = st.sampled_from(["", "", "app: ", "[Debug] Client log: ", "[Host.Kafka] Lib: "])
"""Neither a time nor, mostly, a level."""
OF_LIBRDKAFKA = st.sampled_from(
    ["%7|1612325106.007|FACILITY|c-1#consumer-1| ", "1612325106.007 RDKAFKA-7-FACILITY: rdkafka#consumer-1: ",
     "2021-02-03 04:05:06.007: LOG-7-FACILITY: ", "FACILITY [rdkafka#consumer-1] ", "16.09+0100 OUT ", "7|2021-02-03 04:05:06.007|rdkafka#consumer-1|FACILITY| "]
)  # fmt: skip
WRAPPINGS = st.sampled_from(
    [
        "{}", "{}", "{} (org.apache.kafka.clients.consumer.internals.AbstractCoordinator:505)", "{}`", "{}**", "{}</code>",
        '{{"message":"{}","level":"INFO"}}', '{{"log":"{}\\n","stream":"stdout","time":"2021-02-03T04:05:06.007Z"}}',
        r'{{"log":"{{\"level\":\"INFO\",\"message\":\"{}\"}}\n","stream":"stdout"}}', 'time="2021-02-03T04:05:06Z" level=info msg="{}"',
    ]
)  # fmt: skip


@dataclass(frozen=True)
class Pasted:
    """A line, and what it must be reported as: one event of one of ``kinds`` and of ``group`` (None: it names none), or a
    line without an event where ``kinds`` has ``CONTEXT``. ``is_doubtful``: it has neither a time nor a level, and its
    wording may begin any sentence, or names nothing of what its client names."""

    line: str
    kinds: frozenset[str]
    group: str | None
    is_doubtful: bool


@dataclass(frozen=True)
class Said:
    """A text, of which client it is, and which wording it was made of."""

    source: str
    template: LogTemplate
    text: str
    own: str

    @property
    def kinds(self) -> frozenset[str]:
        """The kind that its table gives it, and where the line does not say whose it is, those of other tables."""
        others = BY_SOURCE if not self.own else (self.source,)
        found = {kind_of(source, self.text) for source in (self.source, *others)} - {None}
        return frozenset(kind for kind in found if kind)

    @property
    def group(self) -> str | None:
        return GROUP if GROUP in self.own + self.text else None


def kind_of(source: str, text: str) -> str | None:
    """Return what Python's own engine finds."""
    return next((each.kind for each in BY_SOURCE[source] if _fits(each, text)), None)


def _fits(each: LogTemplate, text: str) -> bool:
    return text.startswith(each.head) and (each.pattern is None or re.match(each.pattern, text) is not None)


def completed(template: str) -> str:
    """The wording with a group, a member or another word for each gap, and with what its last word needs."""
    first, *rest = template.split("{}")
    for part in rest:
        word = GROUP if re.search(_IS_GROUP, first) else MEMBER if re.search(_IS_MEMBER, first) else "x7"
        first += word + part
    for pattern, end in _ENDS:
        if found := re.search(pattern, first):
            return first + end(found)
    return first


@cache
def every_said() -> list[Said]:
    """Each wording, behind each beginning that its client gives it."""
    return [
        Said(source, each, completed(each.template), own)
        for source, table in BY_SOURCE.items()
        for each in table
        for own in OWN[source]
    ]


def pasted(said: Said, before: str, front: str, wrapping: str) -> Pasted:
    """``front``: the prefixes; ``before``: a time and a level, or nothing, or librdkafka's own."""
    facility = "GRPASSIGNMENT" if said.text.startswith(_LISTS) else "CGRP"
    full = before.replace("FACILITY", facility) + said.own + said.text
    depth = 2 if r"\"" in wrapping else 1 if wrapping.startswith(("{{", "time=")) else 0
    for _ in range(depth):
        full = full.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    line = front + wrapping.format(full)
    is_list = said.source == wordings.LIBRDKAFKA and said.text.startswith(_LISTS) and facility not in line
    kinds = frozenset({CONTEXT}) if is_list else said.kinds
    is_bare = not re.search(r"\d\d:\d\d:\d\d|\d{10}\.\d{3}|(?i:\binfo\b|\bdebug\b)|\{\"", before + wrapping)
    is_short = len(said.template.template.replace("{}", "")) < SHORT
    says_nothing = said.template.kind in SAY_WHAT and "{}" not in said.template.template
    return Pasted(line, kinds, said.group, is_bare and (is_short or says_nothing))


@st.composite
def lines(draw: st.DrawFn) -> Pasted:
    said = draw(st.sampled_from(every_said()))
    ways = [TIMES, NOTHING] + [OF_LIBRDKAFKA] * (said.source == wordings.LIBRDKAFKA)
    before = draw(st.one_of(ways))
    has_keys = said.source == wordings.KAFKAJS and '"' in said.text  # they are keys of its JSON
    wrapping = draw(WRAPPINGS.filter(lambda each: not (has_keys and each.startswith("time="))))
    return pasted(said, before, "".join(draw(st.lists(PREFIXES, max_size=3))), wrapping)
