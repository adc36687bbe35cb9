"""Controllers are not started on disks that a run left as they were."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kit.kraft.move.disks import started_last
from kit.kraft.move.gates import GATES
from kit.kraft.move.steps import START, WIPE
from tests.unit.kraft.move.move_plans import in_phase, look_at, plan_to

HANDED_BACK, ALL = ("roll brokers", "stop controllers", "hand back"), None


def run(name: str, to_phase: str, done: tuple[str, ...] | None = ALL, undone: tuple[str, ...] = ()) -> SimpleNamespace:
    """A run of a plan, of whose steps these kinds were done (``ALL``: each), and these undone."""
    plan = plan_to(to_phase)
    ids = {kind: {each.step_id for each in plan.steps if each.kind == kind} for kind in (START, WIPE)}
    reached = {each.step_id for each in plan.steps if done is ALL or each.kind in done}
    back = {step_id for kind in undone for step_id in ids[kind]}
    return SimpleNamespace(run_id=name, plan=plan, begun=reached, verified=reached, undone=back)


@pytest.mark.parametrize(
    ("runs", "found"),
    [
        ((), None),
        ((run("1", "controllers"),), "1"),
        ((run("1", "controllers", undone=(START,)),), None),
        ((run("1", "controllers"), run("2", "zookeeper")), None),
        ((run("1", "controllers"), run("2", "zookeeper", HANDED_BACK)), "1"),
        ((run("1", "controllers"), run("2", "zookeeper"), run("3", "controllers")), "3"),
        ((run("1", "controllers"), run("2", "zookeeper", HANDED_BACK), run("3", "repair /migration")), "1"),
    ],
)
def test_the_run_that_left_a_log_on_the_disks_is_named(runs, found):
    """Neither a rollback that ends after the hand-back wipes them, nor a repair of a left-over ``/migration``."""
    assert started_last(runs) == found


def test_a_run_that_cannot_be_read_may_have_started_them(tmp_path):
    (gate,) = (each for each in GATES["controllers"] if each.rule.check_id == "disks_wiped")
    look = replace(look_at(in_phase("zookeeper")), runs=tmp_path)
    assert [each.is_met for each in gate.found(look)] == [True]
    (tmp_path / "20261123T153542Z-move-to-kraft-production-7398").mkdir()
    (found,) = gate.found(look)
    assert found.is_met is None
    assert "can't be read" in found.sentence
