"""Define the settings that a topic may have in Kafka 3.9, and their values (``TopicConfig``, ``LogConfig``)."""

from __future__ import annotations

import re
from collections.abc import Mapping

_LONG = (1 << 63) - 1
_INT = (1 << 31) - 1
_NUMBERS: Mapping[str, tuple[float, float]] = {
    "delete.retention.ms": (0, _LONG),
    "file.delete.delay.ms": (0, _LONG),
    "flush.messages": (1, _LONG),
    "flush.ms": (0, _LONG),
    "index.interval.bytes": (0, _INT),
    "local.retention.bytes": (-2, _LONG),
    "local.retention.ms": (-2, _LONG),
    "max.compaction.lag.ms": (1, _LONG),
    "max.message.bytes": (0, _INT),
    "message.timestamp.after.max.ms": (0, _LONG),
    "message.timestamp.before.max.ms": (0, _LONG),
    "message.timestamp.difference.max.ms": (0, _LONG),
    "min.compaction.lag.ms": (0, _LONG),
    "min.insync.replicas": (1, _INT),
    "retention.bytes": (-(1 << 63), _LONG),
    "retention.ms": (-1, _LONG),
    "segment.bytes": (14, _INT),
    "segment.index.bytes": (4, _INT),
    "segment.jitter.ms": (0, _LONG),
    "segment.ms": (1, _LONG),
    "compression.gzip.level": (-1, 9),
    "compression.lz4.level": (1, 17),
    "compression.zstd.level": (-131072, 22),
}
_WORDS = {
    "cleanup.policy": "compact|delete|compact,delete|delete,compact",
    "compression.type": "uncompressed|zstd|lz4|snappy|gzip|producer",
    "message.timestamp.type": "CreateTime|LogAppendTime",
    **dict.fromkeys(
        (
            "message.downconversion.enable",
            "preallocate",
            "remote.log.copy.disable",
            "remote.log.delete.on.disable",
            "remote.storage.enable",
            "unclean.leader.election.enable",
        ),
        "(?i:true|false)",
    ),
    "min.cleanable.dirty.ratio": r"0(\.[0-9]+)?|1(\.0+)?",
    "message.format.version": r"[0-9]+(\.[0-9]+){1,3}(-IV[0-9]+)?",
    "leader.replication.throttled.replicas": r"\*|none|([0-9]+:[0-9]+(,[0-9]+:[0-9]+)*)?",
    "follower.replication.throttled.replicas": r"\*|none|([0-9]+:[0-9]+(,[0-9]+:[0-9]+)*)?",
}
KNOWN = frozenset({*_NUMBERS, *_WORDS})


def wrong(key: str, value: str | None) -> str | None:
    """Return the problem of a topic's setting, as the end of a sentence; None: there is none, or its value is not
    known.

    >>> wrong("retention.ms", "-2"), wrong("retention.ms", "-1"), wrong("retention", "1")
    ('Kafka 3.9 takes -1 to 9223372036854775807', None, 'Kafka 3.9 knows no such setting')
    """
    if key not in KNOWN:
        return "Kafka 3.9 knows no such setting"
    if value is None:
        return None
    if key in _WORDS:
        is_right = re.fullmatch(_WORDS[key], re.sub(r"\s*,\s*", ",", value.strip())) is not None
        return None if is_right else "Kafka 3.9 refuses this value"
    least, most = _NUMBERS[key]
    is_number = re.fullmatch(r"[+-]?[0-9]{1,19}", value.strip()) is not None
    return None if is_number and least <= int(value) <= most else f"Kafka 3.9 takes {least} to {most}"
