"""The demo's fleet: up in time, what it says it is, and the command line's JSON against what it knows of itself."""

from __future__ import annotations

import json
import time

import pytest
from typer.testing import CliRunner

from kit import connect, observe, views
from kit.analyze import partition_progress
from kit.cli.main import app
from kit.demo.migration import migrate_and_prove
from kit.lab import Lab, fleet, scenario
from kit.lab.process import wait_until
from kit.migrate.group.plan import GroupPlanRequest
from kit.migrate.operations import Operations
from kit.profile import load_profile
from tests.soak import soak_only

pytestmark = pytest.mark.timeout(400)
SECONDS = 45


@pytest.fixture(scope="module")
def fleet_lab():
    """The fleet on three brokers, the producer going on; and the seconds it took to be stable."""
    started = time.monotonic()
    with Lab(scenario.BROKERS, scenario.RACKS) as running:
        yield scenario.start(running), time.monotonic() - started


@pytest.fixture(scope="module")
def profile_file(fleet_lab):
    truth, _ = fleet_lab
    path = truth.lab.folder / "numbers.toml"
    path.write_text(truth.lab.profile_toml())
    return path


@pytest.fixture
def offramp(profile_file):
    def run(*arguments: str) -> list[dict]:
        result = CliRunner().invoke(app, [*arguments, "--json", "--profile-file", str(profile_file)])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return run


def test_groups(fleet_lab, offramp):
    truth, _ = fleet_lab
    rows = {row["group_id"]: row for row in offramp("groups")}
    assert set(rows) == set(truth.groups)
    for name, group in truth.groups.items():
        assert rows[name]["n_members"] == len(group.old_members) + len(group.new_members), name
        assert rows[name]["n_unowned"] == 0, name
        if group.condition == fleet.EMPTY:
            assert rows[name]["stage"] == "empty"
        else:
            assert rows[name]["n_partitions"] == len(group.partitions), name
            assert rows[name]["stage"] == ("OZKCC" if group.old_members else "all KC"), name


def test_lag_and_ownership_of_each_group(fleet_lab, offramp):
    truth, _ = fleet_lab
    for name in ("billing-invoices", "search-indexer", "customer-360", "loyalty-points"):
        group = truth.groups[name]
        rows = offramp("lag", "--group", name)
        assert {(row["topic"], row["partition"]) for row in rows} == group.partitions
        handed_out = most_handed_out(group)
        for row in rows:
            key = (row["topic"], row["partition"])
            assert row["lag"] == row["log_end_offset"] - row["committed_offset"] >= 0
            assert row["committed_offset"] <= handed_out[key]
            assert row["log_end_offset"] >= fleet.FIRST_RECORDS[key[0]] // fleet.TOPICS[key[0]]
        for row in offramp("ownership", "--group", name):
            key = (row["topic"], row["partition"])
            for member in group.old_members:
                assert (row["zookeeper_owner"] == member.consumer_id) == (key in member.partitions())
            for member in group.new_members:
                assert (row["kafka_client_id"] == member.consumer_id) == (key in member.partitions())


def most_handed_out(group) -> dict[tuple[str, int], int]:
    """The next offset of each partition, by the consumers' files, read after the command."""
    following: dict[tuple[str, int], int] = {}
    for member in group.old + group.new:
        for record in member.records():
            key = (record["topic"], record["partition"])
            following[key] = max(following.get(key, 0), record["offset"] + 1)
    return following


def test_readiness(fleet_lab, offramp):
    truth, _ = fleet_lab
    rows = {row["group_id"]: row for row in offramp("readiness")}
    for name, group in truth.groups.items():
        assert (rows[name]["n_ozkcc"], rows[name]["n_kc"]) == (len(group.old_members), len(group.new_members))
        assert rows[name]["effective_mode"] == (
            "zookeeper" if group.old_members else "kafka" if group.new_members else None
        )
    stores = {row["blocker"] for row in rows["loyalty-points"]["blockers"]}
    assert stores, "a group that commits to both stores can't go on before KIP-125's step 1"
    assert rows["billing-invoices"]["blockers"] == []


