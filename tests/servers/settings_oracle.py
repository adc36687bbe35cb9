"""The real Kafka 3.9.1 as the judge of settings: many files in one Java, none of which starts a server.

``python -m tests.servers.settings_oracle`` writes ``kit/text/kafka_settings.txt`` again.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from kit.lab.java import compiled, jars
from kit.spark.java import java_command
from kit.text import kafka_settings
from kit.text.properties import render_properties

TABLE = Path(kafka_settings.__file__).with_name("kafka_settings.txt")
_POOL = "remote.log.manager.thread.pool.size"
_LAMBDAS = {
    f"The default value of -1 means that this will be set to the configured value of {_POOL}, if available; otherwise, "
    "it defaults to 10.": "[1,...] or -1"
}


def refusals(held: Mapping[str, Mapping[str, str]], folder: Path) -> dict[str, str]:
    """Kafka's message per name of a file; empty where it continues behind its settings."""
    paths = {}
    for number, (name, settings) in enumerate(held.items()):
        path = folder / f"{number}.properties"
        path.write_text(render_properties(settings), encoding="latin-1", errors="backslashreplace")
        paths[str(path)] = name
    answers = dict(line.split("\t", 1) for line in _ask([], "\n".join(paths)).splitlines())
    assert answers.keys() == paths.keys()
    return {paths[path]: message for path, message in answers.items()}


def known_settings() -> str:
    """The text of ``kafka_settings.txt``. A validator that is a lambda describes itself in a sentence."""
    rows = [line.split("\t") for line in _ask(["--settings"], "").splitlines()]
    return "".join("\t".join([*rest, _LAMBDAS.get(allowed, allowed)]) + "\n" for *rest, allowed in rows)


def _ask(arguments: list[str], files: str) -> str:
    classes = compiled.classes("SettingsOracle.java", jars.SERVERS)
    path = jars.class_path(jars.SERVERS, classes)
    command = [java_command(), "-Xmx256m", "-cp", path, "SettingsOracle", *arguments]
    done = subprocess.run(command, input=files, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


if __name__ == "__main__":
    TABLE.write_text(known_settings(), encoding="utf-8")
