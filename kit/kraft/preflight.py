"""Is a cluster ready to move from ZooKeeper to KRaft (KIP-866)? Everything is read, nothing is written to the cluster.

with connect("production") as cluster:
    found = kraft_preflight(cluster, read_settings_folder("nodes/"))
    found.findings                                  # polars, one row per check at least
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import polars as pl
import pyarrow as pa

from kit.clients.cluster import Cluster, kafka_settings
from kit.clients.nodes import fetch_log_dirs, fetch_node_settings
from kit.errors import InputError, NothingToDo, OfframpError, PartialRead, UnsafePlan
from kit.kraft.analyze.node_files import SettingsChange, changed_lines, render, settings_change
from kit.kraft.analyze.node_lint import lint
from kit.kraft.analyze.node_settings import (
    CONTROLLER,
    FINAL_CONTROLLER,
    KRAFT,
    MIGRATION,
    MODES,
    VOTERS,
    ZOOKEEPER,
    NodeSettings,
    entries,
    of_described,
)
from kit.kraft.analyze.phase import MIGRATION as MIGRATION_STATE, POST_MIGRATION, Facts, why_no_zookeeper
from kit.kraft.analyze.preflight import blocking, preflight, unknown
from kit.kraft.analyze.preflight_checks import PreflightFacts
from kit.kraft.analyze.preflight_control import content_counts
from kit.kraft.both_stores import kraft_diff
from kit.kraft.metadata_file import SavedMetadata
from kit.kraft.metadata_log import read_log
from kit.kraft.metadata_log.secrets import is_secret_config
from kit.kraft.read.metadata_znodes import fetch_metadata_znodes
from kit.kraft.read.preflight_znodes import fetch_preflight_znodes
from kit.kraft.read.znode_tree import fetch_znodes
from kit.kraft.settings_files import SettingsFolder, lint_text
from kit.kraft.status import kraft_status, metadata_controllers
from kit.profile.identity.login import system_user
from kit.profile.release import version
from kit.tables import schema as tables
from kit.tables.conditions import SEVERITIES, Condition
from kit.tables.kraft import NodeFact
from kit.tables.preflight import NodeSettingChange
from kit.text.numbers import partition_in
from kit.text.stand_ins import stand_in
from kit.text.visible import visible

SAVED = (
    "/admin", "/brokers", "/cluster", "/config", "/controller", "/controller_epoch", "/delegation_token", "/feature",
    "/isr_change_notification", "/kafka-acl", "/kafka-acl-changes", "/kafka-acl-extended",
    "/kafka-acl-extended-changes", "/latest_producer_id_block", "/log_dir_event_notification", "/migration",
)  # fmt: skip
"""Kafka's znodes but ``/consumers``: what controllers read, and what a preflight examines."""
_BROKER = 4


