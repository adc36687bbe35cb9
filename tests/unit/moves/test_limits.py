"""A limit of a plan that is out of its range is refused, by the name of its option."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest

from kit.errors import InputError
from kit.kraft.move.plan import KraftPlanRequest
from kit.moves.fleet.plan import FleetPlanRequest
from kit.moves.group.plan import GroupPlanRequest
from kit.moves.protocol.plan import ProtocolPlanRequest

GROUP = partial(GroupPlanRequest, "orders", "all KC")
PROTOCOL = partial(ProtocolPlanRequest, "orders", "consumer")
FLEET = partial(FleetPlanRequest, "kafka")
KRAFT = partial(KraftPlanRequest, "kraft")
CASES = [
    (GROUP, {"soak_s": "--soak", "min_stable_s": "--min-stable", "observe_s": "--observe"}),
    (GROUP, {"lag_tolerance": "--lag-tolerance", "step_timeout_s": "--step-timeout"}),
    (PROTOCOL, {"soak_s": "--soak", "observe_s": "--observe", "step_timeout_s": "--step-timeout"}),
    (FLEET, {"wave": "--wave", "pause_s": "--pause", "min_stable_s": "--min-stable"}),
    (KRAFT, {"node_timeout_s": "--node-timeout"}),
]


@pytest.mark.parametrize("value", [-1.0, math.nan])
@pytest.mark.parametrize(
    ("request_of", "name", "option"), [(of, name, option) for of, names in CASES for name, option in names.items()]
)
def test_a_limit_out_of_its_range_is_refused_by_its_option(
    request_of: Callable[..., object], name: str, option: str, value: float
) -> None:
    request_of()
    with pytest.raises(InputError, match=rf"{option}\b.*\b0 "):
        request_of(**{name: value})
