"""The help of ``offramp`` loads no verb, and says of each what the verb says of itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from kit import kraft, snapshot
from kit.analyze.groups import idle as idle_groups
from kit.cli import delete_groups, idle, kraft_plan, main, operate, plan, terminal
from kit.cli import kraft as kraft_verbs
from kit.cli.main import app
from kit.lab import command as lab
from kit.lab import scenario
from kit.lab.servers import migrating_cluster
from kit.migrate.group import plan as group_plan
from kit.migrate.group import rules
from kit.migrate.kraft import steps
from kit.migrate.offsets import delete_groups as group_deletions

HEAVY = ("confluent_kafka", "kafka", "kazoo", "polars", "pyarrow", "pyspark", "altair", "rich", "numpy", "pandas")


def _loaded(names: tuple[str, ...]) -> str:
    return f"[name for name in {names} if name in sys.modules]"


LOADED = _loaded(HEAVY)


CLUSTER = """
from types import SimpleNamespace
from contextlib import nullcontext
import kit.cli.groups, kit.cluster, kit.snapshot
from kit.read.brokers import ClusterMetadata
from kit.read.coordinator import CoordinatedGroups
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
cluster = SimpleNamespace(name="fake", cluster_id="id", broker_client=None, zookeeper=None)
brokers = (Broker(1, "h", 1, None, True, None),)
kit.snapshot.fetch_metadata = lambda client: ClusterMetadata("id", brokers, partitions, {})
kit.snapshot.fetch_groups = lambda client, accepts: CoordinatedGroups(**read, errors=())
kit.snapshot.fetch_log_offsets = lambda client, wanted: [LogOffset("t", 0, 0, 9)]
kit.cli.groups.load_profile = lambda name, file: SimpleNamespace(name="fake")
kit.cluster.connect = lambda profile: nullcontext(cluster)
"""
"""One group, read by the code that reads a cluster, but for the connections."""


def loaded_after(*words: str, before: str = "", shown: str = LOADED) -> str:
    """Which of the heavy libraries are loaded when the verb has ended, or what else is to be shown then."""
    code = f"""
import sys
{before}
from kit.cli.main import app
try:
    app({list(words)!r})
except SystemExit:
    pass
sys.stdout = sys.__stdout__
print({shown})"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return ended.stdout.splitlines()[-1]


@pytest.mark.parametrize("words", [("--help",), ("plan", "--help"), ("nosuch",), ("plan", "nosuch")])
def test_help_loads_no_library(words):
    assert loaded_after(*words) == "[]"


def test_what_reads_a_folder_loads_no_client_and_no_frames(tmp_path):
    assert loaded_after("runs", "--runs", str(tmp_path), "--json") == "[]"
    assert loaded_after("notebooks", str(tmp_path)) == "[]"


@pytest.mark.parametrize("words", [("groups",), ("lag",), ("lag", "-g", "g"), ("ownership",), ("readiness",)])
def test_a_reading_verb_loads_clients_and_polars_and_nothing_else_that_takes_long(words):
    assert set(eval(loaded_after(*words, before=CLUSTER))) <= {"kafka", "kazoo", "polars"}


PROCESSES = """
import sys
started = []
sys.addaudithook(lambda event, words: started.append(str(words[0])) if event == "subprocess.Popen" else None)
"""
"""Which processes are started: a JVM is one."""
LOG = """\
[2026-11-21 06:30:00,000] INFO [Consumer clientId=c, groupId=orders] (Re-)joining group (org.apache.kafka.clients.X)
[2026-11-21 06:30:01,000] INFO [Consumer clientId=c, groupId=orders] Successfully joined group with generation \
Generation{generationId=7, memberId='c-1', protocol='range'} (org.apache.kafka.clients.X)
"""


def test_rebalances_of_a_small_log_loads_no_spark(tmp_path):
    log = tmp_path / "app.log"
    log.write_text(LOG)
    assert set(eval(loaded_after("rebalances", str(log)))) <= {"polars", "pyarrow", "numpy"}
    assert loaded_after("rebalances", str(log), before=PROCESSES, shown="started") == "[]"


HELP = """
from kit.cli.main import app
for words in {}:
    try:
        app(words)
    except SystemExit:
        pass
"""
CLIENTS_TOO = (*HEAVY, "narwhals", "prometheus_client")
"""What no help needs."""


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


@pytest.mark.parametrize("verb", main.VERBS)
def test_help_of_a_verb_loads_no_library_and_starts_nothing(verb):
    """And that of each verb below it."""
    all_words = [[*words, "--help"] for words in words_of_all(get_command(app)) if words[0] == verb]
    asked = PROCESSES + HELP.format(all_words[1:])
    loaded, started = eval(loaded_after(*all_words[0], before=asked, shown=f"({_loaded(CLIENTS_TOO)}, started)"))
    assert (loaded, started) == ([], [])


def test_defaults_of_options_are_those_of_the_functions():
    """They are written twice, so that a verb's help does not load the function."""
    assert terminal.EVERY_GROUP == snapshot.EVERY_GROUP
    assert idle.DEAD_AFTER_DAYS == idle_groups.DEAD_AFTER_DAYS
    assert kraft_verbs.SETTLE_S == kraft.SETTLE_S
    assert (operate.PATH, operate.SETTLE_S) == (group_plan.PATH, rules.SETTLE_S)
    assert (kraft_plan.PHASES, kraft_plan.NODE_TIMEOUT_S) == (steps.PHASES, steps.NODE_TIMEOUT_S)
    assert (kraft_plan.REPAIR, kraft_plan.FAIL_OVER) == (steps.REPAIR, steps.FAIL_OVER)
    assert delete_groups.AT_MOST == group_deletions.AT_MOST
    assert (lab.BROKERS, lab.PHASES) == (scenario.BROKERS, migrating_cluster.PHASES)


def test_only_a_rehearsal_loads_the_lab():
    used = "kit.cli.kraft, kit.kraft_watch, kit.migrate.kraft.rehearsals, kit.preflight, kit.report"
    code = f"import sys, {used}; print('kit.lab' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "False\n"


@pytest.mark.parametrize("verbs", [main.VERBS, plan.VERBS], ids=["offramp", "plan"])
def test_a_verb_says_what_its_line_says(verbs):
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


def test_the_version_is_the_package_s_and_loads_no_verb() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"offramp {version('offramp')}\n")
    assert loaded_after("--version") == "[]"
