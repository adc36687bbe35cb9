"""Examines a cluster on its way to KRaft: what is kept of them, and what a history that was cut off gives back."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from kit.errors import ConnectError, HistoryError, PartialRead
from kit.kraft import watch as kraft_watch
from kit.kraft.verbs import kraft as verbs
from kit.kraft.watch import KraftHistory, KraftObservation
from kit.profile import Profile
from kit.tables import schema as tables
from kit.tables.kraft import NodeFact
from kit.terminal.terminal import refusals
from tests.kraft_records import DIFFERING, SILENT, SOUND, control, diff, difference, kraft_look, node, plain
from tests.property.conftest import spark  # noqa: F401


def closed(number: int) -> NodeFact:
    address = f"c{number}:9093"
    return replace(SILENT, address=address, error=f"{address} refused the connection", is_listening=False)


def not_begun(*controllers: NodeFact, **changed) -> KraftObservation:
    """A cluster in ZooKeeper mode, whose profile names controllers."""
    nodes = (node("broker", mode="zookeeper", has_flag=False), *controllers)
    log = {"log_read_at": None, "log_error": f"no controller answers: {controllers[0].error}"}
    return kraft_look(**{"control": plain(), "zk_state": None, "registrations": (), "nodes": nodes, **log, **changed})


def test_controllers_that_do_not_run_yet_are_rows_and_the_phase_is_reported():
    look = not_begun(closed(1), closed(2))
    assert look.status.describe()[2:] == [
        "Controllers c1:9093 and c2:9093 do not run: no server listens at the address. The move has not begun."
    ]
    assert (
        look.verify()
        == "Cluster one: phase zookeeper; everything was read, except from the controllers, which do not run yet."
    )
    look.status.verify()
    assert (look.state.error, look.status.unread) == (None, [])
    errors = dict(look.status.facts.select("fact", "error").rows())
    assert errors["controller c1:9093"] == "c1:9093 refused the connection"
    assert errors["migration state"].startswith("no controller answers")
    assert look.status.places.filter(pl.col("role") == "controller")["error"].null_count() == 0


@pytest.mark.parametrize(
    "look",
    [
        not_begun(closed(1), SILENT),
        not_begun(closed(1), control=plain(has_migration=True)),
        not_begun(closed(1), control=control()),
        not_begun(closed(1), node("controller"), log_read_at=SOUND.at, log_error=None),
    ],
)
def test_a_controller_that_may_run_or_has_run_is_not_taken_for_one_that_is_to_come(look):
    """One that hangs, one of whose kin answers, or that has left something in ZooKeeper."""
    assert look.status.not_started == ()
    with pytest.raises(PartialRead, match="not read"):
        look.verify()


def test_the_status_reports_further_unread_facts_all_the_same():
    silent = node("broker", mode=None, error="no answer")
    look = not_begun(closed(1), nodes=(silent, closed(1)))
    assert look.status.unread == ["no answer"]


def test_an_observation_counts_what_its_diff_found():
    row = kraft_look(DIFFERING).state
    counts = (row.n_equal, row.n_expected, row.n_in_flight, row.n_diverged, row.n_unknown)
    assert counts == (2, 1, 1, 1, 1)
    assert row.error is None
    assert kraft_look(DIFFERING).line() == (
        "08:00:00Z phase dual write, 2 records behind, 2 equal, 1 diverged, 1 in flight, 1 unknown"
    )


def test_a_status_reports_how_far_zookeeper_is_behind_only_where_it_can_be():
    assert kraft_look().status.describe()[1].endswith("; records behind in ZooKeeper: 2.")
    waiting = kraft_look(zk_state="PRE_MIGRATION").status.describe()
    assert waiting[0] == "Cluster one: phase controllers."
    assert "behind" not in waiting[1]
    assert waiting[1].startswith("Brokers in /brokers/ids: ")


def test_facts_have_an_age_and_times_are_reported_as_all_are():
    facts = kraft_look().status.aged_facts
    assert facts["age_s"].null_count() == 0
    (written,) = facts.filter(pl.col("fact") == "/migration written")["value"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", written)
    (source,) = {*facts.filter(pl.col("fact").str.starts_with("broker "))["source"]}
    assert "DescribeQuorum" not in source


def test_a_controller_that_would_finalise_is_reported_in_the_line():
    told = kraft_look(DIFFERING, nodes=(node("broker"), node("controller", has_flag=False))).line()
    assert "; alarm P01: The controller at " in told
    assert "finalises the migration at once when it is elected" in told


def test_without_a_diff_its_numbers_are_unknown_and_not_zero():
    row = kraft_look(error="the controllers went away").state
    assert (row.n_equal, row.n_diverged, row.error) == (None, None, "the controllers went away")
    assert (
        "nothing compared; not read: the controllers went away" in kraft_look(error="the controllers went away").line()
    )


@pytest.mark.parametrize(
    ("look", "said"),
    [
        (kraft_look(DIFFERING), "/config/users/a: no JSON"),
        (kraft_look(error="no diff"), "no diff"),
        (kraft_look(nodes=(SILENT,)), "no answer"),
    ],
)
def test_an_incomplete_read_is_no_success(look, said):
    with pytest.raises(PartialRead, match=said):
        look.verify()


def test_all_that_was_read_verifies_even_where_stores_differ():
    assert "phase dual write" in kraft_look(diff(difference("config", "diverged"))).verify()


def test_appended_rows_come_back_in_their_order(tmp_path):
    kept = KraftHistory(tmp_path)
    for minutes in (2, 0, 1):
        kept.append(kraft_look(DIFFERING if minutes else None, minutes=minutes))
    kept.append(
        replace(kraft_look(), status=replace(kraft_look().status, state=replace(kraft_look().state, cluster="two")))
    )
    states = kept.states("one")
    assert states["at"].to_list() == [SOUND.at + timedelta(minutes=minutes) for minutes in range(3)]
    assert states["n_diverged"].to_list() == [None, 1, 1]
    assert kept.differences("one").select("verdict").to_series().to_list() == ["in_flight", "diverged", "unknown"] * 2
    assert states.columns == tables.KRAFT_STATES.stamped_schema.names
    assert len(kept.states("two")) == 1
    assert kept.states("three").is_empty()


class CutOff(KraftHistory):
    def _write(self, table, *arguments):
        if table is tables.KRAFT_STATES:
            raise KeyboardInterrupt
        super()._write(table, *arguments)


def test_an_observation_that_was_cut_off_is_not_loaded(tmp_path):
    kept = KraftHistory(tmp_path)
    kept.append(kraft_look(DIFFERING))
    with pytest.raises(KeyboardInterrupt):
        CutOff(tmp_path).append(kraft_look(DIFFERING, minutes=1))
    assert len(kept.states("one")) == 1
    assert len(kept.differences("one")) == 3


def test_a_file_that_was_cut_off_is_not_loaded(tmp_path):
    kept = KraftHistory(tmp_path)
    kept.append(kraft_look())
    (whole,) = (tmp_path / "kraft_states").rglob("rows.parquet")
    half = whole.parent.parent / "snapshot_id=cut"
    half.mkdir()
    (half / ".rows.parquet").write_bytes(whole.read_bytes()[:100])
    assert len(kept.states("one")) == 1


@pytest.mark.parametrize("held", [b"", b"PAR1 and no more", None])
def test_a_damaged_file_is_named(tmp_path, held):
    kept = KraftHistory(tmp_path)
    kept.append(kraft_look())
    (whole,) = (tmp_path / "kraft_states").rglob("rows.parquet")
    if held is None:
        pl.DataFrame({"at": [1]}).write_parquet(whole)
    else:
        whole.write_bytes(held)
    with pytest.raises(
        HistoryError, match=r"kraft_states can't be read: .*damaged, or another version of offramp wrote it"
    ):
        kept.states("one")


def test_no_history_reports_how_to_make_one(tmp_path):
    with pytest.raises(HistoryError, match=r"there is no history of observations in .*: offramp kraft watch"):
        KraftHistory(tmp_path / "none").states("one")


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HistoryError, match=r"could not be written: Not a directory. Name another folder"):
        KraftHistory(tmp_path / "file").append(kraft_look())


def test_if_no_connection_is_made_the_nodes_are_asked_all_the_same():
    def refuse(profile):
        raise ConnectError("none answered")

    nobody = Profile(name="one", file=Path("offramp.toml"), bootstrap_servers="127.0.0.1:1")
    (node,) = kraft_watch.observe(nobody, connected=refuse).status.read.nodes
    assert (node.address, node.error is not None) == ("127.0.0.1:1", True)


def test_watch_appends_each_observation_and_fails_by_the_last(tmp_path, monkeypatch):
    profile = tmp_path / "offramp.toml"
    profile.write_text('[clusters.one]\nbootstrap_servers = "127.0.0.1:1"\nzookeeper_connect = "127.0.0.1:1"\n')
    looks = iter([kraft_look(), kraft_look(minutes=1), kraft_look(error="gone", minutes=2)])
    monkeypatch.setattr(kraft_watch, "observe", lambda chosen, settle_s: next(looks))
    folder = tmp_path / "kept"
    options = ["--history", str(folder), "--every", "0", "--count", "3", "--profile-file", str(profile)]
    ended = CliRunner().invoke(verbs.app, ["watch", *options])
    assert ended.exit_code == PartialRead.exit_code
    assert "08:02:00Z phase dual write, 2 records behind, nothing compared; not read: gone" in ended.output
    assert len(KraftHistory(folder).states("one")) == 3


def test_plain_spark_reads_a_history(spark, tmp_path):  # noqa: F811
    kept = KraftHistory(tmp_path)
    kept.append(kraft_look(DIFFERING))
    kept.append(kraft_look(minutes=1))
    states = spark.read.parquet(str(tmp_path / "kraft_states"))
    assert set(states.columns) == {*tables.KRAFT_STATES.stamped_schema.names, "date"}
    assert [row.n_diverged for row in states.orderBy("at").collect()] == [1, None]
    rows = spark.read.parquet(str(tmp_path / "metadata_differences")).join(states, "snapshot_id", "left_semi")
    assert rows.count() == 3


def test_a_name_in_an_error_begins_no_line_of_its_own(capsys):
    """The errors are reported line by line; a znode's name may hold a line of its own."""
    forged = "/config/users/a\nofframp: both stores hold the same"
    differences = diff(difference("config", "unknown", error=forged))
    status = replace(SILENT, error=forged)
    for tell in (
        kraft_look(error=forged).verify,
        kraft_look(nodes=(status,)).status.verify,
        lambda: verbs._verify(differences, differences.of("unknown")),
    ):
        with pytest.raises(typer.Exit), refusals():
            tell()
        assert [each for each in capsys.readouterr().err.splitlines() if each.startswith("offramp: both")] == []
