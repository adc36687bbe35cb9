"""Define the options that verbs about groups share, and report what a listing can't know of the groups."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kit.terminal.options import ChosenProfile
from kit.terminal.progress import waiting
from kit.terminal.terminal import EVERY_GROUP, Pattern, say, say_left_out

if TYPE_CHECKING:
    import polars as pl

    from kit.clients.cluster import Cluster
    from kit.groups.snapshot import Snapshot
    from kit.profile import Profile


@dataclass(frozen=True, kw_only=True)
class ChosenGroups(ChosenProfile):
    """The options that name a cluster and a pattern of its groups."""

    pattern: Pattern = EVERY_GROUP

    @property
    def one(self) -> str | None:
        """The one group that was named."""
        return None

    def load(self) -> Profile:
        """Load like :meth:`ChosenProfile.load`, and report which groups the profile leaves out."""
        profile = super().load()
        if self.one is None:
            say_left_out(profile, self.pattern)
        return profile

    @contextmanager
    def connected(self, repeatedly: str = "") -> Iterator[Cluster]:
        """Connect to the cluster, to read it at once; raises as ``kit.clients.cluster.connect``."""
        from kit.clients.cluster import connect

        profile = self.load()
        with waiting(f"reading {profile.name}{repeatedly}"), connect(profile, is_patient=False) as cluster:
            yield cluster

    def observe(self, cluster: Cluster) -> Snapshot[pl.DataFrame]:
        """One snapshot of these groups; raises as ``kit.groups.snapshot.observe``."""
        from kit.groups.snapshot import observe, of_group

        if self.one is None:
            return observe(cluster, self.pattern)
        return of_group(observe(cluster, re.escape(self.one)), self.one)

    def say_unseen(self, taken: Snapshot[Any], hidden: Sequence[str]) -> None:
        """Say which topics are hidden, why groups may be missing in a snapshot of all groups, and which are of a type
        that is not supported.

        It is no error: a login may be meant to see a part.
        """
        from kit.groups.snapshot import unseen_groups, unsupported_groups

        say(*hidden)
        if (may_miss := (unseen_groups if self.one is None else unsupported_groups)(taken)) is not None:
            say(f"offramp: {may_miss}")


@dataclass(frozen=True, kw_only=True)
class ChosenGroup(ChosenGroups):
    """The choice of :class:`ChosenGroups`, or one group by its id."""

    group: Annotated[str | None, typer.Option("--group", "-g", help="One group, by its id.")] = None

    @property
    def one(self) -> str | None:
        return self.group


def hidden_topics(cluster: Cluster) -> list[str]:
    """A line for ``say`` on topics that the login may not describe, or none.

    Such topics are no error of a read: a login may be meant to see a part. That it is not known whether there are any
    is not reported, for it is so for every login without DESCRIBE on the cluster.

    Raises:
        ConnectError, ReadError: the brokers did not answer, or refused.
    """
    from kit.groups.read.topics import fetch_sight

    sight = fetch_sight(cluster.broker_client)
    return [f"offramp: {sight.sentence}"] if sight.hidden else []
