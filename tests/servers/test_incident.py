"""An incident on a lab: a member is stopped while records come, and is started again; the report names it.

The observations are those of `offramp watch --history`. It takes an hour: `make soak` runs it.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import nbformat
import pyarrow.dataset as ds
import pytest
from typer.testing import CliRunner

from kit.cli.main import app
from kit.lab.process import wait_until
from tests.soak import report, soak_only

EVERY_S, BEFORE, DURING, AFTER = 30, 50, 30, 20
"""Seconds from observation to observation; looks before the incident, in it and after it."""
GROUP, TOPIC = "incident-reader", "incident"
LONGEST_S = 3 * EVERY_S * max(BEFORE, DURING) + 120


def looks(history: Path) -> list[datetime]:
    """Return when the snapshots that are whole were taken."""
    files = sorted(map(str, (history / "snapshots").glob("date=*/snapshot_id=*/*.parquet")))
    return sorted(ds.dataset(files).to_table(columns=["ended_at"])["ended_at"].to_pylist()) if files else []


@pytest.fixture
def watched(lab, tmp_path):
    """A history that grows by an observation each some seconds."""
    profile = tmp_path / "offramp.toml"
    profile.write_text(lab.profile_toml())
    history = tmp_path / "history"
    words = ["watch", "--every", str(EVERY_S), "--groups", "incident-.*", "--history", str(history)]
    command = [sys.executable, "-m", "kit", *words, "--profile-file", str(profile)]
    with (tmp_path / "watch.txt").open("w") as said:
        watch = subprocess.Popen(command, stdout=said, stderr=said)
        try:
            yield history, profile
        finally:
            watch.send_signal(signal.SIGINT)
            watch.wait(60)


def after_looks(history: Path, more: int) -> list[datetime]:
    wanted = len(looks(history)) + more
    wait_until(lambda: len(looks(history)) >= wanted, f"{wanted} looks", LONGEST_S)
    return looks(history)


@soak_only
def test_the_report_names_the_incident_its_begin_and_its_cause(lab, watched, tmp_path, record_property):
    history, profile = watched
    lab.create_topic(TOPIC, 2)
    producer = lab.start_producer(TOPIC, 50)
    reader = lab.start_new_consumer(GROUP, TOPIC)
    wait_until(lambda: len(reader.records()) > 20, "records delivered", 90)
    after_looks(history, BEFORE)
    reader.stop()
    stopped_ms = max(each["at_ms"] for each in reader.records())
    after_looks(history, DURING)
    second = lab.start_new_consumer(GROUP, TOPIC)
    wait_until(lambda: len(second.records()) > 20, "records delivered again", 90)
    restarted_ms = min(each["at_ms"] for each in second.records())
    taken = after_looks(history, AFTER)
    producer.process.stop()
    second.stop()

    silence_min = 2.5 * EVERY_S / 60
    words = ["history", "report", str(history), "-o", str(tmp_path / "reports"), "--profile-file", str(profile)]
    words += ["--target", "100", "--target-age-s", str(2 * EVERY_S), "--every-min", "0"]
    ended = CliRunner().invoke(app, [*words, "--silence-min", str(silence_min)])
    assert ended.exit_code == 0, ended.output
    (notebook,) = (tmp_path / "reports").rglob("health.ipynb")
    told = [row for row in incidents(notebook) if row["group_id"] == GROUP and row["since_ms"] < restarted_ms]
    (incident,) = told
    times = [round(at.timestamp() * 1000) for at in taken]
    before = max(at for at in times if at < stopped_ms)
    interval_ms = min(at for at in times if at > stopped_ms) - before
    late_s = (incident["since_ms"] - stopped_ms) / 1000
    report(
        record_property, f"{len(times)} snapshots; the incident begins {late_s:+.0f} s after the member's last record"
    )
    assert abs(incident["since_ms"] - stopped_ms) <= interval_ms + 1000
    assert incident["cause"] == "members left"
    assert reader.consumer_id in incident["evidence"] or "1 of 1 member left" in incident["evidence"]
    following = [at for at in times if at >= restarted_ms]
    assert restarted_ms - interval_ms <= incident["until_ms"] <= following[2]
    assert f"{GROUP} in kafka: members left. " in ended.stdout


def incidents(notebook: Path) -> list[dict[str, object]]:
    kind = "application/vnd.offramp.outcome+json"
    outputs = [each for cell in nbformat.read(notebook, 4).cells for each in cell.get("outputs", ())]
    (outcome,) = (each["data"][kind] for each in outputs if kind in each.get("data", {}))
    return json.loads(json.dumps(outcome["incidents"]))
