"""Make the beginning of a report: a row of figures and a few sentences."""

from __future__ import annotations

from dataclasses import dataclass

from kit.text.visible import html_text


@dataclass(frozen=True, slots=True)
class Brief:
    """``figures``: label, value, and how it changed (may be empty); ``sentences``: for people."""

    figures: tuple[tuple[str, str, str], ...]
    sentences: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        boxes = (
            f'<div class="figure"><b>{html_text(value)}</b><span>{html_text(label)}</span>'
            f"<small>{html_text(change)}</small></div>"
            for label, value, change in self.figures
        )
        items = "".join(f"<li>{html_text(each)}</li>" for each in self.sentences)
        return f'{_STYLE}<div class="figures">{"".join(boxes)}</div><ul class="brief">{items}</ul>'


_STYLE = """<style>
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.8em, 1fr)); gap: .6em; margin: 1em 0; }
.figure { border: 1px solid #8886; border-radius: .5em; padding: .5em .8em; }
.figure b { display: block; font-size: 1.6em; line-height: 1.2; font-variant-numeric: tabular-nums; }
.figure span { display: block; } .figure small { opacity: .75; } .brief li { margin: .3em 0; }
</style>"""
