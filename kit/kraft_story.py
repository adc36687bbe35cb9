"""What controllers did in a move to KRaft, by their logs: who waited for what, when the copy ran, what aborted it.

story = read_story([Path("controller.log")])
story.told()                                        # a sentence per event
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kit.analyze.metadata.driver_story import ABORTED, COPIED, DriverEvent, driver_events
from kit.errors import InputError
from kit.regular_file import read_regular
from kit.text.quantity import quantity


@dataclass(frozen=True)
class KraftStory:
    """``events``: of all logs, by the time that the logs print; logs of several hosts need one zone and clock."""

    events: Sequence[DriverEvent]

    def told(self) -> list[str]:
        return [each.sentence for each in self.events]

    @property
    def summary(self) -> str:
        """Whether the copy came to its end, and what aborted it last."""
        aborted = [each for each in self.events if each.kind == ABORTED]
        ends = [each.kind for each in self.events if each.kind in (ABORTED, COPIED)]
        if not ends:
            return "These logs show no copy from ZooKeeper."
        tries = f" after {quantity(len(aborted), 'abort')}" if aborted else ""
        if ends[-1] == COPIED:
            return f"The copy from ZooKeeper ended{tries}."
        last = aborted[-1]
        at = last.znode or "a znode that the log does not name"
        return (
            f"The copy was aborted {quantity(len(aborted), 'time')}, last at {at}: {last.cause or 'no exception'}. "
            "Repair the znode, and start the controllers again. To see every such znode: offramp kraft preflight"
        )


def read_story(paths: Sequence[Path]) -> KraftStory:
    """Read logs of controllers, ``.gz`` too.

    Raises:
        InputError: a file can't be read, or no log has a line of the migration driver.
    """
    events = [event for path in paths for event in driver_events(_lines(path), str(path))]
    if not events:
        names = ", ".join(map(str, paths))
        raise InputError(f"{names}: no line of KRaftMigrationDriver. Name the log of a controller that had the flag")
    return KraftStory(sorted(events, key=lambda each: each.time.replace("T", " ").replace(".", ",")))


def _lines(path: Path) -> Iterator[str]:
    try:
        held = io.BytesIO(read_regular(path))
        octets = gzip.GzipFile(fileobj=held) if path.suffix == ".gz" else held
        yield from io.TextIOWrapper(octets, encoding="utf-8", errors="replace")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} can't be read: {error}") from error
