"""Every notebook is built alike: prose, parameters, short cells, a last cell that verifies; nothing stored in it."""

from __future__ import annotations

import ast
import re

import nbformat
import papermill
import pytest

from tests.notebooks.executed import NOTEBOOKS, ROOT

FILES = sorted(path for path in NOTEBOOKS.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)
MAX_LINES = 10
ABSOLUTE_PATH = re.compile(r"^(/[\w.-]+/|~|[A-Za-z]:[\\/])")
FOLDER_OF_A_MACHINE = re.compile(r"(?<![\w.])/(home|root|Users|tmp|mnt|opt|var|work)/")
VERIFYING = {"verify", "verify_idle", "verify_read"}


@pytest.fixture(params=FILES, ids=[str(path.relative_to(NOTEBOOKS)) for path in FILES])
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    found = nbformat.read(path, as_version=4)
    nbformat.validate(found)
    return found


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_notebooks():
    assert {str(path.relative_to(NOTEBOOKS)) for path in FILES} >= {"explore/group.ipynb", "report/groups.ipynb"}


def test_it_begins_with_what_it_does(notebook):
    first = notebook.cells[0]
    assert first.cell_type == "markdown"
    assert first.source.startswith("# ")


def test_its_parameters_are_annotated_with_defaults_and_help(path, notebook):
    tagged = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ())]
    assert len(tagged) == 1
    assert tagged[0] is notebook.cells[1]
    statements = ast.parse(tagged[0].source).body
    assert statements
    for statement in statements:
        assert isinstance(statement, ast.AnnAssign), ast.unparse(statement)
        assert isinstance(statement.value, ast.Constant), ast.unparse(statement)
    inspected = papermill.inspect_notebook(path)
    assert len(inspected) == len(statements)
    for name, parameter in inspected.items():
        assert parameter["inferred_type_name"] in ("bool", "int", "float", "str"), name
        assert parameter["help"], f"{name} has no comment"


def test_nothing_is_stored_in_it(notebook):
    for number, cell in enumerate(code_cells(notebook)):
        assert cell.outputs == [], f"code cell {number}"
        assert cell.execution_count is None, f"code cell {number}"
    assert "widgets" not in notebook.metadata


def test_its_code_cells_are_short(notebook):
    cells = [cell for cell in code_cells(notebook) if "parameters" not in cell.metadata.get("tags", ())]
    lengths = {cell.id: len(cell.source.splitlines()) for cell in cells}
    assert {name: length for name, length in lengths.items() if not 1 <= length <= MAX_LINES} == {}


def shows(cell) -> bool:
    """Return whether a cell's output would stand in a page: what it prints or displays, and the value of its last
    line.
    """
    tree = ast.parse(cell.source)
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    is_value = isinstance(tree.body[-1], ast.Expr) and ast.unparse(tree.body[-1]) != "kit.display.prepare()"
    return bool(called & {"print", "display", "kit.display.table"}) or is_value


def test_if_there_is_a_brief_nothing_is_shown_before_it(notebook):
    cells = code_cells(notebook)
    briefs = [at for at, cell in enumerate(cells) if re.search(r"^\w*brief\.\w*brief\(", cell.source, re.MULTILINE)]
    if briefs:
        assert [cell.source for cell in cells[: briefs[0]] if shows(cell)] == []


def test_its_last_cell_verifies(notebook):
    last = notebook.cells[-1]
    assert last.cell_type == "code"
    calls = [node.func for node in ast.walk(ast.parse(last.source)) if isinstance(node, ast.Call)]
    assert {call.attr for call in calls if isinstance(call, ast.Attribute)} & VERIFYING


def test_it_names_no_folder_of_a_machine(notebook):
    strings = [
        node.value
        for cell in code_cells(notebook)
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert [text for text in strings if ABSOLUTE_PATH.match(text)] == []
    assert [cell.source for cell in notebook.cells if FOLDER_OF_A_MACHINE.search(cell.source)] == []
    assert str(ROOT) not in nbformat.writes(notebook)


@pytest.mark.parametrize("text", ["/etc/offramp.toml", "~/offramp.toml", "C:\\data", "c:/data"])
def test_an_absolute_path_would_be_seen(text):
    assert ABSOLUTE_PATH.match(text)


@pytest.mark.parametrize("text", ["application/json", ".*", "/consumers", "", "topic"])
def test_other_text_is_not_taken_for_one(text):
    assert not ABSOLUTE_PATH.match(text)
