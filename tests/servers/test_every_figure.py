"""Every figure that a verb, a metric or a notebook shows, on one quiet scene, beside Kafka's own tools and the records.

Each face's figures are compared by subject and column; a column of a face that is compared with nothing fails too. If
one differs, all that do are printed as one table.
"""

from __future__ import annotations

import json
import math
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from kit.cli.main import app
from kit.lab.java import jars, jvm
from tests.notebooks import html_tables
from tests.notebooks.in_process import tables_of
from tests.servers.awaiting import SECONDS
from tests.servers.figure_scene import PREFIX, Scene, at_rest
from tests.servers.figure_truth import Span, Subject, Truth, Wanted, is_right, sources_of
from tests.soak import IS_SOAK

COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
KEY = ("group_id", "store", "topic", "partition")
BUSY = f"{PREFIX}classic-two-topics"
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module", params=["kraft_lab", "lab"], ids=["4.4", "3.9"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    lab = request.getfixturevalue(request.param)
    with at_rest(lab, is_kraft=request.param == "kraft_lab") as scene:
        yield scene


class Table:
    """The table of each face, beside the expected one."""

    def __init__(self) -> None:
        self.wrong: list[tuple[str, Subject, str, Any, Any]] = []
        self.counts: dict[str, int] = {}

    def compare(self, face: str, rows: Iterable[Mapping[str, Any]], wanted: Wanted, *words: str) -> None:
        """``words``: columns that are no figures. Subjects that are wanted and not shown are wrong, and vice versa."""
        shown = {tuple(row.get(name) for name in KEY): row for row in rows}
        self.counts.setdefault(face, 0)
        for subject in wanted.keys() ^ shown.keys():
            self.wrong.append((face, subject, "(is there)", subject in shown, subject in wanted))
        for subject in wanted.keys() & shown.keys():
            for column, value in shown[subject].items():
                if column in KEY or column in words:
                    continue
                self.counts[face] += 1
                if column not in wanted[subject]:
                    self.wrong.append((face, subject, column, value, "compared with nothing"))
                elif not is_right(value, wanted[subject][column]):
                    self.wrong.append((face, subject, column, value, wanted[subject][column]))

    def __str__(self) -> str:
        head = [("face", "subject", "figure", "shown", "wanted")]
        cells = head + [
            (face, " ".join(str(part) for part in subject if part is not None), column, str(shown), str(wanted))
            for face, subject, column, shown, wanted in sorted(self.wrong, key=str)
        ]
        widths = [max(len(row[at]) for row in cells) for at in range(len(head[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]
        counted = ", ".join(f"{face} {n:,}" for face, n in self.counts.items())
        return "\n".join([f"{len(self.wrong)} of {sum(self.counts.values()):,} figures ({counted}):", *lines])


def test_every_figure_is_kafkas_own_or_that_of_the_records(scene: Scene) -> None:
    truth, table = Truth(scene), Table()
    _kafkas_tools(scene, truth, table)
    _verbs(scene, truth, table)
    _metrics(scene, truth, table)
    _notebooks(scene, truth, table)
    if IS_SOAK:  # Spark's start would take the time of the rest.
        _report(scene, truth, table)
    assert not table.wrong, f"\n{table}"


def _kafkas_tools(scene: Scene, truth: Truth, table: Table) -> None:
    """It lists partitions with a commit or an owner, members, and states of the groups that are consumers'."""
    rows = [
        {
            "group_id": words[0],
            "store": "kafka",
            "topic": words[1],
            "partition": int(words[2]),
            **{name: _number(word) for name, word in zip(("committed_offset", "log_end_offset", "lag_raw"), words[3:])},
            "member_id": None if words[6] == "-" else words[6],
        }
        for words in _described(scene, "--offsets")
        if words[1] != "-"
    ]
    consumers = _consumers_of(scene)
    wanted = {
        subject: row for subject, row in truth.partitions().items() if subject[1] == "kafka" and subject[0] in consumers
    }
    listed = {each: row for each, row in wanted.items() if row["committed_offset"] is not None or row["member_id"]}
    table.compare("kafka-consumer-groups --offsets", rows, listed)
    members = [
        {"group_id": words[0], "topic": words[1], "n_partitions": int(words[-1])}
        for words in _described(scene, "--members")
        if words[-1] != "0"
    ]
    table.compare("kafka-consumer-groups --members", members, truth.members())
    states = [{"group_id": words[0], "n_members": int(words[-1])} for words in _described(scene, "--state")]
    whole = {subject: row for subject, row in truth.whole().items() if subject[0] in consumers}
    table.compare("kafka-consumer-groups --state", states, whole)


def _consumers_of(scene: Scene) -> list[str]:
    """The groups that Kafka's command describes: it refuses all others."""
    others = ("share", "streams", "connect")
    return [each.group_id for each in scene.groups.values() if "kafka" in sources_of(each) and each.kind not in others]


def _described(scene: Scene, what: str) -> list[list[str]]:
    """The lines of the groups, by words."""
    names = [word for name in _consumers_of(scene) for word in ("--group", name)]
    arguments = ["--bootstrap-server", scene.lab.servers.addresses(), "--describe", what, *names, "--timeout", "60000"]
    jar_set = scene.lab.servers.brokers[0].jar_set
    command = jvm.java(jars.class_path(jar_set), COMMAND, arguments, 128, scene.lab.folder)
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * SECONDS)
    return [words for line in done.stdout.splitlines() if (words := line.split()) and words[0].startswith(PREFIX)]


def _number(word: str) -> int | None:
    return None if word in ("-", "–") else int(word.replace(",", ""))


def _verb(scene: Scene, *words: str) -> tuple[float, Rows]:
    """Return when it began (epoch ms), and its rows."""
    begun = time.time() * 1000
    of_all = [] if "-g" in words else ["--groups", f"{PREFIX}.*"]
    done = CliRunner().invoke(app, [*words, *of_all, "--json", "--profile-file", scene.profile])
    assert done.exit_code == 0, done.output
    return begun, json.loads(done.stdout)


def _verbs(scene: Scene, truth: Truth, table: Table) -> None:
    table.compare("lag", _verb(scene, "lag")[1], truth.groups())
    whole = (
        "attention",
        "stage",
        "effective_mode",
        "kafka_state",
        "group_type",
        "protocol_type",
        "protocol",
        "protocol_stage",
    )
    table.compare("groups", _verb(scene, "groups")[1], truth.whole(), *whole, "n_blockers", "error")
    of_each = truth.partitions()
    for group in scene.groups:
        if any(subject[0] == group for subject in of_each):
            own = {subject: row for subject, row in of_each.items() if subject[0] == group}
            table.compare("lag -g", _verb(scene, "lag", "-g", group)[1], own, "error")
    for group in {subject[0] for subject in truth.owners()}:
        _verb_of_owners(scene, group, truth, table)
    idle = ("class", "state", "last_commit_ms", "commit_age_ms", "last_seen_ms", "name_rule", "evidence")
    table.compare("groups --idle", _verb(scene, "groups", "--idle")[1], truth.idle(), *idle)
    _watch(scene, truth, table)
    for method in ("bisection", "anchors", "record"):
        begun, rows = _verb(scene, "lag", "--time", "--method", method)
        ages = truth.partitions(begun)
        if method == "anchors":
            _check_brackets(rows, ages)
        words = ("method", "is_idle", "is_truncated", "is_extrapolated", "lower_ms", "upper_ms", "error")
        table.compare(f"lag --time --method {method}", rows, ages, *words)
    begun, rows = _verb(scene, "lag", "--outlook", "--over-s", "1")
    ages = truth.partitions(begun)
    table.compare("lag --outlook", _outlooks(rows, ages), ages, "error", "deletion_by", "n_looks", "is_restarted")


def _verb_of_owners(scene: Scene, group: str, truth: Truth, table: Table) -> None:
    words = ("is_subscribed", "is_registered", "is_reservation", "is_persistent", "kafka_client_id", "is_embedded")
    rows = _verb(scene, "ownership", "-g", group)[1]
    own = {subject: row for subject, row in truth.owners().items() if subject[0] == group}
    table.compare("ownership -g", rows, own, *words, "kafka_other_owner", "error")


def _watch(scene: Scene, truth: Truth, table: Table) -> None:
    """Watch once and return what is printed: one observation knows no rate."""
    words = ["watch", "--count", "1", "--groups", f"{PREFIX}.*", "--profile-file", scene.profile]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    _, head, *lines = done.stdout.splitlines()
    names = ("lag", "n_beyond_end", "n_unknown")
    columns = [name for name in head.split() if name in names]
    rows = []
    for words in (line.replace("beyond the end", "beyond").replace("caught up", "caught-up").split() for line in lines):
        values = [words[2], *words[-2:]]
        rows.append({"group_id": words[0], "store": words[1], **dict(zip(columns, map(_number, values)))})
    table.compare("watch", rows, truth.groups())


def _check_brackets(rows: Rows, ages: Wanted) -> None:
    """A line from the first record to the newest is as good as its bracket: what it shows is not compared, but that."""
    for row in rows:
        wanted = ages[tuple(row[name] for name in KEY)]
        age = wanted["time_lag_ms"]
        least, most = (age.least, age.most) if isinstance(age, Span) else (age, age)
        if least is not None and row["lower_ms"] <= most and least <= row["upper_ms"]:
            wanted["time_lag_ms"] = row["time_lag_ms"]


def _outlooks(rows: Rows, wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Brackets as the truth if they hold it; rates at rest are 0."""
    for row in rows:
        subject = tuple(row[name] for name in KEY)
        span, least, most = wanted[subject]["until_deleted_ms"], row["deletion_lower_ms"], row["deletion_upper_ms"]
        if span is not None and least is not None and least <= span.most and (most is None or span.least <= most):
            row["until_deleted_ms"] = span.least
        gone = ("deletion_ms", "deletion_lower_ms", "deletion_upper_ms", "close_lower_ms", "close_upper_ms", "pause_ms")
        rates = ("consumed_per_s", "produced_per_s", "lag_per_s", "lag_per_s_lower", "lag_per_s_upper")
        wanted[subject] |= dict.fromkeys(rates, 0.0 if wanted[subject]["committed_offset"] is not None else None)
        yield {name: value for name, value in row.items() if name not in gone}


METRICS = {
    "lag": "lag",
    "beyond_end": "beyond_end",
    "committed_offset": "committed_offset",
    "time_lag_seconds": "time_lag_ms",
    "closed_in_seconds": "close_ms",
    "unread_deleted_in_seconds": "deleted_in_ms",
}


def _metrics(scene: Scene, truth: Truth, table: Table) -> None:
    begun = time.time() * 1000
    words = ["export", "--once", "--groups", f"{PREFIX}.*", "--profile-file", scene.profile]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    families = {family.name: family.samples for family in text_string_to_metric_families(done.stdout)}
    for name, column in METRICS.items():
        ages = truth.partitions(begun)
        for subject, row in ages.items():  # One observation knows no rate, but that compaction is no retention.
            row["deleted_in_ms"] = math.inf if "compacted" in str(subject[2]) else None
        samples = families.pop(f"offramp_consumer_group_topic_partition_{name}")
        rows = [{**_labels(each.labels), column: _milliseconds(name, each.value)} for each in samples]
        known = {subject: row for subject, row in ages.items() if row[column] is not None}
        table.compare(f"metric {name}", rows, known)
    _metrics_of_groups(families, truth, table)


def _metrics_of_groups(families: dict[str, Any], truth: Truth, table: Table) -> None:
    """Compare the remaining metrics too: the ends of logs, sums of groups, and an observation's figures of itself."""
    for name, column in {"lag": "lag", "unknown_partitions": "n_unknown"}.items():
        samples = families.pop(f"offramp_consumer_group_{name}")
        known = {subject: row for subject, row in truth.groups().items() if row[column] is not None}
        table.compare(f"metric of groups {name}", ({**each.labels, column: each.value} for each in samples), known)
    ends = {(None, None, *place): {"log_end_offset": log.end} for place, log in truth.logs.items()}
    samples = families.pop("offramp_topic_partition_log_end_offset")
    rows = [
        {
            "topic": each.labels["topic_name"],
            "partition": int(each.labels["partition_id"]),
            "log_end_offset": each.value,
        }
        for each in samples
    ]
    table.compare("metric log_end_offset", rows, ends)
    judged, by_store = dict[tuple[str, str], float](), truth.groups()
    for each in families.pop("offramp_consumer_group_partitions"):
        key = (each.labels["group_id"], each.labels["store"])
        judged[key] = judged.get(key, 0) + each.value
        if each.labels["status"] == "BEYOND":
            beyond = by_store[*key, None, None]["n_beyond_end"]
            table.compare("metric BEYOND", [{"n": each.value}], {(None,) * 4: {"n": beyond}})
    with_commit = {
        (group, store): row["n_partitions"] - row["n_without_commit"]
        for (group, store, *_), row in by_store.items()
        if row["n_partitions"] > row["n_without_commit"]
    }
    assert judged == with_commit
    none = ("read_errors", "times_missing")
    assert all(families.pop(f"offramp_look_{name}")[0].value == 0 for name in none)
    others = ("groups", "partitions", "lag", "unknown_partitions")
    assert all(families.pop(f"offramp_other_{name}")[0].value == 0 for name in others)
    of_looks = {
        f"offramp_look_{name}" for name in ("timestamp_seconds", "duration_seconds", "requests", "interval_seconds")
    }
    counters = {"offramp_looks", "offramp_failed_looks", "offramp_requests"}
    words = {"offramp_consumer_group_stage", "offramp_consumer_group_owner_moves"}
    assert families.keys() == of_looks | counters | words


def _labels(labels: Mapping[str, str]) -> dict[str, Any]:
    renamed = {"topic": labels.get("topic_name"), "partition": int(labels["partition_id"])}
    return {"group_id": labels["group_id"], "store": labels["store"], **renamed}


def _milliseconds(name: str, value: float) -> float:
    return value * 1000 if name.endswith("_seconds") and not math.isinf(value) else value


def _notebooks(scene: Scene, truth: Truth, table: Table) -> None:
    given = {"profile_file": scene.profile, "groups": f"{PREFIX}.*"}
    begun = time.time() * 1000
    worst, of_one = tables_of("explore/health", **given, group_id=BUSY, over_s=2.0)[:2]
    ages = truth.partitions(begun)
    words = ("closed_in", "unread_deleted_in", "status", "evidence", "age")
    shown = {(row["group_id"], row["store"], None, None) for row in worst}
    sums = {subject: row for subject, row in truth.groups().items() if subject in shown}
    for subject, row in sums.items():
        of_group = [each for place, each in ages.items() if place[:2] == subject[:2]]
        row["n_without_age"] = sum(each["time_lag_ms"] is None for each in of_group)
    table.compare("explore/health: groups", worst, sums, *words)
    busy = {subject: row for subject, row in ages.items() if subject[0] == BUSY}
    at_rest = dict.fromkeys(("read_per_s", "written_per_s"), 0)
    none = dict.fromkeys(at_rest)
    table.compare(
        "explore/health: partitions",
        ({"group_id": BUSY} | row for row in of_one),
        {subject: row | (none if row["has_no_commit"] else at_rest) for subject, row in busy.items()},
        *words,
        "error",
    )
    watched = html_tables.with_columns(tables_of("explore/monitor", **given), "trend", "n_unknown")
    at_risk = {
        subject: row for subject, row in truth.groups().items() if subject[:2] in {_place(row) for row in watched}
    }
    table.compare("explore/monitor", watched, at_risk, "trend", "lag_per_s", "read_per_s", "written_per_s")
    for group in (BUSY, "fig-beyond-in-part", "fig-deleted-both", "fig-two-topics"):
        lag, *_ = tables_of("explore/group", profile_file=scene.profile, group_id=group)
        own = {subject: row for subject, row in truth.partitions().items() if subject[0] == group}
        rows = ({"group_id": group} | row | {"has_no_commit": row["has_no_commit"] == "yes"} for row in lag)
        table.compare("explore/group: lag", rows, own, "error")
        _sums_of_tools(scene, group, own, table)


def _place(row: Mapping[str, Any]) -> tuple[Any, Any]:
    return row["group_id"], row["store"]


def _sums_of_tools(scene: Scene, group: str, own: Wanted, table: Table) -> None:
    """The sum of Kafka's own command, and the one that leaves out what retention deleted."""
    found = tables_of("explore/lag_explained", profile_file=scene.profile, group_id=group)
    rows = {row["tool"]: row["lag"] for row in html_tables.with_columns(found, "tool", "partitions")}
    by_tool = {
        "kafka-consumer-groups": sum(row["lag_raw"] or 0 for row in own.values()),
        "Burrow": sum(row["lag"] or 0 for row in own.values()),
        "KMinion": sum(row["lag"] or 0 for row in own.values()),
    }
    shown = {tool: rows[tool] for tool in by_tool}
    table.compare("explore/lag_explained", [{"group_id": group, **shown}], {(group, None, None, None): by_tool})


def _report(scene: Scene, truth: Truth, table: Table) -> None:
    """By Spark: all groups, and those that share unevenly."""
    found = tables_of("report/groups", profile_file=scene.profile, groups=f"{PREFIX}.*")
    columns = {"group_id", "kind", "n_partitions", "store_in_use"}
    rows = html_tables.with_columns(found, *columns)
    words = (
        "kind",
        "stage",
        "kafka_state",
        "group_type",
        "protocol_type",
        "protocol",
        "protocol_stage",
        "is_unreadable",
        "n_blockers",
    )
    named = {subject: row for subject, row in truth.whole().items() if subject[0] in {row["group_id"] for row in rows}}
    table.compare("report/groups", rows, named, *words)
    (uneven,) = [each for each in found if each and "coefficient_of_variation" in each[0]]
    idle = {row["group_id"]: row["n_idle"] for row in uneven if row["n_idle"]}
    assert idle == {group: row["n_idle"] for (group, *_), row in truth.whole().items() if row["n_idle"]}
