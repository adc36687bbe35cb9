"""A saved cluster: what is written is read again; what is cut, altered, foreign or of another version is refused."""

from __future__ import annotations

import json
import resource
import shutil
import zipfile
from dataclasses import fields, replace
from datetime import timedelta

import pytest
from typer.testing import CliRunner

from kit.errors import InputError, LabError, ReadError, UnsafePlan
from kit.kraft.metadata_file import load_metadata
from kit.kraft.preflight import judge, preflight_of
from kit.kraft.rehearsal import persistent, rehearse
from kit.kraft.verbs.kraft import app
from kit.tables import schema as tables
from kit.tables.znodes import Znode
from tests.generators import hostile
from tests.kraft_records import SOUND
from tests.unit.saved_cluster import AT, saved_cluster


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "production.save"
    saved_cluster().write(path)
    return path


@pytest.mark.parametrize("name", ["production", *hostile.MARKUP[:3], *hostile.CONTROLS[:3], *hostile.QUOTES[:3]])
def test_written_files_are_read_again(tmp_path, name):
    path, before = tmp_path / "a.save", saved_cluster(name=name)
    before.write(path)
    found = load_metadata(path)
    assert found.znodes.equals(before.znodes)
    assert found.facts.facts == before.facts.facts
    assert found.facts.znodes == before.facts.znodes
    assert list(found.facts.log_dirs) == list(before.facts.log_dirs)
    assert list(found.facts.settings) == list(before.facts.settings)
    assert found.facts.items.equals(before.facts.items)
    assert found.facts.kraft_items is None
    assert (found.cluster_name, found.chroot, found.taken_at, found.taken_by) == (name, "/kafka", AT, "ann")
    assert found.counts == {"znodes": 3, "partitions": 0, "acl": 1, "topic": 1}


def test_the_checks_report_of_the_file_what_they_reported_of_the_cluster(file):
    before = saved_cluster()
    found = preflight_of(load_metadata(file))
    assert found.rows == judge("production", before.facts).rows
    assert {"Z04", "Z10"} <= {each.check_id for each in found.rows if each.is_met is False}
    (note,) = found.notes
    assert "2026-11-24 09:00:00 UTC" in note
    assert "does not show later changes" in note


def test_every_fact_is_saved_so_that_the_file_raises_the_alarm_that_the_cluster_raised(tmp_path):
    plain = saved_cluster()
    facts = replace(
        SOUND,
        behind=timedelta(minutes=3, microseconds=1),
        has_moved_on=True,
        stood_still_s=0.25,
        n_aborted=2,
        control_error="one",
        log_error="two",
        log_source="the log of a:1",
        cluster="production",
        cluster_id="abc",
    )
    assert [each.name for each in fields(facts) if getattr(facts, each.name) == each.default] == []
    before = replace(plain, facts=replace(plain.facts, facts=facts))
    before.write(tmp_path / "a.save")
    found = load_metadata(tmp_path / "a.save")
    assert {each.name: getattr(found.facts.facts, each.name) for each in fields(facts)} == {
        each.name: _as_list(getattr(facts, each.name)) for each in fields(facts)
    }
    rows = preflight_of(found).rows
    assert rows == judge("production", before.facts).rows
    assert any("/migration is 180 s behind" in each.sentence for each in rows if each.is_met is False)


def _as_list(value: object) -> object:
    """Rows of a table are read into a list."""
    return list(value) if isinstance(value, tuple) else value


def test_a_file_that_is_there_stays_as_it_is(file):
    before = file.read_bytes()
    with pytest.raises(InputError, match="exists already"):
        saved_cluster().write(file)
    assert file.read_bytes() == before


def test_if_nothing_can_be_written_it_is_reported(tmp_path):
    with pytest.raises(InputError, match="No such file or directory"):
        saved_cluster().write(tmp_path / "nowhere" / "a.save")


