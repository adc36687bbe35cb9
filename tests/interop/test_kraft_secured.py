"""To KRaft and back behind TLS, SASL and access lists, with an enciphered password among the dynamic settings.

Two brokers that call each other by SASL_SSL with SCRAM, one or three controllers with PLAIN, a ZooKeeper
that keeps what nodes write to them (``zookeeper.set.acl``); one of every kind of metadata, and a producer. A broker's
key store has a password that only the encoder secret opens: the certificate that the broker shows proves it was read.
With Kerberos all of them, ZooKeeper too, and offramp log in by tickets.
``make soak``.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, pkcs12

from kit.errors import UnsafePlan
from kit.lab import Lab, topics
from kit.lab.entities import alter_config, done, make_one_of_everything
from kit.lab.lab import PROTECTED_GROUP
from kit.lab.servers.migrating import connected, json_at
from kit.lab.servers.security import USER
from tests.interop.kraft_logins import LABS
from tests.interop.kraft_scene import OVERRIDES, KraftScene
from tests.servers.realm import missing
from tests.soak import soak_only

pytestmark = [
    soak_only,
    pytest.mark.timeout(900),
]
OTHER_PASSWORD = "opens-the-other-store"
PREFIX = "listener.name.ssl.ssl.keystore."
ENCIPHERED = f"{PREFIX}password"
CLUSTER_RIGHTS = (AclOperation.CLUSTER_ACTION, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)


@dataclass
class SecuredMove(KraftScene):
    """After each run also the access lists, the certificate that broker 1 showed, and the password that is stored."""

    lists: dict[str, dict[str, list[tuple[str, str, int]]]] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)

    def look(self, moment: str) -> None:
        super().look(moment)
        host, _, port = self.lab.migration.migrating[0].addresses["SSL"].partition(":")
        self.shown[moment] = ssl.get_server_certificate((host, int(port)), timeout=20)
        self.lists[moment] = self.access_lists(self.dumps[moment])
        with connected(self.lab.zookeeper_connect, self.lab.security) as client:
            self.stored[moment] = json_at(client, "/config/brokers/1")["config"][ENCIPHERED]


def admin_of(lab: Lab) -> AdminClient:
    return AdminClient({**topics.QUIET, "bootstrap.servers": lab.servers.addresses()})


def give_rights(lab: Lab) -> None:
    """To the profile's user: by ACLs on brokers; controllers know those only after the copy."""
    lab.migration.quorum.super_users = (*lab.migration.quorum.super_users, USER)
    literal, principal, allow = ResourcePatternType.LITERAL, f"User:{USER}", AclPermissionType.ALLOW
    on_cluster = (ResourceType.BROKER, "kafka-cluster", literal, principal, "*")
    on_topics = (ResourceType.TOPIC, "*", literal, principal, "*")
    wanted = [AclBinding(*on_cluster, each, allow) for each in CLUSTER_RIGHTS]
    wanted += [AclBinding(*on_topics, each, allow) for each in CLUSTER_RIGHTS[1:]]
    admin = admin_of(lab)
    done(admin.create_acls(wanted), "ACL")


def other_store(lab: Lab) -> str:
    """Another key and certificate, of the same name, in a store with a password of its own: broker 1 shows it."""
    pem = ssl.get_server_certificate(tuple(lab.migration.migrating[0].addresses["SSL"].split(":")), timeout=20)
    like = x509.load_pem_x509_certificate(pem.encode())
    key, now = rsa.generate_private_key(public_exponent=65537, key_size=2048), datetime.now(UTC)
    made = x509.CertificateBuilder(like.subject, like.subject, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=30))
    for each in (like.extensions.get_extension_for_class(x509.SubjectAlternativeName),):
        made = made.add_extension(each.value, critical=False)
    certificate = made.sign(key, hashes.SHA256())
    file = lab.folder / "other.p12"
    sealed = BestAvailableEncryption(OTHER_PASSWORD.encode())
    file.write_bytes(pkcs12.serialize_key_and_certificates(b"other", key, certificate, None, sealed))
    values = {f"{PREFIX}location": str(file), f"{PREFIX}type": "PKCS12", ENCIPHERED: OTHER_PASSWORD}
    alter_config(admin_of(lab), ConfigResource.Type.BROKER, "1", values)
    return certificate.public_bytes(Encoding.PEM).decode()


