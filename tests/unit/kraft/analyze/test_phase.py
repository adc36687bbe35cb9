"""The phase table, and each contradiction: made from the facts of a sound migration by changing one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from kit.kraft.analyze.contradictions import findings
from kit.kraft.analyze.phase import fact_rows, state, why_no_zookeeper
from tests.kraft_records import AT, BORN, SILENT, SOUND, WAITING, broker, control, hides, holds, node, plain

UNREADABLE = plain(has_migration=True, **holds("/migration", "the value is empty"))


@pytest.mark.parametrize(
    ("facts", "phase"),
    [
        (replace(SOUND, control=plain(), zk_state=None, registrations=(), nodes=()), "zookeeper"),
        (replace(SOUND, control=plain(), zk_state=None, log_read_at=None, registrations=()), "zookeeper"),
        (replace(SOUND, control=plain(has_migration=True), zk_state="PRE_MIGRATION"), "controllers"),
        (replace(SOUND, control=plain(has_migration=True), zk_state=None, log_read_at=None), "controllers"),
        (SOUND, "dual write"),
        (replace(SOUND, control=control(brokers=()), registrations=(broker(),)), "dual write"),
        (replace(SOUND, zk_state=None, log_read_at=None, registrations=()), "dual write"),
        (replace(SOUND, control=control(brokers=()), registrations=(broker(is_migrating=False),)), "kraft"),
        (replace(SOUND, control=None, registrations=(broker(is_migrating=False),)), "kraft"),
        (replace(SOUND, control=None, zk_state="POST_MIGRATION"), "finalised"),
        (replace(SOUND, control=control(brokers=()), zk_state=None, log_read_at=None), "unknown"),
        (replace(SOUND, control=None, zk_state=None, log_read_at=None), "unknown"),
        (replace(SOUND, zk_state="NONE"), "unknown"),
        (replace(BORN, zk_state="NONE"), "no ZooKeeper"),
        (BORN, "no ZooKeeper"),
        (replace(BORN, nodes=(node("broker", mode="zookeeper"),)), "unknown"),
        (replace(BORN, nodes=(node("broker", mode="kraft"), node("broker", mode=None))), "unknown"),
        (replace(BORN, control_error="no answer"), "unknown"),
        (replace(SOUND, control=plain(**holds("/controller", "the value is empty")), zk_state=None), "unknown"),
    ],
)
def test_the_phase(facts, phase):
    assert state(facts).phase == phase


def test_the_state_of_a_sound_migration():
    found = state(SOUND)
    assert (found.lag, found.n_zookeeper, found.n_migrating, found.n_kraft, found.n_fenced) == (2, 1, 1, 0, 0)
    assert findings(SOUND) == []


@pytest.mark.parametrize("ahead_s", [-3600, -60, 60, 3600])
def test_clocks_that_are_apart_are_no_stalled_dual_write_and_hide_none(ahead_s):
    """This machine's, ahead of ZooKeeper's or behind it."""
    seen = replace(SOUND, control=control(read_at=AT + timedelta(seconds=ahead_s)), stood_still_s=0.4)
    assert findings(seen) == []
    assert [each.check_id for each in findings(replace(seen, stood_still_s=15.2))] == ["P02"]


def test_an_unread_value_is_unknown_and_not_zero():
    found = state(replace(SOUND, control=None, nodes=(SILENT,), log_read_at=None, registrations=(), zk_state=None))
    numbers = (found.lag, found.n_zookeeper, found.n_migrating, found.n_kraft, found.n_fenced, found.high_watermark)
    assert set(numbers) == {None}


@pytest.mark.parametrize(
    ("facts", "check_id", "severity", "said"),
    [
        (replace(SOUND, zk_state="POST_MIGRATION", control=None), "P01", "alarm", "broker 1 is registered"),
        (replace(SOUND, zk_state="POST_MIGRATION", registrations=()), "P01", "alarm", "broker 1 is in /brokers/ids"),
        (replace(SOUND, nodes=(node("controller", has_flag=False),)), "P01", "alarm", "finalises the migration"),
        (replace(SOUND, control=control(has_migration=False)), "P01", "alarm", "has no /migration"),
        (
            replace(SOUND, nodes=(node("broker", mode="kraft"),), zk_state="NONE", control=plain()),
            "P01", "alarm", "in KRaft mode, and the metadata log holds no migration",
        ),
        (replace(SOUND, stood_still_s=15.2), "P02", "alarm", "did not change in 15 s"),
        (replace(SOUND, behind=timedelta(seconds=16)), "P02", "alarm", "16 s behind"),
        (replace(SOUND, zk_state="PRE_MIGRATION"), "Z02", "block", "left over"),
        (replace(SOUND, control=UNREADABLE), "Z02", "block", "KAFKA-19480"),
        (replace(SOUND, nodes=(SILENT,)), "Z03", "block", "no controller answers"),
        (
            replace(WAITING, nodes=(
                node("controller"), node("controller", address="other:9093", has_flag=False, is_leader=False))),
            "L01", "block", "other:9093",
        ),
        (replace(SOUND, nodes=(node("controller", voters=(3000, 3001, 3002)),)), "L01", "warn", "names 1 controller."),
        (
            replace(SOUND, nodes=(node("controller", voters=(3000, 3001, 3002), has_flag=None),)),
            "L01", "warn", "names 1 controller.",
        ),
        (replace(SOUND, control=control(max_state_epoch=12)), "Z16", "warn", "epoch 12"),
        (replace(WAITING, control=plain()), "Z15", "block", "another chroot"),
        (replace(WAITING, nodes=(node("broker"),)), "P03", "warn", "Broker 1 runs in migration mode without a "
        "registration"),
        (
            replace(WAITING, registrations=(broker(),), control=plain(has_migration=True, brokers=(1, 2, 3))),
            "P03", "warn", "wait for brokers 2 and 3, which are not in migration mode",
        ),
        (replace(WAITING, registrations=(broker(),)), "P03", "warn", "nothing is copied yet"),
    ],
)  # fmt: skip
def test_each_contradiction_is_found_alone(facts, check_id, severity, said):
    (found,) = findings(facts)
    assert (found.check_id, found.severity) == (check_id, severity)
    assert said in found.sentence
    assert found.remedy


def test_controllers_that_were_just_started_wait_and_nothing_is_wrong():
    assert findings(WAITING) == []
    assert findings(replace(WAITING, control=plain(has_migration=None))) == []


@pytest.mark.parametrize("zk_state", ["MIGRATION", "PRE_MIGRATION", None])
def test_a_hidden_value_is_an_error_of_a_fact_and_no_finding(zk_state):
    """In dual write above all: its remedy would be to delete /migration."""
    nothing = dict.fromkeys(("checkpoint", "checkpoint_epoch", "controller_epoch", "has_migration"))
    hidden = hides("/migration", "/controller_epoch")
    facts = replace(SOUND, zk_state=zk_state, control=control(**nothing, **hidden))
    assert findings(facts) == []
    assert [each.error for each in fact_rows(facts) if each.fact == "control znodes"] == list(hidden["problems"])


def test_brokers_and_epochs_that_may_not_be_read_are_not_counted():
    hidden = control(brokers=(), **hides("/brokers/ids", "/brokers/topics"))
    facts = replace(SOUND, control=hidden, registrations=())
    found, held = state(facts), {each.fact: each.value for each in fact_rows(facts)}
    assert (found.n_zookeeper, found.max_state_epoch) == (None, None)
    assert (held["/brokers/ids"], held["highest epoch of a partition"]) == (None, None)


def test_a_claim_without_a_completed_copy_and_without_a_log_is_no_dual_write():
    facts = replace(SOUND, zk_state=None, log_read_at=None, registrations=())
    assert state(facts).phase == "dual write"
    assert state(replace(facts, control=control(checkpoint=None))).phase == "unknown"


def test_a_phase_is_known_beside_a_queue_that_may_not_be_read():
    hidden = plain(**hides("/admin/delete_topics"))
    assert state(replace(SOUND, control=hidden, zk_state=None, registrations=())).phase == "zookeeper"
    hidden = plain(brokers=(), **hides("/brokers/ids"))
    assert state(replace(SOUND, control=hidden, zk_state=None, registrations=())).phase == "unknown"


def test_a_controller_that_refuses_has_not_stopped():
    mute = replace(SILENT, is_listening=True)
    assert findings(replace(SOUND, nodes=(mute,))) == []


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        (BORN, "records no move"),
        (replace(SOUND, control=None, zk_state="POST_MIGRATION"), "move to KRaft is finalised"),
        (
            replace(BORN, log_read_at=None, nodes=(node("broker", mode="kraft", metadata_version=27),)),
            "metadata.version is 27: a version of Kafka 4 or later",
        ),
        (replace(BORN, log_read_at=None, nodes=(node("broker", mode="kraft", metadata_version=21),)), None),
        (replace(SOUND, control=None), None),
    ],
)
def test_a_cluster_without_zookeeper_has_a_reason(facts, told):
    found = why_no_zookeeper(facts)
    assert found is None if told is None else told in found


def test_a_finished_migration_may_have_a_still_checkpoint():
    old = control(checkpoint_at=AT - timedelta(days=9), brokers=(), max_state_epoch=12)
    facts = replace(SOUND, zk_state="POST_MIGRATION", control=old, registrations=(broker(is_migrating=False),))
    assert findings(facts) == []


def test_facts_have_sources_and_errors():
    rows = fact_rows(replace(SOUND, nodes=(SILENT,), log_error="no controller"))
    assert all(each.source and each.read_at for each in rows)
    assert {each.error for each in rows} == {None, "no answer", "no controller"}
    held = {each.fact: each.value for each in rows}
    assert held["/controller"] == "3000, a KRaft controller (persistent)"
    assert held["/migration"] == "offset 79, epoch 1"
