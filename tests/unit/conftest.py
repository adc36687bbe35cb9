"""What was collected stays until the end: the garbage collector does not look through it again and again."""

from __future__ import annotations

import gc

gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()
