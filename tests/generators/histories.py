"""Histories of one group: truthful ones by a small simulator, faults put into them, and ones written down manually."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
from hypothesis import strategies as st

from kit.proof.analyze.consumption_intervals import EVICTION_MS
from kit.tables import schema as tables
from kit.tables.groups import ConsumedRecord, Produced, ZnodeLife

START_MS = 1_795_236_384_713
TOPIC = "t"


@dataclass
class History:
    """One group's hand-outs, production and owner znodes."""

    group_id: str
    hand_outs: list[ConsumedRecord] = field(default_factory=list)
    produced: list[Produced] = field(default_factory=list)
    lives: list[ZnodeLife] = field(default_factory=list)

    @property
    def topic(self) -> str:
        """Each group has its own, so that histories can be put together."""
        return f"{TOPIC}-{self.group_id}"

    def hand_out(self, consumer: str, at_ms: int, *offsets: int, partition: int = 0) -> None:
        self.hand_outs += [
            ConsumedRecord(self.group_id, self.topic, partition, consumer, START_MS + at_ms, offset)
            for offset in offsets
        ]

    def produce(self, at_ms: int, *offsets: int, partition: int = 0) -> None:
        self.produced += [Produced(self.topic, partition, "p", START_MS + at_ms, offset, offset) for offset in offsets]

    def own(self, consumer: str | None, from_ms: int, until_ms: int | None, partition: int = 0) -> None:
        thread = f"{consumer}-0" if consumer else None
        until = None if until_ms is None else START_MS + until_ms
        czxid = len(self.lives) + 1 if consumer else None
        ended_by = None if until is None else "deleted"
        self.lives.append(
            ZnodeLife(
                self.group_id, "owner", self.topic, partition, consumer, thread, START_MS + from_ms, consumer is None,
                until, ended_by, czxid, czxid,
            )
        )  # fmt: skip

    def register(self, consumer: str) -> None:
        self.lives.append(
            ZnodeLife(self.group_id, "member", None, None, consumer, None, START_MS, False, None, None, 1, 1)
        )

    def watch(self, from_ms: int, until_ms: int) -> None:
        self.lives.append(
            ZnodeLife(
                self.group_id, "watch", None, None, None, None, START_MS + from_ms, False, START_MS + until_ms,
                "stopped", None, None,
            )
        )  # fmt: skip

    def frames(self) -> dict[str, pl.DataFrame]:
        """consumption, production, owner_history."""
        return frames([self])


def frames(histories: list[History]) -> dict[str, pl.DataFrame]:
    """Several histories as one of each table."""
    return {name: pl.DataFrame(table) for name, table in arrow(histories).items()}


def arrow(histories: list[History]) -> dict[str, Any]:
    return {
        "consumption": tables.CONSUMPTION.from_rows(row for each in histories for row in each.hand_outs),
        "production": tables.PRODUCTION.from_rows(row for each in histories for row in each.produced),
        "owner_history": tables.OWNER_HISTORY.from_rows(row for each in histories for row in each.lives),
    }


@dataclass
class Simulation:
    """One partition of a group whose members follow the rules: one owner at a time, who commits before it lets go.

    A member that is evicted (or killed: it never comes back) commits nothing and is given up after ``EVICTION_MS``.
    """

    history: History
    members: list[str]
    now_ms: int = 0
    log: list[int] = field(default_factory=list)
    position: int = 0
    committed: int = 0
    owner: str | None = None
    owned_from_ms: int = 0
    last_hand_out_ms: int = 0
    tails: int = 0
    reached: int = 0

    def produce(self, count: int, gap: int) -> None:
        """``gap`` offsets are taken by a transaction's marker: nobody can hand them out."""
        first = self.log[-1] + 1 + gap if self.log else 0
        offsets = list(range(first, first + count))
        self.log += offsets
        self.history.produce(self.now_ms, *offsets)

    def hand_out(self, count: int, step_ms: int) -> None:
        for offset in self.log[self.position : self.position + count]:
            self.now_ms += step_ms
            self.history.hand_out(self.owner, self.now_ms, offset)
            self.last_hand_out_ms = self.now_ms
            self.tails += self.position < self.reached
            self.position += 1
            self.reached = max(self.reached, self.position)

    def commit(self) -> None:
        self.committed = self.position

    def take(self, member: str, wait_ms: int) -> None:
        """Claim the partition, which nobody holds, and begin at what is committed."""
        self.now_ms += wait_ms
        self.owner, self.owned_from_ms, self.position = member, self.now_ms, self.committed

    def let_go(self, told_ms: int) -> None:
        """In order; the watcher is reported ``told_ms`` later."""
        self.commit()
        self._end(told_ms)

    def evict(self, silence_ms: int, told_ms: int, is_dead: bool) -> None:
        self.now_ms = max(self.now_ms, self.last_hand_out_ms + EVICTION_MS + silence_ms)
        if is_dead and len(self.members) > 2:
            self.members.remove(self.owner)
        self._end(told_ms)

    def _end(self, told_ms: int) -> None:
        self.history.own(self.owner, self.owned_from_ms, self.now_ms + told_ms)
        self.owner = None


