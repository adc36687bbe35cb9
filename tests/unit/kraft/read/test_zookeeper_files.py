"""Snapshots and logs of ZooKeeper: every release's layout, what is refused, cut and changed bytes, replay, secrets."""

from __future__ import annotations

import gzip
import random
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from kit.errors import InputError, NotFound, PartialRead, ReadError
from kit.kraft.verbs.znodes import app
from kit.kraft.zookeeper_files import files, index
from kit.kraft.zookeeper_files.snapshot import FIXED
from kit.kraft.zookeeper_history import ZooKeeperFiles, read_zookeeper_files, verify_files
from kit.text.fingerprints import Fingerprints
from tests import zookeeper_records as written
from tests.generators import hostile
from tests.limits import lower
from tests.zookeeper_records import create, delete, failed, multi, set_data, znode

START = datetime.fromtimestamp(written.AT_MS / 1000, UTC)
CREDENTIAL = (
    b'{"version":1,"config":{"SCRAM-SHA-256":"salt=cGVwcGVy,stored_key=aHVzaA==,server_key=aHVzaA==,iterations=4096"}}'
)
OPERATIONS = [
    written.open_session(),
    create("/a", b"0"),
    create("/a/e", b"x", ephemeral=True),
    set_data("/a", b"1", 1),
    multi(create("/m", b"1"), set_data("/a", b"2", 2), written.check("/m", 0)),
    multi(create("/n"), failed("NoNode"), failed("RuntimeInconsistency")),
    failed("NodeExists"),
    create("/c", kind=19),
    create("/t", kind=21),
    delete("/m"),
    written.close_session("/a/e"),
    set_data("/a", None, 3),
]


def write(folder: Path, **files: bytes) -> Path:
    for name, octets in files.items():
        (folder / name.replace("_", ".")).write_bytes(octets)
    return folder


def empty() -> bytes:
    return written.snapshot(znode("/", czxid=0, mzxid=0, pzxid=0))


@pytest.fixture
def history(tmp_path) -> Path:
    """A server's files from its first start."""
    return write(tmp_path, snapshot_0=empty(), log_1=written.log(*written.changes(1, OPERATIONS)))


def held(found: ZooKeeperFiles) -> dict[str, bytes | None]:
    return dict(found.znodes.select("path", "data").rows())


@pytest.mark.parametrize("seals", [1, 2, 3])
def test_the_snapshots_of_every_release(tmp_path, seals):
    """3.4 and 3.5 end with one checksum, 3.6 to 3.8 with two, 3.9 with three."""
    octets = written.snapshot(
        znode("/"),
        znode("/ä", "ü".encode(), 3, czxid=5, mzxid=9, owner=7),
        znode("/container", None, owner=2**63),
        znode("/ttl", owner=0xFF00000000000010, acl=1),
        sessions=[(7, 4000)],
        acls=[(1, written.acl_list((31, "world", "anyone"), (9, "digest", "bob:c2VjcmV0=")))],
        seals=seals,
    )
    found = read_zookeeper_files([write(tmp_path, snapshot_5=octets)])
    assert found.znodes.select("path", "data", "version", "czxid", "mzxid", "ephemeral_owner").rows() == [
        ("/", b"", 0, 1, 1, None),
        ("/container", None, 0, 1, 1, None),
        ("/ttl", b"", 0, 1, 1, None),
        ("/ä", "ü".encode(), 3, 5, 9, 7),
    ]
    assert found.znodes["modified_at"].unique().to_list() == [START]
    assert found.sessions.select("session_id", "timeout_ms").rows() == [(7, 4000)]
    assert found.acls.select("entries", "n_znodes").rows() == [(["world:anyone:acdrw", "digest:bob:***:dr"], 1)]
    assert verify_files(found).startswith("1 file of ZooKeeper: 4 znodes at / as of transaction 0x5, ")


