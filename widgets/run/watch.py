"""A thread that looks again and again until it is told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Watch:
    """Calls ``look`` at once and then ``pause_s`` seconds after each look. An error of ``look`` is its own to tell."""

    def __init__(self, look: Callable[[], None], pause_s: Callable[[], float]) -> None:
        self._look, self._pause_s = look, pause_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="offramp: watching", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Returns once the last look is over; from the watching thread itself at once."""
        self._over.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            self._look()
            self._over.wait(self._pause_s())
