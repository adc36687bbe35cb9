"""Certificates and keys as files, for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
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
from cryptography.x509.oid import NameOID


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
