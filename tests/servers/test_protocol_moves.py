"""One group from the classic to the consumer protocol and back, by approved plans, on Kafka 4.4 and under load."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kit.clients.cluster import Cluster, connect
from kit.engine.execution.run import Run
from kit.engine.model.event import Event
from kit.engine.model.plan import Plan
from kit.engine.model.states import RunState
from kit.errors import PlanError, UnsafePlan
from kit.lab import Lab
from kit.lab.members.handles import Consumer as Member
from kit.lab.members.java import JavaMember
from kit.lab.members.new_consumers import NewMember
from kit.lab.topics import QUIET
from kit.moves.protocol import group_configs
from kit.moves.protocol.fleet import ProtocolFleetRequest
from kit.moves.protocol.group_configs import fetch_configs
from kit.moves.protocol.plan import ProtocolPlanRequest, log_ends
from kit.operations.operations import Operations
from kit.profile import load_profile
from kit.protocol.facts import ROLLING, STOPPED, Answers
from tests.notebooks.executed import NOTEBOOKS, execute
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.offset_operations import await_member
from tests.servers.protocol_group import PARTITIONS, ProtocolGroup, assert_each_once
from tests.servers.raw_member import RawMember, assignment, subscription
from tests.soak import soak_only

RUNBOOK = NOTEBOOKS / "runbook" / "consumer_protocol.ipynb"
FLEET_RUNBOOK = NOTEBOOKS / "runbook" / "protocol_fleet.ipynb"
DEPLOY = """
import json, os, sys
from pathlib import Path
from kit.lab.control import replace
folder, member, to_flavour = sys.argv[1:]
order = json.loads(os.environ["OFFRAMP_SWAP"])
assert (order["member"], order["to_flavour"]) == (member, to_flavour)
assert bool(order["from_flavour"]) != bool(to_flavour)
print(replace(Path(folder), order["group"], order["client_id"], to_flavour))
"""
QUICK = {"soak_s": 2.0, "observe_s": 1.0, "quiet_s": 1.0, "answers": Answers(clients_ready=True)}


@pytest.fixture(scope="module")
def cluster(kraft_lab: Lab) -> Iterator[Cluster]:
    """By the profile in the lab's own folder: its deployer finds the lab there."""
    path = kraft_lab.folder / "protocols.toml"
    path.write_text(kraft_lab.profile_toml())
    with connect(load_profile(file=path)) as connected:
        yield connected


@pytest.fixture
def desk(cluster: Cluster, tmp_path: Path) -> Operations:
    return Operations(cluster, tmp_path / "runs")


def begun(desk: Operations, plan: Plan) -> Run:
    desk.approve(plan, plan.subject, plan.digest[:8], "second person")
    return desk.begin(plan)


def planned(desk: Operations, group: ProtocolGroup, to: str, **wishes: object) -> Plan:
    return desk.make_plan(ProtocolPlanRequest(group.name, to, **{**QUICK, **wishes}))  # type: ignore[arg-type]


def test_three_classic_members_change_to_the_consumer_protocol_and_back(kraft_lab, cluster, desk):
    """A Java client and two of librdkafka; a plan there, its undo, and a plan there and one back."""
    group = ProtocolGroup(kraft_lab, cluster, "move-there-and-back")
    java = JavaMember(group.name, (group.name,), f"{group.name}-java", version="4.4.0", level="WARN")
    group.start([java, *(NewMember(group.name, [group.name], f"{group.name}-{number}") for number in range(2))])
    assert group.state().stage == "classic"
    with pytest.raises(UnsafePlan, match="k848_clients"):
        planned(desk, group, "consumer", answers=Answers())
    there = begun(desk, planned(desk, group, "consumer"))
    there.act().raise_unless(RunState.VERIFIED)
    assert (group.state().stage, group.state().protocol.group_type) == ("consumer", "consumer")
    there.undo().raise_unless(RunState.UNDONE)
    assert (group.state().stage, group.state().protocol.group_type) == ("classic", "classic")
    begun(desk, planned(desk, group, "consumer")).act().raise_unless(RunState.VERIFIED)
    begun(desk, planned(desk, group, "classic")).act().raise_unless(RunState.VERIFIED)
    assert (group.settled(3).stage, group.state().protocol.group_type) == ("classic", "classic")
    assert_each_once(group)


