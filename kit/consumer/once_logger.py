"""Warnings for a member's operator: each text once, until the member recovers."""

from __future__ import annotations

import logging
import threading

from confluent_kafka import KafkaException
from kazoo.exceptions import KazooException

from kit.errors import OfframpError

log = logging.getLogger("offramp.consumer")


class OnceLogger:
    """Logs a text once, so that a failure of every round does not fill the log. May be used by any thread."""

    def __init__(self, consumer_id: str) -> None:
        self._consumer_id = consumer_id
        self._logged: set[str] = set()
        self._lock = threading.Lock()

    def warn(self, text: str, error: Exception | None = None) -> None:
        """Log ``text`` as a warning. A traceback comes with it only if no server answered with this ``error``."""
        with self._lock:
            if text in self._logged:
                return
            self._logged.add(text)
        is_answer = error is None or isinstance(error, (OfframpError, KazooException, KafkaException))
        log.warning("%s: %s", self._consumer_id, text, exc_info=None if is_answer else error)

    def reset(self) -> None:
        """The member has recovered: the next failure is logged again, even with the same text."""
        with self._lock:
            self._logged.clear()
