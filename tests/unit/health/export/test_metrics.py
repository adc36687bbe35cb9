"""The dashboard and the rules name metrics that are exported; what is unknown has no sample; names survive."""

from __future__ import annotations

import json
import math
import re
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import yaml
from hypothesis import given, settings, strategies as st

from kit.errors import InputError
from kit.health.export.metrics import LABELS, Count, metrics_of
from kit.health.export.readings import OwnerMoves, Reading, chosen
from kit.health.export.serving import FILES, copy_files, page_of, write_textfile
from tests import promtool
from tests.generators import hostile
from tests.unit.health.export.readings import parse_openmetrics, parse_text, reading, row, samples

NAME = re.compile(r"\bofframp_\w+")
LABEL = re.compile(r"\b(group_id|topic_name|partition_id|store|status|stage)\b")
RULE_TESTS = Path(__file__).with_name("alerts.test.yml")
PARTITION = "offramp_consumer_group_topic_partition_"


def page(read: Reading, labels: str = "kminion"):
    return page_of(metrics_of(read, Count(3, 1, 36), 60.0, LABELS[labels]))


def exported() -> dict[str, dict[tuple[str, ...], float]]:
    return samples(page(reading([row()])).text.decode(), parse_text)


def test_both_formats_report_the_same():
    found = page(reading([row()]))
    assert samples(found.openmetrics.decode(), parse_openmetrics) == samples(found.text.decode(), parse_text)


def test_times_are_seconds_and_never_is_infinite():
    found = exported()
    key = ("g", "0", "kafka", "t")
    assert found[PARTITION + "time_lag_seconds"][key] == 1.5
    assert found[PARTITION + "closed_in_seconds"][key] == math.inf
    assert found[PARTITION + "unread_deleted_in_seconds"][key] == 2
    assert found["offramp_consumer_group_owner_moves_total"] == {("g", "kafka"): 2}
    assert found["offramp_consumer_group_partitions"]["g", "STOP", "kafka"] == 1
    assert found["offramp_consumer_group_partitions"]["g", "OK", "kafka"] == 0
    assert found["offramp_failed_looks_total"] == {(): 1}


def test_an_unknown_value_has_no_sample():
    unknown = dict.fromkeys(("lag", "committed_offset", "log_end_offset", "time_lag_ms", "deletion_lower_ms"))
    found = samples(page(reading([row(), row(partition=1, **unknown, is_never_closed=None)])).text.decode(), parse_text)
    for name in ("lag", "committed_offset", "time_lag_seconds", "closed_in_seconds", "unread_deleted_in_seconds"):
        assert list(found[PARTITION + name]) == [("g", "0", "kafka", "t")], name
    assert found["offramp_consumer_group_unknown_partitions"] == {("g", "kafka"): 1}


NAMES = st.builds(lambda text: text.encode("utf-8", "backslashreplace").decode(), hostile.texts())


@settings(max_examples=20)
@given(st.lists(st.tuples(NAMES, hostile.topics()), min_size=5, max_size=12, unique=True))
def test_hostile_names_survive_both_formats(names):
    """Several on a page: most of a page is the same whatever the names are."""
    found = page(reading([row(group_id=group, topic=topic) for group, topic in names]))
    wanted = sorted((group, "0", "kafka", topic) for group, topic in names)
    for text, parse in ((found.text, parse_text), (found.openmetrics, parse_openmetrics)):
        assert sorted(samples(text.decode(), parse)[PARTITION + "lag"]) == wanted


def test_the_limit_takes_whole_groups_with_the_most_lag():
    groups = pl.DataFrame(
        {"group_id": ["few", "many", "none", "wide"], "lag": [7, 9, None, 8], "n_partitions": [2, 2, 1, 40]}
    ).with_columns(store=pl.lit("kafka"))
    own, others = chosen(groups, 5)
    assert own["group_id"].to_list() == ["many", "few", "none"]
    assert others["group_id"].to_list() == ["wide"]


def owned(*owners: str | None) -> Any:
    ownership = pl.DataFrame(
        [("g", "kafka", "t", at, owner, None) for at, owner in enumerate(owners)],
        schema={"group_id": str, "source": str, "topic": str, "partition": pl.Int32, "member_id": str, "error": str},
        orient="row",
    ).with_columns(is_shared=pl.lit(None, pl.Boolean))
    return SimpleNamespace(ownership=ownership, groups=pl.DataFrame({"group_id": ["g"]}))


