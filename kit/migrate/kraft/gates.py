"""What must hold before a plan to each phase is made, and again before its first order: one table.

Each gate is a rule of the engine's and a look: a sentence says what is wrong, None that nothing is. What can't be read
is not met. A rule that can be overridden is overridden by its name, by who approves the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

from kit.analyze.metadata.contradictions import findings as contradictions
from kit.analyze.metadata.phase import CONTROLLERS, DUAL_WRITE, FINALISED, KRAFT, PRE_MIGRATION, ZOOKEEPER
from kit.analyze.metadata.preflight import blocking
from kit.analyze.metadata.preflight import unknown as not_known
from kit.analyze.metadata.preflight_checks import ROLLBACK
from kit.analyze.metadata.soak import soak_problem
from kit.cluster import Cluster
from kit.errors import OfframpError
from kit.kraft_watch import KraftHistory
from kit.migrate.engine.checks import Finding, Rule
from kit.migrate.kraft.nodes import BROKER, CONTROLLER
from kit.migrate.kraft.nodes import FINALISED as FINAL_MODE
from kit.migrate.kraft.orders import settings_file
from kit.migrate.kraft.rights import hidden_problem, writes_problem
from kit.migrate.kraft.standing import (
    Standing,
    behind_problem,
    broker_problem,
    controllers_problem,
    diff_problem,
    dual_write_problem,
    live_old_members,
    sync_problem,
    zookeeper_of,
)
from kit.migrate.kraft.steps import FAIL_OVER, REPAIR_BROKERS, REPAIR_CLAIM, REPAIR_EPOCH, REPAIR_MIGRATION
from kit.preflight import Preflight, SettingsFolder, kraft_preflight, lint_settings_file, read_settings_folder
from kit.profile import LAB
from kit.read.nodes import KRAFT_MODE, MIGRATION_MODE, ZOOKEEPER_MODE
from kit.tables.preflight import PreflightFinding


@dataclass(frozen=True)
class Look:
    """What gates look at; what takes long is read when a gate asks for it."""

    cluster: Cluster
    now: Standing

    @property
    def controllers(self) -> Mapping[int, str]:
        return self.cluster.profile.kraft.ids

    @cached_property
    def preflight(self) -> Preflight:
        folder = self.cluster.profile.kraft.settings_dir
        return kraft_preflight(self.cluster, read_settings_folder(folder) if folder else SettingsFolder())

    def rows(self, *overridable: str) -> list[PreflightFinding]:
        """Of the preflight, without rules that stand for themselves."""
        return [each for each in self.preflight.rows if each.check_id not in overridable]


Problem = Callable[[Look], str | None]


@dataclass(frozen=True, slots=True)
class Gate:
    """``where``: the phases in which the cluster stands while this is asked; none: in all."""

    rule: Rule
    problem: Problem
    where: tuple[str, ...] = ()

    def found(self, look: Look) -> Finding:
        try:
            problem = self.problem(look)
        except OfframpError as error:
            return self.rule.found(None, str(error))
        return self.rule.found(problem is None, problem or f"{self.rule.sentence}.")


def findings(to_phase: str, look: Look) -> Sequence[Finding]:
    """Every gate of a phase, in the order of the table."""
    return [gate.found(look) for gate in GATES[to_phase] if not gate.where or look.now.phase in gate.where]


def _ids_known(look: Look) -> str | None:
    profile = look.cluster.profile
    if profile.kraft.addresses and len(profile.kraft.ids) == len(profile.kraft.addresses):
        clash = sorted(set(profile.kraft.ids) & set(look.now.brokers))
        return f"{clash} are ids of brokers and of controllers" if clash else None
    return (
        f"the profile does not name every controller with its id: write [clusters.{profile.name}.kraft] controllers ="
        ' "3000@host:9093,…"'
    )


def _every_broker(look: Look) -> str | None:
    """Nobody is forgotten: who is registered anywhere was asked, and answers."""
    control = look.now.control
    known = set(control.brokers) | {each.node_id for each in look.now.facts.registered_brokers}
    missing = sorted(known - set(look.now.brokers))
    if missing:
        return f"brokers {missing} are registered, and the cluster's metadata does not name them: start them"
    silent = sorted(number for number, mode in look.now.modes.items() if mode is None)
    if silent:
        return f"brokers {silent} do not answer: start them"
    return None if look.now.brokers else "no broker is known"


def _sync(look: Look) -> str | None:
    return sync_problem(look.cluster, look.now.brokers)


def _told(rows: Sequence[PreflightFinding]) -> str | None:
    told = [f"{each.check_id} {each.sentence} {each.remedy}".strip().removesuffix(".") for each in rows[:3]]
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    return f"{'; '.join(told)}{more}: see offramp kraft preflight" if rows else None


def _preflight(look: Look) -> str | None:
    return _told(blocking(look.rows("A06", "L03")))


def _low_epoch(look: Look) -> str | None:
    return _told([each for each in look.preflight.rows if each.check_id == "L03" and each.is_met is False])


def _preflight_known(*elsewhere: str) -> Problem:
    """``elsewhere``: checks that are not asked yet."""

    def look_at(look: Look) -> str | None:
        return _told(not_known(look.rows(*elsewhere)))

    return look_at


def _phase(*allowed: str) -> Problem:
    def look_at(look: Look) -> str | None:
        if look.now.phase in allowed:
            return None
        return f"the cluster is in phase {look.now.phase!r}; this plan begins in {' or '.join(map(repr, allowed))}"

    return look_at


def _no_contradiction(look: Look) -> str | None:
    bad = [each for each in contradictions(look.now.facts) if each.severity in ("alarm", "block")]
    return "; ".join(f"{each.check_id} {each.sentence} {each.remedy}" for each in bad) or None


def _waiting(look: Look) -> str | None:
    problem = controllers_problem(look.now, look.controllers)
    control, state = look.now.control, look.now.facts.zk_state
    if problem is not None:
        return problem
    if state != PRE_MIGRATION:
        return f"the metadata log says the state {state}, not {PRE_MIGRATION}"
    if not control.has_migration or control.checkpoint is not None:
        return f"/migration says the checkpoint {control.checkpoint}: it is of another attempt"
    return None


def _dual_write(look: Look) -> str | None:
    return dual_write_problem(look.now, look.controllers)


def _same(look: Look) -> str | None:
    return dual_write_problem(look.now, look.controllers) or diff_problem(look.cluster)


def _old_members(look: Look) -> str | None:
    live = live_old_members(zookeeper_of(look.cluster))
    if not live:
        return None
    names = ", ".join(f"{group} ({len(members)})" for group, members in list(live.items())[:10])
    more = f" and {len(live) - 10} more" if len(live) > 10 else ""
    plans = "; ".join(f"offramp plan group {group} --to 'all KC'" for group in list(live)[:3])
    return (
        f"{len(live)} {'group has' if len(live) == 1 else 'groups have'} live members under /consumers: {names}{more}."
        " In KRaft mode no broker is in"
        f" /brokers/ids, so they would find none and own nothing, without an error. Move them first: {plans}"
    )


def _all_in_kraft_mode(look: Look) -> str | None:
    bad = (broker_problem(look.now, number, KRAFT_MODE) for number in look.now.brokers)
    if (problem := next((each for each in bad if each), None)) is not None:
        return problem
    migrating = [each.node_id for each in look.now.facts.registered_brokers if each.is_migrating or each.is_fenced]
    if migrating or look.now.control.brokers:
        return (
            f"brokers {migrating} are registered in ZooKeeper mode or fenced; /brokers/ids: {look.now.control.brokers}"
        )
    return None


def _no_migrating_broker(look: Look) -> str | None:
    """Before anything was copied."""
    if look.now.phase != CONTROLLERS:
        return None
    moved = sorted(number for number, mode in look.now.modes.items() if mode != ZOOKEEPER_MODE)
    if not moved:
        return None
    return (
        f"brokers {moved} are in migration mode already, and nothing is copied yet. Undo the run that moved them"
        " (offramp runs; offramp undo RUN), or resume it and go back from dual write"
    )


def _log_known(look: Look) -> str | None:
    """Who runs tells its log; nobody who runs is a fact, too."""
    answering = look.now.answering_controllers
    mute = [each for each in look.now.live_controllers if each.error is not None]
    if mute and not look.now.facts.has_log:
        return (
            f"a controller runs and does not answer as it should: {mute[0].error}. Before the copy only super.users"
            " have rights there; one that hangs has to be stopped by hand"
        )
    if not answering or look.now.facts.has_log:
        return None
    return f"controllers {', '.join(each.address for each in answering)} answer, and their log can't be read: " + (
        look.now.facts.log_error or "no reason given"
    )


def _controllers_silent(look: Look) -> str | None:
    running = ", ".join(each.address for each in look.now.live_controllers)
    return f"controllers {running} run: offramp plan kraft --to zookeeper stops them" if running else None


def _no_broker_in_kraft_mode(look: Look) -> str | None:
    in_kraft = sorted(number for number, mode in look.now.modes.items() if mode == KRAFT_MODE)
    if not in_kraft:
        return None
    return (
        f"brokers {in_kraft} are in KRaft mode: without controllers they hang. Start the controllers with their disks,"
        " then: offramp plan kraft --to zookeeper"
    )


def _nothing_synced(look: Look) -> str | None:
    """``/migration`` in the epoch of controllers whose log holds no migration: they have written to ZooKeeper."""
    leader, control = look.now.facts.leader, look.now.control
    if leader is None or control.checkpoint is None or control.checkpoint_epoch != leader.leader_epoch:
        return None
    return (
        f"controller {leader.node_id} has written to ZooKeeper from a log without topics: what it did not know is"
        " deleted. Stop the controllers at once, restart no broker (their disks hold the partitions still), and restore"
        " ZooKeeper's topics from its snapshots: offramp znodes"
    )


def _controllers_gone(look: Look) -> str | None:
    if look.now.live_controllers:
        return None
    return (
        "no controller answers, and nobody can see from here whether their disks hold the migration still. If they do:"
        " start the controllers, then offramp plan kraft --to zookeeper. Only if the disks are gone, or ZooKeeper was"
        " compared with them, may the claim be deleted"
    )


def _three_controllers(look: Look) -> str | None:
    number = len(look.controllers)
    return None if number >= 3 else f"the quorum of {number} has no majority while one is restarted: nobody would lead"


def _caught_up(look: Look) -> str | None:
    return behind_problem(look.cluster, look.now)


def _v0(look: Look) -> str | None:
    rows = [each for each in look.preflight.rows if each.check_id == "R03" and each.phase == ROLLBACK]
    return _told([each for each in rows if each.is_met is False])


def _v0_known(look: Look) -> str | None:
    rows = [each for each in look.preflight.rows if each.check_id == "R03" and each.is_met is None]
    return _told(rows)


def _settings(role: str, mode: str) -> Problem:
    """The operator's files for the next mode, or for an undo, are there and right; the lab makes its own."""

    def look_at(look: Look) -> str | None:
        profile, numbers = look.cluster.profile, look.now.brokers if role == BROKER else look.controllers
        if profile.deploy.nodes.kind == LAB:
            return None
        folder = profile.kraft.settings_dir
        if folder is None:
            return (
                f"no settings for {mode} mode are known: offramp kraft preflight --write-settings FOLDER makes them;"
                f" complete them, and write [clusters.{profile.name}.kraft] settings_dir"
            )
        wrong = [lint_settings_file(settings_file(folder, role, each, mode), role, each, mode) for each in numbers]
        return next((each for each in wrong if each is not None), None)

    return look_at


