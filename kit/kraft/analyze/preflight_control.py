"""Checks of ZooKeeper's control znodes: who controls, what is left over, what has never been tidied up."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from kit.kraft.analyze.phase import FINALISED, MIGRATION, POST_MIGRATION, phase
from kit.kraft.analyze.preflight_checks import (
    CONTROLLERS,
    PreflightFacts,
    Problem,
    check,
    numbers,
    unread,
    unread_znode,
)
from kit.tables.conditions import BLOCK, INFO, WARN
from kit.tables.kraft import REFUSED
from kit.text.duration import duration
from kit.text.quantity import quantity

_YOUNG = 12
"""Three controllers of which one was started first had reached KRaft epoch 12 (3.9.1)."""
_KEPT_S = 20 * 60.0
"""Brokers delete notifications of settings that are older than 15 minutes (``ZkNodeChangeNotificationListener``)."""
_COPIED_PER_S = 700
"""12,000 topics and partitions were copied in 17 s (3.9.1, three controllers on two busy cores)."""
_RESERVED = 1000
"""``reserved.broker.max.id``: ids that ZooKeeper gives out are above."""


def left_over(facts: PreflightFacts) -> Iterator[Problem]:
    """Z02: a ``/migration`` of another attempt: the controllers would delete from ZooKeeper what they don't know."""
    control = facts.control
    assert control is not None
    repair = "Repair it by a plan: offramp plan kraft --repair"
    if (hidden := control.refused("/migration")) is not None:
        yield unread("/migration", f"{hidden}.", is_refused=True)
    if (broken := control.undecodable("/migration")) is not None:
        hangs = f"{broken}. No controller can read it (KAFKA-19480), so the migration would hang."
        yield Problem("/migration", hangs, repair)
    if control.checkpoint is not None and facts.facts.zk_state not in (MIGRATION, POST_MIGRATION):
        has_log = facts.facts.has_log
        why = "the log of these controllers holds no migration" if has_log else "no controller's log could be read"
        yield Problem(
            "/migration",
            f"/migration is at offset {control.checkpoint} (epoch {control.checkpoint_epoch}), but {why}. New "
            "controllers would delete from ZooKeeper each topic and ACL that their log lacks.",
            repair
            if has_log
            else "Name the controllers in the profile, and run the preflight again. If no controller exists: offramp "
            "plan kraft --repair",
        )


def not_controlled(facts: PreflightFacts) -> Iterator[Problem]:
    """Z03: before the copy a broker holds ``/controller``, and the epoch is a number."""
    control = facts.control
    assert control is not None
    for each in control.problem_rows:
        if each.path in ("/controller", "/controller_epoch"):
            wrong = Problem(each.path, f"{each.sentence}.", "Write the znode in the format that brokers write.")
            yield unread_znode(each) if each.kind == REFUSED else wrong
    if control.controller_epoch is None and "/controller_epoch" not in control.problem_paths:
        yield Problem(
            "/controller_epoch",
            "ZooKeeper has no /controller_epoch, so no KRaft controller can claim /controller.",
            "Restart a broker.",
        )
    in_progress = facts.facts.zk_state == MIGRATION or phase(facts.facts) == FINALISED
    if control.controller_id is None and "/controller" not in control.problem_paths:
        yield Problem(
            "/controller",
            "No broker is the controller: ZooKeeper has no /controller.",
            "Wait for the election. If it does not happen within a minute, restart a broker.",
        )
    elif control.is_controller_persistent and not in_progress:
        yield Problem(
            "/controller",
            f"/controller is held by KRaft controller {control.controller_id}, but no metadata log shows a completed "
            "copy. No broker is the controller.",
            "While that KRaft controller runs, do not delete /controller: the copy may be in progress (offramp kraft "
            "status). If the controller no longer exists: offramp plan kraft --repair",
        )


def restricted(facts: PreflightFacts) -> Iterator[Problem]:
    """Z14: znodes that the controllers' login may not read or write."""
    assert facts.znodes is not None
    advice = "Give the controllers the brokers' ZooKeeper login (JAAS section Client, or zookeeper.ssl.*)."
    yield from map(unread_znode, facts.znodes.problem_rows)
    for each in facts.znodes.restricted:
        path = each.partition(":")[0]
        yield unread(
            path,
            (
                f"Access to {each} is restricted by an access list. Offramp can't determine whether the "
                "controllers may write there."
            ),
            advice,
        )


def young(facts: PreflightFacts) -> Iterator[Problem]:
    """Z16: KRaft's epoch would pass ``/controller_epoch``: after a rollback elections would be refused."""
    control, leader = facts.control, facts.facts.leader
    assert control is not None
    if control.controller_epoch is None:
        refused = control.refused("/controller_epoch")
        sentence = f"{refused or 'ZooKeeper has no /controller_epoch'}."
        yield unread("/controller_epoch", sentence, is_refused=refused is not None)
        return
    reached = leader.leader_epoch if leader else None
    raise_it = (
        "To roll back, use a plan, which raises the epoch: offramp plan kraft --to zookeeper. Do not write the znode "
        "while controllers run."
    )
    if reached is not None and reached > control.controller_epoch:
        yield Problem(
            "/controller_epoch",
            f"/controller_epoch is {control.controller_epoch}, but KRaft has reached epoch {reached}. After a "
            "rollback, ZooKeeper's controller would refuse to elect leaders for partitions with the higher epoch "
            "(KAFKA-20488).",
            raise_it,
        )
    elif reached is None and control.controller_epoch < _YOUNG:
        yield Problem(
            "/controller_epoch",
            f"/controller_epoch is only {control.controller_epoch}. KRaft's epoch may exceed it during the move, and "
            "a rollback would then have to raise it (KAFKA-20488).",
            "Start all controllers at the same time: KRaft's first epoch then stays low. " + raise_it,
        )
    elif reached is None and facts.facts.controllers:
        yield unread(
            "controllers", "KRaft's epoch could not be read: none of the profile's controllers leads the quorum."
        )


