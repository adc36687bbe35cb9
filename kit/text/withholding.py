"""Replaces text that resembles a secret by stars; the text around it stays.

For text from outside that goes into evidence: a deployer's output, errors of other libraries, tracebacks. Names are
never tested: a group may be called ``reset-password`` or ``password=x``.
"""

from __future__ import annotations

import re
from collections.abc import Collection

REDACTED = "***"

_KEY = (
    r"(?:(?:password|passwd|passphrase|passcode|pwd|secret|credentials?|token|(?:private|api|access)[._-]?key)"
    r"[\w.\-]{0,40}|(?:[._-]|store|key)pass(?![\w.\-]))"
)
"""The end of a secret's key; any text may precede it. ``pass`` alone is a word: ``vault_pass``, keytool's
``-storepass``, not ``pass: 3``."""
_IS = r"\\?[\"']?[ \t]{0,8}"
_QUOTED = r"""\\"(?P<{0}1>[^"\\]+)\\"|"(?P<{0}2>(?:\\.|[^"\\])+)"|'(?P<{0}3>(?:\\.|[^'\\])+)'"""
_APART = r"(?:[ \t]{1,8}|\\?[\"'],[ \t]{0,8})"
"""Between two arguments: in a command line, or in a list of them that Python or JSON shows."""
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
            rf"(?<![\w-])--?[\w.\-]{{0,40}}{_KEY}{_APART}(?:{_QUOTED.format('option')}|(?P<option>(?!--)\S+))",
            rf"\bsshpass(?:{_APART}[\"']?-[vP][^\s,]{{0,200}}){{0,4}}{_APART}[\"']?-p(?:{_APART})?"
            rf"(?:{_QUOTED.format('sshpass')}|(?P<sshpass>\S+))",
            r"\bSSHPASS=(?P<variable>\S+)",
        )
    ),
    re.I | re.S,
)
_CURL = re.compile(r"\bcurl\b(?:(?![ \t](?:\|\|?|&&?)[ \t]|;[ \t])(?:\\\r?\n|[^\r\n]))*")
"""A command of curl, up to the next one; ``-u`` and ``--user`` of others name no password."""
_LOGIN = re.compile(
    rf"(?<![\w-])(?:--(?:proxy-)?user|-[a-zA-Z]{{0,8}}?[uU])(?:{_APART}|=)?"
    r"(?:\\\"[^\":]{0,200}:(?P<login0>[^\"\\]+)|\"[^\":]{0,200}:(?P<login1>(?:\\.|[^\"\\])+)|'[^':]{0,200}:(?P<login2>(?:\\.|[^'\\])+)|[^\s\"':]{0,200}:(?P<login>\S+))"
)
_UNQUOTED = ("set", "said", "option", "sshpass", "variable", "login")
_BEFORE_IT = ": \t'\"\\"
_AT_ITS_END = ",;:.)]}'\""


def without_secrets(text: str, names: Collection[str] = ()) -> str:
    """The text with stars in place of secrets.

    ``names`` of groups and items stay even if they resemble a secret: ``password=x`` may be a group, and
    ``reset-password: …`` a sentence about a group.
    """
    text = _CURL.sub(lambda command: _LOGIN.sub(lambda match: _withheld(match, names), command[0]), text)
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
    return whole[:start] + REDACTED + whole[end:]


def _is_in_a_name(text: str, start: int, end: int, names: Collection[str]) -> bool:
    """Return whether the key and its value are part of a name in the text."""
    for name in names:
        at = text.find(name, max(0, end - len(name)), start + len(name)) if name else -1
        if 0 <= at <= start and end <= at + len(name):
            return True
    return False
