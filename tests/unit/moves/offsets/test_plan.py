"""Offsets without a cluster: what is selected, where it is clamped, what files and resets may say."""

from __future__ import annotations

import csv
import itertools
import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from kit.clients.paths import is_znode_name
from kit.engine.model.step import Change, Step
from kit.errors import InputError, NotFound, PlanError, WrongCluster
from kit.moves.offsets.fetch import GroupInStore, Stores
from kit.moves.offsets.files import load_offsets, save_offsets
from kit.moves.offsets.inputs import PlanOptions
from kit.moves.offsets.moves import NOTHING, Move, OffsetTarget, Stored, clamp, item_of, parse_item
from kit.moves.offsets.observations import group_observations, log_observations
from kit.moves.offsets.resets import Reset, wanted_by
from kit.moves.offsets.rules import backwards_finding, member_findings, source_finding, unreadable_finding
from kit.moves.offsets.selection import Selection, select
from kit.moves.offsets.steps import after_of, before_of, offset_steps, remade
from kit.moves.offsets.zookeeper import _chunks, offset_path
from kit.tables.groups import LogOffset
from tests.generators import hostile

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KEY = ("shop", "orders", 3)


def test_lists_are_combined_each_with_each():
    chosen = select(groups=["a", "b"], topics="orders", partitions=[0, 2])
    assert chosen.takes("a", "orders", 2)
    assert not chosen.takes("a", "orders", 1)
    assert not chosen.takes("c", "orders", 0)
    assert chosen.groups == {"a", "b"}


def test_a_missing_column_selects_everything_of_it():
    chosen = select(pl.DataFrame({"topic": ["orders"], "lag": [7]}))
    assert chosen.groups is None
    assert chosen.accepts("anything")
    assert chosen.takes("anything", "orders", 9)
    assert not chosen.takes("anything", "payments", 0)


def test_rows_of_a_frame_are_what_is_selected():
    frame = pl.DataFrame({"group_id": ["a", "b"], "topic": ["orders", "payments"], "partition": [0, 1]})
    chosen = select(frame)
    assert [row for row in frame.iter_rows() if chosen.takes(*row)] == frame.rows()
    assert not chosen.takes("a", "payments", 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "nothing is selected"),
        ({"groups": []}, "the selection is empty"),
        ({"frame": pl.DataFrame({"group_id": []}, schema={"group_id": pl.String})}, "the selection is empty"),
        ({"frame": pl.DataFrame({"lag": [1]})}, "a selection has one of the columns"),
        (
            {"frame": pl.DataFrame({"group_id": ["a"], "partition": [1]})},
            "partitions are selected without their topics",
        ),
        ({"groups": "a", "partitions": [1]}, "without their topics"),
        ({"frame": pl.DataFrame({"group_id": ["a", None]})}, "the selection's group_id holds None"),
        ({"groups": ["a", ""]}, "group_id holds ''"),
        ({"groups": "a", "topics": "t", "partitions": [-1]}, "partition holds -1"),
        ({"groups": "a", "topics": "t", "partitions": [True]}, "partition holds True"),
        ({"groups": "a", "topics": [3]}, "topic holds 3"),
        ({"frame": pl.DataFrame({"group_id": ["a"]}), "groups": "a"}, "not both"),
    ],
)
def test_an_empty_or_wrong_selection_is_refused(arguments, said):
    with pytest.raises(InputError, match=said):
        select(**arguments)


def test_places_by_name_need_no_offset_and_others_do():
    partitions = {"orders": [0, 1, 2], "payments": [0]}
    stored = [("orders", 1), ("payments", 0)]
    assert select(groups="a").places("a", stored, partitions) == stored
    assert select(groups="a", topics="orders").places("a", stored, partitions) == [("orders", n) for n in range(3)]
    assert select(topics="orders").places("a", stored, partitions) == [("orders", 1)]
    assert select(groups="a", topics="orders", partitions=[2]).places("a", stored, partitions) == [("orders", 2)]
    with pytest.raises(NotFound, match="group 'a': there is no topic 'nowhere'"):
        select(groups="a", topics="nowhere").places("a", stored, partitions)
    with pytest.raises(NotFound, match="there is no orders-3; 'orders' has 3 partitions"):
        select(groups="a", topics="orders", partitions=[3]).places("a", stored, partitions)


