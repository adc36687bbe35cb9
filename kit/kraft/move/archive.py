"""Before the end: all that ZooKeeper holds in one file of the run's folder. After it: a list of what stays there.

Neither writes to the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from kit.clients.cluster import Cluster
from kit.engine.model.actor import ReadingActor
from kit.engine.model.performer import Checked, ItemOutcome, Report, Verified
from kit.engine.model.step import Step
from kit.engine.model.values import Json
from kit.errors import RunError
from kit.kraft.metadata_file import load_metadata
from kit.kraft.move.cluster_state import ClusterState, zookeeper_of
from kit.kraft.move.leftovers import leftovers
from kit.kraft.move.orders import NodeActor, NodeOperator, checked, first_problem
from kit.kraft.move.parameters import KraftParameters
from kit.kraft.move.rehearsals import sha256_of
from kit.kraft.preflight import save_metadata
from kit.text.quantity import quantity

ARCHIVE = "zookeeper.save"
"""In the run's folder, as of ``offramp kraft save``."""


class ArchiveActor(ReadingActor, NodeActor):
    """``save`` writes ZooKeeper's content to a file."""

    def __init__(self, hands: NodeOperator, save: Callable[[Cluster, Path], object] = save_metadata) -> None:
        super().__init__(hands)
        self._save = save

    def check(self, step: Step) -> Checked:
        parameters = KraftParameters.of(step)
        return checked(
            first_problem(lambda: _unread(self.hands.read_state(parameters))), "ZooKeeper's control znodes are read"
        )

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Save what is missing. A save of a process that was cut off stays: nothing was finalised since.

        Raises:
            RunError: there is no folder: only a run has one.
            InputError: the file can't be written.
            ConnectError: ZooKeeper stopped answering.
        """
        if not self._file.exists():
            self._save(self.cluster, self._file)
        return []

    def verify(self, step: Step) -> Verified:
        """Read the file back, and report what it holds.

        Raises:
            RunError: there is no folder: only a run has one.
            InputError: the file is gone, or is no such file.
            ReadError: it is damaged.
        """
        saved = load_metadata(self._file)  # Each table against its own SHA-256.
        errors = [each for each in saved.znodes.column("error").to_pylist() if each]
        if errors:
            return Verified(
                False,
                f"ZooKeeper's content was not read completely: {errors[0]} ({quantity(len(errors), 'error')} in all)",
            )
        evidence: dict[str, Json] = {"file": ARCHIVE, "sha256": sha256_of(self._file), "counts": dict(saved.counts)}
        return Verified(True, f"{ARCHIVE} in the run's folder holds {saved.contents}; no secret is in it", evidence)

    @property
    def _file(self) -> Path:
        """Raises:
        RunError: there is no folder: only a run has one.
        """
        if self.hands.folder is None:
            raise RunError(
                "this step saves ZooKeeper's content in the folder of a run, and no run was started: offramp act PLAN"
            )
        return self.hands.folder / ARCHIVE


class ListActor(ReadingActor, NodeActor):
    def check(self, step: Step) -> Checked:
        parameters = KraftParameters.of(step)
        return checked(first_problem(lambda: _unread(self.hands.read_state(parameters))), "ZooKeeper answers")

    def verify(self, step: Step) -> Verified:
        """Name what stays in ZooKeeper.

        Raises:
            ConnectError: ZooKeeper does not answer.
        """
        rows = leftovers(zookeeper_of(self.cluster))
        sentences = "; ".join(each.sentence for each in rows)
        return Verified(True, f"In ZooKeeper stay: {sentences}.", {"stays": tuple(each.to_json() for each in rows)})


def _unread(state: ClusterState) -> str | None:
    return next(iter(state.control.problems), None)
