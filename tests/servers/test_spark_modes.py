"""The same numbers on a standalone cluster and through Spark Connect as without Spark; the history's own rules.

Reports and notebooks run on a local Spark: ``tests/notebooks``. A standalone cluster is a part of ``make soak``.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyspark
import pytest

from kit import connect, observe
from kit.groups import views
from kit.lab.lab import QUICK_SPARK
from kit.lab.ports import free_ports
from kit.lab.process import wait_until
from kit.profile import load_profile
from kit.spark.archive import java_options
from kit.spark.java import spark_java_home
from tests.generators.log_texts import JAVA_0_11
from tests.servers.awaiting import SECONDS
from tests.servers.spark_mode import LAG, READINESS, rows
from tests.soak import soak_only

PATIENCE_S = 400
"""For a process with Spark, on a busy machine."""
pytestmark = pytest.mark.timeout(2 * PATIENCE_S + 100)
PYSPARK = Path(pyspark.__file__).parent
ENVIRONMENT = {"SPARK_HOME": str(PYSPARK), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
ENVIRONMENT["SPARK_DAEMON_MEMORY"] = "600m"  # the Connect server, too, is one
QUICK = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
UNCOMPILED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""On so few rows optimising and compiling cost more than they give."""
TOLD = [
    (1, "coordinator_found", "stock.eu", None),
    (2, "revoked", "stock.eu", None),
    (3, "joining", "stock.eu", None),
    (4, "joined", "stock.eu", 8),
    (5, "assigned", "stock.eu", None),
    (6, "coordinator_lost", "stock.eu", None),
]
"""The log's events: line, kind, group, generation."""

SESSION = """
import os, sys
from kit.errors import HistoryError
from kit.history import History
from kit.spark.session import spark_session

def task(batches):
    import polars as pl

    for batch in batches:
        conf = dict(each.split(":") for each in os.environ["_RJEM_MALLOC_CONF"].split(","))
        yield from pl.DataFrame({"ms": [int(conf["dirty_decay_ms"])]}).to_arrow().to_batches()

spark = spark_session()
(row,) = spark.range(1).mapInArrow(task, "ms bigint").collect()
print(*row)
java = spark.sparkContext._gateway.proc
java.kill()
java.wait()
try:
    History(spark, sys.argv[1])
except HistoryError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> list[str]:
    """The lines of a process whose Spark runs a task and is killed."""
    command = [sys.executable, "-c", SESSION, str(tmp_path_factory.mktemp("session") / "history")]
    environment = os.environ | QUICK
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S, env=environment)
    return ended.stdout.splitlines()


def test_polars_keeps_its_memory_in_a_task(printed):
    """The next range of groups asks for as much."""
    assert printed[0] == "5000"


def test_a_spark_that_has_ended_is_one_sentence(printed):
    (sentence,) = printed[1:]
    assert "/history" in sentence
    assert "can't be read: Spark has ended (" in sentence
    assert sentence.endswith("). Start the Spark session or the kernel again")


@pytest.fixture(scope="module")
def groups(lab):
    """Two groups that is stalled, so that every mode sees the same."""
    lab.create_topic("mode-topic", 4)
    lab.produce("mode-topic", 40)
    old = lab.start_old_consumer("mode-old", "mode-topic", threads=2)
    new = lab.start_new_consumer("mode-new", "mode-topic")
    wait_until(lambda: len(old.records()) == len(new.records()) == 40, "all records delivered", SECONDS)
    old.stop()
    new.stop()
    lab.produce("mode-topic", 8)


@pytest.fixture
def spark_class(lab, tmp_path):
    """Starts classes of the wheel's Spark as servers, ended with the test."""
    started = []

    def start(name: str, *arguments: str, port: int):
        places = {"JAVA_HOME": str(spark_java_home()), "SPARK_WORKER_DIR": str(tmp_path)}
        command = [str(PYSPARK / "bin" / arguments[0]), *arguments[1:]]
        process = lab.supervisor.start(name, command, environment=os.environ | ENVIRONMENT | QUICK | places)
        started.append(process)
        process.wait_until(lambda: listens(port), f"listening on {port}", PATIENCE_S)

    yield start
    for process in reversed(started):
        process.kill()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def run(lab, tmp_path, settings: str) -> dict:
    profile = tmp_path / "offramp.toml"
    profile.write_text(f"{lab.profile_toml().replace(QUICK_SPARK, '')}\n[clusters.lab.spark]\n{settings}\n")
    log = tmp_path / "client.log"
    log.write_text(JAVA_0_11)
    command = [sys.executable, "-m", "tests.servers.spark_mode", str(profile), str(tmp_path / "history"), str(log)]
    environment = os.environ | QUICK
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(lab, tmp_path, result: dict) -> None:
    """Against the same analyses on polars."""
    with connect(load_profile(file=tmp_path / "offramp.toml")) as cluster:
        live = observe(cluster, "mode-.*")
    lag = views.lag(live)
    expected = rows(lag, *LAG)
    assert [tuple(row) for row in result["lag"]] == expected
    assert [tuple(row) for row in result["judged"]] == [row for row in expected if row[1] == "kafka"]
    assert len(expected) == 8
    assert {row[-1] for row in expected} == {2}
    assert len(result["readiness"]) == 2
    assert [tuple(row) for row in result["readiness"]] == rows(views.readiness(live), *READINESS)
    assert result["rows"] == {"snapshots": 2, "groups": 4, "committed_offsets": 16}
    assert result["plain"] == 16
    of_kafka = live.committed_offsets.filter(pl.col("store") == "kafka")
    assert [tuple(row) for row in result["commits"]] == rows(
        of_kafka, "group_id", "topic", "partition", "committed_offset"
    )
    assert len(result["commits"]) == 4
    assert result["generations"] >= 2
    assert result["account"].startswith("3 of 3 partitions")
    assert [tuple(event) for event in result["told"]] == TOLD
    assert [tuple(event) for event in result["describe_by_tasks"]] == TOLD
    assert result["since"] == 0
    assert result["partitioned"] == ["coordinator", "date"]


