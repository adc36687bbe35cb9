"""``offramp connect``: each layer of each component, what ends soon, who was refused, and which rights are missing."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kit.cli.main import app
from kit.clients.cluster import connect, kafka_settings
from kit.clients.connections import Check, check_connections
from kit.clients.nodes import ask_node
from kit.errors import AuthenticationFailed, ConnectError, PartialRead
from kit.kraft.metadata_log.controllers import Controllers
from kit.lab import Lab
from kit.lab.process import wait_until
from kit.profile import load_profile
from kit.profile.security.tokens import provider_of
from tests.generators.certificates import certificate
from tests.servers.awaiting import SECONDS
from tests.servers.issuer import SECRET, Issuer
from tests.servers.sasl_lab import CLUSTER, SaslLab, allowed, by_tokens, grant

USER = "carl"
RIGHTS = {
    "rights: cluster": ("Describe", "Broker", CLUSTER),
    "rights: topics": ("Read", "Topic", "*"),
    "rights: locks": ("Read", "Group", "offramp.lock."),
}


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    with Issuer(tmp_path_factory.mktemp("issuer")) as running:
        yield running


@pytest.fixture(scope="module")
def lab(issuer: Issuer) -> Iterator[SaslLab]:
    """Clients reach it by IPv6, where the machine has that."""
    with SaslLab(by_tokens(issuer), allowed(issuer), kraft=True, host=loopback()) as running:
        running.create_topic("payments", 1)
        yield running


def loopback() -> str:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return "127.0.0.1"
    return "[::1]"


@pytest.fixture
def file(lab: SaslLab, issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("CLIENT_SECRET", SECRET)
    path = tmp_path / "offramp.toml"
    login = f'token_url = "{issuer.token_url}"\nclient_id = "{USER}"\nclient_secret = {{ env = "CLIENT_SECRET" }}\n'
    path.write_text(lab.sasl_profile("OAUTHBEARER", login), encoding="utf-8")
    provider_of.cache_clear()
    yield path
    issuer.claims = {}
    provider_of.cache_clear()


def checked(file: Path) -> dict[str, Check]:
    return {row.tried: row for row in check_connections(load_profile(file=file), 5)}


def test_each_right_that_is_missing_is_named_until_it_is_granted(lab: SaslLab, file: Path) -> None:
    rows = checked(file)
    assert [rows[each].state for each in ("DNS", "TCP", "token", "clock", "login", "cluster id")] == ["ok"] * 6
    assert {name: rows[name].state for name in RIGHTS} == {
        "rights: cluster": "failed",
        "rights: topics": "warning",
        "rights: locks": "warning",
    }
    for name, right in RIGHTS.items():
        assert "Grant it: kafka-acls.sh --add --operation" in rows[name].sentence
        grant(lab, USER, right)
        wait_until(lambda name=name: checked(file)[name].state == "ok", f"{name} granted", SECONDS)


def test_a_broker_is_asked_at_the_address_that_it_advertises(lab: SaslLab, file: Path) -> None:
    """kafka-python takes ``::1:9092`` for an address without a port."""
    address = lab.servers.addresses("SASL_PLAINTEXT")
    done = CliRunner().invoke(app, ["kraft", "status", "--profile-file", str(file)], env={"COLUMNS": "160"})
    assert (done.exit_code, address in done.output) == (0, True), done.output


def test_the_verb_ends_as_its_siblings_do_and_shows_no_secret(file: Path, issuer: Issuer) -> None:
    done = CliRunner().invoke(app, ["connect", "--profile-file", str(file), "--json"])
    assert {row["component"] for row in json.loads(done.stdout)} >= {"token", "brokers"}
    issuer.claims = {"aud": "billing"}
    provider_of.cache_clear()
    refused = CliRunner().invoke(app, ["connect", "--profile-file", str(file)])
    assert refused.exit_code == AuthenticationFailed.exit_code, refused.output
    assert "audience billing" in refused.output
    for secret in (SECRET, *issuer.issued):
        assert secret not in done.output + refused.output


def test_a_clock_that_differs_and_a_wrong_name_or_port_are_reported(file: Path, issuer: Issuer) -> None:
    issuer.claims = {"iat": int(datetime.now(UTC).timestamp()) - 600}
    assert checked(file)["clock"].state == "warning"
    text = file.read_text(encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    servers = next(line for line in text.splitlines() if line.startswith("bootstrap_servers"))
    for address, layer in ((f"127.0.0.1:{port}", "TCP"), ("no.such.name.invalid:9092", "DNS")):
        file.write_text(text.replace(servers, f'bootstrap_servers = "{address}"'), encoding="utf-8")
        row = checked(file)[layer]
        assert (row.state, row.exit_code) == ("failed", ConnectError.exit_code)


def test_a_mechanism_that_is_not_enabled_is_distinguished_from_a_wrong_password(
    lab: SaslLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLIENT_SECRET", SECRET)
    file = tmp_path / "offramp.toml"
    lines = f'username = "{USER}"\npassword = {{ env = "CLIENT_SECRET" }}\n'
    file.write_text(lab.sasl_profile("PLAIN", lines), encoding="utf-8")
    profile = load_profile(file=file)
    said = r"does not enable the mechanism PLAIN; it enables OAUTHBEARER\. Set mechanism in security\.kafka"
    address = profile.bootstrap_servers
    for tried in (
        lambda: connect(profile, SECONDS),
        lambda: ask_node(kafka_settings(profile), address, None),
        lambda: Controllers(address, profile.security.kafka).fetch(),
    ):
        with pytest.raises(AuthenticationFailed, match=said):
            tried()
    assert checked(file)["login"].error == AuthenticationFailed.__name__


def test_a_mechanism_that_is_not_enabled_behind_tls(
    secured: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "no-jwt")
    password = 'mechanism = "SCRAM-SHA-512"\nusername = "alice"\npassword = { env = "OFFRAMP_KAFKA_PASSWORD" }'
    token = 'mechanism = "OAUTHBEARER"\ntoken = { env = "TOKEN" }'
    profile = load_profile(file=secured(lambda text: text.replace(password, token), "SASL_SSL"))
    with pytest.raises(AuthenticationFailed, match=r"it enables .*SCRAM-SHA-512") as caught:
        connect(profile, SECONDS)
    assert "PLAIN" in str(caught.value)
    assert "no-jwt" not in str(caught.value)


@pytest.fixture
def secured(secured_lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    for name, secret in secured_lab.secrets.items():
        monkeypatch.setenv(name, secret)

    def written(change: Callable[[str], str] = lambda text: text, protocol: str = "SSL") -> Path:
        path = tmp_path / "offramp.toml"
        path.write_text(change(secured_lab.profile_toml(protocol=protocol, zookeeper_tls=True)), encoding="utf-8")
        return path

    return written


def test_tls_and_logins_of_brokers_and_of_zookeeper(secured: Callable[..., Path]) -> None:
    rows = check_connections(load_profile(file=secured()), 10)
    assert [row for row in rows if row.state == "failed"] == []
    tried = {(row.component.partition(" ")[0], row.tried) for row in rows}
    assert tried >= {(each, layer) for each in ("broker", "ZooKeeper") for layer in ("DNS", "TCP", "TLS", "login")}


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_a_server_of_another_authority_and_a_znode_that_is_closed_are_reported(
    secured: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    monkeypatch.setenv("OFFRAMP_ZK_DIGEST", "alice:not-it")
    monkeypatch.setenv("OFFRAMP_KAFKA_PASSWORD", "not-it")
    rows = check_connections(load_profile(file=secured(protocol=protocol)), 10)
    closed = next(row for row in rows if row.component.startswith("ZooKeeper") and row.tried == "rights")
    assert (closed.error, "/consumers" in closed.sentence) == (PartialRead.__name__, True)
    if protocol == "SASL_SSL":
        assert "'alice' was refused" in next(row for row in rows if row.tried == "login").sentence
    other = load_profile(file=secured(lambda text: text.replace("ca.pem", "other-ca.pem"), protocol))
    untrusted = [row for row in check_connections(other, 10) if row.tried == "TLS"]
    assert ["No authority in ca_file" in row.sentence for row in untrusted] == [True, True]


@pytest.mark.parametrize(("days", "state"), [(1, "warning"), (29, "warning"), (31, "ok"), (-1, "failed")])
def test_a_certificate_that_ends_soon_is_reported_beforehand(tmp_path: Path, days: float, state: str) -> None:
    path = certificate(tmp_path, days)
    file = tmp_path / "offramp.toml"
    file.write_text(
        '[clusters.lab]\nbootstrap_servers = "127.0.0.1:1"\n[clusters.lab.security.kafka]\nprotocol = "SSL"\n'
        f'certificate_file = "{path}"\nkey_file = "{path}"\n',
        encoding="utf-8",
    )
    rows = checked(file)
    assert (rows["certificate_file"] if state != "failed" else rows["certificates"]).state == state
