"""Excerpts of public threads: where each stands, and what it must be told to hold. The texts are not ours to keep.

``facts.toml`` names the thread and the place in it. The facts were written by reading, before a line was parsed.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from kit.rebalances.analyze.consumer_instances import datetime_of
from kit.rebalances.sources import Rebalances

FOLDER = "OFFRAMP_EXCERPTS"
"""The variable that names the folder with the texts, one file each, named as ``facts.toml`` names it."""
Facts = Mapping[str, Any]


def all_facts() -> list[Facts]:
    facts: list[Facts] = tomllib.loads(Path(__file__).with_name("facts.toml").read_text())["excerpt"]
    return facts


def folder() -> Path | None:
    named = os.environ.get(FOLDER)
    return Path(named) if named else None


def normal(text: str) -> str:
    """Without spaces at the ends of lines, and without empty lines at the ends: pages and copies differ in them."""
    return "".join(f"{line.rstrip()}\n" for line in text.strip("\n").rstrip().splitlines())


def digest(text: str) -> str:
    """SHA-256 of the normal text."""
    return hashlib.sha256(normal(text).encode()).hexdigest()


def told(found: Rebalances) -> dict[str, Any]:
    """Return what was made of a text, as ``facts.toml`` states it; ``said``: all sentences."""
    events, files = found.events, found.logs.files if found.logs else None
    times = events.filter(events["local_at"].is_not_null()).sort("local_at")
    return {
        "events": dict(Counter(events["kind"])),
        "groups": sorted(set(events["group_id"].drop_nulls())),
        "members": sorted(set(events["member_id"].drop_nulls())),
        "generations": sorted(set(events["generation"].drop_nulls())),
        "began": _began(times.head(1).rows(named=True)),
        "not_understood": 0 if files is None else files["n_unknown"].sum(),
        "findings": sorted(found.findings["finding"]),
        "said": "\n".join(found.describe()),
    }


def _began(first: list[dict[str, Any]]) -> datetime | None:
    """The first time of an event, with its zone where that is known; None: no event has one."""
    for event in first:
        printed = datetime_of(event["local_at"])
        return event["observed_at"] or (None if printed is None else printed.replace(tzinfo=None))
    return None
