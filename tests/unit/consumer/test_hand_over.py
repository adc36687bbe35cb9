"""A record counts as delivered: through a pipe once it was read, else once it was written; nothing after the end."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from confluent_kafka import Message

from kit.consumer import hand_over
from kit.consumer.hand_over import Events, HandOver, as_text
from kit.errors import HandOverError, InputError, OutputClosed
from tests.limits import lower


def record(offset: int, value: bytes = b"value") -> Message:
    return Message(topic="t", partition=0, offset=offset, value=value)


@pytest.fixture
def pipe() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Its reader, without a buffer, and its writer."""
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as reader, open(writing, "wb", buffering=0) as writer:
        yield reader, writer


def in_background(target: object) -> threading.Thread:
    thread = threading.Thread(target=target, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread


def test_through_a_pipe_a_record_is_taken_when_it_was_read(pipe: tuple[IO[bytes], IO[bytes]]) -> None:
    reader, writer = pipe
    records = HandOver(writer, as_text, None)
    answers: list[bool] = []
    taking = in_background(lambda: answers.append(records.take(record(0), "c")))
    assert reader.read(3) == b"val"
    assert answers == []
    assert reader.read(100) == b"ue\n"
    taking.join(10)
    assert answers == [True]


@pytest.mark.parametrize("n_read", [0, 3])
def test_records_left_in_a_pipe_are_not_taken(pipe: tuple[IO[bytes], IO[bytes]], n_read: int) -> None:
    reader, writer = pipe
    records = HandOver(writer, as_text, None)
    answers: list[bool] = []
    taking = in_background(lambda: answers.append(records.take(record(0), "c")))
    reader.read(n_read)
    while n_read == 0 and not records._output._n_unread():
        pass
    reader.close()
    taking.join(10)
    assert answers == [False]
    assert isinstance(records.error, OutputClosed)
    assert "0 were delivered" in str(records.error)
    assert not records.take(record(1), "c")


def test_a_reader_that_has_read_all_and_goes_has_taken_it(pipe: tuple[IO[bytes], IO[bytes]]) -> None:
    reader, writer = pipe
    records = HandOver(writer, as_text, None)
    reading = in_background(lambda: (reader.read(100), reader.close()))
    assert records.take(record(0), "c")
    reading.join(10)
    assert not records.take(record(1), "c")
    assert records.n_taken == 1


def test_a_record_larger_than_any_pipe(pipe: tuple[IO[bytes], IO[bytes]]) -> None:
    reader, writer = pipe
    records = HandOver(writer, as_text, None)
    output: list[bytes] = []
    reading = in_background(lambda: output.extend(iter(lambda: reader.read(10_000), b"")))
    assert records.take(record(0, b"x" * 300_000), "c")
    writer.close()
    reading.join(10)
    assert b"".join(output) == b"x" * 300_000 + b"\n"


def test_the_end_gives_a_reader_a_moment_and_no_more(
    pipe: tuple[IO[bytes], IO[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lower(monkeypatch, hand_over, GRACE_SECONDS=0.05)
    records = HandOver(pipe[1], as_text, None)
    answers: list[bool] = []
    taking = in_background(lambda: answers.append(records.take(record(0), "c")))
    records.end()
    records.settle()
    taking.join(10)
    assert answers == [False]
    assert records.error is None


def test_the_limit_is_exact_whatever_the_number_of_threads(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as output:
        records = HandOver(output, as_text, tmp_path / "notes", limit=5)
        answers: list[bool] = []
        threads = [
            in_background(lambda: answers.extend(records.take(record(n), "c") for n in range(3))) for _ in "abcd"
        ]
        for thread in threads:
            thread.join(10)
    assert (answers.count(True), records.n_taken, records.ended.is_set()) == (5, 5, True)
    assert (tmp_path / "out").read_bytes() == b"value\n" * 5
    assert len((tmp_path / "notes").read_text().splitlines()) == 5


def test_a_full_disk_under_the_output_or_the_notes_ends_it(tmp_path: Path) -> None:
    with open("/dev/full", "wb", buffering=0) as full:
        records = HandOver(full, as_text, tmp_path / "notes")
        assert not records.take(record(0), "c")
    assert "no record can be written to the output: No space left on device" in str(records.error)
    assert (tmp_path / "notes").read_bytes() == b""
    with (tmp_path / "out").open("wb") as output:
        records = HandOver(output, as_text, Path("/dev/full"))
        assert not records.take(record(0), "c")
    assert type(records.error) is HandOverError
    assert "/dev/full can't be written" in str(records.error)


def test_a_note_is_whole_or_not_there(tmp_path: Path) -> None:
    """The disk may take half of the note."""
    file = (tmp_path / "notes").open("ab", buffering=0)

    class Half:
        fileno = file.fileno

        def write(self, data: bytes) -> int:
            return file.write(data[: len(data) // 2])

    file.write(b"before\n")
    with pytest.raises(OSError, match="No space left"):
        hand_over._append(Half(), b"half of this\n")  # type: ignore[arg-type]
    assert (tmp_path / "notes").read_bytes() == b"before\n"


def test_events_that_can_not_be_written_are_reported_once_and_raise_nothing() -> None:
    failures: list[str] = []
    with open("/dev/full", "wb", buffering=0) as full:
        events = Events(full, lambda error: failures.append(str(error)))
        events.say("c", "REG", "1")
        events.say("c", "BEG", {})
    assert failures == [
        "/dev/full can't be written, so rebalances can't be recorded: No space left on device; repair the cause, "
        "then start offramp consume"
        " again: no record is lost"
    ]


def test_events_are_lines(tmp_path: Path) -> None:
    with (tmp_path / "events").open("ab", buffering=0) as file:
        Events(file, lambda error: None).say("c", "BEG", {"t": {0: "c-0"}})
    at_ms, name, event, details = (tmp_path / "events").read_text().split(" ", 3)
    assert (at_ms.isdigit(), name, event, json.loads(details)) == (True, "c", "BEG", {"t": {"0": "c-0"}})


def test_a_file_that_can_not_be_opened_is_an_argument_that_can_not_be_used(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be written: No such file or directory"):
        HandOver((tmp_path / "out").open("wb"), as_text, tmp_path / "nowhere" / "notes")