def _soaked(look: Look) -> str | None:
    profile = look.cluster.profile
    if profile.kraft.history_dir is None:
        return (
            "no history of looks is known: offramp kraft watch --history FOLDER makes one; write"
            f" [clusters.{profile.name}.kraft] history_dir"
        )
    states = KraftHistory(profile.kraft.history_dir).states_of(look.cluster.cluster_id)
    return soak_problem(states, datetime.now(UTC), profile.kraft.soak_hours)


def _writes(look: Look) -> str | None:
    return writes_problem(look.cluster)


def _sees(look: Look) -> str | None:
    return hidden_problem(look.cluster)


def _gate(
    name: str, sentence: str, problem: Problem, can_be_overridden: bool = False, where: tuple[str, ...] = ()
) -> Gate:
    return Gate(Rule(name, sentence, can_be_overridden=can_be_overridden), problem, where)


_IDS = _gate("controller_ids", "the profile names every controller with its id", _ids_known)
_EVERY_BROKER = _gate("every_broker", "every broker that is registered anywhere answers", _every_broker)
_SYNC = _gate("in_sync", "every partition has a leader and its full ISR (A06)", _sync)
_SOUND = _gate("no_contradiction", "no fact contradicts another", _no_contradiction)
_BEFORE = _gate("preflight", "the preflight finds nothing that blocks", _preflight)
_DUAL_WRITE = _gate("dual_write", "the copy is done, and dual write goes on", _dual_write)
_SAME = _gate("diff", "ZooKeeper and KRaft hold the same", _same)
_IN_DUAL_WRITE = (replace(_DUAL_WRITE, where=(DUAL_WRITE, KRAFT)), replace(_SAME, where=(DUAL_WRITE, KRAFT)))
_KNOWN = "every check of the preflight that could block is known"


