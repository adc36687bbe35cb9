"""Identify the person who works here, by the operating system."""

from __future__ import annotations

import os
import pwd


def system_user() -> str:
    """The user of this process; ``$LOGNAME`` and ``$USER`` can be set by any person, so they don't count."""
    number = os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # In a container there may be no name for it.
        return f"uid {number}"