def test_a_znode_may_hold_what_resembles_znodes(tmp_path):
    inner = written.snapshot(znode("/"), znode("/inner", b"x" * 20)) + written.END
    octets = written.snapshot(znode("/"), znode("/a", inner), znode("/a/b", inner[3:]), znode("/" + "n" * 70_000, b""))
    found = read_zookeeper_files([write(tmp_path, snapshot_1=octets)])
    assert held(found) == {"/": b"", "/a": inner, "/a/b": inner[3:], "/" + "n" * 70_000: b""}
    assert verify_files(found)


def packed_as(name: str, octets: bytes) -> bytes:
    """The bytes of a file of this name."""
    if name.endswith("gz"):
        return gzip.compress(octets)
    if not name.endswith("snappy"):
        return octets
    codec = pa.Codec("snappy")
    blocks = [codec.compress(octets[at : at + 32_768], asbytes=True) for at in range(0, len(octets), 32_768)]
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)


@pytest.mark.parametrize("name", ["snapshot.5.gz", "snapshot.5.snappy", "renamed"])
def test_compressed_snapshots(tmp_path, name):
    packed = packed_as(name, written.snapshot(znode("/"), znode("/a", b"1" * 100_000)))
    (tmp_path / name).write_bytes(packed)
    found = read_zookeeper_files([tmp_path / name])
    assert held(found) == {"/": b"", "/a": b"1" * 100_000}
    assert verify_files(found)
    (tmp_path / name).write_bytes(packed[:-200])
    with pytest.raises((PartialRead, NotFound), match=r"ends? too early|was cut|is damaged"):
        verify_files(read_zookeeper_files([tmp_path / name]))


def test_every_operation(history):
    found = read_zookeeper_files([history])
    rows = found.changes.select("zxid", "operation", "part", "path", "version", "data", "ephemeral_owner", "refusal")
    assert rows.rows() == [
        (1, "create_session", None, None, None, None, None, None),
        (2, "create", None, "/a", 0, b"0", None, None),
        (3, "create", None, "/a/e", 0, b"x", 7, None),
        (4, "set_data", None, "/a", 1, b"1", None, None),
        (5, "create", 0, "/m", 0, b"1", None, None),
        (5, "set_data", 1, "/a", 2, b"2", None, None),
        (5, "check", 2, "/m", 0, None, None, None),
        (6, "create", 0, "/n", 0, b"", None, "RolledBack"),
        (6, "failed", 1, None, None, None, None, "NoNode"),
        (6, "failed", 2, None, None, None, None, "RuntimeInconsistency"),
        (7, "failed", None, None, None, None, None, "NodeExists"),
        (8, "create_container", None, "/c", 0, b"", None, None),
        (9, "create_ttl", None, "/t", 0, b"", None, None),
        (10, "delete", None, "/m", None, None, None, None),
        (11, "close_session", None, "/a/e", None, None, None, None),
        (12, "set_data", None, "/a", 3, None, None, None),
    ]
    assert found.changes["session_id"].unique().to_list() == [7]
    assert found.changes["written_at"].to_list()[1] == START + timedelta(seconds=2)
    assert verify_files(found)


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (0.5, {"/": b""}),
        (2, {"/": b"", "/a": b"0"}),
        (4, {"/": b"", "/a": b"1", "/a/e": b"x"}),
        (5, {"/": b"", "/a": b"2", "/a/e": b"x", "/m": b"1"}),
        (99, {"/": b"", "/a": None, "/c": b"", "/t": b""}),
    ],
)
def test_the_content_of_a_znode_at_a_time_is_found(history, second, expected):
    found = read_zookeeper_files([history], at=START + timedelta(seconds=second))
    assert held(found) == expected


def test_only_what_is_below_a_path(history):
    found = read_zookeeper_files([history], "/a", START + timedelta(seconds=4))
    assert held(found) == {"/a": b"1", "/a/e": b"x"}
    assert found.changes["path"].unique().sort().to_list() == ["/a", "/a/e"]
    assert len(found.changes) == 6


