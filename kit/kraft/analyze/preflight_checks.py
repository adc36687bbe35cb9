"""Define a check of the preflight: a function from what was read to problems; no problem means that the check is
met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import polars as pl

from kit.kraft.analyze.node_settings import NodeSettings
from kit.kraft.analyze.phase import Facts
from kit.tables.conditions import NEVER, Condition, Rule
from kit.tables.kraft import ACCESS_LIST, REFUSED, MetadataControl, ZnodeProblem
from kit.tables.preflight import BrokerLogDir, NodeMeta, PreflightZnodes

CONTROLLERS, DUAL_WRITE, ROLLBACK, ANY = "controllers", "dual write", "rollback", "any"
AT_MOST = 100
"""Problems of one check that are reported one by one; all further problems are counted."""
_GIVE_RIGHT = (
    "Use a login that may read this znode, for example the brokers' own login: "
    "[clusters.NAME.security.zookeeper] in the profile."
)


@dataclass(frozen=True)
class PreflightFacts:
    """Everything that was read. None: it was not, and ``unread`` gives the reason, under the field's name.

    ``facts``: control znodes and what the nodes answered. ``partitions`` and ``items``: ZooKeeper's
    ``metadata_partitions`` and ``metadata_items``; ``kraft_items``: those of the metadata log. ``settings``: of each
    node that reported them, from it or from the operator's file. ``metas``: the nodes' ``meta.properties``.
    ``log_dirs``: of every broker, as it reported them. ``differences``: of the last diff.
    """

    facts: Facts
    partitions: pl.DataFrame | None = None
    items: pl.DataFrame | None = None
    znodes: PreflightZnodes | None = None
    kraft_items: pl.DataFrame | None = None
    differences: pl.DataFrame | None = None
    settings: Sequence[NodeSettings] = ()
    log_dirs: Sequence[BrokerLogDir] = ()
    metas: Sequence[NodeMeta] = ()
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def brokers(self) -> list[NodeSettings]:
        return [each for each in self.settings if each.role == "broker"]

    @property
    def controllers(self) -> list[NodeSettings]:
        return [each for each in self.settings if each.role == "controller"]

    @property
    def control(self) -> MetadataControl | None:
        return self.facts.control

    @property
    def copied_partitions(self) -> pl.DataFrame:
        """ZooKeeper's partitions, but of topics that wait for their deletion: controllers leave those out."""
        assert self.partitions is not None
        assert self.control is not None
        return self.partitions.filter(~pl.col("topic").is_in(list(self.control.pending_deletions)))

    def items_of(self, kind: str) -> pl.DataFrame:
        """ZooKeeper's items of one kind."""
        assert self.items is not None
        return self.items.filter(pl.col("kind") == kind)

    def elected_anew(self, advice: str) -> str:
        """Return an advice that deletes ``/controller``, only if a broker holds it.

        Without the claim of a KRaft controller brokers would elect a controller of their own beside it.
        """
        is_claimed = self.control is None or self.control.is_controller_persistent is not False
        return _KEEP_THE_CLAIM if is_claimed else advice

    def unparsed(self) -> Iterator[Problem]:
        """Topics whose partitions are not known, because their znode can't be read."""
        rows = self.items_of("partition").select("entity", "error", "is_refused")
        for topic, error, is_refused in rows.iter_rows():
            yield unread(f"topic {topic}", f"The partitions of {topic} are not known: {error}.", is_refused=is_refused)


@dataclass(frozen=True, slots=True)
class Problem:
    """The finding of a check about one subject. ``is_met`` None: it could not be read. ``severity`` None: the
    check's.
    """

    subject: str
    sentence: str
    remedy: str = ""
    is_met: bool | None = False
    severity: str | None = None


FindProblems: TypeAlias = Callable[[PreflightFacts], Iterable[Problem]]


@dataclass(frozen=True, slots=True)
class Check:
    """A rule, and the function that asks for it. ``needs``: fields of ``PreflightFacts`` that must have been read.

    ``settings``: those of nodes that the check examines. A node with a template in one of them is left out, and
    reported.
    """

    rule: Rule
    look: FindProblems
    needs: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    def findings(self, facts: PreflightFacts) -> Iterator[Condition]:
        """At least one condition."""
        filled_later = {id(each): name for each in facts.settings for name in self.settings if each.is_template(name)}
        known = replace(facts, settings=[each for each in facts.settings if id(each) not in filled_later])
        missing = [name for name in self.needs if getattr(facts, name) is None or not _is_there(facts, name)]
        problems = [_not_read(facts, name) for name in missing] or list(self.look(known))
        problems += [_filled_later(each, filled_later[id(each)]) for each in facts.settings if id(each) in filled_later]
        problems += [each for name in self.needs if name not in missing for each in _incomplete(facts, name)]
        for each in _first(problems) or [Problem("cluster", self.rule.holds, is_met=True)]:
            yield self.rule.found(
                each.is_met, each.sentence, subject=each.subject, remedy=each.remedy, severity=each.severity
            )


