"""The options of ``offramp plan offsets``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kit.errors import InputError
from kit.moves.offsets.plan import Reset
from kit.moves.offsets.verbs.offsets import Target


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"to": "latest"}, Reset("latest")),
        ({"to_earliest": True}, Reset("earliest")),
        ({"to_offset": 0}, Reset("offset", 0)),
        ({"shift_by": 0}, Reset("shift", 0)),
        ({"from_file": Path("offsets.csv")}, Path("offsets.csv")),
    ],
)
def test_one_option_names_the_target(options: dict[str, Any], wanted: Reset | Path):
    assert Target(**options).reset() == wanted


def test_no_target_and_two_targets_are_refused():
    with pytest.raises(InputError, match="no target is named: give one of --to, --to-earliest"):
        Target().reset()
    with pytest.raises(InputError, match="several targets are named"):
        Target(to_latest=True, to_offset=0).reset()
