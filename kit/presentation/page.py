"""An executed notebook as one HTML page that loads nothing: contents, light and dark, fit to print."""

from __future__ import annotations

import copy
from typing import Any

from nbconvert import HTMLExporter

from kit.presentation.chart import with_own_ids
from kit.text.visible import html_text

_STYLE = """
:root { color-scheme: light dark; --text: #1c2733; --soft: #5b6773; --line: #d5dce3; --head: #f2f5f8; --page: #fff;
  --link: #1d5fa8; }
@media (prefers-color-scheme: dark) { :root { --text: #e3e9ee; --soft: #9fabb6; --line: #3a454f; --head: #222b33;
  --page: #151b20; --link: #8cc2f5; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 78rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--text); background: var(--page); }
a { color: var(--link); } h1 { font-size: 1.7rem; } .anchor-link { display: none; }
h2 { margin-top: 2.6rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem; }
.contents { border: 1px solid var(--line); border-radius: .5rem; background: var(--head); padding: .6rem 1rem; }
.contents ul { margin: 0; padding: 0; columns: 16rem; list-style: none; }
table { border-collapse: collapse; font-size: 13px; } .jp-RenderedHTMLCommon, .output_html, .output_subarea {
  overflow-x: auto; } .output_html { margin-bottom: 1rem; }
th { background: var(--head); white-space: nowrap; vertical-align: bottom; } th span[title] { cursor: help; }
:target { background: #f0c06055; outline: 2px solid #f0c060; }
caption { color: var(--soft); text-align: left; } pre { white-space: pre-wrap; color: var(--soft); margin: .6rem 0; }
svg { max-width: 100%; height: auto; border-radius: .4rem; }
.whole-table { margin: 1rem 0; overflow-x: auto; } .whole-table > summary { cursor: pointer; font-weight: 600; }
@page { size: landscape; margin: 12mm; }
@media print { :root { --text: #000; --page: #fff; --head: #eee; --line: #999; --link: #000; } body { margin: 0;
  max-width: none; } .contents, .whole-table { display: none; } h2, h3 { break-after: avoid; } svg, tr, .figure {
  break-inside: avoid; } thead { display: table-header-group; } table { font-size: 9px; }
  svg { max-height: 16cm; width: auto; }
  th, td { white-space: normal !important; min-width: 0 !important; padding: .15em .4em !important; } }
"""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head><body>
{body}
</body></html>
"""


def render_html(notebook: Any, title: str, without: str = "") -> str:
    """Outputs and text of an executed notebook as one page without links to other files, contents after the first
    output.

    Lines of servers and clients on standard error stay in the notebook, and so do cells tagged ``without``.
    """
    notebook = copy.deepcopy(notebook)
    notebook.cells = [cell for cell in notebook.cells if without not in cell.metadata.get("tags", ())]
    for cell in notebook.cells:
        if "outputs" in cell:
            cell["outputs"] = [_inline(output) for output in cell["outputs"] if output.get("name") != "stderr"]
    exporter = HTMLExporter(template_name="basic", exclude_input=True, exclude_output_prompt=True)
    body, _ = exporter.from_notebook_node(notebook)
    return _PAGE.format(title=html_text(title), style=_STYLE, body=_with_contents(body, _headings(notebook)))


def _inline(output: Any) -> Any:
    """A chart as an element of the page, so that a browser finds the names in it; nbconvert would make it a file."""
    if "image/svg+xml" in output.get("data", {}):
        output["data"] = {"text/html": with_own_ids(output["data"]["image/svg+xml"])}
    return output


def _headings(notebook: Any) -> list[str]:
    """The sections' titles, of our own notebooks: no name of a stranger."""
    lines = (line for cell in notebook.cells if cell.cell_type == "markdown" for line in cell.source.splitlines())
    return [line.removeprefix("## ") for line in lines if line.startswith("## ")]


def _with_contents(body: str, headings: list[str]) -> str:
    """The list of sections before the first of them; nbconvert gives a heading its words with dashes as its id."""
    if not headings:
        return body
    items = "".join(
        f'<li><a href="#{html_text(each.replace(" ", "-"))}">{html_text(each)}</a></li>' for each in headings
    )
    at = body.index("<h2")
    return f'{body[:at]}<div class="contents"><ul>{items}</ul></div>{body[at:]}'
