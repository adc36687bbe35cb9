"""A reading, written once as text, handed to whoever asks: over HTTP, or as a file of node_exporter's."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path

from prometheus_client import exposition
from prometheus_client.openmetrics import exposition as openmetrics

from kit.errors import InputError
from kit.health.export.metrics import Metrics

FILES = ("dashboard.json", "alerts.yml")
_PATH = "/metrics"


@dataclass(frozen=True)
class Page:
    """``text``: Prometheus's text format; ``openmetrics``: for who asks for that."""

    text: bytes
    openmetrics: bytes


def page_of(metrics: Metrics) -> Page:
    return Page(exposition.generate_latest(metrics), openmetrics.generate_latest(metrics))  # type: ignore[no-untyped-call]


class Server(ThreadingHTTPServer):
    """``page`` is what a scrape gets; before :meth:`serving`, whoever asks waits.

    Raises:
        InputError: the address can't be used.
    """

    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        self.page = Page(b"", b"")
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"metrics can't be served on {host}:{port}: {reason}; name another --listen") from None

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}{_PATH}"

    @contextmanager
    def serving(self) -> Iterator[None]:
        threading.Thread(target=self.serve_forever, name="offramp: metrics", daemon=True).start()
        try:
            yield
        finally:
            self.shutdown()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that has hung up."""


class _Handler(BaseHTTPRequestHandler):
    timeout = 30
    server: Server

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != _PATH:
            self._answer(404, "text/plain; charset=utf-8", f"Metrics are at {_PATH}\n".encode())
            return
        page, accept = self.server.page, self.headers.get("Accept", "")
        if "application/openmetrics-text" in accept:
            self._answer(200, openmetrics.CONTENT_TYPE_LATEST, page.openmetrics)
        else:
            self._answer(200, exposition.CONTENT_TYPE_PLAIN_0_0_4, page.text)

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """A scrape is no event."""


def write_textfile(path: Path, page: Page) -> None:
    """Whole or not at all; node_exporter reads only names that end with ``.prom``, so it never sees the draft.

    Raises:
        InputError: it can't be written; what was there stays.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(page.text)
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise InputError(f"{path} can't be written: {error.strerror}") from None


def copy_files(folder: Path) -> list[Path]:
    """The dashboard and the rules of this release, to load into Grafana and Prometheus.

    Raises:
        InputError: one of them is there already, or can't be written.
    """
    wanted = [folder / name for name in FILES]
    if there := [str(path) for path in wanted if path.exists()]:
        raise InputError(f"{' and '.join(there)} would be overwritten: name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in wanted:
            shutil.copyfile(str(files("kit.health.export") / path.name), path)
    except OSError as error:
        raise InputError(f"{error.filename or folder} can't be written: {error.strerror}") from None
    return wanted
