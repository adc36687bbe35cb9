"""A cluster's metadata in one file: what a preflight and a rehearsal of the move to KRaft need, and no secret.

A zip of Parquet tables (``tables.ZNODES`` and what the preflight read) with ``manifest.json``: the format's version,
the cluster, when and by whom it was saved, counts, the SHA-256 of each table. Any tool reads it: ``unzip``, Parquet.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, get_args, get_type_hints

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from kit.errors import InputError, ReadError
from kit.kraft.analyze.node_settings import NodeSettings
from kit.kraft.analyze.phase import Facts
from kit.kraft.analyze.preflight_checks import PreflightFacts
from kit.tables import schema as tables
from kit.tables.schema import Table
from kit.text.quantity import quantity
from kit.text.regular_file import open_regular

FORMAT, VERSION = "offramp kraft save", 3
_MANIFEST = "manifest.json"
_ROWS = ("nodes", "registrations", "control", "log_dirs")
_SCALARS = {name: get_args(hint) or (hint,) for name, hint in get_type_hints(Facts).items() if name not in _ROWS}
"""Field of ``Facts`` → its types. A value that is added there is saved, too."""
_TABLES = {
    "znodes": tables.ZNODES,
    "partitions": tables.METADATA_PARTITIONS,
    "items": tables.METADATA_ITEMS,
    "kraft_items": tables.METADATA_ITEMS,
    "differences": tables.METADATA_DIFFERENCES,
    "control": tables.METADATA_CONTROL,
    "nodes": tables.NODE_FACTS,
    "registrations": tables.METADATA_NODES,
    "preflight_znodes": tables.PREFLIGHT_ZNODES,
    "log_dirs": tables.BROKER_LOG_DIRS,
}


@dataclass(frozen=True)
class SavedMetadata:
    """``znodes`` (``tables.ZNODES``, secrets replaced) of ``chroot``, and the ``facts`` of a preflight at that time."""

    cluster_name: str
    cluster_id: str
    chroot: str
    taken_at: datetime
    taken_by: str
    release: str
    znodes: pa.Table
    facts: PreflightFacts

    def write(self, path: Path) -> None:
        """Write the file, all of it or nothing; only its owner may read it.

        Raises:
            InputError: there is such a file already, or it can't be written.
        """
        if path.exists():
            raise InputError(f"the file {path} exists already: name a new file")
        try:
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        except OSError as error:
            raise InputError(f"{path} can't be written: {error.strerror}") from error
        try:
            with os.fdopen(handle, "w+b") as out:
                self._write(out)
                out.flush()
                os.fsync(out.fileno())
            os.replace(name, path)
        except OSError as error:
            raise InputError(f"{path} was not written: {error.strerror}; nothing is left of it") from error
        finally:
            Path(name).unlink(missing_ok=True)

    def _write(self, out: Any) -> None:
        contents = {f"{name}.parquet": _parquet(table) for name, table in self._tables().items()}
        manifest = self._manifest() | {
            "tables": {name: {"sha256": hashlib.sha256(data).hexdigest()} for name, data in contents.items()}
        }
        with zipfile.ZipFile(out, "w") as file:
            file.writestr(_MANIFEST, json.dumps(manifest, indent=1))
            for name, data in contents.items():
                file.writestr(name, data)

    def _tables(self) -> dict[str, pa.Table]:
        """By name; what was not read is not there."""
        facts = self.facts.facts
        rows = {"nodes": facts.nodes, "registrations": facts.registrations}
        rows |= {"control": [facts.control] if facts.control else []}
        rows |= {"log_dirs": self.facts.log_dirs}
        rows |= {"preflight_znodes": [self.facts.znodes] if self.facts.znodes else []}
        frames = {name: getattr(self.facts, name) for name in ("partitions", "items", "kraft_items", "differences")}
        of_rows = {name: _TABLES[name].from_rows(each) for name, each in rows.items()}
        cast = {name: _cast(frame, _TABLES[name]) for name, frame in frames.items() if frame is not None}
        return {"znodes": self.znodes} | of_rows | cast

    def _manifest(self) -> dict[str, Any]:
        """Return the content of the file that is no table. A file of the nodes is not in it: each keeps its own."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "cluster": self.cluster_name,
            "cluster_id": self.cluster_id,
            "chroot": self.chroot,
            "taken_at": self.taken_at.isoformat(),
            "taken_by": self.taken_by,
            "release": self.release,
            "counts": self.counts,
            "facts": {name: _to_json(getattr(self.facts.facts, name)) for name in _SCALARS},
            "settings": [asdict(each) for each in self.facts.settings],
            "unread": dict(self.facts.unread),
        }

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of entries of each kind in the file."""
        items = self.facts.items
        kinds = {} if items is None else dict(items["kind"].value_counts().sort("kind").iter_rows())
        partitions = self.facts.partitions
        return {"znodes": len(self.znodes), "partitions": 0 if partitions is None else len(partitions), **kinds}

    @property
    def contents(self) -> str:
        """The counts in words."""
        return ", ".join(quantity(n, name.removesuffix("s")) for name, n in self.counts.items())

    @property
    def brokers(self) -> tuple[int, ...]:
        """Ids in ``/brokers/ids``."""
        return self.facts.control.brokers if self.facts.control else ()


def load_metadata(path: Path) -> SavedMetadata:
    """Load a file that ``write`` wrote.

    Raises:
        InputError: there is no such file, it is none of these, or of another version.
        ReadError: it is damaged.
    """
    try:
        with open_regular(path) as opened, zipfile.ZipFile(opened) as file:
            manifest = _read_manifest(path, file)
            return _loaded(manifest, {name: _member(path, file, name, of) for name, of in manifest["tables"].items()})
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror or error}") from error
    except zipfile.BadZipFile:
        raise InputError(
            f"{path} is no complete file of `offramp kraft save`: it was cut off, or another program wrote it"
        ) from None
    except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException) as error:
        raise ReadError(f"{path} is damaged: {type(error).__name__}: {error}; save the cluster again") from error


def _read_manifest(path: Path, file: zipfile.ZipFile) -> dict[str, Any]:
    if _MANIFEST not in file.namelist():
        raise InputError(f"{path} is no file of `offramp kraft save`: it has no {_MANIFEST}")
    manifest: Any = json.loads(file.read(_MANIFEST))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f"{path} is no file of `offramp kraft save`")
    if manifest.get("version") != VERSION:
        raise InputError(
            f"{path} has version {manifest.get('version')} of its format, and this offramp reads {VERSION}: save the "
            "cluster again"
        )
    return manifest


def _member(path: Path, file: zipfile.ZipFile, name: str, of: Mapping[str, str]) -> pa.Table:
    data = file.read(name)
    if hashlib.sha256(data).hexdigest() != of["sha256"]:
        raise ReadError(f"{path} is damaged: {name} is not what was saved; save the cluster again")
    return pq.read_table(io.BytesIO(data))


def _loaded(manifest: Mapping[str, Any], contents: Mapping[str, pa.Table]) -> SavedMetadata:
    by_name = {name.removesuffix(".parquet"): table for name, table in contents.items()}
    scalars = {name: _from_json(types, manifest["facts"][name]) for name, types in _SCALARS.items()}
    rows = {name: list(_rows(by_name[name], _TABLES[name])) for name in _ROWS}
    control = rows["control"][0] if rows["control"] else None
    frames = ("partitions", "items", "kraft_items", "differences")
    return SavedMetadata(
        cluster_name=manifest["cluster"],
        cluster_id=manifest["cluster_id"],
        chroot=manifest["chroot"],
        taken_at=datetime.fromisoformat(manifest["taken_at"]),
        taken_by=manifest["taken_by"],
        release=manifest["release"],
        znodes=by_name["znodes"],
        facts=PreflightFacts(
            facts=Facts(**scalars, control=control, nodes=rows["nodes"], registrations=rows["registrations"]),
            znodes=next(iter(_rows(by_name["preflight_znodes"], tables.PREFLIGHT_ZNODES)), None),
            log_dirs=rows["log_dirs"],
            settings=[NodeSettings(**each) for each in manifest["settings"]],
            unread=manifest["unread"],
            **dict[str, Any]((name, pl.DataFrame(by_name[name])) for name in frames if name in by_name),
        ),
    )


def _to_json(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return value / timedelta(microseconds=1) if isinstance(value, timedelta) else value


def _from_json(types: Sequence[type], value: Any) -> Any:
    """``types``: those of the field."""
    if value is None:
        return None
    if datetime in types:
        return datetime.fromisoformat(value)
    return timedelta(microseconds=value) if timedelta in types else value


def _rows(table: pa.Table, of: Table) -> Iterable[Any]:
    names = [each.name for each in fields(of.row)]
    for row in table.select(names).to_pylist():
        yield of.row(**{name: tuple(each) if isinstance(each, list) else each for name, each in row.items()})


def _cast(frame: pl.DataFrame, table: Table) -> pa.Table:
    return frame.select(table.schema.names).to_arrow().cast(table.schema)


def _parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()
