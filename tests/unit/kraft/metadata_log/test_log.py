"""Files of a log → records, image, account; damage, gaps, checkpoints, files of others."""

from __future__ import annotations

import polars as pl
import pytest

from kit.errors import InputError, NotFound, PartialRead
from kit.kraft.metadata_log import read_log, verify_log
from kit.kraft.metadata_log.files import find_files
from kit.kraft.metadata_log.tasks import account, records
from kit.tables import schema as tables
from tests import metadata_records as written

NO_OP = written.value("NoOp")
THREE = [written.topic("a", 1), written.partition(1, 0), written.topic("b", 2)]


def topics(log) -> list[str]:
    return sorted(each.name for each in log.image.topics.values())


def test_a_log_from_its_beginning(tmp_path):
    data = tmp_path / "data"
    written.write_log(
        data / "__cluster_metadata-0", {0: written.segment(*THREE), 3: written.segment(NO_OP, base_offset=3)}
    )
    for place in (data, data / "__cluster_metadata-0", str(data)):
        log = read_log(place)
        assert topics(log) == ["a", "b"]
        assert (log.image.offset, log.image.stopped) == (3, None)
        assert log.types == {"NoOp": 1, "Partition": 1, "Topic": 2}
        assert log.files["is_whole"].all()
    assert log.records["offset"].to_list() == [0, 1, 2, 3]
    assert log.partitions["topic"].to_list() == ["a"]
    assert log.nodes.is_empty()
    assert verify_log(log) == str(log)
    assert str(log).startswith(
        "2 files, 4 records: 1 NoOp, 1 Partition, 2 Topic; 0 control records, 0 of unknown types"
    )


def test_the_newest_whole_checkpoint_and_what_is_behind_it(tmp_path):
    folder = written.write_log(
        tmp_path,
        {
            0: written.segment(*THREE),
            3: written.segment(written.value("RemoveTopic", {"topicId": written.uuid(1)}), base_offset=3),
        },
        {
            (2, 1): written.checkpoint(written.topic("old", 8)),
            (3, 1): written.checkpoint(written.topic("a", 1), written.topic("checkpointed", 9)),
        },
    )
    log = read_log(folder)
    assert topics(log) == ["checkpointed"]
    assert (log.image.offset, log.image.problems, log.image.stopped) == (3, [], None)
    assert log.items.filter(pl.col("kind") == "topic")["offset"].to_list() == [2]
    assert log.files["kind"].to_list() == ["checkpoint", "checkpoint", "segment", "segment"]
    assert log.files["base_offset"].to_list() == [2, 3, 0, 3]
    assert log.files["n_control"].to_list() == [2, 2, 0, 0]


def test_a_checkpoint_alone_is_as_of_its_end(tmp_path):
    folder = written.write_log(tmp_path, {}, {(40, 7): written.checkpoint(written.topic("a", 1), epoch=7)})
    log = read_log(folder)
    assert (topics(log), log.image.offset, log.image.epoch) == (["a"], 39, 7)
    assert log.image.written_ms == 1_795_409_383_352
    assert log.files["epoch"].to_list() == [7]


@pytest.mark.parametrize("cut", [1, 20, 80, 140])
def test_a_checkpoint_without_its_footer_is_not_used(tmp_path, cut):
    whole, half = written.checkpoint(written.topic("whole", 1)), written.checkpoint(written.topic("half", 2))
    folder = written.write_log(
        tmp_path, {3: written.segment(NO_OP, base_offset=3)}, {(3, 1): whole, (5, 1): half[:-cut]}
    )
    log = read_log(folder)
    assert topics(log) == ["whole"]
    assert log.files.filter(pl.col("base_offset") == 5)["is_whole"].to_list() == [False]
    with pytest.raises(PartialRead, match="the file ends within"):
        verify_log(log)


def test_a_log_without_its_beginning_has_no_image(tmp_path):
    log = read_log(written.write_log(tmp_path, {10: written.segment(*THREE, base_offset=10)}))
    assert topics(log) == []
    assert (log.image.offset, log.image.stopped) == (-1, "after offset -1: offsets 0..9 are missing")
    assert log.records["name"].to_list() == ["Topic", "Partition", "Topic"]
    with pytest.raises(PartialRead, match=r"The image stops after offset -1: offsets 0\.\.9 are missing"):
        verify_log(log)


