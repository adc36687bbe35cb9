"""Replace a secret: by ``***``, or by a fingerprint by which two stores are compared without showing it."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from typing import TypeAlias

from kit.text.withholding import REDACTED

_MARK = "hmac:"

Hide: TypeAlias = Callable[[str], str]
"""A secret → what is shown of it."""


def stars(secret: str) -> str:
    """Nothing of it."""
    return REDACTED


def is_fingerprint(shown: str) -> bool:
    """Return whether this, which is in a secret's place, is no ``***``."""
    return shown.startswith(_MARK)


class Fingerprints:
    """A secret → ``hmac:`` and 16 hex digits, the same ones for the same secret as long as this object lives.

    The key (HMAC-SHA-256) is random, kept nowhere, and never shown: after the object is gone, no fingerprint can be
    made again, so a weak password can't be guessed from one that was kept.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def __call__(self, secret: str) -> str:
        return f"{_MARK}{hmac.digest(self._key, secret.encode(errors='surrogatepass'), 'sha256').hex()[:16]}"

    def __repr__(self) -> str:
        return "Fingerprints()"

    def __reduce__(self) -> str:
        raise TypeError("a fingerprint can't leave its process, because its key is never written down")
