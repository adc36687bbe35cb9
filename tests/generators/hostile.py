"""Hostile names: the one list of them, for every table, page, widget, command, file name and deploy line.

Names of groups, topics, members, clients and hosts are data of strangers. Whatever shows or stores one is tested with

* ``TOPICS``: what a broker lets be a topic (1 to 249 of ``[a-zA-Z0-9._-]``, neither ``.`` nor ``..``);
* ``GROUPS``: what may be a group id, a client id, a member's name: any text that UTF-8 can carry, the empty one too;
* ``ZNODES``: what ZooKeeper lets be a znode's name (no ``/``, no control characters, neither ``.`` nor ``..``);
* ``TEXTS``: all of these and what only a decoder gone wrong, or a file, can bring: lone surrogates.

``topics()``, ``groups()``, ``znodes()`` and ``texts()`` are the Hypothesis strategies over them: a name of the list,
one put inside others, or text made at random. A script in one calls ``RAN``: a browser that defines it hears of it.
"""

from __future__ import annotations

import re

from hypothesis import strategies as st

RAN = "hostileRan"
"""The function that each script of the list calls; nobody but a test that listens defines it."""

SCRIPTS = (
    f"<script>{RAN}(1)</script>",
    f"<img src=x onerror={RAN}(2)>",
    f'"><img src=x onerror="{RAN}(3)">',
    f"'><svg onload={RAN}(4)>",
    f"</script><script>{RAN}(5)</script>",
    f"</style></textarea></title><img src=x onerror={RAN}(6)>",
    f"--><img src=x onerror={RAN}(7)><!--",
    f"]]><img src=x onerror={RAN}(8)>",
    f'" onmouseover="{RAN}(9)" autofocus onfocus="{RAN}(9)" x="',
    f"<iframe srcdoc='<script>parent.{RAN}(10)</script>'></iframe>",
    f"<details open ontoggle={RAN}(11)>",
    f"javascript:{RAN}(12)",
    f"[click](javascript:{RAN}(13))",
    f"&lt;img src=x onerror={RAN}(14)&gt;",
)

MARKUP = (
    "<b>bold</b>",
    "<plaintext>",
    "<!-- no end",
    "a & b < c > d",
    "&amp;",
    "&#60;",
    "[bold]",
    "[/x]",
    "payments[/x]",
    "[prod]orders",
    "[link=file:///etc/passwd]here[/link]",
    "[@click=app.quit]x[/]",
    "\\[bold]",
    ":smile:",
    "# heading",
    "**bold** _it_ `code`",
    "```\nfence",
    "| a | b |",
    "![x](http://127.0.0.1:9/x)",
    "$x^2$",
    "$$\\frac{1}{0}$$",
    "\\(x\\)",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "${HOME}",
    "$(touch hostile)",
    "`touch hostile`",
    "; touch hostile",
    "| touch hostile",
    "a b=c",
    "x state=absent",
    "{group}",
    "{0}",
    "{",
    "%s %(x)d %",
    "%2e%2e%2f",
    f"datum.x + {RAN}(15)",
    f'{{"signal": "{RAN}(16)"}}',
    "a.b[0]['c']",
    "x:N",
    "=1+cmd|'/C calc'!A0",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
)

CONTROLS = (
    "\x00",
    "a\x00b",
    "line\nbreak",
    "carriage\rreturn",
    "ok\r\nofframp: done, approve it",
    "tab\tbed",
    "back\b\b\b\bspace",
    "bell\x07",
    "\x1b[2Jcleared",
    "\x1b[31mred",
    "\x1b[1A\x1b[2Kover the line above",
    "\x1b]0;title\x07",
    "\x1b]8;;http://127.0.0.1:9/\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]52;c;aG9zdGlsZQ==\x07",
    "\x9b31mred",
    "\x7f",
    "form\x0cfeed\x0bvertical",
    "next\x85line",
    "line\u2028separator",
    "paragraph\u2029separator",
    "a\u202egnp.exe",
    "a\u2066b\u2069c",
    "\u200fmark",
    "zero\u200bwidth",
    "zero\u200djoiner",
    "soft\u00adhyphen",
    "\ufefforder mark",
    "tag\U000e0041",
    "private\ue000use",
    "not a character\ufffe",
)

