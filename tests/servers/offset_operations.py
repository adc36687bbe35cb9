"""Offset plans executed on real servers: one operator's runs, what both stores hold, and members that join."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from kit import connect
from kit.engine.execution.run import Run, start_run
from kit.engine.model.approval import approve
from kit.engine.model.states import RunState
from kit.errors import TargetBusy
from kit.lab.process import wait_until
from kit.moves.offsets.fetch import Stores, fetch_stores
from kit.moves.offsets.kafka import KafkaWriter
from kit.moves.offsets.moves import Stored
from kit.moves.offsets.performer import OffsetsPerformer
from kit.moves.offsets.zookeeper import offset_path
from kit.profile import load_profile
from tests.servers.awaiting import SECONDS, awaited

DEADLINE_S = 60.0


class ProcessLock:
    """One run at a time per group, in this process."""

    def __init__(self) -> None:
        self._holders: dict[str, str] = {}

    def acquire(self, targets, run_id) -> None:
        for target in targets:
            if target in self._holders:
                raise TargetBusy(f"{target} is worked on by {self._holders[target]}")
        self._holders |= dict.fromkeys(targets, run_id)

    def assert_held(self) -> None:
        pass

    def mark(self, targets, run_id) -> None:
        pass

    def followed_by(self, targets, run_id) -> dict[str, str]:
        return {}

    def mark_settled(self, targets, run_id) -> None:
        pass

    def unsettled(self, targets, run_id) -> None:
        return None

    def release(self) -> None:
        self._holders.clear()


class OffsetOperations:
    """Plans executed on one cluster, and what both stores hold."""

    def __init__(self, cluster, root) -> None:
        self.cluster, self._root = cluster, root
        self.performer = OffsetsPerformer(cluster, DEADLINE_S)
        self.kafka = KafkaWriter(cluster.broker_client, DEADLINE_S)

    def run(self, plan, tell=None) -> Run:
        now = datetime.now(UTC)
        prefix = plan.digest[:8]
        approval = approve(
            plan,
            typed_subject=plan.subject,
            typed_digest_prefix=prefix,
            approver="Bob",
            now=now,
            valid_for=timedelta(hours=1),
        )
        folder = start_run(plan, approval, self._root)
        return Run(folder, self.performer, ProcessLock(), poll_s=0.1, tell=tell)

    def act(self, plan) -> Run:
        run = self.run(plan)
        run.act().raise_unless(RunState.VERIFIED)
        return run

    def commit(self, group: str, topic: str, offsets: Mapping[int, int | Stored]) -> None:
        wanted = {
            (group, topic, partition): it if isinstance(it, Stored) else Stored(it) for partition, it in offsets.items()
        }

        def errors() -> set[str | None]:
            return {answer.error for answer in self.kafka.write(wanted, {}).values()}

        awaited(errors, lambda found: found == {None}, "the commit: a coordinator learns of a new topic a moment later")

    def put(self, group: str, topic: str, offsets: Mapping[int, int | str]) -> None:
        for partition, offset in offsets.items():
            path = offset_path((group, topic, partition))
            self.cluster.zookeeper.ensure_path(path)
            self.cluster.zookeeper.set(path, str(offset).encode())

    def stored(self, store: str, group: str) -> Mapping:
        return fetch_stores(self.cluster, lambda each: each == group).group(store, group).offsets

    def offsets(self, store: str, group: str) -> dict:
        return {place: stored.offset for place, stored in self.stored(store, group).items()}

    def everything(self) -> Stores:
        """All offsets of both stores with all that is stored beside them: versions too."""
        return fetch_stores(self.cluster, lambda each: True)

    def await_no_members(self, group: str) -> None:
        awaited(lambda: self.everything().kafka[group].members, lambda members: not members, f"no member in {group}")


@contextmanager
def one_topic(lab, request, folder, partitions: int) -> Iterator[OffsetOperations]:
    """A cluster with a topic of the test's name and 100 records; ``group`` has no offsets yet."""
    path = folder / "offramp.toml"
    path.write_text(lab.profile_toml())
    name = request.node.name.replace("[", "-").rstrip("]").removeprefix("test_")[:80]
    lab.create_topic(name, partitions)
    lab.produce(name, 100)
    with connect(load_profile(file=path)) as cluster:
        site = OffsetOperations(cluster, folder / "runs")
        site.lab, site.topic, site.group = lab, name, f"g-{name}"
        yield site


def await_member(consumer, topic):
    """Returns when partitions are assigned to it."""

    def is_member():
        consumer.poll(0.1)
        return bool(consumer.assignment())

    consumer.subscribe([topic])
    wait_until(is_member, "partitions assigned", SECONDS)


def register(cluster, group, name):
    """Register like an old consumer: an ephemeral znode under ids."""
    path = f"/consumers/{group}/ids/{group}_{name}"
    cluster.zookeeper.create(
        path, b'{"version":1,"subscription":{},"pattern":"static","timestamp":"1"}', ephemeral=True, makepath=True
    )
    return path


def when_acting(do):
    """``tell`` for a run: ``do`` once, when the preconditions are checked and nothing is written yet."""
    done = []

    def tell(event):
        if event.event == "moved" and event.state == RunState.ACTING and not done:
            done.append(event)
            do()

    return tell


def outcomes_of(run, plan):
    """Outcome and error by item, over all steps."""
    acted = [outcome for step in plan.steps for outcome in run.record.acted(step).outcomes]
    assert len(acted) == sum(len(step.changes) for step in plan.steps), "an item has no outcome"
    return {it.item: (it.outcome, it.error) for it in acted}