@dataclass(frozen=True)
class Preflight:
    """``rows``: what was found, and what is met; ``settings``: of each node; ``voters``: the controllers, if known.

    ``content``: how much of each kind ZooKeeper holds, as ``content_counts``; ``notes``: what a file can't determine.
    ``is_final``: the migration was ended.
    """

    cluster_name: str
    rows: Sequence[Condition]
    settings: Sequence[NodeSettings] = field(repr=False)
    voters: str | None = None
    content: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    is_final: bool = False

    @cached_property
    def findings(self) -> pl.DataFrame:
        """``tables.PREFLIGHT_FINDINGS``."""
        return pl.DataFrame(tables.PREFLIGHT_FINDINGS.from_rows(self.rows))

    @property
    def baseline(self) -> pl.DataFrame:
        """Return what will be copied: columns ``what`` and ``count``."""
        return pl.DataFrame({"what": list(self.content), "count": list(self.content.values())})

    @property
    def open_findings(self) -> pl.DataFrame:
        """``open_rows``, with the ``answer``: not known, or the severity of what is not met."""
        rows = pl.DataFrame(tables.PREFLIGHT_FINDINGS.from_rows(self.open_rows))
        is_unknown = pl.col("is_met").is_null()
        return rows.with_columns(answer=pl.when(is_unknown).then(pl.lit("not known")).otherwise(pl.col("severity")))

    @property
    def open_rows(self) -> list[Condition]:
        """Return the checks that are not met, the worst first, then the checks that are not known."""
        rows = [each for each in self.rows if not each.is_met]
        return sorted(rows, key=lambda each: (each.is_met is None, SEVERITIES.index(each.severity), each.check_id))

    @property
    def summary(self) -> str:
        n_met = sum(each.is_met is True for each in self.rows)
        return f"Cluster {self.cluster_name}: {n_met} of {len(self.rows)} answers are met."

    def verify(self) -> str:
        """The summary.

        Raises:
            NothingToDo: the migration was ended.
            UnsafePlan: a check forbids to begin.
            PartialRead: one that could is not known.
        """
        if self.is_final:
            raise NothingToDo(
                f"cluster {self.cluster_name!r} has finalised its migration: the controllers hold the only copy of "
                "the metadata, so there is no move to prepare"
            )
        rows = list(self.rows)
        bad, dark = (sorted({each.check_id for each in some}) for some in (blocking(rows), unknown(rows)))
        if bad:
            more = f"; unknown: {', '.join(dark)}" if dark else ""
            raise UnsafePlan(
                f"cluster {self.cluster_name!r} is not ready to move to KRaft: {', '.join(bad)}{more}. Follow each "
                "remedy, and run the preflight again."
            )
        if dark:
            raise PartialRead(
                f"cluster {self.cluster_name!r}: the answers of some checks are unknown: {', '.join(dark)}"
            )
        return self.summary

    def files(self) -> dict[str, str]:
        """Ready-made settings by file name: of each broker for every mode, of controllers while and after it."""
        files = {name: render(change, node) for name, change, node in self._changes()}
        return {name: _to_do(text, name) + text for name, text in files.items()}

    @cached_property
    def unfinished(self) -> list[Condition]:
        """Return the problems of the ready-made files: what they lack, or have from the node's own file."""
        return [each for name, text in self.files().items() for each in lint_text(text, name)]

    @cached_property
    def setting_changes(self) -> pl.DataFrame:
        """``tables.NODE_SETTING_CHANGES``: what those files set and remove, beside what each node has now."""
        rows = [
            NodeSettingChange(name, node.role, node.node_id, change.mode, *line)
            for name, change, node in self._changes()
            for line in changed_lines(change, node)
        ]
        return pl.DataFrame(tables.NODE_SETTING_CHANGES.from_rows(rows))

    def _changes(self) -> Iterator[tuple[str, SettingsChange, NodeSettings]]:
        brokers = [each for each in self.settings if each.role == "broker" and each.node_id is not None]
        for node in brokers:
            for mode in (MIGRATION, KRAFT, ZOOKEEPER):
                yield f"broker-{node.node_id}.{mode}.properties", settings_change(mode, node, self.voters), node
        controllers = [each for each in self.settings if each.role == CONTROLLER]
        for node in controllers or brokers[:1]:
            for mode, word in ((CONTROLLER, "migration"), (FINAL_CONTROLLER, "finalised")):
                number = f"-{node.node_id}" if controllers else ""
                yield f"controller{number}.{word}.properties", settings_change(mode, node, self.voters), node

    def write_files(self, folder: Path) -> list[Path]:
        """``files`` into a folder, which is made; raises InputError where one is there already, or can't be written."""
        written = []
        for name, text in self.files().items():
            file = folder / name
            try:
                folder.mkdir(parents=True, exist_ok=True)
                with file.open("x", encoding="utf-8") as out:
                    out.write(text)
            except OSError as error:
                raise InputError(f"{file} was not written: {error.strerror}; name a new folder") from error
            written.append(file)
        return written


def kraft_preflight(cluster: Cluster, folder: SettingsFolder | None = None) -> Preflight:
    """Run every check. An unreadable value makes its checks' ``is_met`` null.

    Raises:
        InputError: the profile names no ZooKeeper.
        ConnectError: ZooKeeper stopped answering.
    """
    return judge(cluster.name, read_preflight_facts(cluster), folder)


def judge(cluster_name: str, facts: PreflightFacts, folder: SettingsFolder | None = None) -> Preflight:
    """Run every check on what was read, now or when a file was saved.

    If a node has a file, the file goes before the node's answer; what the file lacks is as the node answered.
    """
    folder = folder or SettingsFolder()
    files = _one_per_node(folder.settings)
    reported = {(each.role, each.node_id): each for each in facts.settings}
    merged = [each.over(reported[node]) if (node := (each.role, each.node_id)) in reported else each for each in files]
    of_files = {(each.role, each.node_id) for each in files}
    others = [each for node, each in reported.items() if node not in of_files]
    settings = [*files, *others]
    found = replace(facts, settings=[*merged, *others], metas=folder.metas)
    voters = next((each.given[VOTERS] for each in (*settings, *folder.settings) if VOTERS in each.given), None)
    rows = [*preflight(found), *lint(folder.settings)]
    assert found.items is not None
    assert found.partitions is not None
    content = content_counts(found.items, found.partitions)
    is_final = found.facts.zk_state == POST_MIGRATION
    return Preflight(cluster_name, rows, settings, voters, content, is_final=is_final)


def preflight_of(saved: SavedMetadata, folder: SettingsFolder | None = None) -> Preflight:
    """Return the result of ``kraft_preflight`` at the time when the file was saved."""
    age_h = (datetime.now(UTC) - saved.taken_at).total_seconds() / 3600
    age = f"{age_h:.1f} h ago" if age_h >= 0 else "which is in the future by this machine's clock; correct the clock"
    note = (
        f"As of {saved.taken_at:%F %T} UTC, {age}. A saved file does not show later changes, or whether the nodes "
        "answer now. Run the preflight on the live cluster before you begin."
    )
    return replace(judge(saved.cluster_name, saved.facts, folder), notes=[note])


