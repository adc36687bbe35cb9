"""Listings: every digit of what is shown, at any width; what has no room is named; rows sorted, chosen, handed on."""

from __future__ import annotations

import csv
import inspect
import io
import json
import re
from collections import Counter
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from kit.cli import groups as verbs, worst_first
from kit.cli.groups import _SPARE
from kit.cli.main import app
from kit.errors import InputError
from kit.groups import views
from kit.groups.analyze import blocking, findings
from kit.groups.analyze.blocking import BLOCKERS
from kit.groups.analyze.findings import FINDINGS
from kit.groups.show import brief
from kit.groups.snapshot import Snapshot
from kit.tables.groups import (
    KAFKA,
    ZOOKEEPER,
    Broker,
    CommittedOffset,
    Group,
    LogOffset,
    Member,
    Ownership,
    Subscription,
    TopicPartition,
)
from kit.terminal import listing
from kit.terminal.listing import Listing
from kit.terminal.table import table_lines
from tests.generators.snapshots import snapshot_of
from tests.unit.cli.screens import Screen

WIDTHS = (60, 80, 100, 140, 200)
LONG = "a-group-with-a-name-that-is-as-long-as-names-in-real-clusters-become-after-some-years"
GROUPS = ["orders", "billing", LONG]
NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:\.\d+)?(?![\w.-])")


@cache
def snapshot() -> Snapshot[pl.DataFrame]:
    """A cluster with ZooKeeper: three groups of one member each on 12 partitions, with lags of one to nine digits."""
    partitions = range(12)
    rows = {
        "brokers": [Broker(1, "h", 9092, None, True, ("PLAINTEXT://h:9092",))],
        "groups": [Group(name, "kafka", "Stable", "classic", "consumer", "range", 1) for name in GROUPS],
        "members": [Member(name, "kafka", f"{name}-member", "c", "h", *[None] * 5) for name in GROUPS],
        "subscriptions": [Subscription(name, "kafka", f"{name}-member", "topic", 1) for name in GROUPS],
        "ownership": [
            Ownership(name, "kafka", "topic", number, f"{name}-member", None, None, None)
            for name in GROUPS
            for number in partitions
        ],
        "committed_offsets": [
            CommittedOffset(name, "kafka", "topic", number, 10 ** (number % 9) + at, *[None] * 5)
            for at, name in enumerate(GROUPS)
            for number in partitions
        ],
        "topic_partitions": [TopicPartition("topic", number, False, 1, 0, (1,), (1,)) for number in partitions],
        "log_offsets": [LogOffset("topic", number, 0, 123456789 + number) for number in partitions],
    }
    return snapshot_of(rows)


@pytest.fixture(autouse=True)
def _cluster(observe):
    observe(lambda cluster: snapshot())


def told(*words: str, width: int = 200) -> str:
    ended = CliRunner().invoke(app, list(words), env={"COLUMNS": str(width)})
    assert ended.exit_code == 0, ended.output
    return ended.stdout


@pytest.mark.parametrize(
    "words", [("groups",), ("lag",), ("lag", "-g", LONG), ("ownership", "-g", LONG), ("readiness",)]
)
def test_no_digit_and_no_name_is_cut_at_any_width(words):
    rows = json.loads(told(*words, "--json"))
    for width in WIDTHS[::2]:  # Each width: ``test_never_cut``.
        assert_whole(rows, told(*words, width=width), width)


def assert_whole(rows: list[dict[str, Any]], printed: str, width: int) -> None:
    """Assert that the printed table fits, and shows each value of the rows or names its column."""
    text = re.split(r"\n•|\n\d+ groups: ", printed)[0]
    heading, *lines = text.splitlines()
    shown = heading.split()
    left_out = [line for line in lines if line.startswith("No room for ")]
    dropped = left_out[0].removeprefix("No room for ").partition(":")[0].split(", ") if left_out else []
    body = [line for line in lines if line not in left_out]
    assert max(map(len, (heading, *body))) <= width
    unshown = {"error", "blockers"} if all(row.get("error") is None for row in rows) else {"blockers"}
    assert sorted([*shown, *dropped]) == sorted(set(rows[0]) - unshown)
    numbers = Counter(str(row[name]) for row in rows for name in shown if type(row[name]) is int)
    assert Counter(NUMBER.findall("\n".join(body))) == numbers
    first = re.sub(r"\s+", "", "".join(line.split("  ")[0] for line in body))
    assert all(str(row[shown[0]]) in first for row in rows)


