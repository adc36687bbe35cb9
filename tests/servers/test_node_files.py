"""The linter of nodes' files and the real Kafka 3.9.1 say the same: it refuses the settings, or continues."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kit.kraft.analyze.kafka_rules import judgements
from kit.kraft.analyze.node_files import render, settings_change
from kit.kraft.analyze.node_lint import lint
from kit.kraft.analyze.node_settings import MODES, of_file
from kit.text.properties import parse_properties
from tests.generators.node_files import SOUND, VOTERS, random_file
from tests.servers.settings_oracle import TABLE, known_settings, refusals
from tests.soak import Record, report, soak_only

KEY = b"key of one observation"
PER_MODE = 2_000
FLAG = "zookeeper.metadata.migration.enable"
KINDS = {
    "no zookeeper.connect": ("zookeeper", {"zookeeper.connect": None}),
    "an id above the reserved ones": ("zookeeper", {"broker.id": "1001"}),
    "a flag in capitals without a quorum": ("migration", {FLAG: "True", "controller.quorum.voters": None}),
    "an inter-broker listener that is none": ("kraft", {"inter.broker.listener.name": "INNER"}),
    "a controller without listeners": ("controller", {"listeners": None}),
    "two settings of one listener": (
        "controller",
        {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
    ),
    "a comment behind a number": ("kraft", {"node.id": "1 # the first"}),
}

DEFAULT = {**SOUND["final controller"], "controller.listener.names": "PLAINTEXT"}
del DEFAULT["listeners"]
"""A controller on the default of ``listeners``."""


def held_of(mode: str, changed: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in {**SOUND[mode], **changed}.items() if value is not None}


def is_refused(held: dict[str, str]) -> bool | None:
    """By the linter; None: it does not know."""
    answers = {each.is_met for each in judgements(of_file(held, "server.properties", KEY))}
    return True if False in answers else None if answers else False


def test_the_table_of_settings_is_that_of_kafka():
    assert TABLE.read_text(encoding="utf-8") == known_settings()


def test_settings_that_kafka_refuses_are_found(tmp_path: Path):
    wrong = {kind: held_of(mode, changed) for kind, (mode, changed) in KINDS.items()}
    files = {**wrong, **{mode: dict(held) for mode, held in SOUND.items()}, "a default listener": DEFAULT}
    real = refusals(files, tmp_path)
    assert {name: bool(message) for name, message in real.items()} == {name: name in KINDS for name in files}
    assert {name: is_refused(held) for name, held in files.items()} == {name: name in KINDS for name in files}


LEFT_OVER = (
    ("kraft", {"zookeeper.connect": "localhost:2181"}),
    ("kraft", {"zookeeper.ssl.client.enable": "true", "zookeeper.set.acl": "true"}),
    ("kraft", {"inter.broker.protocol.version": "3.9"}),
    ("final controller", {"zookeeper.connect": "localhost:2181"}),
)
"""The settings that a person forgets to remove on the way to KRaft."""


def test_settings_that_kafka_takes_in_kraft_mode_are_remarks(tmp_path: Path):
    files = {f"{mode} {changed}": held_of(mode, dict(changed)) for mode, changed in LEFT_OVER}
    assert set(refusals(files, tmp_path).values()) == {""}
    rows = [lint([of_file(held, "server.properties", KEY)]) for held in files.values()]
    assert [{(each.check_id, each.severity) for each in found if not each.is_met} for found in rows] == [
        {("N14", "warn")}
    ] * len(LEFT_OVER)


PLAIN = {**SOUND["zookeeper"], "inter.broker.protocol.version": "3.9", "log.message.format.version": "2.8"}
SASL = {
    **PLAIN,
    "listeners": "SASL_PLAINTEXT://localhost:9092",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN",
    "early.start.listeners": "SASL_PLAINTEXT",
}
HIGH = {**PLAIN, "broker.id": " 1001 ", "reserved.broker.max.id": " 1000"}
SMALL = {
    **PLAIN,
    "listeners": "inner://localhost:1",
    "inter.broker.listener.name": "inner",
    "listener.security.protocol.map": "inner:SSL",
}


def test_kafka_takes_the_files_that_are_made(tmp_path: Path):
    """But for what a person has to write into a new controller's file."""
    by_hand = {"node.id": "3000", "listeners": "CONTROLLER://localhost:9093"}
    files = {}
    for number, present in enumerate((PLAIN, SASL, HIGH, SMALL)):
        node = of_file(present, "present", KEY)
        for mode in MODES:
            made = parse_properties(render(settings_change(mode, node, VOTERS), node))
            files[f"{number} {mode}"] = made | (by_hand if mode.endswith("controller") else {})
    assert set(refusals(files, tmp_path).values()) == {""}


@soak_only
@pytest.mark.parametrize("mode", SOUND)
def test_generated_files_are_judged_as_kafka_does(mode: str, tmp_path: Path, record_property: Record):
    source = random.Random(f"files of {mode}")
    files = {f"{mode} {number}": random_file(mode, source) for number in range(PER_MODE)}
    real = refusals(files, tmp_path)
    ours = {name: is_refused(held) for name, held in files.items()}
    unlike = [(files[name], real[name]) for name in files if ours[name] is not None and ours[name] != bool(real[name])]
    n_known, n_refused = sum(each is not None for each in ours.values()), sum(map(bool, real.values()))
    report(record_property, f"{n_known:,} of {PER_MODE:,} files judged, {n_refused:,} refused by Kafka")
    assert unlike == []
    assert n_known > 0.98 * PER_MODE
    assert PER_MODE / 4 < n_refused < PER_MODE * 0.9
