"""The help of ``offramp`` loads no verb, and says of each what the verb says of itself."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from kit.cli import main, plan
from kit.cli.main import app

HEAVY = ("confluent_kafka", "kafka", "kazoo", "polars", "pyarrow", "pyspark", "altair", "rich", "numpy")
LOADED = f"import sys; print([name for name in {HEAVY} if name in sys.modules])"


def loaded_after(*words: str) -> str:
    """Which of the heavy libraries are loaded when the verb has ended."""
    code = f"""
import sys
from kit.cli.main import app
try:
    app({list(words)!r})
except SystemExit:
    pass
sys.stdout = sys.__stdout__
{LOADED}"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return ended.stdout.splitlines()[-1]


@pytest.mark.parametrize("words", [("--help",), ("plan", "--help"), ("nosuch",), ("plan", "nosuch")])
def test_help_loads_no_library(words):
    assert loaded_after(*words) == "[]"


def test_what_reads_a_folder_loads_no_client_and_no_frames(tmp_path):
    assert loaded_after("runs", "--runs", str(tmp_path), "--json") == "[]"
    assert loaded_after("notebooks", str(tmp_path)) == "[]"


def test_a_reading_verb_loads_no_spark_and_no_consumer():
    assert not {"pyspark", "altair", "confluent_kafka"} & set(eval(loaded_after("groups", "--help")))


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