def test_unknown_groups_are_named():
    with pytest.raises(NotFound, match="group 'b' is not in Kafka"):
        select(groups=["a", "b"]).refuse_unknown_groups(["a"], "Kafka")
    with pytest.raises(NotFound, match=r"5 groups \('a', 'b', 'c', …\) are not in Kafka"):
        select(groups=list("abcde")).refuse_unknown_groups([], "Kafka")
    Selection(("topic",), frozenset({("t",)})).refuse_unknown_groups([], "Kafka")


@pytest.mark.parametrize(
    ("wanted", "after", "reason"),
    [
        (50, 50, None),
        (10, 10, None),
        (100, 100, None),
        (9, 10, "9 is before the log's start: raised to 10"),
        (-5, 10, "-5 is before the log's start: raised to 10"),
        (101, 100, "101 is beyond the log's end: lowered to 100"),
    ],
)
def test_clamped_to_the_log(wanted, after, reason):
    move = clamp(OffsetTarget(KEY, Stored(20), wanted, leader_epoch=4), 10, 100)
    assert (move.after, move.reason) == (after, reason)
    assert move.leader_epoch == (4 if after == wanted else None)


def test_backward_moves_are_found():
    assert Move(OffsetTarget(KEY, Stored(20), 19), 19).is_backwards
    assert not Move(OffsetTarget(KEY, Stored(20), 20), 20).is_backwards
    assert not Move(OffsetTarget(KEY, NOTHING, 0), 0).is_backwards
    finding = backwards_finding([Move(OffsetTarget(KEY, Stored(20), 19), 19)])
    assert (finding.is_met, finding.sentence) == (False, "1 offset would go backwards: shop/orders-3 20 → 19")


@pytest.mark.parametrize("key", [KEY, ("a/b-c", "x-1-", 12), ('ä, "b"', "t.o_p-ic", 0)])
def test_an_item_is_its_group_topic_and_partition(key):
    assert parse_item(item_of(key)) == key


@pytest.mark.parametrize(
    ("reset", "wanted", "note"),
    [
        (Reset("earliest"), 10, None),
        (Reset("latest"), 100, None),
        (Reset("offset", 7), 7, None),
        (Reset("shift", -30), -10, None),
        (Reset("time", NOW), 42, None),
        (Reset("ago", timedelta(hours=1)), 42, None),
    ],
)
def test_a_reset_finds_its_offset(reset, wanted, note):
    assert wanted_by(reset, Stored(20), 10, 100, 42) == (wanted, note)


def test_no_record_so_young_is_the_latest_and_nothing_can_be_shifted_from_nowhere():
    assert wanted_by(Reset("time", NOW), Stored(20), 10, 100, None) == (
        100,
        "all records are older than that time, so the offset is set to the end of the log (latest)",
    )
    assert wanted_by(Reset("shift", 3), NOTHING, 10, 100, None) == (None, None)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("newest",), "there is no reset to 'newest'"),
        (("latest", 3), "takes NoneType, not 3"),
        (("offset",), "takes int, not None"),
        (("offset", -1), "is negative"),
        (("shift", True), "takes int, not True"),
        (("time", datetime(2026, 1, 1)), "has no time zone"),
        (("ago", timedelta(hours=-1)), "in the future"),
    ],
)
def test_resets_that_are_none(arguments, said):
    with pytest.raises(InputError, match=said):
        Reset(*arguments)


def test_backwards_is_either_allowed_or_skipped():
    with pytest.raises(InputError, match="not both"):
        PlanOptions("ann", NOW, allow_backwards=True, skip_backwards=True)
    assert PlanOptions("ann", NOW, allow_backwards=True).overridden == ("never_backwards",)


