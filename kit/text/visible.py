"""Names from outside, escaped for display. All output uses this module.

Names of groups, topics, members, clients and hosts may hold anything. Characters that are invisible, move the cursor,
change the direction of reading or end a line are spelled out (``\\x1b``, ``\\u202e``); all others stay. Terminals use
:func:`visible`, HTML uses :func:`html_text`, cells of tables :func:`cell`, names of files :func:`file_name`, commands
to copy :func:`argument`. Data for programs (JSON, CSV, Parquet) stays exact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from html import escape
from shlex import quote

LONGEST = 2_000
"""Characters of a text that a cell shows: a topic's name has 249 at most, a group id may have 32,767."""
_TAIL = 40
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
)
"""Letters and marks that Unicode counts as printable although they are invisible."""


def visible(text: str) -> str:
    """The text as one line with every character visible; a text without hidden characters stays the same."""
    if text.isprintable() and _BLANK.isdisjoint(text):
        return text
    return "".join(char if char.isprintable() and char not in _BLANK else _spelled(char) for char in text)


def html_text(text: str) -> str:
    """Return :func:`visible`, escaped for HTML; also for the value of a quoted attribute."""
    return escape(visible(text))


def html_source(page: str) -> str:
    """A whole page, escaped as the value of an attribute (``srcdoc``); no character is changed."""
    return escape(page)


def file_name(text: str) -> str:
    """A few plain characters of a name for a file's name. They are a hint for people; no program parses them."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-") or "x"


def argument(name: str) -> str:
    """A name as the last argument of a command that a person copies into a shell: nothing in it is the shell's."""
    return f"{'-- ' if name.startswith('-') else ''}{quote(name)}"


def toml_key(name: str) -> str:
    """A name as a part of a section's name in ``offramp.toml``: in quotes where TOML wants them.

    >>> toml_key("production"), toml_key("eu.production")
    ('production', '"eu.production"')
    """
    if re.fullmatch("[A-Za-z0-9_-]+", name):
        return name
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")


def cell(value: object) -> str:
    """A value for a table: a dash for unknown, yes or no, lists by element, spaces at the ends spelled out."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return shortened(_edged(visible(value)))
    if isinstance(value, Mapping):
        return ", ".join(f"{visible(str(name))}={_element(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_element, value))
    is_plain = isinstance(value, int | float | date | datetime | timedelta)
    return str(value) if is_plain else shortened(visible(str(value)))


def shortened(text: str, longest: int = LONGEST) -> str:
    """A text too long for a cell, or for ``longest`` characters: its beginning, its end and its length."""
    if len(text) <= longest:
        return text
    return f"{text[: longest - _TAIL]}…{text[-_TAIL:]} ({len(text):,} characters)"


def _element(value: object) -> str:
    """One element of a list; in quotes if it could be read as two elements, or as none."""
    text = cell(value)
    return f'"{text}"' if isinstance(value, str) and (", " in text or not text) else text


def _edged(text: str) -> str:
    inner = text.strip(" ")
    if len(inner) == len(text):
        return text
    start = len(text) - len(text.lstrip(" "))
    return "\\x20" * start + inner + "\\x20" * (len(text) - start - len(inner))


def _spelled(char: str) -> str:
    code = ord(char)
    if char == "\n":
        return "\\n"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