def refuse_a_stranger(scene: KraftScene) -> None:
    """Plan with a profile whose session of ZooKeeper is not the brokers'."""
    text = scene.file.read_text(encoding="utf-8")
    before, section, keys = text.partition("[clusters.lab.security.zookeeper]")
    own, bracket, after = keys.partition("\n[")
    lines = [before + section, *(each for each in own.splitlines() if each.startswith("digest")), bracket + after]
    overrides = [word for name in OVERRIDES["controllers"] for word in ("--override", name)]
    scene.file.write_text("\n".join(lines), encoding="utf-8")
    scene.refuse("a stranger", UnsafePlan, "plan", "kraft", "--to", "controllers", *overrides)
    scene.file.write_text(text, encoding="utf-8")


WALKS = [
    pytest.param((1, "SCRAM"), id="1 controller"),
    *(
        pytest.param((3, login), id=f"3 controllers, {login}", marks=marks)
        for login, marks in {
            "SCRAM": (),
            "Kerberos": pytest.mark.skipif(bool(missing()), reason=missing()),
        }.items()
    ),
]


@pytest.fixture(scope="module", params=WALKS)
def scene(request: pytest.FixtureRequest) -> Iterator[SecuredMove]:
    """``noted``: the certificate in the store that only the enciphered password opens."""
    controllers, login = request.param
    with LABS[login](controllers) as lab, pytest.MonkeyPatch.context() as environment:
        for name, secret in lab.secrets.items():
            environment.setenv(name, secret)
        make_one_of_everything(lab.migration, lab.security.password)
        give_rights(lab)
        seen = SecuredMove(lab)
        seen.noted["other"] = other_store(lab)
        refuse_a_stranger(seen)
        with connected(lab.zookeeper_connect, lab.security) as client:  # Its member appears alive.
            client.delete(f"/consumers/{PROTECTED_GROUP}", recursive=True)
        lab.create_topic("work", 2, 2)
        producer = lab.start_producer("work", 50)
        seen.look("before")
        for phase in ("controllers", "dual write", "kraft"):
            seen.go(phase)
            seen.look(phase)
        topics.create(admin_of(lab), {"born": 1}, 2)
        seen.go("zookeeper")
        seen.look("zookeeper")
        producer.stop()
        seen.read_back("work", 2)
        yield seen


def _born(paths) -> set[str]:
    return {path for path in paths if path.startswith(("/brokers/topics/born", "/config/topics/born"))}


def test_each_run_ends_in_its_phase_and_nothing_contradicts_it(scene):
    assert scene.phases == {
        "before": "zookeeper",
        **{each: each for each in ("controllers", "dual write", "kraft", "zookeeper")},
    }
    assert scene.serious("zookeeper") == []


def test_after_the_rollback_zookeeper_is_as_before_but_for_leaders_and_epochs(scene):
    born = _born(scene.dumps["zookeeper"])
    assert len(born) >= 4
    changed = scene.changed("before", "zookeeper")
    assert {path: held for path, held in changed.items() if path not in born} == {}


def test_access_lists_are_as_before(scene):
    before, after = scene.lists["before"], scene.lists["zookeeper"]
    assert {path: (acl, after[path]) for path, acl in before.items() if after[path] != acl} == {}
    assert before["/config/users/alice"] == [("sasl", "kafka", 31)]
    assert before["/brokers/topics/orders"] == [("sasl", "kafka", 31), ("world", "anyone", 1)]


def test_znodes_that_kraft_made_have_the_lists_that_brokers_give(scene):
    lists = scene.lists["zookeeper"]
    assert {tuple(lists[path]) for path in _born(lists)} == {tuple(lists["/brokers/topics/orders"])}


def test_the_enciphered_password_is_read_in_every_mode(scene):
    assert all("encryptedPassword:" in each for each in scene.stored.values())
    assert OTHER_PASSWORD not in "".join(scene.stored.values())
    assert scene.shown == dict.fromkeys(scene.statuses, scene.noted["other"])


def test_a_stranger_to_zookeeper_is_refused_before_anything_begins(scene):
    told = scene.refusals["a stranger"]
    assert "zookeeper_writes: offramp's session of ZooKeeper (digest:alice, ip:127.0.0.1) may not" in told
    assert "write /controller_epoch" in told
    assert "zookeeper_sees" in told


def test_no_acknowledged_record_is_lost(scene, record_property):
    scene.report(record_property)
    assert scene.n_acknowledged > 1000
    assert scene.lost == set()


def test_no_secret_was_reported(scene):
    told = "".join(each.output for _, each in scene.ended)
    told += "".join(each.read_text() for each in scene.runs.glob("*/events.jsonl"))
    assert "dual write" in told
    assert [name for name, secret in scene.lab.secrets.items() if secret in told] == []
    assert OTHER_PASSWORD not in told
