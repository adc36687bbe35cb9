"""OAUTHBEARER against Kafka's own validator of JWTs: offsets are reset and put back, and tokens end meanwhile."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from typer.testing import CliRunner, Result

from kit.cli.main import app
from kit.clients.brokers import fetch_metadata
from kit.clients.cluster import connect, librdkafka_settings
from kit.errors import AuthenticationFailed, ConnectError, ReadError
from kit.lab.process import wait_until
from kit.moves.offsets.plan import PlanOptions, Reset, plan_reset, select
from kit.profile import Profile, load_profile
from kit.profile.security.tokens import provider_of
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.coordinators import await_coordinator, commit
from tests.servers.issuer import SECRET, Issuer
from tests.servers.offset_operations import OffsetOperations, when_acting
from tests.servers.sasl_lab import (
    CLUSTER,
    FIRST_LOCK,
    OFFSETS,
    SaslLab,
    allowed,
    by_tokens,
    controllers_by_token,
    grant,
)

TOPIC = "payments"
USER = "ann"
SHAPES = {"Kafka 3.9 with ZooKeeper": {}, "Kafka 4.4": {"kraft": True}}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Both versions run the verbs; what depends on no version runs on one."""
    if "lab" in metafunc.fixturenames:
        shapes = SHAPES if "verbs" in metafunc.function.__name__ else ["Kafka 4.4"]
        metafunc.parametrize("lab", shapes, indirect=True, scope="module")


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    with Issuer(tmp_path_factory.mktemp("issuer")) as running:
        yield running


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest, issuer: Issuer) -> Iterator[SaslLab]:
    """3.9 allows each URL where none is named; 4.4 none. The controllers of 4.4 take tokens, too."""
    shape = SHAPES[request.param]
    added = controllers_by_token(issuer) if shape else {}
    with SaslLab(by_tokens(issuer), allowed(issuer) if shape else (), added=added, **shape) as running:
        await_coordinator(running)
        running.create_topic(TOPIC, 2)
        running.produce(TOPIC, 200)
        grant(running, USER, *OFFSETS, FIRST_LOCK, ("ClusterAction", "Broker", CLUSTER))
        yield running


