"""Many files of ZooKeeper by Spark's tasks: the same rows and account as one by one; what can't be read is named."""

from __future__ import annotations

import polars as pl
from polars.testing import assert_frame_equal

from kit.kraft.zookeeper_history import read_files, read_zookeeper_files
from tests import zookeeper_records as written
from tests.zookeeper_records import create, set_data, znode


def test_many_files(tmp_path, spark):
    folders = []
    for number in range(3):
        folder = tmp_path / f"server-{number}" / "version-2"
        folder.mkdir(parents=True)
        snapshot = written.snapshot(znode("/"), znode("/a", b"%d" % number), znode("/config/users/al", b"hush"))
        (folder / "snapshot.5").write_bytes(snapshot if number < 2 else snapshot[:-30])
        changes = written.changes(6, [create("/b"), set_data("/b", b"%d" % number, 1)])
        (folder / "log.6").write_bytes(written.log(*changes))
        folders.append(folder.parent)
    (folders[0] / "version-2" / "log.9").write_bytes(b"something else")
    found = read_files(spark, folders)
    assert found.files["is_whole"].to_list() == [True, False, True, True, True, True, False]
    assert "is neither a snapshot nor a transaction log" in found.files["problems"][1][0]
    assert found.files["n_rows"].sum() == 3 * 3 + 3 * 2
    znodes, changes = (pl.DataFrame(each.toArrow()) for each in (found.znodes, found.changes))
    for folder in folders[1:2]:
        files = folder / "version-2"
        mine = znodes.filter(file=str(files / "snapshot.5")).drop("file").sort("path")
        assert_frame_equal(mine, read_zookeeper_files([files / "snapshot.5"]).znodes)
        mine = changes.filter(file=str(files / "log.6"))
        assert_frame_equal(mine, read_zookeeper_files([files / "log.6"]).changes)
    assert znodes["data"].to_list().count(b"***") == 3
