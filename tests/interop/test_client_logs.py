"""Logs of real clients and brokers → the story, held against what the coordinators and ZooKeeper had stored."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from kazoo.client import KazooClient
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import kit
from kit.cli.main import app
from kit.lab import Lab
from kit.rebalances.analyze.attempts import member_rebalances, rebalances
from kit.rebalances.analyze.epochs import epoch_rebalances
from kit.rebalances.analyze.findings import log_findings
from kit.rebalances.analyze.logs_vs_topic import source_differences
from kit.rebalances.analyze.remarks import log_remarks
from kit.rebalances.analyze.stored import topic_rebalances
from kit.rebalances.analyze.story import sentences, story
from kit.rebalances.logs import read_client_logs
from kit.rebalances.offsets_topic import OffsetsTopic, read_offsets_topic
from tests.interop import log_scenes
from tests.interop.log_scenes import PARTITIONS, RECORDS, TOPIC, Cast
from tests.property.conftest import spark  # noqa: F401
from tests.servers.tuned_lab import TunedLab
from tests.soak import IS_SOAK, first

KAFKA_PYTHON = "kafka-python"
CLASSIC = ["java.0.9.0.1", "java.2.8.2", "java.3.9.1", "java-info.3.9.1", "java-kraft.4.1.1"]
CLASSIC += ["rdkafka.eager", "rdkafka.cooperative", KAFKA_PYTHON]
CLASSIC += ["java.0.10.2.2", "java.1.1.1", "java.4.1.1"] if IS_SOAK else []
CONVERTED = "java-converted"
NEW = ["java-new.4.1.1", "java-new.3.9.1", "rdkafka.new"]
pytestmark = pytest.mark.timeout(900)
"""On a busy machine thirty JVMs take their time."""
OLD = first(["old.1.1.1", "old.0.10.2.2", "old.0.8.2.2"])
COMMITTED = RECORDS // PARTITIONS


@dataclass
class Played:
    """Everything said and stored. ``stored`` has the generations of classic groups, ``epochs`` all of new ones."""

    casts: dict[str, Cast]
    folder: Path
    clients: pl.DataFrame
    brokers: pl.DataFrame
    files: pl.DataFrame
    unknown: pl.DataFrame
    stored: pl.DataFrame
    epochs: pl.DataFrame
    began_at: datetime

    def rows(self, group: str) -> list[dict[str, Any]]:
        """Each member's way through each rebalance."""
        return self.members.filter(pl.col("group_id") == group).rows(named=True)

    def __post_init__(self) -> None:
        self.members = member_rebalances(self.clients)
        self.generations = rebalances(self.clients)
        self.generations_by_brokers = rebalances(self.brokers)

    def thrown_out(self, group: str) -> int:
        """Return how many members were, beside the one that was killed: on a busy machine heartbeats come late."""
        kinds = pl.col("kind").is_in(["member_failed", "member_fenced"])
        return len(self.brokers.filter(kinds, pl.col("group_id") == group)) - 1

    def is_late(self, group: str) -> bool:
        """Return whether members were, or nearly were: then a commit came with an old epoch."""
        stale = pl.col("text").str.contains("stale member epoch|member epoch is stale")
        return self.thrown_out(group) > 0 or not self.clients.filter(stale, pl.col("group_id") == group).is_empty()

    def is_cut_off(self, group: str) -> bool:
        """Return whether a poll of kafka-python's ended in the midst of a rebalance: then its member hears no answer to
        it.
        """
        logs = [log.read_text() for log in self.casts[group].logs] if group == KAFKA_PYTHON else []
        return any("timeout in ensure_active_group" in log for log in logs)

    def log(self, group: str, name: str) -> Path:
        return self.folder / self.casts[group].members[name].process.log.name


