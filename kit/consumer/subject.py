"""Register members that consume."""

from __future__ import annotations

from kit.subjects import Verb

VERBS = {
    "consume": Verb(
        "kit.consumer.verbs.consume:app",
        "Consume as a member of a group, as any kind of consumer of KIP-125; useful as a manual canary.",
    ),
}
