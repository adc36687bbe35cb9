"""Streams that take themselves for a terminal."""

from __future__ import annotations

import io


class Screen(io.StringIO):
    """Text that is written to a terminal."""

    def isatty(self) -> bool:
        return True
