"""A run explained by its evidence: the newest one, when its steps were worked on, how it ended."""

from __future__ import annotations

import polars as pl
import pytest

from kit.errors import EvidenceError, NotFound, RunError
from kit.groups.show import charts
from kit.operations import evidence, frames
from tests.models.operations import GROUP, PAUSE, ToyGroup, open_toy


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One run that was verified, then one that was undone."""
    folder = tmp_path_factory.mktemp("evidence") / "runs"
    model = open_toy(ToyGroup(), folder)
    model.soak_s = 0.0
    for stage in ("canary MEZKCC", "Kafka coordination"):
        model.to_stage = stage
        model.make_plan()
        model.wait(20)
        model.typed_subject, model.typed_digest = GROUP, model.plan.digest[:8]
        model.approve()
        model.act()
        model.wait(20)
    model.undo(GROUP)
    model.wait(20)
    return folder


def test_the_newest_run_or_the_one_that_is_named(runs, tmp_path):
    newest = evidence.load(runs)
    assert evidence.verify(newest) == (
        f"Run {newest.run_id} is UNDONE: Every write of the run was undone and read back."
    )
    others = sorted(path.name for path in runs.glob("2*") if path.name != newest.run_id)
    assert "is VERIFIED" in evidence.verify(evidence.load(runs, others[0]))
    with pytest.raises(NotFound, match="no run 'x'"):
        evidence.load(runs, "x")
    with pytest.raises(NotFound, match="there is no run in"):
        evidence.load(tmp_path)


def test_a_step_has_a_stretch_for_each_thing_done_to_it(runs):
    newest = evidence.load(runs)
    found = evidence.phases(newest)
    assert set(found["phase"]) == {"checking", "acting", "verifying", "undoing"}
    assert set(found["step"]) == {f"{number}. {step.title}" for number, step in enumerate(newest.plan.steps, 1)}
    assert found["seconds"].min() >= 0
    assert charts.svg(evidence.timeline(newest)).startswith("<svg")


def test_frames_report_what_the_journal_holds(runs):
    newest = evidence.load(runs)
    outcomes = frames.outcomes(newest)
    assert outcomes["outcome"].to_list() == ["CONFIRMED"] * 6
    for frame in (outcomes, frames.verifications(newest)):
        assert frame.schema["at"] == pl.Datetime("us", "UTC"), (
            "a time is reported as all are, not as the journal writes it"
        )
        assert frame["at"].null_count() == 0
    assert outcomes["step"].to_list()[-1].startswith("undo of 01-")
    assert frames.toggle_handovers(newest).rows() == [("02-toggle-kafka", *PAUSE.values())]
    assert frames.steps(newest)["phase"].to_list() == ["undone", "undone"]
    assert frames.verdict(newest)["approved_by"].to_list() == [newest.approvals[0].approved_by]
    assert len(frames.events(newest)) == len(newest.events)


@pytest.mark.parametrize("frame", [frames.plan, frames.dry_run, frames.differences, frames.steps, frames.outcomes])
def test_an_empty_frame_has_no_rows(frame):
    assert frame(None).is_empty()


def test_a_run_that_did_not_end_well_fails_and_an_edited_one_is_refused(runs, tmp_path):
    model = open_toy(ToyGroup(), tmp_path)
    model.make_plan()
    model.wait(20)
    model.typed_subject, model.typed_digest = GROUP, model.plan.digest[:8]
    model.approve()
    model.operations.begin(model.plan)
    with pytest.raises(RunError, match="is APPROVED"):
        evidence.verify(evidence.load(tmp_path))
    events = evidence.load(tmp_path).folder / "events.jsonl"
    events.write_text(events.read_text().replace("shop", "shap", 1))
    with pytest.raises(EvidenceError):
        evidence.load(tmp_path)
