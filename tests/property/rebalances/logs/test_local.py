"""Logs read in this process and by Spark's tasks: the same events, lines and accounts."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from kit.errors import InputError, NotFound
from kit.rebalances.logs import read_client_logs, scan
from kit.rebalances.logs.local import SMALL, files_here, read_logs_here
from kit.rebalances.sources import read_rebalances, reads_here
from tests.generators import log_texts
from tests.limits import lower

ORDER = ("file", "line")


def assert_same(spark, paths, **options):
    by_spark = read_client_logs(spark, paths, **options)
    here = read_logs_here(files_here(paths), **options)
    assert_frame_equal(here.files, by_spark.files)
    for name in ("events", "unknown_lines"):
        wanted = pl.DataFrame(getattr(by_spark, name).toArrow())
        assert_frame_equal(getattr(here, name).sort(ORDER), wanted.sort(ORDER), check_row_order=True)
    return here


def test_the_corpus_is_read_alike(spark, tmp_path):
    folder = log_texts.write(tmp_path)
    log_texts.write_torn(folder / "torn.log.gz")
    here = assert_same(spark, [str(folder)])
    assert len(here.events) > 100
    assert len(here.unknown_lines) > 0
    assert {"truncated", "binary", "empty", "zone unknown"} <= set(here.files["problem"])


def test_zone_layout_patterns_and_relative_names_are_read_alike(spark, tmp_path, monkeypatch):
    folder = log_texts.write(tmp_path)
    (folder / "a name with 100% of it ü.log").write_text(log_texts.JAVA_0_11)
    monkeypatch.chdir(folder)
    assert_same(spark, [str(folder / "java*.log"), str(folder / "java011.log")], zone="Europe/Paris")
    assert_same(spark, [str(folder / "a name*"), str(folder / "spring34.log")], layout="spring")
    assert set(files_here(["java011.log", "../" + folder.name + "/jul.log"])) == {
        str(folder / "java011.log"),
        str(folder / "jul.log"),
    }


def test_several_blocks_of_a_file_are_read_alike(spark, tmp_path, monkeypatch):
    lower(monkeypatch, scan, BLOCK=5_000)
    (tmp_path / "long.log").write_text(log_texts.JAVA_0_11 * 100)
    here = assert_same(spark, [str(tmp_path / "long.log")], zone="UTC")
    assert len(here.events) == 600


def test_large_input_is_read_by_spark(tmp_path):
    file = tmp_path / "app.log"
    file.write_text(log_texts.JAVA_0_11)
    assert files_here([str(file)]) == {str(file): len(log_texts.JAVA_0_11)}
    assert files_here([str(file)], most=10) is None
    for path in ("s3a://logs/app.log", f"file:{file}", str(tmp_path / "app.{log,txt}"), str(tmp_path / "[a]pp.log")):
        assert files_here([path]) is None, path
    assert not reads_here([])
    (tmp_path / "rotated.log.gz").write_bytes(b"x" * 100)
    assert files_here([str(tmp_path)], most=1000) is None  # It may be ten times as long.
    assert files_here([str(tmp_path)], most=SMALL) is not None
    (tmp_path / "_SUCCESS").touch()
    assert files_here([str(tmp_path)]) is None
    (tmp_path / "_SUCCESS").unlink()
    (tmp_path / "folder").mkdir()
    assert files_here([str(tmp_path)]) is None


def test_a_small_gzip_may_be_a_large_log(tmp_path):
    """A megabyte of lines that are all alike becomes a gigabyte: in one process that is six of memory."""
    (tmp_path / "app.log.gz").write_bytes(gzip.compress(bytes(1_000_000)))
    assert files_here([str(tmp_path)], most=999_999) is None
    assert files_here([str(tmp_path)], most=1_000_000) is not None
    (tmp_path / "app.log.gz").write_bytes(gzip.compress(b"as short as logs can be")[:-4] + b"\xff" * 4)
    assert files_here([str(tmp_path)], most=1_000_000) is not None  # cut: whatever is at its end


def test_no_such_log_and_no_spark_are_refused(tmp_path):
    for path in ("nosuch.log", "nosuch*.log"):
        with pytest.raises(NotFound, match="no log at"):
            reads_here([str(tmp_path / path)])
    with pytest.raises(InputError, match="give a session"):
        read_rebalances(None, ["s3a://logs/app.log"])


def test_the_story_needs_no_spark(tmp_path):
    file = Path(tmp_path / "app.log")
    file.write_text(log_texts.JAVA_0_11)
    told = read_rebalances(None, str(file), zone="UTC")
    assert len(told.events) == 6
    assert told.unknown_wordings()["n_lines"].to_list() == [1]
    assert told.verify().startswith("1 file, 9 lines: 6 events")


def test_a_secret_in_a_log_is_not_passed_on(tmp_path):
    """The story is pasted into tickets; a line that nobody knows may hold anything."""
    prefix, logger = (
        "INFO [Consumer clientId=c, groupId=g]",
        "(org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)",
    )
    lines = (
        "Successfully joined group with generation Generation{generationId=5, memberId='c-1', protocol='range'}",
        "Request joining group due to: token=hunter2 expired",
        'The group coordinator rejoin heartbeat used jaas.config=Plain required password="hunter2";',
    )
    log = tmp_path / "a.log"
    log.write_text("".join(f"2024-01-01 00:00:0{n},000 {prefix} {line} {logger}\n" for n, line in enumerate(lines)))
    found = read_rebalances(None, [str(log)])
    shown = [*found.describe(), *map(str, found.unknown_wordings().rows()), *map(str, found.events["reason"])]
    assert "hunter2" not in " ".join(shown)
    assert "token=*** expired" in " ".join(shown)
    assert len(found.unknown_wordings()) == 1
