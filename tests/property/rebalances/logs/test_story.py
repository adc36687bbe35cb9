"""From log lines to the story: by facts, on our own text always, on the seed's excerpt where it lies there."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from kit.errors import InputError, ReadError
from kit.rebalances.analyze.attempts import member_rebalances, rebalances
from kit.rebalances.analyze.findings import log_findings
from kit.rebalances.analyze.story import story
from kit.rebalances.logs import read_client_logs
from kit.rebalances.sources import _events_of, read_rebalances
from tests.generators import log_texts
from tests.generators.log_texts import A, B

WITHIN = datetime(2018, 5, 1, 8, 0, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def events(spark, tmp_path_factory) -> dict[str, pl.DataFrame]:
    """Return the events of each file, all read at once."""
    found = log_texts.read_all(spark, tmp_path_factory).events
    return {Path(file).name: rows for (file,), rows in found.group_by("file")}


@pytest.mark.parametrize("name", ["java09.log", "pasted.log"])
def test_two_consumers_of_one_name_in_one_file(events, name):
    first, second = member_rebalances(events[name]).rows(named=True)[:2]
    facts = ["group_id", "generation", "member_id", "leader_id", "is_leader", "owned", "fetched", "outcome"]
    assert [first[key] for key in facts] == [
        "billing", 1, A, A, True, ["orders-eu-0", "orders-eu-1"], ["orders-eu-0", "orders-eu-1"], "assigned",
    ]  # fmt: skip
    assert [second[key] for key in facts] == [
        "billing", 2, B, A, False, ["orders-eu-1"], ["orders-eu-1"], "assigned",
    ]  # fmt: skip
    phases = ["discover_ms", "join_ms", "sync_ms", "assign_ms", "unassigned_ms"]
    assert [first[key] for key in phases] == [1000, 3000, 1000, 0, 4000]
    assert [second[key] for key in phases] == [1000, 2000, 1000, 0, 3000]
    assert (first["positions"], first["coordinator_id"], first["assignor"]) == (["orders-eu-1@41"], 5, "range")
    assert first["consumer"] != second["consumer"]


def test_generations_report_what_is_seen_and_what_is_not(events):
    first, second = rebalances(events["java09.log"]).rows(named=True)
    assert (first["generation"], first["members"], first["leader_id"], first["joined"]) == (1, [A], A, None)
    assert (second["generation"], second["members"], second["leader_id"], second["joined"]) == (2, [B], A, [B])
    assert second["left"] == [], "A is silent, which is no leaving"
    assert second["members_without_log"] == [A]
    assert (second["moved"], second["partitions_without_known_owner"]) == (["orders-eu-1"], ["orders-eu-0"])
    assert second["duration_ms"] == 5000
    assert second["started_at"] == datetime(2017, 3, 4, 11, 31, 0, tzinfo=UTC)


def test_a_consumer_that_was_thrown_out(events):
    (row,) = member_rebalances(events["spring34.log"]).rows(named=True)
    assert (row["generation"], row["owned"], row["is_leader"]) == (4, ["carts-0", "carts-1"], True)
    assert (row["positions"], row["without_offset"]) == (["carts-1@77", "carts-0@5"], ["carts-0"])
    found = log_findings(events["spring34.log"])
    assert set(found["finding"]) == {"evicted", "offset_reset"}
    (whole,) = rebalances(events["spring34.log"]).rows(named=True)
    assert whole["members_without_log"] == ["web-2-ffffffff-0b0b-0c0c-0d0d-0e0e0e0e0e0e"], "the leader named it"
    assert len(whole["members"]) == 2


def test_the_new_protocol_and_librdkafka_have_generations_too(events):
    (epoch,) = member_rebalances(events["kip848.log"]).rows(named=True)
    assert (epoch["consumer"], epoch["generation"], epoch["owned"]) == ("till-9", 6, ["sales-3", "sales-4"])
    assert log_findings(events["kip848.log"])["finding"].to_list() == ["commit_failed"]
    sentences = [each for each in story(events["kip848.log"]) if "epoch 6" in each]
    assert len(sentences) == 2, "of the member, and of the group"
    assert not any("generation" in each for each in sentences)
    (till,) = member_rebalances(events["rdkafka.log"]).rows(named=True)
    assert (till["generation"], till["is_leader"], till["owned"]) == (2, True, ["kiosk-orders-0", "kiosk-orders-1"])
    assert till["join_ms"] == 3002


def test_a_broker_reports_why(events):
    rows = rebalances(events["broker.log"]).filter(pl.col("group_id") == "carts").rows(named=True)
    assert [row["generation"] for row in rows] == [4]
    assert rows[0]["reasons"][0].startswith("Adding new member")
    both = rebalances(pl.concat([events["broker.log"], events["spring34.log"]]))
    carts = both.filter(pl.col("group_id") == "carts").row(0, named=True)
    assert carts["reasons"][-1].startswith("Adding new member")
    assert carts["leader_id"].startswith("web-1-")


def test_old_consumers_rebalance_without_generations(events):
    (row,) = member_rebalances(events["old.log"]).rows(named=True)
    assert (row["group_id"], row["generation"], row["owned"]) == ("legacy", None, ["old.topic-3"])
    assert row["unassigned_ms"] == 2000
    assert rebalances(events["old.log"]).is_empty()


def test_sentences_for_a_ticket(events):
    first, second = story(events["java09.log"])[:2]
    assert first == (
        f"2017-03-04 11:30:00 UTC Group billing: consumer-7 ({A}) found the coordinator kafka-5.example:9092 "
        "(broker 5) in 1 s, asked to join with a session time-out of 30 s and the assignors range, joined generation "
        "1 in 3 s, as leader, synced (assigned by range) in 1 s, has orders-eu-0, orders-eu-1, asked for the committed "
        "offsets of orders-eu-0, orders-eu-1, starts at orders-eu-1@41."
    )
    assert f"as follower of {A}" in second
    assert "(as printed)" in story(events["java011.log"])[0], "nobody said the zone"


@pytest.mark.parametrize("times", [(WITHIN, None), (None, WITHIN)], ids=["since", "until"])
def test_times_of_an_unknown_zone_choose_nothing(spark, tmp_path, times):
    log = tmp_path / "java011.log"
    log.write_text(log_texts.TEXTS[log.name])
    with pytest.raises(InputError, match=r"do not name their time zone.*--zone"):
        read_rebalances(spark, str(log), None, None, *times)
    told = read_rebalances(spark, str(log), None, None, *times, zone="UTC").describe()
    assert told
    assert not any("as printed" in each for each in told)


def test_no_story_without_all_that_the_account_has(spark, tmp_path):
    log = tmp_path / "java011.log"
    log.write_text(log_texts.TEXTS[log.name])
    whole = read_client_logs(spark, str(log))
    lacking = replace(whole, events=whole.events.limit(2))
    n_events = whole.files["n_events"].sum()
    with pytest.raises(ReadError, match=f"the logs hold {n_events} events, but Spark returned 2"):
        _events_of(lacking)


def test_no_lines_no_story(events):
    nothing = events["old.log"].clear()
    assert story(nothing) == []


if log_texts.SEEDS:  # a parametrize over nothing would be shown as a skip

    @pytest.mark.parametrize("seed", log_texts.SEEDS, ids=lambda seed: seed.name)
    def test_the_story_of_the_article_is_found_again(spark, tmp_path_factory, events, seed):
        files = log_texts.read_all(spark, tmp_path_factory).logs.files
        account = files.filter(pl.col("file").str.ends_with(seed.name)).row(0, named=True)
        found = events[seed.name]
        assert (account["n_unknown"], account["problem"]) == (0, None)
        assert account["n_events"] + account["n_context"] == 24
        a, b = member_rebalances(found).rows(named=True)
        assert [a["generation"], b["generation"]] == [1, 2]
        assert a["leader_id"] == a["member_id"] == b["leader_id"] != b["member_id"]
        assert (a["is_leader"], b["is_leader"], a["group_id"], b["group_id"]) == (True, False, "test", "test")
        assert (a["owned"], b["owned"]) == (["testtopic-0", "testtopic-1"], ["testtopic-1"])
        assert (a["fetched"], b["fetched"]) == (a["owned"], b["owned"])
        assert a["coordinator_id"] == b["coordinator_id"] == 1002
        assert (a["coordinator"], a["assignor"]) == ("rkk2.hdp.local:6667", "range")
        assert a["started_at"] == datetime(2016, 12, 17, 17, 51, 5, tzinfo=UTC), (
            "its zone is +05:30, as its requests prove"
        )
        assert b["ended_at"] == datetime(2016, 12, 17, 17, 52, 24, tzinfo=UTC)
        kinds = found.sort("line", "record")["kind"].to_list()
        ours = ["coordinator_query", "coordinator_found", "join_requested", "joined", "leader_assigning",
                "assignment_computed", "sync_sent", "synced", "assigned", "offsets_fetching"]  # fmt: skip
        assert [kind for kind in kinds if kind != "metadata"] == [
            *ours, "coordinator_query", "coordinator_found", "revoked", "join_requested", "joined", "sync_sent",
            "synced", "assigned", "offsets_fetching",
        ]  # fmt: skip
        assert log_findings(found)["finding"].to_list() == ["several_consumers"]
