"""Two offset stores in memory under the real planners, rules and performer, for the model of moving offsets."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

from kit.engine.execution.run import Run
from kit.errors import ConnectError
from kit.groups.read.commit_limits import CommitLimits
from kit.groups.read.rights import EVERYTHING
from kit.groups.read.topics import TopicSight
from kit.moves.offsets import build, current, observations, performer, plan
from kit.moves.offsets.fetch import GroupInStore, Stores
from kit.moves.offsets.kafka import ACCEPTED
from kit.moves.offsets.moves import NOTHING, Stored, item_of
from kit.moves.offsets.topics import Present, Topic
from kit.moves.undo_rights import UNDO_RIGHTS
from kit.operations.operations import Operations
from kit.profile import ApprovalSettings, DeploySettings
from kit.tables.groups import KAFKA, ZOOKEEPER, LogOffset
from tests.models.operations import ToyLock
from widgets.offsets.model import OffsetMove


class ToyStore:
    """One store, also as its writer; ``gate`` holds writes back while it is cleared."""

    def __init__(self, toy: ToyOffsets, name: str) -> None:
        self.toy, self.name = toy, name
        self.offsets: dict[tuple[str, str, int], int] = {}
        self.members: dict[str, tuple[str, ...]] = {}

    def groups(self, accepts) -> dict[str, GroupInStore]:
        if self.toy.is_away:
            raise ConnectError(f"{self.name} does not answer")
        found = {}
        for group_id in sorted({*(key[0] for key in self.offsets), *self.members}):
            members = self.members.get(group_id, ())
            held = {key[1:]: Stored(offset) for key, offset in self.offsets.items() if key[0] == group_id}
            state = ("Stable" if members else "Empty") if self.name == KAFKA else None
            found[group_id] = GroupInStore(state, members, held)
        return {group_id: group for group_id, group in found.items() if accepts(group_id)}

    def read(self, keys):
        return {key: Stored(self.offsets[key]) if key in self.offsets else NOTHING for key in keys}

    def write(self, wanted, known):
        self.toy.gate.wait(20)
        for key, stored in wanted.items():
            self.toy.writes.append(f"{self.name} {item_of(key)} {stored.offset}")
            if stored.offset is None:
                del self.offsets[key]
            else:
                self.offsets[key] = stored.offset
        return dict.fromkeys(wanted, ACCEPTED)

    def take_made_parents(self):
        return {}

    def remove_parents(self, made) -> None:
        pass


class ToyOffsets:
    """``install`` puts the stores and logs where the planners would ask a cluster."""

    def __init__(self) -> None:
        self.stores = {name: ToyStore(self, name) for name in (ZOOKEEPER, KAFKA)}
        self.zookeeper, self.kafka = self.stores[ZOOKEEPER].offsets, self.stores[KAFKA].offsets
        self.logs: dict[tuple[str, int], tuple[int, int]] = {}
        self.writes: list[str] = []
        self.asked: list[set[str]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.is_away = False

    def install(self, monkeypatch) -> None:
        fetch = {
            "fetch_stores": lambda cluster, accepts, only_stable=True: self._read(accepts),
            "fetch_kafka": lambda cluster, accepts: self.stores[KAFKA].groups(accepts),
            "fetch_zookeeper": lambda cluster, accepts: self.stores[ZOOKEEPER].groups(accepts),
            "fetch_logs": lambda cluster, topics: self._read_logs(topics),
            "fetch_topics": lambda cluster: self._read_topics(),
            "fetch_present": lambda cluster, offsets: Present(
                self._read_topics(), self._read_logs({topic for topic, _ in self.logs})
            ),
            "fetch_sight": lambda client, zookeeper: TopicSight(),
            "fetch_unseen_groups": lambda client: None,
            "fetch_unsure": lambda cluster, topics: {},
            "fetch_commit_limits": lambda client: CommitLimits(),
            "missing_of": lambda client, paths: [],
            "kafka_finding": lambda client, groups, topics: UNDO_RIGHTS.found(True, "all"),
            "zookeeper_finding": lambda cluster, needed: UNDO_RIGHTS.found(True, "all"),
        }
        for module in (plan, current, observations, performer, build):
            for name, toy in fetch.items():
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, toy)

    def _read(self, accepts) -> Stores:
        found = Stores(*(self.stores[name].groups(accepts) for name in (KAFKA, ZOOKEEPER)))
        self.asked.append(found.known())
        return found

    def _read_topics(self) -> dict[str, Topic]:
        topics = {topic for topic, _ in self.logs}
        return {topic: Topic(None, {number: 0 for name, number in self.logs if name == topic}) for topic in topics}

    def _read_logs(self, topics) -> dict[tuple[str, int], LogOffset]:
        return {place: LogOffset(*place, *ends) for place, ends in self.logs.items() if place[0] in topics}


class ToyPerformer(performer.OffsetsPerformer):
    """The real one but for where it writes."""

    cluster_id = "toy"

    def __init__(self, cluster, toy: ToyOffsets) -> None:
        super().__init__(cluster)
        self._toy = toy

    def _writer(self, step):
        return self._toy.stores[step.parameters["store"]]


class ToyDesk(Operations):
    """The real one but for its performer and its lock."""

    def __init__(self, toy: ToyOffsets, runs: Path, say, tell) -> None:
        self.toy = toy
        profile = SimpleNamespace(deploy=DeploySettings(), approvals=ApprovalSettings())
        client = SimpleNamespace(
            supports=lambda request, version: True,
            run=lambda request, client, names, deadline: dict.fromkeys(names, EVERYTHING),  # the rights of the login
        )
        cluster = SimpleNamespace(
            profile=profile,
            cluster_id="toy",
            confirmed_id=lambda: "toy",
            name="toy",
            zookeeper=toy,
            broker_client=client,
        )
        super().__init__(cluster, runs, say, tell)  # type: ignore[arg-type]

    def _run(self, folder: Path, plan) -> Run:
        return Run(folder, ToyPerformer(self.cluster, self.toy), ToyLock(), poll_s=0.01, tell=self._tell)

    def _performer(self, plan):
        return ToyPerformer(self.cluster, self.toy)


def open_toy(toy: ToyOffsets, runs: Path) -> OffsetMove:
    """A model as another kernel would make it: it knows what is in ``runs``."""

    def look(selection, to_groups):
        return current.fetch_committed(None, selection, to_groups)  # type: ignore[arg-type]

    return OffsetMove(lambda say, tell: ToyDesk(toy, runs, say, tell), look)
