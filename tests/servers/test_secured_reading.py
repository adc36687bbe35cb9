"""TLS, SCRAM, client certificates and digests, read through; wrong ones say so and show no secret."""

from __future__ import annotations

import logging
import time

import pytest
from kafka.net.transport import KafkaSSLTransport
from typer.testing import CliRunner

from kit import connect, observe
from kit.cli.main import app
from kit.errors import AuthenticationFailed, ConnectError
from kit.lab.lab import PROTECTED_GROUP
from kit.profile import load_profile
from tests.servers.awaiting import SECONDS


@pytest.fixture
def secured(secured_lab, tmp_path, monkeypatch):
    """Writes a profile of the secured lab and loads it, secrets in the environment."""
    for name, secret in secured_lab.secrets.items():
        monkeypatch.setenv(name, secret)

    def load(change=lambda text: text, **options):
        path = tmp_path / "offramp.toml"
        path.write_text(change(secured_lab.profile_toml(**options)))
        return load_profile(file=path)

    return load


@pytest.mark.parametrize("zookeeper_tls", [False, True])
@pytest.mark.parametrize("protocol", ["SASL_SSL", "SSL"])
def test_the_right_credentials_read_everything(secured, secured_lab, protocol, zookeeper_tls):
    with connect(secured(protocol=protocol, zookeeper_tls=zookeeper_tls), SECONDS) as cluster:
        assert cluster.cluster_id == secured_lab.cluster_id
        snapshot = observe(cluster)
    assert PROTECTED_GROUP in set(snapshot.groups["group_id"])
    offsets = {
        (row["topic"], row["partition"]): row["committed_offset"] for row in snapshot.committed_offsets.to_dicts()
    }
    assert offsets["payments", 0] == 7


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "PLAIN"])
def test_other_mechanisms_log_in(secured, secured_lab, mechanism):
    with connect(secured(lambda text: text.replace("SCRAM-SHA-512", mechanism)), SECONDS) as cluster:
        assert cluster.cluster_id == secured_lab.cluster_id


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_a_wrong_kafka_password_is_reported(secured, monkeypatch, mechanism):
    monkeypatch.setenv("OFFRAMP_KAFKA_PASSWORD", "not-it")
    with pytest.raises(AuthenticationFailed, match="login as 'alice' was refused") as caught:
        connect(secured(lambda text: text.replace("SCRAM-SHA-512", mechanism)), SECONDS)
    assert "not-it" not in str(caught.value)


def test_a_refusal_that_is_read_late_is_one(secured, monkeypatch):
    """kafka-python drops what it reads together with the end of a connection, and a broker closes after a refusal."""
    read = KafkaSSLTransport._sock_recv

    def read_late(transport):
        time.sleep(0.3)
        return read(transport)

    monkeypatch.setattr(KafkaSSLTransport, "_sock_recv", read_late)
    monkeypatch.setenv("OFFRAMP_KAFKA_PASSWORD", "not-it")
    with pytest.raises(AuthenticationFailed, match="login as 'alice' was refused"):
        connect(secured(lambda text: text.replace("SCRAM-SHA-512", "PLAIN")), SECONDS)


@pytest.mark.parametrize("zookeeper_tls", [False, True])
def test_a_wrong_digest_is_reported(secured, monkeypatch, zookeeper_tls):
    monkeypatch.setenv("OFFRAMP_ZK_DIGEST", "alice:not-it")
    with (
        connect(secured(zookeeper_tls=zookeeper_tls), SECONDS) as cluster,
        pytest.raises(AuthenticationFailed, match="does not let these credentials read /consumers") as caught,
    ):
        observe(cluster)
    assert "not-it" not in str(caught.value)


def test_a_broker_of_another_authority_is_not_talked_to(secured):
    with pytest.raises(ConnectError):
        connect(secured(lambda text: text.replace("ca.pem", "other-ca.pem", 1)), timeout_s=5)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_no_secret_in_any_output_or_log(secured, secured_lab, tmp_path, caplog, mechanism):
    """With PLAIN the password itself is sent, and kafka-python logs what it sends."""
    secured(lambda text: text.replace("SCRAM-SHA-512", mechanism))
    if "payments" not in secured_lab.admin.list_topics(timeout=10).topics:
        secured_lab.create_topic("payments", 1)
    with caplog.at_level(logging.DEBUG):
        result = CliRunner().invoke(app, ["groups", "--profile-file", str(tmp_path / "offramp.toml"), "--json"])
    assert result.exit_code == 0, result.output
    assert PROTECTED_GROUP in result.output
    text = result.output + caplog.text + "".join(str(record.args) for record in caplog.records)
    assert "kafka" in caplog.text
    for secret in secured_lab.secrets.values():
        assert secret not in text
        assert secret.rpartition(":")[2] not in text


@pytest.mark.parametrize("is_checked", [True, False])
def test_a_zookeeper_of_another_name_is_not_talked_to(secured, is_checked):
    """127.1 is the same server, and not what its certificate says."""

    def renamed(text):
        addresses = [line for line in text.splitlines() if line.startswith("zookeeper_connect")]
        text = text.replace(addresses[0], addresses[0].replace("127.0.0.1", "127.1"))
        section = "[clusters.lab.security.zookeeper]\n"
        return text if is_checked else text.replace(section, section + "check_host_name = false\n")

    profile = secured(renamed, zookeeper_tls=True)
    if is_checked:
        with pytest.raises(ConnectError, match="that the certificate names this host"):
            connect(profile, timeout_s=3)
    else:
        with connect(profile, SECONDS) as cluster:
            assert cluster.zookeeper.exists("/brokers/ids")