def test_a_snapshot_that_was_written_while_the_server_continued(tmp_path):
    """It has transaction 5 and lacks 4: the logs make both good; as of 3 it shows nothing, an older one does."""
    fuzzy = written.snapshot(znode("/", pzxid=5), znode("/a", b"2", 2, czxid=2, mzxid=5), znode("/m", czxid=5, mzxid=5))
    logs = written.log(*written.changes(1, OPERATIONS[:6]))
    folder = write(tmp_path, snapshot_0=empty(), snapshot_2=fuzzy, log_1=logs)
    now = read_zookeeper_files([folder])
    assert held(now) == {"/": b"", "/a": b"2", "/a/e": b"x", "/m": b"1"}
    assert len(now.files) == 2  # The older snapshot was not needed.
    assert held(read_zookeeper_files([folder], at=START + timedelta(seconds=3))) == {"/": b"", "/a": b"0", "/a/e": b"x"}


def test_before_3_6_the_end_of_a_session_does_not_report_what_went(tmp_path):
    operations = [*OPERATIONS[:3], written.close_session(is_told=False)]
    logs = written.log(*written.changes(1, operations, has_digest=False))
    found = read_zookeeper_files([write(tmp_path, snapshot_0=empty(), log_1=logs)])
    assert held(found) == {"/": b"", "/a": b"0"}
    assert found.changes.select("operation", "path").rows()[-1] == ("close_session", "/a/e")
    at_session = read_zookeeper_files([tmp_path], "/a/e")
    assert at_session.changes["operation"].to_list() == ["create", "close_session"]


def test_a_digest_alone_is_no_list_of_znodes(tmp_path):
    """A server from 3.6 on that is reported not to list them."""
    folder = write(tmp_path, log_1=written.log(written.transaction(1, (-11, b""))))
    assert read_zookeeper_files([folder]).changes.select("operation", "path").rows() == [("close_session", None)]


def test_logs_without_a_snapshot_report_what_they_do_not_know(tmp_path):
    write(tmp_path, log_9=written.log(*written.changes(9, [set_data("/a", b"1", 4)])))
    found = read_zookeeper_files([tmp_path])
    assert found.znodes.select("path", "data", "version", "czxid").rows() == [("/a", b"1", 4, None)]
    assert "There is no snapshot before these logs" in repr(found)


@pytest.mark.parametrize("octets", [b"", b"PK\3\4 something else", bytes(500)], ids=["empty", "foreign", "zeros"])
def test_a_snapshot_that_can_t_be_read_hides_no_other(history, octets):
    """A full disk leaves an empty snapshot behind: the server starts from the one before, so its files are readable."""
    whole = read_zookeeper_files([history])
    write(history, snapshot_5=octets)
    found = read_zookeeper_files([history])
    assert held(found) == held(whole)
    with pytest.raises(PartialRead, match=r"snapshot\.5: is neither a snapshot nor a transaction log of ZooKeeper"):
        verify_files(found)


def test_missing_transactions_are_reported(tmp_path):
    logs = written.log(*written.changes(1, OPERATIONS[:2]), *written.changes(7, [set_data("/a", b"9", 9)]))
    found = read_zookeeper_files([write(tmp_path, snapshot_0=empty(), log_1=logs)])
    with pytest.raises(PartialRead, match=r"transactions 0x3 to 0x6 are missing"):
        verify_files(found)


def test_a_new_leader_counts_again(tmp_path):
    epoch = 2**32
    logs = written.log(*written.changes(1, OPERATIONS[:2]), written.transaction(epoch + 1, set_data("/a", b"9", 9)))
    assert verify_files(read_zookeeper_files([write(tmp_path, snapshot_0=empty(), log_1=logs)]))


