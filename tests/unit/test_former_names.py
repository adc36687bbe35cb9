"""Names that notebooks of users imported continue working."""

from importlib import import_module

import pytest

import kit
from kit.former_names import FORMER_NAMES


@pytest.mark.parametrize(("before", "now"), FORMER_NAMES.items())
def test_a_module_is_found_by_its_former_name(before: str, now: str):
    assert import_module(before) is import_module(now)


def test_a_notebook_as_people_have_it_runs():
    source = """
import kit
import kit.kraft.status
import kit.proof.verify
from kit import analyze, health, kraft_watch, preflight, rebalances, settings_files, tables
from kit.analyze.known_sum import known_sum
from kit.analyze.metadata import soak as analysis
from kit.live import Looks, commits_and_ends
from kit.metadata_file import load_metadata
from kit.migrate import evidence, frames
from kit.migrate.kraft.rehearsals import keep_result
from kit.migrate.offsets.changes import offset_directions
from kit.migrate.offsets.delete_groups import DeleteGroupsRequest
from kit.migrate.operations import Operations
from kit.migrate.rendering.text import plan_text
from kit.offsets_topic import read_offsets_topic
from kit.preflight import preflight_of
from kit.rehearsal import HIDES, rehearse
from kit.show import brackets, brief, health_brief, health_charts, kraft_charts, searchable, sparkline

names = [kit.views.lag, kit.charts, kit.display.table, kit.History, kit.Hours, kit.analyze.partition_lag,
health.time_lag, kraft_watch.look, kraft_watch.KraftLook]
told = [rebalances.Rebalances.told, kit.kraft.status.KraftStatus.told, kit.proof.verify.Proof.told]
"""
    space: dict[str, object] = {}
    exec(source, space)
    assert space["Operations"] is import_module("kit.operations.operations").Operations
    assert space["frames"] is import_module("kit.operations.frames")
    kinds = ("group", "fleet", "protocol", "kraft", "delete_groups")
    assert {getattr(space["Operations"], f"plan_{kind}") for kind in kinds} == {space["Operations"].make_plan}
    assert space["frames"].members is import_module("kit.moves.group.frames").members
    assert kit.views is import_module("kit.groups.views")
