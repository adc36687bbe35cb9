"""Signatures by the SSH keys that people have already, in OpenSSH's own form (SSHSIG, PROTOCOL.sshsig).

Made and verified by ``cryptography``, so that neither needs a program that may be missing; ``ssh-keygen -Y verify``
takes them too. Ed25519, RSA and ECDSA keys in files; those of an agent or in hardware are not reached.
"""

from __future__ import annotations

import hashlib
import struct
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_ssh_private_key,
    load_ssh_public_key,
)

from kit.errors import InputError

NAMESPACE = "offramp"
"""The purpose of a signature: one made for git or a file is none of an approval."""
_MAGIC = b"SSHSIG"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_RSA = "rsa-sha2-512"
_CURVES: dict[int, hashes.HashAlgorithm] = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}

_Public: TypeAlias = Ed25519PublicKey | RSAPublicKey | EllipticCurvePublicKey
_Private: TypeAlias = Ed25519PrivateKey | RSAPrivateKey | EllipticCurvePrivateKey


def public_key(line: str) -> str:
    """A line as in ``~/.ssh/id_ed25519.pub``, without its comment.

    Raises:
        ValueError: it is no public key of a kind known here.
    """
    try:
        key = load_ssh_public_key(line.strip().encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"it is no public SSH key: {error}") from error
    if not isinstance(key, Ed25519PublicKey | RSAPublicKey | EllipticCurvePublicKey):
        raise ValueError("the key is no Ed25519, RSA or ECDSA key")
    return _line(key)


def fingerprint(line: str) -> str:
    """``SHA256:…`` as ``ssh-keygen -l`` prints it."""
    digest = hashlib.sha256(b64decode(line.split()[1])).digest()
    return f"SHA256:{b64encode(digest).decode().rstrip('=')}"


def sign(content: bytes, key_file: Path, passphrase: Callable[[], str] | None = None) -> str:
    """A signature over ``content``; ``passphrase`` is asked where the key is encrypted.

    Raises:
        InputError: the key can't be read, is encrypted and its passphrase not given or wrong, or is of another kind.
    """
    key = _private(key_file.expanduser(), passphrase)
    line = _line(key.public_key())
    signed = _signed(key, _message(content))
    blob = (
        _MAGIC
        + struct.pack(">I", 1)
        + b"".join(map(_text, (b64decode(line.split()[1]), NAMESPACE.encode(), b"", b"sha512", signed)))
    )
    code = b64encode(blob).decode()
    return "\n".join((_BEGIN, *(code[at : at + 70] for at in range(0, len(code), 70)), _END)) + "\n"


@lru_cache(maxsize=256)
def signer(content: bytes, signature: str) -> str | None:
    """The public key (a line) that made this signature over this content; None: it is no such signature."""
    try:
        line, signed = _opened(signature)
        key = load_ssh_public_key(line.encode())
        _check(key, signed, _message(content))
    except (InvalidSignature, UnsupportedAlgorithm, Base64Error, ValueError, IndexError, struct.error):
        return None
    return line


def _private(file: Path, passphrase: Callable[[], str] | None) -> _Private:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(f"the key {file} can't be read: {error.strerror}") from error
    try:
        key = _loaded(data, file, passphrase)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError(f"{file} can't be used to sign: {error}; give a private SSH key") from error
    if not isinstance(key, Ed25519PrivateKey | RSAPrivateKey | EllipticCurvePrivateKey):
        raise InputError(f"{file} is no Ed25519, RSA or ECDSA key, so it can't sign an approval")
    return key


def _loaded(data: bytes, file: Path, passphrase: Callable[[], str] | None) -> object:
    try:
        return load_ssh_private_key(data, None)
    except TypeError:  # It is encrypted.
        if passphrase is None:
            raise InputError(f"the key {file} is encrypted: its passphrase is needed to sign") from None
    try:
        return load_ssh_private_key(data, passphrase().encode())
    except ValueError:
        raise InputError(f"the key {file} is encrypted, and this is not its passphrase") from None


def _line(key: _Public) -> str:
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def _message(content: bytes) -> bytes:
    """Return what is really signed: the namespace and the content's hash."""
    return _MAGIC + b"".join(map(_text, (NAMESPACE.encode(), b"", b"sha512", hashlib.sha512(content).digest())))


def _signed(key: _Private, message: bytes) -> bytes:
    if isinstance(key, Ed25519PrivateKey):
        return _text(b"ssh-ed25519") + _text(key.sign(message))
    if isinstance(key, RSAPrivateKey):
        return _text(_RSA.encode()) + _text(key.sign(message, padding.PKCS1v15(), hashes.SHA512()))
    kind = _line(key.public_key()).split()[0].encode()
    pair = decode_dss_signature(key.sign(message, ec.ECDSA(_CURVES[key.curve.key_size])))
    return _text(kind) + _text(b"".join(_text(_mpint(number)) for number in pair))


def _check(key: object, signed: bytes, message: bytes) -> None:
    kind, raw = _texts(signed, 2)
    if isinstance(key, Ed25519PublicKey) and kind == b"ssh-ed25519":
        key.verify(raw, message)
    elif isinstance(key, RSAPublicKey) and kind == _RSA.encode():
        key.verify(raw, message, padding.PKCS1v15(), hashes.SHA512())
    elif isinstance(key, EllipticCurvePublicKey) and kind == _line(key).split()[0].encode():
        r, s = (int.from_bytes(number) for number in _texts(raw, 2))
        key.verify(encode_dss_signature(r, s), message, ec.ECDSA(_CURVES[key.curve.key_size]))
    else:
        raise InvalidSignature(f"the signature has the form {kind!r}, which does not fit the type of the key")


def _opened(signature: str) -> tuple[str, bytes]:
    """The public key's line and the signature itself, if it is of our kind."""
    first, *code, last = signature.strip().split("\n")
    if (first, last) != (_BEGIN, _END):
        raise ValueError("this is no SSH signature")
    blob = b64decode("".join(code), validate=True)
    if blob[:10] != _MAGIC + struct.pack(">I", 1):
        raise ValueError("it is no SSH signature of version 1")
    key, namespace, _, hashed, signed = _texts(blob[10:], 5)
    if (namespace, hashed) != (NAMESPACE.encode(), b"sha512"):
        raise ValueError(
            f"the signature is not one of an approval: its namespace is not {NAMESPACE!r}, or its hash is not SHA-512"
        )
    kind = _texts(key, 1)[0].decode()
    return f"{kind} {b64encode(key).decode()}", signed


def _text(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _texts(data: bytes, count: int) -> list[bytes]:
    texts = []
    for _ in range(count):
        (length,) = struct.unpack_from(">I", data)
        if length > len(data) - 4:
            raise ValueError("the signature is cut off")
        texts.append(data[4 : 4 + length])
        data = data[4 + length :]
    return texts


def _mpint(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1)
