"""What the gates of a move look at: each condition is a sentence that says what is wrong, or None.

What can't be read raises; the gate then counts as unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kit.clients.cluster import Cluster
from kit.clients.nodes import KRAFT_MODE, MIGRATION_MODE
from kit.engine.model.clock import Clock
from kit.kraft.analyze.phase import CONTROLLERS, DUAL_WRITE, KRAFT
from kit.kraft.analyze.preflight import blocking, unknown as not_known
from kit.kraft.analyze.preflight_checks import ROLLBACK
from kit.kraft.analyze.soak import soak_problem
from kit.kraft.move.cluster_state import (
    READS,
    ClusterState,
    MoveReads,
    behind_problem,
    broker_problem,
    contradictions,
    diff_problem,
    dual_write_problem,
    flag_problem,
    live_old_members,
    registered_problem,
    running_problem,
    unknown_voters,
    unreachable,
    voters_problem,
    waiting_problem,
    zookeeper_of,
)
from kit.kraft.move.disks import disks_problem
from kit.kraft.move.nodes import BROKER
from kit.kraft.move.orders import settings_file
from kit.kraft.move.rehearsals import REHEARSALS, newest as newest_rehearsal, set_aside
from kit.kraft.move.rights import hidden_problem, writes_problem
from kit.kraft.move.sync import sync_problem
from kit.kraft.move.unregister import gone_problem, replicas_problem
from kit.kraft.preflight import Preflight, kraft_preflight
from kit.kraft.settings_files import SettingsFolder, lint_settings_file, read_settings_folder
from kit.kraft.watch import KraftHistory
from kit.profile import LAB
from kit.tables.conditions import BLOCK, Condition
from kit.text.naming import listed, named
from kit.text.visible import argument, toml_key


@dataclass(frozen=True)
class Look:
    """What gates look at; what takes long is read when a gate asks for it. ``runs``: of plans, runs and rehearsals.

    ``gone``: the broker whose registration a plan ends.
    """

    cluster: Cluster
    now: ClusterState
    runs: Path
    gone: int | None = None
    reads: MoveReads = READS
    clock: Clock = Clock()  # noqa: RUF009 - it holds functions, no state

    @cached_property
    def old_members(self) -> Mapping[str, Sequence[str]]:
        """Group → live members under ``/consumers``.

        Raises:
            ConnectError: the profile names no ZooKeeper, or it does not answer.
            ReadError: a znode can't be listed.
        """
        return live_old_members(zookeeper_of(self.cluster))

    @property
    def controllers(self) -> Mapping[int, str]:
        return self.cluster.profile.kraft.ids

    @cached_property
    def preflight(self) -> Preflight:
        """Of this cluster, with the profile's folder of settings.

        Raises:
            InputError: the profile names no ZooKeeper; its folder holds no settings, or one can't be read.
            ConnectError: ZooKeeper stopped answering.
        """
        folder = self.cluster.profile.kraft.settings_dir
        return kraft_preflight(self.cluster, read_settings_folder(folder) if folder else SettingsFolder())

    def rows(self, *overridable: str) -> list[Condition]:
        """Of the preflight, without rules that stand for themselves."""
        return [each for each in self.preflight.rows if each.check_id not in overridable]


Problem = Callable[[Look], str | None]
_BOTH = "{} are ids of brokers and of controllers"
_NOT_FORGOTTEN = (
    "once gone from /brokers/ids, where one that was killed stays until its session ends; started before, it"
    " ends with NodeExistsException"
)


def ids_known(look: Look) -> str | None:
    profile = look.cluster.profile
    if profile.kraft.addresses and len(profile.kraft.ids) == len(profile.kraft.addresses):
        clash = sorted(set(profile.kraft.ids) & set(look.now.brokers))
        if clash:
            return named(clash, "{} is the id of a broker and of a controller", _BOTH)
        return voters_problem(look.now, profile.kraft.ids, is_reported=True)  # Else ``voters_known`` refuses.
    return (
        "the profile does not name every controller with its id: write"
        f' [clusters.{toml_key(profile.name)}.kraft] controllers = "3000@host:9093,…"'
    )


def voters_known(look: Look) -> str | None:
    return unknown_voters(look.now, look.controllers)


def voters_known_of_running(look: Look) -> str | None:
    """A left-over ``/migration`` is mostly of controllers that are gone."""
    return unknown_voters(look.now, look.controllers) if look.now.answering_controllers else None


def every_broker(look: Look) -> str | None:
    """Nobody is forgotten: who is registered anywhere was asked, and answers."""
    control = look.now.control
    known = set(control.brokers) | {each.node_id for each in look.now.facts.registered_brokers}
    missing = sorted(known - set(look.now.brokers))
    if missing:
        registered = named(missing, "broker {} is", "brokers {} are")
        them = _them(missing)
        told = f"{registered} registered, and the cluster's metadata does not name {them}: start {them}"
        return f"{told}{_unregistered(look, missing)}"
    silent = sorted(number for number, mode in look.now.modes.items() if mode is None)
    if silent:
        told = named(silent, "broker {} does not answer", "brokers {} do not answer")
        told = f"{told}: start {_them(silent)}{_unregistered(look, silent)}"
        forgotten = not set(silent) & set(look.now.control.brokers)
        return told if forgotten else f"{told} {_NOT_FORGOTTEN}"
    return None if look.now.brokers else "no broker is known"


def _them(items: Sequence[object]) -> str:
    return "it" if len(items) == 1 else "them"


def _unregistered(look: Look, numbers: Sequence[int]) -> str:
    """What else helps where the metadata log keeps the registration of a broker that was taken away."""
    registered = {each.node_id for each in look.now.facts.registered_brokers} - set(look.now.control.brokers)
    kept = [each for each in numbers if each in registered]
    if not kept or look.now.phase not in (CONTROLLERS, DUAL_WRITE, KRAFT):
        return ""
    plans = listed(f"offramp plan kraft --unregister {each}" for each in kept)
    return (
        f"; the metadata log keeps the registration of {named(kept, 'broker')}. Of one that is gone for good, end it:"
        f" {plans} (no partition may have a replica there; kafka-cluster.sh of 3.9.1 asks no controllers)"
    )


def sync(look: Look) -> str | None:
    problem = sync_problem(look.cluster, look.now.facts, look.now.brokers, reads=look.reads)
    if problem is None:
        return None
    servers = argument(look.cluster.profile.bootstrap_servers)
    return (
        f"{problem}. Start the brokers that are missing, and wait until this names no partition: kafka-topics.sh"
        f" --bootstrap-server {servers} --describe --under-replicated-partitions. Replicas on a broker that is gone for"
        f" good get another one by: kafka-reassign-partitions.sh --bootstrap-server {servers}"
    )


def told(rows: Sequence[Condition]) -> str | None:
    sentences = [f"{each.check_id} {each.sentence} {each.remedy}".strip().removesuffix(".") for each in rows[:3]]
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    return f"{'; '.join(sentences)}{more}: see offramp kraft preflight" if rows else None


def preflight(look: Look) -> str | None:
    return told(blocking(look.rows("A06", "L03")))


def brokers_start(look: Look) -> str | None:
    """A broker in ZooKeeper or migration mode reads every credential when it starts, and every ACL; it ends beside a
    malformed one."""
    rows = [each for each in look.preflight.rows if each.check_id in ("Z09", "Z10") and each.severity == BLOCK]
    problem = told([each for each in rows if each.is_met is not True])
    return problem and f"a broker may not start again beside it: {problem}"


def low_epoch(look: Look) -> str | None:
    return told([each for each in look.preflight.rows if each.check_id == "L03" and each.is_met is False])


def preflight_known(*elsewhere: str) -> Problem:
    """``elsewhere``: checks that are not asked yet."""

    def look_at(look: Look) -> str | None:
        return told(not_known(look.rows(*elsewhere)))

    return look_at


def phase(*allowed: str) -> Problem:
    def look_at(look: Look) -> str | None:
        if look.now.phase in allowed:
            return None
        return f"the cluster is in phase {look.now.phase!r}; this plan begins in {' or '.join(map(repr, allowed))}"

    return look_at


def no_contradiction(look: Look) -> str | None:
    bad = contradictions(look.cluster, look.now)
    return "; ".join(f"{each.check_id} {each.sentence} {each.remedy}" for each in bad) or None


def waiting(look: Look) -> str | None:
    return waiting_problem(look.now, look.controllers)


def left_to_move(look: Look) -> str | None:
    if set(look.now.modes.values()) != {MIGRATION_MODE}:
        return None
    return (
        "every broker is in migration mode already: the copy begins by itself, once the controllers have what they wait"
        " for. What that is, offramp kraft status (P03) and offramp kraft preflight say. Back: offramp plan kraft --to"
        " zookeeper"
    )


def dual_write(look: Look) -> str | None:
    return dual_write_problem(look.now, look.controllers)


def same(look: Look) -> str | None:
    return dual_write_problem(look.now, look.controllers) or diff_problem(look.cluster, look.reads)


def old_members(look: Look, without: Collection[str] = ()) -> str | None:
    live = {name: members for name, members in look.old_members.items() if name not in without}
    if not live:
        return None
    names = ", ".join(f"{group} ({len(members)})" for group, members in list(live.items())[:10])
    more = f" and {len(live) - 10} more" if len(live) > 10 else ""
    plans = "; ".join(f"offramp plan group {_to_kafka(group)}" for group in list(live)[:3])
    return (
        f"{len(live)} {'group has' if len(live) == 1 else 'groups have'} live members under /consumers: {names}{more}."
        " In KRaft mode no broker is in"
        f" /brokers/ids, so they would find none and own nothing, without an error. Move them first: {plans}."
        " Or a second person answers for each of them: --override old_consumers:GROUP"
    )


def _to_kafka(group: str) -> str:
    to, name = "--to 'all KC'", argument(group)
    return f"{to} {name}" if group.startswith("-") else f"{name} {to}"


def lives(look: Look, group: str) -> str | None:
    """Whether one group, which somebody leaves behind, still has members."""
    members = look.old_members.get(group, ())
    return f"group {group} is left behind with {len(members)} live members, who will own nothing" if members else None


def all_in_kraft_mode(look: Look) -> str | None:
    bad = (broker_problem(look.now, number, KRAFT_MODE) for number in look.now.brokers)
    if (problem := next((each for each in bad if each), None)) is not None:
        return problem
    return registered_problem(look.now)


def log_known(look: Look) -> str | None:
    """Who runs tells its log; nobody who runs is a fact, too. Before the copy is completed no log has what ZooKeeper
    lacks, and controllers that died from the copy have no leader."""
    if look.now.facts.is_copying and look.now.facts.leader is None:
        return None
    answering = look.now.answering_controllers
    mute = [each for each in look.now.live_controllers if each.error is not None and each.is_listening]
    if mute and not look.now.facts.has_log:
        return (
            f"a controller runs and does not answer as it should: {mute[0].error}. Before the copy only super.users"
            " have rights there; one that hangs has to be stopped by hand"
        )
    if not answering or look.now.facts.has_log:
        return None
    answer = named((each.address for each in answering), "controller {} answers", "controllers {} answer")
    return f"{answer}, and the log can't be read: {look.now.facts.log_error or 'no reason given'}"


def reached(look: Look) -> str | None:
    """Which controllers may run, because their state is not known and no person reports them as stopped."""
    live = look.now.live_controllers
    unknown = [each for each in look.now.unreachable_controllers if each in live]
    if not unknown:
        return None
    problems = "; ".join(unreachable(each.address, each.error) for each in unknown)
    return (
        f"{problems}. Make the address reachable: a stopped controller's host refuses the connection. If a person has"
        f" seen that the controller is stopped: --override stopped:{unknown[0].address}"
    )


def reaches(look: Look, address: str) -> str | None:
    """The state of one controller that a person reports as stopped."""
    error = next((each.error for each in look.now.unreachable_controllers if each.address == address), None)
    return error and f"{unreachable(address, error)}; a person reports it as stopped"


def controllers_silent(look: Look) -> str | None:
    problem = running_problem(look.now)
    return problem and f"{problem}. Stop the controllers: offramp plan kraft --to zookeeper"


def no_broker_in_kraft_mode(look: Look) -> str | None:
    in_kraft = sorted(number for number, mode in look.now.modes.items() if mode == KRAFT_MODE)
    if not in_kraft:
        return None
    return (
        named(in_kraft, "broker {} is in KRaft mode and hangs", "brokers {} are in KRaft mode and hang")
        + " without controllers. Start the controllers with their disks, then: offramp plan kraft --to zookeeper"
    )


def nothing_synced(look: Look) -> str | None:
    """``/migration`` in the epoch of controllers whose log holds no migration: they have written to ZooKeeper."""
    leader, control = look.now.facts.leader, look.now.control
    if leader is None or control.checkpoint is None or control.checkpoint_epoch != leader.leader_epoch:
        return None
    return (
        f"controller {leader.node_id} has written to ZooKeeper from a log without topics: what it did not know is"
        " deleted. Stop the controllers at once, restart no broker (their disks hold the partitions still), and restore"
        " ZooKeeper's topics from its snapshots: offramp znodes"
    )


def controllers_gone(look: Look) -> str | None:
    if look.now.live_controllers or look.now.facts.is_copying:
        return None
    return (
        "no controller answers, and nobody can see from here whether their disks hold the migration still. If they do:"
        " start the controllers, then offramp plan kraft --to zookeeper. Only if the disks are gone, or ZooKeeper was"
        " compared with them, may the claim be deleted"
    )


def no_copy(look: Look) -> str | None:
    facts = look.now.facts
    if not facts.is_copying or facts.is_copy_aborted:
        return None
    return (
        f"the copy from ZooKeeper is under way: KRaft controller {look.now.control.controller_id} holds /controller,"
        " and /migration has no offset. No log shows an aborted copy. Wait for the end of the copy (offramp kraft"
        " status), then plan again"
    )


def is_gone(look: Look) -> str | None:
    return None if look.gone is None else gone_problem(look.now, look.gone)


def no_replicas(look: Look) -> str | None:
    return None if look.gone is None else replicas_problem(look.cluster, look.now.facts, look.gone, look.reads)


def three_controllers(look: Look) -> str | None:
    number = len(look.controllers)
    return None if number >= 3 else f"the quorum of {number} has no majority while one is restarted: nobody would lead"


def caught_up(look: Look) -> str | None:
    return behind_problem(look.cluster, look.now, look.reads)


def v0(look: Look) -> str | None:
    rows = [each for each in look.preflight.rows if each.check_id == "R03" and each.phase == ROLLBACK]
    return told([each for each in rows if each.is_met is False])


def v0_known(look: Look) -> str | None:
    rows = [each for each in look.preflight.rows if each.check_id == "R03" and each.is_met is None]
    return told(rows)


def settings(role: str, mode: str) -> Problem:
    """The operator's files for the next mode, or for an undo, are there and right; the lab makes its own."""

    def look_at(look: Look) -> str | None:
        profile, numbers = look.cluster.profile, look.now.brokers if role == BROKER else look.controllers
        if profile.deploy.nodes.kind == LAB:
            return None
        folder = profile.kraft.settings_dir
        if folder is None:
            return (
                f"no settings for {mode} mode are known: offramp kraft preflight --write-settings FOLDER makes them;"
                f" complete them, and write [clusters.{toml_key(profile.name)}.kraft] settings_dir"
            )
        wrong = [lint_settings_file(settings_file(folder, role, each, mode), role, each, mode) for each in numbers]
        return next((each for each in wrong if each is not None), None)

    return look_at


