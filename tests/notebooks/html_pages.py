"""Find what a page fetches: a report must be one file that needs no other."""

from __future__ import annotations

import re

from bs4 import BeautifulSoup

LOADING = ("src", "href", "xlink:href", "srcset", "data", "poster", "action", "background")


def loaded(html: str) -> list[str]:
    """Return every address that a browser fetches for the page, or goes to from it, except places in the page."""
    tags = BeautifulSoup(html, "html.parser").find_all(True)
    named = [tag[name] for tag in tags for name in LOADING if tag.has_attr(name)]
    styled = re.findall(r"url\(\s*['\"]?([^'\")]+)", html) + re.findall(r"@import\s+['\"]?([^'\";]+)", html)
    return [address for address in named + styled if not address.startswith(("#", "data:"))]