def test_members_here_block_and_members_elsewhere_can_be_overridden():
    busy, idle = GroupInStore("Stable", ("m1", "m2")), GroupInStore("Empty")
    here, there = member_findings({"a": busy, "b": idle}, "kafka", {"a": idle, "b": idle})
    assert (here.is_met, there.is_met, here.can_be_overridden) == (False, True, False)
    assert "1 of 2 groups: 'a' has 2 members, first m1 in kafka" in here.sentence
    here, there = member_findings({"a": GroupInStore("Dead")}, "kafka", {"a": busy})
    assert (here.is_met, there.is_met, there.can_be_overridden) == (True, False, True)
    for unknown in (GroupInStore("Empty", error="no right"), GroupInStore("PreparingRebalance")):
        assert member_findings({"a": unknown}, "kafka", {})[0].is_blocking
    assert member_findings({"a": GroupInStore(error="no right")}, "zookeeper", {})[0].is_met is None
    assert not source_finding({"a": busy}).is_blocking


def test_an_unreadable_offset_is_named():
    finding = unreadable_finding({KEY: "the znode holds 'x', not an offset"})
    assert finding.is_blocking
    assert "shop/orders-3: the znode holds 'x'" in finding.sentence


def test_a_source_at_work_may_grow_and_an_idle_one_may_not():
    idle = GroupInStore("Empty", (), {("orders", 0): Stored(5, "note", 2)})
    busy = replace(idle, members=("m",), state="Stable")
    for source, tolerance in ((idle, "exact"), (busy, "may_grow")):
        stores = Stores({"from": source, "to": idle}, None)
        observed = group_observations(stores, ("kafka", ["to"]), ("kafka", ["from"]))
        assert observed["kafka offsets from"].tolerance == tolerance
        assert observed["kafka offsets to"].tolerance == "exact"
        assert observed["kafka metadata to"].value == {"orders-0": "note"}
        assert observed["kafka group from"].tolerance == ("exact" if source is idle else "ignored")
    zookeeper = {"to": GroupInStore(offsets={("orders", 0): Stored(version=3, error="no offset")})}
    observed = group_observations(Stores({"to": idle}, zookeeper), ("zookeeper", ["to"]), None)
    assert observed["zookeeper offsets to"].value == {"orders-0": "no offset"}
    assert observed["zookeeper versions to"].value == {"orders-0": 3}
    assert observed["kafka offsets to"].tolerance == "ignored"


def test_logs_may_grow():
    observed = log_observations({("orders", 0): LogOffset("orders", 0, 5, 9)}, [("orders", 0), ("gone", 1)])
    assert observed["log ends"].value == {"gone-1": None, "orders-0": 9}
    assert {it.tolerance for it in observed.values()} == {"may_grow"}


def moves(n_groups, before=NOTHING):
    targets = [OffsetTarget((f"g{number:04d}", "orders", 0), before, 5, metadata="m") for number in range(n_groups)]
    return [clamp(target, 0, 100) for target in targets]


def test_a_thousand_groups_are_a_step():
    steps = offset_steps("kafka", moves(2001), can_delete=True, missing_parents=(), new_groups=(), topic_ids={})
    assert [len(step.changes) for step in steps] == [1000, 1000, 1]
    assert steps[-1].title == "Write 1 offset of group 'g2000' to kafka, 1 with metadata or leader epoch"


def test_a_step_reports_what_was_and_what_shall_be_beside_the_offset():
    known = {"can_delete": True, "missing_parents": (), "new_groups": {"g0000"}, "topic_ids": {}}
    (step,) = offset_steps("kafka", moves(1, Stored(3, "old", 7)), **known)
    beside = ("kafka offsets g0000", "kafka metadata g0000", "kafka leader epochs g0000")
    assert step.affects == (*beside, "kafka group g0000")
    assert before_of(step) == {("g0000", "orders", 0): Stored(3, "old", 7)}
    assert after_of(step) == {("g0000", "orders", 0): Stored(5, "m")}
    assert step.undo is not None


def test_a_new_offset_cannot_be_undone_where_offsets_cannot_be_deleted():
    known = {"can_delete": False, "missing_parents": (), "new_groups": (), "topic_ids": {}}
    assert "can't delete single offsets" in offset_steps("kafka", moves(1), **known)[0].cannot_be_undone
    assert offset_steps("kafka", moves(1, Stored(3)), **known)[0].undo is not None


STORED = Stored(3, version=7)
IDS = {"orders": "5s0dGiGXRZqN5NOYZmgYrw", "another": "AAAAAAAAAAAAAAAAAAAAAQ"}