@pytest.fixture
def commanded(kraft_lab: Lab, tmp_path: Path) -> Iterator[Cluster]:
    """The cluster by a profile whose deployer is a command of the operator's: it has the order from its environment."""
    script, path = tmp_path / "deploy.py", tmp_path / "commanded.toml"
    script.write_text(DEPLOY)
    words = [sys.executable, "-W", "ignore", str(script), str(kraft_lab.folder), "{member}", "{to_flavour}"]
    command = f'kind = "command"\ncommand = {json.dumps(words)}'
    path.write_text(kraft_lab.profile_toml().replace('kind = "lab"', command))
    with connect(load_profile(file=path)) as connected:
        assert connected.profile.deploy.kind == "command"
        yield connected


def test_all_members_stop_and_then_start_under_the_other_protocol(kraft_lab, commanded, tmp_path):
    """A run that is stopped while the group is empty is undone; so is one that is verified. Offsets are kept."""
    cluster = commanded
    group = ProtocolGroup(kraft_lab, cluster, "move-stopped")
    java = JavaMember(group.name, (group.name,), f"{group.name}-java", version="4.4.0", level="WARN")
    group.start([java, NewMember(group.name, [group.name], f"{group.name}-0")])
    committed = awaited(lambda: group.state().offsets, lambda it: len(it) == PARTITIONS, "commits of all partitions")
    runs: list[Run] = []

    def stop_when_empty(event: Event) -> None:
        if event.event == "verified" and event.outcome == "ok" and event.step_id == "01-stop-all":
            runs[0].request_stop("second person")

    desk = Operations(cluster, tmp_path / "runs", tell=stop_when_empty)
    plan = planned(desk, group, "consumer", how="stopped", soak_s=0.0)
    assert [step.kind for step in plan.steps] == ["stop all members", "start all members", "prove ownership"]
    assert any(risk.startswith(f"Consumption of all {PARTITIONS} partitions stops") for risk in plan.risks)
    runs.append(begun(desk, plan))
    assert runs[0].act().state == RunState.STOPPED
    assert (group.state().members, group.state().stage) == ((), "empty")
    runs[0].undo().raise_unless(RunState.UNDONE)
    assert group.settled(2).stage == "classic"
    there = begun(Operations(cluster, tmp_path / "runs"), planned(desk, group, "consumer", how="stopped"))
    there.act().raise_unless(RunState.VERIFIED)
    assert group.settled(2).stage == "consumer"
    events = {
        each.step_id: json.loads(each.details or "{}") for each in there.record.events if each.event == "verified"
    }
    figures = events[there.record.plan.steps[-1].step_id]
    assert figures["heartbeats_per_minute"] == 400.0  # Two members; the lab's interval is 300 ms.
    assert (figures["rebalances_before"]["classic"]["count"] > 0, figures["rebalances"]["consumer"]["count"] > 0) == (
        True,
        True,
    )
    assert 0 < events["02-start-all"]["stopped_ms"] >= figures["longest_unowned_ms"] > 0
    there.undo().raise_unless(RunState.UNDONE)
    after = group.settled(2)
    assert (after.stage, after.protocol.group_type) == ("classic", "classic")
    assert all((after.offsets[pair].kafka or 0) >= (each.kafka or 0) for pair, each in committed.items())
    assert_each_once(group)


