"""Files that a person names and that are no regular files: one error at once, no wait for a writer."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kit.consumer.verbs.consume_options import properties_of
from kit.errors import OfframpError
from kit.kraft.metadata_file import load_metadata
from kit.kraft.metadata_log.files import find_files as find_metadata_files
from kit.kraft.zookeeper_files.files import find_files as find_zookeeper_files
from kit.profile import load_profile
from kit.rebalances.logs.local import files_here
from kit.text.regular_file import read_regular

DEADLINE_S = 30
SEGMENT = f"{0:020}.log"


def in_folder(read: Callable[[Path], object]) -> Callable[[Path], object]:
    """The folder is named, not the file."""
    return lambda path: read(path.parent)


def read_metadata(path: Path) -> None:
    for file in find_metadata_files(path):
        file.read()


def read_zookeeper(path: Path) -> None:
    for file in find_zookeeper_files([path]):
        file.read()


READERS = {
    "logs": lambda path: files_here([str(path)]),
    "a folder of logs": in_folder(lambda path: files_here([str(path)])),
    "a folder of folders of logs": lambda path: files_here([str(path.parent.parent)]),
    "a pattern of logs": lambda path: files_here([f"{path.parent}/*"]),
    "the metadata log": read_metadata,
    "a folder of the metadata log": in_folder(read_metadata),
    "ZooKeeper's files": read_zookeeper,
    "a saved cluster": load_metadata,
    "a profile": lambda path: load_profile(file=path),
    "properties of a consumer": lambda path: properties_of((), path),
}


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def dangling(path: Path) -> None:
    path.symlink_to(path.parent / "gone")


@pytest.mark.parametrize("make", [fifo, device, dangling], ids=lambda make: make.__name__)
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_special_file_is_one_error_at_once(tmp_path, read, make):
    path = tmp_path / "folder" / SEGMENT
    path.parent.mkdir()
    make(path)
    threads = ThreadPoolExecutor(1)
    try:
        with pytest.raises(
            OfframpError, match=r"regular file|no (such )?(log|file|profile)|No such file|can't be read"
        ):
            threads.submit(read, path).result(DEADLINE_S)
    finally:
        if make is fifo:
            os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))  # Ends a reader that waits.
        threads.shutdown()


def test_a_folder_is_no_file(tmp_path):
    for read in ("a saved cluster", "a profile", "properties of a consumer"):
        with pytest.raises(OfframpError):
            READERS[read](tmp_path)
    with pytest.raises(OSError, match="not a regular file"):
        read_regular(tmp_path)