@pytest.fixture(scope="module")
def played(lab: Lab, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:  # noqa: F811
    """All groups at the same time, on both kinds of broker."""
    folder, began_at = tmp_path_factory.mktemp("logs"), datetime.now(UTC)
    session = {f"group.consumer.{name}": value for name, value in log_scenes.PATIENT.items()}
    with TunedLab(session, kraft=True, kafka_version="4.1.1") as kraft_lab, connected(lab) as zookeeper:
        labs = (lab, kraft_lab)
        groups = [log_scenes.on_zookeeper(lab, zookeeper), log_scenes.on_kraft(kraft_lab)]
        for each in labs:
            each.create_topic(TOPIC, PARTITIONS)
            each.produce(TOPIC, RECORDS)
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(log_scenes.play, casts) for casts in groups]:
                done.result()
        for path in (path for casts in groups for cast in casts for path in cast.logs):
            shutil.copy(path, folder)
        for number, each in enumerate(labs):
            shutil.copy(each.servers.brokers[0].process.log, folder / f"broker-{number}.log")
        topics = [read_topic(spark, each, folder / "profile.toml") for each in labs]
        stored = pl.concat([pl.DataFrame(topic.generations.toArrow()) for topic in topics])
        logs = read_client_logs(spark, [str(path) for path in folder.glob("*.log")])
        events = pl.DataFrame(logs.events.toArrow())
        yield Played(
            casts={cast.group: cast for casts in groups for cast in casts},
            folder=folder,
            clients=events.filter(pl.col("source") != "broker"),
            brokers=events.filter(pl.col("source") == "broker"),
            files=logs.files,
            unknown=pl.DataFrame(logs.unknown_lines.toArrow()),
            stored=stored.filter(pl.col("generation") > 0),
            epochs=pl.concat([pl.DataFrame(topic.epochs.toArrow()) for topic in topics]),
            began_at=began_at,
        )


@contextmanager
def connected(lab: Lab) -> Iterator[KazooClient]:
    client = KazooClient(lab.zookeeper_connect)
    client.start(15)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def read_topic(spark: SparkSession, lab: Lab, profile_file: Path) -> OffsetsTopic:  # noqa: F811
    profile_file.write_text(lab.profile_toml())
    return read_offsets_topic(spark, kit.load_profile(file=str(profile_file)), r"(java|rdkafka|kafka-python).*")


def numbers(partitions: list[str] | None) -> frozenset[int]:
    assert partitions is not None
    assert all(each.startswith(f"{TOPIC}-") for each in partitions)
    return frozenset(int(each.rpartition("-")[2]) for each in partitions)


def test_every_line_about_coordination_is_understood(played: Played) -> None:
    wordings = played.unknown.group_by("wording").agg(pl.col("file").first()).rows()
    assert wordings == []
    assert played.files["n_unknown"].sum() == 0
    assert played.files["n_events"].sum() == len(played.clients) + len(played.brokers)
    assert len(played.files) == 3 * len(played.casts) + 2
    assert played.files.filter(pl.col("n_events") == 0)["file"].to_list() == []
    assert {each for names in played.files["layouts"] for each in names} >= {
        "kafka",
        "log4j",
        "spring",
        "librdkafka",
        "python",
    }


@pytest.mark.parametrize("group", CLASSIC)
def test_members_and_their_partitions_are_those_stored(played: Played, group: str) -> None:
    rows = played.rows(group)
    told = {
        (row["generation"], row["member_id"]): numbers(row["owned"]) for row in rows if row["outcome"] == "assigned"
    }
    # A sync fails where the next member is there already: then a member doesn't hear what was stored for it.
    unheard = {(row["generation"], row["member_id"]) for row in rows if row["failure"]}
    assert len(told) + len(unheard) == len(rows)
    members = played.stored.filter(pl.col("group_id") == group, pl.col("n_members") > 0).rows(named=True)
    stored = {(row["generation"], row["member_id"]): numbers(row["assigned"]) for row in members}
    if played.is_cut_off(group):
        unheard = stored.keys() - told.keys()
    assert told == {member: owned for member, owned in stored.items() if member not in unheard}
    assert len({generation for generation, _ in stored}) >= 5


@pytest.mark.parametrize("group", CLASSIC)
def test_generations_are_those_stored(played: Played, group: str) -> None:
    facts = ["generation", "leader_id", "assignor", "members", "moved", "kept"]
    of_group = pl.col("group_id") == group
    told = played.generations.filter(of_group).select(facts)
    stored = topic_rebalances(played.stored).filter(of_group, pl.col("members").list.len() > 0).select(facts)
    if played.is_cut_off(group):
        assert set(told["generation"]) <= set(stored["generation"])
    else:
        assert told.rows() == stored.rows()


