"""``make demo``: the main job on the embedded lab, from nothing to a report an operator would act on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kit import History, Profile, connect, load_profile, observe, spark_session, take_snapshot
from kit.demo import show
from kit.demo.migration import migrate_and_prove
from kit.groups import views
from kit.groups.report import run_report
from kit.lab import scenario, state
from kit.lab.command import start
from kit.terminal.listing import print_frame

RUNS = Path("runs")
PROOF = (
    "group_id", "n_partitions", "records", "lost", "overlaps", "unowned", "duplicates_tail", "longest_stall_ms",
    "is_complete", "is_exclusive",
)  # fmt: skip


def run(say: Callable[[str], None]) -> None:
    """Lab, two snapshots, report, summary, one migration with its proof; what is there already is used."""
    running = state.load()
    if running is None:
        say("starting the lab: real ZooKeeper, Kafka and consumers, about half a minute")
        running = start(scenario.BROKERS, "fleet")
    say(f"the lab is up: {running.summary}")
    profile = load_profile(file=running.profile_file)
    history = str(RUNS.absolute() / "history")
    say("first snapshot: starting Spark, reading the cluster, writing to the history")
    first_snapshot(profile, history)
    say("second snapshot and report: the notebook, run by papermill")
    report = run_report(profile, RUNS, ".*", say=say)
    with connect(profile) as cluster:
        live = observe(cluster)
    print_frame(views.summary(live).sort("group_id"))
    print_frame(views.finding_summary(views.findings(live)).sort("group_id", "finding"))
    say("group checkout: from old consumers to Kafka consumers and back, under load, by approved plans")
    proof = migrate_and_prove(profile, RUNS, say)
    print_frame(proof.summary.select(PROOF))
    longest = proof.summary["longest_stall_ms"].item()
    say(f"no record was lost or read by two members; a partition was unavailable for at most {longest} ms")
    say(f"report:   {report.html}")
    say(f"notebook: {report.notebook}")
    say("continue:    `make lab` opens JupyterLab on the running lab, `make down` stops it")


def first_snapshot(profile: Profile, history: str) -> None:
    """Read the cluster into Spark and append it to the history."""
    spark = spark_session(profile)
    with connect(profile) as cluster:
        snapshot = take_snapshot(spark, cluster)
    History(spark, history).append(snapshot)
    spark.stop()


if __name__ == "__main__":
    show(run)
