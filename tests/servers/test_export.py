"""``offramp export`` on a live cluster: what a scrape gets, names that break formats, how it ends."""

from __future__ import annotations

import math
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from kit.lab.process import wait_until
from kit.lab.topics import QUIET
from tests import promtool
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.coordinators import commit

PARTITION = "offramp_consumer_group_topic_partition_"
HOSTILE = ['hx"quoted"', "hx\\back\\slash", "hx\nnew\nline", 'hx{a="b"} 1', "hx😀", "hx" + "y" * 247]
SERVING = re.compile(r"at (http://127\.0\.0\.1:\d+/metrics)")


def commit_all(lab, group: str, topic: str, *offsets: int) -> None:
    commit(lab, group, *(TopicPartition(topic, partition, offset) for partition, offset in enumerate(offsets)))


def samples(text: str, parse=parse_openmetrics) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in parse(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def scraped(url: str, accept: str = "application/openmetrics-text; version=1.0.0") -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept}), timeout=SECONDS) as response:
        return response.read().decode()


@pytest.fixture(scope="module")
def profile_file(lab) -> Path:
    path = lab.folder / "export.toml"
    path.write_text(lab.profile_toml())
    return path


@pytest.fixture(scope="module")
def topic(lab) -> str:
    lab.create_topic("exported", 2)
    lab.produce("exported", 200)
    return "exported"


def words(profile_file: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "kit", "export", "--profile-file", str(profile_file), *more]


def run(profile_file: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words(profile_file, *more), capture_output=True, text=True, timeout=2 * SECONDS)


