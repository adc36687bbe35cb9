"""One piece of work at a time on a thread; its name and its error are always reported."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kit.errors import IllegalMove


class Worker:
    """``on_busy`` gets the name of the work, and an empty text when the work has ended; ``on_failure`` gets its error.

    The thread is a daemon: a kernel that ends does not wait for it. The run's journal reports how far the run came.
    """

    def __init__(self, on_busy: Callable[[str], None], on_failure: Callable[[BaseException], None]) -> None:
        self._on_busy, self._on_failure = on_busy, on_failure
        self._change = threading.RLock()
        self._what = ""
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    def start(self, what: str, work: Callable[[], None]) -> None:
        """Returns at once.

        Raises:
            IllegalMove: other work is running.
        """
        with self._change:
            if self._what:
                raise IllegalMove(f"one thing at a time: {self._what} is still running; wait, or stop it")
            self._what, self._error = what, None
            self._thread = threading.Thread(target=self._do, args=(work,), name=f"offramp: {what}", daemon=True)
            self._on_busy(what)
            self._thread.start()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the work, at most ``timeout_s``; returns whether it has ended. Raises the error of the work."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_s)
            if thread.is_alive():
                return False
        if self._error is not None:
            raise self._error
        return True

    def _do(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - reported here, and raised again by wait
            self._error = error
            self._on_failure(error)
        finally:
            with self._change:
                self._what = ""
                self._on_busy("")