def test_a_missing_segment_is_a_gap_and_the_image_stops_there(tmp_path):
    folder = written.write_log(
        tmp_path, {0: written.segment(*THREE), 5: written.segment(written.topic("late", 3), base_offset=5)}
    )
    log = read_log(folder)
    assert (topics(log), log.image.offset) == (["a", "b"], 2)
    assert log.image.stopped == "after offset 2: offsets 3..4 are missing"
    assert log.files["gaps"].to_list() == [[], ["3..4"]]
    assert log.records["error"].to_list() == [None, None, None, "offsets 3..4 are missing", None]
    assert log.files["n_records"].sum() == len(log.records)


def test_a_damaged_batch_stops_the_image_and_is_one_row(tmp_path):
    octets = bytearray(written.segment(*THREE, written.topic("c", 3), written.topic("d", 4)))
    second = len(written.segment(*THREE[:2]))
    octets[second + 70] ^= 0x10
    log = read_log(written.write_log(tmp_path, {0: bytes(octets)}))
    assert (topics(log), log.image.offset) == (["a"], 1)
    assert "checksum" in log.image.stopped
    assert log.records["offset"].to_list() == [0, 1, None, None, 4]
    assert log.files["n_errors"].to_list() == [2]
    assert log.files["gaps"].to_list() == [["2..3"]]


def test_damage_before_the_checkpoint_s_end_does_not_matter(tmp_path):
    octets = bytearray(written.segment(*THREE, NO_OP, written.topic("new", 3)))
    octets[70] ^= 0x10
    folder = written.write_log(tmp_path, {0: bytes(octets)}, {(4, 1): written.checkpoint(*THREE)})
    log = read_log(folder)
    assert (topics(log), log.image.offset, log.image.stopped) == (["a", "b", "new"], 4, None)
    assert log.files["is_whole"].to_list() == [True, False]