_STEPS = st.sampled_from(("produce", "deliver", "deliver", "commit", "deliver", "deliver", "evict"))
_GAPS = st.sampled_from((0, 0, 0, 1))


@st.composite
def truthful(draw: st.DrawFn, group_id: str = "g", min_steps: int = 4) -> tuple[History, Simulation]:
    """A history in which everybody kept the rules, and the simulation as it ended."""
    history = History(group_id)
    run = Simulation(history, ["a", "b", "c", "d"])
    small, wait = st.integers(0, 3), st.integers(0, 40)
    run.produce(draw(st.integers(1, 6)), 0)
    run.take(_another(draw, run, None), draw(wait))
    for _ in range(draw(st.integers(min_steps, 14))):
        step = draw(_STEPS)
        if step == "produce":
            run.produce(draw(st.integers(1, 6)), draw(_GAPS))
        elif step == "deliver":
            run.hand_out(draw(st.integers(1, 6)), draw(small))
        elif step == "commit":
            run.commit()
        else:
            told_ms, before = draw(small), run.owner
            if step == "deliver":
                run.let_go(told_ms)
            else:
                run.evict(draw(st.integers(0, 3000)), told_ms, draw(st.booleans()))
            run.take(_another(draw, run, before), told_ms + draw(wait))
    for member in ("a", "b", "c", "d"):
        history.register(member)
    return history, run


def _another(draw: st.DrawFn, run: Simulation, but: str | None) -> str:
    """A member other than ``but``. Hypothesis keeps the strategies of indices; it makes those of lists each time."""
    members = [member for member in run.members if member != but]
    return members[draw(st.integers(0, len(members) - 1))]


def ended(history: History, run: Simulation) -> History:
    """The rest is delivered, and the watcher stops."""
    run.hand_out(len(run.log), 1)
    run.let_go(0)
    history.watch(0, run.now_ms + 1)
    return history


@st.composite
def stale(draw: st.DrawFn, group_id: str = "g") -> tuple[History, str]:
    """A truthful history, then a member that lost the partition continues while its successor reads; that member."""
    history, run = draw(truthful(group_id))
    run.produce(12, 0)
    run.hand_out(len(run.log) - run.position - 8, 1)
    before = run.owner
    own_next = run.position
    run.evict(draw(st.integers(0, 2000)), 0, False)
    run.take(_another(draw, run, before), 5)
    run.hand_out(draw(st.integers(1, 4)), draw(st.integers(1, 3)))
    late = draw(st.integers(1, 4))
    history.hand_out(before, run.now_ms + 1, *run.log[own_next : own_next + late])
    run.now_ms += 2
    run.hand_out(draw(st.integers(1, 3)), 1)
    return ended(history, run), before


@st.composite
def losing(draw: st.DrawFn, group_id: str = "g") -> tuple[History, set[int]]:
    """A truthful history of which some records' hand-outs are taken away, not those of the last record; which."""
    history, run = draw(truthful(group_id))
    run.produce(5, 0)
    ended(history, run)
    first = draw(st.integers(0, len(run.log) - 2))
    gone = set(run.log[first : min(first + draw(st.integers(1, 4)), len(run.log) - 1)])
    history.hand_outs = [row for row in history.hand_outs if row.offset not in gone]
    return history, gone


def two_systems(history: History) -> History:
    """The same history, and a Kafka consumer beside it that reads everything from the beginning, 1 ms later."""
    first = {}
    for row in sorted(history.hand_outs, key=lambda row: row.at_ms):
        first.setdefault(row.offset, row)
    history.hand_outs += [replace(row, consumer="kc", at_ms=row.at_ms + 1) for row in first.values()]
    return history