def wiped(look: Look) -> str | None:
    return disks_problem(look.runs, look.cluster.cluster_id)


def rehearsed(look: Look) -> str | None:
    result, now = newest_rehearsal(look.runs, look.cluster.cluster_id), look.clock.now()
    if result is not None:
        if result.is_ahead(now):
            set_aside(look.runs, look.cluster.cluster_id)
        return result.problem(now)
    return (
        f"no rehearsal of this cluster is kept in {look.runs / REHEARSALS}: offramp kraft save FILE, then offramp kraft"
        f" rehearse FILE --runs {look.runs}"
    )


def active_flag(look: Look) -> str | None:
    return flag_problem(look.now, look.controllers)


def soaked(look: Look) -> str | None:
    profile = look.cluster.profile
    if profile.kraft.history_dir is None:
        return (
            "no history of looks is known: offramp kraft watch --history FOLDER makes one; write"
            f" [clusters.{toml_key(profile.name)}.kraft] history_dir"
        )
    states = KraftHistory(profile.kraft.history_dir).states_of(look.cluster.cluster_id)
    return soak_problem(states, look.clock.now(), profile.kraft.soak_hours)


def writes(look: Look) -> str | None:
    return writes_problem(look.cluster)


def sees(look: Look) -> str | None:
    return hidden_problem(look.cluster)
