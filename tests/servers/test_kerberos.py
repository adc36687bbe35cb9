"""Kerberos at ZooKeeper and at brokers, against a KDC of MIT Kerberos: a group is moved, and what can go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kit.cli.main import app
from kit.clients.cluster import connect, librdkafka_settings
from kit.errors import AuthenticationFailed, ConnectError, OfframpError, ProfileError, SetupError
from kit.lab.members.old_consumers import OldMember
from kit.lab.process import wait_until
from kit.moves.group.group_state import read_group_state
from kit.moves.group.plan import GroupPlanRequest
from kit.operations.operations import Operations
from kit.profile import Profile, load_profile
from kit.rebalances.offsets_topic.bounds import fetch_bounds
from kit.security.clients import librdkafka_has_kerberos
from kit.security.kerberos import KerberosLogin, credentials
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.coordinators import await_coordinator
from tests.servers.realm import KAFKA, REALM, USER, Realm, missing
from tests.servers.sasl_lab import OFFSETS, SaslLab, grant

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
TOPIC = "settlements"


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with Realm(tmp_path_factory.mktemp("realm")) as running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        # All JVMs that the lab starts, those of old consumers too.
        patch.setenv("JAVA_TOOL_OPTIONS", " ".join(running.options))
        yield running


@pytest.fixture(scope="module")
def lab(realm: Realm) -> Iterator[SaslLab]:
    """ZooKeeper takes no session without Kerberos."""
    zookeeper = {
        "authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "sessionRequireClientSASLAuth": "true",
    }
    with SaslLab(realm.kafka_login(), zookeeper=zookeeper) as running:
        await_coordinator(running)
        grant(running, USER, *OFFSETS)
        running.create_topic(TOPIC, 4)
        yield running


def login(realm: Realm, principal: str = USER) -> str:
    return f'principal = "{principal}@{REALM}"\nkeytab = "{realm.keytab(principal)}"'


def written(lab: SaslLab, kafka: str, zookeeper: str) -> Path:
    file = lab.folder / "offramp.toml"
    file.write_text(lab.sasl_profile("GSSAPI", kafka, f'mechanism = "GSSAPI"\n{zookeeper}'), encoding="utf-8")
    return file


@pytest.fixture
def file(lab: SaslLab, realm: Realm) -> Path:
    """Old consumers that log in close their znodes to all other principals, so ZooKeeper's login is theirs."""
    return written(lab, login(realm), login(realm, KAFKA))


@pytest.fixture
def profile(file: Path) -> Profile:
    return load_profile(file=file)


def test_a_group_is_moved_to_kafka_and_back(lab: SaslLab, profile: Profile, file: Path, tmp_path: Path) -> None:
    """Old consumers come to ZooKeeper by Kerberos too, in Java by JAAS, in Python by the profile."""
    lab.member_profile = file
    lab.start_old_consumers([OldMember("settling", TOPIC), OldMember("settling", TOPIC)], "1.1.1")
    producer = lab.start_producer(TOPIC, 50)
    with connect(profile, SECONDS) as cluster:
        operations = Operations(cluster, tmp_path / "runs")
        for stage in ("all KC", "OZKCC"):
            request = GroupPlanRequest("settling", stage, soak_s=2.0, min_stable_s=0.0, observe_s=1.0)
            plan = operations.make_plan(request)
            operations.approve(plan, plan.subject, plan.digest[:8], "second person")
            operations.begin(plan).act().raise_unless()
            assert read_group_state(cluster, "settling").counts == {stage.removeprefix("all "): 2}
    producer.stop()


def test_tickets_of_kinit_log_in_as_a_keytab_does(lab: SaslLab, realm: Realm, tmp_path: Path) -> None:
    realm.tickets(tmp_path / "cache")
    cache = f'ticket_cache = "FILE:{tmp_path / "cache"}"'
    with connect(load_profile(file=written(lab, cache, cache)), SECONDS) as cluster:
        assert cluster.cluster_id == lab.cluster_id


def test_a_verb_that_needs_librdkafka_says_at_once_that_its_wheel_lacks_kerberos(file: Path, profile: Profile) -> None:
    if librdkafka_has_kerberos():
        pytest.skip("this build of confluent-kafka has Kerberos")
    with pytest.raises(SetupError, match="built without Kerberos"):
        librdkafka_settings(profile)
    with pytest.raises(SetupError, match="built without Kerberos"):
        fetch_bounds(profile, "__consumer_offsets", None)
    done = CliRunner().invoke(app, ["rebalances", "--group", "settling", "--profile-file", str(file)])
    assert "Spark" not in done.output
    assert done.exit_code == SetupError.exit_code, done.output
    assert "built without Kerberos" in done.output


def wrong(realm: Realm, folder: Path) -> Iterator[tuple[KerberosLogin, type[OfframpError], str]]:
    keytab = realm.keytab(USER)
    yield KerberosLogin("kafka", USER, folder / "none"), ProfileError, "can't be read"
    yield KerberosLogin("kafka", "other", keytab), AuthenticationFailed, "has no key of other"
    cache = f"FILE:{folder / 'none'}"
    yield KerberosLogin("kafka", None, None, cache), AuthenticationFailed, "There are no tickets"
    realm.tickets(folder / "short", "1s")
    short = f"FILE:{folder / 'short'}"
    awaited(lambda: is_expired(short), bool, "the end of the tickets")
    yield KerberosLogin("kafka", None, None, short), AuthenticationFailed, "have expired. Get new ones: kinit"


def is_expired(cache: str) -> bool:
    try:
        credentials(KerberosLogin("kafka", None, None, cache))
    except AuthenticationFailed:
        return True
    return False


def test_what_is_wrong_with_a_ticket_or_a_key_is_said(realm: Realm, tmp_path: Path) -> None:
    for login_at, kind, said in wrong(realm, tmp_path):
        with pytest.raises(kind, match=said):
            credentials(login_at)


def test_a_service_that_the_kdc_does_not_know_is_named(lab: SaslLab, realm: Realm) -> None:
    file = written(lab, f'service_name = "broker"\n{login(realm)}', login(realm))
    with pytest.raises(AuthenticationFailed, match=r"does not know the service broker/127\.0\.0\.1"):
        connect(load_profile(file=file), SECONDS)


def test_a_login_at_zookeeper_that_it_can_not_check_is_refused(lab: SaslLab, realm: Realm) -> None:
    file = written(lab, login(realm), f'service_name = "kafka"\n{login(realm)}')
    with pytest.raises((AuthenticationFailed, ConnectError), match="ZooKeeper"):
        connect(load_profile(file=file), 5)


def test_a_kdc_that_is_down_is_named_and_tickets_in_hand_are_used(lab: SaslLab, realm: Realm, profile: Profile) -> None:
    with connect(profile, SECONDS) as cluster:
        realm.stop_kdc()
        try:
            assert cluster.confirmed_id() == lab.cluster_id
            unknown = KerberosLogin("kafka", USER, realm.keytab(USER))  # a cache of its own
            with pytest.raises(ConnectError, match="No KDC answered"):
                credentials(unknown)
        finally:
            realm.start_kdc()
    wait_until(lambda: credentials(KerberosLogin("kafka", USER, realm.keytab(USER))), "tickets", SECONDS)
