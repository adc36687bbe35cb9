"""Find the settings that a Java client joined its group with, and the cluster that it knew: its requests and
metadata, as printed.
"""

from __future__ import annotations

import re

from kit.rebalances.analyze.consumer_instances import RebalanceAttempt

_TIMEOUT = re.compile(r"session_?[tT]imeout(?:Ms)?=(\d+)")
_PROTOCOLS = re.compile(r"protocol_name='?([^,'}\]]+)|JoinGroupRequestProtocol\(name='([^']+)'")
_NODES = re.compile(r"Node\((-?\d+), ([^,)]+), (\d+)\)|([\w.-]+:\d+) \(id: (\d+) rack")


def session_timeout_ms(attempt: RebalanceAttempt) -> int | None:
    matches = [_TIMEOUT.search(event["text"]) for event in attempt.all_of("join_requested")]
    return next((int(each[1]) for each in matches if each), None)


def protocols(attempt: RebalanceAttempt) -> tuple[str, ...] | None:
    """The assignors it offers, in its order; None: the log doesn't report."""
    names = [old or new for event in attempt.all_of("join_requested") for old, new in _PROTOCOLS.findall(event["text"])]
    return tuple(dict.fromkeys(names)) or None


def brokers(attempt: RebalanceAttempt) -> tuple[str, ...] | None:
    """The brokers of the newest metadata; None: the log has none."""
    for event in reversed(attempt.all_of("metadata")):
        nodes = event["text"].partition("nodes = [")[2].partition("partitions = ")[0]
        addresses = {(int(a or e), f"{b}:{c}" if b else d) for a, b, c, d, e in _NODES.findall(nodes)}
        known = tuple(f"{number} {address}" for number, address in sorted(addresses) if number >= 0)
        if known:
            return known
    return None
