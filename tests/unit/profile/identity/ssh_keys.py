"""SSH keys of each kind, as ssh-keygen writes them."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, SECP384R1, SECP521R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

KEYS = {
    "ed25519": Ed25519PrivateKey.generate,
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
    "p256": lambda: generate_private_key(SECP256R1()),
    "p384": lambda: generate_private_key(SECP384R1()),
    "p521": lambda: generate_private_key(SECP521R1()),
}


def key_in(folder: Path, kind: str = "ed25519", passphrase: str | None = None) -> tuple[Path, str]:
    """Make a key; return the private key's file and the public line."""
    folder.mkdir(parents=True, exist_ok=True)
    key, file = KEYS[kind](), folder / f"id_{kind}"
    how = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, how))
    file.chmod(0o600)
    return file, key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
