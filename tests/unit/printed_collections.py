"""Expressions of a source that print a list, a set or a dict in an f-string."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_MADE = {"sorted", "list", "tuple", "set", "frozenset", "dict", "Counter"}
_FIELDS = {"brokers", "columns", "fieldnames", "isr", "members", "modes", "nodes", "observers", "replicas"}
"""Attributes that are collections wherever the product has them."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LITERALS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _is_collection(value: ast.expr, known: set[str]) -> bool:
    """Return whether the expression makes a collection, or is a name that only collections were given in its
    function.
    """
    if isinstance(value, ast.NamedExpr):
        return _is_collection(value.value, known)
    if isinstance(value, ast.Name):
        return value.id in known
    if isinstance(value, ast.Attribute):
        return value.attr in _FIELDS
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in _MADE
    if isinstance(value, ast.BinOp):
        return _is_collection(value.left, known) or _is_collection(value.right, known)
    return isinstance(value, _LITERALS)


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, or of a module, itself: not of the functions within."""
    entered = [function]
    while entered:
        for child in ast.iter_child_nodes(entered.pop()):
            yield child
            if not isinstance(child, _FUNCTIONS):
                entered.append(child)


def _given(nodes: list[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value
                elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    yield from ((it.id, at) for it, at in zip(target.elts, node.value.elts) if isinstance(it, ast.Name))
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value


def printed_collections(tree: ast.AST) -> list[str]:
    """Each expression that makes a collection and is in an f-string, as ``line: expression``."""
    found = []
    for scope in (it for it in ast.walk(tree) if isinstance(it, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef)):
        nodes = list(_own_nodes(scope))
        printed = [it.value for it in nodes if isinstance(it, ast.FormattedValue)]
        given = list(_given(nodes)) if printed else []
        others = {name for name, value in given if not _is_collection(value, set())}
        known = {name for name, value in given if _is_collection(value, set())} - others
        found += [f"{it.lineno}: {ast.unparse(it)}" for it in printed if _is_collection(it, known)]
    return found
