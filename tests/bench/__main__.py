"""Runs the comparisons: ``python -m tests.bench [--strict] [--only NAME] [--scale PART]``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from subprocess import SubprocessError

from kit.errors import OfframpError
from tests.bench import (
    both_stores,
    executors,
    groups,
    growth,
    health,
    hours,
    lag,
    live,
    logs,
    members,
    memory,
    metadata,
    offsets,
    offsets_topic,
    report,
    startup,
    streams,
    znodes,
)
from tests.bench.clock import WrongAnswer, say
from tests.bench.rows import REPOSITORY, RESULTS, Row, table, write
from tests.bench.site import Site, Sizes, filled

COMPARISONS: dict[str, Callable[[Site], Iterator[Row]]] = {
    "groups": groups.compared,
    "znodes": znodes.compared,
    "memory": memory.compared,
    "lag": lag.compared,
    "time_lag": lag.compared_in_time,
    "live": live.compared,
    "report": report.compared,
    "streams": streams.compared,
    "members": members.compared,
    "offsets": offsets.compared,
    "logs": logs.compared,
    "offsets_topic": offsets_topic.compared,
    "metadata": metadata.compared,
    "both_stores": both_stores.compared,
    "executors": executors.compared,
    "health": health.compared,
    "hours": hours.compared,
    "startup": startup.compared,
    "growth": growth.compared,
}
FILLED = frozenset({"groups", "znodes", "memory", "lag", "live", "report", "offsets"})
"""Comparisons that need groups to be there."""


def main() -> int:
    """0; with ``--strict`` 1 when a goal is missed; else what went wrong, 1 when a side read not what was filled in."""
    options = _options()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # New processes find bytecode, as where offramp is installed.
    rows: list[Row] = []
    try:
        chosen = options.only or list(COMPARISONS)
        sizes = Sizes(1, 1, options.scale) if FILLED.isdisjoint(chosen) else Sizes().scaled(options.scale)
        with filled(sizes) as site:
            for name in chosen:
                rows += COMPARISONS[name](site)
            say("stopping the lab")
    except (OfframpError, WrongAnswer, SubprocessError) as error:
        if rows:
            print(table(rows))
        print(f"error: {error}; nothing was written", file=sys.stderr)
        return error.exit_code if isinstance(error, OfframpError) else 1
    print(table(rows))
    write(rows)
    print(f"Written to {RESULTS.relative_to(REPOSITORY)}")
    return 1 if options.strict and any(row.is_missed for row in rows) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Our readers beside other tools.")
    parser.add_argument("--strict", action="store_true", help="end with 1 when a goal is missed")
    parser.add_argument("--only", action="append", choices=COMPARISONS, help="one comparison; can be given again")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full size (the goals are for 1)")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