@pytest.fixture
def file(lab: SaslLab, issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("CLIENT_SECRET", SECRET)
    path = tmp_path / "offramp.toml"
    login = f'token_url = "{issuer.token_url}"\nclient_id = "{USER}"\nclient_secret = {{ env = "CLIENT_SECRET" }}\n'
    path.write_text(lab.sasl_profile("OAUTHBEARER", login), encoding="utf-8")
    provider_of.cache_clear()
    yield path
    issuer.life_s, issuer.claims, issuer.is_down = 3600.0, {}, False
    provider_of.cache_clear()


@pytest.fixture
def profile(file: Path) -> Profile:
    return load_profile(file=file)


def at(first: int, second: int) -> dict:
    return {(TOPIC, 0): first, (TOPIC, 1): second}


def committed(lab: SaslLab, group: str) -> None:
    commit(lab, group, TopicPartition(TOPIC, 0, 10), TopicPartition(TOPIC, 1, 20))


def test_offsets_are_read_reset_and_put_back_by_the_verbs(lab, file, profile, tmp_path, issuer, caplog):
    committed(lab, "by-verbs")
    place = ["--runs", str(tmp_path / "runs"), "--profile-file", str(file)]
    seen = ""

    def typed(*words: str) -> str:
        nonlocal seen
        done = CliRunner().invoke(app, words, catch_exceptions=False)
        seen += done.output
        assert done.exit_code == 0, done.output
        return done.output

    assert "by-verbs" in typed("groups", "--profile-file", str(file))
    assert "ApiVersions" in typed("kraft", "status", "--profile-file", str(file))
    typed("plan", "offsets", "reset", "--store", "kafka", "--group", "by-verbs", "--to", "40", *place)
    (plan,) = (tmp_path / "runs" / "plans").glob("????????????.json")
    typed("approve", plan.stem, "--subject", "by-verbs", "--digest", plan.stem, *place)
    typed("act", plan.stem, *place)
    with connect(profile, SECONDS) as cluster:
        site = OffsetOperations(cluster, tmp_path)
        assert site.offsets("kafka", "by-verbs") == at(40, 40)
        (run,) = [each.name for each in (tmp_path / "runs").iterdir() if (each / "report.html").exists()]
        typed("undo", run, *place)
        assert site.offsets("kafka", "by-verbs") == at(10, 20)
    written = "".join(each.read_text(errors="replace") for each in (tmp_path / "runs").rglob("*") if each.is_file())
    for secret in (SECRET, *issuer.issued):
        assert secret not in seen + written + caplog.text


def test_controllers_that_take_tokens_are_read_and_one_that_refuses_is_reported(lab, file, issuer):
    """One connection per node, each with the token of the profile."""
    (node,) = lab.servers.brokers
    text = file.read_text(encoding="utf-8")
    file.write_text(f'{text}\n[clusters.lab.kraft]\ncontrollers = "{node.controller}"\n', encoding="utf-8")

    def ended(*words: str) -> Result:
        return CliRunner().invoke(app, [*words, "--profile-file", str(file)], env={"COLUMNS": "160"})

    status = ended("kraft", "status")
    assert status.exit_code == 0, status.output
    assert f"controller {node.broker_id} leads" in status.output
    rows = json.loads(ended("connect", "--json").stdout)
    assert [row["state"] for row in rows if row["component"] == f"controller {node.controller}"] == ["ok"] * 3
    provider_of.cache_clear()
    issuer.claims = {"aud": "billing"}
    refused = ended("kraft", "status")
    assert (refused.exit_code, "audience billing" in refused.output) == (AuthenticationFailed.exit_code, True)
    assert not any(token in status.output + refused.output for token in (SECRET, *issuer.issued))


def test_two_profiles_of_one_process_log_in_as_two_users(lab, profile, issuer):
    """The one sees a topic, the other sees none."""
    other = replace(profile.security.kafka, client_id="bob")
    bob = replace(profile, security=replace(profile.security, kafka=other))
    with connect(profile, SECONDS) as first, connect(bob, SECONDS) as second:
        for _ in range(2):
            seen = [
                {row.topic for row in fetch_metadata(each.broker_client).topic_partitions} for each in (first, second)
            ]
            assert (TOPIC in seen[0], seen[1]) == (True, set())


def test_tokens_end_in_the_midst_of_a_run(lab, profile, issuer, tmp_path):
    issuer.life_s = 3.0
    with connect(profile, SECONDS) as cluster:
        committed(lab, "short-lived")
        site = OffsetOperations(cluster, tmp_path)
        options = PlanOptions(made_by="ann", now=datetime.now(UTC), allow_backwards=True)
        plan = plan_reset(cluster, "kafka", select(groups="short-lived"), Reset("offset", 40), options)
        first = len(issuer.issued)

        def is_renewed_twice() -> bool:
            cluster.confirmed_id()
            return len(issuer.issued) >= first + 2

        site.run(plan, when_acting(lambda: wait_until(is_renewed_twice, "two renewals", SECONDS))).act()
        assert site.offsets("kafka", "short-lived") == at(40, 40)


def test_an_issuer_that_is_away_is_named_when_the_last_token_has_ended(profile, issuer):
    issuer.life_s = 2.0
    with connect(profile, SECONDS) as cluster:
        issuer.is_down = True

        def has_failed() -> bool:
            try:
                cluster.confirmed_id()
            except ConnectError as error:
                return "HTTP 503" in str(error)
            return False

        wait_until(has_failed, "the failure", SECONDS)


def test_a_login_that_is_refused_in_the_midst_of_a_run_is_distinguished_from_other_refusals(profile, issuer):
    issuer.life_s = 2.0
    with connect(profile, SECONDS) as cluster:
        issuer.claims = {"aud": "billing"}

        def refused() -> type[Exception] | None:
            try:
                cluster.confirmed_id()
            except (ConnectError, ReadError) as error:
                return type(error)
            return None

        assert awaited(refused, bool, "the refusal") is AuthenticationFailed


def test_records_are_read_by_librdkafka_with_the_same_token(lab, profile, issuer):
    with connect(profile, SECONDS):
        consumer = Consumer(librdkafka_settings(profile) | {"group.id": "not-committed"})
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        wait_until(lambda: consumer.consume(10, 0.2), "records", SECONDS)
        consumer.close()
    assert len(issuer.issued[-1:]) == 1
    assert provider_of(profile.security.kafka).token().value == issuer.issued[-1]


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"aud": "billing"}, "audience billing"),
        ({"iss": "https://other.test"}, "issuer https://other.test"),
        ({"exp": time.time() - 60}, "The token ended at"),
        ({"iat": int(time.time()) + 9000, "exp": time.time() + 9999}, "The token is valid from"),
    ],
)
def test_a_token_that_is_refused_is_described_and_not_shown(profile, issuer, claims, said):
    issuer.claims = claims
    with pytest.raises(AuthenticationFailed, match=said) as caught:
        connect(profile, SECONDS)
    assert not any(token in str(caught.value) for token in issuer.issued)


def test_a_wrong_client_secret_is_reported(profile, monkeypatch):
    monkeypatch.setenv("CLIENT_SECRET", "not-it")
    with pytest.raises(AuthenticationFailed, match=r"refused client 'ann' \(HTTP 401, invalid_client\)") as caught:
        connect(profile, SECONDS)
    assert "not-it" not in str(caught.value)


def from_file(token: str, folder: Path) -> str:
    (folder / "token").write_text(token)
    return 'token = { file = "token" }\n'


def from_variable(token: str, folder: Path) -> str:
    return 'token = { env = "TOKEN" }\n'


def from_command(token: str, folder: Path) -> str:
    (folder / "printed").write_text(f"{token}\n")
    return f'token_command = ["cat", "{folder / "printed"}"]\n'


@pytest.mark.parametrize("source", [from_file, from_variable, from_command])
def test_a_token_of_another_program_logs_in(
    lab: SaslLab,
    issuer: Issuer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: Callable[[str, Path], str],
) -> None:
    token = issuer.token(USER)
    monkeypatch.setenv("TOKEN", token)
    path = tmp_path / "offramp.toml"
    path.write_text(lab.sasl_profile("OAUTHBEARER", source(token, tmp_path)), encoding="utf-8")
    with connect(load_profile(file=path), SECONDS) as cluster:
        assert cluster.cluster_id == lab.cluster_id
