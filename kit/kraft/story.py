"""Report what controllers did in a move to KRaft, by their logs: what each waited for, when the copy ran, what aborted
it.

story = read_story([Path("controller.log")])
story.describe()                                        # a sentence per event
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kit.errors import InputError
from kit.kraft.analyze.driver_story import ABORTED, COPIED, DriverEvent, driver_events
from kit.text.quantity import quantity
from kit.text.regular_file import read_regular


@dataclass(frozen=True)
class KraftStory:
    """``events``: log by log, each in its own order; or, with ``is_one_zone``, all by the time that they print."""

    events: Sequence[DriverEvent]
    is_one_zone: bool = False

    def describe(self) -> list[str]:
        """A sentence per event. The log is named above its events, if there are several that can't be compared."""
        sources = dict.fromkeys(each.source for each in self.events)
        if self.is_one_zone or len(sources) == 1:
            return [each.sentence for each in self.events]
        return [line for source in sources for line in (f"{source}:", *self._describe_of(source))]

    told = describe  # its name before 1.0

    def _describe_of(self, source: str) -> Iterator[str]:
        return (f"  {each.sentence}" for each in self.events if each.source == source)

    @property
    def summary(self) -> str:
        """Return whether the copy came to its end, and what aborted it last; of logs whose order is not known only
        that.
        """
        aborted = [each for each in self.events if each.kind == ABORTED]
        ends = [each.kind for each in self.events if each.kind in (ABORTED, COPIED)]
        if not ends:
            return "These logs contain no copy from ZooKeeper."
        if not self.is_one_zone and len(set(self._last_ends())) > 1:
            return (
                "One log ends with an aborted copy, and another log with a completed copy. Which log is newer is "
                "unknown, because the times in a log have no time zone. If all logs use the same time zone, add "
                "--same-zone."
            )
        tries = f" after {quantity(len(aborted), 'abort')}" if aborted else ""
        if ends[-1] == COPIED:
            return f"The copy from ZooKeeper ended{tries}."
        last = aborted[-1]
        at = last.znode or "a znode that the log does not name"
        return (
            f"The copy was aborted {quantity(len(aborted), 'time')}, last at {at}: {last.cause or 'no exception'}. "
            "Repair the znode, and start the controllers again. To see every such znode: offramp kraft preflight"
        )

    def _last_ends(self) -> Iterator[str]:
        """Per log how its last copy ended."""
        last = {each.source: each.kind for each in self.events if each.kind in (ABORTED, COPIED)}
        return iter(last.values())


def read_story(paths: Sequence[Path], is_one_zone: bool = False) -> KraftStory:
    """Read logs of controllers, ``.gz`` too. ``is_one_zone``: their times are of one zone, and are compared.

    Raises:
        InputError: a file can't be read, or no log has a line of the migration driver.
    """
    events = [event for path in paths for event in driver_events(_lines(path), str(path))]
    if not events:
        names = ", ".join(map(str, paths))
        raise InputError(
            f"{names}: no line of KRaftMigrationDriver was found. Name the log of a controller that ran "
            "with the migration flag"
        )
    if is_one_zone:
        events.sort(key=lambda each: each.time.replace("T", " ").replace(".", ","))
    return KraftStory(events, is_one_zone)


def _lines(path: Path) -> Iterator[str]:
    try:
        held = io.BytesIO(read_regular(path))
        octets = gzip.GzipFile(fileobj=held) if path.suffix == ".gz" else held
        yield from io.TextIOWrapper(octets, encoding="utf-8", errors="replace")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} can't be read: {error}") from error
