"""Names of a package that are loaded when they are first used, listed once: as imports for type checkers."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any


def lazy_names(package: str) -> tuple[list[str], Callable[[str], Any]]:
    """Return ``__all__`` and ``__getattr__`` of a module, of the names that it imports below ``if TYPE_CHECKING``."""
    homes = dict(_imports(ast.parse(sys.modules[package].__loader__.get_source(package))))  # type: ignore[union-attr]

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, inner = homes[name]
        loaded = import_module(module)
        is_module = module == package or not hasattr(loaded, inner)
        value = import_module(f"{module}.{inner}") if is_module else getattr(loaded, inner)
        setattr(sys.modules[package], name, value)
        return value

    return sorted(homes), get


def _imports(module: ast.Module) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each name, with the module that it is imported from and its name there."""
    (hints,) = (node for node in module.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    for node in hints.body:
        if isinstance(node, ast.ImportFrom):
            yield from ((each.asname or each.name, (str(node.module), each.name)) for each in node.names)
