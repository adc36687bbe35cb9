"""The races R1 … R25 (``docs/races.md``), each at the interleaving it is named for.

Run on models (see ``tests/simulation``): the judge examines every step, so that a test mostly leads the members into
the race and then lets them settle. ``member_class`` is another one where the mistakes are put back
(``test_simulation_mistakes.py``).

Not here, but on real servers and in unit tests: R19 (an old consumer that keeps its offsets in Kafka: a guard of the
connector and the broker's rule), R20 (common assignors), R23 (patterns of topics), R24 (what librdkafka fetches though
it is paused).
"""

from __future__ import annotations

import pytest

from kit.consumer.zookeeper import effects
from kit.consumer.zookeeper.coordination import RoundStatus
from kit.consumer.zookeeper.effects import RESERVATION_SUFFIX, Membership
from kit.consumer.zookeeper.migration import Mode
from tests.simulation.model_jvm import OldConsumer, PlainConsumer
from tests.simulation.model_member import PythonMember
from tests.simulation.model_zookeeper import Create
from tests.simulation.settling import settle
from tests.simulation.world import SimulatedGroup

Class = type[PythonMember]
T0, T1, T2, T3 = (("t", number) for number in range(4))


def group(member_class: Class, *kinds: str, toggle: str | None = None) -> SimulatedGroup:
    """Members a, b, c … of these kinds, settled; a Kafka consumer comes when the toggle has been followed."""
    world = SimulatedGroup(member_class=member_class)
    for name, kind in zip("abcdef", kinds):
        if kind != "kc":
            world.join(kind, name)
    settle(world)
    if toggle is not None:
        world.set_toggle(toggle)
        settle(world)
    for name, kind in zip("abcdef", kinds):
        if kind == "kc":
            assert world.may_join_kc()
            world.join(kind, name)
            settle(world)
    return world


def uneven(member_class: Class) -> SimulatedGroup:
    """ZooKeeper's assignment is a: 0, b: 1 2 3, by streams; Kafka's a: 0 1, b: 2 3 (R21)."""
    world = SimulatedGroup(member_class=member_class)
    world.join("mezkcc", "a", n_streams=1)
    world.join("mezkcc", "b", n_streams=3)
    settle(world)
    assert (python(world, "a").consuming, len(python(world, "b").consuming)) == ({T0}, 3)
    return world


def python(world: SimulatedGroup, name: str) -> PythonMember:
    member = world.members[name]
    assert isinstance(member, PythonMember)
    return member


def old(world: SimulatedGroup, name: str) -> OldConsumer:
    member = world.members[name]
    assert isinstance(member, OldConsumer)
    return member


def plain(world: SimulatedGroup, name: str) -> PlainConsumer:
    member = world.members[name]
    assert isinstance(member, PlainConsumer)
    return member


def test_r01_toggle_to_kafka_waits_for_the_last_owner(member_class: Class = PythonMember) -> None:
    world = uneven(member_class)
    world.set_toggle("kafka")
    world.run_fairly(2, frozen=[("b", "rounds")])
    a = python(world, "a")
    assert (a.mode, a.consuming, a.result and a.result.status) == (Mode.KAFKA, {T0}, RoundStatus.BLOCKED)
    world.run_fairly()
    assert (a.consuming, python(world, "b").consuming) == ({T0, T1}, {T2, T3})
    settle(world)


