"""Names of strangers in files and their names: none leaves its folder, is a formula, or comes back otherwise."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given, settings

from kit.engine.model.plan import load_plan, save_plan
from kit.engine.model.record import list_runs, load_run
from kit.engine.runs_folder import list_plans, run_folder
from kit.moves.offsets.files import load_offsets, save_offsets
from kit.moves.offsets.moves import Stored
from kit.terminal.listing import print_frame
from kit.terminal.terminal import print_json, print_sentences, say, tell_csv
from kit.text.visible import cell, file_name, visible
from tests import hostile_faces
from tests.generators import hostile
from tests.models.engine import ModelRun, make_plan

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
NAMED = [name for name in hostile.GROUPS if name]


@given(hostile.texts())
def test_a_name_in_a_files_name_is_plain(text):
    told = file_name(text)
    assert told.replace("-", "a").isalnum()
    assert told.isascii()
    assert len(told) <= 40


@pytest.mark.parametrize("name", hostile_faces.ALL_IN_ONE)
def test_a_run_of_any_group_stays_in_its_folder(tmp_path, name):
    world = ModelRun(tmp_path / "runs", targets=(name,))
    world.run.act()
    assert [path.parent for path in tmp_path.rglob("*.jsonl")] == [world.folder]
    assert world.folder.parent == tmp_path / "runs"
    (row,) = list_runs(tmp_path / "runs")
    assert load_run(run_folder(tmp_path / "runs", row.run_id)).plan.subject == name


@settings(max_examples=30)
@given(hostile.groups().filter(bool))
def test_a_plan_comes_back_as_it_was(tmp_path_factory, name):
    folder = tmp_path_factory.mktemp("plan")
    plan = make_plan(targets=(name,))
    save_plan(plan, folder / "plan.json")
    assert load_plan(folder / "plan.json") == plan
    assert list_plans(folder) == ()


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_offsets_of_any_group_come_back_and_no_cell_is_a_formula(tmp_path, kind):
    """Opened in a spreadsheet, a cell that begins so would be executed."""
    offsets = {(name, "orders", 0): Stored(at, name) for at, name in enumerate(NAMED)}
    path = tmp_path / f"offsets.{kind}"
    save_offsets(path, "cluster", "kafka", offsets, NOW)
    assert load_offsets(path, "cluster").offsets == offsets
    if kind == "csv":
        body = path.read_bytes().decode().partition("\n")[2]
        cells = [cell for row in csv.reader(io.StringIO(body, newline="")) for cell in row]
        assert not [cell for cell in cells if cell.startswith(FORMULAS) and not cell.lstrip("-").isdecimal()]


def test_no_name_is_markup_or_moves_the_cursor_in_a_terminal(capsys, monkeypatch):
    """Every name in every place that a verb prints at; what is reported to be there is there."""
    names = [name for name in NAMED if len(name) < 150]
    frame = hostile_faces.of_every_type(names).drop("object")
    print_frame(frame.select("struct", "lists", "category", *names[:40]))
    print_frame(pl.DataFrame({"group_id": names, "error": names}))
    print_sentences(pl.DataFrame({"sentence": names}), at_most=len(names))
    say(*names)
    told = capsys.readouterr()
    assert {char for char in told.out + told.err if not char.isprintable()} == {"\n"}
    assert told.err.split("\n") == [*map(visible, names), ""]
    lines = told.out.split("\n")
    for name in names:
        assert any(cell(name) in line for line in lines) or len(name) > 40, name
        assert any(line.startswith(f"• {visible(name)[:20]}") for line in lines), name


def test_no_cell_of_a_csv_is_a_formula(capsys):
    tell_csv(pl.DataFrame({"group_id": NAMED, "lists": [[name] for name in NAMED]}))
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))[1:]
    assert not [cell for row in rows for cell in row if cell.startswith(FORMULAS)]
    assert [row[0] if not row[0].startswith("'") else row[0][1:] for row in rows] == NAMED


def test_json_is_exact_and_ascii(capsys):
    print_json({"names": list(hostile.TEXTS)})
    told = capsys.readouterr().out
    assert json.loads(told) == {"names": list(hostile.TEXTS)}
    assert {char for char in told if not char.isprintable()} == {"\n"}
    assert told.isascii()
