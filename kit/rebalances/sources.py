"""The story of groups' rebalances, from logs of their consumers and brokers, from the coordinators' topic, or both."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from kit.errors import InputError, NotFound, PartialRead, ReadError
from kit.profile import Profile
from kit.rebalances.analyze.attempts import folded, member_rebalances, rebalances
from kit.rebalances.analyze.epochs import epoch_rebalances
from kit.rebalances.analyze.findings import log_findings
from kit.rebalances.analyze.logs_vs_topic import source_differences
from kit.rebalances.analyze.remarks import log_remarks
from kit.rebalances.analyze.spans import epoch_spans, generation_spans, member_spans
from kit.rebalances.analyze.stored import topic_rebalances
from kit.rebalances.analyze.story import sentences
from kit.rebalances.logs import ClientLogs, read_client_logs, verify_logs
from kit.rebalances.logs.local import files_here, read_logs_here
from kit.spark.needed import Spark, is_started, started
from kit.tables import schema as tables
from kit.tables.polars import as_polars, frame as frame_of
from kit.terminal.moment import moment as moment
from kit.text.quantity import quantity
from kit.text.visible import visible
from kit.text.withholding import without_secrets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kit.rebalances.offsets_topic import OffsetsTopic  # loads both Kafka clients, which logs alone do not need

MAX_SENTENCES = 400
"""A story longer than this is cut in the middle of a ticket anyway."""


@dataclass(frozen=True)
class Rebalances:
    """``members`` (``tables.MEMBER_REBALANCES``) are of the logs; ``generations`` and ``stored``
    (``tables.REBALANCES``) of the logs and of the topic; ``remarks`` (``tables.LOG_REMARKS``) of the logs;
    ``findings`` (``tables.LOG_FINDINGS``) of both, their differences among them; ``spans``
    (``analyze.rebalance_spans``) for a timeline; all of it was made from ``events``, ``records`` and ``epochs``
    (``tables.GROUP_GENERATIONS`` and ``GROUP_EPOCHS``).
    """

    members: pl.DataFrame
    generations: pl.DataFrame
    stored: pl.DataFrame
    remarks: pl.DataFrame
    findings: pl.DataFrame
    spans: pl.DataFrame
    events: pl.DataFrame
    records: pl.DataFrame
    epochs: pl.DataFrame
    logs: ClientLogs[Any] | None
    topic: OffsetsTopic | None

    def describe(self) -> list[str]:
        """Sentences to paste into a ticket: each consumer's way, each generation, other events, the findings."""
        by_topic = self.stored if self.generations.is_empty() else self.stored.head(0)
        raw = sentences(self.members, pl.concat([self.generations, by_topic]), self.remarks, self.findings)
        escaped = list(map(visible, raw))
        left_out = len(escaped) - MAX_SENTENCES
        if left_out <= 0:
            return escaped
        n_findings = min(len(self.findings), MAX_SENTENCES // 2)
        rest = escaped[: MAX_SENTENCES - n_findings]
        return [
            *rest,
            (
                f"… {quantity(left_out, 'more sentence is', 'more sentences are')} left out: name a group, or a "
                f"shorter time."
            ),
            *escaped[-n_findings:],
        ]

    told = describe  # its name before 1.0

    def unknown_wordings(self) -> pl.DataFrame:
        """Lines that resemble coordination and are not understood: wording, n_lines, an example; most first."""
        if self.logs is None:
            return pl.DataFrame(schema={"wording": pl.String, "n_lines": pl.Int64, "example": pl.String})
        lines = as_polars(self.logs.unknown_lines.limit(10_000))
        counted = lines.group_by("wording").agg(n_lines=pl.len().cast(pl.Int64), example=pl.col("text").first())
        return _withheld(counted, "wording", "example").sort("n_lines", "wording", descending=[True, False])

    def verify(self) -> str:
        """Return what was read, in sentences.

        Raises:
            PartialRead: something could not be read, or not be understood: which, and why.
        """
        passed, wrong = [], []
        for verify in (self._verify_logs, self._verify_topic):
            try:
                passed.append(verify())
            except PartialRead as error:
                wrong.append(str(error))
        if wrong:
            raise PartialRead("\n".join(wrong))
        return "\n".join(filter(None, passed))

    def _verify_logs(self) -> str:
        return "" if self.logs is None else verify_logs(self.logs)

    def _verify_topic(self) -> str:
        if self.topic is None:
            return ""
        from kit.rebalances.offsets_topic import verify_offsets_topic

        return verify_offsets_topic(self.topic)


def read_rebalances(
    spark: Spark | None,
    logs: str | Iterable[str] = (),
    profile: Profile | None = None,
    group_id: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    zone: str | None = None,
    layout: str | None = None,
) -> Rebalances:
    """Read logs, the topic of ``profile``'s cluster, or both, and describe what happened.

    Args:
        spark: a session; or what starts one, which is done only for what is not small and on this machine: see
            :func:`reads_here` and ``read_offsets_topic``. None: such things alone can be read.
        logs: files, folders or patterns, gz too; none: the topic alone.
        profile: whose ``__consumer_offsets`` to read; None: the logs alone.
        group_id: this group alone.
        since, until: rebalances that ended since, and began before; with a time zone.
        zone, layout: see ``kit.rebalances.logs.read_client_logs``.

    Raises:
        InputError: neither logs nor a profile; times to choose by, and logs that don't report their zone; or as of
            ``read_client_logs`` and ``read_offsets_topic``.
        NotFound: no such file; or neither source knows the group.
        ReadError: Spark gave fewer events than the account of the files has; or as of those two.
        ConnectError, AuthenticationFailed, WrongCluster: as of those two.
    """
    paths = [logs] if isinstance(logs, str) else list(logs)
    if not paths and profile is None:
        raise InputError("name what to read: log files, or a cluster in offramp.toml whose __consumer_offsets is read")
    read_logs = _read_logs(spark, paths, zone, layout) if paths else None
    pattern = None if group_id is None else re.escape(group_id)
    # A rebalance that began before ``until`` may be stored after it: the logs' ones would appear as if they never were.
    end = None if paths else until
    topic = None if profile is None else _read_topic(spark or _no_spark, profile, pattern, since, end)
    events = _events_of(read_logs)
    records = _collected(tables.GROUP_GENERATIONS, topic and topic.generations)
    # Each table reads the topic once more; the account knows whether there is anything of this one.
    has_epochs = topic is not None and topic.partitions["n_epochs"].sum() > 0
    epochs = _collected(tables.GROUP_EPOCHS, topic.epochs if topic and has_epochs else None)
    chosen = _Chosen(group_id, since, until)
    folded_logs = folded(events)
    members, generations = chosen.of(member_rebalances(folded_logs)), chosen.of(rebalances(folded_logs))
    stored = chosen.of(pl.concat([topic_rebalances(records), epoch_rebalances(epochs)]))
    remarks = chosen.at(log_remarks(folded_logs))
    if group_id is not None and all(rows.is_empty() for rows in (members, generations, stored, remarks)):
        raise NotFound(f"neither source names a group {group_id!r}: {_known(events, topic)}. Name another --group")
    differences = source_differences(events, records, epochs) if paths and topic is not None else None
    findings = [log_findings(folded_logs), *([] if differences is None else [differences])]
    as_printed = pl.from_epoch("local_at", time_unit="us").dt.replace_time_zone("UTC")
    last = events.select(pl.coalesce("observed_at", as_printed).max()).item()
    by_topic = pl.concat([generation_spans(records, until), epoch_spans(epochs, until)])
    spans = member_spans(members, generations, until or last) if paths else by_topic
    chosen_findings = chosen.at(pl.concat(findings))
    frames = (members, generations, stored, remarks, chosen_findings, spans, events, records, epochs)
    return Rebalances(*frames, read_logs, topic)


def _withheld(rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Text of a log without what resembles a secret: the story is pasted into tickets."""
    for name in columns:
        texts = rows[name].drop_nulls().unique()
        rows = rows.with_columns(pl.col(name).replace({text: without_secrets(text) for text in texts}))
    return rows


def reads_here(logs: str | Iterable[str], profile: Profile | None = None) -> bool:
    """Return whether :func:`read_rebalances` needs no Spark: small logs of this machine, and no topic.

    Raises:
        NotFound: no such file.
    """
    paths = [logs] if isinstance(logs, str) else list(logs)
    return bool(paths) and profile is None and files_here(paths) is not None


@dataclass(frozen=True)
class _Chosen:
    """The group and the time that were asked for; what has no time is kept."""

    group_id: str | None
    since: datetime | None
    until: datetime | None

    def of(self, frame: pl.DataFrame) -> pl.DataFrame:
        ended, began = pl.coalesce("ended_at", "started_at"), pl.coalesce("started_at", "ended_at")
        return self._within(frame, ended, began)

    def at(self, findings: pl.DataFrame) -> pl.DataFrame:
        return self._within(findings, pl.col("at"), pl.col("at"))

    def _within(self, frame: pl.DataFrame, ended: pl.Expr, began: pl.Expr) -> pl.DataFrame:
        if self.group_id is not None:
            frame = frame.filter(group_id=self.group_id)
        if (self.since or self.until) and frame.select((began.is_not_null() & ~pl.col("is_utc")).any()).item():
            raise InputError(
                "some logs do not name their time zone, so nothing in them can be chosen by time: give their zone "
                "(--zone; Europe/Paris, +05:30, or UTC to take times as they are printed)"
            )
        if self.since is not None:
            frame = frame.filter((ended >= self.since).fill_null(True))
        return frame if self.until is None else frame.filter((began < self.until).fill_null(True))


def _collected(table: tables.Table, frame: Any) -> pl.DataFrame:
    return frame_of(table.columns_of(())) if frame is None else as_polars(frame)


def _events_of(logs: ClientLogs[Any] | None) -> pl.DataFrame:
    """Every event of the logs. Raises ReadError: Spark gave fewer than the account of the files has."""
    events = _withheld(_collected(tables.LOG_EVENTS, logs and logs.events), "reason")
    if logs is not None and len(events) != (n_logged := logs.files["n_events"].sum()):
        came = f"the logs hold {quantity(n_logged, 'event')}, but Spark returned {len(events):,}"
        raise ReadError(f"{came}: no result is shown; read fewer files at a time, and report this error")
    return events


def _read_logs(spark: Spark | None, paths: list[str], zone: str | None, layout: str | None) -> ClientLogs[Any]:
    sizes = None if is_started(spark) else files_here(paths)
    if sizes is not None:
        return read_logs_here(sizes, zone, layout)
    return read_client_logs(started(spark or _no_spark), paths, zone, layout)


def _read_topic(
    spark: Spark, profile: Profile, pattern: str | None, since: datetime | None, until: datetime | None
) -> OffsetsTopic:
    from kit.rebalances.offsets_topic import read_offsets_topic

    return read_offsets_topic(spark, profile, pattern, since, until)


def _no_spark() -> SparkSession:
    raise InputError("only small logs of this machine, and small topics, can be read without Spark: give a session")


def _known(events: pl.DataFrame, topic: OffsetsTopic | None) -> str:
    named = sorted(events["group_id"].drop_nulls().unique())
    of_logs = f"the logs name {', '.join(named[:20])}" if named else "no log names a group"
    return of_logs if topic is None else f"{of_logs}; the topic has no record of it"
