"""Mutual TLS: brokers map the subject of a certificate to a principal, and ZooKeeper's access lists name it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from kazoo.security import make_acl

from kit.clients.cluster import connect, librdkafka_settings
from kit.clients.connections import check_connections
from kit.errors import AuthenticationFailed, ConnectError
from kit.lab import Lab
from kit.lab.process import wait_until
from kit.lab.servers.cluster import Servers
from kit.lab.servers.migrating import connected
from kit.lab.servers.security import close_tree
from kit.profile import load_profile
from tests.servers.awaiting import SECONDS
from tests.servers.coordinators import await_coordinator, commit
from tests.servers.offset_operations import OffsetOperations
from tests.servers.offset_verbs import OffsetVerbs
from tests.servers.sasl_lab import AUTHORIZERS, OFFSETS, grant
from tests.servers.tuned_lab import TunedLab

TOPIC = "invoices"
SETTINGS = {
    "authorizer.class.name": AUTHORIZERS[False],
    "super.users": "User:ANONYMOUS",
    "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/U,DEFAULT",
}
"""The lab's certificate is of CN=alice: its principal is User:ALICE."""
BY_CERTIFICATE = {
    "ssl.clientAuth": "need",
    "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
}
OWN = make_acl("x509", "CN=alice", all=True)
OLD_OFFSET = "/consumers/by-certificate/offsets/invoices/0"


class CertificateLab(TunedLab):
    """ZooKeeper's port for TLS takes no session without a certificate, and its name is the login."""

    def _servers(self) -> Servers:
        servers = super()._servers()
        servers.zookeeper.added |= BY_CERTIFICATE
        return servers


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with CertificateLab(SETTINGS, secured=True) as running, pytest.MonkeyPatch.context() as patch:
        for name, secret in running.secrets.items():
            patch.setenv(name, secret)
        await_coordinator(running)
        running.create_topic(TOPIC, 1)
        running.produce(TOPIC, 50)
        with connected(running.zookeeper_connect, running.security) as client:
            client.create(OLD_OFFSET, b"10", makepath=True)
            close_tree(client, "/consumers", [OWN])
        yield running


@pytest.fixture
def file(lab: Lab) -> Path:
    path = lab.folder / "offramp.toml"
    lines = lab.profile_toml(protocol="SSL", zookeeper_tls=True).splitlines()
    digest = next(line for line in lines if line.startswith("digest"))
    lines[lines.index(digest)] = CERTIFICATE.format(folder=lab.security.folder)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


CERTIFICATE = 'certificate_file = "{folder}/client.pem"\nkey_file = "{folder}/client.key"'


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
    verbs = OffsetVerbs(file, tmp_path / "runs")
    assert "ApiVersions" in verbs.typed("kraft", "status")
    verbs.reset("by-certificate", 20)
    with connect(load_profile(file=file), SECONDS) as cluster:
        site = OffsetOperations(cluster, tmp_path)
        assert site.offsets("kafka", "by-certificate") == {(TOPIC, 0): 20}
        verbs.undo()
        assert site.offsets("kafka", "by-certificate") == {(TOPIC, 0): 10}


def test_offsets_in_zookeeper_are_reset_and_put_back_by_the_certificate(lab: Lab, file: Path, tmp_path: Path) -> None:
    grant(lab, "ALICE", *OFFSETS)
    rows = check_connections(load_profile(file=file), 10)
    assert [row for row in rows if row.state == "failed"] == []
    verbs = OffsetVerbs(file, tmp_path / "runs")
    assert "by-certificate" in verbs.typed("groups", "--groups", "by-certificate")
    verbs.reset("by-certificate", 20, "zookeeper")
    with connect(load_profile(file=file), SECONDS) as cluster:
        assert cluster.zookeeper.get(OLD_OFFSET)[0] == b"20"
        verbs.undo()
        assert cluster.zookeeper.get(OLD_OFFSET)[0] == b"10"


def test_zookeeper_that_asks_for_a_certificate_is_reported(lab: Lab, file: Path) -> None:
    text = file.read_text(encoding="utf-8").rpartition(CERTIFICATE.format(folder=lab.security.folder))
    file.write_text(text[0] + text[2], encoding="utf-8")
    rows = [row for row in check_connections(load_profile(file=file), 10) if row.component.startswith("ZooKeeper")]
    assert (rows[-1].error, "certificate_file" in rows[-1].sentence) == (AuthenticationFailed.__name__, True), rows
    with pytest.raises(ConnectError, match="certificate_file"):
        connect(load_profile(file=file), 5)


def test_records_are_read_by_the_same_certificate(lab: Lab, file: Path) -> None:
    grant(lab, "ALICE", *OFFSETS)
    consumer = Consumer(librdkafka_settings(load_profile(file=file)) | {"group.id": "not-committed"})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    wait_until(lambda: any(not each.error() for each in consumer.consume(10, 0.2)), "records", SECONDS)
    consumer.close()
