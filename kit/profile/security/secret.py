"""Secrets by reference: a profile names the place of a secret, and never holds the secret itself."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from kit.errors import ProfileError
from kit.text.regular_file import read_regular

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
            ProfileError: the variable is not set or empty, or the file can't be read or begins with an empty line.
        """
        if self.env is not None:
            if not os.environ.get(self.env):
                state = "empty" if self.env in os.environ else "not set"
                raise ProfileError(f"the environment variable {self.env} is {state}: set it to the profile's secret")
            return Secret(os.environ[self.env])
        assert self.file is not None
        try:
            lines = read_regular(self.file).decode("utf-8-sig").splitlines()
        except OSError as error:
            raise ProfileError(
                f"the profile's secret file {self.file} can't be read: {error.strerror}; check its path and its rights"
            ) from error
        except UnicodeDecodeError:  # It quotes the file.
            raise ProfileError(f"the profile's secret file {self.file} is no text in UTF-8; check its path") from None
        if not lines or not lines[0]:
            raise ProfileError(
                f"the first line of the profile's secret file {self.file} is empty: write the secret there"
            )
        return Secret(lines[0])
