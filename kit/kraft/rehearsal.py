"""Rehearse a saved cluster's move to KRaft on a throw-away lab (KIP-866).

    found = rehearse(load_metadata(Path("production.save")))
    found.findings                                      # polars: what aborts, waits, vanishes, diverges

No cluster is asked. The rehearsal runs on this machine, and leaves nothing behind.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeAlias, TypeVar
from urllib.parse import quote

import polars as pl

from kit.clients.cluster import ZookeeperConnection
from kit.errors import InputError, LabError, PartialRead, ReadError, UnsafePlan
from kit.kraft.analyze.diff import metadata_diff
from kit.kraft.both_stores import MetadataDiff, diff_stores
from kit.kraft.metadata_file import SavedMetadata
from kit.kraft.metadata_log import Controllers, read_log
from kit.kraft.metadata_log.secrets import is_secret_config
from kit.kraft.preflight import judge
from kit.kraft.read.metadata_znodes import MetadataZnodes, fetch_metadata_znodes
from kit.kraft.rehearsal_causes import likeness, nested_acls, subjects, suspects
from kit.kraft.rehearsal_lab import CONTROLLERS, Abort, RehearsalServers
from kit.lab.process import wait_until
from kit.lab.servers.migrating import connected
from kit.tables import schema as tables
from kit.tables.preflight import RehearsalFinding, RehearsalStep
from kit.text.fingerprints import Fingerprints

HIDES = (
    "the start of brokers, and their authorizers, policies and plug-ins",
    "access lists of znodes, TLS and SASL",
    "the encoder secret: encrypted passwords are replaced by random values, and copied unchanged",
    "records, disks, followers that must catch up, and the duration of rolling restarts",
    "clients",
)
"""The facts that a rehearsal can't show."""
COPY_S, WAIT_S = 120.0, 15.0
"""Seconds without an end of the copy, plus one for 1,000 znodes; seconds where it is known that there will be none."""
_POLL_S, _MOST_TOLD = 0.1, 100
_LEFT_OVER = "/migration"
_NULL = "/latest_producer_id_block"
"""Brokers make it without data, which is not the same as empty data: controllers abort on that."""
_UNKNOWN_BROKER = "found in metadata"
_WAITS = ((_UNKNOWN_BROKER, "Z01"), ("to register with KRaft", "A01"), ("No brokers are registered", "Z15"))
_MOST_ABORTS = 25
_BROKER = 4
_DUAL_WRITE, _COPIED = "to DUAL_WRITE state", "Completed migration of metadata from ZooKeeper to KRaft"

Progress: TypeAlias = Callable[[str], None]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Rehearsal:
    """``rows``: what it showed; ``steps``: what was done, and how long it took on this machine.

    ``lost``: ZooKeeper before the copy beside KRaft after it (``metadata_diff``); ``diffs``: both stores, by moment.
    """

    saved: SavedMetadata
    rows: Sequence[RehearsalFinding]
    steps: Sequence[RehearsalStep]
    lost: pl.DataFrame | None = field(default=None, repr=False)
    diffs: dict[str, MetadataDiff] = field(default_factory=dict, repr=False)

    @cached_property
    def findings(self) -> pl.DataFrame:
        """``tables.REHEARSAL_FINDINGS``."""
        return pl.DataFrame(tables.REHEARSAL_FINDINGS.from_rows(self.rows))

    @cached_property
    def times(self) -> pl.DataFrame:
        """``tables.REHEARSAL_STEPS``."""
        return pl.DataFrame(tables.REHEARSAL_STEPS.from_rows(self.steps))

    def verify(self) -> None:
        """Judge the rehearsal.

        Raises:
            UnsafePlan: the move would fail or lose something.
            PartialRead: whether it would is not known.
        """
        name = self.saved.cluster_name
        kinds = [each.kind for each in self.rows]
        bad = {kind: kinds.count(kind) for kind in ("aborts", "waits", "vanishes", "diverges") if kind in kinds}
        if bad:
            counts = ", ".join(f"{n} {kind}" for kind, n in bad.items())
            raise UnsafePlan(
                f"the rehearsal of cluster {name!r} failed: {counts}. Repair the causes, save the cluster again, and "
                "repeat the rehearsal."
            )
        if "unknown" in kinds:
            raise PartialRead(
                f"the rehearsal of cluster {name!r}: {kinds.count('unknown')} values could not be compared"
            )


