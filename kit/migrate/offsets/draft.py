"""A plan for offsets in the making: wishes come in, rules are asked, a plan goes out. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kit.cluster import Cluster
from kit.errors import InputError, NothingToDo
from kit.migrate.engine.checks import Finding, raise_if_unsafe, warnings
from kit.migrate.engine.plan import STOP, Plan
from kit.migrate.engine.step import Step
from kit.migrate.engine.values import Json
from kit.migrate.offsets.fetch import Stores
from kit.migrate.offsets.kafka import KafkaWriter
from kit.migrate.offsets.moves import NOTHING, Move, Stored, Wish, clamp, item_of, told
from kit.migrate.offsets.observations import group_observations, log_observations
from kit.migrate.offsets.resets import bounds
from kit.migrate.offsets.rules import (
    NEVER_BACKWARDS,
    backwards_finding,
    kept_finding,
    log_finding,
    member_findings,
    other_store_of,
    source_finding,
    unreadable_finding,
)
from kit.migrate.offsets.selection import Key, Place
from kit.migrate.offsets.steps import offset_steps
from kit.migrate.offsets.zookeeper import missing_of, parents_of
from kit.read.paths import is_znode_name
from kit.tables.groups import KAFKA, ZOOKEEPER, LogOffset

GONE = "no broker knows this partition: its topic was deleted"
NO_ZNODE = "its group can't have offsets in ZooKeeper: its name is no name of a znode"


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Who plans, when, and what may be. ``overrides`` are rules by name; ``allow_backwards`` is that of one of them.

    ``skip_backwards`` leaves out what would go backwards; ``new_groups`` lets a reset or an import write for groups
    that neither store knows.
    """

    made_by: str
    now: datetime
    allow_backwards: bool = False
    skip_backwards: bool = False
    new_groups: bool = False
    overrides: tuple[str, ...] = ()
    on_failure: str = STOP

    def __post_init__(self) -> None:
        if self.allow_backwards and self.skip_backwards:
            raise InputError("offsets that go backwards are either allowed or skipped, not both")

    @property
    def overridden(self) -> tuple[str, ...]:
        return (*self.overrides, *([NEVER_BACKWARDS.name] if self.allow_backwards else []))


