"""The names that the notebooks import from the project, and the modules that they name, exist: no checker of types
reads them.
"""

from __future__ import annotations

import ast
from importlib import import_module
from inspect import ismodule
from pathlib import Path
from types import ModuleType

import nbformat
import pytest

from kit.presentation.notebook_files import notebooks


def missing_names(code: str) -> list[str]:
    """Each name that is imported from ``kit`` or ``widgets``, or taken from a module of theirs, and is not there."""
    nodes, missing, modules = list(ast.walk(ast.parse(code))), list[str](), dict[str, ModuleType]()
    for node in nodes:
        if isinstance(node, ast.Import):
            modules |= {each.name: import_module(each.name) for each in node.names if _is_ours(each.name)}
        elif isinstance(node, ast.ImportFrom) and _is_ours(str(node.module)):
            for each in node.names:
                found = _taken(import_module(str(node.module)), each.name)
                missing += [f"{node.module}.{each.name}"] if found is None else []
                modules |= {each.asname or each.name: found} if ismodule(found) else {}
    chains = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}  # also the parts of longer ones
    return sorted({*missing, *(chain for chain in chains if not _is_there(chain, modules))})


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in {"kit", "widgets"}


def _taken(module: ModuleType, name: str) -> object | None:
    """A module's name, or a module in it, as ``from`` finds it."""
    if hasattr(module, name):
        return getattr(module, name)
    try:
        return import_module(f"{module.__name__}.{name}")
    except ModuleNotFoundError:
        return None


def _is_there(chain: str, modules: dict[str, ModuleType]) -> bool:
    """Return whether each module on the way has the next name. What others, or calls, return is not followed."""
    first, *rest = chain.split(".")
    found: object = modules.get(first)
    for name in rest:
        if not ismodule(found) or not name.isidentifier():
            return True
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return True


@pytest.mark.parametrize("file", sorted(notebooks().glob("*/*.ipynb")), ids=lambda file: file.stem)
def test_every_name_in_a_notebook_is_there(file: Path):
    cells = nbformat.read(file, as_version=4).cells
    assert missing_names("\n".join(cell.source for cell in cells if cell.cell_type == "code")) == []


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ("from kit import preflight\npreflight.gone(1)", ["preflight.gone"]),
        ("from kit.kraft.preflight import gone", ["kit.kraft.preflight.gone"]),
        ("from kit import gone", ["kit.gone"]),
        ("import kit\nkit.display.gone", ["kit.display.gone"]),
        ("from kit import preflight as p\np.kraft_preflight(1).gone", []),
        ("import kit\nkit.connect(1).gone", []),
    ],
)
def test_a_name_that_is_gone_is_seen(code: str, missing: list[str]):
    assert missing_names(code) == missing
