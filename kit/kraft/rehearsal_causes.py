"""Find the znode at which a rehearsal's controllers stopped: their stack and words beside the findings of the
preflight.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import unquote

from kit.kraft.metadata_file import SavedMetadata
from kit.kraft.read.metadata_values import RESOURCE_TYPES
from kit.kraft.rehearsal_lab import Abort, Stage
from kit.tables.conditions import Condition

_STAGES = (
    (re.compile(r"Acl|KafkaPrincipal|ResourceType"), ("Z10",), ("/kafka-acl/", "/kafka-acl-extended/")),
    (re.compile(r"Scram"), ("Z09", "Z08"), ("/config/users/",)),
    (re.compile(r"ClientQuota"), ("Z08", "Z09"), ("/config/users/", "/config/clients/", "/config/ips/")),
    (re.compile(r"BrokerConfig"), ("Z07",), ("/config/brokers/",)),
    (re.compile(r"ConfigMigration|EntityConfig"), ("Z07", "Z08", "Z09", "Z11"), ("/config/",)),
    (re.compile(r"ProducerId"), ("Z19",), ("/latest_producer_id_block",)),
    (re.compile(r"DelegationToken"), ("Z19",), ("/delegation_token/",)),
    (re.compile(r"Topic"), ("Z04", "Z05"), ("/brokers/topics/",)),
)
"""A name in the controllers' stack → the checks of what is read there, and its znodes."""


def suspects(abort: Abort, saved: SavedMetadata, preflight: Iterable[Condition]) -> Iterator[tuple[Condition, str]]:
    """Yield the findings of the preflight at the place where the controllers stopped, with the znode."""
    rows = [each for each in preflight if each.is_met is False]
    if abort.stage is Stage.BEFORE_DUAL_WRITE:
        yield from ((row, row.subject) for row in rows if row.subject in nested_acls(saved))
        return
    checks, roots = next(((ids, tops) for name, ids, tops in _STAGES if name.search(abort.stack)), ((), ()))
    paths = [each for each in _paths(saved) if each.startswith(roots)] if roots else []
    for row in rows:
        if row.check_id in checks and (znode := mentioned(row, paths)):
            yield row, znode


def nested_acls(saved: SavedMetadata) -> Sequence[str]:
    """ACL znodes below the one level that the copy reads."""
    return saved.facts.znodes.nested_acls if saved.facts.znodes else ()


def _paths(saved: SavedMetadata) -> list[str]:
    paths: list[str] = saved.znodes["path"].to_pylist()
    return paths


def mentioned(row: Condition, paths: Iterable[str]) -> str | None:
    """The znode that a finding is about, by its subject."""
    return next((path for path in paths if row.subject in subjects(path)), None)


def subjects(path: str) -> Iterator[str]:
    """Return the subjects that checks name for findings in this znode."""
    yield path
    parent, _, name = path.rpartition("/")
    if parent in ("/brokers/topics", "/config/topics"):
        yield f"topic {name}"
    elif parent == "/config/users":
        yield f"user {unquote(name)}"
    elif (entity := _acl_entity(path)) is not None:
        yield f"ACL of {entity}"


def _acl_entity(path: str) -> str | None:
    """``/kafka-acl/Topic/x`` → ``TOPIC:LITERAL:x``."""
    found = re.fullmatch(r"/kafka-acl(-extended/prefixed)?/([^/]+)/(.+)", path)
    return found and f"{RESOURCE_TYPES.get(found[2], found[2])}:{'PREFIXED' if found[1] else 'LITERAL'}:{found[3]}"


def likeness(words: str, row: Condition, znode: str) -> tuple[bool, int]:
    """Return whether the controller's words name the znode; else how many of them are in the finding."""
    name = unquote(znode.rpartition("/")[2])
    found = re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", words)
    is_named = found is not None and len(name) > 2  # Shorter ones may be words of the sentence.
    return is_named, sum(each in row.sentence for each in set(re.findall(r"[\w.-]{3,}", words)))
