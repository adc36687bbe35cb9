"""Results of rehearsals, kept beside plans and runs: which save was rehearsed, when, and how it ended.

``runs/rehearsals/<cluster id>-<first 12 of the save's SHA-256>.json``, one per save; a later rehearsal of the same save
replaces it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kit.engine.model.approval import CLOCK_SKEW
from kit.engine.model.files import private_folder, write_atomic
from kit.engine.model.values import digest_of, parse_json, readable
from kit.errors import EvidenceError
from kit.kraft.metadata_file import SavedMetadata
from kit.profile.identity.login import system_user
from kit.text.regular_file import read_regular

REHEARSALS, FORMAT = "rehearsals", 1
OLDEST = timedelta(days=30)
"""A save that is older reports little about the cluster of today."""


@dataclass(frozen=True, slots=True)
class RehearsalResult:
    """``found``: how many findings of each kind (aborts, waits, vanishes, diverges, unknown); none: it went well.

    ``save_sha256``: of the whole file of ``offramp kraft save``. ``saved_at``, ``rehearsed_at``: UTC.
    """

    cluster_id: str
    cluster_name: str
    save_sha256: str
    saved_at: datetime
    rehearsed_at: datetime
    rehearsed_by: str
    controllers: int
    found: Mapping[str, int]

    def problem(self, now: datetime) -> str | None:
        """Return why it does not vouch for a move that begins now."""
        save = f"the save of {self.saved_at:%Y-%m-%d %H:%M} UTC (SHA-256 {self.save_sha256[:12]})"
        if self.found:
            counts = ", ".join(f"{number} {kind}" for kind, number in self.found.items())
            return (
                f"the rehearsal of {save} failed: {counts}. Repair the causes, save the cluster again, and repeat "
                "the rehearsal"
            )
        if self.is_ahead(now):
            return (
                f"clock trouble: {save} or its rehearsal is dated in the future by this machine's clock"
                f" ({now:%Y-%m-%d %H:%M} UTC). Correct the clocks of both machines, save the cluster again, and repeat"
                " the rehearsal"
            )
        if self.saved_at > self.rehearsed_at + CLOCK_SKEW:
            return (
                f"clock trouble: {save} is dated later than its rehearsal of {self.rehearsed_at:%Y-%m-%d %H:%M} UTC."
                " Correct the clocks of both machines, save the cluster again, and repeat the rehearsal"
            )
        if now - self.saved_at > OLDEST:
            return (
                f"{save} was rehearsed, but is older than {OLDEST.days} days. Save the cluster again, and repeat "
                "the rehearsal"
            )
        return None

    def is_ahead(self, now: datetime) -> bool:
        """Return whether a clock was ahead that stamped it, or this one is behind: when it was made is not known."""
        return max(self.saved_at, self.rehearsed_at) > now + CLOCK_SKEW

    def to_json(self) -> dict[str, Any]:
        times = {name: getattr(self, name).isoformat() for name in ("saved_at", "rehearsed_at")}
        return {"format": FORMAT, **asdict(self), **times, "found": dict(self.found)}


def keep_result(runs: Path, saved: SavedMetadata, save_sha256: str, kinds: Iterable[str], controllers: int) -> Path:
    """Keep how a rehearsal ended now. ``kinds``: of each of its findings. Raises EvidenceError: it can't be."""
    counts, who, now = dict(sorted(Counter(kinds).items())), system_user(), datetime.now(UTC)
    of_cluster = (saved.cluster_id, saved.cluster_name)
    return keep(runs, RehearsalResult(*of_cluster, save_sha256, saved.taken_at, now, who, controllers, counts))


def sha256_of(file: Path) -> str:
    """Raises OSError."""
    return hashlib.sha256(read_regular(file)).hexdigest()


def keep(runs: Path, result: RehearsalResult) -> Path:
    """The file that was written.

    Raises:
        EvidenceError: it can't be.
    """
    path, content = _path(runs, result), result.to_json()
    try:
        private_folder(path.parent)
    except OSError as error:
        raise EvidenceError(f"{path} was not written: {error.strerror}") from error
    write_atomic(path, readable({**content, "checksum": digest_of(content)}))
    return path


def _path(runs: Path, result: RehearsalResult) -> Path:
    return runs / REHEARSALS / f"{quote(result.cluster_id, safe='')}-{result.save_sha256[:12]}.json"


def set_aside(runs: Path, cluster_id: str) -> None:
    """All results of a cluster, under other names, by which they never vouch: save and rehearse again.

    One that is ahead would vouch once its time has come; one before it does not report what a newer one found.

    Raises:
        EvidenceError: a result was edited, can't be read, or can't be set aside.
    """
    for path, each in list(_results(runs)):
        if each.cluster_id != cluster_id:
            continue
        try:
            path.rename(path.with_suffix(".ahead"))
        except FileNotFoundError:
            continue  # Another process was as quick.
        except OSError as error:
            raise EvidenceError(f"{path} was not set aside: {error.strerror}") from error


def newest(runs: Path, cluster_id: str) -> RehearsalResult | None:
    """Return the result of the newest save of this cluster that was rehearsed; None: none was.

    Raises:
        EvidenceError: a result was edited, or can't be read.
    """
    results = [each for _, each in _results(runs) if each.cluster_id == cluster_id]
    return max(results, key=lambda each: (each.saved_at, each.rehearsed_at), default=None)


def _results(runs: Path) -> Iterator[tuple[Path, RehearsalResult]]:
    for path in sorted((runs / REHEARSALS).glob("*.json")):
        try:
            content: Any = parse_json(read_regular(path).decode())
            fields = {name: value for name, value in content.items() if name != "checksum"}
            if digest_of(fields) != content["checksum"] or fields.pop("format") != FORMAT:
                raise ValueError("the file was edited, or is of another version")
            times = {name: datetime.fromisoformat(fields[name]) for name in ("saved_at", "rehearsed_at")}
            yield path, RehearsalResult(**{**fields, **times})
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise EvidenceError(f"{path} is no result of a rehearsal: {error}. Repeat the rehearsal") from error