_NO_KRAFT_MODE = _gate("no_kraft_mode", "no broker is in KRaft mode", _no_broker_in_kraft_mode)
_LOG_KNOWN = _gate("log_known", "the controllers' log is read, or none of them answers", _log_known)
_NOT_SYNCED = _gate("nothing_synced", "controllers with an empty log have not written to ZooKeeper", _nothing_synced)
_SILENT = _gate("controllers_silent", "no controller answers", _controllers_silent)


def _files(role: str, mode: str) -> Gate:
    return _gate(f"settings_{mode}", f"each {role} has settings for {mode} mode", _settings(role, mode))


_OF_PHASE: Mapping[str, tuple[Gate, ...]] = {
    CONTROLLERS: (
        _IDS,
        _EVERY_BROKER,
        _gate("phase", "nothing has begun", _phase(ZOOKEEPER)),
        _BEFORE,
        _gate("preflight_known", _KNOWN, _preflight_known("L01", "L02", "L03"), can_be_overridden=True),
        _gate("in_sync", "every partition has a leader and its full ISR (A06)", _sync, can_be_overridden=True),
        _files(CONTROLLER, MIGRATION_MODE),
    ),
    DUAL_WRITE: (
        _IDS,
        _EVERY_BROKER,
        _gate("phase", "the controllers wait, or brokers have gone on", _phase(CONTROLLERS, DUAL_WRITE, KRAFT)),
        _SOUND,
        _SYNC,
        _files(BROKER, MIGRATION_MODE),
        replace(_files(BROKER, ZOOKEEPER_MODE), where=(CONTROLLERS,)),
        _gate("waiting", "the controllers wait with an empty log", _waiting, where=(CONTROLLERS,)),
        replace(_BEFORE, where=(CONTROLLERS,)),
        _gate("low_epoch", "KRaft's epoch is low (L03)", _low_epoch, True, (CONTROLLERS,)),
        _gate("preflight_known", _KNOWN, _preflight_known("L03"), True, (CONTROLLERS,)),
        *_IN_DUAL_WRITE,
    ),
    KRAFT: (
        _IDS,
        _EVERY_BROKER,
        _gate("phase", "dual write goes on", _phase(DUAL_WRITE, KRAFT)),
        _SOUND,
        _DUAL_WRITE,
        _SYNC,
        _gate("old_consumers", "no live member stands under /consumers", _old_members),
        _files(BROKER, KRAFT_MODE),
        _files(BROKER, MIGRATION_MODE),
        _SAME,
    ),
    FINALISED: (
        _IDS,
        _EVERY_BROKER,
        _gate("phase", "all brokers are in KRaft mode", _phase(KRAFT)),
        _SOUND,
        _DUAL_WRITE,
        _SYNC,
        _gate("all_in_kraft_mode", "every broker is in KRaft mode and unfenced", _all_in_kraft_mode),
        _files(CONTROLLER, FINAL_MODE),
        _gate("soak", "KRaft mode was watched for long enough, and nothing diverged", _soaked, can_be_overridden=True),
        _SAME,
    ),
    ZOOKEEPER: (
        _IDS,
        _EVERY_BROKER,
        _gate("phase", "it is not finalised", _phase(CONTROLLERS, DUAL_WRITE, KRAFT)),
        _SOUND,
        _SYNC,
        _gate("no_migrating_broker", "no broker moved before the copy", _no_migrating_broker),
        _gate("R03", "no broker was formatted for KRaft", _v0),
        _gate("R03_known", "it is known that no broker was formatted for KRaft", _v0_known, can_be_overridden=True),
        _files(BROKER, ZOOKEEPER_MODE),
        _files(BROKER, MIGRATION_MODE),
        *_IN_DUAL_WRITE,
    ),
    REPAIR_CLAIM: (
        _IDS,
        _EVERY_BROKER,
        _LOG_KNOWN,
        _NO_KRAFT_MODE,
        _NOT_SYNCED,
        _gate("controllers_gone", "the controllers' logs hold nothing that ZooKeeper lacks", _controllers_gone, True),
    ),
    REPAIR_MIGRATION: (
        replace(_IDS, rule=replace(_IDS.rule, can_be_overridden=True)),
        _EVERY_BROKER,
        _LOG_KNOWN,
        _NO_KRAFT_MODE,
        _NOT_SYNCED,
    ),
    REPAIR_EPOCH: (_EVERY_BROKER, _SILENT, _NO_KRAFT_MODE),
    REPAIR_BROKERS: (_IDS, _EVERY_BROKER, _SILENT, _NO_KRAFT_MODE, _files(BROKER, ZOOKEEPER_MODE)),
    FAIL_OVER: (
        _IDS,
        _EVERY_BROKER,
        _gate("phase", "dual write goes on", _phase(DUAL_WRITE, KRAFT)),
        _SOUND,
        _gate("three_controllers", "the quorum outlives one controller", _three_controllers),
        _DUAL_WRITE,
        _gate("caught_up", "every controller has caught up with the active one", _caught_up),
        _SYNC,
        _files(CONTROLLER, MIGRATION_MODE),
        _SAME,
    ),
}
_EVERYWHERE = (
    _gate("zookeeper_writes", "offramp's session of ZooKeeper may write what a way back would write", _writes),
    _gate("zookeeper_sees", "no znode of Kafka's is hidden from that session", _sees),
)
GATES: Mapping[str, tuple[Gate, ...]] = {to: (*_EVERYWHERE, *gates) for to, gates in _OF_PHASE.items()}
