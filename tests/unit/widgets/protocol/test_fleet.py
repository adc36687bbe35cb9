"""The model and the wizard of moves of many groups between protocols: verdicts, the request, and large plans."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kit.errors import PlanError
from kit.moves.group.deploy import Manual
from kit.moves.group.group_state import CLASSIC, CONSUMER
from kit.moves.protocol.fleet import ProtocolFleetRequest, merged
from kit.moves.protocol.plan import Observed, ProtocolPlanRequest, plan_from
from tests.models.protocol_groups import group
from tests.unit.protocol.test_checks import GROUP, MEMBER, facts
from tests.unit.widgets.protocol.test_model import Operations
from tests.unit.widgets.shown import field, text
from widgets.protocol.fleet import ProtocolFleet
from widgets.protocol.fleet_view import ProtocolFleetWizard
from widgets.protocol.html import MOST_ROWS, changes

READY = replace(GROUP, group_id="ready")
"""Its classic member has no user data, and every broker is ready."""
OTHERS = {
    "<b>": replace(GROUP, group_id="<b>", protocol_type="connect"),
    "moved": replace(GROUP, group_id="moved", group_type=CONSUMER, members=(replace(MEMBER, protocol=CONSUMER),)),
}


def opened(tmp_path, many: int = 0) -> ProtocolFleet:
    operations = Operations(runs=tmp_path, requests=[], cluster=SimpleNamespace(cluster_id="c"))
    more = {f"g{number:03d}": replace(GROUP, group_id=f"g{number:03d}") for number in range(many)}
    seen = replace(facts(), groups={"ready": READY, **OTHERS, **more})
    return ProtocolFleet(
        lambda say, tell: operations, lambda offsets_topic: seen if offsets_topic else replace(seen, commits=None)
    )


def test_it_opens_with_the_verdict_of_each_group_and_judges_again_when_the_request_changes(tmp_path):
    model = opened(tmp_path)
    assert [each.group_id for each in model.can_move] == ["ready"]
    assert {each.group_id: each.stage for each in model.seen.rows} == {
        "<b>": "classic", "moved": "consumer", "ready": "classic",
    }  # fmt: skip
    model.set_request(to_protocol=CLASSIC)
    assert [each.group_id for each in model.can_move] == ["moved"]
    view = ProtocolFleetWizard(model)
    assert "Can be moved to the classic protocol now (rolling): 1" in text(view)
    assert "<b>" in text(view)  # It is text, not HTML.
    model.set_request(to_protocol=CONSUMER, how="stopped")
    assert model.can_move == []  # Commit times were not read yet.
    model.refresh()
    assert [each.group_id for each in model.can_move] == ["ready"]
    model.close()


def test_the_request_names_groups_or_a_pattern_and_carries_the_answer(tmp_path):
    model = opened(tmp_path)
    view = ProtocolFleetWizard(model)
    field(view, "Groups at a time").value = 2
    model.set_request(pattern="r.*", clients_ready=True, soak_s=0.0, pause_s=1.0, how="stopped", canary=3)
    for groups, named, pattern in (("", (), "r.*"), ("ready, moved", ("ready", "moved"), None)):
        model.groups = groups
        model.make_plan()
        with pytest.raises(PlanError):
            model.wait(20)
        request = model.operations.requests[-1][0]
        assert (request.groups, request.pattern, request.wave, request.pause_s) == (named, pattern, 2, 1.0)
        assert (request.each.how, request.each.canary, request.each.answers.clients_ready) == ("stopped", 1, True)
    model.close()


def test_a_thousand_groups_are_shown_in_part_and_the_rest_is_counted(tmp_path):
    model = opened(tmp_path, many=1000)
    assert f"The first {MOST_ROWS} of 1,003 groups." in text(ProtocolFleetWizard(model))
    model.close()
    seen = Observed(group(CLASSIC, CLASSIC), group(CLASSIC, CLASSIC), 7)
    each = ProtocolPlanRequest("", CONSUMER)
    plans = [plan_from(seen, "c", Manual(), replace(each, group_id=f"g{n}"), "ann") for n in range(MOST_ROWS + 1)]
    whole = merged(plans, ProtocolFleetRequest(each, pattern=".*", wave=MOST_ROWS), 500.0, n_left=0)
    assert f"The first {MOST_ROWS} of 202 rows." in changes(whole)