@pytest.mark.parametrize("group", CLASSIC)
def test_brokers_report_of_the_same_generations(played: Played, group: str) -> None:
    of_group = pl.col("group_id") == group
    told = played.generations_by_brokers.filter(of_group).select("generation", "leader_id")
    stored = topic_rebalances(played.stored).filter(of_group)
    assert told.rows() == stored.select("generation", "leader_id").rows()
    left = stored.filter(pl.col("left").list.len() > 0).select("generation", "left").rows()
    by_brokers = played.generations_by_brokers.filter(of_group, pl.col("left").list.len() > 0)
    assert by_brokers.select("generation", "left").rows() == left
    assert len(left) >= 2, "one left, one was killed"


def test_the_two_sources_agree(played: Played) -> None:
    assert set(played.stored["group_id"]) == {*CLASSIC, CONVERTED}
    assert set(played.epochs["group_id"]) == {*NEW, CONVERTED}
    heard = played.stored.filter(pl.col("group_id").is_in([each for each in CLASSIC if not played.is_cut_off(each)]))
    assert source_differences(played.clients, heard, played.epochs)["sentence"].to_list() == []
    assert source_differences(played.brokers, played.stored, played.epochs)["sentence"].to_list() == []


@pytest.mark.parametrize("group", ["java.0.9.0.1", "java.3.9.1"])
def test_if_they_differ_it_is_reported(played: Played, group: str) -> None:
    """A member's log that wasn't given, and a generation that is not in the topic any more."""
    mine = played.stored.filter(pl.col("group_id") == group)
    middle = sorted(mine["generation"].unique())[2]
    compacted = mine.filter(pl.col("generation") != middle)
    no_epochs = played.epochs.head(0)
    (row,) = source_differences(played.clients, compacted, no_epochs).rows(named=True)
    assert (row["finding"], row["group_id"]) == ("not_stored", group)
    assert f"generation {middle} is in the logs" in row["sentence"]
    silent = played.clients.filter((pl.col("group_id") != group) | ~pl.col("generation").is_in([middle]))
    assert "not_logged" in set(source_differences(silent, mine, no_epochs)["finding"])


@pytest.mark.parametrize("group", NEW)
def test_if_epochs_differ_it_is_reported(played: Played, group: str) -> None:
    """One that is not in the topic any more, and a member that had other partitions than the log shows."""
    mine, nothing = played.epochs.filter(group_id=group), played.stored.head(0)
    row = next(row for row in reversed(played.rows(group)) if row["owned"])
    epoch, member = row["generation"], row["member_id"]
    (lacking,) = source_differences(played.clients, nothing, mine.filter(pl.col("epoch").ne_missing(epoch))).rows()
    assert lacking[1] == "not_stored"
    assert f"epoch {epoch} is in the logs" in lacking[-1]
    is_its = (pl.col("epoch") == epoch) & (pl.col("member_id") == member)
    other = mine.with_columns(assigned=pl.when(is_its).then(pl.lit([f"{TOPIC}-9"])).otherwise("assigned"))
    (differing,) = source_differences(played.clients, nothing, other).rows()
    assert differing[1:3] == ("other_assignment", member)


@pytest.mark.parametrize("group", NEW)
def test_brokers_report_of_the_epochs_stored(played: Played, group: str) -> None:
    """And where one of both lacks an epoch, or a member that joined, it is reported."""
    mine, nothing = played.epochs.filter(group_id=group), played.stored.head(0)
    told = played.brokers.filter(group_id=group, kind="epoch_bumped")["generation"]
    assert sorted(told) == sorted(mine.filter(kind="group_epoch")["epoch"])
    second = sorted(told)[1]
    is_second = (pl.col("kind") == "group_epoch") & (pl.col("epoch") == second)
    (unstored,) = source_differences(played.brokers, nothing, mine.filter(~is_second)).rows(named=True)
    assert unstored["finding"] == "not_stored"
    assert f"epoch {second} is in the coordinator's log" in unstored["sentence"]
    silent = played.brokers.filter((pl.col("kind") != "epoch_bumped") | (pl.col("generation") != second))
    assert "not_logged" in set(source_differences(silent, nothing, mine)["finding"])
    last = played.brokers.filter(group_id=group, kind="member_joining")["member_id"].drop_nulls()[-1]
    without = mine.filter(pl.col("member_id").ne_missing(last))
    found = source_differences(played.brokers, nothing, without)
    assert found.select("finding", "consumer").rows() == [("unknown_member", last)]


