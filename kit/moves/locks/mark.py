"""The mark that the group of a lock keeps of its last holder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

_LONGEST_MARK = 4_000


@dataclass(frozen=True, slots=True)
class Mark:
    """The last holder by the lock's group; ``changed_by`` is the last run that wrote to the target."""

    run_id: str
    host: str
    user: str
    since: str
    is_held: bool = True
    changed_by: str | None = None

    def __str__(self) -> str:
        return f"run {self.run_id} of {self.user} on {self.host} since {self.since}"

    def to_text(self) -> str:
        return json.dumps(asdict(self))[:_LONGEST_MARK]


def parse_mark(metadata: str | None) -> Mark | None:
    """Return the mark in a commit's metadata; None: offramp did not write it."""
    try:
        return Mark(**json.loads(metadata or ""))
    except (ValueError, TypeError, RecursionError):
        return None
