"""``offramp consume``: a canary manually, and what it refuses."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient

from kit.consumer.zookeeper.connector import ZookeeperConsumer
from kit.errors import ConnectError, NotFound
from kit.lab import Lab
from kit.lab.members.handles import whole_lines
from kit.lab.process import wait_until

SECONDS = 120.0
"""A busy machine takes its time to start a process."""
COMMAND = [str(Path(sys.executable).with_name("offramp")), "consume"]
Consume = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def consume(lab: Lab, tmp_path: Path) -> Iterator[Consume]:
    """Starts the command on the lab; what still runs after the test is ended."""
    profile = tmp_path / "offramp.toml"
    profile.write_text(lab.profile_toml())
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, toml: str = "") -> subprocess.Popen[str]:
        if toml:
            profile.write_text(toml)
        command = [*COMMAND, "--profile-file", str(profile), *arguments]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def lines_of(file: Path) -> list[Any]:
    return [json.loads(line) for line in whole_lines(file)] if file.exists() else []


@pytest.mark.parametrize("flavour", ["ozkcc", "mezkcc", "kc"])
def test_records_go_to_a_program_and_are_committed(lab: Lab, consume: Consume, tmp_path: Path, flavour: str) -> None:
    topic, group = f"canary-{flavour}", f"canary-{flavour}-g"
    lab.create_topic(topic, 4)
    lab.produce(topic, 100)
    got, handed = tmp_path / "got.jsonl", tmp_path / "handed.jsonl"
    options = ["--flavour", flavour, "-g", group, "-t", topic, "--threads", "2", "--from-beginning", "--json"]
    files = ["--consumption-file", str(handed), "--events-file", str(tmp_path / "events")]
    running = consume(*options, *files, "--", "sh", "-c", f"cat > {got}")
    wait_until(lambda: len(lines_of(handed)) == 100, "100 records", SECONDS)
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=SECONDS)
    assert running.returncode == 0, said
    records = lines_of(got)
    assert sorted(int(each["value"]) for each in records) == list(range(100))
    assert {(each["topic"], each["partition"], each["offset"]) for each in lines_of(handed)} == {
        (each["topic"], each["partition"], each["offset"]) for each in records
    }
    again = consume(*options, "--max-messages", "1", "--", "cat")
    lab.produce(topic, 1)
    out, said = again.communicate(timeout=SECONDS)
    assert again.returncode == 0, said
    assert json.loads(out)["value"] == "100"


def test_values_as_text_from_all_topics_of_a_pattern_with_metrics(lab: Lab, consume: Consume) -> None:
    for name in ("metrics-a", "metrics-b"):
        lab.create_topic(name, 2)
        lab.produce(name, 5)
    options = ["-g", "metrics-g", "--allow", "metrics-[ab]", "--from-beginning"]
    running = consume(*options, "--metrics", "127.0.0.1:0", "-X", "auto.commit.interval.ms=100")
    assert running.stdout is not None
    values = [running.stdout.readline().strip() for _ in range(10)]
    assert sorted(values) == sorted([*map(str, range(5))] * 2)
    served = next(line for line in iter(running.stderr.readline, "") if "metrics" in line)  # type: ignore[union-attr]
    with urllib.request.urlopen(served.split()[-1], timeout=10) as answer:
        text = answer.read().decode()
    assert 'name="OwnedPartitionsCount"' in text
    assert 'groupId="metrics-g"' in text


def test_a_program_that_ends_takes_the_consumer_with_it(lab: Lab, consume: Consume) -> None:
    """The record it did not take stays uncommitted."""
    lab.create_topic("brittle", 1)
    lab.produce("brittle", 50)
    running = consume("-g", "brittle-g", "-t", "brittle", "--from-beginning", "--", "sh", "-c", "read one; exit 3")
    _, said = running.communicate(timeout=SECONDS)
    assert running.returncode == 27
    assert "sh ended with exit code 3" in said


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["-t", "t"], 2, "group.id is ''"),
        (["-g", "a b", "-t", "t"], 2, "group.id is 'a b'"),
        (["-g", "g"], 2, "give one of --topic, --allow or --deny"),
        (["-g", "g", "-t", "t", "--allow", "x"], 2, "give one of --topic, --allow or --deny"),
        (["-g", "g", "--allow", "(x"], 2, "can't be parsed"),
        (["-g", "g", "--allow", r"\p{Alpha}"], 2, "Java and Python interpret differently"),
        (["-g", "g", "-t", "t", "--threads", "0"], 2, "--threads 0"),
        (["-g", "g", "-t", "t", "-X", "colour=red"], 2, "'colour' is not a setting"),
        (["-g", "g", "-t", "t", "-X", "colour"], 2, "a property is key=value"),
        (["-g", "g", "--flavour", "kc", "--allow", "x"], 2, "needs --topic"),
        (["-g", "g", "-t", "t", "--metrics", "nowhere:x"], 2, "can't be served"),
        (["-g", "g", "-t", "t", "--", "no-such-program"], 2, "can't be started"),
        (["-g", "g", "-t", "t", "-p", "other"], 3, "no cluster 'other'"),
        (["-g", "g", "-t", "t", "--consumption-file", "/nowhere/file"], 2, "/nowhere/file can't be written"),
        (["-g", "g", "-t", "t", "--events-file", "/nowhere/file"], 2, "/nowhere/file can't be written"),
    ],
)
def test_an_impossible_request_is_refused(consume: Consume, options: list[str], code: int, words: str) -> None:
    running = consume(*options)
    _, said = running.communicate(timeout=SECONDS)
    assert running.returncode == code, said
    assert words in said
    assert "Traceback" not in said


def test_more_threads_than_partitions_work_and_report_it(lab: Lab, consume: Consume) -> None:
    lab.create_topic("narrow", 1)
    lab.produce("narrow", 3)
    running = consume("-g", "narrow-g", "-t", "narrow", "--threads", "3", "--from-beginning", "--max-messages", "3")
    out, said = running.communicate(timeout=SECONDS)
    assert running.returncode == 0, said
    assert out.split() == ["0", "1", "2"]
    assert "2 of its 3 threads get no partition of narrow" in said


def test_a_zookeeper_that_no_broker_uses(lab: Lab, consume: Consume) -> None:
    """A wrong chroot, or KRaft: told before anything is registered."""
    client = KazooClient(lab.zookeeper_connect)
    client.start(15)
    try:
        client.ensure_path("/elsewhere")
    finally:
        client.stop()
        client.close()
    toml = lab.profile_toml().replace(lab.zookeeper_connect, f"{lab.zookeeper_connect}/elsewhere")
    running = consume("-g", "g", "-t", "t", toml=toml)
    _, said = running.communicate(timeout=SECONDS)
    assert running.returncode == 6, said
    assert "/cluster/id" in said


def test_brokers_without_a_plaintext_listener(lab: Lab) -> None:
    """An old consumer speaks neither TLS nor SASL; what a migration-enabled one needs is said."""
    client = KazooClient(lab.zookeeper_connect)
    client.start(15)
    registered = b'{"endpoints":["SASL_SSL://kafka-1:9093"],"host":null,"port":-1,"version":5,"timestamp":"1"}'
    try:
        client.create("/protected/brokers/ids/1", registered, makepath=True)
    finally:
        client.stop()
        client.close()
    consumer = ZookeeperConsumer({"group.id": "g", "zookeeper.connect": f"{lab.zookeeper_connect}/protected"})
    with pytest.raises(ConnectError, match=r"SASL_SSL://kafka-1:9093.*coordination\.migration\.bootstrap\.servers"):
        consumer.create_message_streams({"t": 1})
    consumer.shutdown()


def test_a_chroot_where_no_broker_ever_was(lab: Lab) -> None:
    consumer = ZookeeperConsumer({"group.id": "g", "zookeeper.connect": f"{lab.zookeeper_connect}/nobody"})
    with pytest.raises(NotFound, match=r"/nobody has no /brokers/ids\. .* KRaft mode"):
        consumer.create_message_streams({"t": 1})
    consumer.shutdown()


def test_a_canary_on_a_secured_cluster(consume: Consume, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SASL_SSL to the brokers, for records, offsets and the group; a digest to ZooKeeper; no secret in what it says."""
    with Lab(secured=True) as secured:
        for name, value in secured.secrets.items():
            monkeypatch.setenv(name, value)
        secured.create_topic("canary-secured", 2)
        secured.produce("canary-secured", 10)
        handed = tmp_path / "handed.jsonl"
        options = ["--flavour", "mezkcc", "-g", "canary-secured-g", "-t", "canary-secured", "--from-beginning"]
        running = consume(*options, "--consumption-file", str(handed), toml=secured.profile_toml())
        assert running.stdout is not None
        assert sorted(int(running.stdout.readline()) for _ in range(10)) == list(range(10))
        wait_until(lambda: len(lines_of(handed)) == 10, "10 records noted", SECONDS)
        running.send_signal(signal.SIGTERM)
        out, said = running.communicate(timeout=SECONDS)
        assert running.returncode == 0, said
        for secret in secured.secrets.values():
            assert secret not in out + said


