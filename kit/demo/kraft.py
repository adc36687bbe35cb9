"""``make demo-kraft``: a cluster moved from ZooKeeper to KRaft, back, and there for good, under load, with its proof.

One plan per phase, each approved; brokers and controllers are restarted by the lab. Nothing outside the lab is touched.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from kit import Profile, connect, load_profile
from kit.demo import show
from kit.engine.model.approval import approve
from kit.engine.model.event import Event
from kit.engine.model.plan import Plan
from kit.engine.model.record import REPORT
from kit.engine.runs_folder import PLANS, PREFIX, add_approval
from kit.errors import RunError
from kit.kraft.move.plan import KraftPlanRequest
from kit.kraft.move.rehearsals import keep_result, sha256_of
from kit.kraft.preflight import save_metadata
from kit.kraft.rehearsal import rehearse
from kit.kraft.rehearsal_lab import CONTROLLERS as REHEARSAL_CONTROLLERS
from kit.kraft.status import kraft_status
from kit.lab import Lab
from kit.lab.members.handles import consumption_folder
from kit.lab.members.new_consumers import NewMember, production_folder
from kit.lab.process import wait_until
from kit.operations.operations import Operations, operator
from kit.proof.consumption import load_consumption, load_production

RUNS = Path("runs")
BROKERS, CONTROLLERS = 2, 3
TOPIC, PARTITIONS, GROUP = "orders", 6, "readers"
RECORDS_PER_SECOND = 200.0
READ_SECONDS = 60.0
WAY = ("controllers", "dual write", "kraft", "zookeeper", "controllers", "dual write", "kraft", "finalised")
OVERRIDES = {
    "controllers": ("preflight_known",),
    "dual write": ("preflight_known",),
    "zookeeper": ("R03_known",),
    "finalised": ("soak",),
}
"""The facts that are unknown without copies of the nodes' own files, which a lab keeps to itself."""
TOLD = ("verified", "failed")


def run(say: Callable[[str], None]) -> None:
    """Lab, load, every phase forward and back, the proof.

    Raises:
        RunError: a run did not end verified, or an acknowledged record was not read.
    """
    say(f"starting the lab: ZooKeeper, {BROKERS} brokers of Kafka 3.9; {CONTROLLERS} controllers wait for their plan")
    with Lab(BROKERS, controllers=CONTROLLERS) as lab:
        lab.create_topic(TOPIC, PARTITIONS, BROKERS)
        producer = lab.start_producer(TOPIC, RECORDS_PER_SECOND)
        lab.start_new_consumers([NewMember(GROUP, [TOPIC], f"{GROUP}-{number}") for number in range(2)])
        say(f"under load: {RECORDS_PER_SECOND:g} records a second with acks=all, a group of two reads them")
        file = lab.folder / "offramp.toml"
        file.write_text(lab.profile_toml(), encoding="utf-8")
        rehearse_first(load_profile(file=file), lab.folder / "cluster.save", say)
        for phase in WAY:
            move(load_profile(file=file), phase, say)
        producer.stop()
        wait_until(lambda: not unread(lab.folder).height, f"group {GROUP} to read all records", READ_SECONDS)
        prove(lab.folder, say)


def rehearse_first(profile: Profile, file: Path, say: Callable[[str], None]) -> None:
    """Save the cluster, rehearse its move on a lab of its own, keep the result: the first plan asks for it.

    Raises:
        UnsafePlan: the rehearsal did not go well.
    """
    with connect(profile) as cluster:
        saved = save_metadata(cluster, file)
    say("rehearsal of the saved cluster: real controllers, brokers without data; no broker of the lab is asked")
    found = rehearse(saved)
    kinds = [each.kind for each in found.rows]
    keep_result(RUNS, saved, sha256_of(file), kinds, REHEARSAL_CONTROLLERS)
    found.verify()
    say(f"the rehearsal succeeded in {sum(each.seconds for each in found.steps):.0f} s")


def move(profile: Profile, phase: str, say: Callable[[str], None]) -> None:
    """Plan, approve, execute, read back."""
    with connect(profile) as cluster:
        operations = Operations(cluster, RUNS, tell=lambda event: _tell(event, say))
        plan = operations.make_plan(KraftPlanRequest(phase), OVERRIDES.get(phase, ()))
        say(f"plan {plan.digest[:8]}: {plan.subject!r}, {len(plan.steps)} steps; {_approve(operations, plan)}")
        result = operations.begin(plan).act()
        result.raise_unless()
        say(f"phase {kraft_status(cluster).state.phase!r}. Evidence: {(RUNS / result.run_id / REPORT).absolute()}")


def _approve(operations: Operations, plan: Plan) -> str:
    """Return the approval of a plan. The demo plays the second person that some plans need: a real cluster needs
    another login.
    """
    if plan.consent is None or not plan.consent.second_person:
        operations.approve(plan, plan.subject, plan.digest)
        return f"approved by {operator()} for the demo"
    second = "second person of the demo"
    given = approve(
        plan,
        typed_subject=plan.subject,
        typed_digest_prefix=plan.digest,
        approver=second,
        now=datetime.now(UTC),
        valid_for=timedelta(minutes=30),
        approved_as=second,
    )
    add_approval(operations.runs / PLANS / f"{plan.digest[:PREFIX]}.json", given)
    return "this plan needs the approval of a second person; the demo gives that approval, too"


def _tell(event: Event, say: Callable[[str], None]) -> None:
    if event.event in TOLD:
        say(f"  {event.step_id}: {event.sentence or event.error}")


def unread(lab: Path) -> pl.DataFrame:
    """Return the acknowledged records that no member of the group delivered."""
    read = load_consumption(consumption_folder(lab), GROUP).records
    return _produced(lab).join(read, on=["topic", "partition", "offset"], how="anti")


def _produced(lab: Path) -> pl.DataFrame:
    return load_production(production_folder(lab)).records


def prove(lab: Path, say: Callable[[str], None]) -> None:
    """Compare what was acknowledged with what was read.

    Raises:
        RunError: a record is missing.
    """
    produced, lost = _produced(lab), unread(lab)
    if lost.height or produced.is_empty():
        raise RunError(f"{lost.height} of {produced.height} acknowledged records were not read by any member")
    pauses = produced.sort("at_ms").select(pl.col("at_ms").diff().over("partition"))
    say(f"{produced.height} records acknowledged, every one read by the group; none lost")
    say(f"longest pause between two acknowledgements of one partition: {pauses['at_ms'].max()!r} ms")
    say("finalised: the cluster can't return to ZooKeeper. See `offramp kraft status` and docs/kraft-move.md")


if __name__ == "__main__":
    show(run)