def test_prose_wraps_and_loses_no_word():
    sentence = "orders-3 has no owner, although the group subscribes to it: its records are not read."
    for width in WIDTHS:
        lines, dropped = table_lines(
            {"group_id": False, "lag": True, "sentence": False}, [["g", "3851", sentence]], width
        )
        assert " ".join(" ".join(line.split()) for line in lines[1:]).replace("g 3851 ", "") == sentence
        assert dropped == []


def test_rows_are_chosen_by_sql_and_sorted_by_a_column():
    rows = json.loads(
        told("lag", "-g", "orders", "--json", "--where", "lag > 113456789 AND partition < 6", "--sort", "lag")
    )
    lags = [row["lag"] for row in rows]
    assert lags == sorted(lags, reverse=True)
    assert [row["partition"] for row in rows] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "words",
    [("--where", "lga > 1"), ("--where", "lag >"), ("--where", "lag"), ("--where", "lag > 'x'"), ("--sort", "lga")],
)
def test_a_bad_condition_is_one_error_that_names_the_columns(words):
    ended = CliRunner().invoke(app, ["lag", *words])
    assert ended.exit_code == 2
    assert ended.stderr.startswith(f"offramp: {words[0]}")
    assert "max_lag, lag_retained" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


ACROSS_ROWS = (
    "max(lag) > 5",
    "lag > max(lag) - 5",
    "lag > 5 AND count(*) > 3",
    "lag IN (min(lag))",
    "sum(lag) OVER (PARTITION BY topic) > 3",
    "lag - lag(lag) OVER (ORDER BY partition) > 0",
    "row_number() OVER () < 3",
    "round(avg(lag)) > 3",
)
OF_EACH_ROW = (
    "lag > 1 AND topic LIKE '%'",
    "lag IN (1, 2)",
    "lag % 2 = 0 OR round(lag) > 3",
    "greatest(lag, partition) > 3",
    "coalesce(committed_offset, 0) > 3 AND length(topic) > 1",
    "1 = 1",
    "CASE WHEN lag IS NULL THEN false ELSE true END",
    " OR ".join(["lag > 1"] * 350),
)


@pytest.fixture(scope="module")
def lags() -> pl.DataFrame:
    return views.lag(snapshot())


def test_a_condition_over_all_rows_is_one_error():
    ended = CliRunner().invoke(app, ["lag", "-g", "orders", "--where", ACROSS_ROWS[0]])
    assert ended.exit_code == 2
    assert "asks about all rows at once" in ended.stderr


@pytest.mark.parametrize("condition", ACROSS_ROWS)
def test_a_condition_over_all_rows_is_refused(condition, lags):
    """polars hands an aggregate to each row: ``max(lag) > 5`` kept them all, or none."""
    with pytest.raises(InputError, match="asks about all rows at once"):
        Listing(where=condition).chosen(lags)


@pytest.mark.parametrize("condition", OF_EACH_ROW)
def test_a_condition_of_each_row_is_taken(condition, lags):
    rows = lags.drop("snapshot_id", "observed_at", strict=False)
    assert Listing(where=condition).chosen(lags).equals(rows.sql(f"SELECT * FROM self WHERE {condition}"))


def test_csv_and_parquet_hold_every_row_exactly(tmp_path):
    wanted = json.loads(told("lag", "--json"))
    rows = list(csv.DictReader(io.StringIO(told("lag", "--csv"))))
    assert [(row["group_id"], int(row["lag"])) for row in rows] == [(row["group_id"], row["lag"]) for row in wanted]
    told("lag", "--parquet", str(tmp_path / "lag.parquet"))
    assert pl.read_parquet(tmp_path / "lag.parquet").to_dicts() == wanted


