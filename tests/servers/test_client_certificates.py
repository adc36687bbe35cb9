"""Mutual TLS where brokers map the subject of a certificate to a principal (ssl.principal.mapping.rules)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from typer.testing import CliRunner

from kit.cli.main import app
from kit.clients.cluster import connect, librdkafka_settings
from kit.connections import check_connections
from kit.lab import Lab
from kit.lab.process import wait_until
from kit.profile import load_profile
from tests.servers.awaiting import SECONDS
from tests.servers.coordinators import await_coordinator, commit
from tests.servers.offset_operations import OffsetOperations
from tests.servers.sasl_lab import AUTHORIZERS, OFFSETS, grant
from tests.servers.tuned_lab import TunedLab

TOPIC = "invoices"
SETTINGS = {
    "authorizer.class.name": AUTHORIZERS[False],
    "super.users": "User:ANONYMOUS",
    "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/U,DEFAULT",
}
"""The lab's certificate is of CN=alice: its principal is User:ALICE."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with TunedLab(SETTINGS, secured=True) as running, pytest.MonkeyPatch.context() as patch:
        for name, secret in running.secrets.items():
            patch.setenv(name, secret)
        await_coordinator(running)
        running.create_topic(TOPIC, 1)
        running.produce(TOPIC, 50)
        yield running


@pytest.fixture
def file(lab: Lab) -> Path:
    path = lab.folder / "offramp.toml"
    path.write_text(lab.profile_toml(protocol="SSL", zookeeper_tls=True), encoding="utf-8")
    return path


def right_of_cluster(file: Path) -> str:
    return next(row.state for row in check_connections(load_profile(file=file), 10) if row.tried == "rights: cluster")


def test_offsets_are_reset_and_put_back_by_the_mapped_principal_and_by_no_other(
    lab: Lab, file: Path, tmp_path: Path
) -> None:
    commit(lab, "by-certificate", TopicPartition(TOPIC, 0, 10))
    for unmapped in ("alice", "CN=alice"):
        grant(lab, unmapped, *OFFSETS)
    assert right_of_cluster(file) == "failed"
    grant(lab, "ALICE", *OFFSETS)
    wait_until(lambda: right_of_cluster(file) == "ok", "the rights", SECONDS)
    place = ["--runs", str(tmp_path / "runs"), "--profile-file", str(file)]

    def typed(*words: str) -> None:
        done = CliRunner().invoke(app, [*words, *place])
        assert done.exit_code == 0, done.output

    typed("plan", "offsets", "reset", "--store", "kafka", "--group", "by-certificate", "--to", "20")
    (plan,) = (tmp_path / "runs" / "plans").glob("????????????.json")
    typed("approve", plan.stem, "--subject", "by-certificate", "--digest", plan.stem)
    typed("act", plan.stem)
    with connect(load_profile(file=file), SECONDS) as cluster:
        site = OffsetOperations(cluster, tmp_path)
        assert site.offsets("kafka", "by-certificate") == {(TOPIC, 0): 20}
        (run,) = [each.name for each in (tmp_path / "runs").iterdir() if (each / "report.html").exists()]
        typed("undo", run)
        assert site.offsets("kafka", "by-certificate") == {(TOPIC, 0): 10}


def test_records_are_read_by_the_same_certificate(lab: Lab, file: Path) -> None:
    grant(lab, "ALICE", *OFFSETS)
    consumer = Consumer(librdkafka_settings(load_profile(file=file)) | {"group.id": "not-committed"})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    wait_until(lambda: any(not each.error() for each in consumer.consume(10, 0.2)), "records", SECONDS)
    consumer.close()
