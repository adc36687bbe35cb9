"""What a member tells its operator: each thing once, until all is well again."""

from __future__ import annotations

import logging
import threading

from confluent_kafka import KafkaException
from kazoo.exceptions import KazooException

from kit.errors import OfframpError

log = logging.getLogger("offramp.consumer")


class Notices:
    """May be used by any thread."""

    def __init__(self, consumer_id: str) -> None:
        self._consumer_id = consumer_id
        self._said: set[str] = set()
        self._lock = threading.Lock()

    def tell(self, text: str, error: Exception | None = None) -> None:
        """With a traceback only if ``error`` is no server's answer."""
        with self._lock:
            if text in self._said:
                return
            self._said.add(text)
        is_known = error is None or isinstance(error, (OfframpError, KazooException, KafkaException))
        log.warning("%s: %s", self._consumer_id, text, exc_info=None if is_known else error)

    def forget(self) -> None:
        """All is well: what comes again is told again."""
        with self._lock:
            self._said.clear()
