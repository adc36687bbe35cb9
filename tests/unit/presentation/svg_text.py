"""The text that a drawn chart shows."""

from __future__ import annotations

from xml.etree import ElementTree


def drawn_texts(svg: str) -> list[str]:
    """The texts of the drawing, in its order."""
    texts = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return [part for text in texts for part in text.itertext()]


def drawn_text(svg: str) -> str:
    """All texts of the drawing in one line."""
    return " | ".join(drawn_texts(svg))
