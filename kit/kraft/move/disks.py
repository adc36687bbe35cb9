"""Find the run that started controllers whose disks no later run wiped. A disk can't be seen from outside: the
runs' journals show it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kit.engine.model.record import RunRecord, list_runs, load_run
from kit.engine.runs_folder import run_folder
from kit.errors import ReadError
from kit.kraft.move.steps import START, WIPE
from kit.kraft.subject import KIND


def disks_problem(runs: Path, cluster_id: str) -> str | None:
    """Return why a disk may hold the log of an earlier move, by the runs of this cluster in this folder.

    A controller that starts on a log with a migration continues that migration, and waits for no broker (KIP-866,
    3.9.1).

    Raises:
        EvidenceError: the folder can't be read.
        ReadError: a run can't be read.
    """
    rows = list_runs(runs)
    if (unread := next((each for each in rows if each.error is not None), None)) is not None:
        raise ReadError(f"run {unread.run_id} can't be read: {unread.error}")
    own = (each for each in rows if (each.kind, each.cluster_id) == (KIND, cluster_id))
    run_id = started_last(load_run(run_folder(runs, each.run_id)) for each in own)
    if run_id is None:
        return None
    return (
        f"run {run_id} started the controllers, and no later run wiped their disks. Controllers that start with that "
        "log would continue the earlier move. If a run ended before its step that wipes the disks, resume that run. "
        "Otherwise empty metadata.log.dir of each controller, then: --override disks_wiped"
    )


def started_last(records: Iterable[RunRecord]) -> str | None:
    """The last run, oldest first, that began to start controllers, if no later step is known to have wiped them.

    The undo of a start wipes, too.
    """
    started = None
    for record in records:
        for step in record.plan.steps:
            if step.kind == START and step.step_id in record.begun - record.undone:
                started = record.run_id
            elif step.kind == WIPE and step.step_id in record.verified:
                started = None
    return started
