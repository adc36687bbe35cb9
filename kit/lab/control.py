"""A socket in the lab's folder, through which other processes replace its consumers and move its nodes.

``python -m kit.lab.control <folder> <group> <member> <flavour>`` is what a profile with ``deploy.kind = "lab"`` runs;
``python -m kit.lab.control <folder> node <role> <id> <action> <mode>`` one with ``deploy.nodes.kind = "lab"``.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from kit.errors import LabError, OfframpError

NAME = "control.sock"
ANSWER_SECONDS = 120.0


class Control:
    """Serves one lab; ``replace`` is called with group, member and flavour, ``move`` with role, id, action and mode.

    Both report what they did. Each caller is served at once; orders for one node, or for one group, one after the
    other.
    """

    def __init__(
        self, folder: Path, replace: Callable[[str, str, str], str], move: Callable[[str, int, str, str], str]
    ) -> None:
        self._replace, self._move = replace, move
        self._turns: defaultdict[int | str, threading.Lock] = defaultdict(threading.Lock)
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
            threading.Thread(target=self._serve_one, args=[connection], name="lab order", daemon=True).start()

    def _serve_one(self, connection: socket.socket) -> None:
        with (
            suppress(OSError),
            connection,
            connection.makefile("rwb") as stream,
        ):  # The client that asked may be gone by now.
            stream.write(json.dumps(self._answer(stream.readline())).encode() + b"\n")

    def _answer(self, line: bytes) -> dict[str, str]:
        try:
            asked: dict[str, Any] = json.loads(line)
            with self._turns[asked["node"] if "node" in asked else asked["group"]]:
                return {"said": self._carry_out(asked)}
        except (OfframpError, ValueError, KeyError) as error:
            return {"error": f"{error}"}

    def _carry_out(self, asked: dict[str, Any]) -> str:
        if "node" in asked:
            return self._move(asked["role"], asked["node"], asked["action"], asked["mode"])
        return self._replace(asked["group"], asked["member"], asked["flavour"])


def replace(folder: Path, group: str, member: str, flavour: str) -> str:
    """Ask the lab in ``folder`` to stop ``member`` and start a ``flavour`` in its place; raises LabError."""
    return _ask(folder, {"group": group, "member": member, "flavour": flavour})


def move(folder: Path, role: str, node: str, action: str, mode: str) -> str:
    """Ask the lab in ``folder`` to start, stop, restart or wipe a node in a mode; raises LabError."""
    return _ask(folder, {"role": role, "node": int(node), "action": action, "mode": mode})


def _ask(folder: Path, asked: dict[str, Any]) -> str:
    """Have the lab's own process do something; → its answer.

    Raises:
        LabError: there is no lab, or it could not.
    """
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ANSWER_SECONDS)
            connection.connect(str(folder / NAME))
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
    folder, *words = sys.argv[1:]
    try:
        print(move(Path(folder), *words[1:]) if len(words) == 5 else replace(Path(folder), *words))
    except LabError as error:
        print(f"error: {error}")
        raise SystemExit(error.exit_code) from None


if __name__ == "__main__":
    main()
