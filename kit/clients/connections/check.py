"""One row of a check of connections."""

from __future__ import annotations

from dataclasses import dataclass

from kit.errors import OfframpError

OK, WARNING, FAILED = "ok", "warning", "failed"
SOON_S = 30 * 86_400.0
"""The remaining time at which a certificate or token is a warning."""


@dataclass(frozen=True, slots=True)
class Check:
    """``tried``: the layer; ``error``: the class of the error, where one has an exit code for it."""

    component: str
    tried: str
    state: str
    sentence: str
    error: str | None = None
    exit_code: int = 0


def failed(component: str, tried: str, error: OfframpError) -> Check:
    return Check(component, tried, FAILED, str(error), type(error).__name__, error.exit_code)
