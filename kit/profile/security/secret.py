"""Secrets by reference: a profile names the place of a secret, and never holds the secret itself."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from kit.errors import ProfileError

REFERENCE = '{ env = "NAME" } or { file = "path" }'


class Secret(str):
    """A secret's text. Its ``repr`` is stars, so that a client that logs its settings does not log the secret."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


@dataclass(frozen=True, kw_only=True)
class SecretReference:
    """The place of a secret: an environment variable, or a file (its first line)."""

    env: str | None = None
    file: Path | None = None

    def __post_init__(self) -> None:
        if (self.env is None) == (self.file is None):
            raise ValueError(f"give either {REFERENCE}")

    def reveal(self) -> Secret:
        """The secret itself.

        Raises:
            ProfileError: the variable is not set, or the file can't be read.
        """
        if self.env is not None:
            if self.env not in os.environ:
                raise ProfileError(f"the environment variable {self.env} is not set: set it to the profile's secret")
            return Secret(os.environ[self.env])
        assert self.file is not None
        try:
            lines = self.file.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise ProfileError(
                f"the profile's secret file {self.file} can't be read: {error.strerror}; check its path and its rights"
            ) from error
        except UnicodeDecodeError:  # It quotes the file.
            raise ProfileError(f"the profile's secret file {self.file} is no text in UTF-8; check its path") from None
        return Secret(lines[0] if lines else "")
