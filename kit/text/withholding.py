"""Replaces text that looks like a secret by stars; the text around it stays.

For text from outside that goes into evidence: a deployer's output, errors of other libraries, tracebacks. Names are
never tested: a group may be called ``reset-password`` or ``password=x``.
"""

from __future__ import annotations

import re
from collections.abc import Collection

WITHHELD = "***"

_KEY = (
    r"(?:password|passwd|passphrase|passcode|pwd|secret|credentials?|token|(?:private|api|access)[._-]?key)"
    r"[\w.\-]{0,40}"
)
"""The end of a secret's key; any text may precede it."""
_IS = r"\\?[\"']?[ \t]{0,8}"
_QUOTED = r"""\\"(?P<{0}1>[^"\\]+)\\"|"(?P<{0}2>(?:\\.|[^"\\])+)"|'(?P<{0}3>(?:\\.|[^'\\])+)'"""
_SECRET = re.compile(
    "|".join(
        (
            # A private key, also without its first or last lines.
            r"\A(?P<cut>(?:(?!-----BEGIN).)*?)-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----",
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?P<key>.*?)(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)",
            r"://[^/\s:@]{0,200}:(?P<url>[^\s\"'<>]{1,500})@",
            rf"\bAuthorization{_IS}[:=](?P<header>[^\r\n]+)",
            rf"\bjaas[._-]?config{_IS}[:=](?P<jaas>[^\r\n]+)",
            r"\b(?:Bearer|Basic|Negotiate)[ \t]{1,8}(?P<bearer>[A-Za-z0-9._~+/=\-]{6,})",
            rf"<[\w.\-]{{0,40}}{_KEY}>(?P<xml>[^<]+)<",
            rf"{_KEY}{_IS}(?:=>?|:=?)[ \t]{{0,8}}(?:{_QUOTED.format('quoted')})",
            rf"{_KEY}{_IS}=>?[ \t]{{0,8}}(?P<set>\S+)",
            rf"{_KEY}{_IS}:[ \t]{{0,8}}(?P<said>[^\r\n,}}\]]+)",
            rf"(?<![\w-])--?[\w.\-]{{0,40}}{_KEY}[ \t]{{1,8}}(?:{_QUOTED.format('option')}|(?P<option>(?!--)\S+))",
        )
    ),
    re.I | re.S,
)
_UNQUOTED = ("set", "said", "option")
_BEFORE_IT = ": \t'\"\\"
_AT_ITS_END = ",;:.)]}'\""


def without_secrets(text: str, names: Collection[str] = ()) -> str:
    """The text with stars in place of secrets.

    ``names`` of groups and items stay even if they look like a secret: ``password=x`` may be a group, and
    ``reset-password: …`` a sentence about a group.
    """
    return _SECRET.sub(lambda match: _withheld(match, names), text)


def _withheld(match: re.Match[str], names: Collection[str]) -> str:
    group = match.lastgroup
    assert group is not None  # Each pattern of a secret has one named group.
    start, end = (place - match.start() for place in match.span(group))
    whole = match.group()
    key = len(whole[:start].rstrip(_BEFORE_IT))
    is_told = ":" in whole[key:start] and group != "url"
    if is_told and _is_in_a_name(match.string, match.start(), match.start() + key, names):
        return whole[:start] + without_secrets(whole[start:], names)
    if group in _UNQUOTED:
        end = start + max(len(whole[start:end].rstrip(_AT_ITS_END)), 1)
    if _is_in_a_name(match.string, match.start(), match.start() + end, names):
        return whole
    return whole[:start] + WITHHELD + whole[end:]


def _is_in_a_name(text: str, start: int, end: int, names: Collection[str]) -> bool:
    """Whether the key and its value are part of a name in the text."""
    for name in names:
        at = text.find(name, max(0, end - len(name)), start + len(name)) if name else -1
        if 0 <= at <= start and end <= at + len(name):
            return True
    return False
