"""Moving committed offsets, as a model: what is committed now, and the procedure that changes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import traitlets as t

from kit.errors import InputError
from kit.migrate.engine.plan import Plan
from kit.migrate.offsets.current import NEVER_SEEN, Committed, member_rules
from kit.migrate.offsets.files import load_offsets
from kit.migrate.offsets.plan import COPY, DELETE, IMPORT, Selection, export_offsets, moves_offsets, save_backup, select
from widgets.offsets.target import WISH, OffsetWish
from widgets.run.procedure import OpenDesk, Procedure
from widgets.run.run_model import showing

Look: TypeAlias = Callable[[Selection, Mapping[str, str]], Committed]
WATCHED = 2_000
"""Partitions that are looked at again and again; more of them only when asked."""


class OffsetMove(Procedure, OffsetWish):
    """``look`` reads what is selected by a connection of its own; ``close_all`` ends what the model was given."""

    WISH = WISH
    about = "committed offsets"

    committed = t.Any(NEVER_SEEN, help="The last look: a kit.migrate.offsets.current.Committed.")
    checks = t.Any((), help="What members say about the wish, by the last look: Findings.")

    def __init__(self, open_desk: OpenDesk, look: Look, close_all: Callable[[], None] = lambda: None) -> None:
        self._look = look
        self._seen_of: object = None
        super().__init__(open_desk, close_all)

    def concerns(self, kind: str, subject: str) -> bool:
        return moves_offsets(kind)

    def wish_for(self, what: str = "", **values: Any) -> None:
        """Set what is wished at once; an empty ``what`` stays as it is: a copy, at first."""
        super().wish_for(what=what or self.what, **values)

    def prepare(self, approval_digest: str = "", what: str = "") -> None:
        """Take up the plan of that digest and no other, or else plan what is wished; waits until it is rehearsed.

        Raises:
            InputError: that plan does something else than ``what`` (empty: whatever it does), or is of groups that are
                not among those that are named.
            OfframpError: see ``load_plan`` and ``make_plan``.
        """
        super().prepare(approval_digest)
        try:
            self._refuse_other(self._wanted_plan(), what)
        except InputError:
            self._void()
            raise

    @showing
    def look_again(self) -> None:
        """Look at what is committed, however much it is. Raises IllegalMove: something is being done."""
        self._refuse_busy()
        self._worker.start("looking at what is committed", self._look_afresh)

    @showing
    def export(self, path: str = "", store: str = "") -> None:
        """Save what is selected to a file (``.jsonl`` or ``.csv``), by default of the store that would be written.

        Raises:
            InputError: no file or nothing is named.
            IllegalMove: something is being done.
        """
        self._refuse_busy()
        if not path.strip():
            raise InputError("say which file is to be written: its name ends in .jsonl or .csv")
        file, selection = Path(path.strip()).expanduser(), self.wanted_selection()
        self._worker.start(f"saving offsets to {file}", lambda: self._save(file, store or self.target, selection))

    # Within the worker

    def _planning(self) -> tuple[str, Callable[[], Plan]]:
        plan = self.planner()
        return f"planning to {self.what} offsets", lambda: self._kept(plan(self.desk.cluster))

    def _kept(self, plan: Plan) -> Plan:
        """What is deleted is saved beside the plan first."""
        if plan.kind.startswith(DELETE):
            save_backup(plan, self.desk.backup_file(plan))
        return self.desk.save_plan(plan)

    def _save(self, file: Path, store: str, selection: Selection) -> None:
        count = export_offsets(self.desk.cluster, file, store, selection, datetime.now(UTC))
        self.sentence = f"{count} offsets of {store} are saved to {file}."

    def _look_afresh(self) -> None:
        self._seen_of = None
        self.refresh()

    def _reached(self) -> None:
        self._look_afresh()

    # The last look

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
        """Whether what is selected is little enough to be looked at again and again."""
        return len(self.committed.offsets) <= WATCHED

    def _asked(self) -> tuple[Selection, dict[str, str]] | None:
        """What is selected or, if nothing is, what the file or the plan is about; and who is written for whom."""
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
            raise InputError(f"plan {plan.digest[:8]} is to {plan.kind}, not to {what} them")
        selection = self.selected()
        groups = selection.groups if selection is not None else None
        others = set(_written_for(plan)) - groups if groups is not None else set()
        if others:
            raise InputError(f"plan {plan.digest[:8]} is also of group {min(others)!r}, which is not selected")

    def _can(self) -> dict[str, bool]:
        return {**super()._can(), "look": not self.busy, "export": not self.busy}


def _written_for(plan: Plan) -> dict[str, str]:
    """The groups that a plan reads, with those that it writes for them: the same, unless it is a copy."""
    groups = plan.parameters.get("groups")
    return (
        {str(read): str(written) for read, written in groups.items()}
        if isinstance(groups, Mapping)
        else {each: each for each in plan.targets}
    )
