"""Decide which dynamic settings of Kafka are secret: both stores of a cluster's metadata hold passwords among them.

Kafka's own ``RecordRedactor`` redacts the value of every setting whose type is PASSWORD or that it doesn't know; so
does this.
"""

from __future__ import annotations

import re
from importlib.resources import files

_OF_A_LISTENER = re.compile(r"listener\.name\.[^.]+\.(?:[^.]+\.(?=sasl\.))?")
_SHOWN = frozenset(files(__package__).joinpath("shown_settings.txt").read_text(encoding="utf-8").split())
"""The settings that brokers of 3.9.1 and 4.1.1 describe as dynamic and not sensitive, and their three limits for
replication.
"""


def is_secret_setting(key: str) -> bool:
    """Return whether a broker's setting is redacted: unless Kafka knows it as dynamic and no password."""
    return _OF_A_LISTENER.sub("", key, count=1) not in _SHOWN
