"""JSON values that can't be changed, have one spelling and hold no secret: what plans and evidence are made of."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias, Union

from kit.errors import InputError

Json: TypeAlias = Union[bool, int, float, str, "tuple[Json, ...]", "list[Json]", Mapping[str, "Json"], None]
"""What JSON can hold; a list becomes a tuple in here, so that nobody changes it after it was approved."""

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False, default=dict)
_SECRET_KEY = re.compile(
    r"(?:^|[._\- ])(?:password|passwd|passphrase|secret|credentials?|(?:private|api|secret|access)[._-]?key"
    r"|(?:access|auth|bearer)[._-]?token|jaas[._-]?config)$",
    re.I,
)
"""Names that end so, because groups and topics are keys too, and one of them is called password-resets."""
_SECRET_TEXT = re.compile(
    r"://[^/\s:@]+:[^/\s@]+@|-----BEGIN [A-Z ]*PRIVATE KEY|\b(?:password|passwd|secret)\s*[=:]\s*\S", re.I
)


def frozen(value: object, where: str) -> Json:
    """The same value, unchangeable.

    Raises:
        InputError: something in it is no JSON value; ``where`` and its place are named.
    """
    if isinstance(value, float) and value - value != 0:
        raise InputError(f"{where} is {value}, which JSON can't hold; unknown is null")
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _encodable(value, where)
    if isinstance(value, Mapping):
        return MappingProxyType({_key(key, where): frozen(item, f"{where}/{key}") for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(frozen(item, f"{where}[{index}]") for index, item in enumerate(value))
    raise InputError(f"{where} is a {type(value).__name__}, which JSON can't hold")


def frozen_mapping(value: Mapping[str, Json], where: str) -> Mapping[str, Json]:
    """A mapping :func:`frozen`, and refused if it holds a secret.

    Raises:
        InputError: it holds a secret or something that is no JSON value.
    """
    refuse_secrets(value, where)
    return MappingProxyType({_key(key, where): frozen(item, f"{where}/{key}") for key, item in value.items()})


def canonical(value: Json) -> str:
    """The one spelling of a value: ASCII, sorted keys, no blanks."""
    return _CANONICAL.encode(value)


def readable(value: Json) -> str:
    """The spelling for files that people read."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=dict) + "\n"


def digest_of(value: Json) -> str:
    """SHA-256 of the canonical spelling, in hexadecimal: the same in every process and on every machine."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def parse_json(text: str) -> object:
    """Parsed JSON in which no key stands twice: the second would hide what a reader saw at the first.

    Raises:
        ValueError: it is no such JSON.
    """
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply to be read") from None


def secrets_in(value: object, where: str) -> Iterator[str]:
    """The places in a value that look like a secret: text under a key of such a name, or text that shows it itself.

    A reference (``{"env": …}`` or ``{"file": …}``, as in ``offramp.toml``) is none.
    """
    if value is None or isinstance(value, int | float):
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            place = f"{where}/{key}"
            if isinstance(item, str) and item and _SECRET_KEY.search(str(key)):
                yield place
            else:
                yield from secrets_in(item, place)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from secrets_in(item, f"{where}[{index}]")
    elif isinstance(value, str) and _SECRET_TEXT.search(value):
        yield where


def refuse_secrets(value: object, where: str) -> None:
    """Raises:
    InputError: something in it looks like a secret; the place is named, the secret is not.
    """
    for place in secrets_in(value, where):
        raise InputError(f"{place} looks like a secret: plans and evidence hold none; name where it is instead")


def _key(key: object, where: str) -> str:
    if not isinstance(key, str):
        raise InputError(f"{where} has the key {key!r}; JSON's keys are text")
    return _encodable(key, where)


def _encodable(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{where} holds text that is no Unicode: {text!r}") from error
    return text


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