def step_of(store="zookeeper", wanted=5, before=STORED):
    """Return a step of two groups, one of them new; clamped, so that there is a note."""
    keys = (("a", "orders", 0), ("a", "orders", 1), ("b/c" if store == "kafka" else "b c", "x-1", 12))
    targets = [OffsetTarget(key, before, wanted, "a note", metadata="m", leader_epoch=2) for key in keys]
    made = [clamp(target, 0, 4) for target in targets]
    parents = {"/consumers/b c", "/consumers/b c/offsets", "/consumers/other"}
    (step,) = offset_steps(
        store, made, can_delete=True, missing_parents=parents, new_groups={"b/c", "b c"}, topic_ids=IDS
    )
    return step


STEPS = [
    step_of(),
    step_of("kafka"),
    step_of("kafka", before=Stored(3, "old", 7)),
    step_of("kafka", before=NOTHING),
    step_of("kafka", wanted=None),
    step_of(wanted=None),
]


@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_made_again_of_its_changes_and_parameters(step):
    assert remade(step) == step


def edits(step):
    """Each field of a step, and each parameter, made to say something else."""
    for name in ("step_id", "kind", "title", "precondition", "verification", "undo"):
        yield replace(step, **{name: "another"})
    yield replace(step, undo=None, cannot_be_undone="it can't")
    yield replace(step, deadline_s=3600.0)
    yield replace(step, needs_person="stop it")
    yield replace(step, affects=(*step.affects, "kafka group victim"))
    yield replace(step, affects=step.affects[:-1])
    yield replace(step, changes=step.changes[:-1])
    yield replace(step, changes=())
    yield replace(step, changes=(replace(step.changes[0], item="victim/orders-0"), *step.changes[1:]))
    yield replace(step, changes=(replace(step.changes[0], item="a/orders-00"), *step.changes[1:]))
    yield replace(step, changes=(replace(step.changes[0], after=-1), *step.changes[1:]))
    yield replace(step, changes=(replace(step.changes[0], before="3"), *step.changes[1:]))
    stranger = {"victim/orders-0": {"metadata": "m", "wanted": 1, "reason": "none"}}
    others = {"store": "another", "number": 2, "can_delete": 1, "new_groups": ("victim",), "new_parents": ("/victim",)}
    for name, value in step.parameters.items():
        others["topic_ids"] = {**IDS, "victim": "id"}
        other = {**value, **stranger} if name in ("kept", "written", "noted") else others[name]
        yield replace(step, parameters={**step.parameters, name: other})
        if name != "topic_ids":  # Steps of older versions lack it.
            yield replace(step, parameters={each: it for each, it in step.parameters.items() if each != name})
    yield replace(step, parameters={**step.parameters, "more": 1})


@pytest.mark.parametrize("step", STEPS)
def test_whatever_is_edited_in_a_step_shows(step):
    for edited in edits(step):
        with suppress(PlanError):
            assert remade(edited) != edited, edited


def test_a_group_that_is_a_path_is_no_step_of_zookeeper():
    step = step_of()
    for group_id in ("a/offsets", "..", "a\x00", "a\U0001f600"):
        change = replace(step.changes[0], item=f"{group_id}/orders-0")
        with pytest.raises(PlanError, match="can't be the name of a znode"):
            remade(replace(step, changes=(change,)))


@pytest.mark.parametrize("item", ["", "g", "g/t", "g/t-", "g/t-01", "g/t-+1", "g/t-٣", "g/-1", "t-1", "g/t-2147483648"])
def test_a_wrong_item_is_refused(item):
    with pytest.raises(InputError, match="does not have the form GROUP"):
        parse_item(item)


def test_transactions_are_small_enough_for_a_server():
    short = [("g", "t", number) for number in range(1201)]
    assert [len(chunk) for chunk in _chunks(short)] == [500, 500, 201]
    long = [("g" * 3000, "t" * 240, number) for number in range(500)]
    chunks = list(_chunks(long))
    assert [key for chunk in chunks for key in chunk] == long
    assert all(sum(len(offset_path(key)) for key in chunk) < 500_000 for chunk in chunks)


