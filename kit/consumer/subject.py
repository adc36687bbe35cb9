"""What the kit knows of members that consume."""

from __future__ import annotations

from kit.terminal.verb import Verb

VERBS = {
    "consume": Verb(
        "kit.consumer.verbs.consume:app",
        "Consume as a member of a group, in any of KIP-125's flavours: a canary by hand.",
    ),
}
