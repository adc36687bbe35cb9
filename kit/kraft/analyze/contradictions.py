"""Find what contradicts a phase, or endangers the move or its rollback: findings with the ids of ``docs/kraft.md``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

from kit.kraft.analyze.phase import (
    DUAL_WRITE,
    FINALISED,
    KRAFT,
    MIGRATION,
    NONE,
    POST_MIGRATION,
    PRE_MIGRATION,
    Facts,
    phase,
)
from kit.tables.conditions import ALARM, BLOCK, NEVER, WARN, Condition, Rule
from kit.tables.kraft import MetadataControl
from kit.text.naming import named
from kit.text.quantity import quantity

SILENT = timedelta(seconds=15)
"""A controller in dual write moves ``/migration`` with every record: this long behind one, its driver is stalled."""


def findings(facts: Facts) -> list[Condition]:
    """Every contradiction that the facts show; where a fact is missing, nothing is claimed."""
    return [each for rule in _RULES for each in rule(facts)]


def _alarm(subject: str, sentence: str, remedy: str, check_id: str = "P01") -> Condition:
    return _found(check_id, ALARM, subject, sentence, remedy)


def _found(check_id: str, severity: str, subject: str, sentence: str, remedy: str) -> Condition:
    return _BY_ID[check_id].found(False, sentence, subject=subject, remedy=remedy, severity=severity)


def _finalised_too_early(facts: Facts) -> Iterator[Condition]:
    if facts.zk_state != POST_MIGRATION:
        return
    migrating = sorted(each.node_id for each in facts.registered_brokers if each.is_migrating)
    if migrating:
        yield _alarm(
            named(migrating, "broker"),
            f"The migration is finalised (state 3), but {named(migrating, 'broker {} is', 'brokers {} are')} "
            "registered in ZooKeeper mode. A broker in ZooKeeper mode reads stale metadata, and its replicas fall "
            "out of sync.",
            "Restart each of them in KRaft mode. The cluster can't return to ZooKeeper.",
        )
    if facts.control is not None and facts.control.brokers:
        in_zookeeper = named(facts.control.brokers, "broker {} is", "brokers {} are")
        yield _alarm(
            "/brokers/ids",
            f"The migration is finalised (state 3), but {in_zookeeper} in /brokers/ids.",
            "Restart each of them in KRaft mode. The cluster can't return to ZooKeeper.",
        )


def _would_finalise(facts: Facts) -> Iterator[Condition]:
    if facts.zk_state != MIGRATION:
        return
    for node in facts.controllers:
        if node.has_flag is False:
            yield _alarm(
                f"controller {node.address}",
                f"The controller at {node.address} runs without zookeeper.metadata.migration.enable while dual write "
                "continues (state 1): it finalises the migration at once when it is elected.",
                "Set the migration flag on it before you restart any other controller: offramp plan kraft --to kraft. "
                "If a run that finalises has stopped, resume that run instead.",
            )


def _lost_checkpoint(facts: Facts) -> Iterator[Condition]:
    if facts.zk_state == MIGRATION and facts.control is not None and facts.control.has_migration is False:
        yield _alarm(
            "/migration",
            "By the metadata log, dual write continues (state 1), but ZooKeeper has no /migration.",
            "Do not roll back to ZooKeeper: its metadata may be incomplete. Find out which client deleted /migration.",
        )


def _left_over(facts: Facts) -> Iterator[Condition]:
    """Z02: a checkpoint that no log of these controllers is behind. One that may not be read is a fact's error."""
    control = facts.control
    if control is None:
        return
    if control.refused("/migration") is not None:
        return
    if control.undecodable("/migration") is not None:
        yield _found(
            "Z02",
            BLOCK,
            "/migration",
            "No controller can read the value of the znode /migration (KAFKA-19480). The migration would hang.",
            "Repair it by a plan: offramp plan kraft --repair",
        )
    if (control.checkpoint or 0) > 0 and facts.has_log and facts.zk_state not in (MIGRATION, POST_MIGRATION):
        yield _found(
            "Z02",
            BLOCK,
            "/migration",
            f"/migration is left over from another attempt (offset {control.checkpoint}): the log of these "
            "controllers holds no migration. When all brokers are registered, these controllers would delete from "
            "ZooKeeper each topic and ACL that their log lacks.",
            "Repair it by a plan: offramp plan kraft --repair",
        )


def _kraft_without_migration(facts: Facts) -> Iterator[Condition]:
    """A cluster that runs on these controllers. If a profile names no ZooKeeper, that is how it should be."""
    in_kraft = [each.address for each in facts.brokers if each.mode == KRAFT]
    is_in_use = facts.control is not None or facts.control_error is not None
    if in_kraft and is_in_use and facts.has_log and facts.zk_state in (None, NONE):
        yield _alarm(
            named(in_kraft, "broker"),
            f"{named(in_kraft, 'Broker {} runs', 'Brokers {} run')} in KRaft mode, and the metadata log holds no "
            "migration. The cluster's metadata is in that log, not in this ZooKeeper.",
            "Do not wipe a controller. If the cluster never used this ZooKeeper, remove zookeeper_connect from the "
            "profile.",
        )