@pytest.mark.parametrize("group", NEW)
def test_epochs_of_the_new_protocol_are_those_stored(played: Played, group: str) -> None:
    of_group = pl.col("group_id") == group
    stored: dict[str, list[tuple[int, frozenset[int]]]] = {}
    records = played.epochs.filter(of_group, kind="current_assignment", is_tombstone=False).sort("partition", "offset")
    for row in records.rows(named=True):
        stored.setdefault(row["member_id"], []).append((row["epoch"], numbers(row["assigned"])))
    told: dict[str, list[tuple[int, frozenset[int]]]] = {}
    for row in played.rows(group):
        assert row["outcome"] == "assigned"
        told.setdefault(row["member_id"], []).append((row["generation"], numbers(row["owned"])))
    assert told.keys() == stored.keys()
    for member, assigned in stored.items():
        assert {each for each in told[member] if each[1]} <= set(assigned)
        if not played.thrown_out(group):
            assert changes(told[member]) == changes(assigned)
    facts = ["generation", "members"]
    if not played.thrown_out(group):
        stored_facts = epoch_rebalances(played.epochs).filter(of_group).select(facts).rows()
        assert played.generations.filter(of_group).select(facts).rows() == stored_facts
    by_brokers = played.generations_by_brokers.filter(of_group, pl.col("left").list.len() > 0)
    assert len(by_brokers) >= 2, "one left, one was killed"


def test_a_converted_group_is_reported_as_both_kinds_of_record_have_it(played: Played) -> None:
    """Epochs while a member of the new protocol is in it, generations before and after."""
    events = pl.concat([played.clients, played.brokers]).filter(group_id=CONVERTED)
    generations, epochs = played.stored.filter(group_id=CONVERTED), played.epochs.filter(group_id=CONVERTED)
    assert source_differences(events, generations, epochs).rows() == []
    stored = pl.concat([topic_rebalances(generations), epoch_rebalances(epochs)]).sort("is_epoch")
    told = rebalances(events)
    if not played.thrown_out(CONVERTED):
        assert dict(told.select("generation", "members").rows()) == dict(stored.select("generation", "members").rows())
    reasons = [" ".join(each) for each in told["reasons"]]
    assert sum("Converted the classic group to a consumer group" in each for each in reasons) >= 2
    assert sum(f"Downgrade group {CONVERTED} from consumer to classic" in each for each in reasons) >= 2
    frames = (told, log_remarks(events), log_findings(events))
    assert any("from consumer to classic" in each for each in sentences(played.members.clear(), *frames))
    # If its classic member had other partitions than the coordinator stored in an epoch, it is reported.
    (stays,) = {member for members in stored["members"] for member in members if member.startswith(CONVERTED)}
    is_its = (pl.col("kind") == "current_assignment") & (pl.col("member_id") == stays)
    other = epochs.with_columns(assigned=pl.when(is_its).then(pl.lit([f"{TOPIC}-9"])).otherwise("assigned"))
    found = source_differences(events, generations, other)
    assert set(found.select("finding", "consumer").rows()) == {("other_assignment", stays)}


def test_a_static_member_that_is_restarted_is_one_member(
    played: Played,
    lab: Lab,
    spark: SparkSession,  # noqa: F811
    tmp_path: Path,
) -> None:
    """It comes back into the same generation under another member id."""
    cast = log_scenes.static(lab)
    log_scenes.restart(cast)
    events = pl.DataFrame(read_client_logs(spark, [str(log) for log in cast.logs]).events.toArrow())
    topic = read_topic(spark, lab, tmp_path / "profile.toml")
    stored = pl.DataFrame(topic.generations.toArrow()).filter(group_id=cast.group)
    assert source_differences(events, stored, played.epochs.clear()).rows() == []
    told = rebalances(events)
    facts = ["generation", "members", "leader_id"]
    assert told.select(facts).rows() == topic_rebalances(stored).filter(pl.col("generation") > 0).select(facts).rows()
    _, second = told.rows(named=True)
    assert (len(second["members"]), len(second["joined"]), second["left"]) == (2, 1, [])
    again = member_rebalances(events).filter(file=str(cast.logs[-1]))
    assert again["member_id"].to_list() == second["joined"]
    assert second["ended_at"] < again["joined_at"].item()


def changes(assigned: list[tuple[int, frozenset[int]]]) -> list[frozenset[int]]:
    """A new member may be reported first that it has nothing yet, or hear nothing of it."""
    return [owned for owned, _ in groupby(owned for _, owned in assigned if owned)]


