"""A metadata log, read: its records, the image that they add up to, and an account of every file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from kit.errors import PartialRead
from kit.kraft.metadata_log.batches import batches_after, written_after
from kit.kraft.metadata_log.file_summary import Tally
from kit.kraft.metadata_log.files import CHECKPOINT, LogFile, find_files
from kit.kraft.metadata_log.image import Image
from kit.kraft.metadata_log.records import read_records
from kit.kraft.metadata_log.replay import Step, stream
from kit.kraft.metadata_log.rows import item_rows, node_rows, partition_frame, record_batches
from kit.kraft.metadata_log.transactions import with_transactions
from kit.tables import schema as tables
from kit.tables.collector import without_collector
from kit.tables.polars import frame
from kit.text.fingerprints import Hide, stars
from kit.text.quantity import quantity
from kit.text.visible import visible

if TYPE_CHECKING:
    from kit.kraft.metadata_log.controllers import Controllers

_REGISTRATIONS = {"RegisterController", "RegisterBroker", "BrokerRegistrationChange", "UnregisterBroker"}


@dataclass(frozen=True, repr=False)
class MetadataLog:
    """``image`` is what the log adds up to; ``files`` (``tables.METADATA_FILES``) accounts for every record.

    The frames below are made when they are first used, ``records`` by reading the bytes once more.
    """

    sources: tuple[LogFile, ...]
    image: Image
    files: pl.DataFrame
    until: int | None = None
    hide: Hide = stars

    @cached_property
    def records(self) -> pl.DataFrame:
        """``tables.METADATA_RECORDS``: checkpoints first, then the segments, each in order."""
        import pyarrow as pa

        checkpoints = (
            with_transactions(stream([file], hide=self.hide)) for file in self.sources if file.kind == CHECKPOINT
        )
        segments = with_transactions(stream(_segments(self.sources), self.until, self.hide))
        batches = record_batches(chain(chain.from_iterable(checkpoints), segments))
        with without_collector():
            return pl.DataFrame(pa.Table.from_batches(batches, tables.METADATA_RECORDS.schema))

    @cached_property
    def partitions(self) -> pl.DataFrame:
        """``tables.METADATA_PARTITIONS``: one row per partition of the image."""
        return partition_frame(self.image)

    @cached_property
    def items(self) -> pl.DataFrame:
        """``tables.METADATA_ITEMS``: one row per config, quota, credential, ACL, token, feature of the image."""
        return frame(tables.METADATA_ITEMS.columns_of(item_rows(self.image))).sort("kind", "entity", "item")

    @cached_property
    def nodes(self) -> pl.DataFrame:
        """``tables.METADATA_NODES``: one row per registered broker and controller."""
        return frame(tables.METADATA_NODES.columns_of(node_rows(self.image))).sort("role", "node_id")

    def behind(self, offset: int) -> timedelta:
        """Return how much older than its last record the oldest one behind ``offset`` is."""
        times = (written_after(each.read(), offset) for each in _segments(self.sources))
        first = next((each for each in times if each is not None), self.image.written_ms)
        return timedelta(milliseconds=max(self.image.written_ms - first, 0))

    def has_moved_on(self, offset: int) -> bool:
        """Return whether there is a record behind ``offset`` for which a controller has to move ``/migration``.

        It has not to for control records and registrations: after an election 3.9.1 writes none of them to ZooKeeper
        before the next record, which may be hours later with ``metadata.max.idle.interval.ms=0``.
        """
        tails = (read_records(batches_after(each.read(), offset), each.name) for each in _segments(self.sources))
        records = (each for each in chain.from_iterable(tails) if each.offset is None or each.offset > offset)
        return any(each.api_key is not None and each.name not in _REGISTRATIONS for each in records)

    @property
    def types(self) -> dict[str, int]:
        """Return how many records there are of each type, in all files."""
        counts: Counter[str] = Counter()
        for name, _, n in (each.rpartition(": ") for row in self.files["types"] for each in row):
            counts[name] += int(n)
        return dict(sorted(counts.items()))

    def __repr__(self) -> str:
        """Return what was read, in sentences: a notebook shows it."""
        return "\n".join(_account(self))


def read_log(source: str | Path | Iterable[str | Path] | Controllers, hide: Hide = stars) -> MetadataLog:
    """Read a metadata log from copied files or from a live controller; nothing is written to either.

    ``source`` is a log's folder (``__cluster_metadata-0``), the data folder around it, files of it, or
    ``Controllers``. The image begins with the newest whole checkpoint and continues with the segments, as Kafka does.
    It ends where the first damaged or missing place is (``image.stopped``). Copied files may end within a batch, or
    with records that no quorum has agreed to yet; a controller sends whole ones that it has.

    Secrets are ``***``; with ``hide=Fingerprints()`` each is a fingerprint, which is the same for the same secret read
    with the same object, so that two stores can be compared (``kit.text.fingerprints``).

    Raises:
        InputError, NotFound: there is no such path, or no log in it.
        ReadError: a file can't be read, or the controller refused.
        ConnectError, AuthenticationFailed: no controller answered, or all refused the login.
    """
    if isinstance(source, str | Path | Iterable):
        return _read(find_files(source), None, hide)
    fetched = source.fetch()
    return _read(fetched.files, fetched.until, hide)


def verify_log(log: MetadataLog) -> str:
    """Return what was read, in sentences.

    Raises:
        PartialRead: something is damaged, missing or of a newer Kafka: what and where.
    """
    wrong = [
        f"{row['file']}: {'; '.join([*row['problems'], *(f'type {each} is not known' for each in row['unknown'])])}."
        for row in log.files.iter_rows(named=True)
        if row["problems"] or row["unknown"]
    ]
    wrong += [f"The image stops {log.image.stopped}."] if log.image.stopped else []
    wrong += [f"{each}." for each in log.image.problems]
    if wrong:
        raise PartialRead(" ".join([*_account(log), *map(visible, wrong)]))
    return "\n".join(_account(log))


def _account(log: MetadataLog) -> list[str]:
    """The account in sentences; wrong things are counted, not named."""
    image, files = log.image, log.files
    n_records, n_unknown, n_errors = (files[name].sum() for name in ("n_records", "n_unknown", "n_errors"))
    return [
        f"{quantity(len(files), 'file')}, {quantity(n_records, 'record')}: "
        f"{', '.join(f'{n:,} {name}' for name, n in log.types.items())}; "
        f"{quantity(files['n_control'].sum(), 'control record')}, {n_unknown:,} of unknown types, "
        f"{quantity(n_errors, 'problem')}.",
        repr(image),
        *([f"It stops {visible(image.stopped)}."] if image.stopped else []),
    ]


def _read(files: Sequence[LogFile], until: int | None, hide: Hide) -> MetadataLog:
    with without_collector():
        return _read_all(files, until, hide)


def _read_all(files: Sequence[LogFile], until: int | None, hide: Hide) -> MetadataLog:
    tallies = {file.name: Tally(file) for file in files}
    image, steps = Image(), list[Step]()
    for file in (each for each in files if each.kind == CHECKPOINT):
        step = Step((file,), 0, (file.base_offset or 0) - 1, None, hide)
        later = Image()
        step.replay(later, tallies)
        # One that is cut replaces none.
        image, steps = (later, [step]) if tallies[file.name].is_whole else (image, steps)
    Step(tuple(_segments(files)), image.offset + 1, None, until, hide, tuple(steps)).replay(image, tallies)
    rows = tables.METADATA_FILES.columns_of(each.row() for each in tallies.values())
    return MetadataLog(tuple(files), image, frame(rows), until, hide)


def _segments(files: Iterable[LogFile]) -> list[LogFile]:
    return [each for each in files if each.kind != CHECKPOINT]