OFFSETS = {
    ("shop", "orders", 0): Stored(5),
    ("shop", "orders", 1): Stored(6, 'said "no", \n went\r\n', 2),
    ("späti, 24h", "orders", 0): Stored(0),
}


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_a_file_holds_what_was_saved(tmp_path, suffix):
    path = tmp_path / f"offsets.{suffix}"
    save_offsets(path, "cluster", "kafka", OFFSETS, NOW)
    found = load_offsets(path, "cluster")
    assert (found.offsets, found.store, found.exported_at) == (OFFSETS, "kafka", "2026-01-02T03:04:05+00:00")
    with pytest.raises(WrongCluster, match="of cluster cluster, but this is other"):
        load_offsets(path, "other")
    assert load_offsets(path, "other", other_cluster=True).offsets == OFFSETS


ROW = '{"group_id":"shop","offset":5,"partition":0,"topic":"orders"}'


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["nothing"], "line 2: Expecting value"),
        (["[1]"], r"line 2: '\[1\]' is no row"),
        ([ROW, ROW], "shop/orders-0 is in line 2 and in line 3"),
        ([ROW.replace("5", "-5")], "line 2: offset is -5; it must be a whole number from 0 to"),
        ([ROW.replace("5", "5.0")], "offset is 5.0"),
        ([ROW.replace("5", "true")], "offset is True"),
        ([ROW.replace("5", "9223372036854775808")], "offset is 9223372036854775808"),
        ([ROW.replace("5", '"5"')], "offset is '5'"),
        ([ROW.replace(',"partition":0', "")], "partition is None"),
        ([ROW.replace('"orders"', '""')], "topic is ''"),
        ([ROW.replace("topic", "Topic")], "unknown column 'Topic'"),
        ([ROW.replace('"topic"', '"offset":6,"topic"')], "a key occurs twice"),
    ],
)
def test_rows_that_are_refused(tmp_path, rows, said):
    path = tmp_path / "offsets.jsonl"
    save_offsets(path, "cluster", "kafka", OFFSETS, NOW)
    path.write_text("\n".join([path.read_text().splitlines()[0], *rows]) + "\n")
    with pytest.raises(InputError, match=said):
        load_offsets(path, "cluster", edited=True)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["group_id,topic", "a,b"], "line 2: the columns are .*; it needs group_id"),
        (["group_id,topic,partition,offset", "a,b,0"], "line 3: the line has another number of fields"),
        (["group_id,topic,partition,offset", "a,b,0,5,6"], "line 3: the line has another number of fields"),
        (["group_id,topic,partition,offset", "a,b,0,five"], "line 3: offset is 'five'"),
        (["group_id,topic,partition,offset", "a,b,-1,5"], "line 3: partition is -1"),
    ],
)
def test_tables_that_are_refused(tmp_path, lines, said):
    path = tmp_path / "offsets.csv"
    save_offsets(path, "cluster", "kafka", OFFSETS, NOW)
    path.write_text("\n".join([path.read_text().splitlines()[0], *lines]) + "\n")
    with pytest.raises(InputError, match=said):
        load_offsets(path, "cluster", edited=True)


def test_files_that_are_none(tmp_path):
    for name, text, said in (
        ("a.txt", "", "ends in .jsonl or .csv"),
        ("a.jsonl", "", "is no file of offsets"),
        ("a.jsonl", '{"kind":"plan"}\n', "is no file of offsets"),
        ("a.csv", '"shop",orders,0,5\n', "is no file of offsets"),
        ("a.jsonl", json.dumps({"kind": "offramp offsets", "cluster_id": "c", "digest": ""}), "is of format None"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=said):
            load_offsets(tmp_path / name, "cluster")
    with pytest.raises(InputError, match="can't be read"):
        load_offsets(tmp_path / "missing.csv", "cluster")
    with pytest.raises(InputError, match="can't be written"):
        save_offsets(tmp_path / "no folder" / "a.csv", "c", "kafka", OFFSETS, NOW)


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_a_file_holds_every_hostile_name(tmp_path, suffix):
    """A group's name and what is committed beside an offset are anybody's; a topic's name is a broker's."""
    path, places = tmp_path / f"offsets.{suffix}", zip(hostile.GROUPS, itertools.cycle(hostile.TOPICS))
    offsets = {(name, topic, 7): Stored(1, name or None) for name, topic in places}
    save_offsets(path, "cluster", "kafka", offsets, NOW)
    assert load_offsets(path, "cluster").offsets == offsets


def test_no_cell_of_a_table_is_a_formula(tmp_path):
    path = tmp_path / "offsets.csv"
    offsets = {(name, "t", 0): Stored(1, name or None) for name in hostile.GROUPS}
    save_offsets(path, "cluster", "kafka", offsets, NOW)
    with path.open(encoding="utf-8", newline="") as file:
        file.readline()
        cells = [cell for row in csv.reader(file) for cell in row]
    assert "'=1+cmd|'/C calc'!A0" in cells
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]


