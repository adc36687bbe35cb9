"""An axis of counts has whole numbers, each once."""

from __future__ import annotations

import altair as alt
import polars as pl
import pytest

from kit.groups.show import charts
from kit.presentation import axes
from tests.unit.presentation.svg_text import drawn_texts


@pytest.mark.parametrize("most", [1, 2, 3, 7])
@pytest.mark.parametrize("height", [70, 520])
@pytest.mark.parametrize("form", ["d", "~s"])
def test_each_whole_number_is_reported_once(most, height, form):
    rows = pl.DataFrame({"at": [1, 2], "n": [0, most]})
    count = alt.Y("n:Q", title=None, axis=axes.of_counts(format=form))
    chart = alt.Chart(rows).mark_bar().encode(x=alt.X("at:N", title=None, axis=None), y=count).properties(height=height)
    told = drawn_texts(charts.svg(chart))
    assert told == sorted(set(told), key=int)
    assert told[0] == "0"


def test_a_group_of_one_partition_owns_one():
    rows = pl.DataFrame(
        {
            "group_id": ["shop"],
            "source": ["kafka"],
            "member_id": ["m"],
            "n_partitions": [1],
            "n_threads": [1],
            "fair_share": [1.0],
            "share_ratio": [1.0],
            "is_idle": [False],
        }
    )
    told = drawn_texts(charts.svg(charts.member_share_bars(rows)))
    assert (told.count("0"), told.count("1")) == (1, 1)
