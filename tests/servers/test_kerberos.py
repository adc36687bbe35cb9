"""Kerberos at ZooKeeper and at brokers, against a KDC of MIT Kerberos: a group is moved, and what can go wrong."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from kazoo.client import KazooClient
from kazoo.security import make_acl
from typer.testing import CliRunner

from kit.cli.main import app
from kit.clients.cluster import connect, librdkafka_settings
from kit.clients.connections import check_connections
from kit.clients.zookeeper_rights import fetch_identities
from kit.errors import AuthenticationFailed, ConnectError, OfframpError, PartialRead, ProfileError, SetupError
from kit.lab import topics
from kit.lab.entities import done
from kit.lab.members.old_consumers import OldMember
from kit.lab.ports import free_ports
from kit.lab.process import wait_until
from kit.lab.servers.cluster import Servers
from kit.lab.servers.kafka import Broker
from kit.lab.servers.security import SCRAM_ITERATIONS, Security
from kit.moves.group.group_state import read_group_state
from kit.moves.group.plan import GroupPlanRequest
from kit.operations.operations import Operations
from kit.profile import Profile, load_profile
from kit.profile.security.clients import librdkafka_has_kerberos
from kit.profile.security.kerberos import KerberosLogin, credentials
from kit.rebalances.offsets_topic.bounds import fetch_bounds
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.coordinators import await_coordinator, commit, committed
from tests.servers.offset_operations import OffsetOperations
from tests.servers.offset_verbs import OffsetVerbs
from tests.servers.realm import KAFKA, PEER, REALM, USER, Realm, missing
from tests.servers.sasl_lab import FIRST_LOCK, MODULES, OFFSETS, SaslLab, grant
from tests.soak import first, soak_only

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
TOPIC, SCRAM = "settlements", "SCRAM-SHA-512"


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with Realm(tmp_path_factory.mktemp("realm")) as running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        # All JVMs that the lab starts, those of old consumers too.
        patch.setenv("JAVA_TOOL_OPTIONS", " ".join(running.options))
        yield running


class TlsLab(SaslLab):
    """Two brokers with a third listener, SASL_SSL, by which they call each other. The second takes passwords too."""

    def __init__(self, realm: Realm, **shape: Any) -> None:
        passwords = {SCRAM: {"sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;"}}
        super().__init__({**realm.kafka_login(), **passwords}, brokers=2, **shape)
        self._between = realm.jaas_config(PEER)

    def _servers(self) -> Servers:
        self.certificates = Security(self.folder)
        self.certificates.make_certificates()
        return super()._servers()

    def _settings_of(self, broker: Broker) -> dict[str, str]:
        broker.addresses["SASL_SSL"] = f"localhost:{free_ports(1)[0]}"
        return {
            "listeners": f"{broker.added['listeners']},SASL_SSL://{broker.addresses['SASL_SSL']}",
            "listener.security.protocol.map": f"{broker.added['listener.security.protocol.map']},SASL_SSL:SASL_SSL",
            "listener.name.sasl_ssl.sasl.enabled.mechanisms": "GSSAPI",
            "listener.name.sasl_ssl.gssapi.sasl.jaas.config": self._between,
            "listener.name.sasl_ssl.gssapi.connections.max.reauth.ms": "4000",
            "inter.broker.listener.name": "SASL_SSL",
            "sasl.mechanism.inter.broker.protocol": "GSSAPI",
            "super.users": f"{broker.added['super.users']};User:kafka",
            **self.certificates.store_settings(),
        }


@pytest.fixture(scope="module")
def lab(realm: Realm) -> Iterator[TlsLab]:
    """ZooKeeper takes no session without Kerberos."""
    zookeeper = {
        "authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "sessionRequireClientSASLAuth": "true",
    }
    with TlsLab(realm, zookeeper=zookeeper) as running:
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


def test_a_verb_that_needs_librdkafka_reports_at_once_that_its_wheel_lacks_kerberos(
    file: Path, profile: Profile
) -> None:
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


def skewed(cache: Path, seconds: int) -> None:
    """Let libkrb5 think that the KDC's clock is ahead: the header of a cache (format 4) keeps the difference."""
    octets = bytearray(cache.read_bytes())
    version, _, tag, length, offset_s = struct.unpack_from(">HHHHi", octets)
    assert (version, tag, length) == (0x0504, 1, 8)
    struct.pack_into(">i", octets, 8, offset_s + seconds)
    cache.write_bytes(octets)


