"""The journal of one run: a folder to which lines are added, each durable before anything continues.

``runs/<run-id>/`` holds ``plan.json``, ``approval.json`` (``approval-2.json``, … where it had to be approved again),
``events.jsonl`` (see ``kit.engine.model.event``), and after each ending ``report.html`` and ``verdict.json``.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from kit.engine.model.approval import Approval, save_approval
from kit.engine.model.clock import Clock
from kit.engine.model.event import Event, line_hash, parse_chain, shown, to_line
from kit.engine.model.files import private_folder, sync_folder, write_atomic
from kit.engine.model.performer import ItemOutcome
from kit.engine.model.plan import Plan, save_plan
from kit.engine.model.states import RunState, moved
from kit.engine.model.values import canonical, parse_json, readable
from kit.errors import EvidenceError
from kit.text.quantity import quantity
from kit.text.regular_file import read_regular
from kit.text.visible import file_name
from kit.text.withholding import without_secrets

PLAN = "plan.json"
APPROVAL = "approval.json"
EVENTS = "events.jsonl"
STOP = "stop.json"
"""There while another process asks the run to stop."""
_HIDDEN = "."
"""Before the name of a folder in the making."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The content of an event, before the journal numbers, dates and chains it."""

    event: str
    step_id: str | None = None
    item: str | None = None
    outcome: str | None = None
    before: str | None = None
    after: str | None = None
    sentence: str | None = None
    error: str | None = None
    duration_ms: int | None = None
    details: str | None = None
    withheld: str | None = None


def create_run(plan: Plan, approval: Approval, root: Path, clock: Clock) -> Path:
    """A new folder under ``root`` for a run of this plan, named by time, kind and subject; seen once it is whole.

    Raises:
        EvidenceError: it can't be made.
    """
    begun_at, token = f"{clock.now():%Y%m%dT%H%M%SZ}", secrets.token_hex(2)
    run_id = "-".join((begun_at, file_name(plan.kind), file_name(plan.subject), token))
    folder, scratch = root / run_id, root / f"{_HIDDEN}{run_id}"
    try:
        private_folder(root)
        if scratch.exists():
            raise EvidenceError(f"{scratch} is there already")
        private_folder(scratch)
    except OSError as error:
        raise EvidenceError(f"{folder} can't be made: {error.strerror}") from error
    try:
        save_plan(plan, scratch / PLAN)
        save_approval(approval, scratch / APPROVAL)
        write_atomic(scratch / EVENTS, "")
        _begin(plan, approval, scratch, clock)
        sync_folder(scratch)
        scratch.rename(folder)
        sync_folder(root)
    except (OSError, EvidenceError) as error:
        shutil.rmtree(scratch, ignore_errors=True)
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise EvidenceError(f"{folder} can't be made: {why}") from error
    return folder


def _begin(plan: Plan, approval: Approval, folder: Path, clock: Clock) -> None:
    with Journal(folder, clock) as journal:
        details = {"plan_digest": plan.digest, "made_at": plan.made_at.isoformat()}
        overridden = "".join(f" Overridden rule {name}: {sentence}" for name, sentence in plan.overridden.items())
        sentence = f"{plan.made_by} planned {plan.name.rstrip(',')}.{overridden}"
        journal.append(Entry("planned", sentence=sentence, details=canonical(details)))
        journal.approved(approval)
        journal.move(RunState.APPROVED)