def test_without_space_nothing_is_left(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(InputError, match="was not written: File too large; nothing is left of it"):
            saved_cluster(2000).write(tmp_path / "a.save")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_only_its_owner_may_read_it(file):
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("part", [0.0, 0.01, 0.5, 0.99])
def test_a_cut_file_is_refused(file, part):
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(InputError, match="no complete file of `offramp kraft save`"):
        load_metadata(file)


def altered(file, name: str, change) -> None:
    """The same zip with one member changed."""
    with zipfile.ZipFile(file) as old:
        members = {each: old.read(each) for each in old.namelist()}
    with zipfile.ZipFile(file, "w") as new:
        for each, data in members.items():
            new.writestr(each, change(data) if each == name else data)


def with_manifest(file, **changed) -> None:
    altered(file, "manifest.json", lambda data: json.dumps(json.loads(data) | changed).encode())


def test_a_file_of_another_version_is_refused(file):
    with_manifest(file, version=1)
    with pytest.raises(InputError, match="has version 1 of its format, and this offramp reads 3"):
        load_metadata(file)


def test_a_file_that_is_none_of_these_is_refused(tmp_path, file):
    with pytest.raises(InputError, match="can't be read: No such file"):
        load_metadata(tmp_path / "nowhere")
    with pytest.raises(InputError, match="can't be read: it is not a regular file"):
        load_metadata(tmp_path)
    text = tmp_path / "a.txt"
    text.write_text("hello")
    with pytest.raises(InputError, match="no complete file"):
        load_metadata(text)
    with zipfile.ZipFile(text, "w") as other:
        other.writestr("a", "b")
    with pytest.raises(InputError, match=r"has no manifest\.json"):
        load_metadata(text)
    with_manifest(file, format="something else")
    with pytest.raises(InputError, match="is no file of `offramp kraft save`"):
        load_metadata(file)


def test_an_altered_table_is_found(file):
    altered(file, "items.parquet", lambda data: data[:-1] + b"x")
    with pytest.raises(ReadError, match=r"damaged: items\.parquet is not what was saved"):
        load_metadata(file)


@pytest.mark.parametrize("changed", [{"facts": {}}, {"tables": {}}, {"taken_at": "soon"}, {"settings": [1]}])
def test_a_manifest_that_lacks_something_is_found(file, changed):
    with_manifest(file, **changed)
    with pytest.raises(ReadError, match="is damaged"):
        load_metadata(file)


@pytest.mark.parametrize("arguments", [["rehearse"], ["preflight", "--from"]])
def test_the_commands_refuse_a_cut_file_before_they_do_anything(file, arguments):
    file.write_bytes(file.read_bytes()[:-100])
    ended = CliRunner().invoke(app, [*arguments, str(file)])
    assert ended.exit_code == InputError.exit_code
    assert "no complete file of `offramp kraft save`" in ended.output
    assert "Traceback" not in ended.output


def test_the_preflight_of_a_file_asks_no_cluster_and_ends_by_what_it_found(file):
    ended = CliRunner().invoke(app, ["preflight", "--from", str(file)])
    assert ended.exit_code == UnsafePlan.exit_code
    assert "/kafka-acl/Topic/x: bad" in ended.output
    assert "A saved file does not show later changes" in ended.output


def test_a_cluster_without_brokers_is_not_rehearsed():
    whole = saved_cluster()
    control = replace(whole.facts.facts.control, brokers=())
    empty = replace(whole, facts=replace(whole.facts, facts=replace(whole.facts.facts, control=control)))
    with pytest.raises(InputError, match=r"no broker was in /brokers/ids when the cluster was saved"):
        rehearse(empty)


def test_a_full_disk_is_reported_before_a_server_is_started(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 10**7))
    with pytest.raises(LabError, match=r"needs about 300 MB in .*; 9 MB are free"):
        rehearse(saved_cluster())


def test_ghosts_make_the_brokers_znodes_themselves_whoever_made_them():
    rows = [Znode(path, b"x", 0, 1, 1, owner, AT, None) for path, owner in (
        ("/brokers/ids", None), ("/brokers/ids/1", None), ("/brokers/ids/2", 7), ("/controller", 7), ("/brokers", None)
    )]  # fmt: skip
    whole = replace(saved_cluster(), znodes=tables.ZNODES.from_rows(rows))
    assert [path for path, _ in persistent(whole)] == ["/brokers", "/brokers/ids"]


def test_a_producer_id_block_without_data_is_not_loaded_as_an_empty_one():
    rows = [
        Znode(path, data, 0, 1, 1, None, AT, None)
        for path, data in (("/brokers", b""), ("/latest_producer_id_block", b""))
    ]
    assert [path for path, _ in persistent(replace(saved_cluster(), znodes=tables.ZNODES.from_rows(rows)))] == [
        "/brokers"
    ]
    rows[1] = replace(rows[1], data=b'{"version":1}')
    assert len(list(persistent(replace(saved_cluster(), znodes=tables.ZNODES.from_rows(rows))))) == 2
