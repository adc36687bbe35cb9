"""Java's ``.properties``: a server's settings, as Kafka reads and writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping

_LINE = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    r"""Key → value; of a key that occurs twice the last, as in Java.

    >>> parse_properties("# a comment\nlisteners = A://:1,\\\n   B://:2\nnode.id:7\nempty")
    {'listeners': 'A://:1,B://:2', 'node.id': '7', 'empty': ''}
    >>> parse_properties(r"a=\ud83d\ude00\ud800")
    {'a': '😀\ufffd'}
    """
    pairs = [match.groups() for line in _logical_lines(text) if (match := _LINE.match(line))]
    return {_unescaped(key): _unescaped(value) for key, value in pairs}


def is_malformed(text: str) -> bool:
    r"""Return whether Java refuses the text, and so Kafka the file: ``\u`` without four hexadecimal digits, not in a
    comment.

    >>> is_malformed(r"log.dirs=C:\users"), is_malformed("# \\users"), is_malformed(r"log.dirs=C:\\users")
    (True, False, False)
    """
    return any(match[1] == "u" for line in _logical_lines(text) for match in _ESCAPE.finditer(line))


def render_properties(settings: Mapping[str, str]) -> str:
    r"""One line per setting, in their order; what would end a line or be read as something else is escaped.

    Java reads such a file as Latin-1, so what is not ASCII is escaped, too.

    >>> render_properties({"a": "C:\\data", "b": " x\ny", "c": "é😀"})
    'a=C:\\\\data\nb=\\ x\\ny\nc=\\u00e9\\ud83d\\ude00\n'
    """
    return "".join(f"{_escaped(key, ' =:#!')}={_escaped(value, '')}\n" for key, value in settings.items())


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    goes_on = False
    for natural in re.split(r"\r\n|\n|\r", text):
        line = natural.lstrip(" \t\f")
        if not goes_on and (not line or line[0] in "#!"):
            continue
        body = lines.pop() + line if goes_on else line
        n_slashes = len(body) - len(body.rstrip("\\"))
        goes_on = n_slashes % 2 == 1
        lines.append(body[:-1] if goes_on else body)
    return lines


def _unescaped(text: str) -> str:
    """The text; halves of a character, which Java escapes one by one, are joined, and replaced where one is alone."""
    meant = _ESCAPE.sub(lambda match: _meant(match.group(1)), text)
    return meant.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _meant(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) == 5 else _PLAIN.get(escape, escape)


def _escaped(text: str, others: str) -> str:
    names = {each: f"\\{letter}" for letter, each in _PLAIN.items()} | {"\\": "\\\\"}
    escaped = "".join(names.get(each) or (f"\\{each}" if each in others else _in_ascii(each)) for each in text)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _in_ascii(character: str) -> str:
    if " " <= character <= "~":
        return character
    halves = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{halves[each : each + 4]}" for each in range(0, len(halves), 4))
