"""The demo's fleet: up in time, what it says it is, and the command line's JSON against what it knows of itself."""

from __future__ import annotations

import json
from functools import partial

import psutil
import pytest
from typer.testing import CliRunner

from kit import connect, observe
from kit.analyze import partition_progress
from kit.cli.main import app
from kit.demo.migration import migrate_and_prove
from kit.groups import views
from kit.lab import Lab, fleet, scenario
from kit.lab.process import wait_until
from kit.moves.group.plan import GroupPlanRequest
from kit.operations.operations import Operations
from kit.profile import load_profile
from tests.servers.awaiting import awaited
from tests.soak import report, soak_only

pytestmark = pytest.mark.timeout(900)
SECONDS = 45
"""In which the fleet is stable on a machine of its own with two cores."""
CORES = 2


@pytest.fixture(scope="module")
def fleet_lab():
    """The fleet on three brokers, the producer in progress; and the processor's seconds until it was stable."""
    with pytest.MonkeyPatch.context() as patch, Lab(scenario.BROKERS, scenario.RACKS) as running:
        patch.setattr(scenario, "STABLE_SECONDS", 300.0)  # On a machine that has other work.
        truth = scenario.start(running)
        yield truth, sum(map(processor_seconds, running.supervisor.processes))


def processor_seconds(process) -> float:
    spent = psutil.Process(process.pid).cpu_times()
    return spent.user + spent.system


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


def test_members_partitions_and_stage_of_each_group_are_those_of_the_lab(fleet_lab, offramp):
    truth, _ = fleet_lab
    awaited(lambda: wrong_groups(truth, offramp("groups")), is_empty, "all groups as the lab knows them")


def wrong_groups(truth, found: list[dict]) -> list[tuple]:
    """Group, what differs, what is there, what is right."""
    rows = {row["group_id"]: row for row in found}
    assert set(rows) == set(truth.groups)
    wrong = []
    for name, group in truth.groups.items():
        right = {"n_members": len(group.old_members) + len(group.new_members)}
        if group.condition == fleet.EMPTY:
            right |= {"stage": "empty", "n_unowned": len(group.partitions)}
        else:
            right |= {
                "n_unowned": 0,
                "n_partitions": len(group.partitions),
                "stage": "OZKCC" if group.old_members else "all KC",
            }
        wrong += [(name, what, rows[name][what], value) for what, value in right.items() if rows[name][what] != value]
    return wrong


def is_empty(wrong: list) -> bool:
    return not wrong


def test_lag_and_owners_of_each_partition_are_those_of_the_lab(fleet_lab, offramp):
    truth, _ = fleet_lab
    for name in ("billing-invoices", "search-indexer", "customer-360", "loyalty-points"):
        check_lag(truth.groups[name], partial(offramp, "lag", "--group", name))
        check_owners(truth.groups[name], partial(offramp, "ownership", "--group", name))


def check_lag(group, lag) -> None:
    rows = awaited(lag, lambda rows: all(row["lag"] is not None for row in rows), f"{group.name} has committed all")
    assert {(row["topic"], row["partition"]) for row in rows} == group.partitions
    for row in rows:
        assert row["lag"] == row["log_end_offset"] - row["committed_offset"] >= 0
        assert row["log_end_offset"] >= fleet.FIRST_RECORDS[row["topic"]] // fleet.TOPICS[row["topic"]]
    committed = {(row["topic"], row["partition"]): row["committed_offset"] for row in rows}
    # A consumer writes down what it delivers a moment after it counts as delivered.
    awaited(lambda: beyond_what_was_handed_out(group, committed), is_empty, "all that was committed was delivered")


def beyond_what_was_handed_out(group, committed: dict[tuple[str, int], int]) -> list[tuple]:
    following = {pair: record["offset"] + 1 for pair, record in newest_records(group.old + group.new).items()}
    return [(pair, offset) for pair, offset in committed.items() if offset > following.get(pair, 0)]


def check_owners(group, ownership) -> None:
    def wrong_owners() -> list[tuple]:
        rows = {(row["topic"], row["partition"]): row for row in ownership()}
        sides = (("zookeeper_owner", group.old_members), ("kafka_client_id", group.new_members))
        claims = [(member.consumer_id, column, pairs_of(member, side)) for column, side in sides for member in side]
        return [
            (pair, column, row[column], consumer_id)
            for consumer_id, column, pairs in claims
            for pair, row in rows.items()
            if (row[column] == consumer_id) != (pair in pairs)
        ]

    awaited(wrong_owners, is_empty, f"the owners in {group.name} as the lab knows them")


def pairs_of(member, side) -> set[tuple[str, int]]:
    """By its listener or callback. A member without one owns the partitions whose newest records it delivered."""
    if member.events("BEG") or member.events("ASSIGN"):
        return member.partitions()
    return {pair for pair, record in newest_records(side).items() if record["consumer"] == member.consumer_id}


