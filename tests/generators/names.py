"""Names that strangers may choose."""

from __future__ import annotations

SECRET_LIKE = (
    "reset-password",
    "auth.secret",
    "rotate-credentials",
    "user_api-key",
    "password=x",
    "https://ann:hunter2@host/",
    "Bearer abcdefgh",
    "sasl.jaas.config",
)
"""A group, a topic, a member or an item may be called so."""