def wrong_profiles(realm: Realm, folder: Path) -> Iterator[tuple[str, str, type[OfframpError], str]]:
    """Lines of ``security.kafka``, the layer that fails, its error, and what is said."""
    keytab, layer = realm.keytab(USER), "tickets"
    (folder / "closed.keytab").mkdir()  # Root, which may read every file, can't read it either.
    unreadable = f'principal = "{USER}@{REALM}"\nkeytab = "{folder / "closed.keytab"}"'
    yield unreadable, layer, ProfileError, "can't be read"
    (folder / "text.keytab").write_text("no key")
    no_keytab = unreadable.replace("closed.keytab", "text.keytab")
    yield no_keytab, layer, ProfileError, "security.kafka.keytab: "
    other = f'principal = "other@{REALM}"\nkeytab = "{keytab}"'
    yield other, layer, AuthenticationFailed, "has no key of other"
    yield f'ticket_cache = "FILE:{folder / "none"}"', layer, AuthenticationFailed, "There are no tickets"
    realm.tickets(folder / "short", "1s")
    awaited(lambda: is_expired(f"FILE:{folder / 'short'}"), bool, "the end of the tickets")
    yield f'ticket_cache = "FILE:{folder / "short"}"', layer, AuthenticationFailed, "have expired. Get new ones: kinit"
    service = f'service_name = "broker"\n{login(realm)}'
    yield service, "login", AuthenticationFailed, "does not know the service broker/127.0.0.1"
    realm.tickets(folder / "skewed")
    skewed(folder / "skewed", 900)
    yield (
        f'ticket_cache = "FILE:{folder / "skewed"}"',
        "login",
        AuthenticationFailed,
        "differ by more than 5 min. Correct the clock",
    )


def test_connect_reports_what_is_wrong_with_kerberos(lab: SaslLab, realm: Realm, tmp_path: Path) -> None:
    for lines, layer, kind, said in wrong_profiles(realm, tmp_path):
        file = written(lab, lines, login(realm))
        rows = [row for row in check_connections(load_profile(file=file), 10) if row.state == "failed"]
        assert (rows[0].tried, rows[0].error, said in rows[0].sentence) == (layer, kind.__name__, True), rows
        done = CliRunner().invoke(app, ["connect", "--profile-file", str(file)])
        assert done.exit_code == kind.exit_code, done.output


def test_connect_reports_that_no_kdc_answers(lab: SaslLab, realm: Realm, tmp_path: Path) -> None:
    keytab = tmp_path / "own.keytab"  # With a ticket cache of its own in this process.
    keytab.write_bytes(realm.keytab(USER).read_bytes())
    lines = f'principal = "{USER}@{REALM}"\nkeytab = "{keytab}"'
    realm.stop_kdc()
    try:
        rows = check_connections(load_profile(file=written(lab, lines, lines)), 10)
    finally:
        realm.start_kdc()
    tickets = [row for row in rows if row.tried == "tickets"]
    assert [(row.error, "No KDC answered" in row.sentence) for row in tickets] == [("ConnectError", True)] * 2


def test_offsets_are_read_reset_and_put_back_by_the_verbs(
    lab: SaslLab, file: Path, profile: Profile, tmp_path: Path
) -> None:
    lab.produce(TOPIC, 200)
    commit(lab, "by-kerberos", TopicPartition(TOPIC, 0, 10))
    verbs = OffsetVerbs(file, tmp_path / "runs")
    assert "ApiVersions" in verbs.typed("kraft", "status")
    verbs.reset("by-kerberos", 20)
    with connect(profile, SECONDS) as cluster:
        site = OffsetOperations(cluster, tmp_path)
        assert site.offsets("kafka", "by-kerberos") == {(TOPIC, 0): 20}
        verbs.undo()
        assert site.offsets("kafka", "by-kerberos") == {(TOPIC, 0): 10}


