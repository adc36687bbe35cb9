"""A pytest plugin: one line for each reason of skipped tests, with their number, in place of one for each test."""

from __future__ import annotations

from collections import Counter

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", ()))
    for reason, n in reasons.most_common():
        terminalreporter.write_line(f"{n} skipped: {reason}")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    _, _, reason = report.longrepr if isinstance(report.longrepr, tuple) else ("", 0, str(report.longrepr))
    return reason.removeprefix("Skipped: ")
