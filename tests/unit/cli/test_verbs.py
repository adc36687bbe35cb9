"""The help of ``offramp`` loads no verb, and says of each what the verb says of itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from kit.cli import idle, main
from kit.cli.main import app
from kit.groups import snapshot
from kit.groups.analyze import idle as idle_groups
from kit.kraft import both_stores
from kit.kraft.move import parameters, steps
from kit.kraft.verbs import kraft as kraft_verbs, plan as kraft_plan
from kit.lab import command as lab, scenario
from kit.lab.servers import migrating_cluster
from kit.moves.fleet import verb as fleet_verb
from kit.moves.group import plan as group_plan, rules, verb as group_verb
from kit.moves.offsets import delete_groups as group_deletions
from kit.moves.offsets.verbs import delete_groups
from kit.operations.verbs import plan
from kit.profile.release import version
from kit.terminal import terminal

HEAVY = ("confluent_kafka", "kafka", "kazoo", "polars", "pyarrow", "pyspark", "altair", "rich", "numpy", "pandas")


CLIENTS_TOO = (*HEAVY, "narwhals", "prometheus_client")
"""The modules that no help needs."""
AFTER_EACH_VERB = """
import json
import sys

started = []
sys.addaudithook(lambda event, words: started.append(str(words[0])) if event == "subprocess.Popen" else None)
{before}
from kit.cli.main import app

for words in {verbs}:
    try:
        app(words)
    except SystemExit:
        pass
    loaded = [name for name in {libraries} if name in sys.modules]
    print(file=sys.__stdout__)
    print("USED", json.dumps([words, loaded, started]), file=sys.__stdout__)
"""


CLUSTER = """
from types import SimpleNamespace
from contextlib import nullcontext
import kit.cli.groups, kit.clients.cluster, kit.groups.read.whole_cluster as whole_cluster
from kit.clients.brokers import ClusterMetadata
from kit.groups.read.coordinator import CoordinatedGroups
from kit.groups.read.topics import TopicSight
from kit.tables import schema
from kit.tables.groups import Broker, Group, LogOffset, Member, Ownership, Subscription, TopicPartition
rows = {
    "groups": [Group("g", "kafka", "Stable", "classic", "consumer", "range", 1)],
    "members": [Member("g", "kafka", "m", "c", "h", *[None] * 5)],
    "subscriptions": [Subscription("g", "kafka", "m", "t", 1)],
    "ownership": [Ownership("g", "kafka", "t", 0, "m", None, None, None)],
    "committed_offsets": [],
}
read = {name: getattr(schema, name.upper()).columns_of(of_table) for name, of_table in rows.items()}
partitions = (TopicPartition("t", 0, False, 1, 0, (1,), (1,)),)
profile = SimpleNamespace(name="fake", leave_out_groups=())
seeing = SimpleNamespace(run=lambda *_: TopicSight())
cluster = SimpleNamespace(name="fake", cluster_id="id", broker_client=seeing, zookeeper=None, profile=profile)
brokers = (Broker(1, "h", 1, None, True, None),)
whole_cluster.fetch_metadata = lambda client: ClusterMetadata("id", brokers, partitions, {})
whole_cluster.fetch_unseen_groups = lambda client: None
whole_cluster.fetch_groups = lambda client, accepts: CoordinatedGroups(**read, errors=())
whole_cluster.fetch_log_offsets = lambda client, wanted: [LogOffset("t", 0, 0, 9)]
kit.cli.groups.load_profile = lambda name, file: profile
kit.clients.cluster.connect = lambda profile, **named: nullcontext(cluster)
"""
"""One group, read by the code that reads a cluster, but for the connections."""


class Used(NamedTuple):
    """The libraries that a process has loaded and the processes that it has started when a verb has ended."""

    words: list[str]
    loaded: list[str]
    started: list[str]


def used_after_each(verbs: Iterable[Sequence[str]], before: str = "", libraries: Sequence[str] = HEAVY) -> list[Used]:
    """Run the verbs one after another in one process: the first that loads a library or starts a process shows."""
    verbs = [list(words) for words in verbs]
    code = AFTER_EACH_VERB.format(before=before, verbs=verbs, libraries=tuple(libraries))
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    lines = [line.removeprefix("USED ") for line in ended.stdout.splitlines() if line.startswith("USED ")]
    used = [Used(*json.loads(line)) for line in lines]
    assert [each.words for each in used] == verbs
    return used


def test_help_and_what_reads_a_folder_load_no_client_and_no_frames(tmp_path):
    helps = [("--help",), ("plan", "--help"), ("nosuch",), ("plan", "nosuch"), ("--version",)]
    reading = [("runs", "--runs", str(tmp_path), "--json"), ("notebooks", str(tmp_path))]
    assert [each for each in used_after_each([*helps, *reading]) if each.loaded or each.started] == []


def test_a_reading_verb_loads_clients_and_polars_and_nothing_else_that_takes_long():
    verbs = [("groups",), ("lag",), ("lag", "-g", "g"), ("ownership",), ("readiness",)]
    for used in used_after_each(verbs, before=CLUSTER):
        assert set(used.loaded) <= {"kafka", "kazoo", "polars"}, used
        assert used.started == [], used


LOG = """\
[2026-11-21 06:30:00,000] INFO [Consumer clientId=c, groupId=orders] (Re-)joining group (org.apache.kafka.clients.X)
[2026-11-21 06:30:01,000] INFO [Consumer clientId=c, groupId=orders] Successfully joined group with generation \
Generation{generationId=7, memberId='c-1', protocol='range'} (org.apache.kafka.clients.X)
"""


def test_rebalances_of_a_small_log_loads_no_spark(tmp_path):
    log = tmp_path / "app.log"
    log.write_text(LOG)
    (used,) = used_after_each([("rebalances", str(log))])
    assert set(used.loaded) <= {"polars", "pyarrow", "numpy"}
    assert used.started == []


def words_of_all(group, *before: str) -> Iterator[tuple[str, ...]]:
    """The words of each verb of a group and of the groups below it."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        yield (*before, name)
        if hasattr(command, "list_commands"):
            yield from words_of_all(command, *before, name)