def test_a_move_is_counted_also_when_no_one_owned_the_partition_between():
    moves = OwnerMoves()
    assert moves.count(owned("a", "b")) == {("g", "kafka"): 0}
    assert moves.count(owned(None, "a")) == {("g", "kafka"): 1}
    assert moves.count(owned("c", "a")) == {("g", "kafka"): 2}


def used() -> list[tuple[str, str]]:
    """Every expression of the dashboard and of the rules."""
    folder = Path(str(files("kit.health.export")))
    panels = json.loads((folder / "dashboard.json").read_text())["panels"]
    rules = [each for group in yaml.safe_load((folder / "alerts.yml").read_text())["groups"] for each in group["rules"]]
    return [(panel["title"], target["expr"]) for panel in panels for target in panel["targets"]] + [
        (rule["alert"], rule["expr"]) for rule in rules
    ]


def test_every_metric_of_the_dashboard_and_the_rules_is_exported():
    found = exported()
    assert len(used()) > 20
    for where, expression in used():
        named = NAME.findall(expression)
        assert named, where
        assert set(named) <= set(found), where
    labels = set(LABEL.findall(page(reading([row()])).text.decode()))
    assert {label for _, expression in used() for label in LABEL.findall(expression)} <= labels


def test_every_metric_is_documented():
    text = (Path(__file__).parents[4] / "docs" / "export.md").read_text(encoding="utf-8")
    assert set(exported()) == set(NAME.findall(text)) - {"offramp_other_"}


@promtool.needed
def test_promtool_accepts_rules_and_metrics():
    promtool.check("check", "rules", str(files("kit.health.export") / "alerts.yml"))
    for labels in LABELS:
        promtool.check("check", "metrics", given=page(reading([row()]), labels).text)


@promtool.needed
def test_each_rule_fires_when_it_should_and_for_no_other_group():
    promtool.check("test", "rules", str(RULE_TESTS))


def test_each_rule_has_a_test_with_metrics_that_are_exported():
    """Without promtool too: what its tests feed the rules is what an exporter has, names, labels and all."""
    rules = yaml.safe_load((files("kit.health.export") / "alerts.yml").read_text())["groups"][0]["rules"]
    tests = yaml.safe_load(RULE_TESTS.read_text())["tests"]
    tested = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case["exp_alerts"]}
    assert tested == {rule["alert"] for rule in rules}
    found = exported()
    exporters = {"group_id", "topic_name", "partition_id", "store", "status"}
    for series in (each["series"] for test in tests for each in test["input_series"]):
        name, labels = re.fullmatch(r"(\w+)\{(.*)\}", series).groups()
        given = set(re.findall(r"(\w+)=", labels)) - {"instance"}  # Prometheus adds that one.
        assert len(given) == len(next(iter(found[name]))), series
        assert given <= exporters, series


def test_the_files_are_copied_and_nothing_is_overwritten(tmp_path):
    copied = copy_files(tmp_path / "prometheus")
    assert [path.name for path in copied] == list(FILES)
    assert all(path.stat().st_size > 1000 for path in copied)
    with pytest.raises(InputError, match=r"dashboard\.json and .*alerts\.yml would be overwritten"):
        copy_files(tmp_path / "prometheus")


def test_a_textfile_that_cant_be_replaced_leaves_no_draft(tmp_path):
    (tmp_path / "lag.prom").mkdir()
    with pytest.raises(InputError, match="can't be written"):
        write_textfile(tmp_path / "lag.prom", page(reading([row()])))
    assert [path.name for path in tmp_path.iterdir()] == ["lag.prom"]


@pytest.mark.parametrize(("lags", "wanted"), [([None, None], None), ([None, 3], 3), ([], 0)])
def test_an_unknown_lag_of_groups_left_out_is_no_zero(lags, wanted):
    others = pl.DataFrame(
        {"group_id": [f"g{at}" for at in range(len(lags))], "lag": lags, "n_partitions": 1, "n_unknown": 0},
        schema_overrides={"lag": pl.Int64, "n_partitions": pl.Int64, "n_unknown": pl.Int64},
    )
    found = samples(page(reading([row()], others=others)).text.decode(), parse_text)
    assert found.get("offramp_other_lag", {}).get(()) == wanted
