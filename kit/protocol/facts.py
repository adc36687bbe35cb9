"""Facts and answers from which the checks of a move between the classic and the consumer protocol are made."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass, fields
from typing import Any

from kit.errors import InputError
from kit.protocol.brokers import RETENTION, SESSION, ClusterFacts
from kit.protocol.commit_times import CommitTimes
from kit.protocol.read import GroupProtocol, ProtocolMember
from kit.tables.groups import CLASSIC, CONSUMER

ROLLING, STOPPED = WAYS = ("rolling", "stopped")
"""The ways to replace members: one by one, or all stopped and then all started."""
MS_PER_MINUTE = 60_000


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of a person, because no request reports them; None: not answered.

    ``clients_ready``: every client supports the protocol, and the settings that it refuses are removed.
    ``rights_granted``: the clients' principals have READ on the group and DESCRIBE on its topics. ``monitoring``: tools
    that read groups by DescribeGroups alone; empty: there is none. ``assignor``: ``group.remote.assignor`` of every new
    member; None: the brokers' default.
    """

    clients_ready: bool | None = None
    rights_granted: bool | None = None
    monitoring: tuple[str, ...] | None = None
    assignor: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The answers as a plan keeps them."""
        return {name: list(each) if isinstance(each, tuple) else each for name, each in asdict(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Answers:
        """The answers that a plan keeps. Raises InputError if they are not answers."""
        try:
            answers = cls(**values)
        except TypeError:
            known = ", ".join(each.name for each in fields(cls))
            raise InputError(f"an answer about a move between protocols must be one of {known}") from None
        tools = answers.monitoring
        return cls(
            answers.clients_ready, answers.rights_granted, None if tools is None else tuple(tools), answers.assignor
        )


@dataclass(frozen=True, slots=True)
class Request:
    """The move that is checked. Raises InputError: there is no such protocol or way."""

    to: str = CONSUMER
    how: str = ROLLING
    answers: Answers = Answers()

    def __post_init__(self) -> None:
        if self.to not in (CLASSIC, CONSUMER):
            raise InputError(f"there is no protocol {self.to!r}; choose {CONSUMER} or {CLASSIC}")
        if self.how not in WAYS:
            raise InputError(f"members are replaced {ROLLING} or {STOPPED}, not {self.how!r}")


@dataclass(frozen=True, slots=True)
class ProtocolFacts:
    """One reading of a cluster; times are epoch ms.

    ``session_ms``: session timeout of groups under the consumer protocol, where a broker reports it. ``commits``: None:
    ``__consumer_offsets`` was not read. ``hidden``: topics that the login may not describe; None: unknown.
    """

    at_ms: int
    cluster: ClusterFacts
    groups: Mapping[str, GroupProtocol]
    session_ms: Mapping[str, int]
    commits: CommitTimes | None = None
    hidden: Set[str] | None = None
    problems: tuple[str, ...] = ()

    def of(self, group: GroupProtocol, request: Request) -> GroupFacts:
        """The facts about one group."""
        return GroupFacts(self, group, request)


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """One group and the move that is asked for."""

    all: ProtocolFacts
    group: GroupProtocol
    request: Request

    @property
    def members(self) -> tuple[ProtocolMember, ...]:
        return self.group.members

    @property
    def answers(self) -> Answers:
        return self.request.answers

    @property
    def topics(self) -> set[str]:
        """Subscribed topics, and those of the assignment: a pattern names none."""
        assigned = {topic for each in self.members for topic, _ in (*each.assigned, *each.target)}
        return assigned | {topic for each in self.members for topic in each.topics}

    @property
    def session_ms(self) -> int | None:
        """The lowest session timeout that a broker has for members of the consumer protocol of this group."""
        of_brokers = min(self.all.cluster.numbers(SESSION), default=None)
        return self.all.session_ms.get(self.group.group_id, of_brokers)

    @property
    def longest_session_ms(self) -> int | None:
        """The longest session timeout of members of either protocol that is known: of classic ones if
        ``__consumer_offsets`` was read.
        """
        classic = () if self.all.commits is None else self.all.commits.sessions.get(self.group.group_id, ())
        known = {*classic, *([] if self.session_ms is None else [self.session_ms])}
        return max(known, default=None)

    @property
    def retention_ms(self) -> int | None:
        """The shortest retention of offsets on any broker; None: a broker does not report it."""
        values = self.all.cluster.numbers(RETENTION)
        return MS_PER_MINUTE * min(values) if values and len(values) == len(self.all.cluster.brokers) else None

    @property
    def n_expiring(self) -> int | None:
        """Offsets that the brokers delete as soon as the group has no members under the consumer protocol.

        The offsets whose last commit is older than the retention. None: unknown.
        """
        times = None if self.all.commits is None else self.all.commits.of(self.group.group_id)
        retention = self.retention_ms
        if times is None or retention is None:
            return None
        return sum(at <= self.all.at_ms - retention for at in times.values())
