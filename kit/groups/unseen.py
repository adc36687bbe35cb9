"""What a listing can't know: groups and topics that the login may not describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kit.terminal.terminal import say

if TYPE_CHECKING:
    from kit.clients.cluster import Cluster
    from kit.groups.snapshot import Snapshot


def say_unseen(taken: Snapshot[Any]) -> None:
    """Say why groups may be missing in a snapshot of all groups.

    It is no error: a login may be meant to see a part.
    """
    from kit.groups.snapshot import unseen_groups

    if (may_miss := unseen_groups(taken)) is not None:
        say(f"offramp: {may_miss}")


def hidden_topics(cluster: Cluster) -> list[str]:
    """A line for ``say`` on topics that the login may not describe, or none.

    Such topics are no error of a read: a login may be meant to see a part. That it is not known whether there are any
    is not said, for it is so for every login without DESCRIBE on the cluster.

    Raises:
        ConnectError, ReadError: the brokers did not answer, or refused.
    """
    from kit.groups.read.topics import fetch_sight

    sight = fetch_sight(cluster.broker_client)
    return [f"offramp: {sight.sentence}"] if sight.hidden else []
