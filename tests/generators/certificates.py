"""Certificates and keys as files, for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


def certificate(folder: Path, days: float = 90, passphrase: str | None = None, starts_in_days: float = -90) -> Path:
    """Write ``client.pem``: a certificate of its own authority that ends in so many days, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "offramp")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now + timedelta(days=starts_in_days))
        .not_valid_after(now + timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    sealed = BestAvailableEncryption(passphrase.encode()) if passphrase is not None else NoEncryption()
    folder.mkdir(exist_ok=True)
    path = folder / "client.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, sealed)
    path.write_bytes(signed.public_bytes(Encoding.PEM) + private)
    return path


class Chain:
    """An authority, an intermediate one that it signed, and certificates that this one signs; PEM files in ``folder``.

    ``ca.pem`` has the authority alone, so a server or a client must show the intermediate certificate itself.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._root = self._signed("an authority", None, is_authority=True)
        self._middle = self._signed("an intermediate authority", self._root, is_authority=True)
        (folder / "ca.pem").write_bytes(self._root[0].public_bytes(Encoding.PEM))

    def write(self, name: str, common_name: str) -> None:
        """``name.pem``: the certificate and the intermediate one; ``name.key``; ``name-all.pem``: both."""
        certificate, key = self._signed(common_name, self._middle, is_authority=False)
        shown = b"".join(each.public_bytes(Encoding.PEM) for each in (certificate, self._middle[0]))
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        for file, content in ((f"{name}.pem", shown), (f"{name}.key", private), (f"{name}-all.pem", private + shown)):
            (self.folder / file).write_bytes(content)

    def _signed(self, common_name: str, by: _Pair | None, is_authority: bool) -> _Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        issuer, signing_key = (by[0].subject, by[1]) if by else (name, key)
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder(issuer, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=90))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if not is_authority:
            hosts = [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")]
            uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            made = made.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
            made = made.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        return made.sign(signing_key, hashes.SHA256()), key


_Pair = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]