@soak_only
def test_brokers_without_zookeeper_are_read_and_written_by_kerberos(realm: Realm, tmp_path: Path) -> None:
    """Kafka 4.4: the lock of the run is in Kafka, so its connections log in by tickets too."""
    with SaslLab(realm.kafka_login(), kraft=True) as lab:
        await_coordinator(lab)
        grant(lab, USER, *OFFSETS, FIRST_LOCK)
        lab.create_topic(TOPIC, 1)
        lab.produce(TOPIC, 40)
        commit(lab, "today", TopicPartition(TOPIC, 0, 10))
        file = tmp_path / "today.toml"
        file.write_text(lab.sasl_profile("GSSAPI", login(realm)), encoding="utf-8")
        verbs = OffsetVerbs(file, tmp_path / "runs")
        assert "today" in verbs.typed("groups")
        verbs.reset("today", 20)
        assert committed(lab, "today", TopicPartition(TOPIC, 0)) == [20]
        verbs.undo()
        assert committed(lab, "today", TopicPartition(TOPIC, 0)) == [10]


def test_each_component_has_a_login_of_its_own(
    lab: SaslLab, realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ZooKeeper by Kerberos, brokers by SCRAM; their rights are of two names."""
    how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, SCRAM_ITERATIONS)
    done(lab.admin.alter_user_scram_credentials([UserScramCredentialUpsertion("dora", how, b"by-password")]), "SCRAM")
    grant(lab, "dora", *OFFSETS)
    commit(lab, "by-both", TopicPartition(TOPIC, 0, 0))
    lab.produce(TOPIC, 40)
    monkeypatch.setenv("DORAS_PASSWORD", "by-password")
    file = tmp_path / "both.toml"
    kafka, zookeeper = 'username = "dora"\npassword = { env = "DORAS_PASSWORD" }', login(realm, KAFKA)
    file.write_text(lab.sasl_profile(SCRAM, kafka, f'mechanism = "GSSAPI"\n{zookeeper}'), encoding="utf-8")
    rows = check_connections(load_profile(file=file), 10)
    assert [row for row in rows if row.state == "failed"] == []
    verbs = OffsetVerbs(file, tmp_path / "runs")
    assert "ApiVersions" in verbs.typed("kraft", "status")
    verbs.reset("by-both", 3)
    assert committed(lab, "by-both", TopicPartition(TOPIC, 0)) == [3]
    verbs.undo()
    assert committed(lab, "by-both", TopicPartition(TOPIC, 0)) == [0]


def over_tls(lab: TlsLab, realm: Realm, kafka: str, folder: Path) -> Path:
    """A profile of the third listener."""
    text = written(lab, kafka, login(realm, KAFKA)).read_text(encoding="utf-8")
    for plain, secured in (
        (lab.servers.addresses("SASL_PLAINTEXT"), lab.servers.addresses("SASL_SSL")),
        ('protocol = "SASL_PLAINTEXT"', f'protocol = "SASL_SSL"\nca_file = "{lab.certificates.file("ca.pem")}"'),
    ):
        text = text.replace(plain, secured)
    file = folder / "offramp.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_tickets_that_end_while_connected_are_named(lab: TlsLab, realm: Realm, tmp_path: Path) -> None:
    """The broker asks for a new login before the session ends, and the tickets of kinit are renewed by nobody."""
    realm.tickets(tmp_path / "cache")
    cache = f'ticket_cache = "FILE:{tmp_path / "cache"}"'
    with connect(load_profile(file=over_tls(lab, realm, cache, tmp_path)), SECONDS) as cluster:
        realm.tickets(tmp_path / "cache", "1s")

        def refusal() -> OfframpError | None:
            try:
                cluster.confirmed_id()
            except OfframpError as error:
                return error
            return None

        error = awaited(refusal, bool, "the end of the tickets")
    assert isinstance(error, AuthenticationFailed), repr(error)
    assert "have expired. Get new ones: kinit" in str(error)


def test_offsets_are_reset_over_tls_on_brokers_that_call_each_other_by_kerberos(
    lab: TlsLab, realm: Realm, tmp_path: Path
) -> None:
    """The follower fetches by its own ticket: the record that two brokers acknowledged proves it."""
    lab.create_topic("over-tls", 1, 2)
    lab.produce("over-tls", 50)
    wait_until(lambda: topics.all_in_sync(lab.admin, 2), "both replicas in sync", SECONDS)
    commit(lab, "over-tls", TopicPartition("over-tls", 0, 10))
    file = over_tls(lab, realm, login(realm), tmp_path)
    assert [row for row in check_connections(load_profile(file=file), SECONDS) if row.state == "failed"] == []
    verbs = OffsetVerbs(file, tmp_path / "runs")
    verbs.reset("over-tls", 20)
    with connect(load_profile(file=file), SECONDS) as cluster:
        site = OffsetOperations(cluster, tmp_path)
        assert site.offsets("kafka", "over-tls") == {("over-tls", 0): 20}
        verbs.undo()
        assert site.offsets("kafka", "over-tls") == {("over-tls", 0): 10}


PLAN = ("plan", "group", "-g", "settling", "--to", "canary MEZKCC")
ZNODES = {
    "/consumers": (
        ("groups",),
        ("lag",),
        ("watch", "--count", "1"),
        ("ownership",),
        ("export", "--once", "--no-times"),
        PLAN,
    ),
    "/brokers/topics": (("groups",), ("lag",), ("readiness",), ("ownership",), ("kraft", "status"), PLAN),
    "/cluster/id": (("lock", "show"), ("groups",), ("kraft", "status"), ("znodes", "--path", "/consumers")),
    "/offramp/cluster_locks": (("lock", "show"),),
    "/offramp/locks": (("lock", "show"),),
    "/brokers/ids": (("groups",), ("readiness",), ("kraft", "status"), PLAN),
    "/controller": (("groups",), ("kraft", "status"), PLAN),
}
"""The rights of docs/security.md in ZooKeeper: a znode that is closed to the login → verbs that read it."""


@pytest.mark.parametrize("path", ZNODES)
def test_each_znode_that_the_login_may_not_read_is_named(
    lab: SaslLab, realm: Realm, profile: Profile, tmp_path: Path, path: str
) -> None:
    file = tmp_path / "offramp.toml"
    file.write_text(written(lab, login(realm), login(realm)).read_text())
    with connect(profile, SECONDS) as cluster, closed_to_others(cluster.zookeeper, path):
        for words in first(ZNODES[path]):
            done = CliRunner().invoke(app, [*words, "--profile-file", str(file)])
            said = done.output.replace("\n", " ")
            kinds = (AuthenticationFailed, PartialRead, *([ConnectError] if words[0] == "plan" else []))
            assert done.exit_code in {each.exit_code for each in kinds}, (words, done.output)
            assert (path.lstrip("/") in said, "the right READ there" in " ".join(said.split())) == (True, True), said


@contextmanager
def closed_to_others(client: KazooClient, path: str) -> Iterator[None]:
    """Only the principal of this session, the brokers' own, may do anything with the znode."""
    (own,) = [name for scheme, name in fetch_identities(client) if scheme == "sasl"]
    client.ensure_path(path)
    before, _ = client.get_acls(path)
    client.set_acls(path, [make_acl("sasl", own, all=True)])
    try:
        yield
    finally:
        client.set_acls(path, before)


def is_expired(cache: str) -> bool:
    try:
        credentials(KerberosLogin("kafka", None, None, cache))
    except AuthenticationFailed:
        return True
    return False


def test_a_problem_of_a_ticket_or_a_key_is_reported(realm: Realm, tmp_path: Path) -> None:
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
