"""What the kit knows of members that consume."""

from __future__ import annotations

from kit.terminal.verb import Verb

VERBS = {
    "consume": Verb(
        "kit.consumer.verbs.consume:app",
        "Consume as a member of a group, as any of KIP-125's kinds of consumers: a manual canary.",
    ),
}