def test_a_table_of_the_format_before_is_taken_as_it_is(tmp_path):
    path = tmp_path / "offsets.csv"
    save_offsets(path, "cluster", "kafka", {("'g", "t", 0): Stored(1)}, NOW)
    path.write_text(path.read_text().replace('"format":3', '"format":1').replace("''g", "'g"))
    assert load_offsets(path, "cluster").offsets == {("'g", "t", 0): Stored(1)}


@pytest.mark.parametrize(
    ("suffix", "line", "said"),
    [
        ("jsonl", "[" * 100_000, "nested too deeply"),
        ("csv", '"g","t",0,' + "9" * 5_000 + ",,,", "offset is '9+'"),
        ("csv", '"g","t",0,1,"' + "m" * 200_000 + '",,', "field larger than"),
    ],
    ids=["nested", "number", "field"],
)
def test_a_line_that_no_parser_survives_is_named(tmp_path, suffix, line, said):
    path = tmp_path / f"offsets.{suffix}"
    save_offsets(path, "cluster", "kafka", {("g", "t", 0): Stored(1)}, NOW)
    path.write_text("\n".join([*path.read_text().splitlines()[: 1 + (suffix == "csv")], line]) + "\n")
    with pytest.raises(InputError, match=said):
        load_offsets(path, "cluster", edited=True)


def test_items_of_hostile_names_are_read_back_and_never_alike():
    keys = [(name, topic, number) for name in hostile.GROUPS for topic in hostile.TOPICS[::7] for number in (0, 12)]
    assert [parse_item(item_of(key)) for key in keys] == keys
    assert len({item_of(key) for key in keys}) == len(set(keys))


def test_steps_of_hostile_names_are_made_again_from_their_file():
    targets = [
        OffsetTarget((name, "orders", 0), Stored(3, "m"), 5, metadata="n") for name in sorted(set(hostile.GROUPS))
    ]
    for store in ("kafka", "zookeeper"):
        made = [clamp(each, 0, 9) for each in targets if store == "kafka" or hostile.may_be_znode(each.key[0])]
        steps = offset_steps(store, made, can_delete=True, missing_parents=(), new_groups={"a/b"}, topic_ids={})
        for step in steps:
            read = json.loads(json.dumps(step.to_json(), default=dict))
            again = Step(**{**read, "changes": [Change(**each) for each in read["changes"]]})
            assert remade(again) == again == step


def test_names_that_may_be_znodes_are_accepted():
    assert list(filter(is_znode_name, hostile.GROUPS)) == list(filter(hostile.may_be_znode, hostile.GROUPS))


def test_an_edited_file_is_noticed(tmp_path):
    path = tmp_path / "offsets.csv"
    save_offsets(path, "cluster", "kafka", {("shop", "orders", 0): Stored(5)}, NOW)
    path.write_text(path.read_text().replace(",5,", ",6,"))
    with pytest.raises(InputError, match="was edited after it was written"):
        load_offsets(path, "cluster")
    assert load_offsets(path, "cluster", edited=True).offsets == {("shop", "orders", 0): Stored(6)}


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("kept", {"metadata": 5}),
        ("written", {"leader_epoch": True}),
        ("kept", {"offset": 5}),
        ("noted", {"wanted": 5}),
        ("noted", {"wanted": None, "reason": "none"}),
    ],
)
def test_fields_of_another_name_or_type_are_no_step_of_offsets(name, fields):
    step = STEPS[0]
    edited = replace(step, parameters={**step.parameters, name: {step.changes[0].item: fields}})
    with pytest.raises(PlanError):
        remade(edited)