def test_many_groups_are_moved_in_waves_and_a_group_that_cannot_be_moved_is_left_out(
    kraft_lab, cluster, desk, tmp_path
):
    """The brake halts the run when a group that was moved falls behind. The run is resumed, and undone."""
    groups = [ProtocolGroup(kraft_lab, cluster, f"fleet-{number}", rate=30.0) for number in range(2)]
    for each in groups:
        each.start([NewMember(each.name, [each.name], f"{each.name}-0")])
    RawMember("fleet-user-data", subscription([groups[0].name]), assignment(b"x")).join(cluster.broker_client)
    every = ProtocolPlanRequest("", "consumer", **{**QUICK, "soak_s": 0.0, "lag_tolerance": 60})
    with pytest.raises(PlanError, match="fleet-user-data: k848_user_data"):
        desk.make_plan(ProtocolFleetRequest(every, ("fleet-0", "fleet-user-data")))
    with pytest.raises(UnsafePlan, match=r"group fleet-0: .*k848_clients"):
        desk.make_plan(ProtocolFleetRequest(replace(every, answers=Answers()), ("fleet-0",)))
    plan = desk.make_plan(ProtocolFleetRequest(every, pattern="fleet-.*", wave=1, pause_s=5.0, max_read_ms=60_000.0))
    assert (plan.targets, plan.subject) == (("fleet-0", "fleet-1"), "2 groups")
    one = ["replace", "prove ownership"]
    assert [step.kind for step in plan.steps] == [*one, "brake between waves", *one]
    assert plan.risks[-1].startswith("Not moved: 1 group.")
    hung: list[Member] = []

    def hang(event: Event) -> None:
        """The member of the first group hangs after the brake's first reading, until it has fallen too far behind."""
        if (event.event, event.step_id) == ("waiting", brake.step_id) and not hung:
            hung.append(kraft_lab.consumers("fleet-0")[-1])
            hung[0].pause()
            known = len(groups[0].producer.acknowledged())
            awaited(lambda: len(groups[0].producer.acknowledged()) - known, lambda new: new > 100, "100 records")

    (brake,) = (step for step in plan.steps if step.kind == "brake between waves")
    run = begun(Operations(cluster, tmp_path / "runs", tell=hang), plan)
    halted = run.act()
    hung[0].resume()
    assert (halted.state, "the lag of group fleet-0 grew by" in halted.sentence) == (RunState.FAILED, True), halted
    assert [each.settled(1).stage for each in groups] == ["consumer", "classic"]
    groups[0].producer.stop()  # On a busy machine the lag of its member may grow beyond the limit again.
    run.resume().raise_unless(RunState.VERIFIED)
    assert [each.settled(1).stage for each in groups] == ["consumer"] * 2
    run.undo().raise_unless(RunState.UNDONE)
    assert [each.settled(1).stage for each in groups] == ["classic"] * 2
    for each in groups:
        assert_each_once(each)


def test_a_deployment_of_another_operator_in_the_midst_ends_the_run_and_names_its_member(kraft_lab, cluster, tmp_path):
    """The step of the others has ordered its first replacement when somebody replaces one more; the undo works."""
    group = ProtocolGroup(kraft_lab, cluster, "move-of-two")
    group.start([NewMember(group.name, [group.name], f"{group.name}-{number}") for number in range(4)])
    desk = Operations(cluster, tmp_path / "runs")
    plan = planned(desk, group, "consumer", soak_s=0.0)
    last = plan.steps[1].parameters["members"][-1]
    other = next(each.client_id for each in group.state().members if each.member_id == last)

    def interfere(event: Event) -> None:
        if (event.event, event.item, event.step_id) == ("acted", "member 1 of 3", plan.steps[1].step_id):
            kraft_lab.replace(group.name, other, "consumer")

    run = begun(Operations(cluster, tmp_path / "runs", tell=interfere), plan)
    ended = run.act()
    newcomer = group.lab.consumers(group.name)[-1].consumer_id
    member_id = next(each.member_id for each in group.state().members if each.client_id == newcomer)
    assert ended.state == RunState.FAILED
    assert f"This run did not start {member_id}:" in ended.sentence
    halted = run.undo()
    assert (halted.state, member_id in halted.sentence) == (RunState.UNDO_HALTED, True), halted.sentence
    kraft_lab.replace(group.name, newcomer, "classic")
    group.settled(4)
    run.undo().raise_unless(RunState.UNDONE)
    assert group.settled(4).stage == "classic"
    assert_each_once(group)