def newest_records(members) -> dict[tuple[str, int], dict]:
    """Return the newest record of each partition, by the consumers' own files."""
    records = [record for member in members for record in member.records()]
    records.sort(key=lambda record: (record["offset"], record["at_ms"]))
    return {(record["topic"], record["partition"]): record for record in records}


def test_flavours_mode_and_blockers_of_each_group_are_those_of_the_lab(fleet_lab, offramp):
    truth, _ = fleet_lab
    rows = {row["group_id"]: row for row in offramp("readiness")}
    for name, group in truth.groups.items():
        assert (rows[name]["n_ozkcc"], rows[name]["n_kc"]) == (len(group.old_members), len(group.new_members))
        assert rows[name]["effective_mode"] == (
            "zookeeper" if group.old_members else "kafka" if group.new_members else None
        )
    stores = {row["blocker"] for row in rows["loyalty-points"]["blockers"]}
    assert stores, "a group that commits to both stores can't continue before KIP-125's step 1"
    assert rows["billing-invoices"]["blockers"] == []


def test_a_stopped_member_shows_between_two_snapshots(fleet_lab, profile_file):
    truth, _ = fleet_lab
    with connect(load_profile(file=profile_file)) as cluster:
        before = views.lag(observe(cluster, "fraud-scoring"))

        def verdicts() -> dict[tuple[str, int], str]:
            after = views.lag(observe(cluster, "fraud-scoring"))
            rows = partition_progress(before, after).to_dicts()
            return {(row["topic"], row["partition"]): row["verdict"] for row in rows}

        mine = truth.stopped.partitions()
        right = {pair: "stalled" if pair in mine else "moving" for pair in truth.groups["fraud-scoring"].partitions}
        awaited(verdicts, lambda found: found == right, f"{len(mine)} partitions stalled, and the others moving")


def test_the_fleet_is_stable_in_time(fleet_lab, record_property):
    """By the processor's time: on a machine that has other work, a promise in seconds says nothing."""
    truth, spent = fleet_lab
    assert len(truth.groups) == 21
    report(record_property, f"{len(truth.groups)} groups are stable after {spent:.0f} s of the processor")
    assert spent < CORES * SECONDS


def test_every_partition_is_owned_once_per_side(fleet_lab):
    truth, _ = fleet_lab
    for group in truth.groups.values():
        for side in filter(None, (group.old_members, group.new_members)):
            check_each_once(group, side)


def check_each_once(group, side) -> None:
    pairs = lambda: sorted(pair for member in side for pair in pairs_of(member, side))  # noqa: E731
    awaited(pairs, lambda found: found == sorted(group.partitions), f"each partition of {group.name} owned once")


def test_conditions_are_as_named(fleet_lab):
    truth, _ = fleet_lab
    assert {group.name for group in truth.with_condition(fleet.EMPTY)} == {"nightly-export", "legacy-audit"}
    for group in truth.with_condition(fleet.EMPTY):
        assert not group.old_members + group.new_members
    slow = truth.groups["recommendations"].new[0]
    assert len(slow.records()) < fleet.FIRST_RECORDS["clicks"]
    silent = len(truth.stopped.records())
    written = len(truth.producer.acknowledged())
    wait_until(lambda: len(truth.producer.acknowledged()) > written + 60, "the producer in progress", 120)
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
            plan = operations.make_plan(request)
            operations.approve(plan, plan.subject, plan.digest)
            operations.begin(plan).act().raise_unless()
            assert all(member.is_member() and not member.has_left for member in stay.old)
            assert {row["stage"] for row in views.summary(observe(cluster, stay.name)).to_dicts()} == {"OZKCC"}
            (row,) = views.summary(observe(cluster, "order-fulfilment")).to_dicts()
            assert (row["stage"], row["n_unowned"]) == (stage, 0)


@soak_only
def test_the_demos_migration_there_and_back(fleet_lab, profile_file, tmp_path, record_property):
    """The last of this file: the group's members are others afterwards, and those of the other groups have ended."""
    truth, _ = fleet_lab
    others = [group for name, group in truth.groups.items() if name != fleet.MIGRATED.group]
    for process in {member.process for group in others for member in (*group.old, *group.new)}:
        process.kill()
    truth.producer.stop()
    told: list[str] = []
    profile = load_profile(file=profile_file)
    proof = migrate_and_prove(profile, tmp_path / "runs", told.append).summary.row(0, named=True)
    report(record_property, records=proof["records"], lost=proof["lost"], longest_pause_ms=proof["longest_stall_ms"])
    assert (proof["lost"], proof["overlaps"], proof["unowned"]) == (0, 0, 0), told
    assert proof["is_complete"]
    assert proof["is_exclusive"]
    assert proof["records"] > 1000
    with connect(profile) as cluster:
        (row,) = views.summary(observe(cluster, fleet.MIGRATED.group)).to_dicts()
    assert (row["stage"], row["n_members"]) == ("OZKCC", 3)
    assert sum("Evidence:" in each for each in told) == 2
