"""``offramp export``: lag, lag in time, outlook and verdicts as metrics for Prometheus; it only reads."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kit.errors import InputError, OfframpError, PartialRead
from kit.groups.chosen import ChosenGroups, hidden_topics
from kit.terminal.options import with_options
from kit.terminal.terminal import (
    LONGEST_WAIT_S,
    a_number,
    refusals,
    say,
    tell,
)

if TYPE_CHECKING:
    from kit.health.export.readings import Reading, Readings
    from kit.health.export.serving import Page

app = typer.Typer(rich_markup_mode=None)

_LIMIT = 10_000
_EVERY_S = 60.0
_REQUESTS = 600.0


@dataclass(frozen=True)
class _Pace:
    every_s: float
    requests_per_minute: float

    def interval_s(self, n_requests: int) -> float:
        """From observation to observation: longer where one costs more than the budget allows."""
        return max(self.every_s, 60 * n_requests / self.requests_per_minute)


@app.command()
@with_options
def export(
    chosen: ChosenGroups,
    listen: Annotated[
        str,
        typer.Option(
            "--listen", metavar="HOST:PORT", help="Address to serve the metrics on; port 0 takes a free port."
        ),
    ] = "127.0.0.1:0",
    textfile: Annotated[
        Path | None, typer.Option("--textfile", help="Write this file for node_exporter (*.prom), and serve nothing.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Poll once, print or write the metrics, and end.")] = False,
    every: Annotated[
        float,
        typer.Option(
            "--every",
            min=1,
            max=LONGEST_WAIT_S,
            callback=a_number,
            metavar="SECONDS",
            help="Time from one observation to the next, in seconds.",
        ),
    ] = _EVERY_S,
    requests: Annotated[
        float,
        typer.Option(
            "--requests-per-minute",
            min=1,
            max=1e9,
            callback=a_number,
            help="Budget of requests to brokers: if a poll costs more, offramp polls less often.",
        ),
    ] = _REQUESTS,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", min=0, help="Number of partitions with series of their own; groups with the most lag come first."
        ),
    ] = _LIMIT,
    labels: Annotated[
        Literal["kminion", "kafka_exporter"], typer.Option("--labels", help="Use the label names of this exporter.")
    ] = "kminion",
    no_times: Annotated[
        bool, typer.Option("--no-times", help="Leave out lags in time and the outlook, which cost the most requests.")
    ] = False,
    files: Annotated[
        Path | None,
        typer.Option(
            "--files", metavar="DIR", help="Copy the Grafana dashboard and the alert rules into this folder, and end."
        ),
    ] = None,
) -> None:
    """Serve lag, lag in time, outlook and verdicts as metrics for Prometheus.

    A scrape returns the last observation without delay. Ctrl-C or SIGTERM ends the exporter with exit code 0.

    With --once, exit code 12 means that something could not be read.
    """
    from kit.clients.cluster import connect
    from kit.health.export.metrics import LABELS
    from kit.health.export.readings import Readings
    from kit.health.export.serving import Server, copy_files, write_textfile

    with refusals():
        if files is not None:
            tell(*map(str, copy_files(files)))
            return
        server = None if once or textfile is not None else Server(*_address(listen))
        profile = chosen.load()
        pace = _Pace(every, requests)
        with _ended_quietly(once), connect(profile, is_patient=not once) as cluster:
            looks = _Looks(Readings(cluster, chosen.pattern, limit, not no_times), pace, LABELS[labels])
            page = looks.first()
            chosen.say_unseen(looks.reading.snapshot, hidden_topics(cluster))
            if once:
                _write_once(page, textfile)
                looks.reading.verify()
            elif server is None:
                assert textfile is not None
                looks.go_on(page, lambda page: write_textfile(textfile, page))
            else:
                server.page = page
                with server.serving():
                    say(f"offramp: {profile.name} at {server.url}, each {pace.every_s:g} s")
                    looks.go_on(page, lambda page: setattr(server, "page", page))


class _Looks:
    def __init__(
        self,
        readings: Readings,
        pace: _Pace,
        labels: tuple[str, ...],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._readings, self._pace, self._labels, self._sleep = readings, pace, labels, sleep
        self.n_looks = self._n_failed = self._n_requests = 0
        self._begun = 0.0
        self.reading: Reading

    def first(self) -> Page:
        self._look()
        return self._page()

    def go_on(self, page: Page, publish: Callable[[Page], None]) -> None:
        """Until a person ends it: a failed poll is reported and counted, and the figures stay as they were."""
        publish(page)
        self._say_unknown_times()
        while True:
            self._sleep(max(0.0, self._begun + self._interval_s - time.monotonic()))
            try:
                self._look()
                self._say_unknown_times()
            except OfframpError as error:
                self._n_failed += 1
                say(
                    "offramp: this observation failed; the metrics still show the observation of "
                    f"{self.reading.at:%H:%M:%S} UTC: {error}"
                )
            publish(self._page())

    @property
    def _interval_s(self) -> float:
        return self._pace.interval_s(self.reading.n_requests)

    def _look(self) -> None:
        self._begun = time.monotonic()
        self.reading = self._readings.take()
        self.n_looks += 1
        self._n_requests += self.reading.n_requests

    def _say_unknown_times(self) -> None:
        """On standard error, in one line: how many lags in time are missing, and why the first one is."""
        try:
            self.reading.verify_times()
        except PartialRead as error:
            say("offramp: " + " ".join(str(error).split("\n")[:2]))

    def _page(self) -> Page:
        from kit.health.export.metrics import Count, metrics_of
        from kit.health.export.serving import page_of

        count = Count(self.n_looks, self._n_failed, self._n_requests)
        return page_of(metrics_of(self.reading, count, self._interval_s, self._labels))


def _write_once(page: Page, textfile: Path | None) -> None:
    from kit.health.export.serving import write_textfile

    if textfile is not None:
        write_textfile(textfile, page)
    else:
        sys.stdout.write(page.text.decode())


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not port.isdecimal():
        raise InputError(f"--listen {listen!r} has no port: name host:port, such as 127.0.0.1:9308")
    return host or "127.0.0.1", int(port)


@contextmanager
def _ended_quietly(once: bool) -> Iterator[None]:
    """SIGTERM is what systemd and containers end a service with; an observation that was to be printed was cut off
    instead.
    """

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt:
        if once:
            raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