def read_preflight_facts(cluster: Cluster) -> PreflightFacts:
    """Everything that the checks examine, but the nodes' files.

    Raises:
        InputError: the profile names no ZooKeeper.
        ConnectError: ZooKeeper stopped answering.
    """
    facts = kraft_status(cluster).read
    if cluster.zookeeper is None:
        raise InputError(f"cluster {cluster.name!r}: {_no_zookeeper(facts)}")
    znodes = fetch_metadata_znodes(cluster.zookeeper, lambda key: is_secret_config(_BROKER, key))
    partitions, items = pl.DataFrame(znodes.partitions), pl.DataFrame(znodes.items)
    described, unread = _described(cluster, facts.nodes)
    return PreflightFacts(
        facts=replace(facts, control=znodes.control),
        partitions=partitions,
        items=items,
        znodes=fetch_preflight_znodes(cluster.zookeeper),
        kraft_items=_log_items(cluster) if facts.has_log else None,
        differences=_differences(cluster, facts.zk_state, unread),
        settings=described,
        log_dirs=fetch_log_dirs(kafka_settings(cluster.profile), _brokers(facts.nodes)),
        unread=unread | ({"kraft_items": facts.log_error} if facts.log_error else {}),
    )


def _no_zookeeper(facts: Facts) -> str:
    why = why_no_zookeeper(facts)
    if why is not None:
        return f"{why}, so there is nothing to move"
    if KRAFT in {each.mode for each in facts.brokers}:
        return (
            "the profile names no ZooKeeper, and its brokers run in KRaft mode. If a move is in progress, add "
            "zookeeper_connect to the profile. To see whether a move has ended, name the controllers in the profile: "
            '[clusters.NAME.kraft] controllers = "host:port,…"'
        )
    return "the profile names no ZooKeeper, which the preflight reads: add zookeeper_connect"


def save_metadata(cluster: Cluster, path: Path) -> SavedMetadata:
    """Read everything that a preflight and a rehearsal need into one file; secrets become random text of their form.

    So does all that other applications keep below ``/config`` and Kafka's other znodes.

    Raises:
        InputError: the profile names no ZooKeeper; the file is there already or can't be written.
        ConnectError: ZooKeeper stopped answering.
    """
    facts = read_preflight_facts(cluster)
    assert cluster.zookeeper is not None
    znodes = [fetch_znodes(cluster.zookeeper, top, stand_in, strangers=stand_in) for top in SAVED]
    saved = SavedMetadata(
        cluster_name=cluster.name,
        cluster_id=cluster.cluster_id,
        chroot=cluster.zookeeper.chroot,
        taken_at=datetime.now(UTC),
        taken_by=system_user(),
        release=version(),
        znodes=pa.concat_tables(znodes),
        facts=facts,
    )
    saved.write(path)
    return saved


def _one_per_node(files: Iterable[NodeSettings]) -> list[NodeSettings]:
    """Return one file per node. If a node has a file for each mode, this is the one of the earliest mode: all other
    files are only linted.
    """
    first = dict[tuple[str, int | str], NodeSettings]()
    for each in sorted(files, key=lambda it: MODES.index(it.mode)):
        first.setdefault((each.role, each.source if each.node_id is None else each.node_id), each)
    return list(first.values())


def _to_do(text: str, name: str) -> str:
    """Comments that report what is wrong with a ready-made file."""
    wrong = [f"before a start, {each.check_id}: {each.sentence} {each.remedy}" for each in lint_text(text, name)]
    return "".join(f"# {visible(each)}\n" for each in wrong)


def _log_items(cluster: Cluster) -> pl.DataFrame:
    return read_log(metadata_controllers(cluster.profile, cluster.cluster_id)).items


def _differences(cluster: Cluster, zk_state: str | None, unread: dict[str, str]) -> pl.DataFrame | None:
    """Return the rows of a diff while dual write continues; else None, or why there is none in ``unread``."""
    if zk_state != MIGRATION_STATE:
        return None
    try:
        return kraft_diff(cluster).differences
    except OfframpError as error:
        unread["differences"] = str(error)
        return None


def _brokers(nodes: Iterable[NodeFact]) -> list[tuple[str, int]]:
    return [(each.address, each.node_id) for each in nodes if each.role == "broker" and each.node_id is not None]


def _described(cluster: Cluster, nodes: Iterable[NodeFact]) -> tuple[list[NodeSettings], dict[str, str]]:
    """Settings that nodes reported, and why other nodes did not, by ``node <id>``.

    A controller that does not lead does not report its id: the voters of those that were asked first have it.
    """
    reported, unread = list[NodeSettings](), dict[str, str]()
    for node in sorted(nodes, key=lambda each: each.node_id is None):
        node_id = _id_of(node.address, reported) if node.node_id is None else node.node_id
        if node_id is None or node.mode is None:
            continue
        try:
            rows = fetch_node_settings(kafka_settings(cluster.profile), node.address, node_id)
            reported.append(of_described(node_id, rows))
        except OfframpError as error:
            unread[f"node {node_id}"] = str(error)
    return reported, unread


def _id_of(address: str, reported: Iterable[NodeSettings]) -> int | None:
    """The id that voters have for an address."""
    for voter in (each for node in reported for each in entries(node.get(VOTERS))):
        number, _, place = voter.partition("@")
        if place == address:
            return partition_in(number)
    return None