def test_a_stopped_member_shows_between_two_snapshots(fleet_lab, profile_file):
    truth, _ = fleet_lab
    with connect(load_profile(file=profile_file)) as cluster:
        before = views.lag(observe(cluster, "fraud-scoring"))
        mine = truth.stopped.partitions()

        def verdicts() -> dict[tuple[str, int], str]:
            after = views.lag(observe(cluster, "fraud-scoring"))
            rows = partition_progress(before, after).to_dicts()
            return {(row["topic"], row["partition"]): row["verdict"] for row in rows}

        others = lambda found: {verdict for key, verdict in found.items() if key not in mine}  # noqa: E731
        wait_until(lambda: others(verdicts()) == {"moving"}, "the other member reading on", 60)
        assert {verdicts()[key] for key in mine} == {"stalled"}


def test_fleet_is_stable_in_time(fleet_lab):
    truth, seconds = fleet_lab
    assert len(truth.groups) == 21
    print(f"fleet stable after {seconds:.0f} s")
    # The promise holds for a machine of its own; a shared one gets double.
    assert seconds < 2 * SECONDS


def test_every_partition_is_owned_once_per_side(fleet_lab):
    truth, _ = fleet_lab
    for group in truth.groups.values():
        for members in (group.old_members, group.new_members):
            owned = [pair for member in members for pair in member.partitions()]
            assert len(owned) == len(set(owned)), group.name
            assert not members or set(owned) == group.partitions, group.name


def test_conditions_are_as_named(fleet_lab):
    truth, _ = fleet_lab
    assert {group.name for group in truth.with_condition(fleet.EMPTY)} == {"nightly-export", "legacy-audit"}
    for group in truth.with_condition(fleet.EMPTY):
        assert not group.old_members + group.new_members
    slow = truth.groups["recommendations"].new[0]
    assert len(slow.records()) < fleet.FIRST_RECORDS["clicks"]
    silent = len(truth.stopped.records())
    written = len(truth.producer.acknowledged())
    wait_until(lambda: len(truth.producer.acknowledged()) > written + 60, "the producer going on", 30)
    assert len(truth.stopped.records()) == silent


@soak_only
def test_members_that_share_a_process_move_there_and_back(fleet_lab, profile_file, tmp_path):
    """Its two JVMs hold members of another group, which stay; its assignor is not the usual one."""
    truth, _ = fleet_lab
    stay = truth.groups["billing-invoices"]
    with connect(load_profile(file=profile_file)) as cluster:
        operations = Operations(cluster, tmp_path / "runs")
        for stage in ("all MEZKCC", "OZKCC"):
            request = GroupPlanRequest("order-fulfilment", stage, soak_s=0.0, min_stable_s=0.0, observe_s=1.0)
            plan = operations.plan_group(request)
            operations.approve(plan, plan.subject, plan.digest)
            operations.begin(plan).act().raise_unless()
            assert all(member.is_member() and not member.has_left for member in stay.old)
            assert {row["stage"] for row in views.summary(observe(cluster, stay.name)).to_dicts()} == {"OZKCC"}
            (row,) = views.summary(observe(cluster, "order-fulfilment")).to_dicts()
            assert (row["stage"], row["n_unowned"]) == (stage, 0)


@soak_only
def test_the_demos_migration_there_and_back(fleet_lab, profile_file, tmp_path):
    """The last of this file: the group's members are others afterwards, and those of the other groups have ended."""
    truth, _ = fleet_lab
    others = [group for name, group in truth.groups.items() if name != fleet.MIGRATED.group]
    for process in {member.process for group in others for member in (*group.old, *group.new)}:
        process.kill()
    truth.producer.stop()
    told: list[str] = []
    profile = load_profile(file=profile_file)
    proof = migrate_and_prove(profile, tmp_path / "runs", told.append).summary.row(0, named=True)
    assert (proof["lost"], proof["overlaps"], proof["unowned"]) == (0, 0, 0), told
    assert proof["is_complete"]
    assert proof["is_exclusive"]
    assert proof["records"] > 1000
    with connect(profile) as cluster:
        (row,) = views.summary(observe(cluster, fleet.MIGRATED.group)).to_dicts()
    assert (row["stage"], row["n_members"]) == ("OZKCC", 3)
    assert sum("Evidence:" in each for each in told) == 2
