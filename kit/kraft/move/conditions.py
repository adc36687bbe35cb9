"""Judge the conditions that gates of a move examine: each returns a sentence about what is wrong, or None.

An unreadable value raises; the gate then counts as unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from kit.clients.nodes import KRAFT_MODE, MIGRATION_MODE
from kit.kraft.analyze.phase import CONTROLLERS, DUAL_WRITE, KRAFT
from kit.kraft.analyze.preflight import blocking, unknown as not_known
from kit.kraft.analyze.preflight_checks import ROLLBACK
from kit.kraft.analyze.soak import soak_problem
from kit.kraft.move.cluster_state import contradictions
from kit.kraft.move.disks import disks_problem
from kit.kraft.move.gate_inputs import GateInputs
from kit.kraft.move.nodes import BROKER
from kit.kraft.move.orders import settings_file
from kit.kraft.move.problems import (
    behind_problem,
    broker_problem,
    diff_problem,
    dual_write_problem,
    flag_problem,
    registered_problem,
    running_problem,
    unknown_voters,
    unreachable,
    voters_problem,
    waiting_problem,
)
from kit.kraft.move.rehearsals import REHEARSALS, newest as newest_rehearsal, set_aside
from kit.kraft.move.rights import hidden_problem, writes_problem
from kit.kraft.move.sync import sync_problem
from kit.kraft.move.unregister import gone_problem, replicas_problem
from kit.kraft.settings_files import lint_settings_file
from kit.kraft.watch import KraftHistory
from kit.profile import LAB
from kit.tables.conditions import BLOCK, Condition
from kit.text.naming import listed, named, shortened
from kit.text.visible import argument, toml_key

Problem = Callable[[GateInputs], str | None]
READ_AT_START = ("Z07", "Z08", "Z09", "Z10", "Z11")
"""Checks of the preflight on what brokers in ZooKeeper or migration mode read when they start."""
_BOTH = "{} are ids of brokers and of controllers"
_NOT_FORGOTTEN = (
    "after its znode in /brokers/ids has disappeared, which takes until the end of its ZooKeeper session. A broker "
    "that is started earlier ends with NodeExistsException"
)


def ids_known(inputs: GateInputs) -> str | None:
    profile = inputs.cluster.profile
    if profile.kraft.addresses and len(profile.kraft.ids) == len(profile.kraft.addresses):
        clash = sorted(set(profile.kraft.ids) & set(inputs.now.brokers))
        if clash:
            return named(clash, "{} is the id of a broker and of a controller", _BOTH)
        return voters_problem(inputs.now, profile.kraft.ids, is_reported=True)  # Else ``voters_known`` refuses.
    return (
        "the profile does not name every controller with its id: write"
        f' [clusters.{toml_key(profile.name)}.kraft] controllers = "3000@host:9093,…"'
    )


def voters_known(inputs: GateInputs) -> str | None:
    return unknown_voters(inputs.now, inputs.controllers)


def voters_known_of_running(inputs: GateInputs) -> str | None:
    """A left-over ``/migration`` is mostly of controllers that are gone."""
    return unknown_voters(inputs.now, inputs.controllers) if inputs.now.answering_controllers else None


def every_broker(inputs: GateInputs) -> str | None:
    """No node is forgotten: each node that is registered anywhere was asked, and answers."""
    control = inputs.now.control
    known = set(control.brokers) | {each.node_id for each in inputs.now.facts.registered_brokers}
    missing = sorted(known - set(inputs.now.brokers))
    if missing:
        registered = named(missing, "broker {} is", "brokers {} are")
        sentence = f"{registered} registered, but missing in the cluster's metadata: start {_them(missing)}"
        return f"{sentence}{_unregistered(inputs, missing)}"
    silent = sorted(number for number, mode in inputs.now.modes.items() if mode is None)
    if silent:
        sentence = named(silent, "broker {} does not answer", "brokers {} do not answer")
        sentence = f"{sentence}: start {_them(silent)}{_unregistered(inputs, silent)}"
        is_forgotten = not set(silent) & set(inputs.now.control.brokers)
        return sentence if is_forgotten else f"{sentence} {_NOT_FORGOTTEN}"
    return None if inputs.now.brokers else "no broker is known"


def _them(items: Sequence[object]) -> str:
    return "it" if len(items) == 1 else "them"


def _unregistered(inputs: GateInputs, numbers: Sequence[int]) -> str:
    """Return another remedy if the metadata log keeps the registration of a broker that was taken away."""
    registered = {each.node_id for each in inputs.now.facts.registered_brokers} - set(inputs.now.control.brokers)
    kept = [each for each in numbers if each in registered]
    if not kept or inputs.now.phase not in (CONTROLLERS, DUAL_WRITE, KRAFT):
        return ""
    plans = listed(f"offramp plan kraft --unregister {each}" for each in kept)
    return (
        f". The metadata log keeps the registration of {named(kept, 'broker')}. If a broker can't return, move its "
        f"replicas to other brokers, then end its registration: {plans} (kafka-cluster.sh of 3.9.1 can't do this on "
        "controllers)"
    )


def sync(inputs: GateInputs) -> str | None:
    problem = sync_problem(inputs.cluster, inputs.now.facts, inputs.now.brokers, reads=inputs.reads)
    if problem is None:
        return None
    servers = argument(inputs.cluster.profile.bootstrap_servers)
    return (
        f"{problem}. Start the missing brokers, and wait until this command prints no partition: kafka-topics.sh "
        f"--bootstrap-server {servers} --describe --under-replicated-partitions. If a broker can't return, move its "
        f"replicas to other brokers: kafka-reassign-partitions.sh --bootstrap-server {servers}"
    )


def describe_rows(rows: Sequence[Condition]) -> str | None:
    sentences = (f"{each.check_id} {each.sentence} {each.remedy}".strip().removesuffix(".") for each in rows)
    return f"{shortened(sentences, 3, '; ')}: see offramp kraft preflight" if rows else None


def preflight(inputs: GateInputs) -> str | None:
    return describe_rows(blocking(inputs.rows("A06", "L03")))


def brokers_start(inputs: GateInputs) -> str | None:
    """A broker in ZooKeeper or migration mode applies every setting, quota, credential and ACL when it starts; it ends
    beside one that it can't parse (``ZkConfigManager.startup``, ``AclAuthorizer.loadCache`` of 3.9).
    """
    rows = [each for each in inputs.preflight.rows if each.check_id in READ_AT_START and each.severity == BLOCK]
    problem = describe_rows([each for each in rows if each.is_met is not True])
    return problem and f"a broker may fail to start because of a znode: {problem}"


def low_epoch(inputs: GateInputs) -> str | None:
    return describe_rows([each for each in inputs.preflight.rows if each.check_id == "L03" and each.is_met is False])


def preflight_known(*elsewhere: str) -> Problem:
    """``elsewhere``: checks that are not asked yet."""

    def look_at(inputs: GateInputs) -> str | None:
        return describe_rows(not_known(inputs.rows(*elsewhere)))

    return look_at


def phase(*allowed: str) -> Problem:
    def look_at(inputs: GateInputs) -> str | None:
        if inputs.now.phase in allowed:
            return None
        return f"the cluster is in phase {inputs.now.phase!r}; this plan begins in {' or '.join(map(repr, allowed))}"

    return look_at


def no_contradiction(inputs: GateInputs) -> str | None:
    bad = contradictions(inputs.cluster, inputs.now)
    return "; ".join(f"{each.check_id} {each.sentence} {each.remedy}" for each in bad) or None


def waiting(inputs: GateInputs) -> str | None:
    return waiting_problem(inputs.now, inputs.controllers)


def left_to_move(inputs: GateInputs) -> str | None:
    if set(inputs.now.modes.values()) != {MIGRATION_MODE}:
        return None
    return (
        "every broker is in migration mode already, so no plan is needed: the copy begins as soon as the controllers "
        "find what they wait for. To see what they wait for: offramp kraft status (P03) and offramp kraft preflight. "
        "To roll back: offramp plan kraft --to zookeeper"
    )


def dual_write(inputs: GateInputs) -> str | None:
    return dual_write_problem(inputs.now, inputs.controllers)


def same(inputs: GateInputs) -> str | None:
    return dual_write_problem(inputs.now, inputs.controllers) or diff_problem(inputs.cluster, inputs.reads)


def old_members(inputs: GateInputs, without: Collection[str] = ()) -> str | None:
    live = {name: members for name, members in inputs.old_members.items() if name not in without}
    if not live:
        return None
    names = shortened((f"{group} ({len(members)})" for group, members in live.items()), 10)
    plans = "; ".join(f"offramp plan group {_to_kafka(group)}" for group in list(live)[:3])
    return (
        f"{len(live)} {'group has' if len(live) == 1 else 'groups have'} live members under /consumers: {names}."
        " In KRaft mode /brokers/ids is empty, so these members would find no broker and consume nothing, without an "
        f"error. Move the groups first: {plans}. If a group may stop, a second person approves it with: --override "
        "old_consumers:GROUP"
    )


def _to_kafka(group: str) -> str:
    to, name = "--to 'all KC'", argument(group)
    return f"{to} {name}" if group.startswith("-") else f"{name} {to}"


def lives(inputs: GateInputs, group: str) -> str | None:
    """Return whether one group, which an operator leaves behind, still has members."""
    members = inputs.old_members.get(group, ())
    return f"group {group} is left behind: its {len(members)} live members will consume nothing" if members else None


def all_in_kraft_mode(inputs: GateInputs) -> str | None:
    bad = (broker_problem(inputs.now, number, KRAFT_MODE) for number in inputs.now.brokers)
    if (problem := next((each for each in bad if each), None)) is not None:
        return problem
    return registered_problem(inputs.now)


def log_known(inputs: GateInputs) -> str | None:
    """A running controller shows its log; that none runs is a fact, too. Before the copy is completed no log has what
    ZooKeeper lacks, and controllers that died from the copy have no leader.
    """
    if inputs.now.facts.is_copying and inputs.now.facts.leader is None:
        return None
    answering = inputs.now.answering_controllers
    mute = [each for each in inputs.now.live_controllers if each.error is not None and each.is_listening]
    if mute and not inputs.now.facts.has_log:
        return (
            f"a controller runs, but does not answer as a controller: {mute[0].error}. Before the copy only "
            "super.users have rights on a controller. If the controller hangs, stop it manually"
        )
    if not answering or inputs.now.facts.has_log:
        return None
    answer = named((each.address for each in answering), "controller {} answers", "controllers {} answer")
    return f"{answer}, and the log can't be read: {inputs.now.facts.log_error or 'no reason given'}"


def reached(inputs: GateInputs) -> str | None:
    """Return which controllers may run, because their state is not known and no person reports them as stopped."""
    live = inputs.now.live_controllers
    unknown = [each for each in inputs.now.unreachable_controllers if each in live]
    if not unknown:
        return None
    problems = "; ".join(unreachable(each.address, each.error) for each in unknown)
    return (
        f"{problems}. Make the address reachable: a stopped controller's host refuses the connection. If a person has"
        f" seen that the controller is stopped: --override stopped:{unknown[0].address}"
    )


def reaches(inputs: GateInputs, address: str) -> str | None:
    """The state of one controller that a person reports as stopped."""
    error = next((each.error for each in inputs.now.unreachable_controllers if each.address == address), None)
    return error and f"{unreachable(address, error)}; a person reports it as stopped"


def controllers_silent(inputs: GateInputs) -> str | None:
    problem = running_problem(inputs.now)
    return problem and f"{problem}. Stop the controllers: offramp plan kraft --to zookeeper"


def no_broker_in_kraft_mode(inputs: GateInputs) -> str | None:
    in_kraft = sorted(number for number, mode in inputs.now.modes.items() if mode == KRAFT_MODE)
    if not in_kraft:
        return None
    return (
        named(in_kraft, "broker {} is in KRaft mode and hangs", "brokers {} are in KRaft mode and hang")
        + " without controllers. Start the controllers with their existing disks, then: offramp plan kraft --to "
        "zookeeper"
    )


def nothing_synced(inputs: GateInputs) -> str | None:
    """``/migration`` in the epoch of controllers whose log holds no migration: they have written to ZooKeeper."""
    leader, control = inputs.now.facts.leader, inputs.now.control
    if leader is None or control.checkpoint is None or control.checkpoint_epoch != leader.leader_epoch:
        return None
    return (
        f"controller {leader.node_id} has written to ZooKeeper from a log without topics, and deleted each topic "
        "that its log lacks. Stop the controllers immediately. Do not restart a broker: the brokers' disks still "
        "hold the partitions. Restore the topics' znodes from ZooKeeper's snapshots: offramp znodes"
    )


def controllers_gone(inputs: GateInputs) -> str | None:
    if inputs.now.live_controllers or inputs.now.facts.is_copying:
        return None
    return (
        "no controller answers, so offramp can't see whether the controllers' disks still hold the migration. If "
        "they do, start the controllers, then: offramp plan kraft --to zookeeper. Delete the claim only if the disks "
        "are lost, or if ZooKeeper was compared with them"
    )


def no_copy(inputs: GateInputs) -> str | None:
    facts = inputs.now.facts
    if not facts.is_copying or facts.is_copy_aborted:
        return None
    return (
        f"the copy from ZooKeeper is in progress: KRaft controller {inputs.now.control.controller_id} holds "
        "/controller, /migration has no offset, and no log shows an aborted copy. Wait for the end of the copy "
        "(offramp kraft status), then make the plan again"
    )


def is_gone(inputs: GateInputs) -> str | None:
    return None if inputs.gone is None else gone_problem(inputs.now, inputs.gone)


def no_replicas(inputs: GateInputs) -> str | None:
    return (
        None if inputs.gone is None else replicas_problem(inputs.cluster, inputs.now.facts, inputs.gone, inputs.reads)
    )


def three_controllers(inputs: GateInputs) -> str | None:
    number = len(inputs.controllers)
    lacks = (
        f"a quorum of {number} has no majority while one controller is restarted, so no controller would lead. "
        "Use three controllers or more"
    )
    return None if number >= 3 else lacks


def caught_up(inputs: GateInputs) -> str | None:
    return behind_problem(inputs.cluster, inputs.now, inputs.reads)


def v0(inputs: GateInputs) -> str | None:
    rows = [each for each in inputs.preflight.rows if each.check_id == "R03" and each.phase == ROLLBACK]
    return describe_rows([each for each in rows if each.is_met is False])


def v0_known(inputs: GateInputs) -> str | None:
    rows = [each for each in inputs.preflight.rows if each.check_id == "R03" and each.is_met is None]
    return describe_rows(rows)


def settings(role: str, mode: str) -> Problem:
    """The operator's files for the next mode, or for an undo, are there and right; the lab makes its own."""

    def look_at(inputs: GateInputs) -> str | None:
        profile, numbers = inputs.cluster.profile, inputs.now.brokers if role == BROKER else inputs.controllers
        if profile.deploy.nodes.kind == LAB:
            return None
        folder = profile.kraft.settings_dir
        if folder is None:
            return (
                f"the profile names no folder with settings for {mode} mode. To make the files: offramp kraft "
                "preflight --write-settings FOLDER. Complete them, then name the folder: "
                f"[clusters.{toml_key(profile.name)}.kraft] settings_dir"
            )
        wrong = [lint_settings_file(settings_file(folder, role, each, mode), role, each, mode) for each in numbers]
        return next((each for each in wrong if each is not None), None)

    return look_at