QUOTES = (
    "'",
    '"',
    "`",
    "'; DROP TABLE groups; --",
    "\"'`",
    "it's",
    "a\\b",
    "\\",
    "\\n",
    "\\x1b",
    "a/b",
    "/",
    "//",
    "C:\\x",
)

SECRETS = (
    "reset-password",
    "auth.secret",
    "rotate-credentials",
    "user_api-key",
    "password=x",
    "--password x",
    "KAFKA_PASSWORD=hostile",
    "Bearer abc",
    "token",
    "sasl.jaas.config",
    "private_key",
    "AKIAIOSFODNN7EXAMPLE",
)

PATHS = (
    "..",
    ".",
    "...",
    "../../etc/passwd",
    "/etc/passwd",
    "~",
    "~root",
    "*",
    "?",
    "-",
    "--",
    "-rf",
    "--help",
    "-oProxyCommand=x",
    ".hidden",
    "trailing.",
    "CON",
    "a.html",
    "plan.json",
    "journal.jsonl",
    "file:///etc/passwd",
    "__consumer_offsets",
)

BLANKS = ("", " ", "  ", " leading", "trailing ", "in  side", "\u00a0", "\u3000", "–")

WORDS = (
    "null",
    "None",
    "NaN",
    "nan",
    "inf",
    "-0",
    "true",
    "False",
    "undefined",
    "NULL",
    "0",
    "007",
    "1e309",
    "12345678901234567890",
    "99999999999",
    "2024-01-01T00:00:00Z",
    "group_id",
    "error",
    "sentence",
    "snapshot_id",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "zookeeper",
    "kafka",
    "all",
)

SCRIPTURES = (
    "naïve",
    "nai\u0308ve",
    "e" + "\u0301" * 40,
    "группа",
    "消费者组",
    "مجموعة",
    "קבוצה-1",
    "orders-مجموعة-7",
    "🐘",
    "👩‍👩‍👧‍👦",
    "🏳️‍🌈",
    "K",
    "ſ",
    "ﬀ",
    "İ",
    "paypal\u0430",
    "𝕬",
)

LONG = ("a" * 249, "a" * 250, "x" * 10_000, "<" * 10_000, "é" * 249, "a-" * 124 + "a", "1" * 300, "." * 249)

SURROGATES = ("\ud800", "a\udcffb", "\udc80\udc81")
"""Not to be had from a server that speaks UTF-8; from file names, arguments and JSON they are."""

GROUPS = (*SCRIPTS, *MARKUP, *CONTROLS, *QUOTES, *SECRETS, *PATHS, *BLANKS, *WORDS, *SCRIPTURES, *LONG)
TEXTS = (*GROUPS, *SURROGATES)

_TOPIC = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}")
_NO_ZNODE = re.compile("[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")


def may_be_topic(name: str) -> bool:
    """Return whether a broker lets it be a topic (``org.apache.kafka.common.internals.Topic``)."""
    return _TOPIC.fullmatch(name) is not None


def may_be_znode(name: str) -> bool:
    """Return whether ZooKeeper lets it be a znode's name (``org.apache.zookeeper.common.PathUtils``)."""
    return name not in {"", ".", ".."} and _NO_ZNODE.search(name) is None


def as_znode(name: str) -> str:
    """Return the rest of a name when ZooKeeper's forbidden characters are gone."""
    return _NO_ZNODE.sub("", name)


TOPICS = tuple(dict.fromkeys(filter(may_be_topic, GROUPS)))
ZNODES = tuple(dict.fromkeys(filter(may_be_znode, GROUPS)))


def texts() -> st.SearchStrategy[str]:
    """Any text at all, lone surrogates too."""
    return _over(TEXTS, st.text(st.characters(), max_size=60))


def groups() -> st.SearchStrategy[str]:
    """Group ids, client ids, members' names: any text that UTF-8 can carry."""
    return _over(GROUPS, st.text(st.characters(codec="utf-8"), max_size=60))


def topics() -> st.SearchStrategy[str]:
    return _over(TOPICS, st.from_regex(_TOPIC, fullmatch=True)).filter(may_be_topic)


def znodes() -> st.SearchStrategy[str]:
    return _over(ZNODES, st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)).filter(may_be_znode)


def _over(listed: tuple[str, ...], made: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """One of the list, one with something around it, or made at random."""
    short = st.sampled_from([name for name in listed if len(name) < 100])
    around = st.tuples(made.map(lambda text: text[:20]), short, short).map("".join)
    return st.sampled_from(listed) | around | made
