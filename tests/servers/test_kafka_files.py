"""Files of offsets that Kafka's own command takes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from typer.testing import CliRunner

from kit.cli.main import app
from kit.lab import Lab
from kit.lab.java import jars, jvm
from tests.servers.awaiting import SECONDS
from tests.servers.coordinators import commit

COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
GROUPS, TOPIC = ("files-a", "files-b"), "files"


@pytest.fixture(scope="module")
def profile_file(kraft_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "offramp.toml"
    path.write_text(kraft_lab.profile_toml())
    kraft_lab.create_topic(TOPIC, 2)
    kraft_lab.produce(TOPIC, 200)
    for number, group in enumerate(GROUPS):
        commit(kraft_lab, group, *(TopicPartition(TOPIC, partition, 10 + number) for partition in range(2)))
    return path


def kafka(lab: Lab, *words: str) -> str:
    """Return what the command prints of a reset that it does not execute."""
    named = [word for group in GROUPS for word in ("--group", group)]
    arguments = ["--bootstrap-server", lab.servers.addresses(), "--reset-offsets", "--dry-run", *named, *words]
    command = jvm.java(jars.class_path(jars.SERVERS), COMMAND, [*arguments, "--timeout", "60000"], 128, lab.folder)
    return subprocess.run(command, capture_output=True, text=True, timeout=2 * SECONDS, check=True).stdout


def offramp(profile_file: Path, *words: str) -> str:
    runs = ["--runs", str(profile_file.parent / "runs")] if "export" not in words else []
    ended = CliRunner().invoke(app, ["plan", "offsets", *words, *runs, "--profile-file", str(profile_file)])
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def test_kafkas_command_takes_what_is_exported_for_it(kraft_lab, profile_file, tmp_path):
    file = tmp_path / "offsets.csv"
    named = [word for group in GROUPS for word in ("-g", group)]
    offramp(profile_file, "export", str(file), "--store", "kafka", "--format", "kafka", *named)
    _, _, told = kafka(kraft_lab, "--from-file", str(file)).partition("NEW-OFFSET")
    words = iter(told.split())  # The command ends no row's line.
    found = {(group, topic, int(at), int(offset)) for group, topic, at, offset in zip(words, words, words, words)}
    assert found == {(group, TOPIC, at, 10 + number) for number, group in enumerate(GROUPS) for at in range(2)}
