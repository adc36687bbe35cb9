"""A Chromium that reaches nothing but this machine, and its pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser import chromium
from tests.notebooks.executed import ROOT

SCREENSHOTS = ROOT / "build" / "screenshots"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
NO_NAMES = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
ELSEWHERE = re.compile(r"^(?!(https?|wss?)://127\.0\.0\.1[:/]|data:|blob:|file:|about:)")
PATIENCE_MS = 90_000
"""The time for a page to show what it must show; five seconds, Playwright's own, are too few on a busy machine."""

expect.set_options(timeout=PATIENCE_MS)


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser that ends with the block."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=chromium.find(), args=[*FLAGS, NO_NAMES], timeout=PATIENCE_MS
        )
        try:
            yield running
        finally:
            running.close()


@dataclass
class Tab:
    """A page that can't leave this machine, and every address elsewhere that it asked for."""

    page: Page
    elsewhere: list[str] = field(default_factory=list)


@contextmanager
def opened_tab(browser: Browser) -> Iterator[Tab]:
    """One page in a profile of its own; what it asks of other machines is noted and refused."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    context.set_default_timeout(PATIENCE_MS)
    try:
        opened = Tab(context.new_page())
        context.route(ELSEWHERE, lambda route: (opened.elsewhere.append(route.request.url), route.abort()))
        opened.page.on("websocket", lambda socket: opened.elsewhere.extend(filter(ELSEWHERE.match, [socket.url])))
        yield opened
    finally:
        context.close()