@dataclass
class Draft:
    """What shall be written to one store, and all that was read for it."""

    cluster: Cluster
    kind: str
    store: str
    stores: Stores
    logs: Mapping[Place, LogOffset]
    options: PlanOptions
    parameters: dict[str, Json] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    """Groups that the selection takes and that could not be read, with the error."""
    _moves: list[Move] = field(default_factory=list)
    _left_out: dict[Key, str] = field(default_factory=dict)
    _unreadable: dict[Key, str] = field(default_factory=dict)
    _unknown_logs: dict[Key, str] = field(default_factory=dict)
    _bounds: dict[Place, tuple[int, int] | None] = field(default_factory=dict)
    _source: tuple[str, dict[str, str]] | None = None

    def before(self, key: Key) -> Stored:
        return self.stores.group(self.store, key[0]).offsets.get(key[1:], NOTHING)

    def copies(self, source: str, groups: Mapping[str, str]) -> None:
        """Say which groups of the store ``source`` are read, and which are written for them."""
        self._source = source, dict(groups)

    def leave_out(self, key: Key, reason: str) -> None:
        self._left_out[key] = reason

    def add(self, key: Key, stored: Stored, *, carries_metadata: bool) -> None:
        """Write there what is stored elsewhere; with its metadata and leader epoch where it ``carries`` them."""
        if stored.error is not None or stored.offset is None:
            self._unreadable[key] = stored.error or "there is no offset"
        elif carries_metadata:
            self.wish(Wish(key, self.before(key), stored.offset, None, stored.metadata, stored.leader_epoch))
        else:
            self.wish(Wish(key, self.before(key), stored.offset))

    def wish(self, wish: Wish) -> None:
        """Write what is wished, clamped; or remember why that can't be."""
        if wish.before.error is not None:
            self._unreadable[wish.key] = wish.before.error
            return
        if self._is_impossible(wish.key):
            return
        within = self.within(wish.key)
        if within is not None:
            self._moves.append(clamp(wish, *within))

    def delete(self, key: Key) -> None:
        """Nothing shall be there; of an offset that can't be read it is remembered that this can't be."""
        before = self.before(key)
        if before.error is not None:
            self._unreadable[key] = before.error
        elif not self._is_impossible(key):
            self._moves.append(Move(Wish(key, before, None), None))

    def _is_impossible(self, key: Key) -> bool:
        """Whether this store can hold no offset of such a group: then it is left out, and the others go on."""
        if not key[0]:
            why: str | None = "a group without a name can't be written"
        else:
            is_none = self.store == ZOOKEEPER and not is_znode_name(key[0])
            why = NO_ZNODE if is_none else None
        if why:
            self.leave_out(key, why)
        return bool(why)

    def within(self, key: Key) -> tuple[int, int] | None:
        """Start and end of its log. None: there is none, so it is left out, or they are unknown, so a rule blocks."""
        place = key[1:]
        if place not in self._bounds:
            self._bounds[place] = bounds(self.logs.get(place))
        if self._bounds[place] is None:
            log = self.logs.get(place)
            if log is None:
                self.leave_out(key, GONE)
            else:
                self._unknown_logs[key] = log.error or "its start and end are unknown"
        return self._bounds[place]

    def plan(self) -> Plan:
        """Raises:
        NothingToDo, UnsafePlan: see the rules.
        """
        moves = self._changes()
        targets = sorted({move.key[0] for move in moves})
        findings = self._findings(moves, targets)
        overridden = raise_if_unsafe(findings, self.options.overridden)
        if not moves:
            left = f"; left out: {self._told_left_out()}" if self._left_out else ""
            why = "every offset is as wanted already" if self._moves else "no offset is left to be written"
            raise NothingToDo(f"{self.kind}: {why}{left}")
        observed = group_observations(self.stores, (self.store, targets), self._sources(targets))
        observed |= log_observations(self.logs, (move.key[1:] for move in moves))
        return Plan(
            kind=self.kind,
            cluster_id=self.cluster.cluster_id,
            targets=tuple(targets),
            made_by=self.options.made_by,
            made_at=self.options.now,
            observed=observed,
            steps=self._steps(moves, targets),
            parameters={**self.parameters, "store": self.store, **self._left()},
            risks=(*warnings(findings), *self._risks(moves)),
            overridden=overridden,
            on_failure=self.options.on_failure,
        )

    def _changes(self) -> list[Move]:
        changes = [move for move in self._moves if move.is_change]
        if not self.options.skip_backwards:
            return changes
        for move in changes:
            if move.is_backwards:
                self.leave_out(move.key, f"it would go backwards: {move.before} → {move.after}")
        return [move for move in changes if not move.is_backwards]

    def _findings(self, moves: Sequence[Move], targets: Iterable[str]) -> list[Finding]:
        here = {group_id: self.stores.group(self.store, group_id) for group_id in targets}
        other = other_store_of(self.store)
        there = {group_id: self.stores.group(other, group_id) for group_id in targets}
        findings = [
            *member_findings(here, self.store, there),
            backwards_finding(moves),
            unreadable_finding(self._unreadable),
            log_finding(self._unknown_logs),
            self._kept_elsewhere(moves),
        ]
        sources = self._sources(targets)
        if sources is not None:
            findings.append(source_finding({each: self.stores.group(sources[0], each) for each in sources[1]}))
        return findings

    def _kept_elsewhere(self, moves: Sequence[Move]) -> Finding:
        """What a topic that was deleted had needs no keeping."""
        other = other_store_of(self.store)
        deleted = {move.key: move.before or 0 for move in moves if move.after is None and move.key[1:] in self.logs}
        held = {key: self.stores.group(other, key[0]).offsets.get(key[1:], NOTHING).offset for key in deleted}
        lost = {key: held[key] for key, offset in deleted.items() if (held[key] or 0) < offset or held[key] is None}
        return kept_finding(deleted, lost, other)

    def _sources(self, targets: Iterable[str]) -> tuple[str, list[str]] | None:
        """The groups that are read for these targets."""
        if self._source is None:
            return None
        store, groups = self._source
        wanted = set(targets)
        return store, [read for read, written in groups.items() if written in wanted]

    def _steps(self, moves: Sequence[Move], targets: Iterable[str]) -> tuple[Step, ...]:
        missing: list[str] = []
        if self.store == ZOOKEEPER:
            created = [move.key for move in moves if move.wish.before.version is None]
            missing = missing_of(self.cluster.zookeeper, (path for key in created for path in parents_of(key)))
        return offset_steps(
            self.store,
            moves,
            can_delete=self.store == ZOOKEEPER or KafkaWriter(self.cluster.broker_client).can_delete,
            missing_parents=frozenset(missing),
            new_groups={each for each in targets if self.stores.group(KAFKA, each).state == "Dead"},
        )

    def _risks(self, moves: Sequence[Move]) -> list[str]:
        noted = [move for move in moves if move.reason]
        risks = []
        if noted:
            named = told(f"{move.item}: {move.reason}" for move in noted)
            risks.append(f"{len(noted)} of {len(moves)} offsets become something else than was wanted: {named}")
        if self._left_out:
            risks.append(f"{len(self._left_out)} offsets are left out: {self._told_left_out()}")
        if self.unread:
            named = told(f"{group_id!r}: {error}" for group_id, error in self.unread.items())
            risks.append(f"{len(self.unread)} groups are left out, because they can't be read: {named}")
        if self.store == KAFKA and any(it.wish.before.metadata and it.wish.metadata is None for it in moves):
            risks.append("metadata that is committed beside some of the offsets goes; undoing brings it back")
        return risks

    def _left(self) -> dict[str, Json]:
        return {"left_out": self._told_each_left_out(), "unread_groups": self.unread}

    def _told_left_out(self) -> str:
        return told(f"{item}: {reason}" for item, reason in self._told_each_left_out().items())

    def _told_each_left_out(self) -> dict[str, str]:
        return {item_of(key): reason for key, reason in sorted(self._left_out.items())}
