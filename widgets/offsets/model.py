"""Moving committed offsets, as a model: the offsets now, and the procedure that changes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeAlias, cast

import traitlets as t

from kit.engine.model.plan import Plan
from kit.errors import InputError
from kit.moves.offsets.current import NEVER_SEEN, Committed, fetch_committed, member_rules
from kit.moves.offsets.files import load_offsets
from kit.moves.offsets.plan import COPY, DELETE, IMPORT, Selection, export_offsets, moves_offsets, save_backup, select
from kit.text.quantity import quantity
from widgets.offsets.request import REQUEST, OffsetRequest
from widgets.run.connection import Connection
from widgets.run.procedure import OpenOperations, Procedure
from widgets.run.run_model import showing

ReadCommitted: TypeAlias = Callable[[Selection, Mapping[str, str]], Committed]
WATCHED = 2_000
"""The largest number of partitions that is read repeatedly; a larger selection is read on request."""


class OffsetMove(Procedure, OffsetRequest):
    """``look`` reads the selected offsets on its own connection; ``close_all`` closes the connections of the model."""

    REQUEST = REQUEST
    about = "committed offsets"

    committed = t.Any(NEVER_SEEN, help="The last reading: a kit.moves.offsets.current.Committed.")
    checks = t.Any((), help="The rules about members, by the last reading: Findings.")

    def __init__(
        self, open_operations: OpenOperations, look: ReadCommitted, close_all: Callable[[], None] = lambda: None
    ) -> None:
        self._look = look
        self._seen_of: object = None
        super().__init__(open_operations, close_all)

    @classmethod
    def connected(cls, connection: Connection) -> Self:
        """Return the model on connections that end with it; raises as ``__init__`` and the first read."""
        return cls(connection.operations, connection.watching(fetch_committed), connection.close)

    def concerns(self, kind: str, subject: str) -> bool:
        return moves_offsets(kind)

    def set_request(self, what: str = "", **values: Any) -> None:
        """Set several traits of the request; an empty ``what`` changes nothing (the default is a copy)."""
        super().set_request(what=what or self.what, **values)

    def prepare(self, approval_digest: str = "", what: str = "") -> None:
        """Load the plan with this digest or, without a digest, plan the request; waits for the dry run.

        Raises:
            InputError: the plan does not do ``what`` (empty: any), or writes for groups that are not selected.
            OfframpError: see ``load_plan`` and ``make_plan``.
        """
        super().prepare(approval_digest)
        try:
            self._refuse_other(self._required_plan(), what)
        except InputError:
            self._void()
            raise

    @showing
    def look_again(self) -> None:
        """Read the selected offsets, however many. Raises IllegalMove: another action is running."""
        self._refuse_busy()
        self._worker.start("reading the committed offsets", self._look_afresh)

    @showing
    def export(self, path: str = "", store: str = "") -> None:
        """Save the selected offsets to a file (``.jsonl`` or ``.csv``), by default those of the store to be written.

        Raises:
            InputError: no file is named, or nothing is selected.
            IllegalMove: another action is running.
        """
        self._refuse_busy()
        if not path.strip():
            raise InputError("name the file to write: the name ends in .jsonl or .csv")
        file, selection = Path(path.strip()).expanduser(), self.required_selection()
        self._worker.start(f"saving offsets to {file}", lambda: self._save(file, store or self.target, selection))

    # Within the worker

    def _planning(self) -> tuple[str, Callable[[], Plan]]:
        plan = self.planner()
        return f"planning to {self.what} offsets", lambda: self._kept(plan(self.operations.cluster))

    def _kept(self, plan: Plan) -> Plan:
        """Offsets that the plan deletes are saved beside the plan first."""
        if plan.kind.startswith(DELETE):
            save_backup(plan, self.operations.backup_file(plan))
        return self.operations.save_plan(plan)

    def _save(self, file: Path, store: str, selection: Selection) -> None:
        exported = export_offsets(self.operations.cluster, file, store, selection, datetime.now(UTC))
        missing = f" Offsets may be missing in it. {' '.join(exported.gaps)}" if exported.gaps else ""
        self.sentence = f"{quantity(exported.n_offsets, 'offset')} of {store} saved to {file}.{missing}"

    def _look_afresh(self) -> None:
        self._seen_of = None
        self.refresh()

    def _reached(self) -> None:
        self._look_afresh()

    # The last reading

    def _see(self) -> None:
        asked = self._asked()
        if asked is None:
            self.committed = NEVER_SEEN
        elif asked != self._seen_of or self.is_small:
            self.committed = self._look(*asked)
        self._seen_of = asked
        self._judge()

    @property
    def is_small(self) -> bool:
        """Return whether the selection is small enough to be read repeatedly."""
        return len(self.committed.offsets) <= WATCHED

    def _asked(self) -> tuple[Selection, dict[str, str]] | None:
        """The selection or, without one, the groups of the file or the plan; and the other names of written groups."""
        selection = self.selected()
        if selection is not None:
            return selection, self.to_groups()
        if self.what == IMPORT and self.file.strip():
            file = load_offsets(self.path(), self.cluster_id, other_cluster=self.other_cluster, edited=self.edited)
            return select(groups={key[0] for key in file.offsets}), {}
        if self.plan is None:
            return None
        written = _written_for(self.plan)
        return select(groups=written), {read: other for read, other in written.items() if read != other}

    @t.observe("what", "source", "target")
    def _judge(self, change: Any = None) -> None:
        if self.committed.observed_at is None:
            self.checks = ()
            return
        is_copy = self.what == COPY
        renamed = self._seen_of[1] if is_copy and isinstance(self._seen_of, tuple) else {}
        self.checks = tuple(member_rules(self.committed, self.source if is_copy else None, self.target, renamed))

    def _refuse_other(self, plan: Plan, what: str) -> None:
        if what and not plan.kind.startswith(what):
            raise InputError(f"plan {plan.digest[:8]} is to {plan.kind}, not to {what} them: give another digest")
        selection = self.selected()
        groups = selection.groups if selection is not None else None
        others = set(_written_for(plan)) - groups if groups is not None else set()
        if others:
            raise InputError(f"plan {plan.digest[:8]} also writes group {min(others)!r}, which is not selected")

    def _can(self) -> dict[str, bool]:
        return {**super()._can(), "look": not self.busy, "export": not self.busy}


def _written_for(plan: Plan) -> dict[str, str]:
    """Each group that a plan reads → the group that it writes; another one only in a copy."""
    pairs = plan.parameters.get("groups")
    if isinstance(pairs, tuple):
        return dict(cast(tuple[tuple[str, str], ...], pairs))
    return {group_id: group_id for group_id in plan.targets}
