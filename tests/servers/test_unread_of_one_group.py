"""A znode that is no offset, among the offsets of a group: verbs of that one group name it, as ``--groups`` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kit import connect, observe, of_group, verify_read
from kit.cli.main import app
from kit.errors import PartialRead
from kit.lab import Lab
from kit.profile import load_profile
from tests.servers.coordinators import await_coordinator

GROUP, TOPIC = "stray-group", "stray-topic"
STRAY = f"consumers/{GROUP}/offsets/{TOPIC}/partition_1"


@pytest.fixture(scope="module")
def profile_file(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("stray") / "offramp.toml"
    path.write_text(lab.profile_toml())
    lab.create_topic(TOPIC, 2)
    await_coordinator(lab)
    with connect(load_profile(file=path)) as cluster:
        client = cluster.zookeeper
        for group in (GROUP, "stray-other"):
            client.create(f"/consumers/{group}/offsets/{TOPIC}/0", b"0", makepath=True)
        client.create(f"/{STRAY}", b"7")
        yield path
        for group in (GROUP, "stray-other"):
            client.delete(f"/consumers/{group}", recursive=True)


@pytest.fixture
def offramp(profile_file: Path, tmp_path: Path) -> Callable[..., Result]:
    def run(*words: str) -> Result:
        return CliRunner().invoke(
            app, [*words, "--profile-file", str(profile_file)], env={"COLUMNS": "200", "OFFRAMP_RUNS": str(tmp_path)}
        )

    return run


@pytest.mark.parametrize(
    "words",
    [
        ["lag"],
        ["lag", "--time"],
        ["lag", "--outlook", "--over-s", "1"],
        ["ownership"],
        ["readiness"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("chosen", [["--groups", "stray-.*"], ["-g", GROUP]])
def test_a_stray_znode_is_named_for_one_group_as_for_all(offramp, words, chosen):
    ended = offramp(*words, *chosen)
    assert ended.exit_code == 12, ended.output
    assert STRAY in ended.stderr


def test_a_partition_that_an_existing_topic_does_not_have_is_no_deleted_topic(offramp, profile_file):
    """A topic that was created again with fewer partitions leaves such znodes."""
    with connect(load_profile(file=profile_file)) as cluster:
        path = "/consumers/stray-fewer"
        for place in (f"{TOPIC}/7", "stray-gone/0"):
            cluster.zookeeper.create(f"{path}/offsets/{place}", b"0", makepath=True)
        for words in (["lag"], ["lag", "--time"]):
            ended = offramp(*words, "-g", "stray-fewer")
            assert ended.exit_code == 12, ended.output
            assert f"{TOPIC}-7: the topic exists, but has no such partition" in ended.stderr
            assert "stray-gone-0: no broker knows this topic: it was deleted" in ended.stderr
        cluster.zookeeper.delete(path, recursive=True)


def test_another_group_is_whole(offramp):
    assert offramp("lag", "-g", "stray-other").exit_code == 0


def test_the_notebooks_check_names_it(profile_file):
    with connect(load_profile(file=profile_file)) as cluster, pytest.raises(PartialRead, match="partition_1"):
        verify_read(of_group(observe(cluster), GROUP))


def test_watch_names_the_first_of_what_could_not_be_read(offramp):
    ended = offramp("watch", "--every", "1", "--count", "2", "--groups", "stray-.*")
    assert ended.exit_code == 12
    assert f"1 thing could not be read, so the values are unknown, not zero: zookeeper: lab/{STRAY}: " in ended.stdout


def test_a_file_and_a_plan_of_its_offsets_name_it(offramp, tmp_path):
    file, runs = tmp_path / "offsets.jsonl", ["--runs", str(tmp_path / "runs")]
    saved = offramp("plan", "offsets", "export", str(file), "--store", "zookeeper", "-g", GROUP)
    assert (saved.exit_code, file.exists()) == (12, True), saved.output
    assert STRAY in saved.stderr
    copied = offramp("plan", "offsets", "copy", "--from", "zookeeper", "--to", "kafka", "-g", GROUP, *runs)
    assert copied.exit_code == 0, copied.output
    assert STRAY in copied.output.replace("\n", "")
    whole = offramp("plan", "offsets", "export", str(tmp_path / "w.csv"), "--store", "zookeeper", "-g", "stray-other")
    assert whole.exit_code == 0, whole.output