def test_a_terminal_shows_the_worst_and_reports_how_to_get_the_rest():
    rows = pl.DataFrame({"group_id": [f"g{number}" for number in range(60)], "lag": range(60, 0, -1)})
    with redirect_stdout(Screen()) as screen:
        Listing().print(rows)
    lines = screen.getvalue().splitlines()
    assert lines[-1] == "10 of 60 rows not shown: --all, --where or --csv gives them"
    assert len(lines) == 1 + listing.SHOWN + 1
    with redirect_stdout(Screen()) as screen:
        Listing(everything=True).print(rows)
    assert len(screen.getvalue().splitlines()) == 61


def test_groups_are_counted_by_what_they_need_also_those_that_are_not_shown(capsys):
    needs = ["read twice", *["no active members"] * 700, *[None] * 800]
    rows = pl.DataFrame({"group_id": [f"g{number:04}" for number in range(1501)], "attention": needs, "lag": 1})
    verbs._tell_attention(worst_first.by_attention(rows))
    told = "1,501 groups: 700 “no active members”, 1 “read twice”; 800 need no attention\n"
    assert capsys.readouterr().out == told
    Listing(as_json=True).print(rows)
    assert len(json.loads(capsys.readouterr().out)) == 1501


def test_a_long_listing_goes_to_a_pager(monkeypatch):
    pages = []
    monkeypatch.setattr("pydoc.pager", pages.append)  # The real one is chosen once in a process, by its streams.
    monkeypatch.setattr("sys.stdin", Screen())
    monkeypatch.setenv("LINES", "10")
    rows = pl.DataFrame({"group_id": ["g"] * 20, "lag": range(20)})
    with redirect_stdout(Screen()):
        Listing().print(rows)
    assert pages[0].count("\n") == 21


def test_a_condition_that_would_take_minutes_is_refused():
    """polars needs quadratic time for a chain of ORs, and ends the process by a longer one."""
    chain = " OR ".join(["lag > 1"] * 20_000)
    ended = CliRunner().invoke(app, ["lag", "--where", chain])
    assert ended.exit_code == 2
    assert ended.stderr.startswith("offramp: --where has 219,996 characters, and 4,000 are the most")
    assert len(ended.stderr) < 300


def test_plans_are_a_listing_too(tmp_path):
    (tmp_path / "plans").mkdir()
    for name in ("0000", "1111"):
        (tmp_path / "plans" / f"{name}.json").write_text("{", encoding="utf-8")
    where = ("plan", "list", "--runs", str(tmp_path))
    rows = json.loads(told(*where, "--json"))
    assert {row["plan"] for row in rows} == {"0000", "1111"}
    assert [row["plan"] for row in csv.DictReader(io.StringIO(told(*where, "--csv", "--sort", "plan")))] == [
        "0000",
        "1111",
    ]
    assert json.loads(told(*where, "--json", "--where", "plan = '1111'")) == [r for r in rows if r["plan"] == "1111"]
    assert told("runs", "--runs", str(tmp_path / "none"), "--csv").splitlines()[0].startswith("run_id,state,kind")


class FullDisk:
    """Rows of which half a file is written when the disk is full: polars raises an error of its own then."""

    def write_parquet(self, path: Path) -> None:
        path.write_bytes(b"PAR1")
        raise pl.exceptions.ComputeError("No space left on device")


def test_a_parquet_file_is_whole_or_as_it_was(tmp_path):
    file = tmp_path / "lag.parquet"
    told("lag", "--parquet", str(file))
    before = file.read_bytes()
    with pytest.raises(InputError) as refused:
        listing._write_parquet(FullDisk(), file)
    assert str(refused.value) == f"--parquet: {file} can't be written: No space left on device"
    assert (file.read_bytes(), list(tmp_path.iterdir())) == (before, [file])


