"""A list of groups to search and to choose from: fluent with ten thousand, and nothing continues before a choice."""

from __future__ import annotations

import ipywidgets as ipw
import polars as pl
import pytest

import widgets
from kit.errors import InputError, NotFound
from tests.models.operations import GROUP, ToyGroup, open_toy
from widgets.group.choice import SHOWN, NotChosen

MANY = pl.DataFrame(
    {
        "group_id": [f"team-{n % 7}.Service-{n:05}" for n in range(10_000)],
        "stage": "OZKCC",
        "n_members": [None, 3] * 5_000,
        "lag": [1234, None] * 5_000,
    }
)


def below(view):
    return [each for child in view.children for each in (child, *(below(child) if hasattr(child, "children") else ()))]


def of_kind(view, kind):
    return next(each for each in below(view) if isinstance(each, kind))


def choose(view, group_id):
    of_kind(view, ipw.Select).value = group_id
    of_kind(view, ipw.Button).click()


def texts(view):
    return " ".join(each.value for each in below(view) if isinstance(each, ipw.HTML))


def test_the_browser_gets_a_hundred_of_ten_thousand_groups_and_a_search_finds_each():
    view = widgets.group_picker(widgets.choose_group(MANY, ""))
    listed = of_kind(view, ipw.Select)
    assert len(listed.options) == SHOWN
    assert listed.options[0] == (
        "team-0.Service-00000 · OZKCC · members unknown · 1,234 records behind",
        MANY["group_id"][0],
    )
    assert "10,000 of 10,000 groups; the first 100 are listed" in texts(view)
    of_kind(view, ipw.Text).value = "service-09999 TEAM-3"
    assert [name for _, name in listed.options] == ["team-3.Service-09999"]
    assert "1 of 10,000 groups." in texts(view)
    of_kind(view, ipw.Text).value = "no such (group"
    assert listed.options == ()
    assert of_kind(view, ipw.Button).disabled


def test_without_a_view_the_list_stays_and_another_group_can_be_chosen():
    choice = widgets.choose_group(MANY, "")
    view = widgets.group_picker(choice)
    for group_id in MANY["group_id"][:2]:
        choose(view, group_id)
        assert choice.group_id == group_id
        assert f"Chosen: <strong>{group_id}</strong>" in texts(view)


def test_the_wizard_of_the_chosen_group_is_in_the_place_of_the_list(tmp_path):
    toy = ToyGroup()
    rows = pl.DataFrame({"group_id": [GROUP, "other"], "stage": "OZKCC", "n_members": 3, "lag": 0})

    def opened(name):
        if name != GROUP:
            raise NotFound(f"there is no group {name!r} any more")
        return open_toy(toy, tmp_path / "runs")

    choice = widgets.choose_group(rows, "", opened)
    view = widgets.group_picker(choice, widgets.wizard)
    with pytest.raises(NotChosen, match=r"No group is chosen\. Choose a group in the list above") as found:
        _ = choice.opened
    assert found.value._render_traceback_() == [str(found.value)], "a notebook shows the sentence alone"
    choose(view, "other")
    assert "there is no group 'other' any more" in texts(view).replace("&#x27;", "'").replace("&#39;", "'")
    assert choice.group_id == ""
    choose(view, GROUP)
    try:
        assert f"Migration of group {GROUP}" in texts(view)
        assert "Choose a group" not in texts(view)
        assert view.children[0].model is choice.opened
    finally:
        choice.opened.close()


def test_a_named_group_is_opened_at_once_and_no_group_is_listed():
    choice = widgets.choose_group(MANY, "named", lambda name: f"model of {name}")
    assert (choice.opened, len(choice.groups)) == ("model of named", 0)
    view = widgets.group_picker(choice)
    assert "Chosen: <strong>named</strong>" in texts(view)


def test_a_strangers_name_is_text_and_moves_nothing():
    name = "<b>x</b>\n\x1b[31m"
    rows = pl.DataFrame({"group_id": [name], "stage": "OZKCC", "n_members": 1, "lag": 0})
    choice = widgets.choose_group(rows, "")
    view = widgets.group_picker(choice)
    ((shown, value),) = of_kind(view, ipw.Select).options
    assert value == name
    assert shown.isprintable()
    choose(view, name)
    assert "<b>x" not in texts(view)


def test_in_a_notebook_an_error_is_one_line():
    assert InputError("no group is chosen")._render_traceback_() == ["InputError: no group is chosen"]