@contextmanager
def serving(lab, profile_file: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    said = lab.folder / "export.err"
    with said.open("w") as errors:
        process = subprocess.Popen(words(profile_file, *more), stderr=errors, text=True)
    try:
        wait_until(lambda: SERVING.search(said.read_text()) or process.poll() is not None, "metrics served", SECONDS)
        found = SERVING.search(said.read_text())
        assert found, said.read_text()
        yield process, found[1]
    finally:
        process.kill()
        process.wait(SECONDS)


def test_a_scrape_has_every_figure_and_follows_the_cluster(lab, profile_file, topic):
    commit_all(lab, "exported-slow", topic, 10, 100)
    with serving(lab, profile_file, "--every", "1", "--groups", "exported-slow") as (process, url):
        first = samples(scraped(url))
        place = {"group_id": "exported-slow", "topic_name": topic, "store": "kafka"}
        lags = {labels["partition_id"]: value for labels, value in first[PARTITION + "lag"]}
        assert lags == {"0": 90, "1": 0}
        assert ({**place, "partition_id": "0"}, 10) in first[PARTITION + "committed_offset"]
        assert ({"topic_name": topic, "partition_id": "0"}, 100) in first["offramp_topic_partition_log_end_offset"]
        assert first["offramp_consumer_group_lag"] == [({"group_id": "exported-slow", "store": "kafka"}, 90)]
        ages = {labels["partition_id"]: value for labels, value in first[PARTITION + "time_lag_seconds"]}
        assert ages["1"] == 0
        assert 0 < ages["0"] < 3600
        assert first["offramp_consumer_group_stage"] == [({"group_id": "exported-slow", "stage": "empty"}, 1)]
        assert first["offramp_look_requests"][0][1] > 5
        assert first["offramp_look_times_missing"] == [({}, 0)]

        # After ten polls without a commit the group is judged: it stopped, and retention comes nearer.
        def statuses() -> dict[str, float]:
            found = samples(scraped(url))["offramp_consumer_group_partitions"]
            return {labels["status"]: value for labels, value in found if value}

        awaited(statuses, lambda found: found == {"OK": 1, "STOP": 1}, "its verdict")
        later = samples(scraped(url))
        deleted = {labels["partition_id"]: value for labels, value in later[PARTITION + "unread_deleted_in_seconds"]}
        assert 6 * 86_400 < deleted["0"] < 7 * 86_400
        assert deleted["1"] == math.inf or deleted["1"] > deleted["0"]
        assert {labels["partition_id"]: value for labels, value in later[PARTITION + "closed_in_seconds"]} == {
            "0": math.inf,
            "1": 0,
        }
        assert later["offramp_looks_total"][0][1] >= 10
        commit_all(lab, "exported-slow", topic, 100, 100)
        awaited(statuses, lambda found: found == {"OK": 2}, "the commit")

        with pytest.raises(urllib.error.HTTPError, match="404"):
            scraped(url.replace("/metrics", "/other"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0


def test_owners_that_change_are_counted(lab, profile_file, topic):
    first = lab.start_new_consumer("exported-moving", topic)
    wait_until(lambda: bool(first.records()), "records delivered", SECONDS)
    with serving(lab, profile_file, "--every", "1", "--no-times", "--groups", "exported-moving") as (process, url):
        moves = lambda: samples(scraped(url))["offramp_consumer_group_owner_moves_total"]  # noqa: E731
        assert moves() == [({"group_id": "exported-moving", "store": "kafka"}, 0)]
        second = lab.start_new_consumer("exported-moving", topic)
        awaited(moves, lambda found: found[0][1] == 1, "one of two partitions moved")
        assert PARTITION + "time_lag_seconds" not in samples(scraped(url))
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0
    for member in (first, second):
        member.stop()


def test_hostile_names_survive_and_the_limit_hides_nothing(lab, profile_file, topic, tmp_path):
    for at, name in enumerate(HOSTILE):
        commit_all(lab, name, topic, 10 * at, 90)
    pattern = "hx.*"
    ended = run(profile_file, "--once", "--groups", pattern)
    assert (ended.returncode, ended.stderr) == (0, "")
    if promtool.PROGRAM is not None:
        promtool.check("check", "metrics", given=ended.stdout.encode())
    lags = samples(ended.stdout, parse_text)["offramp_consumer_group_lag"]
    assert {labels["group_id"]: value for labels, value in lags} == {
        name: 110 - 10 * at for at, name in enumerate(HOSTILE)
    }
    file = tmp_path / "lag.prom"
    limited = run(profile_file, "--once", "--groups", pattern, "--limit", "5", "--textfile", str(file))
    assert (limited.returncode, limited.stdout, limited.stderr) == (0, "", "")
    found = samples(file.read_text(), parse_text)
    assert [labels["group_id"] for labels, _ in found["offramp_consumer_group_lag"]] == HOSTILE[:2]
    assert found["offramp_other_groups"] == [({}, 4)]
    assert found["offramp_other_partitions"] == [({}, 8)]
    assert found["offramp_other_lag"] == [({}, 90 + 80 + 70 + 60)]
    assert [path.name for path in tmp_path.iterdir()] == ["lag.prom"]


def test_a_lag_in_time_that_is_unknown_is_counted_and_ends_once_with_12(lab, profile_file):
    """A record that is dated after the clock has no age. A group with members and no commit has no lag."""
    lab.create_topic("dated-later", 1)
    lab.create_topic("never-committed", 1)
    producer = Producer({**QUIET, "bootstrap.servers": lab.servers.addresses()})
    producer.produce("dated-later", b"x", partition=0, timestamp=time.time_ns() // 1_000_000 + 86_400_000)
    assert producer.flush(SECONDS) == 0
    commit_all(lab, "later-group", "dated-later", 0)
    ended = run(profile_file, "--once", "--groups", "later-group")
    assert ended.returncode == 12
    assert "later-group/dated-later-0" in ended.stderr
    found = samples(ended.stdout, parse_text)
    assert found["offramp_look_times_missing"] == [({}, 1)]
    assert found["offramp_look_read_errors"] == [({}, 0)]
    assert PARTITION + "time_lag_seconds" not in found
    settings = {**QUIET, "bootstrap.servers": lab.servers.addresses(), "group.id": "later-silent"}
    with closing(Consumer({**settings, "enable.auto.commit": False})) as member:
        member.subscribe(["never-committed"])
        wait_until(lambda: member.poll(0.1) is None and member.assignment(), "the assignment", SECONDS)
        silent = run(profile_file, "--once", "--no-times", "--groups", "later-silent")
    unknown = samples(silent.stdout, parse_text)["offramp_consumer_group_unknown_partitions"]
    assert (silent.returncode, unknown) == (0, [({"group_id": "later-silent", "store": "kafka"}, 1)])


def test_labels_have_the_names_that_kafka_exporter_gives_them(lab, profile_file, topic):
    commit_all(lab, "exported-labels", topic, 0, 0)
    ended = run(profile_file, "--once", "--groups", "exported-labels", "--labels", "kafka_exporter", "--no-times")
    labels = samples(ended.stdout, parse_text)[PARTITION + "lag"][0][0]
    assert labels == {"consumergroup": "exported-labels", "topic": topic, "partition": "0", "store": "kafka"}


def test_a_taken_port_and_a_file_that_cant_be_written_end_with_one_line(lab, profile_file, topic, tmp_path):
    with serving(lab, profile_file, "--every", "60", "--no-times") as (_, url):
        taken = run(profile_file, "--listen", url.split("/")[2])
    assert (taken.returncode, taken.stdout) == (2, "")
    assert re.fullmatch(
        r"offramp: metrics can't be served on 127\.0\.0\.1:\d+: Address already in use; name another --listen\n",
        taken.stderr,
    )
    unwritable = run(profile_file, "--once", "--no-times", "--textfile", str(tmp_path / "none" / "lag.prom"))
    assert unwritable.returncode == 2
    assert unwritable.stderr.endswith("lag.prom can't be written: No such file or directory\n")
