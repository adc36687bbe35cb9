"""Tokens for OAUTHBEARER: one provider per login, which keeps a token and renews it before it ends.

A token is renewed after 80 % of its life, as Kafka's own login does (``sasl.login.refresh.window.factor``). While a
renewal fails, the token in hand is used until it ends.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from kit.errors import AuthenticationFailed, OfframpError
from kit.profile.security.settings import KafkaSecurity
from kit.profile.security.token import Token

REFRESH_AT = 0.8
"""Part of a token's life after which it is renewed."""
UNKNOWN_LIFE_S = 60.0
"""The time for which a token with an unknown end is used; then its source is asked again."""
_FORM = re.compile(r"[A-Za-z0-9._~+/-]+=*")
LARGEST_SKEW_S = 60.0
"""A token that is dated further in the future shows that the clock of this machine is behind its issuer's."""


class TokenProvider:
    """Return the current token to any thread; ``fetch`` asks its source for a new one."""

    def __init__(self, fetch: Callable[[], Token], clock: Callable[[], float] = time.time) -> None:
        self._fetch, self._clock = fetch, clock
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._ends_at = self._renew_at = 0.0

    def token(self) -> Token:
        """A token that has not ended, with its end.

        Raises:
            AuthenticationFailed: the source refused, or gave a token that has ended or is not valid yet.
            ConnectError: the source did not answer.
            ProfileError: the place of the token or of the client secret can't be read.
        """
        with self._lock:
            if self._token is None or self._clock() >= self._renew_at:
                self._renew()
            assert self._token is not None
            return Token(self._token.value, self._ends_at)

    def _renew(self) -> None:
        now = self._clock()
        try:
            token = self._fetch()
            ends_at = _checked_end(token, now)
        except OfframpError:
            if self._token is None or now >= self._ends_at:
                raise
            return
        self._token, self._ends_at = token, ends_at
        self._renew_at = now + REFRESH_AT * (ends_at - now)


def _checked_end(token: Token, now: float) -> float:
    """POSIX time of a token's end. Raises AuthenticationFailed where the token can't be used now."""
    if not token.value:
        raise AuthenticationFailed("The token is empty. Check its source in security.kafka.")
    if _FORM.fullmatch(token.value) is None:
        raise AuthenticationFailed(
            "The token has characters that no bearer token has (RFC 6750, 2.1). Its source must give the token alone: "
            "no JSON, no quotes, no word before it. Check the source in security.kafka."
        )
    ends_at = _number(token.claims.get("exp")) or _number(token.expires_at_s)
    if ends_at is not None and ends_at <= now:
        raise AuthenticationFailed(
            f"The token ended at {shown_time(ends_at)}; the clock of this machine shows {shown_time(now)}. Get a new "
            "token, or correct the clock."
        )
    starts_at = max(_number(token.claims.get(claim)) or 0.0 for claim in ("nbf", "iat"))
    if starts_at > now + LARGEST_SKEW_S:
        raise AuthenticationFailed(
            f"The token is valid from {shown_time(starts_at)}; the clock of this machine shows {shown_time(now)}. "
            "Correct the clock."
        )
    return ends_at if ends_at is not None else now + UNKNOWN_LIFE_S


def _number(value: Any) -> float | None:
    """A number that Python and C can count with; None of all else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return float(value) if is_number else None


def shown_time(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g} s after 1970"


@lru_cache(maxsize=64)
def provider_of(security: KafkaSecurity) -> TokenProvider:
    """The one provider of this process for all clients of this login."""
    from kit.profile.security.token_sources import source_of  # Only logins by token need it.

    return TokenProvider(source_of(security))
