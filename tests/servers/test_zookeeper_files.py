"""Files that real ZooKeeper servers wrote, 3.8 and 3.4: the live servers, and ZooKeeper's own tools, say the same."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from kazoo.client import KazooClient
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl
from polars.testing import assert_frame_equal

from kit.kraft.read.znode_tree import fetch_znodes
from kit.kraft.zookeeper_history import ZooKeeperFiles, read_zookeeper_files, verify_files
from kit.lab.java import jars, jvm
from kit.lab.process import ProcessSupervisor, wait_until
from kit.lab.servers.zookeeper import ZooKeeper
from tests.servers.awaiting import SECONDS

SECRET = "hush-hush"
SETTINGS = {"snapCount": "40", "preAllocSize": "64"}
SERVERS = [
    pytest.param(("3.8", {"snapshot.compression.method": "gz"}), id="3.8-gz"),
    pytest.param(("3.8", {"snapshot.compression.method": "snappy"}), id="3.8-snappy"),
    pytest.param(("3.4", {}), id="3.4"),
]


@dataclass(frozen=True)
class Server:
    server: ZooKeeper
    live: pl.DataFrame
    files: ZooKeeperFiles

    @property
    def folder(self) -> Path:
        return self.server.supervisor.folder / "zookeeper" / "data" / "version-2"

    def run(self, main: str, *arguments: str) -> str:
        jar_set = jars.SERVERS if self.server.version == "3.8" else jars.OLD_CONSUMERS["1.1.1"]
        command = jvm.java(jars.class_path(jar_set), main, arguments, 64, self.server.supervisor.folder)
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module", params=SERVERS)
def server(request) -> Iterator[Server]:
    version, settings = request.param
    supervisor = ProcessSupervisor()
    try:
        zookeeper = ZooKeeper(supervisor, version, settings=SETTINGS | settings)
        zookeeper.start()
        client = KazooClient(zookeeper.connect)
        client.start()
        try:
            change_much(client, zookeeper)
            live = pl.DataFrame(fetch_znodes(client)).sort("path")
            # While it runs, as an operator copies them.
            files = read_with_a_snapshot(zookeeper.supervisor.folder / "zookeeper" / "data")
        finally:
            client.stop()
            client.close()
        yield Server(zookeeper, live, files)
    finally:
        supervisor.close()


def read_with_a_snapshot(folder: Path) -> ZooKeeperFiles:
    """The server writes snapshots beside its other work: the files once the newest one is whole and is not the first,
    which is empty."""
    found = list[ZooKeeperFiles]()

    def is_whole() -> bool:
        found[:] = [read_zookeeper_files([folder])]
        snapshots = found[0].files.filter(pl.col("kind") == "snapshot")
        return bool(found[0].files["is_whole"].all()) and (snapshots["zxid"].min() or 0) > 0

    wait_until(is_whole, "a whole snapshot", SECONDS)
    return found[0]


def change_much(client: KazooClient, zookeeper: ZooKeeper) -> None:
    client.create("/mine", b"x", acl=[make_digest_acl("bob", SECRET, all=True), *OPEN_ACL_UNSAFE])
    for number in range(12):
        client.create(f"/consumers/g{number}/offsets/orders/0", b"%d" % number, makepath=True)
    for number in range(60):
        client.set("/consumers/g1/offsets/orders/0", b"%d" % number)
    credential = f"salt=c2FsdA==,stored_key={SECRET},server_key={SECRET},iterations=4096"
    client.create(
        "/config/users/al", f'{{"version":1,"config":{{"SCRAM-SHA-256":"{credential}"}}}}'.encode(), makepath=True
    )
    client.create("/größe", "ü".encode())
    other = KazooClient(zookeeper.connect)
    other.start()
    other.create("/consumers/g2/ids/gone", b"{}", ephemeral=True, makepath=True)
    other.stop()
    other.close()
    client.create("/consumers/g2/ids/here", b"{}", ephemeral=True)
    done = client.transaction()
    done.create("/m", b"1")
    done.set_data("/m", b"2")
    done.check("/m", 1)
    assert len(done.commit()) == 3
    failed = client.transaction()
    failed.create("/n", b"1")
    failed.delete("/nothing")
    assert [type(each).__name__ for each in failed.commit()] == ["RolledBackError", "NoNodeError"]
    client.delete("/m")
    client.set_acls("/größe", [make_digest_acl("bob", SECRET, read=True), *OPEN_ACL_UNSAFE])


def test_the_files_hold_what_the_server_answers(server):
    """Snapshots were taken while it continued; the logs make each of them whole."""
    assert verify_files(server.files)
    ours = [name for name in server.live["path"] if not name.startswith("/zookeeper")]
    assert_frame_equal(
        server.files.znodes.filter(pl.col("path").is_in(ours)), server.live.filter(pl.col("path").is_in(ours))
    )
    assert set(server.files.znodes["path"]) == set(server.live["path"])
    assert len(ours) > 45
    assert server.files.znodes["ephemeral_owner"].null_count() == len(server.live) - 1


def test_no_secret_is_in_a_table(server):
    for frame in (server.files.znodes, server.files.changes, server.files.acls, server.files.files, server.live):
        assert SECRET not in str(frame.to_dicts())
    digests = [each for row in server.files.acls["entries"] for each in row if each.startswith("digest")]
    assert digests
    assert set(digests) <= {"digest:bob:***:acdrw", "digest:bob:***:r"}


def newest(folder: Path, kind: str, n: int) -> list[Path]:
    return sorted(folder.glob(f"{kind}.*"), key=lambda each: int(each.name.split(".")[1], 16))[-n:]


_ZNODE = re.compile(r"^(/.*)\n  cZxid = (\w+)\n.*\n  mZxid = (\w+)\n.*\n.*\n.*\n  dataVersion = (\d+)\n.*\n", re.M)


def test_a_snapshot_is_what_zookeeper_s_own_formatter_prints(server):
    for snapshot in newest(server.folder, "snapshot", 1):
        told = server.run("org.apache.zookeeper.server.SnapshotFormatter", str(snapshot))
        theirs = sorted((path, int(made, 16), int(wrote, 16), int(n)) for path, made, wrote, n in _ZNODE.findall(told))
        mine = read_zookeeper_files([snapshot]).znodes.select("path", "czxid", "mzxid", "version").rows()
        assert mine == theirs
        assert len(mine) > 1


_TRANSACTION = re.compile(r"^\S+ .* session (0x\w+) cxid 0x(\w+) zxid 0x(\w+) (\w+)(?: '?(/[^,\n]*))?", re.M)
_NAMES = {"createSession": "create_session", "closeSession": "close_session", "setData": "set_data", "error": "failed"}
_NAMES |= {"setACL": "set_acl", "create2": "create", "delete": "delete", "create": "create"}


def test_a_log_is_what_zookeeper_s_own_tool_prints(server):
    """Session, request, transaction, operation and path; a multi-transaction is one line of it."""
    tool = "persistence.TxnLogToolkit" if server.server.version == "3.8" else "LogFormatter"
    n_all = 0
    for log in sorted(server.folder.glob("log.*")):  # All: ZooKeeper begins a new one after a random number.
        told = server.run(f"org.apache.zookeeper.server.{tool}", str(log))
        theirs = [
            (int(zxid, 16), int(session, 16), int(cxid, 16), _NAMES.get(name, name))
            for session, cxid, zxid, name, _ in _TRANSACTION.findall(told)
        ]
        changes = read_zookeeper_files([log]).changes
        operation = pl.when(pl.col("part").is_null()).then("operation").otherwise(pl.lit("multi"))
        mine = changes.select("zxid", "session_id", "cxid", operation.alias("operation")).unique(maintain_order=True)
        assert mine.rows() == theirs
        paths = [path for *_, name, path in _TRANSACTION.findall(told) if name in ("create", "setData", "delete")]
        plain = changes.filter(pl.col("operation").is_in(["create", "set_data", "delete"]) & pl.col("part").is_null())
        if server.server.version == "3.8":  # The older one prints paths with their data as hexadecimal digits.
            assert plain["path"].to_list() == paths
        n_all += len(theirs)
    assert n_all > 100


def test_the_content_of_a_znode_and_its_writer_are_found(server):
    path = "/consumers/g1/offsets/orders/0"
    changes = read_zookeeper_files([server.folder], path).changes
    assert changes["data"].to_list() == [b"1", *(b"%d" % number for number in range(60))]
    assert changes["session_id"].n_unique() == 1
    middle = changes.row(30, named=True)
    after = read_zookeeper_files([server.folder], path, middle["written_at"])
    same_time = changes.filter(pl.col("written_at") <= middle["written_at"])
    assert after.znodes["data"].to_list() == [same_time["data"][-1]]
    refused = server.files.changes.filter(pl.col("part").is_not_null() & pl.col("refusal").is_not_null())
    assert refused.select("operation", "path", "refusal").rows() == [
        ("create", "/n", "RolledBack"),
        ("failed", None, "NoNode"),
    ]
    gone = read_zookeeper_files([server.folder], "/consumers/g2/ids/gone").changes
    assert gone["operation"].to_list() == ["create", "close_session"]
    assert gone["session_id"].n_unique() == 1
    assert gone["session_id"][0] != changes["session_id"][0]