def generated(facts: PreflightFacts) -> Iterator[Problem]:
    """Z17: ids that ZooKeeper gave out, which a broker in migration mode must have in its file (KAFKA-17543)."""
    assert facts.znodes is not None
    assert facts.control is not None
    version = facts.znodes.seqid_version
    if version is None:
        why = [unread_znode(each) for each in facts.znodes.problem_rows if each.path == "/brokers/seqid"]
        yield from why or [unread("/brokers/seqid", "There is no /brokers/seqid.")]
    elif version > 0:
        yield Problem(
            "/brokers/seqid",
            f"ZooKeeper generated {version} broker ids. A broker in migration mode needs its id in its settings file.",
            "Copy broker.id from each broker's meta.properties into its server.properties.",
        )
    if (refused := facts.control.refused("/brokers/ids")) is not None:
        yield unread("/brokers/ids", f"{refused}.", is_refused=True)
    high = [each for each in facts.control.brokers if each > _RESERVED]
    if high:
        yield Problem(
            f"brokers {numbers(high)}",
            f"The ids of brokers {numbers(high)} are above {_RESERVED}, the default of reserved.broker.max.id.",
            "Set broker.id.generation.enable=false, or raise reserved.broker.max.id, in migration mode.",
        )


def notifications(facts: PreflightFacts) -> Iterator[Problem]:
    """Z18: notifications that no controller took, and those of settings that no broker tidies up."""
    assert facts.control is not None
    assert facts.znodes is not None
    changes = [each for each in facts.znodes.problem_rows if each.path == "/config/changes"]
    yield from map(unread_znode, changes)
    n_changes, span = facts.znodes.n_config_changes, facts.znodes.config_changes_s
    if span is not None and span > _KEPT_S:
        yield Problem(
            "/config/changes",
            f"/config/changes holds {n_changes:,} notifications, the oldest {span / 60:.0f} minutes older than the "
            "newest. Normally a broker deletes notifications older than 15 minutes whenever a new one arrives.",
            "Search the brokers' logs for the reason why they do not apply changed settings. Restart each broker "
            "that has lost its ZooKeeper session.",
        )
    for each in facts.control.problem_rows:
        if each.path in ("/isr_change_notification", "/log_dir_event_notification"):
            yield unread_znode(each)
    if facts.control.n_notifications:
        yield Problem(
            "/isr_change_notification",
            f"{facts.control.n_notifications} notifications of ISR or log-dir changes wait in ZooKeeper: the "
            "controller did not process them.",
            facts.elected_anew(
                "Run the preflight again. If the notifications remain, delete /controller once: "
                "another broker becomes the controller."
            ),
        )


def content_counts(items: pl.DataFrame, partitions: pl.DataFrame) -> dict[str, int]:
    """Count ZooKeeper's content that will be copied, and how much of it could be read."""
    counted = dict(items.filter(pl.col("error").is_null()).group_by("kind").len().iter_rows())
    words = {"config": "settings", "quota": "quotas", "scram": "SCRAM credentials", "acl": "ACLs", "token": "tokens"}
    rest = {word: counted.get(kind, 0) for kind, word in words.items()}
    return {"topics": counted.get("topic", 0), "partitions": len(partitions), **rest}


def baseline(facts: PreflightFacts) -> Iterator[Problem]:
    """Z20: what will be copied, to compare with the controller's line "Completed migration of metadata"."""
    assert facts.items is not None
    assert facts.partitions is not None
    content = content_counts(facts.items, facts.partitions)
    counts = {kind: quantity(count, kind.removesuffix("s")) for kind, count in content.items()}
    topics, partitions, *rest = counts.values()
    about = duration(1000 * sum(content.values()) // _COPIED_PER_S, is_most=True)
    sentence = (
        f"ZooKeeper holds {topics} with {partitions}, {', '.join(rest)}. The copy takes about {about}, at "
        f"{_COPIED_PER_S} values per second. A rehearsal measures it."
    )
    n_unread = facts.items["error"].count() + facts.partitions["error"].count()
    if n_unread:
        yield unread("cluster", f"{sentence} {n_unread:,} more could not be read.")
    else:
        yield Problem("cluster", sentence, is_met=True)


_CONTROL, _ZNODES = ("control",), ("control", "znodes")
CHECKS = (
    check(
        "Z02", BLOCK, CONTROLLERS, "No /migration of another attempt is left over.", "ZooKeeper", left_over, _CONTROL
    ),
    check(
        "Z03",
        BLOCK,
        CONTROLLERS,
        "A broker, or a KRaft controller after the copy, holds /controller.",
        "ZooKeeper",
        not_controlled,
        _CONTROL,
    ),
    check(
        "Z14",
        BLOCK,
        CONTROLLERS,
        ("Every client may read and write Kafka's znodes."),
        "ZooKeeper",
        restricted,
        ("znodes",),
    ),
    check(
        "Z16", WARN, CONTROLLERS, "/controller_epoch is above KRaft's epoch.", "ZooKeeper, ApiVersions", young, _CONTROL
    ),
    check("Z17", INFO, CONTROLLERS, "No broker id was generated.", "ZooKeeper", generated, _ZNODES),
    check(
        "Z18", WARN, CONTROLLERS, "The controller processes every notification.", "ZooKeeper", notifications, _ZNODES
    ),
    check("Z20", INFO, CONTROLLERS, "ZooKeeper's content was counted.", "ZooKeeper", baseline, ("items", "partitions")),
)
