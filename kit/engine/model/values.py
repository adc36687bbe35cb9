"""JSON values that can't be changed and have one spelling: what plans and evidence are made of.

Their keys and texts are names of groups, topics and members, which may be anything at all and are never tested as
secrets. What strangers wrote goes through ``kit.text.withholding`` where it comes in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeAlias, Union

from kit.errors import InputError

Json: TypeAlias = Union[bool, int, float, str, "tuple[Json, ...]", "list[Json]", Mapping[str, "Json"], None]
"""The values that JSON can hold; a list becomes a tuple in here, so that it can't change after it was approved."""

_DEEPEST = 100
"""Levels of JSON that are read. Plans and journals have about ten; Python's own limit differs between its functions."""
_TOO_DEEP = "the JSON is nested too deeply to be read"
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False, default=dict)


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
    """A mapping :func:`frozen`.

    Raises:
        InputError: it holds something that is no JSON value.
    """
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
    """Parsed JSON in which no key occurs twice: the second would hide what a reader saw at the first.

    Raises:
        ValueError: it is no such JSON, or it has more than 100 levels.
    """
    try:
        value: object = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if _is_too_deep(value):
        raise ValueError(_TOO_DEEP)
    return value


def _is_too_deep(value: object) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return False
    return True


def _children(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


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
        raise ValueError("a key occurs twice")
    return dict(pairs)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