def rehearse(saved: SavedMetadata, controllers: int = CONTROLLERS, progress: Progress = lambda _: None) -> Rehearsal:
    """Load the file into a ZooKeeper of its own, let real controllers copy it, compare, fail over, throw all away.

    Brokers are ghosts: registered, without data. A znode on which the copy aborts is taken out; then it is tried again.

    Raises:
        InputError: the file holds no brokers or no cluster id.
        LabError: a process of the lab did not start, or the disk is full.
    """
    if not saved.brokers:
        raise InputError(
            f"cluster {saved.cluster_name!r}: no broker was in /brokers/ids when the cluster was saved. Save the "
            "cluster again while its brokers run"
        )
    servers = RehearsalServers(saved.chroot, len(saved.znodes), controllers)
    try:
        return _Play(saved, servers, progress).play()
    finally:
        progress("ending the lab")
        servers.close()


class _Play:
    """One rehearsal while it continues."""

    def __init__(self, saved: SavedMetadata, servers: RehearsalServers, progress: Progress) -> None:
        self.saved, self.servers, self.progress = saved, servers, progress
        self.rows, self.steps = list[RehearsalFinding](), list[RehearsalStep]()
        self.diffs: dict[str, MetadataDiff] = {}
        self.hide = Fingerprints()
        self.preflight = judge(saved.cluster_name, saved.facts).rows
        self.patience_s = COPY_S + len(saved.znodes) / 1000

    def play(self) -> Rehearsal:
        self._step("load", "the znodes are written to the lab's ZooKeeper", self._load)
        self._step("controllers", "controllers start", self.servers.start_controllers)
        lost = None
        with connected(self.servers.zookeeper_connect) as zookeeper:
            before = self._copy(zookeeper)
            if before is not None:
                lost = self._step("compare", "the copied values are compared", lambda: self._compare(before))
                if not self._is_open("Z02"):  # Else nothing was copied.
                    self._diff(zookeeper, "after the copy")
                    self._step("fail-over", "a controller is killed, another takes over", self._fail_over)
                    self._diff(zookeeper, "after the fail-over")
        return Rehearsal(self.saved, self.rows, self.steps, lost, self.diffs)

    def _step(self, name: str, sentence: str, do: Callable[[], Result]) -> Result:
        self.progress(sentence)
        started = time.monotonic()
        result = do()
        self.steps.append(RehearsalStep(name, round(time.monotonic() - started, 3), sentence))
        return result

    def _find(self, kind: str, check_id: str | None, znode: str | None, sentence: str) -> None:
        self.rows.append(RehearsalFinding(kind, check_id, znode, sentence))

    def _load(self) -> None:
        servers, saved = self.servers, self.saved
        servers.start_zookeeper()
        servers.write(persistent(saved))
        control = saved.facts.control
        known = control.controller_id if control and control.controller_id in saved.brokers else saved.brokers[0]
        is_claimed = control is not None and control.is_controller_persistent
        servers.add_ghosts(saved.brokers, None if is_claimed else known, saved.cluster_id)
        unread = pl.DataFrame(saved.znodes.select(["path", "error"])).filter(pl.col("error").is_not_null())
        for path, error in unread.iter_rows():
            self._find("unknown", None, path, f"{path} was not saved: {error}.")

    def _copy(self, zookeeper: ZookeeperConnection) -> MetadataZnodes | None:
        """Return ZooKeeper's content before the copy that came to its end; None: none did."""
        taken_out = set[str]()
        self._step("ghosts", "brokers register", self.servers.register_ghosts)
        for attempt in range(1, _MOST_ABORTS + 1):
            before = _read(zookeeper, self.hide)
            end = self._step("copy", f"the copy, attempt {attempt}", self._await_copy)
            if end is True:
                self._tell_copied()
                return before
            znode = self._explain(end, taken_out) if isinstance(end, Abort) else self._explain_waiting(attempt)
            if znode is None:
                return None
            self._step("restart", "controllers start again", partial(self._mend, znode))
            taken_out.add(znode)
        return None

    def _mend(self, znode: str) -> None:
        if znode != _LEFT_OVER:
            self.progress(f"{znode} is removed from the lab")
            self.servers.delete(znode)
        self.servers.restart()

    def _await_copy(self) -> Abort | bool:
        """True: dual write is reached; False: the controllers wait."""
        begun = time.monotonic()
        while (waited_s := time.monotonic() - begun) < self.patience_s:
            if self.servers.log_line(_DUAL_WRITE):
                return True
            if abort := self.servers.abort():
                return abort
            if waited_s > WAIT_S and (stuck := self.servers.stuck()):
                return stuck
            if waited_s > WAIT_S and (self.servers.log_line(_UNKNOWN_BROKER) or self._is_open("Z02")):
                return False
            time.sleep(_POLL_S)
        return False

    def _tell_copied(self) -> None:
        line = self.servers.log_line(_COPIED) or ""
        if found := re.search(r"(\d+) records were generated in (\d+) ms", line):
            self.steps.append(
                RehearsalStep("copied", int(found[2]) / 1000, f"{found[1]} records, by the controller's log")
            )

    def _explain(self, abort: Abort, taken_out: set[str]) -> str | None:
        """Note why there was no copy; → its znode, if the preflight knows it."""
        named = [(row, znode) for row, znode in suspects(abort, self.saved, self.preflight) if znode not in taken_out]
        if not named:
            self._find(
                abort.kind,
                None,
                None,
                f"{abort.stage.value}, for a reason that the preflight does not name: {abort.words}",
            )
            return None
        row, znode = max(named, key=lambda each: likeness(abort.words, *each))
        alike = sum(likeness(abort.words, *each) == likeness(abort.words, row, znode) for each in named)
        others = f" (or another of {alike} that the preflight names)" if alike > 1 else ""
        self._find(abort.kind, row.check_id, znode, f"{abort.stage.value} because of {znode}{others}: {abort.words}")
        return znode

    def _explain_waiting(self, attempt: int) -> str | None:
        """Note that nothing continues; a left-over ``/migration`` shows what it does when the leader's epoch rises."""
        line = self.servers.waiting_for()
        if self._is_open("Z02") and attempt == 1:
            self._find(
                "waits",
                "Z02",
                _LEFT_OVER,
                "/migration is left over from another attempt, so the controllers wait and copy nothing.",
            )
            return _LEFT_OVER
        check_id = next((each for part, each in _WAITS if part in line), None)
        self._find(
            "waits",
            check_id,
            None,
            f"The controllers would wait forever: {line or 'their logs do not name the reason'}",
        )
        return None

    def _is_open(self, check_id: str) -> bool:
        return any(each.check_id == check_id and each.is_met is False for each in self.preflight)

    def _compare(self, before: MetadataZnodes) -> pl.DataFrame:
        """Compare ZooKeeper's content before the copy with KRaft's now; only the copy has changed it since."""
        log = read_log(Controllers(self.servers.controller_addresses), self.hide)
        nothing = pl.DataFrame(tables.METADATA_REMOVALS.from_rows(()))
        pending = pl.DataFrame({"topic": before.control.pending_deletions}, schema={"topic": pl.String})
        lost: pl.DataFrame = metadata_diff(
            pl.DataFrame(before.partitions),
            pl.DataFrame(before.items),
            log.partitions,
            log.items,
            nothing,
            pending,
            log.image.offset,
        )
        for path in nested_acls(self.saved):
            self._find("vanishes", "Z10", path, f"{path} is not copied: the copy reads only one level of ACL znodes.")
        is_missing = pl.col("kraft_value").is_null()
        for kind, verdict, rows in (
            ("vanishes", "is in ZooKeeper, but not in KRaft", lost.filter(pl.col("verdict") == "diverged", is_missing)),
            (
                "diverges",
                "has another value in KRaft than in ZooKeeper",
                lost.filter(pl.col("verdict") == "diverged", ~is_missing),
            ),
            ("unknown", "can't be compared", lost.filter(pl.col("verdict") == "unknown")),
        ):
            self._find_values(kind, verdict, rows)
        return lost

    def _find_values(self, kind: str, verdict: str, rows: pl.DataFrame) -> None:
        """A row per entity; the first hundred."""
        entities = (
            rows.group_by("kind", "entity").agg(pl.col("item").sort().str.join(", "), pl.len()).sort("kind", "entity")
        )
        for what, entity, items, n in entities.head(_MOST_TOLD).iter_rows():
            znode = _znode(what, entity)
            subject = f"{what} {entity} ({items})" if n < 10 else f"{what} {entity} ({n:,} values)"
            self._find(kind, self._check_of(entity, znode), znode, f"{subject} {verdict}.")
        if (more := len(entities) - _MOST_TOLD) > 0:
            self._find(kind, None, None, f"{more:,} more {verdict}.")

    def _check_of(self, entity: str, znode: str | None) -> str | None:
        """The check whose sentence names it; when ``/migration`` is left over, that one takes all."""
        if self._is_open("Z02"):
            return "Z02"
        names = {f"ACL of {entity}", *(subjects(znode) if znode else ())}
        rows = (each for each in self.preflight if each.is_met is False)
        return next((each.check_id for each in rows if each.subject in names), None)

    def _diff(self, zookeeper: ZookeeperConnection, moment: str) -> None:
        """`offramp kraft diff` of the lab."""
        controllers = Controllers(self.servers.controller_addresses)
        compare = partial(diff_stores, "the lab", zookeeper, controllers)
        try:
            found = self._step("diff", f"both stores are compared {moment}", compare)
        except (InputError, ReadError) as error:
            self._find("unknown", None, None, f"The stores could not be compared {moment}: {error}")
            return
        self.diffs[moment] = found
        self._find_values("diverges", f"differs between the stores {moment}", found.of("diverged", "in_flight"))

    def _fail_over(self) -> None:
        self.servers.kill_active()
        try:
            wait_until(lambda: bool(self.servers.log_line(_DUAL_WRITE)), "dual write", self.patience_s)
        except LabError as error:
            self._find("waits", None, None, f"After a controller was killed: {error} {self.servers.waiting_for()}")


def _read(zookeeper: ZookeeperConnection, hide: Fingerprints) -> MetadataZnodes:
    return fetch_metadata_znodes(zookeeper, lambda key: is_secret_config(_BROKER, key), hide)


def persistent(saved: SavedMetadata) -> Iterator[tuple[str, bytes]]:
    """Path and data of what a lab can be given, each after the znode above it; ghosts make all others themselves."""
    rows = saved.znodes.select(["path", "data", "ephemeral_owner"]).to_pydict()
    yield from (
        (path, data or b"")
        for path, data, owner in sorted(
            zip(rows["path"], rows["data"], rows["ephemeral_owner"]), key=lambda row: row[0]
        )
        if owner is None and not path.startswith("/brokers/ids/") and (data or path != _NULL)
    )


def _znode(kind: str, entity: str) -> str | None:
    """The znode of what a row of a diff is about, where one path shows it."""
    tops = {
        "topic": "/brokers/topics/",
        "partition": "/brokers/topics/",
        "config": "/config/",
        "quota": "/config/",
        "token": "/delegation_token/tokens/",
    }
    if kind == "scram":
        return f"/config/users/{quote(entity)}"
    return f"{tops[kind]}{entity}" if kind in tops and entity else None