@pytest.mark.parametrize("flavour", ["ozkcc", "mezkcc", "kc"])
def test_a_topic_that_is_not_there_is_refused_and_leaves_nothing_behind(
    lab: Lab, consume: Consume, flavour: str
) -> None:
    group = f"nowhere-{flavour}"
    running = consume("--flavour", flavour, "-g", group, "-t", "missing", "-t", "gone", "--wait-for-topics", "0.5")
    _, said = running.communicate(timeout=SECONDS)
    assert running.returncode == 8, said
    assert "no topic 'gone', 'missing' after 0.5 s; nothing was registered" in said
    client = KazooClient(lab.zookeeper_connect)
    client.start(15)
    try:
        assert client.exists(f"/consumers/{group}") is None
    finally:
        client.stop()
        client.close()
    admin = AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0})
    assert group not in [each.group_id for each in admin.list_consumer_groups().result().valid]


def test_a_topic_that_comes_in_time_is_consumed(lab: Lab, consume: Consume) -> None:
    running = consume(
        "-g", "late-g", "-t", "late", "--from-beginning", "--max-messages", "1", "--wait-for-topics", "60"
    )
    lab.create_topic("late", 1)
    lab.produce("late", 1)
    out, said = running.communicate(timeout=SECONDS)
    assert running.returncode == 0, said
    assert out.split() == ["0"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_it_is_a_member_is_one_line(lab: Lab, consume: Consume, number: signal.Signals) -> None:
    """While it waits for a topic, which nobody creates."""
    running = consume("-g", "early", "-t", "never", "--wait-for-topics", "60", "--", "sh", "-c", "echo >&2 here; cat")
    assert running.stderr is not None
    assert running.stderr.readline() == "here\n"
    running.send_signal(number)
    _, said = running.communicate(timeout=SECONDS)
    assert running.returncode == 128 + number, said
    assert said == f"offramp: {number.name} before the consumer joined the group; nothing was registered\n"
