"""The tests of wizards wait for the end of a run, whichever it is: one that fails at once is not waited for."""

from __future__ import annotations

import time

import pytest

from tests.browser.wizard import RUN_MS, Wizard

PAGE = """<div class="offramp"><div class="offramp-safety">{bar}</div>
<p><strong>{state}</strong> broker 1 is not restarted.</p></div>"""
ALERT = '<div class="alert"><strong>✗ </strong>the lock was lost</div>'


@pytest.mark.parametrize(
    ("bar", "state", "said"),
    [
        ("", "✗ FAILED", "broker 1 is not restarted"),
        ("", "✗ STALE", "broker 1 is not restarted"),
        ("", "… STOPPED", "broker 1 is not restarted"),
        (ALERT, "… ACTING", "the lock was lost"),
    ],
)
def test_another_end_fails_with_what_the_wizard_reports(tab, monkeypatch, bar, state, said):
    monkeypatch.setattr("tests.browser.wizard.STEP_MS", 200)
    tab.page.set_content(PAGE.format(bar=bar, state=state))
    began = time.monotonic()
    with pytest.raises(AssertionError, match=said):
        Wizard(tab.page).expect_end("✓ VERIFIED")
    assert time.monotonic() - began < RUN_MS / 1000 / 10


def test_the_wanted_end_is_awaited(tab):
    tab.page.set_content(PAGE.format(bar="", state="… ACTING"))
    tab.page.evaluate("setTimeout(() => document.querySelector('p strong').innerText = '✓ VERIFIED', 300)")
    Wizard(tab.page).expect_end("✓ VERIFIED")
