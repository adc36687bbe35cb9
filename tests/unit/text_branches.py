"""Branches of the product that depend on the text of a message."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_WORDS = frozenset(
    (
        "detail",
        "error",
        "exception",
        "finding",
        "message",
        "note",
        "problem",
        "reason",
        "refusal",
        "remedy",
        "sentence",
        "warning",
        "why",
    )
)
"""Parts of a name that is a message's."""
_NAMES = frozenset(("e", "err", "exc"))
_ASKS = frozenset(("startswith", "endswith", "find", "index"))
_PATTERNS = frozenset(("match", "search", "fullmatch", "findall", "finditer"))
_COLUMN_ASKS = frozenset(("contains", "contains_any", "starts_with", "ends_with"))
_TEXTS = frozenset(("str", "repr"))
_SAME = frozenset(("lower", "upper", "casefold", "strip"))


def text_branches(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the source of each question about what a message says: ``"…" in error``, ``.startswith``, …"""
    for node in ast.walk(tree):
        if (isinstance(node, ast.Compare) and _compares(node)) or (isinstance(node, ast.Call) and _asks(node)):
            yield node.lineno, ast.unparse(node)


def _compares(node: ast.Compare) -> bool:
    sides = [node.left, *node.comparators]
    for operator, left, right in zip(node.ops, sides, sides[1:]):
        if isinstance(operator, ast.In | ast.NotIn) and _is_message(right):
            return True
        if isinstance(operator, ast.Eq | ast.NotEq) and any(map(_is_message, (left, right))):
            return any(map(_is_words, (left, right)))
    return False


def _asks(node: ast.Call) -> bool:
    if not isinstance(node.func, ast.Attribute):
        return False
    name, owner = node.func.attr, node.func.value
    if name in _ASKS:
        return _is_message(owner)
    if name in _PATTERNS:
        return any(map(_is_message, node.args))
    return name in _COLUMN_ASKS and any(_is_column(each) for each in ast.walk(owner))


def _is_message(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id in _NAMES or _is_named_so(node.id)
    if isinstance(node, ast.Attribute):
        return _is_named_so(node.attr)
    if isinstance(node, ast.BoolOp):
        return any(map(_is_message, node.values))
    if isinstance(node, ast.Subscript):
        return _is_message(node.value) or (isinstance(node.slice, ast.Constant) and _is_named_so(str(node.slice.value)))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _SAME and _is_message(node.func.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in _TEXTS and bool(node.args) and _is_message(node.args[0])
    return False


def _is_named_so(name: str) -> bool:
    """One message has a singular name: ``problem``, ``last_error``; ``errors`` is a collection."""
    return name.strip("_").lower().rpartition("_")[2] in _WORDS


def _is_words(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value


def _is_column(node: ast.AST) -> bool:
    """``pl.col("error")``, ``nw.col("sentence")``."""
    is_col = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "col"
    return is_col and any(isinstance(each, ast.Constant) and _is_named_so(str(each.value)) for each in node.args)  # type: ignore[attr-defined]
