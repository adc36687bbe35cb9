"""The socket through which a lab takes orders."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from kit.lab.control import Control, replace

SECONDS = 20.0


def test_orders_for_two_groups_are_executed_at_the_same_time():
    both = Barrier(2)

    def execute(group: str, member: str, flavour: str) -> str:
        both.wait(SECONDS)
        return f"{member} of {group} became {flavour}"

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:  # A socket's path has to be short.
        control = Control(Path(folder), execute, lambda *_: "")
        asked = [pool.submit(replace, Path(folder), group, "m", "consumer") for group in "ab"]
        assert [each.result(SECONDS) for each in asked] == [f"m of {group} became consumer" for group in "ab"]
        control.close()
