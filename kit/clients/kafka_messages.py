"""Requests of which the pinned kafka-python knows only the number: their classes are made from JSON files."""

from __future__ import annotations

from types import new_class
from typing import Any

from kafka.protocol.api_message import ApiMessage


def messages_of(name: str, package: str) -> tuple[Any, Any]:
    """Make the classes of a request and of its response, from the two JSON files of ``package``.

    The caller keeps both: kafka-python finds the class of a response by a weak reference.
    """
    request, response = (
        new_class(f"{name}{kind}", (ApiMessage,), {"load_json": package}) for kind in ("Request", "Response")
    )
    return request, response