def test_nothing_is_known_of_a_time_before_all_files(tmp_path):
    write(tmp_path, snapshot_5=written.snapshot(znode("/")))
    with pytest.raises(NotFound, match=r"contain nothing of .* all of them begin later"):
        read_zookeeper_files([tmp_path], at=START - timedelta(days=1))


def test_paths_that_are_none_of_zookeeper(tmp_path):
    with pytest.raises(InputError, match="there is no file or folder"):
        read_zookeeper_files([tmp_path / "nosuch"])
    with pytest.raises(NotFound, match="holds no snapshot"):
        read_zookeeper_files([tmp_path])
    (tmp_path / "snapshot.1").write_bytes(b"PK\3\4 something else")
    with pytest.raises(ReadError, match=r"is neither a snapshot nor a transaction log of ZooKeeper"):
        read_zookeeper_files([tmp_path])
    with pytest.raises(InputError, match="given twice"):
        read_zookeeper_files([tmp_path, tmp_path / "snapshot.1"])


def test_secrets_are_redacted_or_compared_by_fingerprint(tmp_path):
    operations = [
        create("/config/users/al", CREDENTIAL),
        create(
            "/chroot/config/brokers/1", b'{"version":1,"config":{"log.cleaner.threads":"2","ssl.key.password":"hush"}}'
        ),
        create("/delegation_token/tokens/t", b'{"owner":"User:a","hmac":"hush"}'),
        create("/app/settings", b"user=al\npassword=hush-hush"),
        create("/consumers/password=x/ids/y", b"password=x_host-1"),
        create("/config/users/torn", b"hush"),
    ]
    write(tmp_path, snapshot_0=empty(), log_1=written.log(*written.changes(1, operations)))
    found = read_zookeeper_files([tmp_path])
    for frame in (found.znodes, found.changes):
        data = dict(frame.drop_nulls("data").select("path", "data").rows())
        assert data["/config/users/al"] == CREDENTIAL.replace(b"cGVwcGVy", b"***").replace(b"aHVzaA==", b"***")
        assert data["/chroot/config/brokers/1"].count(b"***") == data["/config/users/torn"].count(b"***") == 1
        assert data["/app/settings"] == b"user=al\npassword=***"
        assert data["/consumers/password=x/ids/y"] == b"password=x_host-1"
        assert b"hush" not in b"".join(data.values())
    once, again = (read_zookeeper_files([tmp_path], hide=hide) for hide in [Fingerprints()] * 2)
    other = read_zookeeper_files([tmp_path], hide=Fingerprints())
    assert held(once) == held(again) != held(other)
    assert held(once)["/config/users/al"].count(b"=hmac:") == 3
    assert b"aHVzaA" not in held(once)["/config/users/al"]


def test_whatever_bytes_are_changed_nothing_else_happens(tmp_path, history):
    """One clear error each, or rows with an account of what is wrong; never anything else."""
    chance = random.Random(4)
    whole = {each.name: each.read_bytes() for each in history.iterdir()}
    whole["snapshot.0"] = written.snapshot(
        znode("/"),
        znode("/a", b"data"),
        znode("/b", None),
        sessions=[(7, 1)],
        acls=[(1, written.acl_list((1, "ip", "h")))],
    )
    n_wrong = 0
    for number in range(100):
        name = chance.choice(sorted(whole))
        octets = bytearray(whole[name].rstrip(b"\0") if name.startswith("log") else whole[name])
        at = chance.randrange(4, len(octets))
        if number % 2:
            octets[at] ^= 1 << chance.randrange(8)
        else:
            del octets[at:]
        folder = tmp_path / f"{number}"
        folder.mkdir()
        write(folder, **{**whole, name: bytes(octets)})
        try:
            verify_files(read_zookeeper_files([folder]))
        except (PartialRead, ReadError):
            n_wrong += 1
    assert n_wrong > 95


