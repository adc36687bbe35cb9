"""Register the snapshot of a cluster."""

from __future__ import annotations

ANALYSES = "kit.groups.analyses"
