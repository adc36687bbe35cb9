"""The long form of the tests, ``make soak``: as often as the claims say, instead of as often as a commit can wait for.

A unit test holds that ``make soak`` runs each file that has such a form.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

Case = TypeVar("Case")

IS_SOAK = bool(os.environ.get("OFFRAMP_SOAK"))

soak_only = pytest.mark.skipif(not IS_SOAK, reason="a part of the long form: make soak runs it")


def first(cases: Sequence[Case], n: int = 1) -> Sequence[Case]:
    """The first of the cases of one mechanism; all of them in the long form."""
    return cases if IS_SOAK else cases[:n]
