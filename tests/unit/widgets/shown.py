"""Read a wizard: its widgets, by what a person reads on them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import ipywidgets as ipw
from bs4 import BeautifulSoup


def below(widget: Any) -> Iterator[Any]:
    """All widgets inside a widget."""
    for child in getattr(widget, "children", ()):
        yield child
        yield from below(child)


def button(view: Any, label: str) -> Any:
    return next(each for each in below(view) if isinstance(each, ipw.Button) and each.description == label)


def field(view: Any, label: str) -> Any:
    return next(each for each in below(view) if getattr(each, "description", None) == label)


def text(view: Any) -> str:
    """The text of all HTML inside a widget, in one line."""
    texts = (BeautifulSoup(each.value, "html.parser").get_text() for each in below(view) if isinstance(each, ipw.HTML))
    return " ".join(" ".join(texts).split())


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Wait for what another thread sets."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
