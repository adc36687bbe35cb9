"""Logs of every kind of client in every layout → events with their facts; nothing is dropped silently."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from kit.errors import InputError, NotFound, PartialRead
from kit.rebalances.logs import ClientLogs, events as reading, lines, read_client_logs, verify_logs
from kit.tables import schema as tables
from tests.generators import log_texts
from tests.generators.log_texts import A, B
from tests.limits import lower


@pytest.fixture(scope="module")
def logs(spark, tmp_path_factory) -> ClientLogs:
    return log_texts.read_all(spark, tmp_path_factory).logs


@pytest.fixture(scope="module")
def events(spark, tmp_path_factory) -> pl.DataFrame:
    return log_texts.read_all(spark, tmp_path_factory).events.sort("file", "line", "record")


@pytest.fixture(scope="module")
def of(events):
    def rows(name: str, kind: str | None = None) -> list[dict[str, Any]]:
        wanted = events.filter(pl.col("file").str.ends_with("/" + name))
        return (wanted if kind is None else wanted.filter(pl.col("kind") == kind)).rows(named=True)

    return rows


def kinds(rows: list[dict[str, Any]]) -> list[str]:
    return [row["kind"] for row in rows]


def the(rows: list[dict[str, Any]]) -> dict[str, Any]:
    (row,) = rows
    return row


def test_the_event_table_is_as_declared(logs):
    wanted = tables.LOG_EVENTS.spark_row_schema.replace(" NOT NULL", "")
    assert ", ".join(f"{name} {type_}" for name, type_ in logs.events.dtypes) == wanted


def test_a_0_9_client_reports_everything_at_debug(of):
    rows = of("java09.log")
    first = ["metadata", "coordinator_query", "coordinator_found", "revoked", "join_requested", "joined"]
    assert kinds(rows)[:13] == [
        *first, "leader_assigning", "assignment_computed", "sync_sent", "synced", "assigned", "offsets_fetching",
        "offset_found",
    ]  # fmt: skip
    assert kinds(rows)[13:] == [*first, "sync_sent", "synced", "assigned", "offsets_fetching"]
    joined = of("java09.log", "joined")
    assert [(row["member_id"], row["leader_id"], row["generation"], row["assignor"]) for row in joined] == [
        (A, A, 1, "range"),
        (B, A, 2, "range"),
    ]
    assert [row["partitions"] for row in of("java09.log", "assigned")] == [
        ["orders-eu-1", "orders-eu-0"],
        ["orders-eu-1"],
    ]
    found = of("java09.log", "coordinator_found")[0]
    assert (found["coordinator"], found["coordinator_id"]) == ("kafka-5.example:9092", 5)
    assert of("java09.log", "join_requested")[0]["coordinator_id"] == 5
    assert of("java09.log", "join_requested")[0]["member_id"] is None
    assert the(of("java09.log", "offset_found"))["offset"] == 41


def test_a_time_without_zone_is_known_where_the_file_proves_the_zone(of, logs):
    # 10:00:02 is printed beside receivedTimeMs=1488627002300, which is 11:30:02 UTC.
    assert of("java09.log")[0]["observed_at"] == datetime(2017, 3, 4, 11, 30, tzinfo=UTC)
    assert of("java011.log")[0]["observed_at"] is None
    assert of("java011.log")[0]["time_text"] == "2018-05-01 08:00:00,100"
    problems = dict(logs.files.select(pl.col("file").str.split("/").list.last(), "problem").iter_rows())
    assert problems["java09.log"] is None
    assert problems["java011.log"] == "zone unknown"


def test_0_11(of):
    rows = of("java011.log")
    assert kinds(rows) == [
        "coordinator_found", "revoked", "joining", "joined", "assigned", "coordinator_lost",
    ]  # fmt: skip
    assert {row["group_id"] for row in rows} == {"stock.eu"}
    assert (rows[0]["coordinator"], rows[0]["coordinator_id"]) == ("kafka-2:9092", 2)
    assert (rows[3]["generation"], rows[4]["partitions"]) == (8, ["moves-0", "moves-1"])
    assert [row["line"] for row in rows] == [1, 2, 3, 4, 5, 6]


def test_3_4_in_springs_layout(of):
    rows = of("spring34.log")
    assert {(row["client_id"], row["group_id"], row["layout"]) for row in rows} == {("web-1", "carts", "spring")}
    diff = the(of("spring34.log", "assignment_diff"))
    assert (diff["owned_before"], diff["owned_after"]) == (["carts-0"], ["carts-0", "carts-1"])
    assert the(of("spring34.log", "offset_found"))["offset"] == 77
    assert the(of("spring34.log", "offset_reset"))["offset"] == 5
    assert the(of("spring34.log", "assigned"))["partitions"] == ["carts-1"]
    assert the(of("spring34.log", "lost"))["partitions"] == ["carts-0", "carts-1"]
    assert the(of("spring34.log", "leaving"))["reason"] == "the consumer is being closed"
    assert the(of("spring34.log", "joined"))["member_id"].startswith("web-1-0a0a")
    assert the(of("spring34.log", "heartbeat_failed"))["generation"] == 4


def test_the_new_protocol(of):
    rows = of("kip848.log")
    assert kinds(rows) == [
        "state_change", "state_change", "reconciling", "assigned", "state_change", "commit_failed",
    ]  # fmt: skip
    assert {(row["group_instance_id"], row["client_id"], row["group_id"]) for row in rows} == {
        ("till-9", "pos-9", "tills")
    }
    assert rows[1]["generation"] == 6
    assert rows[2]["owned_after"] == ["sales-3", "sales-4"]
    assert {row["member_id"] for row in rows if row["kind"] == "state_change"} == {"Zk3bQ1rTTtK0jW0nq8d5Jw"}


def test_json_lines_report_their_zone(of):
    joined, assigned = of("json.log")
    assert joined["observed_at"] == datetime(2022, 6, 7, 6, 9, 10, 123000, tzinfo=UTC)
    assert assigned["observed_at"] == datetime(2022, 6, 7, 6, 9, 11, 500000, tzinfo=UTC)
    assert (joined["generation"], assigned["partitions"]) == (12, ["t-0"])


def test_two_line_records_have_the_time_of_the_line_before(of):
    rows = of("jul.log")
    assert kinds(rows) == ["joining", "joined"]
    assert [row["time_text"] for row in rows] == ["Mar 4, 2018 9:15:00 PM", "Mar 4, 2018 9:15:04 PM"]
    assert rows[1]["local_at"] - rows[0]["local_at"] == 4_000_000


def test_kafka_python(of):
    rows = of("python.log")
    assert kinds(rows) == [
        "coordinator_found", "revoked", "joining", "leader_assigning", "joined", "assigned", "heartbeat_failed",
        "leaving",
    ]  # fmt: skip
    assert rows[5]["partitions"] == ["pie-orders-0", "pie-orders-1"]
    assert {row["group_id"] for row in rows if row["kind"] != "leader_assigning"} == {"pies"}
    assert rows[3]["assignor"] == "range"
    assert rows[-1]["local_at"] is None


def test_brokers(of):
    rows = of("broker.log")
    assert kinds(rows) == [
        "group_rebalancing", "group_stabilized", "group_assigned", "member_failed", "epoch_bumped", "member_joining",
    ]  # fmt: skip
    assert [row["group_id"] for row in rows] == ["carts"] * 4 + ["tills"] * 2
    assert [row["generation"] for row in rows] == [3, 4, 4, None, 7, None]
    assert rows[0]["reason"].startswith("Adding new member")
    assert rows[3]["member_id"].startswith("web-1-0a0a")
    assert rows[5]["member_id"] == "Zk3b"


def test_old_consumers(of):
    rows = of("old.log")
    assert kinds(rows) == [
        "registering", "registered", "rebalance_begun", "released", "owned", "waiting_for_owner", "rebalance_ended",
    ]  # fmt: skip
    assert {row["group_id"] for row in rows} == {"legacy"}
    assert {row["member_id"] for row in rows} == {"legacy_host-a-1488627000000-0a1b2c3d"}
    assert rows[4]["partitions"] == ["old.topic-3"]


def test_librdkafka(of):
    rows = of("rdkafka.log")
    assert kinds(rows) == [
        "coordinator_query", "coordinator_found", "join_requested", "joined", "leader_assigning", "synced", "assigned",
        "group_assignment", "heartbeat_sent",
    ]  # fmt: skip
    assert {row["client_id"] for row in rows} == {"till"}
    assert rows[0]["observed_at"] == datetime(2026, 11, 21, 12, 37, 36, 729000, tzinfo=UTC)
    assert (rows[3]["generation"], rows[3]["leader_id"], rows[3]["member_id"]) == (2, "till-1", "till-1")
    assert rows[7]["partitions"] == ["kiosk-orders-0", "kiosk-orders-1"]
    assert (rows[1]["coordinator"], rows[1]["coordinator_id"]) == ("kafka-1:9092", 1)


@pytest.mark.parametrize(
    ("name", "origin"), [("syslog.log", "host7 stock"), ("grep.log", "server-3.log"), ("rotated.log.1.gz", None)]
)
def test_a_prefix_of_a_line_changes_nothing(of, name, origin):
    said = ["kind", "group_id", "generation", "partitions", "time_text", "line"]
    assert [[row[key] for key in said] for row in of(name)] == [[row[key] for key in said] for row in of("java011.log")]
    assert {row["origin"] for row in of(name)} == {origin}


def test_several_containers_in_one_stream(of):
    rows = of("compose.log")
    assert kinds([row for row in rows if row["origin"] == "stock-1"]) == kinds(of("java011.log"))
    ours = [row for row in rows if row["origin"] == "kiosk-1"]
    assert kinds(ours) == kinds(of("rdkafka.log"))
    assert ours[7]["partitions"] == ["kiosk-orders-0", "kiosk-orders-1"]


def test_records_pasted_into_one_line_are_distinguished(of):
    rows = of("pasted.log")
    assert kinds(rows)[:-1] == kinds(of("java09.log"))
    assert {row["line"] for row in rows} == {1}
    assert rows[-1]["local_at"] - rows[-2]["local_at"] == 55_000_000  # the first digit of its year is missing


def test_lines_that_are_not_understood_are_shown(logs):
    lines = pl.DataFrame(logs.unknown_lines.toArrow()).filter(pl.col("file").str.contains("java011|rdkafka"))
    assert sorted(lines["wording"]) == [
        'Group "kiosk" does what no version known does',
        "Something new that the coordinator says about a rebalance",
    ]


def test_every_file_is_accounted_for(logs, tmp_path):
    account = {Path(row["file"]).name: row for row in logs.files.iter_rows(named=True)}
    seeds = {seed.name for seed in log_texts.SEEDS}
    assert set(account) == {*log_texts.TEXTS, "rotated.log.1.gz", "binary.log"} | seeds
    for name, text in log_texts.TEXTS.items():
        assert account[name]["n_lines"] == len(text.splitlines()), name
    problems = {name: row["problem"] for name, row in account.items()}
    assert problems["empty.log"] == "empty"
    assert problems["binary.log"] == "binary"
    assert problems["noise.log"] == "no coordination"
    assert problems["back.log"] == "times go back"
    assert account["back.log"]["n_time_regressions"] == 1
    with pytest.raises(PartialRead, match=r"binary\.log is not text"):
        verify_logs(logs)


def test_a_block_belongs_to_its_own_client_where_two_write_into_one_file(of):
    updated, query = of("mixed.log")
    assert (updated["kind"], updated["owned_after"], updated["owned_before"]) == (
        "assignment_diff",
        ["carts-0", "carts-1"],
        ["carts-0"],
    )
    assert (query["kind"], query["owned_after"]) == ("coordinator_query", None)


@pytest.mark.slow
@pytest.mark.parametrize("for_one", [20, 1_000_000], ids=["several tasks", "one task"])
def test_many_lines_are_reported_by_tasks(spark, events, tmp_path, monkeypatch, for_one):
    lower(monkeypatch, lines, _HELD_HERE=0)
    lower(monkeypatch, reading, _FOR_ONE_TASK=for_one)
    spread = pl.DataFrame(read_client_logs(spark, str(log_texts.write(tmp_path))).events.toArrow())
    in_file = events.filter(~pl.col("file").str.ends_with(".txt")).with_columns(pl.col("file").str.extract("([^/]+)$"))
    spread = spread.with_columns(pl.col("file").str.extract("([^/]+)$"))
    assert_frame_equal(spread, in_file, check_row_order=False)


@pytest.mark.slow
def test_a_torn_file_is_named_and_the_rest_are_read(spark, tmp_path):
    log_texts.write_torn(tmp_path / "torn.log.gz")
    (tmp_path / "whole.log").write_text(log_texts.JAVA_0_11)
    torn = read_client_logs(spark, str(tmp_path), zone="Europe/Paris")
    assert torn.files["problem"].to_list() == ["truncated", None]
    with pytest.raises(PartialRead, match=r"torn\.log\.gz is damaged"):
        verify_logs(torn)
    first = torn.events.where("kind = 'coordinator_found'").select("observed_at").toArrow()
    assert first.column(0).to_pylist() == [datetime(2018, 5, 1, 6, 0, 0, 100000, tzinfo=UTC)]


@pytest.mark.slow
def test_a_layout_that_no_line_has(spark, tmp_path):
    (tmp_path / "a.log").write_text(log_texts.RDKAFKA)
    with pytest.raises(PartialRead, match="no line of the layout given"):
        verify_logs(read_client_logs(spark, str(tmp_path), layout="spring"))


@pytest.mark.slow
def test_nothing_but_empty_and_broken_files(spark, tmp_path):
    (tmp_path / "empty.log").touch()
    (tmp_path / "no.log.gz").write_text(log_texts.JAVA_0_11)
    read = read_client_logs(spark, str(tmp_path))
    assert read.files.select("n_lines", "problem").rows() == [(0, "empty"), (0, "truncated")]
    assert (read.events.count(), read.unknown_lines.count()) == (0, 0)


def test_wrong_arguments_are_refused(spark, tmp_path):
    with pytest.raises(InputError, match="there is no layout 'nonsense'"):
        read_client_logs(spark, str(tmp_path), layout="nonsense")
    with pytest.raises(InputError, match="no time zone 'Mars/Olympus'"):
        read_client_logs(spark, str(tmp_path), zone="Mars/Olympus")
    with pytest.raises(NotFound, match="no log at"):
        read_client_logs(spark, str(tmp_path / "nowhere"))
