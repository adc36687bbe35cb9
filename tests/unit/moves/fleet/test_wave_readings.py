"""A wave is read once in a dry run: thousands of waves read all groups once."""

from __future__ import annotations

from types import SimpleNamespace

from kit.engine.model.step import Step
from kit.moves.fleet.wave import WaveActor, WaveParameters, WaveReadings, wave_step
from kit.moves.group.toggle import Toggle
from kit.tables.groups import KAFKA
from tests.models.fleet import ToyFleet

NAMES = ("a", "b", "c")


def wave(number: int, group: str) -> Step:
    return wave_step(WaveParameters.of_toggles(number, {group: Toggle(None, None)}, KAFKA))


def test_a_dry_run_judges_each_wave_by_the_reading_of_all_groups_and_a_run_reads_it_again():
    toy = ToyFleet(*NAMES)
    toy.old = {"c"}
    for is_dry, expected in ((True, [list(NAMES)]), (False, [list(NAMES), ["a"], ["b"], ["c"]])):
        asked = []

        def read(cluster, groups, asked=asked):
            asked.append(list(groups))
            return toy.scan()

        readings = WaveReadings(SimpleNamespace(), is_dry, read)
        readings.observe(NAMES)
        actor = WaveActor(SimpleNamespace(), readings)
        found = [actor.check(wave(number, name)) for number, name in enumerate(NAMES)]
        assert asked == expected
        assert "1 of 1 group not ready: c has 1 OZKCC" in found[2].sentence
        assert [each.sentence for each in found[:2]] == ["1 group settled"] * 2
