"""Java's properties: what is written is read again as it was, whatever names and values hold."""

from __future__ import annotations

from hypothesis import given, strategies as st

from kit.text.properties import parse_properties, render_properties

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)


@given(st.dictionaries(TEXT.filter(bool), TEXT, max_size=5))
def test_a_file_that_was_written_is_read_again(settings):
    assert parse_properties(render_properties(settings)) == settings


@given(TEXT)
def test_any_text_is_read(text):
    assert all(isinstance(value, str) for value in parse_properties(text).values())


@given(TEXT, TEXT)
def test_no_value_makes_a_second_setting(key, value):
    assert len(parse_properties(render_properties({f"k{key}": value}))) == 1
