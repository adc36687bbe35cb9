"""The certificate and key files that a profile names, tried before any client opens them.

OpenSSL names neither the field nor the file that it can't use, and it asks at the terminal for a missing passphrase. So
OpenSSL decides whether the files can be used, and the cause is found in the files.
"""

from __future__ import annotations

import ssl
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from kit.errors import ProfileError
from kit.profile.security.settings import KafkaSecurity, ZookeeperSecurity, section_of
from kit.text.regular_file import read_regular

TlsSettings = KafkaSecurity | ZookeeperSecurity
_CERTIFICATE, _KEY = b"-----BEGIN CERTIFICATE-----", b"PRIVATE KEY-----"
_JAVA_KEY_STORE, _ASN1_SEQUENCE = b"\xfe\xed\xfe\xed", b"\x30"
"""The first bytes of a JKS file, and of DER and PKCS #12."""
_TO_PEM = "offramp reads PEM. Convert a key store: keytool -importkeystore -deststoretype PKCS12, then openssl pkcs12"


class _NoPassphrase(Exception):
    """The key is encrypted, and the profile gives no passphrase."""


def client_context(security: TlsSettings) -> ssl.SSLContext:
    """TLS with the files of this section.

    Raises:
        ProfileError: a file can't be read or holds something else, the passphrase or the key is wrong, or the
            certificate is not valid now. The message names the field and the file.
    """
    section = section_of(security)
    context = trusting(f"{section}.ca_file", security.ca_file)
    if security.certificate_file is not None:
        _show_certificate(context, security, section, security.certificate_file)
    if isinstance(security, ZookeeperSecurity) and not security.check_host_name:
        context.check_hostname = False
    return context


def trusting(field: str, path: Path | None) -> ssl.SSLContext:
    """TLS that trusts the authorities of this file; None: those of this machine. Raises as ``client_context``."""
    if path is None:
        return ssl.create_default_context()
    content = read_named(field, path)
    try:
        context = ssl.create_default_context(cafile=path)
    except (OSError, ValueError):
        _refuse_content(field, path, content, "certificates")
    ends = [end for _, end in validities(content)]
    if ends and max(ends) <= time.time():
        raise ProfileError(
            f"{field}: every certificate in {path} has expired, the last one at {_time(max(ends))}. Get the current "
            "certificates of the authority, or correct the clock of this machine."
        )
    return context


def read_named(field: str, path: Path) -> bytes:
    """The bytes of a file that the profile names. Raises ProfileError."""
    try:
        return read_regular(path)
    except OSError as error:
        raise ProfileError(
            f"{field}: {path} can't be read: {error.strerror}. Check the path in the profile, and whether this "
            "user may read the file."
        ) from None


def validities(content: bytes) -> list[tuple[float, float]]:
    """POSIX times between which each certificate of a PEM file is valid; empty if they can't be parsed."""
    try:
        found = x509.load_pem_x509_certificates(content)
        return [(each.not_valid_before_utc.timestamp(), each.not_valid_after_utc.timestamp()) for each in found]
    except ValueError:
        return []


def _show_certificate(context: ssl.SSLContext, security: TlsSettings, section: str, path: Path) -> None:
    content = read_named(f"{section}.certificate_file", path)
    key_path = security.key_file or path
    key_field = f"{section}.{'key_file' if security.key_file is not None else 'certificate_file'}"
    key = read_named(key_field, key_path)
    passphrase = security.key_password.reveal() if security.key_password is not None else None
    try:
        context.load_cert_chain(path, security.key_file, passphrase if passphrase is not None else _ask_nobody)
    except _NoPassphrase:
        raise ProfileError(
            f"{key_field}: the key in {key_path} is encrypted, and the profile gives no passphrase. Set "
            f"{section}.key_password."
        ) from None
    except (OSError, ValueError):
        _refuse_pair(section, (path, content), (key_field, key_path, key), passphrase)
    _check_is_valid(f"{section}.certificate_file", path, content)


def _ask_nobody() -> NoReturn:
    raise _NoPassphrase


def _refuse_pair(
    section: str, own: tuple[Path, bytes], key: tuple[str, Path, bytes], passphrase: str | None
) -> NoReturn:
    """Say what is wrong with a certificate or its key that OpenSSL does not take."""
    path, content = own
    key_field, key_path, key_content = key
    try:
        certificate = x509.load_pem_x509_certificates(content)[0]
    except ValueError:
        _refuse_content(f"{section}.certificate_file", path, content, "a certificate")
    if _KEY not in key_content:
        hint = "" if key_path != path else f" Set {section}.key_file, if the key is in another file."
        _refuse_content(key_field, key_path, key_content, "a private key", hint)
    opened = _opened(key_content, passphrase)
    if opened is None:
        is_encrypted = passphrase is not None and _is_encrypted(key_content)
        raise ProfileError(
            f"{key_field}: {section}.key_password does not open the key in {key_path}. Check the passphrase."
            if is_encrypted
            else f"{key_field}: the private key in {key_path} is damaged, or of a kind that TLS does not take. Get the "
            "file again."
        )
    if _octets(opened) != _octets(certificate.public_key()):
        raise ProfileError(
            f"{key_field}: the private key in {key_path} does not belong to the certificate in {path}. Name the key "
            "with which this certificate was requested."
        )
    raise ProfileError(
        f"{section}.certificate_file: OpenSSL refuses the certificate in {path}, for example because its key is too "
        "short. Get a new certificate."
    )


def _opened(content: bytes, passphrase: str | None) -> Any:
    """The public half of the key; None: it can't be opened."""
    given = passphrase.encode() if passphrase is not None and _is_encrypted(content) else None
    try:
        return load_pem_private_key(content, given).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None


def _is_encrypted(content: bytes) -> bool:
    try:
        load_pem_private_key(content, None)
    except TypeError:  # This is how the library reports a missing passphrase.
        return True
    except (ValueError, UnsupportedAlgorithm):
        return False
    return False


def _octets(public_key: Any) -> bytes:
    return bytes(public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def _refuse_content(field: str, path: Path, content: bytes, wanted: str, hint: str = "") -> NoReturn:
    raise ProfileError(f"{field}: {path} holds {_form(content)}; expected {wanted} in PEM. {_TO_PEM}.{hint}") from None


def _form(content: bytes) -> str:
    """Return the apparent form of a file, for people."""
    if not content.strip():
        return "nothing"
    if content.startswith(_JAVA_KEY_STORE):
        return "a Java key store (JKS)"
    if content.startswith(_ASN1_SEQUENCE):
        return "binary data (DER or PKCS #12)"
    if _CERTIFICATE in content:
        return "a damaged certificate" if not validities(content) else "certificates"
    return "a private key" if _KEY in content else "other text or data"


def _check_is_valid(field: str, path: Path, content: bytes) -> None:
    """Servers refuse a certificate that is not valid now, with an alert that does not give the reason."""
    now = time.time()
    starts_at, ends_at = next(iter(validities(content)), (now, now + 1))
    if ends_at <= now:
        raise ProfileError(
            f"{field}: the certificate in {path} expired at {_time(ends_at)}; the clock of this machine shows "
            f"{_time(now)}. Get a new certificate, or correct the clock."
        )
    if starts_at > now:
        raise ProfileError(
            f"{field}: the certificate in {path} is valid from {_time(starts_at)}; the clock of this machine shows "
            f"{_time(now)}. Wait until then, or correct the clock."
        )


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