class Journal:
    """The open journal of one run; one writer at a time, which the file itself is locked for.

    ``tell`` is called with every event once it is durable; if it fails, that is recorded and it isn't called again.

    Raises:
        EvidenceError: it is missing, edited, or another process writes to it; the disk takes no more.
    """

    def __init__(self, folder: Path, clock: Clock, tell: Callable[[Event], None] | None = None) -> None:
        self.run_id = folder.name.removeprefix(_HIDDEN)
        self._path, self._clock, self._tell = folder / EVENTS, clock, tell
        self._file = self._opened()
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._file)

    @property
    def state(self) -> RunState:
        return RunState(self.events[-1].state) if self.events else RunState.PLANNED

    def move(self, state: RunState, step_id: str | None = None, sentence: str | None = None) -> None:
        """Write down that the run goes to another state.

        Raises:
            IllegalMove: the run can't go there from where it is.
        """
        self._write([Entry("moved", step_id, sentence=sentence)], moved(self.state, state))

    def append(self, *entries: Entry) -> None:
        """Write lines, durable when it returns. A part of an error that resembles a secret is redacted, the rest
        written.
        """
        self._write([_without_secrets(entry) for entry in entries], self.state)

    def approved(self, approval: Approval) -> None:
        login = f" (logged in as {approval.approved_as})" if approval.approved_as else ""
        sentence = f"{approval.approved_by}{login} approved it until {approval.expires_at.isoformat()}."
        self.append(Entry("approved", sentence=sentence, details=canonical(approval.to_json())))

    def _opened(self) -> int:
        try:
            file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_NONBLOCK)
        except OSError as error:
            raise EvidenceError(f"{self._path} can't be opened: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise EvidenceError(f"{self._path} can't be opened: it is not a regular file")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            raise EvidenceError(f"another process is writing to {self._path}") from error
        return file

    def _load(self) -> None:
        chain = parse_chain(os.pread(self._file, os.fstat(self._file).st_size, 0), self.run_id)
        self.events: list[Event] = list(chain.events)
        self.head, self._is_current = chain.head, True
        if chain.torn:
            # The torn part had not been acknowledged to any client; a line that reports it takes its place.
            os.ftruncate(self._file, os.fstat(self._file).st_size - len(chain.torn))
            sentence = (
                f"The writer of the journal ended within a line: {quantity(len(chain.torn), 'byte')} "
                f"of that line were discarded."
            )
            self.append(Entry("torn_line", sentence=sentence, details=canonical({"begins": shown(chain.torn)})))

    def _write(self, entries: Sequence[Entry], state: RunState) -> None:
        if not self._is_current:
            self._load()  # An interrupt came between a line and what is remembered of it.
        self._is_current = False
        events, head = list[Event](), self.head
        lines = bytearray()
        for entry in entries:
            events.append(self._event(entry, len(self.events) + len(events) + 1, state, head))
            line = to_line(events[-1])
            head = line_hash(line)
            lines += line + b"\n"
        self._sync(bytes(lines))
        self.events += events
        self.head, self._is_current = head, True
        self._show(events)

    def _sync(self, lines: bytes) -> None:
        try:
            while lines:
                lines = lines[os.write(self._file, lines) :]
            os.fsync(self._file)
        except OSError as error:
            raise EvidenceError(f"{self._path} can't be written: {error.strerror}. The run stops") from error

    def _event(self, entry: Entry, seq: int, state: RunState, previous: str) -> Event:
        return Event(
            run_id=self.run_id,
            seq=seq,
            at=iso(self._clock.now()),
            monotonic_ms=round(self._clock.monotonic() * 1000),
            event=entry.event,
            state=str(state),
            step_id=entry.step_id,
            item=_clean(entry.item),
            outcome=entry.outcome,
            before=entry.before,
            after=entry.after,
            sentence=_clean(entry.sentence),
            error=_clean(entry.error),
            duration_ms=entry.duration_ms,
            details=entry.details,
            withheld=entry.withheld,
            previous=previous,
        )

    def _show(self, events: Sequence[Event]) -> None:
        for event in events:
            if self._tell is None:
                return
            try:
                self._tell(event)
            except Exception as error:  # noqa: BLE001 - a display that breaks must not break what it displays
                self._tell = None
                self.append(Entry("display_failed", error=f"{type(error).__name__}: {error}"))


def request_stop(folder: Path, who: str, at: datetime) -> None:
    """Ask the process that carries this run out, whichever it is, to stop after what is being written."""
    write_atomic(folder / STOP, readable({"by": who, "at": at.isoformat()}))


def taken_request(folder: Path) -> tuple[str, datetime] | None:
    """Return who asked for a stop, and when; it is heard once.

    Raises:
        EvidenceError: it can't be taken away, so it would be heard for ever.
    """
    path = folder / STOP
    if not os.path.lexists(path):
        return None
    text = b""
    with suppress(OSError):  # A FIFO or a dangling link asks for a stop too, and does not name a person.
        text = read_regular(path)
    try:
        path.unlink()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EvidenceError(f"{path} requests a stop of the run, but can't be deleted: {error.strerror}") from error
    try:
        asked: Any = parse_json(text.decode())
        return str(asked["by"]), datetime.fromisoformat(asked["at"])
    except (ValueError, LookupError, TypeError):
        return f"an unknown person (by a {STOP} that could not be read)", datetime.now(UTC)


def of_item(event: str, step_id: str, outcome: ItemOutcome) -> Entry:
    return Entry(
        event,
        step_id,
        outcome.item,
        str(outcome.outcome),
        before=canonical(outcome.before),
        after=canonical(outcome.after),
        error=outcome.error,
        details=None if outcome.details is None else canonical(outcome.details),
    )


def iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _without_secrets(entry: Entry) -> Entry:
    """Only errors hold what strangers wrote; the other columns hold names and our own words."""
    error = None if entry.error is None else without_secrets(entry.error, (entry.item,) if entry.item else ())
    return entry if error == entry.error else replace(entry, error=error, withheld="error")


def _clean(text: str | None) -> str | None:
    """Errors quote what they like, also bytes that are no text."""
    return None if text is None else text.encode(errors="backslashreplace").decode()
