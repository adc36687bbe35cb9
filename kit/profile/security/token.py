"""A token, and what it reports of itself."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kit.profile.security.secret import Secret


@dataclass(frozen=True, slots=True)
class Token:
    """``expires_at_s``: POSIX time; None: unknown."""

    value: Secret
    expires_at_s: float | None = None

    @property
    def claims(self) -> Mapping[str, Any]:
        """The claims of a JWT (RFC 7519), unverified; empty for a token of another kind."""
        parts = self.value.split(".")
        if len(parts) != 3:
            return {}
        try:
            claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        except (binascii.Error, ValueError, RecursionError):
            return {}
        return claims if isinstance(claims, dict) else {}