def test_files_of_two_clusters_are_reported(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    written.write_log(one, {0: written.segment(*THREE, epoch=4)})
    written.write_log(other, {3: written.segment(NO_OP, base_offset=3, epoch=2)})
    log = read_log([one, other])
    assert log.image.stopped == "after offset 2: epoch 2 comes after 4: this record belongs to another log"
    overlapping = tmp_path / "overlapping"
    written.write_log(overlapping, {1: written.segment(NO_OP, base_offset=1, epoch=4)})
    log = read_log([one, overlapping])
    assert log.image.stopped == "after offset 2: offset 1 comes after 2: this record belongs to another log"


def test_a_transaction_that_continues_in_the_next_segment(tmp_path):
    begin, end = written.value("BeginTransaction"), written.value("EndTransaction")
    folder = written.write_log(
        tmp_path,
        {
            0: written.segment(begin, written.topic("a", 1)),
            2: written.segment(written.topic("b", 2), end, base_offset=2),
        },
    )
    log = read_log(folder)
    assert topics(log) == ["a", "b"]
    assert log.records["transaction"].to_list() == ["committed"] * 4


def test_records_of_a_newer_kafka_are_counted_and_kept(tmp_path):
    later = [written.framed(29, 0, b"later"), written.framed(29, 0, b"again"), written.framed(2, 3, b"x")]
    log = read_log(written.write_log(tmp_path, {0: written.segment(*THREE, *later)}))
    assert log.files["unknown"].to_list() == [["2 v3: 1", "29 v0: 2"]]
    assert (log.files["n_unknown"].item(), log.files["n_errors"].item()) == (3, 0)
    assert log.records["raw"].drop_nulls().to_list() == later
    assert (log.image.offset, log.image.stopped, len(log.image.problems)) == (5, None, 3)
    with pytest.raises(PartialRead, match="type 29 v0: 2 is not known"):
        verify_log(log)


def test_single_files_by_any_name(tmp_path):
    copied, bootstrap = tmp_path / "copy of a log", tmp_path / "bootstrap.checkpoint"
    copied.write_bytes(written.segment(*THREE))
    bootstrap.write_bytes(
        written.checkpoint(written.value("FeatureLevel", {"name": "metadata.version", "featureLevel": 21}))
    )
    assert topics(read_log(copied)) == ["a", "b"]
    assert read_log(bootstrap).items["value"].to_list() == ["21"]
    assert topics(read_log([copied])) == ["a", "b"]


def test_empty_files_are_no_error(tmp_path):
    log = read_log(written.write_log(tmp_path, {0: b""}))
    assert (len(log.records), log.image.offset) == (0, -1)
    assert log.partitions.is_empty()
    assert log.items.is_empty()


def test_paths_that_are_none(tmp_path):
    with pytest.raises(InputError, match="there is no file or folder"):
        read_log(tmp_path / "gone")
    with pytest.raises(NotFound, match="holds no segment and no checkpoint"):
        read_log(tmp_path)
    folder = written.write_log(tmp_path / "log", {0: b""})
    with pytest.raises(InputError, match="given twice"):
        read_log([folder, folder / f"{0:020}.log"])


def test_a_name_with_an_offset_that_no_log_has(tmp_path):
    (tmp_path / ("9" * 20 + ".log")).write_bytes(written.segment(*THREE))
    (tmp_path / ("9" * 20 + "-" + "9" * 10 + ".checkpoint")).write_bytes(b"")
    log = read_log(tmp_path)
    assert log.files["base_offset"].to_list() == [None, None]
    assert topics(log) == ["a", "b"]


def test_no_secret_is_in_a_table(tmp_path):
    values = [written.credential("alice", b"hush-hush"), written.config(4, "1", "ssl.key.password", "hush-hush")]
    log = read_log(written.write_log(tmp_path, {0: written.segment(*values)}, {(2, 1): written.checkpoint(*values)}))
    for frame in (log.records, log.items, log.partitions, log.nodes, log.files):
        told = str(frame.to_dicts())
        assert "hush" not in told
        assert "aHVzaC" not in told  # in base64
    assert log.items["is_secret"].to_list() == [True, True]
    assert "hush" not in str(vars(log.image))


def test_tasks_read_what_the_driver_reads(tmp_path):
    folder = written.write_log(
        tmp_path,
        {0: written.segment(*THREE), 3: written.segment(NO_OP, base_offset=3)},
        {(3, 1): written.checkpoint(*THREE)},
    )
    files = find_files(folder)
    numbers = [pl.DataFrame({"id": [each]}).to_arrow().to_batches()[0] for each in range(len(files))]
    log = read_log(folder)
    rows = pl.concat([pl.DataFrame(batch) for batch in records(files)(numbers)])
    assert rows.equals(log.records)
    counted = pl.concat([pl.DataFrame(batch) for batch in account(files)(numbers)])
    assert counted.equals(log.files)


def test_a_file_that_is_gone_where_tasks_run_is_a_row(tmp_path):
    files = find_files(written.write_log(tmp_path, {0: written.segment(*THREE)}))
    (tmp_path / f"{0:020}.log").unlink()
    numbers = [pl.DataFrame({"id": [0]}).to_arrow().to_batches()[0]]
    (row,) = pl.concat([pl.DataFrame(batch) for batch in account(files)(numbers)]).to_dicts()
    assert row["problems"] == [f"{files[0].name} can't be read: No such file or directory"]
    assert (row["n_records"], row["n_errors"], row["is_whole"]) == (0, 1, False)


def test_tables_are_spark_s_too():
    assert "raw binary" in tables.METADATA_RECORDS.spark_row_schema
    assert "replicas array<int> NOT NULL" in tables.METADATA_PARTITIONS.spark_row_schema


def test_the_distance_of_an_offset_is_measured(tmp_path):
    first, second = written.batch(0, THREE, first_ms=1_000), written.batch(3, [NO_OP], first_ms=21_000)
    log = read_log(written.write_log(tmp_path, {0: first + second}))
    assert [log.behind(offset).total_seconds() for offset in (-1, 1, 2, 3)] == [20, 20, 0, 0]


def test_registrations_and_control_records_need_not_be_written_to_zookeeper(tmp_path):
    """Seen on 3.9.1 after an election with metadata.max.idle.interval.ms=0."""
    elected = written.control(3, "LeaderChange", epoch=2)
    registered = written.batch(4, [written.value("RegisterController"), written.broker(1)], epoch=2)
    changed = written.segment(NO_OP, base_offset=6, epoch=2)
    log = read_log(written.write_log(tmp_path, {0: written.segment(*THREE) + elected + registered + changed}))
    assert log.image.offset == 6
    assert [log.has_moved_on(offset) for offset in (1, 2, 5, 6)] == [True, True, True, False]
    log = read_log(written.write_log(tmp_path / "at rest", {0: written.segment(*THREE) + elected + registered}))
    assert [log.has_moved_on(offset) for offset in (1, 2, 3, 5)] == [True, False, False, False]
