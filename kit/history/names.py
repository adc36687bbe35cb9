"""Names of folders in a history that say when a run began them, and of which day they are."""

from __future__ import annotations

import secrets
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta

GIVEN_UP = timedelta(days=1)
"""So old is what a run wrote that was cut off: nobody works on it any more."""
_TIME = "%Y%m%dT%H%M%SZ"


def run_name(now: datetime) -> str:
    """A name that no other run has; names sort as the times at which the runs began."""
    return f"{now:{_TIME}}-{secrets.token_hex(4)}"


def begun(run: str) -> datetime:
    """When a run began, by its name; of a foreign name: never, so that it stays."""
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