@pytest.mark.parametrize("group", [*CLASSIC, *NEW])
def test_the_story_reports_epoch_where_the_protocol_does(played: Played, group: str) -> None:
    of_group = pl.col("group_id") == group
    members, generations = played.members.filter(of_group), played.generations.filter(of_group)
    without_reasons = (
        members.with_columns(reason=None),
        generations.with_columns(reasons=pl.lit([], pl.List(pl.String))),
    )
    told = sentences(*without_reasons, *(each(played.clients).clear() for each in (log_remarks, log_findings)))
    word, other = ("epoch", "generation") if group in NEW else ("generation", "epoch")
    assert any(f" {word} 2" in each for each in told)
    assert not any(other in each for each in told)
    assert {*members["is_epoch"], *generations["is_epoch"]} == {group in NEW}


@pytest.mark.parametrize("group", OLD)
def test_old_consumers_own_what_zookeeper_had(played: Played, group: str) -> None:
    told: dict[str, list[tuple[int, frozenset[int]]]] = {}
    for row in played.rows(group):
        assert (row["source"], row["outcome"], row["generation"]) == ("zookeeper", "assigned", None)
        told.setdefault(row["consumer"], []).append((0, numbers(row["owned"])))
    seen = {who: [(0, owners[who]) for owners in played.casts[group].seen if who in owners] for who in told}
    assert {who: changes(owned) for who, owned in told.items()} == {who: changes(owned) for who, owned in seen.items()}
    assert len(told) == 3


@pytest.mark.parametrize("group", [*CLASSIC, *NEW])
def test_positions_are_the_offsets_committed(played: Played, group: str) -> None:
    """Before kafka-python knows the topic, its leader assigns nothing of it, and joins again."""
    first, *later = (row for row in played.rows(group) if row["without_offset"] or row["positions"])
    assert numbers(first["without_offset"]) == frozenset(range(PARTITIONS))
    positions = [position for row in later for position in row["positions"]]
    assert len(positions) >= PARTITIONS
    assert {position.rpartition("@")[2] for position in positions} == {str(COMMITTED)}


@pytest.mark.parametrize("group", [*CLASSIC, *NEW, *OLD])
def test_nothing_is_found_that_was_not(played: Played, group: str) -> None:
    found = log_findings(played.clients).filter(pl.col("group_id") == group)
    late = {"evicted", "commit_failed"} if played.is_late(group) else set()
    # Its poll may end before the commit that it waits for ahead of a rebalance.
    cut_off = {"commit_failed", "skipped_generation"} if played.is_cut_off(group) else set()
    # Its leader assigns before it knows the topic's partitions, and then again.
    early = {"not_assigned"} if group == KAFKA_PYTHON else set()
    # The one that is killed may just have lost its coordinator, which old clients do now and then.
    at_its_end = (pl.col("finding") == "unreached_coordinator") & (pl.col("consumer") == f"{group}-c")
    found = found.filter(~at_its_end)
    failed = played.clients.filter(pl.col("group_id") == group, pl.col("kind") == "commit_failed")
    said = [*found["sentence"], *failed["text"]]
    assert set(found["finding"]) <= {"storm", "offset_reset"} | late | cut_off | early, said