def _another_chroot(facts: Facts) -> Iterator[Condition]:
    """Z15: controllers make ``/migration`` as soon as they run, under their chroot."""
    control = facts.control
    if facts.zk_state == PRE_MIGRATION and control is not None and control.has_migration is False:
        yield _found(
            "Z15",
            BLOCK,
            "/migration",
            "The controllers wait for the brokers (state 2), but ZooKeeper has no /migration, which controllers "
            "create when they start. Either the controllers use another chroot than the brokers, or another client "
            "deleted /migration. The controllers would wait forever.",
            "Write the brokers' zookeeper.connect, with its chroot, into every controller's file, and restart the "
            "controllers. To see which files differ, run: offramp kraft preflight (Z15).",
        )


def _waits(facts: Facts) -> Iterator[Condition]:
    """P03: a roll that has begun, and what the controllers wait for; nothing is wrong before the first broker moves."""
    control = facts.control
    if facts.zk_state != PRE_MIGRATION or control is None:
        return
    if not control.has_migration or control.checkpoint is not None:
        return
    known = {each.node_id for each in facts.registered_brokers if each.is_migrating}
    modes = {each.node_id: each.mode for each in facts.brokers}
    missing = [each for each in control.brokers if each not in known]
    deaf = [each for each in missing if modes.get(each) == "migration"]
    late = [each for each in missing if each not in deaf]
    if deaf:
        yield _waiting(
            named(deaf, "broker"),
            f"{named(deaf, 'Broker {} runs', 'Brokers {} run')} in migration mode without a registration at the "
            "controllers. The controllers wait for every broker, so nothing is copied, although each broker appears "
            "healthy.",
            "Search the brokers' logs for 'Unable to register broker'. If the line has UNSUPPORTED_VERSION, set "
            "inter.broker.protocol.version to the controllers' metadata.version (offramp kraft preflight shows both, "
            "A01), and restart the brokers in migration mode.",
        )
    if late and (known or deaf):
        yield _waiting(
            named(late, "broker"),
            f"The controllers wait for {named(late, 'broker {}, which is', 'brokers {}, which are')} not in "
            "migration mode yet. Nothing is copied before the last broker is registered.",
            "To continue: offramp plan kraft --to 'dual write'. To roll back: offramp plan kraft --to zookeeper",
        )
    if control.brokers and not missing:
        yield _waiting(
            "controllers",
            "All brokers are registered, but nothing is copied yet. If this lasts longer than a minute, a replica "
            "list names a broker that is not registered (Z01), or the controllers can't read the znode of a topic "
            "(Z04).",
            "To see the topic, run: offramp kraft preflight. The copy begins within a minute after the repair.",
        )


def _waiting(subject: str, sentence: str, remedy: str) -> Condition:
    return _found("P03", WARN, subject, sentence, remedy)


def _left_over_claim(facts: Facts) -> Iterator[Condition]:
    control, live = facts.control, [each for each in facts.controllers if each.error is None or each.is_listening]
    if control is not None and control.is_controller_persistent and facts.controllers and not live:
        unreachable = [each.address for each in facts.controllers if not each.is_stopped]
        effect = (
            f"{named(unreachable, 'Controller')} can't be reached, so it is not known whether a controller runs."
            if unreachable
            else "No controller controls the brokers in ZooKeeper mode."
        )
        yield _found(
            "Z03",
            BLOCK,
            "/controller",
            f"KRaft controller {control.controller_id} holds /controller in ZooKeeper, and no controller answers. "
            f"{effect}",
            "Start the controllers. Only if their disks are gone: offramp plan kraft --repair",
        )


def _flags_differ(facts: Facts) -> Iterator[Condition]:
    """L01, before and in dual write; one without the flag in state 1 is an alarm of its own."""
    answered = [each for each in facts.controllers if each.has_flag is not None]
    without = [each.address for each in answered if not each.has_flag]
    if without and len(without) < len(answered) and facts.zk_state != MIGRATION:
        yield _found(
            "L01",
            BLOCK,
            named(without, "controller"),
            f"{named(without, 'Controller {} runs', 'Controllers {} run')} without "
            "zookeeper.metadata.migration.enable, and the other controllers run with this flag.",
            _SAME_FLAG.get(
                facts.zk_state or "", "Restart no controller before the phase is known: offramp kraft status"
            ),
        )
    leader = facts.leader
    if leader is not None and len(leader.voters) > len(facts.controllers):
        yield _found(
            "L01",
            WARN,
            "controllers",
            f"The quorum has the {named(leader.voters, 'voter')}, and the profile names "
            f"{quantity(len(facts.controllers), 'controller')}. Offramp can't see whether the other voters have the "
            "migration flag.",
            'Name every controller in the profile: [clusters.NAME.kraft] controllers = "host:port,…".',
        )


