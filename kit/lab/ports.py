"""Free TCP ports on 127.0.0.1."""

from __future__ import annotations

import random
import socket

from kit.errors import LabError

# Below every usual range of outgoing connections, which could take a port between its choice and its use.
LOWEST, HIGHEST = 20_000, 32_000
TRIES = 200


def free_ports(count: int) -> list[int]:
    """``count`` different ports that nothing listens on; raises LabError when none can be found."""
    chosen: list[int] = []
    for _ in range(TRIES):
        port = random.SystemRandom().randrange(LOWEST, HIGHEST)
        if port not in chosen and is_free(port):
            chosen.append(port)
        if len(chosen) == count:
            return chosen
    raise LabError(f"No {count} free ports were found between {LOWEST} and {HIGHEST} on 127.0.0.1.")


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
