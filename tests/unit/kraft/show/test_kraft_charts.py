"""The pictures of a move to KRaft say what the frames hold."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import polars as pl
import pytest

from kit.groups.show import charts
from kit.kraft.analyze.phase import PHASES
from kit.kraft.show import kraft_charts
from kit.tables import schema as tables
from kit.tables.kraft import KraftNode, KraftState
from tests.kraft_records import DIFFERING, kraft_look
from tests.unit.presentation.svg_text import drawn_text, drawn_texts

BROKER = KraftNode("broker", 1, "b:9092", "dual write", "migration", True, True, "ZooKeeper mode", None, None)
CONTROLLER = KraftNode("controller", 3000, "c:9093", "dual write", "kraft", True, None, "ready to migrate", True, None)
SILENT = replace(CONTROLLER, node_id=3001, stands_at="unknown", mode=None, has_flag=None, error="no answer")


def nodes(*rows: KraftNode) -> pl.DataFrame:
    return pl.DataFrame(tables.KRAFT_NODES.from_rows(rows))


def drawn(chart) -> list[str]:
    return drawn_texts(charts.svg(chart))


@pytest.mark.parametrize("phase", PHASES)
def test_the_strip_has_a_box_for_each_phase_and_a_dot_for_each_node(phase):
    said = drawn(kraft_charts.phase_strip(nodes(BROKER, CONTROLLER), phase))
    assert [each for each in said if each in (*PHASES, "unknown")] == list(PHASES)
    assert {"1", "3000", "broker, migration mode", "1 broker, 1 controller"} <= set(said)


def test_nodes_are_within_their_box_and_ids_within_their_node():
    brokers = [replace(BROKER, node_id=at) for at in range(1, 5)]
    controllers = [replace(CONTROLLER, node_id=3000 + at) for at in range(4)]
    svg = charts.svg(kraft_charts.phase_strip(nodes(*brokers, *controllers), "dual write"))
    places = re.findall(r'aria-roledescription="point"[^>]*transform="translate\(([\d.]+),([\d.]+)\)"', svg)
    across = sorted({float(x) for x, _ in places})
    ring = math.sqrt(kraft_charts._RING / math.pi)
    left = PHASES.index("dual write") * kraft_charts._BOX
    assert (len(places), len(across)) == (12, 4), "eight nodes and four rings, in two lines of four"
    assert left < across[0] - ring
    assert across[-1] + ring < left + kraft_charts._BOX - 6
    assert all(after - before > 2 * ring for before, after in pairwise(across))
    widest = 0.7 * kraft_charts._DIGITS * kraft_charts._FONT  # a bold digit of the widest usual font
    assert widest < min(math.sqrt(kraft_charts._SQUARE), 2 * math.sqrt(kraft_charts._CIRCLE / math.pi))


def test_a_node_that_does_not_answer_has_a_box_of_its_own():
    said = drawn(kraft_charts.phase_strip(nodes(BROKER, SILENT), "dual write"))
    assert {"unknown", "3001", "no answer", "1 broker, 1 controller, 1 of 2 don't answer"} <= set(said)


def test_a_cluster_without_zookeeper_has_a_box_of_its_own():
    rows = [replace(each, stands_at="no ZooKeeper", mode="kraft") for each in (BROKER, CONTROLLER)]
    said = drawn(kraft_charts.phase_strip(nodes(*rows), "no ZooKeeper"))
    assert [each for each in said if each in (*PHASES, "no ZooKeeper", "unknown")] == [*PHASES, "no ZooKeeper"]


def test_a_controller_without_the_flag_is_distinguished():
    said = drawn(kraft_charts.phase_strip(nodes(replace(CONTROLLER, has_flag=False)), "dual write"))
    assert "controller, no flag" in said
    assert "controller" not in said


def test_moved_nodes_are_drawn_among_many():
    many = [replace(BROKER, node_id=at) for at in range(500)]
    said = drawn(kraft_charts.phase_strip(nodes(*many, replace(BROKER, node_id=999, stands_at="kraft")), "dual write"))
    assert "999" in said
    assert "120 of 501 nodes; those in another phase come first" in said


def test_the_grid_reports_what_each_node_reported():
    said = drawn(kraft_charts.node_grid(nodes(BROKER, CONTROLLER, SILENT)))
    assert {"broker 1 b:9092", "migration mode", "leads", "no answer", "ready to migrate", "yes", "–"} <= set(said)


def test_the_matrix_counts_each_verdict_of_each_kind():
    said = drawn(kraft_charts.verdict_matrix(DIFFERING.differences))
    assert "equal in both stores: 2 of 6 values" in said
    assert said.count("1") == 6
    assert {"in flight", "diverged", "quota"} <= set(said)


def states(*rows: KraftState) -> pl.DataFrame:
    return pl.DataFrame(tables.KRAFT_STATES.from_rows(rows))


def test_the_timeline_stacks_what_differs_and_leaves_gaps():
    looks = [kraft_look(DIFFERING).state, kraft_look(minutes=1).state, kraft_look(error="gone", minutes=2).state]
    svg = charts.svg(kraft_charts.drift_timeline(states(*looks)))
    said = drawn_texts(svg)
    assert {
        "Observations: 3",
        ("in 1 of 3 observations something could not be read"),
        "records behind",
        "diverged",
    } <= set(said)
    heights = [float(each) for each in re.findall(r'aria-roledescription="rect mark"[^>]*d="M[^"]*?v(-?[\d.]+)', svg)]
    assert len(heights) == 3 + 3, "a band of the phase per observation, and a rectangle per open verdict of the first"


def test_the_timeline_is_empty_without_observations():
    looks = [kraft_look(minutes=at).state for at in (0, 1, 2, 60, 61)]
    svg = charts.svg(kraft_charts.drift_timeline(states(*looks)))
    bands = re.findall(r'aria-roledescription="rect mark"[^>]*d="M[^"]*?h(-?[\d.]+)', svg)
    assert len(bands) == 5
    drawn_minutes = 62 * sum(abs(float(each)) for each in bands) / kraft_charts._WIDTH
    assert round(drawn_minutes) == 5, "three observations of a minute, and two"
    assert "Observations: 5" in drawn_text(svg)


def test_one_record_behind_is_no_half():
    said = drawn(kraft_charts.drift_timeline(states(replace(kraft_look(DIFFERING).state, lag=1))))
    assert "0.5" not in said


def test_points_show_the_worst_of_the_observations_they_share():
    first = kraft_look(DIFFERING).state
    calm = [replace(first, at=first.at + timedelta(seconds=at), lag=1) for at in range(1_000)]
    calm[500] = replace(calm[500], lag=77)
    said = drawn(kraft_charts.drift_timeline(states(*calm)))
    assert "334 points of 1,000 observations, each the worst of 3" in said
    assert "60" in said, "the axis reaches to the 77 of one observation"