def test_rows_are_handed_on_in_one_way():
    ended = CliRunner().invoke(app, ["lag", "--json", "--csv"])
    assert ended.exit_code == 2
    assert "choose one" in ended.stderr


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_subject_of_a_row_and_its_lag_stay_on_a_narrow_terminal(width):
    words = ("group_id", "attention", "stage", "effective_mode", "kafka_state")
    numbers = ("n_members", "n_idle", "n_partitions", "lag", "zookeeper_lag", "kafka_lag", "n_findings", "n_blockers")
    row = ["order-fulfilment", "–", "Kafka coordination", "kafka", "Stable", "2", "0", "18", "0", "0", "0", "0", "1"]
    columns = {**dict.fromkeys(words, False), **dict.fromkeys(numbers, True)}
    (head, *_), dropped = table_lines(columns, [row], width, _SPARE)
    assert set(head.split()) >= {"group_id", "attention", "stage", "lag"}
    assert set(head.split()) | set(dropped) == set(columns)


def test_dispensable_columns_go_before_requested_ones():
    columns = {"group_id": False, "lag": True, "store": False, "closed_in": False}
    (head, *_), dropped = table_lines(columns, [["orders", "3851", "kafka", "never at this rate"]], 38, ["store"])
    assert head.split() == ["group_id", "lag", "closed_in"]
    assert dropped == ["store"]


STATES = {"a-ready": ("OZKCC", 1), "b-late": ("OZKCC", 12), "y-done": ("KC", 12), "z-mixed": ("both", 12)}


@cache
def troubled(n_ready: int = 0) -> Snapshot[pl.DataFrame]:
    """Groups by name, of which the last by name needs attention first: old and plain Kafka consumers on one topic."""
    names = {**{f"a-{at:03}": ("OZKCC", 1) for at in range(n_ready)}, **STATES}
    kinds = [(name, kind, topic) for name, (flavour, topic) in names.items()
             for kind in {"OZKCC": (ZOOKEEPER,), "KC": (KAFKA,), "both": (ZOOKEEPER, KAFKA)}[flavour]]  # fmt: skip
    topics = {1: "small", 12: "topic"}
    rows = {
        "groups": [Group(name, source, "Stable", None, None, None, 1) for name, source, _ in kinds],
        "members": [
            Member(name, source, f"{name}-{source}", "c", "h", None, None, False, None, None)
            for name, source, _ in kinds
        ],
        "subscriptions": [
            Subscription(name, source, f"{name}-{source}", topics[size], 1) for name, source, size in kinds
        ],
        "ownership": [
            Ownership(name, source, topics[size], number, f"{name}-{source}", None, None, None)
            for name, source, size in kinds
            for number in range(10 if name == "b-late" else size)
        ],
        "topic_partitions": [
            TopicPartition(topics[size], number, False, 1, 0, (1,), (1,)) for size in topics for number in range(size)
        ],
        "log_offsets": [LogOffset(topics[size], number, 0, 5) for size in topics for number in range(size)],
    }
    return snapshot_of(rows)


@pytest.fixture
def fleet(observe):
    observe(lambda cluster: troubled(60))


def test_readiness_shows_groups_that_need_attention_first(fleet):
    rows = json.loads(told("readiness", "--json"))
    assert [row["group_id"] for row in rows[:2]] == ["z-mixed", "b-late"]
    assert rows[2]["group_id"] == "a-000"
    assert rows[-1]["group_id"] == "y-done"
    assert [each["blocker"] for each in rows[0]["blockers"]] == ["unsafe_mix"]


def test_the_blockers_reported_are_those_of_the_rows_that_are_shown(fleet):
    whole = told("readiness").splitlines()
    bullets = [line for line in whole if line.startswith("•")]
    assert [line.split(":")[0] for line in bullets] == ["• Group z-mixed", "• Group b-late"]
    where = told("readiness", "--where", "group_id = 'b-late'")
    assert [line for line in where.splitlines() if line.startswith("•")] == bullets[1:]
    assert "•" not in told("readiness", "--where", "is_ready")
    by_name = told("readiness", "--where", "n_blockers > 0", "--sort", "group_id").splitlines()
    assert [line for line in by_name if line.startswith("•")] == bullets[::-1]


