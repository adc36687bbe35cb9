"""What takes longer than two seconds says so on a terminal, and clears its line; nobody else sees it."""

from __future__ import annotations

import io
import threading
from contextlib import redirect_stderr
from types import SimpleNamespace

import pytest

from kit.cli import progress, report
from kit.lab.process import wait_until


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE_S", 0.01)


def test_a_long_wait_is_told_and_its_line_goes():
    with redirect_stderr(Screen()) as screen, progress.waiting("reading\x1b[2J"):
        wait_until(lambda: " s" in screen.getvalue(), "its line", 10)
    assert screen.getvalue().startswith("\rreading\\x1b[2J … 0 s")
    assert screen.getvalue().endswith("\r\x1b[K")


def test_nobody_looks_nothing_is_told():
    before = threading.active_count()
    with redirect_stderr(io.StringIO()) as told, progress.waiting("reading"):
        assert threading.active_count() == before
    assert told.getvalue() == ""


def test_a_report_that_takes_long_says_so(monkeypatch, tmp_path):
    screen = Screen()

    def made(*_):
        wait_until(lambda: "the report of production is being made" in screen.getvalue(), "its line", 10)
        return SimpleNamespace(notebook="n", html="h", latest="l", outcome={"read_errors": 0})

    monkeypatch.setattr(report, "load_profile", lambda *_: SimpleNamespace(name="production"))
    monkeypatch.setattr(report, "run_report", made)
    with redirect_stderr(screen):
        report.report(output=tmp_path, profile=None, profile_file=None, pattern=".*", history="", keep=None)
