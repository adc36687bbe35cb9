"""Register the proof of what was consumed."""

from __future__ import annotations

ANALYSES = "kit.proof.analyses"