def test_a_terminal_reports_that_there_is_no_row():
    with redirect_stdout(Screen()) as screen:
        Listing().print(pl.DataFrame({"group_id": [], "finding": []}))
    assert screen.getvalue().splitlines()[1:] == ["no row"]


def test_in_a_pipe_no_name_wraps_and_no_column_goes(monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    member = "a" * 300 + "-2f3b37ad-3449-4ec2-a6ba-95355a8ef0f2"
    names = [f"column_{number}" for number in range(40)]
    Listing().print(pl.DataFrame({"group_id": ["g"], "member_id": [member], **{name: ["value"] for name in names}}))
    heading, row = capsys.readouterr().out.splitlines()
    assert (member in row, heading.split()[2:]) == (True, names)


def test_left_over_offsets_come_after_the_lag_that_counts():
    rows = pl.DataFrame({"store": ["kafka", "zookeeper", "zookeeper"], "lag": [900, None, 5]})
    rows = rows.with_columns(is_stale=pl.col("store") == "kafka")
    assert worst_first.most_behind(rows, "store")["lag"].to_list() == [5, None, 900]


def test_a_terminal_shows_groups_that_need_attention(fleet):
    plain = dict.fromkeys(("sort", "where", "parquet")) | dict.fromkeys(("everything", "as_json", "as_csv"), False)
    with redirect_stdout(Screen()) as screen:
        verbs.readiness(profile=None, profile_file=None, group=None, pattern=".*", **plain)
    shown = screen.getvalue()
    assert "z-mixed" in shown
    assert "14 of 64 rows not shown" in shown
    assert "y-done" not in shown


def test_ownership_shows_the_worst_findings_first(fleet):
    rows = [line.split() for line in told("ownership").splitlines()[1:] if not line.startswith(" ")]
    found = [(row[1], row[0], row[2]) for row in rows]
    assert found[:2] == [("owned_twice", "z-mixed", "12"), ("unowned", "b-late", "2")]
    order = [FINDINGS.index(finding) for finding, *_ in found]
    assert order == sorted(order)
    of_kind = [int(times) for finding, _, times in found if finding == "assigned_never_committed"]
    assert of_kind == sorted(of_kind, reverse=True)
    data = json.loads(told("ownership", "--json"))
    assert [FINDINGS.index(row["finding"]) for row in data] == sorted(FINDINGS.index(row["finding"]) for row in data)


def test_partitions_of_one_group_with_a_finding_come_first_and_only_their_findings_are_reported(fleet):
    rows = json.loads(told("ownership", "-g", "b-late", "--json"))
    assert [row["partition"] for row in rows] == [10, 11, *range(10)]
    text = told("ownership", "-g", "b-late", "--where", "partition = 11")
    assert [line.partition(" has no owner")[0] for line in text.splitlines() if line.startswith("•")] == [
        "• Group b-late: topic-11"
    ]


def test_partitions_of_one_group_with_the_most_lag_come_first():
    lags = [row["lag"] for row in json.loads(told("lag", "-g", "orders", "--json"))]
    assert lags == sorted(lags, reverse=True)


def test_every_kind_has_its_place_in_the_order_of_attention():
    """One that is missing would come last."""
    for module, known in ((findings, FINDINGS), (blocking, BLOCKERS)):
        named = re.findall(r'"(\w+)": _\w+\(\)', inspect.getsource(module))
        named += re.findall(r'finding=nw.lit\("(\w+)"\)', inspect.getsource(module))
        assert sorted(named) == sorted(known)
    assert [each for each in brief.KINDS if each in FINDINGS] == [each for each in FINDINGS if each in brief.KINDS]