def test_the_runbook_moves_a_group_by_an_approved_plan(kraft_lab, cluster, tmp_path):
    """Papermill runs the wizard's model: a dry run replaces nobody, and the run of the approved plan is verified."""
    group = ProtocolGroup(kraft_lab, cluster, "move-by-runbook")
    group.start([NewMember(group.name, [group.name], f"{group.name}-{number}") for number in range(2)])
    runs, profile = tmp_path / "runs", cluster.profile.file
    given = {"profile_file": str(profile), "runs": str(runs), "group_id": group.name, "soak_s": 2.0}
    given |= {"clients_ready": True}
    execute(RUNBOOK, tmp_path / "dry.ipynb", **given)
    assert group.state().stage == "classic"
    desk = Operations(cluster, runs)
    plan = desk.plan(str(desk.plan_files()[0]))
    desk.approve(plan, plan.subject, plan.digest[:8], approver="Bob")
    execute(RUNBOOK, tmp_path / "run.ipynb", **given, approval_digest=plan.digest, dry_run=False)
    assert group.settled(2).stage == "consumer"
    assert_each_once(group)


@soak_only
@pytest.mark.parametrize("how", [ROLLING, STOPPED])
def test_the_runbook_of_many_groups_moves_them_by_an_approved_plan_and_back(kraft_lab, cluster, tmp_path, how):
    groups = [ProtocolGroup(kraft_lab, cluster, f"runbook-{how}-{number}", rate=20.0) for number in range(2)]
    for each in groups:
        each.start([NewMember(each.name, [each.name], f"{each.name}-0")])
    given = {"profile_file": str(cluster.profile.file), "pattern": f"runbook-{how}-.*", "soak_s": 1.0, "pause_s": 1.0}
    given |= {"how": how, "wave": 1, "clients_ready": True}
    for to, was in (("consumer", "classic"), ("classic", "consumer")):
        runs = tmp_path / to
        execute(FLEET_RUNBOOK, tmp_path / f"dry-{to}.ipynb", **given, runs=str(runs), to_protocol=to)
        assert [each.state().stage for each in groups] == [was] * 2
        desk = Operations(cluster, runs)
        plan = desk.plan(str(desk.plan_files()[0]))
        desk.approve(plan, plan.subject, plan.digest[:8], approver="Bob")
        approved = {"approval_digest": plan.digest, "dry_run": False}
        execute(FLEET_RUNBOOK, tmp_path / f"run-{to}.ipynb", **given, **approved, runs=str(runs), to_protocol=to)
        assert [each.settled(1).stage for each in groups] == [to] * 2
    for each in groups:
        assert_each_once(each)


def test_an_open_transaction_hides_no_end_of_the_log_where_a_proof_begins(kraft_lab, cluster):
    kraft_lab.create_topic("move-beside", 1)
    settings = QUIET | {"bootstrap.servers": kraft_lab.bootstrap_servers}
    member = Consumer(settings | {"group.id": "move-beside"})
    producer = Producer(settings | {"transactional.id": "move-beside"})
    await_member(member, "move-beside")
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    place = TopicPartition("move-beside", 0, 0)
    producer.send_offsets_to_transaction([place], member.consumer_group_metadata(), SECONDS)
    before = log_ends(cluster, ["move-beside"])["move-beside"]
    member.commit(offsets=[place], asynchronous=False)
    assert log_ends(cluster, ["move-beside"])["move-beside"] > before > 0
    producer.abort_transaction(SECONDS)
    member.close()


def start_static(group: ProtocolGroup) -> None:
    """Two static members with a short session under either protocol: a member that stopped is visible until it ends."""
    name, session_ms = "session.timeout.ms", "6000"
    assert group_configs._alter(group.cluster, group.name, {f"consumer.{name}": session_ms}) is None
    settings = [{"group.instance.id": f"{group.name}-instance-{number}", name: session_ms} for number in range(2)]
    group.start(
        [NewMember(group.name, [group.name], f"{group.name}-{n}", settings=it) for n, it in enumerate(settings)]
    )


