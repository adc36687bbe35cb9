"""What a listing of all groups can't know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kit.terminal.terminal import say

if TYPE_CHECKING:
    from kit.groups.snapshot import Snapshot


def say_unseen(taken: Snapshot[Any]) -> None:
    """Say why groups may be missing in a snapshot of all groups.

    It is no error: a login may be meant to see a part.
    """
    from kit.groups.snapshot import unseen_groups

    if (may_miss := unseen_groups(taken)) is not None:
        say(f"offramp: {may_miss}")
