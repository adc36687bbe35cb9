"""Keep what was seen expired: a clock that is set back revives no approval and no permission to undo."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from kit.engine.model.files import keep_new
from kit.errors import EvidenceError
from kit.text.regular_file import read_regular


def latest_seen(mark: Path, expires_at: datetime, now: datetime) -> datetime:
    """The later of ``now`` and the time at which an expiry was first seen, which is kept in the file ``mark``.

    Raises:
        EvidenceError: the file can't be written or read.
    """
    if now >= expires_at:
        keep_new(mark, now.isoformat() + "\n")
    return max(now, time_in(mark) or now)


def time_in(path: Path) -> datetime | None:
    """The time in a file; None: there is no such file. Raises EvidenceError: it can't be read."""
    try:
        return datetime.fromisoformat(read_regular(path).decode().strip())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise EvidenceError(f"{path} can't be read: {error}; make a new plan") from error
