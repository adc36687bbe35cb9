"""Compare Kafka's own tool on a metadata log's file with what is read here: in one form, secrets redacted."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import polars as pl

from kit.lab.java import jars, jvm

TOOL = "kafka.tools.DumpLogSegments"
_DUMPED = re.compile(r"\| offset: (\d+) CreateTime: (-?\d+) .*? (?:payload:|(\w+):?) (\{.*)")


def dumped(file: Path, folder: Path, jar_set: jars.JarSet = jars.SERVERS) -> list[tuple[Any, ...]]:
    """Offset, time, type, version (None of a control record) and fields of every record. ``folder``: the JVM's own."""
    arguments = ["--cluster-metadata-decoder", "--files", str(file)]
    command = jvm.java(jars.class_path(jar_set), TOOL, arguments, 128, folder)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return [_of_tool(*match.groups()) for line in done.stdout.splitlines() if (match := _DUMPED.match(line))]


def _of_tool(offset: str, at_ms: str, control: str | None, payload: str) -> tuple[Any, ...]:
    fields = json.loads(payload)
    if control is not None:
        return int(offset), int(at_ms), control, None, fields
    name = "".join(part.capitalize() for part in fields["type"].removesuffix("_RECORD").split("_"))
    return int(offset), int(at_ms), name, fields["version"], _withheld(name, fields["data"])


def _withheld(name: str, data: dict[str, Any]) -> dict[str, Any]:
    if name == "UserScramCredential":
        assert all(data[part] for part in ("salt", "storedKey", "serverKey"))
        return data | dict.fromkeys(("salt", "storedKey", "serverKey"), "***")
    return data | {"value": "***"} if name == "Config" and data["name"] == "my.own.password" else data


def read_here(records: pl.DataFrame) -> list[tuple[Any, ...]]:
    """``tables.METADATA_RECORDS`` in the form of ``dumped``."""
    return [
        (
            row["offset"],
            round(row["written_at"].timestamp() * 1000),
            row["name"],
            None if row["api_key"] is None else row["version"],
            json.loads(row["body"]),
        )
        for row in records.iter_rows(named=True)
    ]
