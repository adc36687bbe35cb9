"""A wizard in a page, used as a person does: filled in, approved by keyboard, executed, awaited."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.offline import PATIENCE_MS, SCREENSHOTS

STEP_MS, RUN_MS = PATIENCE_MS, 400_000
"""One step of a person, and a whole run."""
ENDED = re.compile("[✓✗…] (VERIFIED|UNDONE|STOPPED|FAILED|UNDO_HALTED|STALE)")


class Wizard:
    """The first wizard of a page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.all = page.locator(".offramp").first  # The list of groups, and within it the wizard of the chosen one.

    def button(self, name: str) -> Locator:
        return self.all.get_by_role("button", name=name, exact=True)

    def field(self, label: str) -> Locator:
        return self.all.get_by_label(label, exact=True)

    def expect(self, text: str, within_ms: int = STEP_MS) -> None:
        expect(self.all.get_by_text(text).first).to_be_visible(timeout=within_ms)

    def expect_stage(self, stage: str) -> None:
        expect(self.all.locator('[aria-current="step"]')).to_contain_text(f". {stage}")

    def approve(self, subject: str, label: str = "Type the group's name") -> str:
        """Approve by keyboard alone; returns the digest."""
        digest = self.type_approval(subject, label)
        self.page.keyboard.press("Tab")
        expect(self.button("Approve this plan")).to_be_focused()
        self.page.keyboard.press("Enter")
        self.expect("✓ Approved by")
        return digest

    def type_approval(self, subject: str, label: str) -> str:
        """Type what has to be typed; returns the digest. The button waits for the whole text."""
        approve = self.button("Approve this plan")
        self.expect(f"“Approve this plan” is disabled: type {subject} and the first 8 characters of the digest")
        # A cell that JupyterLab has scrolled out of view has an empty inner text: nothing would be typed.
        digest = self.all.locator("p", has_text="Digest").locator("code").text_content() or ""
        assert len(digest) == 64, digest
        expect(approve).to_be_disabled()
        self.field(label).focus()
        self.page.keyboard.type(subject)
        self.page.keyboard.press("Tab")
        self.page.keyboard.type(digest[:8])
        expect(approve).to_be_enabled()
        return digest

    def carry_out(self) -> None:
        self.button("Execute the plan").click()
        self.expect("This notebook executes the run")
        expect(self.button("Stop")).to_be_enabled()
        self.expect_end("✓ VERIFIED")

    def expect_end(self, wanted: str) -> None:
        """Wait for the run's end; another end than the wanted one fails at once, with what the wizard says of it."""
        verdict = self.all.locator("p", has=self.page.locator("strong")).filter(has_text=ENDED).first
        refused = self.all.locator(".offramp-safety .alert").first
        expect(verdict.or_(refused).first).to_be_visible(timeout=RUN_MS)
        assert refused.count() == 0, refused.inner_text()
        expect(verdict).to_contain_text(wanted, timeout=STEP_MS)
        expect(self.all.get_by_text("can't draw this part")).to_have_count(0)
        self.expect_idle()

    def expect_idle(self) -> None:
        """Wait until the last action has ended. A run's end is shown before that, and typed fields are emptied then."""
        expect(self.all.locator('p[role="status"]').filter(has_text=re.compile("^… "))).to_have_count(0)

    def picture(self, name: str) -> None:
        """For people to examine."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.all.locator("h2").first.scroll_into_view_if_needed()
        self.all.screenshot(path=SCREENSHOTS / f"{name}.png")