def test_r01_partitions_are_taken_one_by_one_as_they_come_free(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc", "mezkcc", toggle="kafka")
    world.pause("b")
    world.kill("c")
    world.run_fairly(7)
    taken = python(world, "a").consuming
    assert T0 in taken
    settle(world)


def test_r02_toggle_to_zookeeper_waits_for_the_last_owner(member_class: Class = PythonMember) -> None:
    world = uneven(member_class)
    world.set_toggle("kafka")
    settle(world)
    world.set_toggle("zookeeper")
    world.run_fairly(1, frozen=[("a", "rounds")])
    b = python(world, "b")
    assert (b.mode, b.consuming, b.result and b.result.blocked) == (Mode.ZOOKEEPER, {T2, T3}, {T1})
    world.run_fairly()
    assert (python(world, "a").consuming, b.consuming) == ({T0}, {T1, T2, T3})
    settle(world)


@pytest.mark.parametrize("version", ["ozkcc", "zk"])
def test_r03_fall_back_when_an_old_consumer_joins(version: str, member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    world.join(version, "0")  # its id is the first: the first partitions are its
    began = world.now
    while len(world.members["0"].consuming) < 2:
        world.run_fairly(1)
        assert world.now - began <= 2, "it needs more than one of its own backoffs"
    assert {each.mode for each in world.migrating()} == {Mode.ZOOKEEPER}
    settle(world)
    assert version == "zk" or not old(world, "0").is_zombie


def test_r03_a_fall_back_does_not_wait_for_a_commit_to_kafka(member_class: Class = PythonMember) -> None:
    """The coordinator goes away just when the member has seen who is in the Kafka group."""
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    world.join("ozkcc", "0")
    world.run("0", "rebalances", until=lambda: ("ids", "g_0") in world.zookeeper.znodes)
    world.run("a", "callbacks")
    world.run_up_to("a", effects.BeforeReleasing)
    world.set_coordinator(False)
    world.run_fairly(1, frozen=[("b", "rounds")])
    assert ("owners", T0) not in world.zookeeper.znodes or T0 in old(world, "0").registry
    settle(world)


def test_r04_a_plain_consumer_begins_when_the_last_has_answered(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    world.join("kc", "k")
    world.run_fairly(3, frozen=[("a", "embedded")])
    assert not plain(world, "k").positions
    world.run_fairly(1)
    assert plain(world, "k").positions
    settle(world)


def test_r04_what_is_lost_is_not_committed_to_kafka(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    world.cut("a", from_zookeeper=False, is_cut=True)
    world.run_fairly(8)
    assert not python(world, "a").consuming
    settle(world)


def test_r05_an_old_consumer_among_kafka_consumers_gets_nothing(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "kc", "kc", toggle="kafka")
    reserved = {pair for pair in world.partitions if pair not in python(world, "a").consuming}
    assert reserved == {pair for pair, thread in python(world, "a").coordination.held.items() if "-kc-" in thread}
    world.join("ozkcc", "0")
    world.run_fairly(12)
    zombie = old(world, "0")
    assert zombie.is_zombie
    assert not zombie.registry
    result = python(world, "a").result
    assert result is not None
    assert result.decision is not None
    assert "reserved" in (result.decision.alarm or "")
    assert not world.judge.is_rule_broken
    world.leave("b")
    world.leave("c")
    settle(world)
    assert zombie.registry


def test_r05_the_reservation_is_there_before_the_old_consumer_reads(member_class: Class = PythonMember) -> None:
    """Its first try comes before any member has seen it."""
    world = group(member_class, "mezkcc", "kc", "kc", toggle="kafka")
    world.join("ozkcc", "0")
    world.run("0", "rebalances")
    assert not old(world, "0").registry
    settle(world)


def test_r05_one_that_is_new_among_them_follows_the_reservation(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "kc", toggle="kafka")
    world.join("ozkcc", "0")
    world.run_fairly(12)
    world.set_toggle("zookeeper")
    world.run_fairly(2)
    world.join("mezkcc", "c")
    world.run_fairly(12)
    assert python(world, "c").mode is Mode.KAFKA
    assert not old(world, "0").registry
    world.leave("b")
    settle(world)


def test_r06_the_toggle_waits_for_the_last_plain_consumer(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc", "kc", toggle="kafka")
    world.set_toggle("zookeeper")
    world.run_fairly(8)
    a = python(world, "a")
    assert (a.mode, a.result and a.result.decision and a.result.decision.is_deferred) == (Mode.KAFKA, True)
    world.leave("c")
    settle(world)
    assert a.mode is Mode.ZOOKEEPER


def test_r06_a_plain_consumer_that_has_only_asked_to_join_counts(member_class: Class = PythonMember) -> None:
    """The coordinator has it, the embedded consumers have not heard of it, and the toggle turns."""
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    world.join("kc", "k")
    world.run("k", "poll", until=lambda: bool(world.plain_members()))
    world.set_toggle("zookeeper")
    for name in "ab":
        world.run(name, "callbacks")
        world.run_up_to(name, effects.ReadKafkaAssignment)
        assert python(world, name).mode is Mode.KAFKA
    settle(world)


def test_r07_a_migration_enabled_one_that_joins_never_appears_old(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    world.join("mezkcc", "c")
    for _ in range(60):
        if python(world, "c").threads["rounds"].is_ready:
            world.step("c", "rounds")
        world.run_fairly(frozen=[("c", "rounds")])
        assert {python(world, "a").mode, python(world, "b").mode} == {Mode.KAFKA}
        assert python(world, "c").mode is not Mode.ZOOKEEPER
        if not python(world, "c").threads["rounds"].is_ready:
            world.tick()
    settle(world)


def test_r07_one_that_leaves_between_two_reads_does_not_appear_old(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    for n_steps in range(1, 12):
        world.join("mezkcc", "c")
        settle(world)
        world.run_up_to("a", effects.ReadGroup) if python(world, "a").threads["rounds"].is_ready else world.tick()
        world.run("a", "rounds", n_steps=n_steps)
        python(world, "c").client.close()
        world.run("a", "rounds", n_steps=12)
        assert python(world, "a").mode is Mode.KAFKA
        world.kill("c")
        settle(world)


def test_r08_a_missed_watch_is_made_good_by_the_timer(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc")
    world.set_toggle("kafka")
    deaf = [("a", "callbacks"), ("a", "heartbeat")]
    world.run_fairly(7, frozen=deaf)
    assert python(world, "a").mode is Mode.KAFKA
    settle(world)


def test_r08_a_toggle_that_flips_twice_in_a_round_is_followed(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    world.set_toggle("zookeeper")
    world.run("a", "callbacks")
    world.run_up_to("a", effects.IsStale)
    world.set_toggle("kafka")
    world.set_toggle("zookeeper")
    world.set_toggle("kafka")
    settle(world)
    assert python(world, "a").mode is Mode.KAFKA


def test_r09_a_round_of_the_old_mode_starts_nothing_once_a_rebalance_was_answered(
    member_class: Class = PythonMember,
) -> None:
    """Its decision is from before the toggle; a plain consumer has joined meanwhile."""
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    world.set_toggle("zookeeper")
    world.run("a", "callbacks")
    world.run_up_to("a", effects.Keep)
    world.set_toggle("kafka")
    world.members["a"].coordination.mode = Mode.KAFKA  # type: ignore[union-attr]  # as operators may have seen it
    assert world.may_join_kc()
    world.join("kc", "k")
    world.run_fairly(frozen=[("a", "rounds")])
    assert plain(world, "k").positions
    world.run("a", "rounds", n_steps=8)
    settle(world)


def test_r09_a_rebalance_in_the_middle_of_a_toggle_stops_everything(member_class: Class = PythonMember) -> None:
    """Kafka's mode is decided while the embedded consumer has answered already, when the toggle said nothing yet."""
    world = group(member_class, "mezkcc", "mezkcc")
    world.join("mezkcc", "c")
    world.run("c", "rounds", n_steps=60)
    world.run("c", "embedded", n_steps=60)
    world.run("a", "heartbeat", n_steps=1)
    world.run("a", "embedded")
    assert python(world, "a").embedded.assignment.membership is Membership.REBALANCING  # type: ignore[union-attr]
    world.set_toggle("kafka")
    world.run("a", "callbacks")
    world.run("a", "rounds")
    assert python(world, "a").mode is Mode.KAFKA
    assert not python(world, "a").consuming
    settle(world)


def test_r10_a_rebalance_continues_while_a_round_is_busy(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    world.grow()
    world.run("a", "callbacks")
    world.run_up_to("a", effects.ReadKafkaGroup)
    world.join("mezkcc", "c")
    world.run_fairly(5, frozen=[("a", "rounds")])
    assert not world.group.is_rebalancing
    assert len(world.group.members) == 3
    settle(world)


def test_r11_a_change_under_ids_restarts_nothing(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    n_starts = [each.n_starts for each in world.migrating()]
    world.join("mezkcc", "c")
    world.cut("c", from_zookeeper=False, is_cut=True)
    world.run_fairly(6)
    assert ("ids", "g_c") in world.zookeeper.znodes
    assert [each.n_starts for each in world.migrating()] == [*n_starts, 0]
    assert (python(world, "c").mode, python(world, "c").consuming) == (Mode.KAFKA, frozenset())
    settle(world)


def test_r12_after_its_session_a_member_begins_again(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    world.cut("a", from_zookeeper=True, is_cut=True)
    world.run_fairly(8)
    assert not python(world, "a").client.is_alive
    world.cut("a", from_zookeeper=True, is_cut=False)
    world.run("a", "connection")
    world.run("a", "embedded")
    assert python(world, "a").embedded.assignment.membership is Membership.OUT  # type: ignore[union-attr]
    settle(world)


def test_r12_owner_znodes_of_the_lost_session_are_not_deleted(member_class: Class = PythonMember) -> None:
    """Another member has made them again by then, and the share is smaller than before."""
    world = group(member_class, "mezkcc", "mezkcc")
    world.cut("a", from_zookeeper=True, is_cut=True)
    world.run_fairly(8)
    assert T1 in python(world, "b").consuming
    world.join("mezkcc", "c")
    world.run_fairly(2)
    world.cut("a", from_zookeeper=True, is_cut=False)
    settle(world)


def test_r13_who_is_put_out_of_the_kafka_group_stops(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc", "kc", toggle="kafka")
    world.cut("a", from_zookeeper=False, is_cut=True)
    world.run_fairly(10)
    assert not python(world, "a").consuming
    settle(world)


def test_r13_who_is_put_out_of_the_kafka_group_releases(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc", "kc", toggle="kafka")
    world.cut("a", from_zookeeper=False, is_cut=True)
    world.run_fairly(10)
    assert plain(world, "c").positions.keys() | python(world, "b").consuming == set(world.partitions)
    settle(world)


def test_r12_who_can_not_reach_zookeeper_leaves_the_kafka_group(member_class: Class = PythonMember) -> None:
    """kazoo reports a session's end when it is connected again, which may be never."""
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    world.cut("a", from_zookeeper=True, is_cut=True)
    world.run_fairly(15)
    assert python(world, "b").consuming == set(world.partitions)
    settle(world)


def test_r12_who_lost_its_session_lowers_no_offset_in_kafka(member_class: Class = PythonMember) -> None:
    """It slept through its session's end, not Kafka's; the others fell back to ZooKeeper's assignment and are further."""
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    world.cut("a", from_zookeeper=True, is_cut=True)
    world.run_fairly(7, frozen=[("a", "rounds"), ("a", "embedded")])
    world.join("zk", "z")
    world.run_fairly(8, frozen=[("a", "rounds"), ("a", "embedded")])
    world.run_fairly(1, frozen=[("a", "rounds")])
    world.join("mezkcc", "c")
    world.run_fairly(2, frozen=[("a", "rounds")])
    assert not world.judge.lowered
    settle(world)


def test_r13_a_stalled_member_proves_that_it_is_a_member(member_class: Class = PythonMember) -> None:
    """ZooKeeper's session is younger than Kafka's, and lives."""
    world = group(member_class, "mezkcc", "kc", toggle="kafka")
    a = python(world, "a")
    world.pause("a")
    world.run_fairly(5)
    world.zookeeper.heard[a.client.session] = world.now  # its last ping came late
    world.run_fairly(2)
    assert a.client.is_alive
    assert a.consuming <= plain(world, "b").positions.keys()
    world.resume("a")
    world.run("a", "lease")
    world.run("a", "embedded", n_steps=2)
    world.run("a", "stream")
    settle(world)


def test_r14_a_member_that_wakes_up_delivers_nothing_first(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc")
    world.pause("a")
    world.run_fairly(8)
    assert T0 in python(world, "b").consuming
    world.resume("a")
    assert python(world, "a").consuming
    world.run("a", "stream")
    settle(world)


def test_r14_a_lease_counts_from_the_question(member_class: Class = PythonMember) -> None:
    world = group(member_class, "zk", "zk")
    world.tick()
    world.run("a", "lease", n_steps=2)  # asked, and answered by the server
    world.pause("a")
    world.run_fairly(5)
    world.resume("a")
    world.cut("a", from_zookeeper=True, is_cut=True)
    world.run("a", "lease")
    world.run_fairly(3, frozen=[("a", thread) for thread in ("connection", "callbacks", "rounds")])
    settle(world)


def test_r15_a_stolen_owner_znode_stops_its_partition(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc")
    world.steal(T0)
    world.run("a", "callbacks")
    assert T0 not in python(world, "a").consuming
    settle(world)


def test_r15_a_theft_in_the_middle_of_a_round_is_not_forgotten(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc")
    world.grow()
    world.run("a", "callbacks")
    world.run_up_to("a", effects.Keep)
    world.steal(T0)
    world.run("a", "callbacks")
    world.run("a", "rounds", n_steps=8)
    world.run("a", "stream")
    settle(world)


def test_r15_a_theft_while_the_watch_was_lost_is_seen(member_class: Class = PythonMember) -> None:
    """kazoo drops every watch with the connection; the session lives on."""
    world = group(member_class, "mezkcc", "mezkcc")
    python(world, "a").client.fails_next = "before"
    world.tick()
    world.run("a", "lease")
    world.run_fairly(1)
    world.steal(T0)
    world.run_fairly(1)
    settle(world)


def test_r15_a_theft_between_claim_and_watch_is_seen(member_class: Class = PythonMember) -> None:
    for n_steps in range(1, 8):
        world = SimulatedGroup(member_class=member_class)
        world.join("zk", "a")
        world.run_up_to("a", effects.ClaimAll)
        world.run("a", "rounds", n_steps=n_steps)
        world.steal(T0)
        settle(world)


def test_r16_leftovers_of_a_dead_session_are_not_its_own(member_class: Class = PythonMember) -> None:
    """A process that comes back at once with the same id finds its predecessor's znodes."""
    world = group(member_class, "mezkcc", "mezkcc")
    world.kill("a")
    world.join("mezkcc", "a")
    world.run_fairly(3)
    assert not python(world, "a").consuming
    settle(world)


@pytest.mark.parametrize("kind", ["mezkcc", "kc", "ozkcc"])
def test_r17_nothing_is_read_twice_at_a_change_of_owners(kind: str, member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    for name in ("c", "d"):
        world.join(kind, name)
        world.run_fairly(3)
        world.leave(name)
        world.run_fairly(3)
    settle(world)


def test_r17_what_kafka_does_not_take_zookeeper_does(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc")
    world.set_coordinator(False)
    world.join("zk", "0")
    world.run_fairly(3)
    settle(world)


def test_r17_a_partition_is_kept_until_its_offset_is_written(member_class: Class = PythonMember) -> None:
    world = group(member_class, "zk", "zk")
    world.tick()
    world.run("a", "stream")
    world.join("zk", "0")
    world.run_fairly(frozen=[("a", "rounds")])
    world.run_up_to("a", effects.CommitZookeeper)
    python(world, "a").client.fails_next = "before"
    settle(world)


def test_r17_a_rebalance_is_not_answered_over_a_commit_under_way(member_class: Class = PythonMember) -> None:
    """The rounds' thread has stopped a partition and not committed it yet when the other thread answers."""
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    world.tick()
    world.run("a", "stream")
    world.leave("a")
    world.run_up_to("a", effects.CommitKafka)
    world.join("kc", "k")
    world.run_fairly(frozen=[("a", "rounds")])
    settle(world)


def test_r17_the_toggle_can_not_be_read_while_a_rebalance_is_answered(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    world.tick()
    world.run("a", "stream")
    world.join("kc", "k")
    world.run_fairly(frozen=[("a", "embedded")])
    world.run_up_to("a", effects.ReadToggle, "embedded")
    python(world, "a").client.fails_next = "before"
    world.run("a", "embedded")
    settle(world)


def test_r18_an_old_consumer_after_kafka_consumers_begins_where_they_ended(
    member_class: Class = PythonMember,
) -> None:
    """It got nothing when it came. Their offsets are in Kafka alone until a reservation is delivered."""
    world = group(member_class, "mezkcc", "kc", "kc", toggle="kafka")
    world.join("ozkcc", "0")
    world.run_fairly(12)
    world.leave("b")
    world.leave("c")
    handed = dict(world.judge.handed)
    settle(world)
    assert old(world, "0").registry
    assert all(old(world, "0").began[pair] >= handed[pair] for pair in old(world, "0").registry)


def test_a_record_in_hand_at_a_release_is_the_next_owners(member_class: Class = PythonMember) -> None:
    """Its reader did not take it: nothing that this member commits, by the timer or at its end, is past it."""
    world = group(member_class, "mezkcc", "mezkcc")
    a = python(world, "a")
    a.is_refused = True
    world.run_fairly(6)
    (in_hand,) = (stream.in_hand for stream in a.streams.values() if stream.in_hand)
    world.leave("a")
    settle(world)
    assert all(world.judge.handed[pair] > offset for pair, offset in in_hand.items())


def test_r21_every_member_has_one_share_whatever_its_streams(member_class: Class = PythonMember) -> None:
    world = uneven(member_class)
    world.set_toggle("kafka")
    settle(world)
    b = python(world, "b")
    assert (len(python(world, "a").consuming), len(b.consuming)) == (2, 2)
    assert len({thread for (_, thread), stream in b.streams.items() if stream.places}) == 2


def test_r22_a_new_partition_comes_with_the_leaders_metadata(member_class: Class = PythonMember) -> None:
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    world.grow()
    world.run_fairly(4)
    assert python(world, "a").consuming | python(world, "b").consuming == set(world.partitions)
    settle(world)


def test_r25_a_rebalance_of_the_kafka_group_touches_nothing_in_zookeepers_mode(
    member_class: Class = PythonMember,
) -> None:
    world = group(member_class, "mezkcc", "mezkcc", "mezkcc")
    n_starts = [each.n_starts for each in world.migrating()]
    generation = world.group.generation
    world.cut("c", from_zookeeper=False, is_cut=True)
    world.run_fairly(8)
    world.cut("c", from_zookeeper=False, is_cut=False)
    world.run_fairly(2)
    assert world.group.generation >= generation + 2
    assert [each.n_starts for each in world.migrating()] == n_starts
    settle(world)


def test_a_member_that_waits_longer_than_an_old_one_would_continues(member_class: Class = PythonMember) -> None:
    """Mistake D15: an old consumer gives up after four tries."""
    world = group(member_class, "zk")
    stranger = world.zookeeper.open()
    world.steal(T0)
    world.zookeeper.transact(stranger, [Create(("owners", T0), "g_x-0", True)])
    for _ in range(12):
        world.zookeeper.heard[stranger] = world.now
        world.run_fairly(1)
    world.zookeeper.close(stranger)
    settle(world)


def test_the_listener_never_gets_half_an_assignment(member_class: Class = PythonMember) -> None:
    """Mistake D11: while the Kafka group rebalances its coordinator describes members without partitions."""
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    world.steal(T0)
    world.run("a", "callbacks")
    world.run_up_to("a", effects.BeforeStarting)
    world.join("mezkcc", "c")
    world.run_fairly(frozen=[("a", "rounds"), ("a", "heartbeat"), ("a", "embedded")])
    assert world.group.is_rebalancing
    world.run("a", "rounds")
    settle(world)


def test_no_one_turns_to_zookeeper_while_the_kafka_group_is_unknown(member_class: Class = PythonMember) -> None:
    """A new member that can't reach the coordinator knows of no Kafka consumer."""
    world = group(member_class, "mezkcc", "kc", toggle="kafka")
    world.set_toggle("zookeeper")
    world.run_fairly(2)
    world.join("mezkcc", "c")
    world.cut("c", from_zookeeper=False, is_cut=True)
    world.run_fairly(4)
    assert python(world, "c").mode is not Mode.ZOOKEEPER
    settle(world)


def test_a_connection_that_breaks_at_any_request_of_a_round_leaves_nothing_behind(
    member_class: Class = PythonMember,
) -> None:
    """Executed or not, the next round looks what is true (and a share that shrank meanwhile is given up)."""
    for n_steps in range(2, 34, 2):
        for when in ("before", "after"):
            world = group(member_class, "mezkcc")
            world.join("zk", "b")
            world.run_fairly(frozen=[("a", "rounds")])
            world.run("a", "rounds", n_steps=n_steps)
            python(world, "a").client.fails_next = when
            world.run("a", "rounds", n_steps=2)
            world.leave("b")
            settle(world)


def test_reservations_are_named_as_tools_expect() -> None:
    """The text of an owner znode needs a ``-``, or Kafka's tools fail (``docs/races.md``)."""
    assert "-" in RESERVATION_SUFFIX


def test_a_plain_consumer_with_a_members_client_id_is_plain(member_class: Class = PythonMember) -> None:
    """Deployers hand that id out; the members would read its partitions too."""
    world = group(member_class, "mezkcc", "mezkcc")
    world.judge.is_rule_broken = True  # The partitions are read twice until the members see it.
    world.join("namesake", "k")
    world.run_fairly(20)
    members = python(world, "a"), python(world, "b")
    assert plain(world, "k").positions
    assert [member.mode for member in members] == [Mode.KAFKA, Mode.KAFKA]
    assert not set(plain(world, "k").positions) & (members[0].consuming | members[1].consuming)


def test_no_guess_ends_kafkas_assignment(member_class: Class = PythonMember) -> None:
    """A member's embedded consumer is away while a plain one with its client id asks to join: the coordinator doesn't
    tell which of the two it is."""
    world = group(member_class, "mezkcc", "mezkcc", toggle="kafka")
    embedded = python(world, "b").embedded
    assert embedded is not None
    world.group.leave(embedded.client.member_id)
    world.join("namesake", "k")
    kafka = plain(world, "k").kafka
    kafka.client_id = python(world, "b").consumer_id
    world.run("k", "poll", n_steps=4)
    assert world.group.is_rebalancing
    world.set_toggle("zookeeper")
    world.run("a", "callbacks")
    world.run("a", "rounds", n_steps=60)
    assert python(world, "a").mode is Mode.KAFKA
    settle(world)
    assert not set(plain(world, "k").positions) & python(world, "a").consuming
