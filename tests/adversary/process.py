"""One process at work on one run: the real Run, lock, performer and actors over the model's client and looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import polars as pl

from kit.engine.execution.run import Run, RunResult
from kit.engine.lock import ZookeeperLock
from kit.engine.model.actor import ClusterPerformer
from kit.engine.model.approval import Approval
from kit.engine.model.clock import Clock
from kit.engine.model.event import Event
from kit.engine.model.performer import ActedRecord, ItemOutcome, Report
from kit.engine.model.plan import Plan
from kit.engine.model.recipes import Recipes
from kit.engine.model.record import load_run
from kit.engine.model.states import RunState
from kit.engine.model.step import Step
from kit.engine.model.values import Json
from kit.errors import ConnectError, OfframpError, StepFailed
from kit.moves.fleet import plan as fleet, wave
from kit.moves.fleet.wave import WaveActor
from kit.moves.group import circuit_breaker, plan as group, replace, soak, subject as group_subject, toggle
from kit.moves.group.circuit_breaker import CircuitBreakerActor
from kit.moves.group.group_state import GroupState
from kit.moves.group.replace import ReplaceActor
from kit.moves.group.soak import SoakActor
from kit.moves.group.toggle import ToggleActor
from kit.moves.protocol import performer as protocol, subject as protocol_subject
from kit.moves.protocol.stop_and_start import StoppedActor
from kit.moves.protocol.stopped import START_ALL, STOP_ALL
from kit.tables.groups import KAFKA, ZOOKEEPER
from tests.adversary.deployers import Deployer, Order
from tests.adversary.groups import KC, Mix
from tests.adversary.leases import kafka_lock
from tests.adversary.znodes import Client, Write

if TYPE_CHECKING:
    from tests.adversary.world import ContestedCluster

REPLACE_POLL_S, RUN_POLL_S = 5.0, 20.0
BACK = {RunState.UNDOING, RunState.UNDO_HALTED, RunState.UNDONE}


class ProcessKilled(BaseException):
    """The process is gone: nothing of it runs any more."""


@dataclass(frozen=True)
class LastObservation:
    mix: Mix
    at: float
    foreign: int


@dataclass(frozen=True)
class Did:
    event: str
    step_id: str | None


class Process:
    """``over`` names what is over for this process (approval, lock …), with the request at which it became so."""

    def __init__(self, world: ContestedCluster, folder: Path) -> None:
        self.world, self.folder, self.run_id = world, folder, folder.name
        self.client = Client(world.tree, lambda what: world.point(self, what), self._wrote, world.zombies.append)
        self.cluster: Any = SimpleNamespace(
            name="model",
            cluster_id="model",
            confirmed_id=lambda needs_brokers=True: "model",
            profile=SimpleNamespace(),
            zookeeper=self.client,
            process=self,
        )
        self.deployer = Deployer(world, self)
        self.verb = "?"
        self.calls = self.blind = 0
        self.slept = 0.0
        self.clock = Clock(world.time.now, world.time.tick, self._sleep)
        self.step_id: str | None = None
        self.state: str | None = None
        self.seen: dict[str, LastObservation] = {}
        self.over: dict[str, int] = {}
        self.did: list[Did] = []
        self.silent: set[str] = set()
        self.is_dead = False
        self.is_of_edited = self.run_id in world.edited
        self.stopped = False
        self.run: Run | None = None

    def __str__(self) -> str:
        return f"{self.verb} of {self.world.short(self.run_id)}"

    @property
    def is_back(self) -> bool:
        return self.state in BACK

    def work(self, verb: str, approval: Approval | None = None) -> RunResult | OfframpError | None:
        """The ending, the refusal, or None where the process died or was interrupted."""
        self.verb = verb
        if approval is not None:
            self.world.judge.runs[self.run_id].approvals.append(approval)
        self.world.say(f"{self}{' with a new approval' if approval else ''}")
        try:
            found: RunResult | OfframpError = self._begun(verb, approval)
            told = found.sentence if isinstance(found, RunResult) else str(found)
        except StepFailed as error:
            raise AssertionError("the engine failed by what it does not expect") from error
        except OfframpError as error:
            found, told = error, str(error)
        except ProcessKilled:
            return self._died()
        except KeyboardInterrupt:
            self.client.expire()  # Ctrl-C ends a terminal's process, and that its session.
            self.world.say(f"  {self} was interrupted")
            return None
        name = found.state if isinstance(found, RunResult) else type(found).__name__
        self.world.say(f"  {self} → {name}: {told[:300]}")
        self._judge(told if isinstance(found, RunResult) else None)
        return found

    def _begun(self, verb: str, approval: Approval | None) -> RunResult:
        plan = self.world.judge.runs[self.run_id].plan
        performers = {group_subject.KIND: self._group, protocol_subject.KIND: self._protocol}
        performer = performers.get(plan.kind, self._fleet)()
        lock = kafka_lock(self.client) if self.world.locks_in_kafka else ZookeeperLock(self.cluster)
        self.run = Run(self.folder, performer, lock, clock=self.clock, poll_s=RUN_POLL_S, tell=self._tell)
        result: RunResult = getattr(self.run, verb)(approval)
        return result

    def _judge(self, told: str | None) -> None:
        try:
            record = load_run(self.folder)
        except OfframpError:
            return  # Another user edited it, and load_run reports it.
        self.world.ends.append((self.run_id, str(record.state)))
        self.world.judge.ended(self, record, told)

    def _group(self) -> ClusterPerformer:
        actor = ReplaceActor(self.cluster, self.deployer, self.world.hear, self.clock, REPLACE_POLL_S)
        actors = {
            group.REPLACE: actor,
            group.TOGGLE: ToggleActor(self.cluster),
            group.SOAK: SoakActor(self.cluster, self.clock),
        }
        return Hand(self, actors, group.RECIPES, lambda plan: group.observe(self.cluster, plan))

    def _protocol(self) -> ClusterPerformer:
        deployer, say, look = self.deployer, self.world.hear, _look
        stopped = StoppedActor(self.cluster, deployer, say, self.clock, REPLACE_POLL_S, look)
        actors = {
            group.REPLACE: ReplaceActor(self.cluster, deployer, say, self.clock, REPLACE_POLL_S, look),
            group.SOAK: SoakActor(self.cluster, self.clock, look),
            STOP_ALL: stopped,
            START_ALL: stopped,
        }
        recipes = {**group.RECIPES, **protocol.RECIPES}
        readings = protocol.Readings(False, look, lambda cluster, names: {name: look(cluster, name) for name in names})
        return Hand(self, actors, recipes, lambda plan: readings.observe(self.cluster, plan))

    def _fleet(self) -> ClusterPerformer:
        actors = {
            wave.WAVE: WaveActor(self.cluster),
            circuit_breaker.CIRCUIT_BREAKER: CircuitBreakerActor(self.cluster, self.clock),
        }
        return Hand(
            self,
            actors,
            fleet.RECIPES,
            lambda plan: fleet.observed_of(wave.WaveReadings(self.cluster).observe(plan.targets), plan),
        )

    def _tell(self, event: Event) -> None:
        self.state = event.state
        self.world.point(self, f"event {event.event} {event.item or event.step_id or event.state}")

    def _wrote(self, write: Write) -> None:
        if not write.path.startswith("/offramp/"):
            self.did.append(Did("undone" if self.is_back else "acted", self.step_id))
        self.world.judge.wrote(self, write)
        self.world.follow(write)

    def ordered(self, order: Order) -> None:
        self.did.append(Did("undone" if order.is_back else "acted", order.step_id))

    def _sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.world.time.sleep(seconds)

    def _died(self) -> None:
        self.client.loses = None
        self.client.abandon()
        self.world.say(f"  {self} died")

    # Observations

    def look(self, name: str) -> GroupState:
        self.world.point(self, f"examine {name}")
        if self.blind:
            self.blind -= 1
            raise ConnectError("the model can't be read now")
        return self.world.look(name, self)


class Hand(ClusterPerformer):
    """The real one, which says what step it is at: going back, the journal shows it afterwards only."""

    def __init__(
        self,
        process: Process,
        actors: Mapping[str, Any],
        recipes: Recipes,
        observe: Callable[[Plan], Mapping[str, Json]],
    ) -> None:
        super().__init__(process.cluster.confirmed_id, actors, recipes, observe)
        self._process = process

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        self._process.step_id = step.step_id
        return super().act(step, report)

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        self._process.step_id = step.step_id
        return super().undo(step, acted, report)


class Sight:
    """The result of ``observe_groups``: as much of a snapshot as plans and actors of waves take from one."""

    def __init__(self, found: Mapping[str, GroupState], unread: Mapping[str, str] | None = None) -> None:
        self.found, self.unread = found, dict(unread or {})
        self.read_timings = pl.DataFrame({"duration_ms": [1.0]})
        self.read_errors = pl.DataFrame(schema=dict.fromkeys(("group_id", "topic", "subject", "error"), pl.String))

    @property
    def migration_states(self) -> pl.DataFrame:
        rows = [
            {"group_id": name, "mode": found.mode, "mode_version": found.mode_version, "mode_mzxid": None}
            for name, found in self.found.items()
            if found.mode is not None
        ]
        return pl.DataFrame(
            rows, {"group_id": pl.String, "mode": pl.String, "mode_version": pl.Int32, "mode_mzxid": pl.Int64}
        )

    @property
    def members(self) -> pl.DataFrame:
        rows = [
            {"group_id": name, "source": ZOOKEEPER, "member_id": member.member_id}
            for name, found in self.found.items()
            for member in found.members
            if member.flavour != KC
        ]
        return pl.DataFrame(rows, {"group_id": pl.String, "source": pl.String, "member_id": pl.String})

    @property
    def lag(self) -> pl.DataFrame:
        """Return the lag: every offset of the model's groups is in Kafka."""
        rows = [
            {"group_id": name, "topic": topic, "partition": number, "lag": offsets.lag}
            for name, found in self.found.items()
            for (topic, number), offsets in found.offsets.items()
        ]
        schema = {"group_id": pl.String, "topic": pl.String, "partition": pl.Int32, "lag": pl.Int64}
        return pl.DataFrame(rows, schema).with_columns(
            store=pl.lit(KAFKA), is_stale=pl.lit(False), has_no_commit=pl.lit(False)
        )


