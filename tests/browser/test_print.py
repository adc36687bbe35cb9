"""A printed page is whole: no value ends at the paper's edge."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from kit.engine.rendering.pages import record_html
from tests.models.engine import ModelRun

PAPER = {"width": 1032, "height": 703}
"""CSS pixels of A4, landscape, within its margins."""
LONG = "x" * 249
BEYOND = "[...document.querySelectorAll('.wide')].map(each => each.scrollWidth - each.clientWidth)"


@pytest.mark.parametrize("name", ["i00", LONG])
def test_a_run_s_evidence_fits_on_paper(browser: Browser, tmp_path, name):
    world = ModelRun(tmp_path, (2, 1), made_by="Ann")
    world.run.act()
    context = browser.new_context(viewport=PAPER)
    try:
        page = context.new_page()
        page.emulate_media(media="print")
        page.set_content(record_html(world.run.record).replace(">i00<", f">{name}<"))
        assert max(page.evaluate(BEYOND)) <= 0
        assert page.get_by_text(world.run.record.plan.digest).first.is_visible()
    finally:
        context.close()