def wiped(inputs: GateInputs) -> str | None:
    return disks_problem(inputs.runs, inputs.cluster.cluster_id)


def rehearsed(inputs: GateInputs) -> str | None:
    result, now = newest_rehearsal(inputs.runs, inputs.cluster.cluster_id), inputs.clock.now()
    if result is not None:
        if result.is_ahead(now):
            set_aside(inputs.runs, inputs.cluster.cluster_id)
        return result.problem(now)
    return (
        f"{inputs.runs / REHEARSALS} holds no rehearsal of this cluster. To make one: offramp kraft save FILE, then "
        f"offramp kraft rehearse FILE --runs {inputs.runs}"
    )


def active_flag(inputs: GateInputs) -> str | None:
    return flag_problem(inputs.now, inputs.controllers)


def soaked(inputs: GateInputs) -> str | None:
    profile = inputs.cluster.profile
    if profile.kraft.history_dir is None:
        return (
            "the profile names no history of observations. To make one: offramp kraft watch --history FOLDER. Then "
            f"name the folder: [clusters.{toml_key(profile.name)}.kraft] history_dir"
        )
    states = KraftHistory(profile.kraft.history_dir).states_of(inputs.cluster.cluster_id)
    return soak_problem(states, inputs.clock.now(), profile.kraft.soak_hours)


def writes(inputs: GateInputs) -> str | None:
    return writes_problem(inputs.cluster)


def sees(inputs: GateInputs) -> str | None:
    return hidden_problem(inputs.cluster)