def _sight(cluster: Any, names: Iterable[str]) -> Sight:
    """Return the sight: an error of one group is reported of that group."""
    found, unread = {}, {}
    for name in names:
        try:
            found[name] = cluster.process.look(name)
        except ConnectError as error:
            unread[name] = str(error)
    return Sight(found, unread)


def _whole_sight(cluster: Any, names: Iterable[str]) -> Sight:
    sight = _sight(cluster, names)
    if sight.unread:
        raise ConnectError(next(iter(sight.unread.values())))
    return sight


def _readable(sight: Sight, names: Iterable[str]) -> tuple[list[GroupState], dict[str, str]]:
    return [sight.found[name] for name in names if name in sight.found], dict(sight.unread)


def _look(cluster: Any, name: str) -> Any:
    return cluster.process.look(name)


@contextmanager
def seams() -> Iterator[None]:
    """The actors' looks are the model's; nothing else of them is replaced."""
    views = SimpleNamespace(lag=lambda sight: sight.lag)
    with ExitStack() as stack:
        for module in (replace, toggle, soak, group):
            stack.enter_context(patch.object(module, "read_group_state", _look))
        for module in (wave, fleet):
            stack.enter_context(patch.object(module, "observe_some", _sight))
        stack.enter_context(patch.object(circuit_breaker, "observe_groups", _whole_sight))
        stack.enter_context(patch.object(wave, "readable_group_states", _readable))
        stack.enter_context(patch.object(circuit_breaker, "views", views))
        stack.enter_context(patch.object(toggle, "_Watch", _NoWatch))
        yield


class _NoWatch:
    """The watch of owner znodes has a client of its own, and only measures."""

    def __init__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass

    def handovers(self) -> Mapping[str, Json]:
        return toggle.NOT_WATCHED
