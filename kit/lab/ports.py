"""Free TCP ports on 127.0.0.1."""

from __future__ import annotations

import functools
import itertools
import random
import socket
from collections.abc import Iterator

from kit.errors import LabError

# Below every usual range of outgoing connections, which could take a port between its choice and its use.
LOWEST, HIGHEST = 20_000, 32_000
BLOCK = 200


def free_ports(count: int) -> list[int]:
    """``count`` ports that nothing listens on; raises LabError when none can be found.

    A port is often used long after its choice, and again after a restart. So no other process is given ports of
    this one's block of ``BLOCK``, and this one gets each of them again only after all other ports.
    """
    _, ports = _block()
    chosen = list(itertools.islice(filter(is_free, itertools.islice(ports, BLOCK - 1)), count))
    if len(chosen) < count:
        raise LabError(f"No {count} free ports were found in a block of {BLOCK} on 127.0.0.1.")
    return chosen


@functools.cache
def _block() -> tuple[socket.socket, Iterator[int]]:
    """A socket bound to a block's first port, which claims the block until this process ends, and its other ports."""
    starts = range(LOWEST, HIGHEST, BLOCK)
    for start in random.SystemRandom().sample(starts, len(starts)):
        claim = socket.socket()
        try:
            claim.bind(("127.0.0.1", start))
        except OSError:
            claim.close()
            continue
        return claim, itertools.cycle(range(start + 1, start + BLOCK))
    raise LabError(f"No block of {BLOCK} ports was found between {LOWEST} and {HIGHEST} on 127.0.0.1.")


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