@soak_only
def test_a_standalone_cluster_gives_the_numbers_that_polars_gives(lab, groups, tmp_path, spark_class):
    port, ui, worker_ui = free_ports(3)
    address = ["--host", "127.0.0.1", "--webui-port"]
    master = "org.apache.spark.deploy.master.Master"
    spark_class("spark-master", "spark-class", master, *address, str(ui), "--port", str(port), port=port)
    worker = ["org.apache.spark.deploy.worker.Worker", *address, str(worker_ui), "-c", "2", "-m", "1g"]
    spark_class("spark-worker", "spark-class", *worker, f"spark://127.0.0.1:{port}", port=worker_ui)
    conf = {"spark.executor.memory": "512m"} | UNCOMPILED
    pairs = ", ".join(f'"{name}" = "{value}"' for name, value in conf.items())
    settings = f'master = "spark://127.0.0.1:{port}"\nconf = {{ {pairs} }}'
    check(lab, tmp_path, run(lab, tmp_path, settings))


def test_spark_connect_gives_the_numbers_that_polars_gives(lab, groups, tmp_path, spark_class):
    (port,) = free_ports(1)
    server = ["spark-submit", "--master", "local[2]", "--driver-memory", "1g", "--conf", "spark.ui.enabled=false"]
    server += ["--driver-java-options", " ".join(("-XX:+UseSerialGC", *java_options()))]
    server += ["--conf", f"spark.connect.grpc.binding.port={port}"]
    server += ["--conf", "spark.connect.grpc.binding.address=127.0.0.1"]
    server += [word for name, value in UNCOMPILED.items() for word in ("--conf", f"{name}={value}")]
    server += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    spark_class("spark-connect", *server, "spark-internal", port=port)
    check(lab, tmp_path, run(lab, tmp_path, f'remote = "sc://127.0.0.1:{port}"'))