def _stands_still(facts: Facts) -> Iterator[Condition]:
    if is_dual_writing(facts) and (silence := _silence(facts)) is not None:
        yield _alarm(
            "/migration",
            f"Dual write is stalled: {silence}, although the active controller should update it with every record of "
            "the metadata log. ZooKeeper misses every change since then.",
            "Search the active controller's log for 'zk migration'. 'Unknown config resource type': a client-metrics "
            "setting stops dual write at the next election; remove it. 'KRaft Migration ZNode failed': a topic was "
            "deleted and created again. If offramp kraft diff shows made_again, restart the active controller twice. "
            "If the topic's znode was deleted manually, restart that controller once more. If ZooKeeper kept the "
            "settings of the deleted topic (deleted_topic), an election does not help. 'ZooKeeper error during event "
            "SyncKRaftMetadataEvent' repeatedly: "
            "a partition has no state znode (offramp kraft diff shows no_state). The details are in docs/kraft.md.",
            check_id="P02",
        )


def is_dual_writing(facts: Facts) -> bool:
    """Return whether ``/migration`` has to move."""
    is_there = facts.control is not None and facts.control.checkpoint_at is not None
    return is_there and phase(facts) in (DUAL_WRITE, KRAFT)


def _silence(facts: Facts) -> str | None:
    """By one clock at a time: two records of the controller's, or what this process watched.

    An idle quorum that writes nothing (``metadata.max.idle.interval.ms`` 0, or long) moves nothing.
    The time at which ZooKeeper wrote the znode is not asked: its clock and this machine's may be minutes apart.
    """
    if facts.has_moved_on is False:
        return None
    if facts.behind is not None and facts.behind > SILENT:
        return f"/migration is {facts.behind.total_seconds():.0f} s behind the metadata log"
    if facts.stood_still_s is not None and facts.stood_still_s > SILENT.total_seconds():
        return f"/migration did not change in {facts.stood_still_s:.0f} s"
    return None


def _epoch_trap(facts: Facts) -> Iterator[Condition]:
    control, leader = facts.control, facts.leader
    if control is None or control.controller_epoch is None or phase(facts) == FINALISED:
        return
    epochs = [each for each in (_kraft_epoch(control), control.max_state_epoch) if each is not None]
    epochs += [leader.leader_epoch] if leader is not None and leader.leader_epoch is not None else []
    if epochs and max(epochs) > control.controller_epoch:
        yield _found(
            "Z16",
            WARN,
            "/controller_epoch",
            f"/controller_epoch is {control.controller_epoch}, but KRaft has reached epoch {max(epochs)}. After a "
            "rollback, ZooKeeper's controller would refuse to elect leaders for partitions with the higher epoch.",
            "To roll back, use a plan, which raises the epoch: offramp plan kraft --to zookeeper. Do not write the "
            "znode while controllers run. If the rollback is already done: offramp plan kraft --repair",
        )


def _kraft_epoch(control: MetadataControl) -> int | None:
    return control.kraft_controller_epoch if control.is_controller_persistent else None


RULES: tuple[Rule, ...] = tuple(
    Rule(check_id, holds, severity, NEVER, source="control znodes, the controllers' answers")
    for check_id, severity, holds in (
        ("P01", ALARM, "No fact contradicts another, and no controller would finalise by mistake."),
        ("P02", ALARM, "Dual write does not stall."),
        ("P03", WARN, "The controllers do not wait for a broker."),
        ("Z02", BLOCK, "/migration is of this attempt, and controllers can read it."),
        ("Z03", BLOCK, "A controller that answers holds /controller."),
        ("Z15", BLOCK, "Controllers and brokers use the same ZooKeeper chroot."),
        ("Z16", WARN, "/controller_epoch is the highest epoch."),
        ("L01", BLOCK, "All controllers have the same migration flag, and the profile names all voters."),
    )
)
"""The severity of one finding may differ: a fact may be worse, or less bad, than its rule."""
_BY_ID = {each.check_id: each for each in RULES}
_SAME_FLAG = {
    PRE_MIGRATION: "Set the migration flag on these controllers, and restart them. Remove it from no other controller.",
    POST_MIGRATION: "The move is final: remove the flag from the other controllers, and restart them one by one.",
}
"""In any other state, and where none was read, a restart could finalise the migration."""
_RULES: tuple[Callable[[Facts], Iterator[Condition]], ...] = (
    _finalised_too_early,
    _would_finalise,
    _lost_checkpoint,
    _kraft_without_migration,
    _stands_still,
    _left_over,
    _another_chroot,
    _waits,
    _left_over_claim,
    _flags_differ,
    _epoch_trap,
)
