"""One run explained by its evidence alone: no cluster is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from kit.engine.model.event import at
from kit.engine.model.progress import in_order
from kit.engine.model.record import RunRecord, list_runs, load_run
from kit.engine.model.states import RunState
from kit.engine.rendering.stretches import step_stretches
from kit.errors import NotFound, RunError
from kit.operations.frames import matching
from kit.presentation.chart import frame_of, shortened, titled
from kit.proof.analyze.duplicates import CAUSES
from kit.proof.consumption import load_consumption, load_production
from kit.proof.verify import handed_out_of, prove
from kit.text.quantity import quantity

_COLOURS = {"checking": "#9db8d2", "acting": "#d1603d", "verifying": "#3b6ea5", "undoing": "#8a6d9e"}
MAX_STEPS = 60
_GOOD = (RunState.VERIFIED, RunState.UNDONE)


def load(runs: Path | str, run_id: str = "") -> RunRecord:
    """A run, held against itself; without an id the newest one of the folder.

    Raises:
        NotFound: there is no such run.
        EvidenceError: its evidence was edited or can't be read.
    """
    root = Path(runs)
    run_ids = [row.run_id for row in in_order(list_runs(root)) if run_id in ("", row.run_id)]
    if not run_ids:
        named = f"run {run_id!r}" if run_id else "run"
        raise NotFound(f"there is no {named} in {root}: name the folder of the runs, or see offramp runs")
    return load_run(root / run_ids[-1])


def verify(record: RunRecord) -> str:
    """Check how a run ended.

    Raises:
        RunError: the run did not end verified, or undone.
    """
    if record.state not in _GOOD:
        raise RunError(f"run {record.run_id} is {record.state}: {record.sentence}")
    return f"Run {record.run_id} is {record.state}: {record.sentence}"


def lost_and_twice(
    record: RunRecord, consumption: Path | str = "", production: Path | str = "", consumers: str = ".*"
) -> list[str]:
    """Sentences: of the records that were produced while the run continued, how many were lost, how many read twice.

    Args:
        consumption, production: folders as of ``kit.proof.consumption``; empty: then it was not measured.
        consumers: regular expression of the ids of the group's consumers, where others write into that folder too.

    Raises:
        HistoryError: there is no such folder, or a file can't be read.
        InputError: ``consumers`` is no regular expression.
    """
    if not (consumption and production):
        return ["Not measured: name the folders in which consumers and producers wrote down their records."]
    began, ended = at(record.events[0]), at(record.events[-1])
    produced = load_production(Path(production)).records.filter(
        pl.from_epoch("at_ms", time_unit="ms").dt.replace_time_zone("UTC").is_between(began, ended)
    )
    members = matching(load_consumption(Path(consumption), record.plan.subject).records, consumers, "consumer")
    proof = prove(handed_out_of(members, produced), produced)
    if proof.summary.is_empty():
        return [f"Not measured: of {quantity(len(produced), 'record')} produced during the run none was delivered."]
    found = proof.summary.row(0, named=True)
    n_twice = sum(found[f"duplicates_{cause}"] for cause in CAUSES)
    total = f"Of {quantity(len(produced), 'record')} produced from {began:%H:%M:%S} to {ended:%H:%M:%S} UTC"
    return [f"{total}: lost {found['lost']:,}, delivered twice {n_twice:,}.", *proof.describe().splitlines()]


def phases(record: RunRecord) -> pl.DataFrame:
    """One row per stretch of work on a step: step (number and title), phase, began_at, ended_at, seconds."""
    titles = {step.step_id: f"{number}. {step.title}" for number, step in enumerate(record.plan.steps, 1)}
    rows = [
        (titles.get(each.step_id, each.step_id), each.phase, each.began_at, each.ended_at, each.seconds)
        for each in step_stretches(record)
    ]
    at_us = pl.Datetime("us", "UTC")
    schema: dict[str, Any] = {
        "step": pl.String,
        "phase": pl.String,
        "began_at": at_us,
        "ended_at": at_us,
        "seconds": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def timeline(record: RunRecord) -> alt.Chart:
    """A bar per stretch of work, a line per step in the plan's order, the last ``MAX_STEPS`` that began; UTC."""
    every = frame_of(phases(record))
    worked_on = every["step"].unique(maintain_order=True).to_list()
    stretches = every.filter(pl.col("step").is_in(worked_on[-MAX_STEPS:]))
    order = stretches["step"].unique(maintain_order=True).to_list()
    notes = [shortened(len(order), len(worked_on), "steps, the last ones")]
    present = [phase for phase in _COLOURS if phase in set(stretches["phase"])]
    colours = alt.Scale(domain=present, range=[_COLOURS[phase] for phase in present])
    # A bar of some milliseconds would not be seen.
    chart = alt.Chart(stretches).mark_bar(minBandSize=2, stroke="white", strokeWidth=0.5, height={"band": 0.7})
    encoded: alt.Chart = chart.encode(
        x=alt.X("began_at:T", title="time (UTC)", scale=alt.Scale(type="utc"), axis=alt.Axis(format="%H:%M:%S")),
        x2="ended_at:T",
        y=alt.Y("step:N", title=None, sort=order, axis=alt.Axis(labelLimit=360)),
        color=alt.Color("phase:N", title=None, scale=colours, sort=present),
        tooltip=["step:N", "phase:N", alt.Tooltip("seconds:Q", format=".2f")],
    ).properties(width=560, height=alt.Step(26), title=titled(f"Run {record.run_id}", notes))
    return encoded
