"""The model of moving offsets and its view: what it shows before planning, what it refuses, what stays readable."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import ipywidgets as ipw
import polars as pl
import pytest
from bs4 import BeautifulSoup

from kit.engine.model.states import RunState
from kit.errors import ApprovalError, IllegalMove, InputError, NotFound, NothingToDo, UnsafePlan
from kit.moves.fleet import subject as fleet_subject
from kit.moves.group import subject as group_subject
from kit.moves.offsets.changes import offset_directions
from kit.moves.offsets.current import NEVER_SEEN
from kit.moves.offsets.fetch import Stores
from kit.moves.offsets.files import load_offsets
from kit.moves.offsets.moves import Stored
from tests.limits import lower
from tests.models.offsets import ToyOffsets, open_toy
from tests.unit.widgets.shown import below, button, field
from widgets import offsets_wizard
from widgets.offsets import html as offsets_html, model as offsets_model
from widgets.offsets.html import SHOWN, log_picture
from widgets.run import html


@pytest.fixture
def toy(monkeypatch):
    """Group shop of four partitions: ahead in ZooKeeper, level, behind, only there. Another group elsewhere."""
    found = ToyOffsets()
    found.install(monkeypatch)
    found.logs |= {("orders", number): (10, 100) for number in range(4)} | {("clicks", 0): (0, 50)}
    found.zookeeper |= {("shop", "orders", 0): 60, ("shop", "orders", 1): 40, ("shop", "orders", 2): 20}
    found.zookeeper |= {("shop", "orders", 3): 5, ("other", "clicks", 0): 7}
    found.kafka |= {("shop", "orders", 0): 50, ("shop", "orders", 1): 40, ("shop", "orders", 2): 30}
    yield found
    found.gate.set()


@pytest.fixture
def model(toy, tmp_path):
    found = open_toy(toy, tmp_path / "runs")
    yield found
    toy.gate.set()
    found.close()


@pytest.fixture
def view(model):
    model.start_watching(60)
    return offsets_wizard(model)


def planned(model, **request):
    model.set_request(**request)
    model.make_plan()
    model.wait(20)
    return model.plan


def done(model, **request):
    plan = planned(model, **request)
    model.typed_subject, model.typed_digest = plan.subject, plan.digest[:8]
    model.approve()
    model.act()
    model.wait(20)
    return plan


def text(view):
    texts = (BeautifulSoup(each.value, "html.parser").get_text(" ") for each in below(view) if type(each) is ipw.HTML)
    return " ".join(" ".join(texts).split())


def rows(model):
    return offset_directions(model.plan).select("partition", "before", "after", "direction").rows()


def test_committed_offsets_are_shown_of_the_selection_alone(model, toy):
    assert model.committed.observed_at is None
    model.refresh()
    assert (toy.asked, model.committed.offsets.height) == ([], 0)
    model.groups = "shop"
    model.refresh()
    assert toy.asked == [{"shop"}]
    names = ("partition", "log_start", "log_end", "zookeeper", "kafka", "zookeeper_lag", "kafka_lag")
    assert model.committed.offsets.select(names).rows() == [
        (0, 10, 100, 60, 50, 40, 50),
        (1, 10, 100, 40, 40, 60, 60),
        (2, 10, 100, 20, 30, 80, 70),
        (3, 10, 100, 5, None, 95, None),
    ]
    assert [each.is_met for each in model.checks] == [True, True, True]
    toy.kafka["shop", "orders", 0] = 70
    model.refresh()
    assert model.committed.offsets["kafka"][0] == 70
    model.set_request(topics="clicks")
    model.refresh()
    assert model.committed.offsets.select("topic", "zookeeper", "kafka").rows() == [("clicks", None, None)]
    model.set_request(topics="nowhere")
    model.refresh()
    assert "there is no topic 'nowhere'" in model.watch_error


def test_members_are_reported_before_anything_is_planned(model, toy):
    toy.stores["kafka"].members["shop"] = ("one", "two")
    model.groups = "shop"
    model.refresh()
    assert {each.check_id: each.is_met for each in model.checks} == {
        "no_members": False,
        "idle_elsewhere": True,
        "source_idle": True,
    }
    model.set_request("reset", target="zookeeper")
    assert {each.check_id: each.is_met for each in model.checks} == {"no_members": True, "idle_elsewhere": False}
    with pytest.raises(UnsafePlan, match="idle_elsewhere"):
        planned(model)


def test_a_copy_that_would_go_backwards_is_refused_skipped_or_allowed(model, toy):
    with pytest.raises(UnsafePlan, match="shop/orders-2 30 → 20"):
        planned(model, groups="shop")
    assert "never_backwards" in model.error
    planned(model, skip_backwards=True)
    assert rows(model) == [(3, None, 10, "first"), (0, 50, 60, "forwards")]
    assert set(model.plan.parameters["left_out"]) == {"shop/orders-2"}
    planned(model, skip_backwards=False, allow_backwards=True)
    assert rows(model) == [(2, 30, 20, "backwards"), (3, None, 10, "first"), (0, 50, 60, "forwards")]
    with pytest.raises(InputError, match="allowed or skipped, not both"):
        planned(model, skip_backwards=True)
    assert toy.writes == []


def test_an_approved_copy_is_executed_shown_and_undone(model, toy):
    before = dict(toy.kafka)
    planned(model, groups="shop", skip_backwards=True)
    with pytest.raises(ApprovalError, match="was not approved"):
        model.act()
    assert toy.writes == []
    done(model)
    assert toy.kafka == before | {("shop", "orders", 0): 60, ("shop", "orders", 3): 10}
    assert model.record.state == RunState.VERIFIED
    assert model.committed.offsets["kafka"].to_list() == [60, 40, 30, 10]
    assert "is VERIFIED" in model.verify()
    with pytest.raises(ApprovalError, match="type 'shop'"):
        model.undo("orders")
    model.undo("shop")
    model.wait(20)
    assert (toy.kafka, model.record.state) == (before, RunState.UNDONE)


@pytest.mark.parametrize(
    ("to", "after"), [("latest", [100] * 4), ("earliest", [10] * 4), ("42", [42] * 4), ("+7", [67, 47, 27, 12])]
)
def test_resets(model, toy, to, after):
    done(model, what="reset", target="zookeeper", groups="shop", to=to, allow_backwards=True)
    assert [toy.zookeeper["shop", "orders", number] for number in range(4)] == after
    assert toy.kafka["shop", "orders", 0] == 50


def test_a_topic_alone_is_of_the_groups_that_have_offsets_of_it(model, toy):
    planned(model, what="reset", target="zookeeper", topics="clicks", to="latest")
    assert [change.item for step in model.plan.steps for change in step.changes] == ["other/clicks-0"]
    model.refresh()
    assert model.committed.offsets.select("group_id", "topic").rows() == [("other", "clicks")]


def test_another_group_is_written_and_read(model, toy):
    done(model, groups="shop", to_group="till")
    assert {key[0]: offset for key, offset in toy.kafka.items() if key[1:] == ("orders", 0)} == {"shop": 50, "till": 60}
    assert set(model.committed.groups["group_id"]) == {"shop", "till"}
    with pytest.raises(InputError, match="exactly one group, not 2"):
        planned(model, groups="shop, other")


def test_a_file_is_saved_without_a_plan_and_brought_back(model, toy, tmp_path):
    before, path = dict(toy.kafka), tmp_path / "kafka.jsonl"
    plan = planned(model, groups="shop", skip_backwards=True)
    model.export(str(path), "kafka")
    model.wait(20)
    assert model.sentence == f"3 offsets of kafka saved to {path}."
    assert (model.plan, toy.writes) == (plan, [])
    done(model)
    model.set_request("import", groups="", file=str(path), skip_backwards=False, allow_backwards=True)
    model.refresh()
    assert model.committed.groups["group_id"].to_list() == ["shop"]
    done(model)
    assert toy.kafka == before | {("shop", "orders", 3): 10}
    model.groups = "shop"
    with pytest.raises(InputError, match="name the file to write"):
        model.export("")
    model.export(str(tmp_path / "x.txt"))
    with pytest.raises(InputError, match=r"ends in \.jsonl or \.csv"):
        model.wait(20)


def test_a_frame_is_a_selection(model, toy):
    frame = pl.DataFrame({"group_id": ["shop"], "topic": ["orders"], "partition": [0], "lag": [3]})
    model.selection = frame
    model.refresh()
    assert model.committed.offsets.height == 1
    planned(model)
    assert rows(model) == [(0, 50, 60, "forwards")]
    model.selection = frame.with_columns(partition=pl.lit(3))
    assert model.plan is None
    with pytest.raises(InputError, match="by a frame's rows or by names, not both"):
        planned(model, groups="shop")
    for wrong in ([1], pl.DataFrame({"lag": [1]})):
        with pytest.raises(InputError):
            model.selection = wrong


@pytest.mark.parametrize(
    ("values", "error", "said"),
    [
        ({}, InputError, "select offsets"),
        ({"what": "move"}, InputError, "there are copy, reset, import"),
        ({"source": "redis"}, InputError, "there are kafka, zookeeper"),
        ({"groups": "nobody"}, NotFound, "'nobody'"),
        ({"groups": "shop", "partitions": "0"}, InputError, "without their topics"),
        ({"groups": "shop", "topics": "orders", "partitions": "0, x"}, InputError, "'x' is no number"),
        ({"groups": "shop", "source": "kafka"}, InputError, "copies nothing"),
        ({"groups": "shop", "topics": "orders", "partitions": "1"}, NothingToDo, "as requested already"),
        ({"what": "reset", "groups": "shop", "to": "soon"}, InputError, "'soon' is none of"),
        ({"what": "reset", "groups": "shop", "to": "-99999999999d"}, InputError, "is none of"),
        ({"what": "import"}, InputError, "name the file to import"),
        ({"what": "import", "file": "nowhere.jsonl"}, InputError, "nowhere.jsonl"),
        ({"groups": "shop", "overrides": "luck"}, UnsafePlan, "no rule 'luck'"),
    ],
)
def test_an_invalid_request_is_refused_by_name(model, toy, values, error, said):
    with pytest.raises(error, match=said):
        planned(model, **values)
    assert (model.plan, toy.writes) == (None, [])


def test_only_plans_of_offsets_are_its_own(model, toy, tmp_path):
    plan = planned(model, groups="shop", skip_backwards=True)
    assert model.concerns(plan.kind, plan.subject)
    assert not any(model.concerns(kind, "shop") for kind in (group_subject.KIND, fleet_subject.KIND, "toggle"))
    other = open_toy(toy, model.runs)
    other.prepare(plan.digest[:8])
    assert other.plan.digest == plan.digest
    other.refresh()
    assert other.committed.groups["group_id"].to_list() == ["shop"]
    with pytest.raises(InputError, match="not to reset them"):
        other.prepare(plan.digest[:8], "reset")
    assert other.plan is None
    other.groups = "other"
    with pytest.raises(InputError, match="also writes group 'shop', which is not selected"):
        other.prepare(plan.digest[:8])
    assert other.plan is None
    with pytest.raises(NotFound):
        other.prepare("0" * 8)
    other.close()


def test_a_plan_for_another_group_belongs_to_the_group_that_is_read(model, toy):
    plan = planned(model, groups="shop", to_group="till")
    assert plan.targets == ("till",)
    other = open_toy(toy, model.runs)
    other.set_request(groups="shop", to_group="till")
    other.prepare(plan.digest[:8], "copy")
    assert other.plan.digest == plan.digest
    other.set_request(groups="", to_group="")
    other.prepare(plan.digest[:8])
    other.refresh()
    assert set(other.committed.groups["group_id"]) == {"shop", "till"}
    other.close()


def test_much_is_read_only_when_asked(model, toy, monkeypatch):
    lower(monkeypatch, offsets_model, WATCHED=3)
    model.groups = "shop"
    model.refresh()
    model.refresh()
    assert len(toy.asked) == 1
    model.look_again()
    model.wait(20)
    assert len(toy.asked) == 2
    model.groups = "other"
    model.refresh()
    assert len(toy.asked) == 3


def test_a_cluster_that_is_away_is_reported_and_numbers_stay(model, toy):
    model.groups = "shop"
    model.refresh()
    toy.is_away = True
    model.refresh()
    assert "does not answer" in model.watch_error
    assert model.committed.offsets.height == 4


# The view


def test_an_offset_that_no_record_has_is_reported_where_its_lag_would_be_none(view, model, toy):
    toy.kafka["shop", "orders", 0] = 110
    model.groups = "shop"
    model.refresh()
    assert model.committed.offsets["kafka_lag"][0] == 0
    assert "Kafka has 3 offsets, 130 records behind (1 beyond the log's end, which is no lag)." in text(view)
    assert "Kafka's offset is beyond the log's end" in text(view)
    assert "ZooKeeper's offset is before the log's start" in text(view)


def test_from_selection_to_undo_by_buttons(view, model, toy):
    field(view, "Groups").value = "shop"
    button(view, "Read again").click()
    model.wait(20)
    assert "ZooKeeper has 4 offsets, 275 records behind (1 before the log's start). Kafka has 3 offsets" in text(view)
    field(view, "Leave out offsets that would go backwards").value = True
    button(view, "Make the plan").click()
    model.wait(20)
    assert "Offsets that change in Kafka: 2." in text(view)
    assert "→ forwards: 1, by 10 records in all + set where there was none: 1 ! not as requested: 1" in text(view)
    assert "5 is before the log's start: raised to 10" in text(view)
    assert "✓ The plan can begin now" in text(view)
    button(view, "Execute the plan").click()
    assert "was not approved" in text(view)
    field(view, "Type the group or “N groups”").value = "shop"
    field(view, "Type the digest's first 8").value = model.plan.digest[:8]
    button(view, "Approve this plan").click()
    button(view, "Execute the plan").click()
    model.wait(20)
    assert "✓ VERIFIED" in text(view)
    field(view, "To undo, type the group or “N groups”").value = "shop"
    button(view, "Undo this run").click()
    model.wait(20)
    assert "✓ UNDONE" in text(view)
    assert toy.writes[:2] == ["kafka shop/orders-0 60", "kafka shop/orders-3 10"]
    assert ("shop", "orders", 3) not in toy.kafka


def test_deleted_offsets_are_saved_first_and_come_back(model, toy):
    toy.zookeeper |= {key: offset + 5 for key, offset in toy.kafka.items()}
    was = dict(toy.kafka)
    gone = {key for key in was if key[0] == "shop"}
    plan = done(model, what="delete", target="kafka", groups="shop")
    assert model.record.state == RunState.VERIFIED
    assert set(toy.kafka) == set(was) - gone
    assert set(offset_directions(plan)["direction"]) == {"deleted"}
    assert f"× deleted: {len(gone)}" in offsets_html.changes(plan)
    (backup,) = (model.runs / "plans").glob("*.offsets.jsonl")
    assert load_offsets(backup, "toy").offsets == {key: Stored(was[key]) for key in gone}
    model.undo("shop")
    model.wait(20)
    assert toy.kafka == was


def test_fields_are_shown_where_they_mean_something(view, model):
    wanted = {"From store": "copy", "To group, if another": "copy", "Reset to": "reset", "File to import": "import"}
    for what in ("copy", "reset", "import", "delete"):
        field(view, "What").value = what
        shown = {label for label in wanted if field(view, label).layout.display != "none"}
        assert shown == {label for label, where in wanted.items() if where == what}
    inputs = [each for each in below(view) if isinstance(each, ipw.Text | ipw.Dropdown | ipw.Checkbox | ipw.Button)]
    names = [each.description for each in inputs]
    assert all(names)
    assert len(set(names)) == len(names)


def test_a_button_while_something_is_done_is_refused_and_reported(view, model, toy):
    planned(model, groups="shop", skip_backwards=True)
    model.typed_subject, model.typed_digest = "shop", model.plan.digest[:8]
    model.approve()
    toy.gate.clear()
    model.act()
    with pytest.raises(IllegalMove, match="one thing at a time"):
        model.export("x.jsonl")
    button(view, "Read again").click()
    assert "one thing at a time" in model.error
    toy.gate.set()
    model.wait(20)
    assert model.record.state == RunState.VERIFIED


def test_names_are_escaped(model, toy):
    toy.logs["<b>", 0] = (0, 9)
    toy.zookeeper["<i>shop", "<b>", 0] = 4
    planned(model, groups="<i>shop")
    model.refresh()
    shown = offsets_html.committed(model.committed) + offsets_html.changes(model.plan)
    assert "<i>shop" not in shown
    assert "<b>" not in shown


def test_thousands_of_partitions_stay_readable(model, toy):
    for number in range(4000):
        toy.logs["many", number] = (0, 1000)
        toy.zookeeper["big", "many", number] = 2000 if number == 3990 else 500
        toy.kafka["big", "many", number] = 700 if number in (3998, 3999) else 400
    planned(model, groups="big", allow_backwards=True)
    changes = offsets_html.changes(model.plan)
    page = BeautifulSoup(changes, "html.parser")
    shown = [[cell.get_text() for cell in row.select("td")] for row in page.select("tbody tr")]
    assert len(shown) == SHOWN
    assert [row[1] for row in shown[:4]] == ["many-3998", "many-3999", "many-3990", "many-0"]
    assert shown[0][2:5] == ["700", "500", "← backwards"]
    assert "beyond the log's end: lowered to 1000" in shown[2][6]
    assert "the first 30 of 4,000 are shown" in page.get_text()
    assert "backwards: 2, by 400 records in all" in page.get_text()
    done(model)
    proof = html.proof(model.record)
    assert f"{model.record.run_id}/report.html" in proof
    seen = offsets_html.committed(model.committed)
    assert len(changes) + len(seen) + len(proof) + len(html.log(model.record)) < 50_000


def test_a_log_is_drawn_where_its_offsets_lie():
    def marks(*values):
        page = BeautifulSoup(log_picture(*values), "html.parser")
        return [float(each["cx"]) for each in page.select("circle")]

    assert marks(0, 100, 0, 100) == [7.0, 143.0]
    assert marks(0, 100, 50, None) == [75.0]
    assert marks(50, 100, 0, 75) == [7.0, 109.0]
    assert marks(0, 0, 0, 0) == [7.0, 7.0]
    assert log_picture(None, 100, 5, 6) == ""


def test_a_cluster_without_zookeeper_shows_kafka_alone():
    """Nobody is a member in a ZooKeeper that is not there: that is not unknown."""
    row = {"group_id": "shop", "topic": "orders", "partition": 0, "log_start": 0, "log_end": 9, "kafka": 4}
    offsets = pl.DataFrame([row | {"kafka_lag": 5}], schema=NEVER_SEEN.offsets.schema)
    group = {"group_id": "shop", "kafka_state": "Empty", "kafka_members": 0}
    groups = pl.DataFrame([group], schema=NEVER_SEEN.groups.schema)
    seen = replace(NEVER_SEEN, observed_at=datetime.now(UTC), stores=Stores({}, None), offsets=offsets, groups=groups)
    text = BeautifulSoup(offsets_html.committed(seen), "html.parser").get_text(" ")
    assert "1 group, none has members" in text
    assert "ZooKeeper" not in text