def test_a_wrong_length_delays_no_reader(tmp_path):
    for octets in (struct.pack(">i", 2**31 - 1), struct.pack(">i", -5), b"\xff" * 40):
        write(tmp_path, snapshot_1=b"ZKSN" + struct.pack(">iq", 2, -1) + octets * 9)
        with pytest.raises((PartialRead, NotFound), match=r"can't follow|ends? too early|no complete znode"):
            verify_files(read_zookeeper_files([tmp_path]))


@pytest.mark.parametrize("name", ["snapshot.1", "snapshot.1.gz", "snapshot.1.snappy", "notes.txt"])
def test_a_file_without_room_in_memory_is_refused(tmp_path, name, monkeypatch):
    """A few kilobytes of gzip or snappy become gigabytes, and any file may be named by mistake."""
    lower(monkeypatch, files, MOST_BYTES=2**20)
    octets = written.snapshot(znode("/", czxid=0), znode("/a", bytes(2**22)))
    (tmp_path / name).write_bytes(packed_as(name, octets))
    with pytest.raises(
        (ReadError, NotFound), match=r"more than a third of this machine's memory|is larger than a third"
    ):
        read_zookeeper_files([tmp_path / name])


def test_a_stranger_is_refused_by_how_it_begins(tmp_path):
    with (tmp_path / "notes").open("wb") as file:
        file.write(b"hello")
        file.truncate(files.MOST_BYTES - 1)  # sparse: no machine has so much memory twice
    with pytest.raises(ReadError, match="it begins with b'hell'"):
        read_zookeeper_files([tmp_path / "notes"])


def test_a_znode_larger_than_any_server_takes_is_none(tmp_path, monkeypatch):
    """Two that are declared 2 GiB, in a file with holes, would have no room in a column together."""
    lower(monkeypatch, index, MOST_DATA=1000)
    write(tmp_path, snapshot_1=written.snapshot(znode("/", czxid=0), znode("/a", bytes(1001))))
    with pytest.raises(NotFound, match="no complete znode is at byte 100 of"):
        read_zookeeper_files([tmp_path])


def told(*words: str) -> tuple[int, str, str]:
    ended = CliRunner().invoke(app, list(words))
    return ended.exit_code, ended.stdout, ended.stderr


def test_the_verb(history):
    code, out, err = told(str(history), "--path", "/a", "--at", f"{START + timedelta(seconds=4):%FT%T.%f}")
    assert code == 0
    assert [line.split()[:3] for line in out.splitlines()[1:]] == [["/a", "1", "0x4"], ["/a/e", "0", "0x3"]]
    assert "2 znodes at /a as of transaction 0x4" in err
    code, out, _ = told(str(history), "--history", "--json")
    assert (code, out.count('"session_id": "0x7"')) == (0, 16)
    assert told(str(history), "--path", "/none")[0] == 8
    assert told(str(history), "--path", "a")[0] == told("--history")[0] == 2


@pytest.mark.parametrize("name", [name for name in hostile.GROUPS if 0 < len(name) < 250][::5])
def test_hostile_names_are_rows(tmp_path, name):
    path = f"/consumers/{name.replace('/', ':')}"
    data = name.encode(errors="replace")
    write(tmp_path, snapshot_1=written.snapshot(znode("/"), znode(path.encode(errors="replace").decode(), data)))
    code, out, err = told(str(tmp_path))
    assert code == 0
    assert {char for char in out + err if not char.isprintable()} <= {"\n"}


def test_a_path_that_is_no_utf_8(tmp_path):
    torn = znode("/ab", b"x").replace(b"/ab", b"/\xff\xfe")
    found = read_zookeeper_files([write(tmp_path, snapshot_1=written.snapshot(znode("/"), torn))])
    assert found.znodes.filter(pl.col("error") == "the znode's path is no UTF-8")["path"].to_list() == ["/\ufffd\ufffd"]


def test_the_fixed_part_of_a_znode():
    assert FIXED.itemsize == len(znode("/")) - 8
