"""The stage of a group between the classic and the consumer protocol, from its type and its members' protocols."""

from __future__ import annotations

import pytest

from kit.protocol.stage import Stage, stage_of

OLD, NEW = "classic", "consumer"


@pytest.mark.parametrize(
    ("group_type", "protocols", "stage"),
    [
        (OLD, [OLD, OLD], Stage.CLASSIC),
        (None, [OLD], Stage.CLASSIC),
        (NEW, [OLD, NEW, OLD], Stage.CANARY),
        (NEW, [NEW, NEW, OLD], Stage.MIXED),
        (NEW, [OLD, OLD], Stage.MIXED),
        (NEW, [NEW], Stage.CONSUMER),
        (NEW, [NEW, NEW], Stage.CONSUMER),
        (OLD, [], Stage.EMPTY),
        (NEW, [], Stage.EMPTY),
        (NEW, [NEW, None], Stage.UNKNOWN),
        (OLD, [NEW], Stage.UNKNOWN),
        ("share", [], Stage.UNKNOWN),
        ("streams", [None], Stage.UNKNOWN),
    ],
)
def test_the_stage_follows_from_the_type_and_the_members(group_type, protocols, stage):
    assert stage_of(group_type, protocols) is stage
