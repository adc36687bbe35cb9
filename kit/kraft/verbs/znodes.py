"""``offramp znodes``: what znodes hold or held, from a live ZooKeeper or from its own files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kit.errors import InputError, NotFound
from kit.terminal.listing import print_frame
from kit.terminal.options import ChosenProfile, with_options
from kit.terminal.progress import waiting
from kit.terminal.terminal import AsJson, print_json, refusals, say

if TYPE_CHECKING:
    import polars as pl

app = typer.Typer(rich_markup_mode=None)

MOST_ROWS = 1_000
"""The number of rows that people see; as JSON all are printed."""
_NUMBERS = ("zxid", "czxid", "mzxid", "session_id", "ephemeral_owner")
_SHOWN = ("path", "version", "mzxid", "modified_at", "session_id", "ephemeral_owner", "data", "error")
_TOLD = ("written_at", "zxid", "session_id", "operation", "path", "version", "refusal", "data", "error")
_MOST_TEXT = 60
"""Characters of a znode's data in a table; as JSON it is whole."""


@app.command()
@with_options
def znodes(
    profile: ChosenProfile,
    files: Annotated[
        list[Path] | None, typer.Argument(help="Snapshots and logs of one ZooKeeper server, or its data folder.")
    ] = None,
    path: Annotated[str, typer.Option("--path", "-z", help="Show this znode and all znodes below it.")] = "/",
    at: Annotated[
        str | None,
        typer.Option(
            help="Show the state at this time: ISO 8601 (UTC if no zone is given), or an age such as 90m, 6h, 2d."
        ),
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Show each change, its time, and the session that made it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the content of znodes, now or at an earlier time, and the session that wrote it.

    It is read from files that ZooKeeper writes (snapshot.<zxid>, log.<zxid> of 3.4 to 3.9; no server is asked), or from
    a cluster's live ZooKeeper. Secrets are redacted. Data that is not text is shown as base64.

    \b
    offramp znodes copied/version-2 --path /consumers/orders --at 2026-11-24T09:00
    offramp znodes copied/version-2 --path /consumers/orders/migration/mode --history
    offramp znodes --profile production --path /controller
    """
    with refusals():
        if not path.startswith("/") or (path != "/" and path.endswith("/")):
            raise InputError(f"--path {path}: a znode's path begins with a slash and doesn't end with one")
        if files:
            _print_stored(files, path, at, history, as_json)
        elif at is not None or history:
            raise InputError(
                "a live ZooKeeper has no history. Give copies of its data files, for example the folder version-2"
            )
        else:
            _print_live(path, as_json, profile)


def _print_stored(files: list[Path], path: str, at: str | None, history: bool, as_json: bool) -> None:
    from kit.kraft.zookeeper_history import read_zookeeper_files, verify_files
    from kit.terminal.moment import moment

    with waiting("reading ZooKeeper's files"):
        stored = read_zookeeper_files(files, path, moment(at))
        rows = stored.changes if history else _with_writers(stored.znodes, stored.changes)
    if rows.is_empty():
        absence = "these logs contain no change of this znode" if history else "this znode did not exist at that time"
        raise NotFound(f"znode {path}: {absence}. {stored!r}. Give another --path, or files of another time")
    _print(rows, _TOLD if history else _SHOWN, as_json)
    say(*verify_files(stored).split("\n"))


def _with_writers(znodes: pl.DataFrame, changes: pl.DataFrame) -> pl.DataFrame:
    """``session_id``: who wrote it last, where the logs report it."""
    import polars as pl

    writers = changes.select("path", pl.col("zxid").alias("mzxid"), "session_id").drop_nulls()
    return znodes.join(writers.unique(["path", "mzxid"]), ["path", "mzxid"], "left").sort("path")


def _print_live(path: str, as_json: bool, profile: ChosenProfile) -> None:
    import polars as pl

    from kit.clients.cluster import connect
    from kit.kraft.read.znode_tree import fetch_znodes

    chosen = profile.load()
    with waiting(f"reading {path}"), connect(chosen) as cluster:
        if cluster.zookeeper is None:
            raise InputError(f"cluster {cluster.name} has no zookeeper_connect in offramp.toml")
        rows = pl.DataFrame(fetch_znodes(cluster.zookeeper, path))
        if rows.is_empty():
            raise NotFound(
                f"cluster {cluster.name} has no znode {path}. To list the znodes above it, give a shorter --path"
            )
    _print(rows.sort("path"), [name for name in _SHOWN if name != "session_id"], as_json)


def _print(rows: pl.DataFrame, columns: Sequence[str], as_json: bool) -> None:
    if as_json:
        print_json([_plain(row) for row in rows.iter_rows(named=True)])
        return
    import polars as pl

    shown = [_short(_plain(row)) for row in rows.head(MOST_ROWS).select(columns).iter_rows(named=True)]
    kinds = {name: pl.String for name in ("data", *_NUMBERS) if name in columns}
    print_frame(pl.DataFrame(shown, {**rows.select(columns).schema, **kinds}, orient="row"))
    if len(rows) > MOST_ROWS:
        say(f"… and {len(rows) - MOST_ROWS:,} more. --path shows fewer, --json shows all")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Numbers of transactions and sessions as ZooKeeper's own tools print them; data as text."""
    numbers = {name: hex(row[name] & 2**64 - 1) for name in _NUMBERS if row.get(name) is not None}
    return {**row, **numbers, "data": _text(row["data"])}


def _short(row: dict[str, Any]) -> dict[str, Any]:
    data = row["data"] or ""
    return row | {"data": f"{data[:_MOST_TEXT]}… ({len(data):,})"} if len(data) > _MOST_TEXT else row


def _text(data: bytes | None) -> str | None:
    from base64 import b64encode

    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return f"base64:{b64encode(data or b'').decode()}"