def instances(group: ProtocolGroup) -> dict[str | None, str | None]:
    """Instance id → protocol."""
    return {each.instance_id: each.protocol for each in group.settled(2).protocol.members}


@soak_only
def test_static_members_stop_by_command_and_start_again_with_their_instance_ids(kraft_lab, commanded, tmp_path):
    """A static member that stopped is visible until its session ends. A killed one is started again like the other."""
    group = ProtocolGroup(kraft_lab, commanded, "move-static-stopped")
    start_static(group)
    ids, last = set(instances(group)), group.lab.consumers(group.name)[-1]

    def kill(event: Event) -> None:
        if (event.event, event.item, event.step_id) == ("attempted", "member 2 of 2", "01-stop-all"):
            last.kill()

    desk = Operations(commanded, tmp_path / "runs", tell=kill)
    run = begun(desk, planned(desk, group, "consumer", how="stopped", soak_s=0.0))
    run.act().raise_unless(RunState.VERIFIED)
    assert instances(group) == dict.fromkeys(ids, "consumer")
    run.undo().raise_unless(RunState.UNDONE)
    assert instances(group) == dict.fromkeys(ids, "classic")
    begun(desk, planned(desk, group, "consumer", how="stopped", soak_s=0.0)).act().raise_unless(RunState.VERIFIED)
    begun(desk, planned(desk, group, "classic", how="stopped", soak_s=0.0)).act().raise_unless(RunState.VERIFIED)
    assert instances(group) == dict.fromkeys(ids, "classic")
    assert_each_once(group, killed=True)


@soak_only
def test_static_members_keep_their_instance_ids_and_a_killed_one_is_replaced_on_the_move_back(
    kraft_lab, cluster, tmp_path
):
    """A member is killed when its replacement is ordered. A classic member takes its instance id over."""
    group = ProtocolGroup(kraft_lab, cluster, "move-static")
    start_static(group)
    ids = set(instances(group))

    def kill(event: Event) -> None:
        if (event.event, event.item) == ("attempted", "member 1 of 2"):
            stops = json.loads(event.details or "{}")["stops"]
            client_id = next(each.client_id for each in group.state().members if each.member_id == stops)
            next(each for each in kraft_lab.consumers(group.name) if each.consumer_id == client_id).kill()

    desk = Operations(cluster, tmp_path / "runs", tell=kill)
    begun(desk, planned(desk, group, "consumer")).act().raise_unless(RunState.VERIFIED)
    assert instances(group) == dict.fromkeys(ids, "consumer")
    begun(desk, planned(desk, group, "classic")).act().raise_unless(RunState.VERIFIED)
    assert instances(group) == dict.fromkeys(ids, "classic")
    assert_each_once(group, killed=True)


def test_configs_of_the_group_are_set_read_back_and_restored(kraft_lab, cluster, desk):
    """Kafka validates a value when the plan is made. An undo leaves what another operator set since."""
    group = ProtocolGroup(kraft_lab, cluster, "move-with-configs")
    group.start([NewMember(group.name, [group.name], f"{group.name}-{number}") for number in range(2)])
    session, beat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
    wanted = {session: "30000", beat: "2000"}
    with pytest.raises(PlanError, match="the brokers refuse configs of group move-with-configs"):
        planned(desk, group, "consumer", configs={session: "1"})
    run = begun(desk, planned(desk, group, "consumer", configs=wanted))
    run.act().raise_unless(RunState.VERIFIED)
    assert fetch_configs(cluster, group.name, list(wanted)) == wanted
    assert group_configs._alter(cluster, group.name, {beat: "3000"}) is None  # Another operator does this.
    run.undo().raise_unless(RunState.UNDONE)
    assert fetch_configs(cluster, group.name, list(wanted)) == {session: None, beat: "3000"}
    assert_each_once(group)
