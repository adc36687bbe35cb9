"""``offramp export`` continues: its pace, failed observations, arguments that can't be meant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from typer.testing import CliRunner

from kit.cli.main import app
from kit.errors import ConnectError, PartialRead
from kit.health.export.metrics import LABELS
from kit.health.export.serving import Page
from kit.health.verbs.export import _Looks, _Pace
from tests.unit.health.export.readings import parse_text, reading, row, samples


class ToyReadings:
    """The result of each observation: a cost in requests, or an error."""

    def __init__(self, *looks: int | str) -> None:
        self.looks = list(looks)

    def take(self):
        if not self.looks:
            raise KeyboardInterrupt
        look = self.looks.pop(0)
        if isinstance(look, str):
            raise ConnectError(look)
        return replace(reading([row()]), n_requests=look)


def pages_of(readings: ToyReadings) -> tuple[list[dict[str, dict[tuple[str, ...], float]]], list[float]]:
    """The pages, and how long was slept after each."""
    pages: list[Page] = []
    slept: list[float] = []
    looks = _Looks(readings, _Pace(60, 600), LABELS["kminion"], slept.append)
    with pytest.raises(KeyboardInterrupt):
        looks.go_on(looks.first(), pages.append)
    return [samples(page.text.decode(), parse_text) for page in pages], slept


def test_an_observation_that_fails_is_reported_and_counted_and_the_figures_stay(capsys):
    (first, failed, last), _ = pages_of(ToyReadings(10, "no broker answers", 20))
    assert [page["offramp_failed_looks_total"][()] for page in (first, failed, last)] == [0, 1, 1]
    assert [page["offramp_looks_total"][()] for page in (first, failed, last)] == [1, 1, 2]
    assert [page["offramp_requests_total"][()] for page in (first, failed, last)] == [10, 10, 30]
    assert failed["offramp_consumer_group_lag"] == first["offramp_consumer_group_lag"]
    told = (
        "offramp: this observation failed; the metrics still show the observation of 00:00:00 UTC: no broker answers\n"
    )
    assert capsys.readouterr().err == told


def test_lags_in_time_that_could_not_be_read_are_reported_at_each_observation_and_counted(capsys):
    rows = pl.DataFrame([row()]).with_columns(error=pl.lit("broker 1 does not answer"))
    found = replace(reading([row()]), unknown_times=rows)
    readings = SimpleNamespace(take=lambda: found)
    looks = _Looks(readings, _Pace(60, 600), LABELS["kminion"], lambda _: None)
    first = samples(looks.first().text.decode(), parse_text)
    assert first["offramp_look_times_missing"] == {(): 1}

    def publish(page: Page) -> None:
        if looks.n_looks == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        looks.go_on(looks.first(), publish)
    told = (
        "offramp: The lag in time or the outlook of 1 partition is unknown, not zero: g/t-0: broker 1 does not answer\n"
    )
    assert capsys.readouterr().err == 2 * told
    with pytest.raises(PartialRead, match="no broker answers"):
        replace(found, error="no broker answers").verify_times()


def test_observations_are_rarer_where_they_cost_more_than_the_budget():
    pages, slept = pages_of(ToyReadings(10, 1200, 10))
    assert [page["offramp_look_interval_seconds"][()] for page in pages] == [60, 120, 60]
    assert [round(each) for each in slept] == [60, 120, 60]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--listen", "9308"], "can't be used"),
        (["--listen", "127.0.0.1:http"], "--listen '127.0.0.1:http' has no port"),
        (["--listen", "127.0.0.1:99999"], "metrics can't be served on 127.0.0.1:99999"),
        (["--listen", "no.such.host.invalid:0"], "metrics can't be served on no.such.host.invalid:0"),
        (["--every", "nan"], "nan is not a number"),
        (["--limit", "-1"], "Invalid value for '--limit'"),
    ],
)
def test_an_impossible_argument_is_one_error(words, told, tmp_path):
    ended = CliRunner().invoke(app, ["export", *words, "--profile-file", str(tmp_path / "none.toml")])
    assert ended.exit_code in (2, 3)
    assert told in ended.stderr or (told == "can't be used" and "none.toml" in ended.stderr)
    assert "Traceback" not in ended.output


def test_the_files_are_copied_by_the_verb(tmp_path):
    folder = tmp_path / "prometheus"
    ended = CliRunner().invoke(app, ["export", "--files", str(folder)])
    assert ended.exit_code == 0
    assert ended.stdout.split() == [str(folder / "dashboard.json"), str(folder / "alerts.yml")]
    assert all(Path(each).is_file() for each in ended.stdout.split())
