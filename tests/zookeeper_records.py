"""Snapshots and transaction logs, written as ZooKeeper does: what the reader must understand."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence

OPEN, END = -1, b"\0\0\0\x01/"
ERRORS = {"NoNode": -101, "NodeExists": -110, "BadVersion": -103, "RuntimeInconsistency": -2, "RolledBack": 0}
AT_MS = 1_795_409_372_420


def buffer(octets: bytes | None) -> bytes:
    return struct.pack(">i", -1) if octets is None else struct.pack(">i", len(octets)) + octets


def text(value: str) -> bytes:
    return buffer(value.encode())


def acl_list(*entries: tuple[int, str, str]) -> bytes:
    return struct.pack(">i", len(entries)) + b"".join(
        struct.pack(">i", perms) + text(scheme) + text(who) for perms, scheme, who in entries
    )


def znode(
    path: str,
    data: bytes | None = b"",
    version: int = 0,
    czxid: int = 1,
    mzxid: int = 1,
    owner: int = 0,
    at_ms: int = AT_MS,
    acl: int = OPEN,
    pzxid: int = 1,
) -> bytes:
    owner = owner - 2**64 if owner >= 2**63 else owner
    stat = struct.pack(">qqqqiiiqq", czxid, mzxid, at_ms, at_ms, version, 0, 0, owner, pzxid)
    return text("" if path == "/" else path) + buffer(data) + struct.pack(">q", acl) + stat


def sealed(octets: bytes) -> bytes:
    return octets + struct.pack(">q", zlib.adler32(octets)) + END


def snapshot(
    *znodes: bytes,
    sessions: Iterable[tuple[int, int]] = (),
    acls: Iterable[tuple[int, bytes]] = (),
    seals: int = 3,
) -> bytes:
    """With one seal as 3.4 and 3.5, two as 3.6 to 3.8, three as 3.9."""
    sessions, acls = list(sessions), list(acls)
    found = b"ZKSN" + struct.pack(">iqi", 2, -1, len(sessions))
    found += b"".join(struct.pack(">qi", number, timeout_ms) for number, timeout_ms in sessions)
    found += struct.pack(">i", len(acls)) + b"".join(struct.pack(">q", number) + each for number, each in acls)
    found = sealed(found + b"".join(znodes) + END)
    if seals > 1:
        found = sealed(found + struct.pack(">qiq", 9, 2, 12345))
    return sealed(found + struct.pack(">q", 9)) if seals > 2 else found


def create(path: str, data: bytes | None = b"", ephemeral: bool = False, kind: int = 1) -> tuple[int, bytes]:
    tail = b"" if kind == 19 else struct.pack(">q", 1000) if kind == 21 else b""
    flag = b"" if kind in (19, 21) else bytes([ephemeral])
    acl = acl_list((31, "world", "anyone"))
    return kind, text(path) + buffer(data) + acl + flag + struct.pack(">i", 1) + tail


def delete(path: str, kind: int = 2) -> tuple[int, bytes]:
    return kind, text(path)


def set_data(path: str, data: bytes | None, version: int) -> tuple[int, bytes]:
    return 5, text(path) + buffer(data) + struct.pack(">i", version)


def check(path: str, version: int) -> tuple[int, bytes]:
    return 13, text(path) + struct.pack(">i", version)


def failed(error: str) -> tuple[int, bytes]:
    return -1, struct.pack(">i", ERRORS[error])


def multi(*parts: tuple[int, bytes]) -> tuple[int, bytes]:
    return 14, struct.pack(">i", len(parts)) + b"".join(struct.pack(">i", kind) + buffer(body) for kind, body in parts)


def open_session(timeout_ms: int = 4000) -> tuple[int, bytes]:
    return -10, struct.pack(">i", timeout_ms)


def close_session(*paths: str, is_told: bool = True) -> tuple[int, bytes]:
    return -11, struct.pack(">i", len(paths)) + b"".join(map(text, paths)) if is_told else b""


def entry(payload: bytes, checksum: int | None = None) -> bytes:
    checksum = zlib.adler32(payload) if checksum is None else checksum
    return struct.pack(">qi", checksum, len(payload)) + payload + b"B"


def transaction(
    zxid: int, operation: tuple[int, bytes], session: int = 7, at_ms: int = AT_MS, has_digest: bool = True
) -> bytes:
    kind, body = operation
    digest = struct.pack(">iq", 2, 99) if has_digest and kind != -1 else b""
    return entry(struct.pack(">qiqqi", session, 1, zxid, at_ms, kind) + body + digest)


def log(*entries: bytes, n_zeros: int = 64) -> bytes:
    return b"ZKLG" + struct.pack(">iq", 2, 0) + b"".join(entries) + bytes(n_zeros)


def changes(first: int, operations: Sequence[tuple[int, bytes]], has_digest: bool = True) -> list[bytes]:
    """Transactions that follow on one another, a second apart."""
    return [
        transaction(first + at, each, at_ms=AT_MS + 1000 * (first + at), has_digest=has_digest)
        for at, each in enumerate(operations)
    ]
