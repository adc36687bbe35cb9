"""Values of settings, read as ``ConfigDef`` of Kafka 3.9.1 reads them."""

from __future__ import annotations

import re
from functools import cache
from typing import TypeAlias

from kit.text.kafka_settings import Setting, settings

Value: TypeAlias = bool | int | float | str | list[str] | None

SPACE = r"[ \t\n\v\f\r]*"
_WHITE = "".join(map(chr, range(33)))
_WHOLE = re.compile(r"[+-]?\d{1,1000}")
_REAL = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_BITS = {"SHORT": 16, "INT": 32, "LONG": 64}
_LEAST = re.compile(r"\[(-?[0-9.]+),\.\.\.\]")
_BETWEEN = re.compile(r"\[(-?[0-9.]+),\.\.\.,(-?[0-9.]+)\]")
_WORDS = {"BOOLEAN": "true or false", "DOUBLE": "a number", "SHORT": "a whole number of 16 bits"}
_WORDS |= {"INT": "a whole number of 32 bits", "LONG": "a whole number of 64 bits", "CLASS": "a class"}


class NotAllowed(ValueError):
    """Kafka does not take this value; the message completes "SETTING is …"."""


def trimmed(text: str) -> str:
    """Trim a text like Java's ``String.trim``."""
    return text.strip(_WHITE)


def split(text: str, pattern: str = ",") -> list[str]:
    """Split a text like Java's ``String.split``: empty texts at the end are dropped.

    >>> split("a,,b,,"), split(","), split("")
    (['a', '', 'b'], [], [''])
    """
    parts = re.split(pattern, text)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts if parts != [""] or not re.search(pattern, text) else []


def csv(text: str | None) -> list[str]:
    """Parts of a list that Kafka keeps as one text, without the empty ones."""
    return [each for each in split(text or "", f"{SPACE},{SPACE}") if each]


def whole(text: str, bits: int = 32) -> int | None:
    """A whole number as Java parses it; None if it is none, or has too many bits.

    >>> whole("+7"), whole("2147483648"), whole("7 ")
    (7, None, None)
    """
    limit = 1 << (bits - 1)
    number = int(text) if _WHOLE.fullmatch(text) else limit
    return number if -limit <= number < limit else None


def value_of(setting: Setting, text: str | None) -> Value:
    """The value that Kafka reads from a text, or from the default.

    Raises:
        NotAllowed: the type or the validator of the setting refuses it.
    """
    value = None if text is None else _parsed(setting.type, trimmed(text))
    _hold(setting, value)
    return value


def _parsed(kind: str, text: str) -> Value:
    number = whole(text, _BITS[kind]) if kind in _BITS else None
    if number is not None:
        return number
    if kind == "BOOLEAN" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "DOUBLE" and _REAL.fullmatch(text):
        return float(text.rstrip("fFdD") if text[-1:] in "fFdD" else text)
    if kind == "LIST":
        return re.split(f"{SPACE},{SPACE}", text) if text else []
    if kind in ("STRING", "PASSWORD") or (kind == "CLASS" and text):
        return text
    raise NotAllowed(f"{text!r}, and must be {_WORDS[kind]}")


def _hold(setting: Setting, value: Value) -> None:
    """Raise NotAllowed if the setting's validator refuses the value."""
    allowed, wrong = setting.allowed, NotAllowed(f"{value!r}, and must be {setting.allowed.lower()}")
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        if not (_is_within(allowed, value) or (allowed.endswith(" or -1") and value == -1)):
            raise wrong
    elif allowed == "non-empty string":
        if not value:
            raise wrong
    elif allowed.startswith("(case insensitive)"):
        if str(value).upper() not in _listed(allowed):
            raise wrong
    elif allowed.startswith("[0.8.0"):
        if release_of(str(value)) is None:
            raise NotAllowed(f"{value!r}, and must be a release of Kafka")
    elif allowed.startswith("[") and not set([value] if isinstance(value, str) else value) <= _listed(allowed):
        raise wrong


def _listed(allowed: str) -> set[str]:
    return set(allowed[allowed.index("[") + 1 : -1].split(", "))


def _is_within(allowed: str, value: float) -> bool:
    least, between = _LEAST.match(allowed), _BETWEEN.match(allowed)
    if between is not None:
        return not (value < float(between[1]) or value > float(between[2]))
    return least is None or not value < float(least[1])


@cache
def _releases() -> list[str]:
    return settings()["inter.broker.protocol.version"].allowed[1:-1].split(", ")


@cache
def release_of(text: str) -> int | None:
    """The rank of an ``inter.broker.protocol.version``, which two of them are compared by; None: Kafka knows none.

    >>> release_of("3.9") == release_of("3.9.1") == release_of("3.9-IV0"), release_of("3.99")
    (True, None)
    """
    parts = split(text, r"\.")
    n_parts = 3 if text.startswith("0.") else 2
    key = text if len(parts) <= n_parts else ".".join(parts[:n_parts])
    ranks = [rank for rank, each in enumerate(_releases()) if key in (each, each.partition("-")[0])]
    return ranks[-1] if ranks else None