@pytest.fixture(scope="module")
def article(played: Played, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:  # noqa: F811
    """One text as people paste them: a 0.9 consumer until it has its partitions, then a second one that joins."""
    first = until(played.log("java.0.9.0.1", "a"), "to earliest offset", 1)
    second = until(played.log("java.0.9.0.1", "b"), "to the committed offset", 2)
    pasted = tmp_path_factory.mktemp("pasted") / "article.txt"
    pasted.write_text(f"{first}Now the second one.\n{second}")
    return pl.DataFrame(read_client_logs(spark, str(pasted)).events.toArrow())


def until(log: Path, text: str, count: int) -> str:
    """The log up to the line that is the ``count``-th with that text."""
    lines = log.read_text().splitlines(True)
    found = [number for number, line in enumerate(lines) if text in line]
    return "".join(lines[: found[count - 1] + 1])


def test_a_pasted_log_of_two_0_9_consumers_is_reported(lab: Lab, played: Played, article: pl.DataFrame) -> None:
    """First start: coordinator, join as leader, sync, offsets; second start: a follower gets its part."""
    joins = ["coordinator_found", "revoked", "joining", "join_requested", "joined"]
    shares = ["sync_sent", "synced", "assigned", "offsets_fetching"]
    wanted = [*joins, "leader_assigning", "assignment_computed", *shares, "offset_missing", "offset_reset"]
    told = [kind for kind in article.sort("line", "record")["kind"] if kind in {*wanted, "offset_found"}]
    assert [kind for kind, _ in groupby(told)] == [*wanted, *joins, *shares, "offset_found"]
    a, b = member_rebalances(article).rows(named=True)
    facts = ["group_id", "generation", "is_leader", "assignor", "coordinator_id", "outcome"]
    assert [a[fact] for fact in facts] == ["java.0.9.0.1", 1, True, "range", 1, "assigned"]
    assert [b[fact] for fact in facts] == ["java.0.9.0.1", 2, False, "range", 1, "assigned"]
    assert a["leader_id"] == a["member_id"] == b["leader_id"] != b["member_id"]
    assert numbers(a["owned"]) == numbers(a["fetched"]) == frozenset(range(PARTITIONS))
    assert numbers(b["owned"]) == numbers(b["fetched"]) == frozenset({2, 3})
    assert sorted(b["positions"]) == [f"{TOPIC}-2@{COMMITTED}", f"{TOPIC}-3@{COMMITTED}"]
    assert a["coordinator"] == b["coordinator"] == lab.servers.addresses()
    for row in (a, b):
        assert row["is_utc"], "its times are of another zone, which its requests prove"
        assert played.began_at - timedelta(seconds=2) < row["started_at"] <= row["ended_at"] < datetime.now(UTC)


def test_the_second_generation_of_that_log_reports_what_it_does_not_hold(article: pl.DataFrame) -> None:
    first, second = rebalances(article).rows(named=True)
    assert (first["generation"], first["members"], first["members_without_log"]) == (1, [first["leader_id"]], [])
    assert (second["generation"], second["leader_id"], second["left"]) == (2, first["leader_id"], [])
    assert (second["joined"], second["members_without_log"]) == (second["members"], [first["leader_id"]])
    assert numbers(second["moved"]) == {2, 3}
    assert numbers(second["partitions_without_known_owner"]) == {0, 1}
    assert set(log_findings(article)["finding"]) == {"several_consumers", "offset_reset"}
    sentences = story(article)
    assert "joined generation 1" in sentences[0]
    assert ", as leader, " in sentences[0]
    assert f"as follower of {first['leader_id']}" in sentences[1]


def test_the_command_distinguishes_it_from_both_sources(played: Played, lab: Lab, tmp_path: Path) -> None:
    group = "java.3.9.1"
    logs = [str(played.folder / each.name) for each in played.casts[group].logs]
    profile, picture = tmp_path / "offramp.toml", tmp_path / "story.svg"
    profile.write_text(lab.profile_toml())
    options = ["--profile", "lab", "--profile-file", str(profile), "--group", group, "--timeline", str(picture)]
    done = CliRunner().invoke(app, ["rebalances", *logs, *options, "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    numbers_of = [[row["generation"] for row in told[name] if row["members"]] for name in ("generations", "stored")]
    assert numbers_of[0] == numbers_of[1]
    assert {row["finding"] for row in told["findings"]} <= {"storm", "offset_reset"}
    assert told["unknown"] == []
    assert any("as leader" in sentence for sentence in told["sentences"])
    drawn = picture.read_text()
    assert all(f"{group}-{name}" in drawn for name in "abc")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nowhere/*.log"], 8, "no log at nowhere"),
        (["--profile-file", "missing.toml"], 3, "missing.toml"),
        (["{log}", "--group", "nobody"], 8, "neither source names a group 'nobody': the logs name java.3.9.1"),
        (["{log}", "--since", "yesterday"], 2, "'yesterday' is neither a time"),
        (["{log}", "--zone", "Mars"], 2, "no time zone 'Mars'"),
        (["{log}", "--timeline", "picture.bmp"], 2, "ends in .svg or .html"),
    ],
)
def test_the_command_refuses_wrong_input(played: Played, arguments: list[str], code: int, says: str) -> None:
    log = str(played.folder / played.log("java.3.9.1", "a").name)
    done = CliRunner().invoke(app, ["rebalances", *(each.format(log=log) for each in arguments)])
    assert done.exit_code == code, done.output
    assert says in " ".join(done.output.split())
