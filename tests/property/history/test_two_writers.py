"""Two processes write to one history at once: while one is stalled before a change, the other one begins and ends.

``make soak``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kit.errors import HistoryError
from kit.history import History
from tests.generators.small_snapshots import SECOND, small_snapshot, snapshot_id
from tests.property.history import scenes
from tests.property.history.scenes import BEGUN, NEW, SCENES, InterruptedWrite
from tests.property.history.standing import fresh, moments, told
from tests.soak import report, soak_only

pytestmark = [soak_only, pytest.mark.usefixtures("few_tables"), pytest.mark.xdist_group("histories")]

OTHERS = 5
SCENE = {scene.name: scene for scene in SCENES}
PAIRS = [
    ("first append", "append"),
    ("append", "append"),
    ("compact", "compact"),
    ("append", "compact"),
    ("compact", "append"),
    ("compact", "expire"),
    ("sweep", "compact"),
    ("hours", "hours"),
    ("hours", "expire"),
]


def other(spark: SparkSession, folder: Path, verb: str, scene: InterruptedWrite) -> None:
    if verb == "append":
        History(spark, str(folder)).append(small_snapshot(spark, SECOND, OTHERS))
    elif verb != "compact" or scenes.found(spark, folder):
        scenes.again(spark, folder, InterruptedWrite(verb, verb, "", later=scene.later))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("name", "verb"), PAIRS, ids=lambda each: each)
def test_two_at_once(spark, writer, begun, tmp_path, name, verb, record_property):
    scene, folder = SCENE[name], tmp_path / "history"
    expected = set() if scene.is_empty else set(BEGUN)
    expected |= {NEW} if scene.verb == "append" else set()
    expected |= {snapshot_id(SECOND, OTHERS)} if verb == "append" else set()
    if verb == "expire":
        expected = {each for each in expected if each.startswith(f"{SECOND:%Y%m%d}")}
    tried = moments(writer, fresh(folder, begun, scene), scene)
    report(record_property, f"{verb} during {name}: {len(tried)} moments")
    for moment in tried:
        what = told(writer, fresh(folder, begun, scene), scene, *moment)
        assert what.startswith("stopped") or not moment[0], what
        other(spark, folder, verb, scene)
        ended = writer.go_on() if what.startswith("stopped") else what
        try:
            assert ended.startswith("done") or (verb == "expire" and "Run the compaction again" in ended), ended
            assert scenes.found(spark, folder) == expected
            hours = scenes.hours(spark, folder)
            if scene.verb == "hours" and verb == "hours":
                assert len({row["hour_ms"] for row in hours}) == 2
            scenes.tidy(spark, folder)
            assert scenes.found(spark, folder) == expected
            scenes.hours(spark, folder)
            assert scenes.rubbish(folder) == []
        except (AssertionError, HistoryError) as error:
            error.add_note(f"{name} was before {moment} ({what}), {verb} came between")
            raise
