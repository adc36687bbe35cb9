"""A thread that calls a function repeatedly until it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Watch:
    """Calls ``look`` at once and then ``pause_s`` seconds after each observation. ``look`` must not raise."""

    def __init__(self, look: Callable[[], None], pause_s: Callable[[], float]) -> None:
        self._look, self._pause_s = look, pause_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="offramp: watching", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Returns at once; an observation that continues is the last one."""
        self._over.set()

    def stop(self) -> None:
        """Returns when the last observation has ended; when the watching thread itself calls it, at once."""
        self.end()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            self._look()
            self._over.wait(self._pause_s())
