"""A process that takes a lock in Kafka and confirms it for each line that it gets: profile, group and run as arguments.

It prints ``held`` or the kind of the refusal, one line each.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kit.clients.cluster import connect
from kit.errors import OfframpError
from kit.moves.locks import lease
from kit.moves.locks.kafka_lock import KafkaLock, LockGroups
from kit.profile import load_profile


def main(profile: str, session_s: str, group: str, run_id: str) -> None:
    lease.SESSION_S = float(session_s)
    with connect(load_profile(file=Path(profile))) as cluster:
        lock = KafkaLock(LockGroups(cluster))
        lock.acquire([group], run_id)
        print("held", flush=True)
        for _ in sys.stdin:
            try:
                lock.assert_held()
                print("held", flush=True)
            except OfframpError as error:
                print(type(error).__name__, flush=True)
        lock.release()


if __name__ == "__main__":
    main(*sys.argv[1:])