def check(
    check_id: str,
    severity: str,
    phase: str,
    holds: str,
    source: str,
    look: FindProblems,
    needs: tuple[str, ...] = (),
    settings: tuple[str, ...] = (),
) -> Check:
    """Return a check; the first five are its rule's. It can't be overridden: a gate may, by a name of its own."""
    return Check(Rule(check_id, holds, severity, NEVER, phase, source), look, needs, settings)


def unread(subject: str, sentence: str, remedy: str = "", is_refused: bool | None = False) -> Problem:
    """Return a problem of which it is not known whether it is one. ``is_refused``: ZooKeeper refused to read it."""
    return Problem(subject, sentence, remedy or (_GIVE_RIGHT if is_refused else ""), None)


def unread_znode(problem: ZnodeProblem) -> Problem:
    """The same of a znode, from the reader's own kind of problem."""
    is_refused = problem.kind in (REFUSED, ACCESS_LIST)
    return unread(problem.path, f"{problem.sentence}.", is_refused=is_refused)


def _filled_later(node: NodeSettings, name: str) -> Problem:
    sentence = f"{name} of {node.name} is a placeholder in {node.source}, so its value is unknown."
    return unread(node.name, sentence, "Give the final file of the node, with every value filled in.")


def numbers(values: Iterable[object]) -> str:
    """Comma between, in order."""
    return ", ".join(map(str, sorted(values)))  # type: ignore[type-var]


def by_topic(rows: pl.DataFrame) -> Iterator[tuple[str, list[int], list[str]]]:
    """Topic, its partitions in the rows, and their errors."""
    grouped = rows.group_by("topic").agg(pl.col("partition").sort(), pl.col("error").drop_nulls())
    return grouped.sort("topic").iter_rows()


def few(partitions: list[int], at_most: int = 10) -> str:
    """The first ones, and how many more."""
    rest = len(partitions) - at_most
    return numbers(partitions[:at_most]) + (f" and {rest:,} more" if rest > 0 else "")


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _is_there(facts: PreflightFacts, name: str) -> bool:
    value = getattr(facts, name)
    return bool(value) if isinstance(value, list | tuple) else True


def _not_read(facts: PreflightFacts, name: str) -> Problem:
    why = facts.unread.get(name) or _WHY.get(name, "offramp did not read it")
    return unread(_SUBJECTS[name], f"{_capital(_SUBJECTS[name])} could not be read: {why}.", _REMEDIES.get(name, ""))


def _incomplete(facts: PreflightFacts, name: str) -> Iterator[Problem]:
    """Nodes that are known, and did not report what other nodes reported."""
    brokers = {each.node_id for each in facts.facts.brokers} | set(facts.control.brokers if facts.control else ())
    voters = {each for node in facts.facts.nodes for each in node.voters}
    rows: Sequence[NodeMeta | NodeSettings] = facts.metas if name == "metas" else facts.settings
    answered = {each.node_id for each in rows}
    by_name: dict[str, set[int | None]] = {"brokers": brokers, "controllers": {*voters}, "metas": brokers | voters}
    wanted = by_name.get(name, set())
    for node_id in sorted(each for each in wanted - answered if each is not None):
        why = facts.unread.get(f"node {node_id}") or _WHY[name]
        yield unread(f"node {node_id}", f"{_capital(_SUBJECTS[name])} could not be read from node {node_id}: {why}.")


def _first(problems: list[Problem]) -> list[Problem]:
    if len(problems) <= AT_MOST:
        return problems
    n_more = len(problems) - AT_MOST
    is_found = any(each.is_met is False for each in problems[AT_MOST:])
    rest = Problem(
        f"{n_more} more", f"{n_more:,} more problems of this kind are not listed.", is_met=False if is_found else None
    )
    return [*problems[:AT_MOST], rest]


_SUBJECTS = {
    "control": "ZooKeeper's control znodes",
    "partitions": "ZooKeeper's topics",
    "items": "ZooKeeper's settings, quotas, users and ACLs",
    "znodes": "ZooKeeper's queues and access lists",
    "kraft_items": "the metadata log",
    "differences": "the comparison of both stores",
    "brokers": "the brokers' settings",
    "controllers": "the controllers' settings",
    "metas": "the nodes' meta.properties",
}
_WHY = {
    "control": "the profile names no ZooKeeper, or it did not answer",
    "partitions": "the profile names no ZooKeeper, or it did not answer",
    "items": "the profile names no ZooKeeper, or it did not answer",
    "znodes": "the profile names no ZooKeeper, or it did not answer",
    "kraft_items": "offramp asked no controller for it",
    "differences": "both stores were not compared",
    "brokers": "no broker reported its settings (offramp's login needs the right DESCRIBE_CONFIGS on the cluster), "
    "and no file was given",
    "controllers": "no controller reported its settings, and no file was given",
    "metas": "no file was given",
}
_KEEP_THE_CLAIM = "Do not delete /controller: a KRaft controller may hold it. Run: offramp kraft status"
COLLECT_FILES = "Collect the nodes' server.properties and meta.properties in a folder, and give it as --settings-dir."
_REMEDIES = {
    "controllers": COLLECT_FILES,
    "metas": COLLECT_FILES,
    "differences": "During dual write, run: offramp kraft diff",
}
