"""``make demo-today``: a cluster of Kafka 4.4 without ZooKeeper: groups of three kinds, a report, a move
to the consumer protocol and back, a reset and its undo.

Every write is that of an approved plan, under a lock in Kafka. Nothing outside the lab is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import ShareConsumer

from kit import Cluster, connect, load_profile, observe
from kit.demo import show
from kit.demo.protocols import there_and_back
from kit.engine.model.record import REPORT
from kit.engine.model.states import RunState
from kit.errors import RunError
from kit.groups import views
from kit.groups.report import run_report
from kit.lab import Lab
from kit.lab.members.new_consumers import NewMember
from kit.lab.process import wait_until
from kit.lab.topics import QUIET
from kit.moves.offsets.fetch import fetch_stores
from kit.moves.offsets.inputs import PlanOptions
from kit.moves.offsets.plan import parse_reset, plan_reset, select
from kit.operations.operations import Operations, operator
from kit.terminal.listing import print_frame

RUNS = Path("runs")
BROKERS, TOPIC, PARTITIONS, RECORDS = 3, "orders", 6, 6_000
STOPPED = "nightly"
GROUPS = {STOPPED: "stopped, with offsets", "billing": "classic", "search": "the consumer protocol", "mail": "share"}
START_S = 60.0
COLUMNS = ("group_id", "attention", "group_type", "protocol_type", "protocol", "kafka_state", "n_members", "lag")


def run(say: Callable[[str], None]) -> None:
    """Lab, groups, listing, report, a move of protocols there and back, reset, undo, proof.

    Raises:
        RunError: an offset is another one than it has to be, or a move is not proved.
    """
    say(f"starting the lab: {BROKERS} nodes of Kafka 4.4, each broker and controller, no ZooKeeper")
    with Lab(BROKERS, kraft=True) as lab:
        lab.create_topic(TOPIC, PARTITIONS, BROKERS)
        lab.produce(TOPIC, RECORDS)
        newer = {"group.protocol": "consumer"}
        lab.start_new_consumers([NewMember(STOPPED, [TOPIC], f"{STOPPED}-0", until_end=True)])
        lab.start_new_consumers(
            [
                *(NewMember("billing", [TOPIC], f"billing-{number}") for number in range(2)),
                *(NewMember("search", [TOPIC], f"search-{number}", "", settings=newer) for number in range(2)),
            ]
        )
        file = lab.folder / "offramp.toml"
        file.write_text(lab.profile_toml(), encoding="utf-8")
        profile = load_profile(file=file)
        with sharing(lab) as poll, connect(profile) as cluster:
            wait_until(lambda: poll() or is_settled(cluster), "a group of every kind", START_S)
            say(f"groups: {', '.join(f'{name} ({what})' for name, what in GROUPS.items())}")
            print_frame(views.summary(observe(cluster)).sort("group_id").select(COLUMNS))
            say("report: the notebook, run by papermill")
            report = run_report(profile, RUNS, ".*", say=say)
            say("billing moves to the consumer protocol and back, member by member, under load")
            there_and_back(lab, Operations(cluster, RUNS), "billing", TOPIC, say)
            reset_and_undo(Operations(cluster, RUNS), say)
        say(f"report:   {report.html}")


@contextmanager
def sharing(lab: Lab) -> Iterator[Callable[[], None]]:
    """A member of the share group; yields what has it read on."""
    config = {**QUIET, "bootstrap.servers": lab.servers.addresses(), "group.id": "mail", "client.id": "mail-0"}
    consumer = ShareConsumer(config)
    consumer.subscribe([TOPIC])

    def poll() -> None:
        consumer.poll(0.1)

    try:
        yield poll
    finally:
        consumer.close()


def is_settled(cluster: Cluster) -> bool:
    """Return whether every group is there, the stopped one is empty, and all other groups have their members."""
    rows = {row["group_id"]: row for row in views.summary(observe(cluster)).iter_rows(named=True)}
    return set(rows) == set(GROUPS) and all(
        row["n_members"] == (0 if name == STOPPED else 1 if name == "mail" else 2) and row["error"] is None
        for name, row in rows.items()
    )


def reset_and_undo(operations: Operations, say: Callable[[str], None]) -> None:
    """Reset the stopped group to the beginning by an approved plan, and take that back.

    Raises:
        RunError: an offset is another one than it has to be.
    """
    cluster, before = operations.cluster, offsets_of(operations.cluster)
    options = PlanOptions(operator(), datetime.now(UTC), allow_backwards=True)
    plan = operations.save_plan(plan_reset(cluster, "kafka", select(groups=STOPPED), parse_reset("earliest"), options))
    operations.approve(plan, plan.subject, plan.digest)
    say(f"plan {plan.digest[:8]}: {plan.subject!r} to the beginning of {TOPIC}; approved by {operator()} for the demo")
    done = operations.begin(plan)
    done.act().raise_unless(RunState.VERIFIED)
    check(offsets_of(cluster), dict.fromkeys(before, 0))
    say(f"{len(before)} offsets are 0 and were read back; each write was preceded by a commit of the lock in Kafka")
    done.undo().raise_unless(RunState.UNDONE)
    check(offsets_of(cluster), before)
    say(f"undone: {len(before)} offsets have their former values again. Evidence: {(done.folder / REPORT).absolute()}")


def offsets_of(cluster: Cluster) -> dict[tuple[str, int], int | None]:
    """The stopped group's committed offsets by topic and partition."""
    stored = fetch_stores(cluster, STOPPED.__eq__).group("kafka", STOPPED).offsets
    return {place: each.offset for place, each in stored.items()}


def check(found: object, wanted: object) -> None:
    """Raises RunError if they differ."""
    if found != wanted:
        raise RunError(f"the offsets of {STOPPED} are {found}, not {wanted}")


if __name__ == "__main__":
    show(run)
