"""The model of a move of protocols: what it proposes, asks for and refuses by itself."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import traitlets as t

from kit.errors import IllegalMove, InputError, PlanError
from kit.moves.group.group_state import CLASSIC, CONSUMER
from tests.models.protocol_groups import group
from tests.unit.widgets.shown import field
from widgets.protocol.model import ProtocolMove
from widgets.protocol.view import ProtocolWizard


class Operations(SimpleNamespace):
    """Keeps the requests that it is asked to plan, and refuses each."""

    def make_plan(self, request, overrides=()):
        self.requests.append((request, list(overrides)))
        raise PlanError("not here")


def opened(tmp_path, *protocols: str) -> ProtocolMove:
    cluster = SimpleNamespace(cluster_id="c")
    operations = Operations(runs=tmp_path, requests=[], cluster=cluster)
    return ProtocolMove(lambda say, tell: operations, lambda name: group(*protocols), "orders")


@pytest.mark.parametrize(
    ("protocols", "stage", "proposed", "can_go_back"),
    [
        ((CLASSIC, CLASSIC), "classic", CONSUMER, False),
        ((CLASSIC, CONSUMER, CLASSIC), "canary", CONSUMER, True),
        ((CONSUMER, CONSUMER), "consumer", CLASSIC, True),
    ],
)
def test_it_proposes_the_other_protocol(tmp_path, protocols, stage, proposed, can_go_back):
    model = opened(tmp_path, *protocols)
    assert (model.stage, model.to_protocol, "rollback" in model.possible) == (stage, proposed, can_go_back)
    assert {each.check_id for each in model.checks if each.is_met is None} == {"lag", "stable", "commits"}


def test_the_request_carries_the_answer_of_a_person_and_the_overrides(tmp_path):
    model = opened(tmp_path, CLASSIC, CLASSIC)
    for ready, answer in ((False, None), (True, True)):
        model.set_request(clients_ready=ready, overrides="lag, settled", soak_s=5.0)
        model.make_plan()
        with pytest.raises(PlanError):
            model.wait(20)
        request, overrides = model.operations.requests[-1]
        assert (request.answers.clients_ready, request.soak_s, overrides) == (answer, 5.0, ["lag", "settled"])


def test_the_request_reports_how_members_are_replaced(tmp_path):
    model = opened(tmp_path, CLASSIC, CLASSIC)
    model.set_request(how="stopped")
    model.make_plan()
    with pytest.raises(PlanError):
        model.wait(20)
    assert model.operations.requests[-1][0].how == "stopped"
    with pytest.raises(t.TraitError):
        model.how = "fast"


def test_a_canary_is_asked_for_only_where_some_members_change_first(tmp_path):
    model = opened(tmp_path, CLASSIC, CLASSIC)
    canary = field(ProtocolWizard(model), "Canary members")
    rules = lambda: {each.check_id for each in model.checks}  # noqa: E731
    model.canary = 3
    for how, to_protocol, has_canary in (
        ("rolling", CONSUMER, True),
        ("stopped", CONSUMER, False),
        ("rolling", CLASSIC, False),
    ):
        model.set_request(how=how, to_protocol=to_protocol)
        assert (canary.layout.display != "none", "canary_size" in rules()) == (has_canary, has_canary)
        model.make_plan()
        with pytest.raises(PlanError):
            model.wait(20)
        assert model.operations.requests[-1][0].canary == (1 if how == "stopped" else 3)
    model.close()


def test_without_a_consumer_protocol_member_there_is_no_undo(tmp_path):
    model = opened(tmp_path, CLASSIC)
    with pytest.raises(IllegalMove, match="has only classic members"):
        model.plan_rollback()
    with pytest.raises(t.TraitError):
        model.to_protocol = "newer"


def test_a_group_has_to_be_named(tmp_path):
    with pytest.raises(InputError, match="group_id is empty"):
        ProtocolMove(lambda say, tell: Operations(runs=tmp_path), lambda name: group(CLASSIC), "")
