"""The real Kafka 3.9.1 as the judge of settings: many files in one Java, none of which starts a server."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from kit.lab.java import compiled, jars
from kit.spark.java import java_command
from kit.text.properties import render_properties


def refusals(held: Mapping[str, Mapping[str, str]], folder: Path) -> dict[str, str]:
    """Kafka's message per name of a file; empty where it goes on behind its settings."""
    paths = {}
    for number, (name, settings) in enumerate(held.items()):
        path = folder / f"{number}.properties"
        path.write_text(render_properties(settings), encoding="latin-1", errors="backslashreplace")
        paths[str(path)] = name
    answers = dict(line.split("\t", 1) for line in _ask([], "\n".join(paths)).splitlines())
    assert answers.keys() == paths.keys()
    return {paths[path]: message for path, message in answers.items()}


def known_settings() -> list[list[str]]:
    """Name, type, default and allowed values of each setting, as in ``kafka_settings.txt``."""
    return [line.split("\t") for line in _ask(["--settings"], "").splitlines()]


def _ask(arguments: list[str], files: str) -> str:
    classes = compiled.classes("SettingsOracle.java", jars.SERVERS)
    path = jars.class_path(jars.SERVERS, classes)
    command = [java_command(), "-Xmx256m", "-cp", path, "SettingsOracle", *arguments]
    done = subprocess.run(command, input=files, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
