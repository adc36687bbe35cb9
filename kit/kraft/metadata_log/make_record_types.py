"""Makes ``record_types.json`` from the message schemas in Kafka's own jars.

    python -m kit.kraft.metadata_log.make_record_types kafka-metadata-4.1.1.jar kafka-clients-4.1.1.jar

Run it again with the jars of a newer Kafka. It keeps names, types, versions, tags and defaults: facts of the format.
A jar of an older Kafka isn't needed, because a schema of Kafka reports what its earlier versions were.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PLACE = Path(__file__).with_name("record_types.json")
CONTROL = {
    "LeaderChangeMessage": 2,
    "SnapshotHeaderRecord": 3,
    "SnapshotFooterRecord": 4,
    "KRaftVersionRecord": 5,
    "VotersRecord": 6,
}
"""Control record types (``ControlRecordType`` in Kafka's clients) by their schema."""


def schemas(jar: Path) -> Iterator[dict[str, Any]]:
    """Every message schema of a jar."""
    with zipfile.ZipFile(jar) as opened:
        for name in opened.namelist():
            if name.startswith("common/") and name.endswith(".json"):
                yield json.loads(re.sub(r"^\s*//.*$", "", opened.read(name).decode(), flags=re.M))


def field(schema: dict[str, Any], structs: dict[str, Any]) -> dict[str, Any]:
    """One field: what decides its bytes, and its default where it may be left out."""
    entry = {"name": _camel(schema["name"]), "type": schema["type"], "versions": schema["versions"]}
    entry |= {"nullable": schema["nullableVersions"]} if "nullableVersions" in schema else {}
    if "tag" in schema:
        entry |= {"tag": int(schema["tag"]), "default": _default(schema)}
    inner = schema.get("fields") or structs.get(schema["type"].removeprefix("[]"))
    if inner:
        entry |= {"type": "[]struct" if schema["type"].startswith("[]") else "struct"}
        entry |= {"fields": [field(each, structs) for each in inner]}
    return entry


def _camel(name: str) -> str:
    """Return the name as Kafka's JSON converters spell it."""
    return name[0].lower() + name[1:]


def _default(schema: dict[str, Any]) -> Any:
    if schema["type"].startswith("[]"):
        return None if schema.get("default") == "null" else []
    return json.loads(schema.get("default", '""' if schema["type"] == "string" else "0"))


def table(jars: list[Path]) -> dict[str, Any]:
    """``records`` by apiKey, ``controls`` by control type."""
    types: dict[str, dict[int, Any]] = {"records": {}, "controls": {}}
    for schema in (each for jar in jars for each in schemas(jar)):
        if schema["type"] != "metadata" and schema["name"] not in CONTROL:
            continue
        structs = {each["name"]: each["fields"] for each in schema.get("commonStructs", ())}
        entry = {
            "name": re.sub("(Record|Message)$", "", schema["name"]),
            "versions": schema["validVersions"],
            "fields": [field(each, structs) for each in schema["fields"]],
        }
        if schema["type"] == "metadata":
            types["records"][schema["apiKey"]] = entry
        else:
            types["controls"][CONTROL[schema["name"]]] = entry
    return {kind: dict(sorted(entries.items())) for kind, entries in types.items()}


def text(types: dict[str, Any]) -> str:
    """JSON, one record type per line."""
    kinds = [
        f'"{kind}": {{\n' + ",\n".join(f'"{key}": {json.dumps(entry)}' for key, entry in entries.items()) + "\n}"
        for kind, entries in types.items()
    ]
    return "{" + ",\n".join(kinds) + "}\n"


if __name__ == "__main__":
    PLACE.write_text(text(table([Path(each) for each in sys.argv[1:]])), encoding="utf-8")
