"""One thing at a time, beside the notebook: what it is, and what it failed with, are never lost."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kit.errors import IllegalMove


class Worker:
    """``told`` is called with what is being done, and with an empty text when that has ended; ``failed`` with an error.

    The thread is a daemon: a kernel that ends does not wait for it, and the run's journal says how far it came.
    """

    def __init__(self, told: Callable[[str], None], failed: Callable[[BaseException], None]) -> None:
        self._told, self._failed = told, failed
        self._change = threading.RLock()
        self._what = ""
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    def start(self, what: str, work: Callable[[], None]) -> None:
        """Returns at once.

        Raises:
            IllegalMove: something else is being done.
        """
        with self._change:
            if self._what:
                raise IllegalMove(f"one thing at a time: {self._what} is going on")
            self._what, self._error = what, None
            self._thread = threading.Thread(target=self._do, args=(work,), name=f"offramp: {what}", daemon=True)
            self._told(what)
            self._thread.start()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until it has ended, or so many seconds; whether it has. Raises what the work raised."""
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
        except BaseException as error:  # noqa: BLE001 - shown, and raised again by whoever waits
            self._error = error
            self._failed(error)
        finally:
            with self._change:
                self._what = ""
                self._told("")
