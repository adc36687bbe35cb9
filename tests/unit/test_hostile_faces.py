"""No name is markup to any face: tables, charts, pages and wizards with the hostile list in every place."""

from __future__ import annotations

import ast
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from hypothesis import given

import kit
import widgets
from kit.groups.show import charts, display
from kit.presentation import chart
from kit.text.visible import cell, html_text, visible
from tests import hostile_faces
from tests.generators import hostile

pytestmark = pytest.mark.slow

OUR_TAGS = re.compile(
    "a|b|body|br|caption|code|details|div|h[123]|head|html|i|iframe|li|meta|ol|p|small|span|strong|style|summary|table|"
    "tbody|td|th|thead|title|tr|ul|svg|g|path|rect|text|tspan|line|polyline|circle|defs|lineargradient|stop|clippath"
)
ROOTS = [Path(module.__file__).parent for module in (kit, widgets)]


def refuse_foreign(html: str, where: str) -> None:
    """Check that nothing in the page runs, loads or hides."""
    parsed = BeautifulSoup(html, "html.parser")
    for tag in parsed.find_all(True):
        assert OUR_TAGS.fullmatch(tag.name), f"{where}: <{tag.name}>"
        assert not [name for name in tag.attrs if name.startswith("on")], f"{where}: {tag}"
        assert not re.match(r"\s*javascript:", tag.get("href", "")), f"{where}: {tag}"
        assert tag.name != "iframe" or "sandbox" in tag.attrs, where
    hidden = {char for char in parsed.get_text() if not char.isprintable()} - {"\n", "\u2009"}
    assert not hidden, f"{where}: {hidden}"


@given(hostile.texts())
def test_whatever_is_visible_stays_so(text):
    told = visible(text)
    assert told.isprintable()
    assert told.encode().decode() == told
    assert visible(told) == told
    assert told == text or not text.isprintable() or any(char in text for char in "\ufe0f\u2800\u3164\u034f")


@given(hostile.texts())
def test_html_gives_back_what_is_visible(text):
    parsed = BeautifulSoup(f'<p title="{html_text(text)}">{html_text(text)}</p>', "html.parser")
    assert parsed.get_text().strip() == visible(text).strip()
    assert parsed.p["title"] == visible(text)
    assert [tag.name for tag in parsed.find_all(True)] == ["p"]


@pytest.mark.parametrize("char", ["\u202e", "\u2066", "\u200b", "\u2028", "\u3164", "\ufe0f", "\x9b", "\x7f", "\u00a0"])
def test_invisible_characters_are_spelled(char):
    assert visible(f"a{char}b") in {f"a\\x{ord(char):02x}b", f"a\\u{ord(char):04x}b"}


def test_cells_distinguish_lists_and_blanks():
    assert cell(["a, b", "", None, "c"]) == '"a, b", "", –, c'
    assert cell(" x ") == "\\x20x\\x20"
    assert cell("a\nb") == "a\\nb"
    assert cell("x" * 10_000).endswith("(10,000 characters)")


@pytest.mark.parametrize("name", hostile_faces.TABLES)
def test_every_table(name):
    frame = hostile_faces.of_table(hostile_faces.TABLES[name], hostile.GROUPS)
    html = display.table(frame).to_html()
    refuse_foreign(html, name)
    texts = {td.get_text() for td in BeautifulSoup(html, "html.parser").find_all("td")}
    if "String" in str(frame.schema):
        assert {cell(each) for each in hostile.GROUPS if each.strip()} <= texts | {each.strip() for each in texts} or (
            "List" in str(frame.schema) and len(texts) > 100
        )


def test_every_type_of_column_and_its_name():
    html = display.table(hostile_faces.of_every_type(hostile_faces.SHORT)).to_html()
    refuse_foreign(html, "every type")
    parsed = BeautifulSoup(html, "html.parser")
    heads = [th.get_text() for th in parsed.find_all("th")] + [each["title"] for each in parsed.select("th [title]")]
    assert {visible(name) for name in hostile_faces.SHORT} <= set(heads)


@pytest.mark.parametrize("name", hostile_faces.CHARTS)
def test_every_chart(name):
    title = hostile_faces.ALL_IN_ONE[0]
    svg = charts.svg(hostile_faces.chart(name, hostile_faces.SHORT, title))
    refuse_foreign(svg, name)
    texts = ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert chart.drawn_text(title, chart.LONGEST_TITLE) in texts


@pytest.mark.parametrize("name", hostile_faces.CHARTS)
def test_no_name_breaks_a_chart(name):
    """Also one that every JavaScript object has a property of; each drawn alone, as most charts draw but the first."""
    for each in ("constructor", "toString", "null", "NaN", "0", ""):
        assert charts.svg(hostile_faces.chart(name, [each], each)).startswith("<svg")


def test_a_charts_texts_are_not_taken_for_its_ids():
    told = '<svg><linearGradient id="a"/><g fill="url(#a)"/><text>id="a" url(#a)</text></svg>'
    own = chart.with_own_ids(told)
    assert '<text>id="a" url(#a)</text>' in own
    (number,) = re.findall(r'linearGradient id="([^"]+)"', own)
    assert f'<g fill="url(#{number})"/>' in own
    assert number != "a"


@pytest.fixture(scope="module", params=range(len(hostile_faces.ALL_IN_ONE)), ids=["scripts", "markup", "controls"])
def wizards(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        yield hostile_faces.Wizards(tmp_path_factory.mktemp("wizards"), hostile_faces.ALL_IN_ONE[request.param], patch)


def test_every_fragment_of_every_wizard(wizards):
    for where, html in wizards.html.items():
        refuse_foreign(html, where)
        assert "draw this part" not in html or where == "group not drawn", (where, html)
    assert any(html_text(wizards.name) in html for html in wizards.html.values())


def test_no_fragment_is_left_out(wizards):
    """A new one that no wizard of these shows fails here: show it, with a hostile name."""
    known = set.union(*map(hostile_faces.fragments_of, hostile_faces.FRAGMENTS))
    assert known - wizards.called == set()


def test_html_is_escaped_in_one_place():
    """Nobody but ``kit.text.visible`` escapes, and nobody prints but ``kit.terminal.terminal``."""
    for path in [path for root in ROOTS for path in root.rglob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        froms = [
            (node.module, alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        ]
        modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        if path.name != "visible.py":
            assert "html" not in modules | {module for module, _ in froms}, path
        if path.name != "terminal.py":
            printing = {each for each in froms if each[0] and each[0].startswith("rich")} - {("rich.cells", "cell_len")}
            assert not printing, path
