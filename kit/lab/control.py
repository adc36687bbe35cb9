"""A socket in the lab's folder, through which other processes replace its consumers.

``python -m kit.lab.control <folder> <group> <member> <flavour>`` is what a profile with ``deploy.kind = "lab"`` runs.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kit.errors import LabError, OfframpError

NAME = "control.sock"
ANSWER_SECONDS = 120.0


class Control:
    """Serves one lab; ``replace`` is called with group, member and flavour and says what it did."""

    def __init__(self, folder: Path, replace: Callable[[str, str, str], str]) -> None:
        self._replace = replace
        self._path = folder / NAME
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(self._path))
        self._socket.listen()
        threading.Thread(target=self._serve, name="lab control", daemon=True).start()

    def close(self) -> None:
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, connection.makefile("rwb") as stream:
                stream.write(json.dumps(self._answer(stream.readline())).encode() + b"\n")

    def _answer(self, line: bytes) -> dict[str, str]:
        try:
            asked: dict[str, Any] = json.loads(line)
            return {"said": self._replace(asked["group"], asked["member"], asked["flavour"])}
        except (OfframpError, ValueError, KeyError) as error:
            return {"error": f"{error}"}


def replace(folder: Path, group: str, member: str, flavour: str) -> str:
    """Ask the lab in ``folder`` to stop ``member`` and start a ``flavour`` in its place.

    Raises:
        LabError: there is no lab, or it could not.
    """
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ANSWER_SECONDS)
            connection.connect(str(folder / NAME))
            asked = {"group": group, "member": member, "flavour": flavour}
            with connection.makefile("rwb") as stream:
                stream.write(json.dumps(asked).encode() + b"\n")
                stream.flush()
                answer = json.loads(stream.readline())
    except (OSError, ValueError) as error:
        raise LabError(f"the lab in {folder} does not answer: {error}; see `offramp lab status`") from error
    if "error" in answer:
        raise LabError(answer["error"])
    return str(answer["said"])


def main() -> None:
    folder, group, member, flavour = sys.argv[1:]
    try:
        print(replace(Path(folder), group, member, flavour))
    except LabError as error:
        print(f"error: {error}")
        raise SystemExit(error.exit_code) from None


if __name__ == "__main__":
    main()
