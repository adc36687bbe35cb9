"""Names of folders in a history: what they hold, when a run began them, of which day they are."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta

from kit.errors import HistoryError
from kit.tables.schema import SCHEMA_VERSION

DAYS = "days"
ABOUT = "offramp_history"
PATTERNS = "*?[]{}\\"
"""Spark reads a path with one of these as a pattern, and writes it as a name: what it wrote it would not find."""
COPY = re.compile(r"date=\d{4}-\d\d-\d\d.+")
"""Spark takes ``date=2026-01-01 (copy)`` for that day: what is in it would count twice."""
GIVEN_UP = timedelta(days=1)
"""The age from which files of a run that was cut off count as abandoned."""
_TIME = "%Y%m%dT%H%M%SZ"


def run_name(now: datetime) -> str:
    """A name that no other run has; names sort as the times at which the runs began."""
    return f"{now:{_TIME}}-{secrets.token_hex(4)}"


def begun(run: str) -> datetime:
    """Return when a run began, by its name; of a foreign name: never, so that it stays."""
    try:
        return datetime.strptime(run.partition("-")[0], _TIME).replace(tzinfo=UTC)
    except ValueError:
        return datetime.max.replace(tzinfo=UTC)


def day_of(name: str) -> date | None:
    """The day of a folder's name; None: it is not one of a history's."""
    with suppress(ValueError):
        day = date.fromisoformat(name.removeprefix("date="))
        return day if name == f"date={day}" else None
    return None


def refuse_versions(folder: str, kept_versions: Collection[int]) -> None:
    """Raises HistoryError if a history is of another schema version."""
    if set(kept_versions) - {SCHEMA_VERSION}:
        versions = ", ".join(map(str, sorted(kept_versions)))
        raise HistoryError(
            f"the history in {folder} has schema version {versions}, but this offramp reads and writes version "
            f"{SCHEMA_VERSION}. Name another folder"
        )
