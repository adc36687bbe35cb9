"""A certificate, a key or an authority of the profile that can't be used: one error of the profile, in each client."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kit.cli.main import app
from kit.clients.cluster import kafka_settings, librdkafka_settings, zookeeper_settings
from kit.errors import ProfileError
from kit.profile import Profile, load_profile
from kit.profile.security.secret import SecretReference
from kit.profile.security.settings import KafkaSecurity, Security, ZookeeperSecurity
from kit.profile.security.tls_files import client_context
from kit.profile.security.token_sources import source_of
from tests.generators.certificates import certificate

PASSPHRASE = "opens-it"


def put(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def part(path: Path, which: int) -> bytes:
    """The certificate (0) or the key (1) of a file with both."""
    at = path.read_bytes().index(b"-----BEGIN", 1)
    return path.read_bytes()[:at] if which == 0 else path.read_bytes()[at:]


def passphrase(folder: Path, text: str = PASSPHRASE) -> SecretReference:
    return SecretReference(file=put(folder, "passphrase", text.encode()))


def as_binary(path: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(part(path, 0).decode())


def cut(path: Path) -> bytes:
    return part(path, 0).replace(b"\n", b"\nAAAA", 3)


WRONG: dict[str, tuple[Callable[[Path], dict[str, Any]], str, str]] = {
    "an authority that is absent": (lambda at: {"ca_file": at / "no.pem"}, "ca_file", "No such file"),
    "an authority that is a folder": (lambda at: {"ca_file": at}, "ca_file", "not a regular file"),
    "an empty authority": (
        lambda at: {"ca_file": put(at, "ca.pem", b" \n")},
        "ca_file",
        "holds nothing; expected cert",
    ),
    "a Java key store": (
        lambda at: {"ca_file": put(at, "trust.jks", b"\xfe\xed\xfe\xed\0\0")},
        "ca_file",
        "holds a Java key store",
    ),
    "a binary authority": (
        lambda at: {"ca_file": put(at, "ca.der", as_binary(certificate(at)))},
        "ca_file",
        "holds binary data",
    ),
    "a damaged authority": (
        lambda at: {"ca_file": put(at, "ca.pem", cut(certificate(at)))},
        "ca_file",
        "holds a damaged certificate",
    ),
    "a key as authority": (
        lambda at: {"ca_file": put(at, "ca.pem", part(certificate(at), 1))},
        "ca_file",
        "holds a private key; expected certificates in PEM",
    ),
    "an authority that ended": (
        lambda at: {"ca_file": certificate(at, -1)},
        "ca_file",
        "every certificate in .* has expired",
    ),
    "a certificate that is absent": (
        lambda at: {"certificate_file": at / "no.pem"},
        "certificate_file",
        "No such file",
    ),
    "a key as certificate": (
        lambda at: {"certificate_file": put(at, "own.pem", part(certificate(at), 1))},
        "certificate_file",
        "holds a private key; expected a certificate",
    ),
    "a certificate without its key": (
        lambda at: {"certificate_file": put(at, "own.pem", part(certificate(at), 0))},
        "certificate_file",
        "expected a private key in PEM.*Set security.kafka.key_file",
    ),
    "a key that is absent": (
        lambda at: {"certificate_file": certificate(at), "key_file": at / "no.key"},
        "key_file",
        "No such file",
    ),
    "a certificate as key": (
        lambda at: {"certificate_file": certificate(at), "key_file": put(at, "own.key", part(certificate(at), 0))},
        "key_file",
        "holds certificates; expected a private key",
    ),
    "a damaged key": (
        lambda at: {
            "certificate_file": certificate(at),
            "key_file": put(at, "own.key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
        },
        "key_file",
        "is damaged",
    ),
    "another's key": (
        lambda at: {"certificate_file": certificate(at), "key_file": certificate(at / "other")},
        "key_file",
        "does not belong to the certificate in",
    ),
    "no passphrase": (
        lambda at: {"certificate_file": certificate(at, passphrase=PASSPHRASE)},
        "certificate_file",
        "is encrypted, and the profile gives no passphrase. Set security.kafka.key_password",
    ),
    "a wrong passphrase": (
        lambda at: {"certificate_file": certificate(at, passphrase="another"), "key_password": passphrase(at)},
        "certificate_file",
        "security.kafka.key_password does not open the key in",
    ),
    "another's key, and a passphrase": (
        lambda at: {
            "certificate_file": certificate(at),
            "key_file": certificate(at / "other", passphrase=PASSPHRASE),
            "key_password": passphrase(at),
        },
        "key_file",
        "does not belong to the certificate in",
    ),
    "a certificate that ended": (
        lambda at: {"certificate_file": certificate(at, -1)},
        "certificate_file",
        "expired at",
    ),
    "a certificate of tomorrow": (
        lambda at: {"certificate_file": certificate(at, starts_in_days=1)},
        "certificate_file",
        "is valid from",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_the_field_the_file_and_the_cause_are_named(tmp_path: Path, case: str) -> None:
    keys, field, said = WRONG[case]
    given = keys(tmp_path)
    with pytest.raises(ProfileError, match=said) as caught:
        client_context(KafkaSecurity(protocol="SSL", **given))
    assert str(caught.value).startswith(f"security.kafka.{field}: ")
    assert str(given[field]) in str(caught.value)
    assert PASSPHRASE not in str(caught.value)


def test_files_that_can_be_used_are_taken(tmp_path: Path) -> None:
    own, sealed = certificate(tmp_path), certificate(tmp_path / "sealed", passphrase=PASSPHRASE)
    both = put(tmp_path, "both.pem", part(own, 0) + part(certificate(tmp_path / "old", -1), 0))
    for keys in (
        {"ca_file": own},
        {"ca_file": both},  # One authority of the two is still valid.
        {"certificate_file": own, "key_file": own},
        {"certificate_file": own, "key_password": passphrase(tmp_path)},  # The key is not encrypted.
        {"certificate_file": sealed, "key_password": passphrase(tmp_path)},
    ):
        client_context(KafkaSecurity(protocol="SSL", **keys))
        client_context(ZookeeperSecurity(check_host_name=False, **keys))


def broken(folder: Path, section: str) -> Profile:
    file = folder / "offramp.toml"
    file.write_text(
        '[clusters.lab]\nbootstrap_servers = "127.0.0.1:1"\nzookeeper_connect = "127.0.0.1:1"\n'
        f'[clusters.lab.security.{section}]\nca_file = "no.pem"\n'
        + ('protocol = "SSL"\n' if section == "kafka" else ""),
        encoding="utf-8",
    )
    return load_profile(file=file)


@pytest.mark.parametrize(
    ("section", "settings"),
    [("kafka", kafka_settings), ("kafka", librdkafka_settings), ("zookeeper", zookeeper_settings)],
)
def test_each_client_gets_the_error_of_the_profile(tmp_path: Path, section: str, settings: Callable[..., Any]) -> None:
    with pytest.raises(ProfileError, match=rf"security\.{section}\.ca_file: .*no\.pem can't be read"):
        settings(broken(tmp_path, section))


def test_zookeeper_gets_a_certificate_whose_key_is_in_the_same_file(tmp_path: Path) -> None:
    """kazoo shows no certificate if it is given no file of the key."""
    own = certificate(tmp_path)
    security = Security(zookeeper=ZookeeperSecurity(certificate_file=own))
    given = zookeeper_settings(Profile(name="lab", file=tmp_path, bootstrap_servers="x:1", security=security))
    assert (given["certfile"], given["keyfile"]) == (str(own), str(own))


def test_verbs_end_as_with_any_bad_profile(tmp_path: Path) -> None:
    broken(tmp_path, "kafka")
    for words in (("groups",), ("lag",), ("kraft", "status"), ("lock", "show"), ("connect",)):
        done = CliRunner().invoke(app, [*words, "--profile-file", str(tmp_path / "offramp.toml")])
        assert done.exit_code == ProfileError.exit_code, done.output
        assert "security.kafka.ca_file" in done.output


def test_a_fifo_delays_no_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ca.pem")
    with pytest.raises(ProfileError, match="not a regular file"):
        client_context(KafkaSecurity(protocol="SSL", ca_file=tmp_path / "ca.pem"))


def test_a_key_without_a_certificate_is_refused(tmp_path: Path) -> None:
    for section in (KafkaSecurity, ZookeeperSecurity):
        for keys in ({"key_file": tmp_path}, {"key_password": SecretReference(env="S")}):
            with pytest.raises(ValueError, match="needs certificate_file"):
                section(**keys)


def test_the_authority_of_the_issuer_too(tmp_path: Path) -> None:
    login = KafkaSecurity(
        protocol="SASL_SSL",
        mechanism="OAUTHBEARER",
        token_url="https://127.0.0.1:1/token",
        client_id="ann",
        client_secret=SecretReference(file=put(tmp_path, "secret", b"x")),
        token_ca_file=put(tmp_path, "ca.pem", b"no certificate"),
    )
    with pytest.raises(ProfileError, match=r"^security\.kafka\.token_ca_file: .*ca\.pem holds other text"):
        source_of(login)()