def test_the_verbs_of_plan_are_walked():
    """``plan offsets copy`` is three words deep."""
    walked = set(words_of_all(get_command(app)))
    assert {(verb,) for verb in main.VERBS} < walked
    assert {("plan", "kraft"), ("plan", "offsets", "copy"), ("lab", "up"), ("history", "expire")} < walked


def test_help_of_a_verb_loads_no_library_and_starts_nothing():
    """The help of the verbs below it neither."""
    helps = [[*words, "--help"] for words in words_of_all(get_command(app))]
    assert [each for each in used_after_each(helps, libraries=CLIENTS_TOO) if each.loaded or each.started] == []


def test_defaults_of_options_are_those_of_the_functions():
    """They are written twice, so that a verb's help does not load the function."""
    assert terminal.EVERY_GROUP == snapshot.EVERY_GROUP
    assert idle.DEAD_AFTER_DAYS == idle_groups.DEAD_AFTER_DAYS
    assert kraft_verbs.SETTLE_S == both_stores.SETTLE_S
    assert (group_verb.PATH, fleet_verb.SETTLE_S) == (group_plan.PATH, rules.SETTLE_S)
    assert (kraft_plan.PHASES, kraft_plan.NODE_TIMEOUT_S) == (steps.PHASES, parameters.NODE_TIMEOUT_S)
    assert (kraft_plan.REPAIR, kraft_plan.FAIL_OVER) == (steps.REPAIR, steps.FAIL_OVER)
    assert delete_groups.AT_MOST == group_deletions.AT_MOST
    assert (lab.BROKERS, lab.PHASES) == (scenario.BROKERS, migrating_cluster.PHASES)


def test_only_a_rehearsal_loads_the_lab():
    used = "kit.kraft.verbs.kraft, kit.kraft.watch, kit.kraft.move.rehearsals, kit.kraft.preflight, kit.kraft.report"
    code = f"import sys, {used}; print('kit.lab' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "False\n"


@pytest.mark.parametrize("verbs", [main.VERBS, plan.VERBS], ids=["offramp", "plan"])
def test_a_verb_prints_its_own_line(verbs):
    group = get_command(app if verbs is main.VERBS else plan.app)
    for name, verb in verbs.items():
        command = group.get_command(None, name)
        told = " ".join((command.help or "").split())
        assert told.startswith(verb.help.rstrip(".")), name
        assert verb.help.endswith("."), name


def test_a_verb_that_is_misspelt_is_guessed():
    ended = CliRunner().invoke(app, ["gruops"])
    assert ended.exit_code == 2
    assert "Did you mean 'groups'" in ended.stderr


def test_the_version_is_the_package_s() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"offramp {version()}\n")