def by_hand() -> dict[str, History]:
    """Histories whose verdict is known, by name; each has 60 records, one per 10 ms, unless it says otherwise."""
    found = {}
    for name, write in _WRITTEN.items():
        history = History(name)
        for offset in range(60):
            history.produce(offset * 10, offset)
        write(history)
        found[name] = history
    return found


def _read(history: History, consumer: str, at_ms: int, first: int, last: int) -> None:
    for turn, offset in enumerate(range(first, last + 1)):
        history.hand_out(consumer, at_ms + turn, offset)


def _quick_there_and_back(history: History) -> None:
    _read(history, "a", 1000, 0, 9)
    _read(history, "b", 1010, 10, 10)
    _read(history, "a", 1011, 11, 59)


def _there_and_back_within_a_ms(history: History) -> None:
    history.hand_out("a", 1000, *range(10))
    history.hand_out("b", 1000, *range(10, 20))
    history.hand_out("a", 1000, *range(20, 60))


def _killed(history: History) -> None:
    _read(history, "a", 1000, 0, 29)
    _read(history, "b", 7000, 20, 59)


def _stale_after_a_stop(history: History) -> None:
    _read(history, "a", 1000, 0, 29)
    _read(history, "b", 7000, 25, 44)
    _read(history, "a", 7011, 30, 39)
    _read(history, "b", 7030, 45, 59)


def _stale_by_one_record_in_the_next_ms(history: History) -> None:
    _read(history, "a", 1000, 0, 29)
    history.hand_out("b", 1100, 30)
    history.hand_out("a", 1101, 30)
    _read(history, "b", 1102, 31, 59)


def _stale_with_other_offsets(history: History) -> None:
    """The successor reads its predecessor's tail when that one continues ahead of it."""
    _read(history, "a", 1000, 0, 29)
    _read(history, "b", 7000, 20, 24)
    _read(history, "a", 7005, 30, 34)
    _read(history, "b", 7010, 25, 29)
    _read(history, "b", 7020, 35, 59)


def _stale_while_the_successor_idles(history: History) -> None:
    _read(history, "a", 1000, 0, 29)
    _read(history, "b", 7000, 30, 59)
    _read(history, "a", 9500, 30, 59)


def _same_offsets_side_by_side(history: History) -> None:
    _read(history, "a", 1000, 0, 59)
    _read(history, "b", 1000, 0, 59)


def _slow_second_reader(history: History) -> None:
    for offset in range(60):
        history.hand_out("a", 1000 + 5000 * offset, offset)
        history.hand_out("b", 1010 + 5000 * offset, offset)


def _second_system_from_the_beginning(history: History) -> None:
    _read(history, "a", 1000, 0, 59)
    _read(history, "kc", 1040, 0, 59)


def _lost_and_unread(history: History) -> None:
    _read(history, "a", 1000, 0, 9)
    _read(history, "a", 1012, 12, 40)
    _read(history, "a", 1042, 42, 49)


def _rewound(history: History) -> None:
    _read(history, "a", 1000, 0, 29)
    _read(history, "a", 2000, 20, 59)


def _stuck(history: History) -> None:
    """Delivered to nobody while records come, and elsewhere the group lives."""
    _read(history, "a", 100, 0, 9)
    history.produce(9000, 0, partition=1)
    history.hand_out("b", 9005, 0, partition=1)


def _tail_read_exactly(history: History) -> None:
    """An evicted member's tail is read again to its end, committed, and the partition comes back to it."""
    _read(history, "a", 1000, 0, 29)
    _read(history, "b", 8000, 20, 29)
    _read(history, "a", 9000, 30, 59)


_WRITTEN: dict[str, Callable[[History], None]] = {
    "quick there and back": _quick_there_and_back,
    "there and back within a ms": _there_and_back_within_a_ms,
    "killed": _killed,
    "stale after a stop": _stale_after_a_stop,
    "stale by one record in the next ms": _stale_by_one_record_in_the_next_ms,
    "stale with other offsets": _stale_with_other_offsets,
    "stale while the successor idles": _stale_while_the_successor_idles,
    "same offsets side by side": _same_offsets_side_by_side,
    "slow second reader": _slow_second_reader,
    "second system from the beginning": _second_system_from_the_beginning,
    "lost and unread": _lost_and_unread,
    "rewound": _rewound,
    "stuck": _stuck,
    "tail read exactly": _tail_read_exactly,
}
