"""Layouts of log lines: where a line has its time, level, logger and message, and which prefixes it may have.

A layout is found per line, so that files may mix them. A time without a zone stays unknown in UTC unless the caller
reports the zone or the file proves it (0.9's request dumps hold epoch milliseconds beside the printed time).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from kit.errors import InputError
from kit.rebalances.logs.texts import extracted, filled, has, regex, replaced, without

LEVELS = "TRACE|DEBUG|INFO|WARNING|WARN|ERROR|FATAL|CRITICAL|SEVERE|CONFIG|FINEST|FINER|FINE"
TIME = r"\d{3,4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
ZONE = r"Z|UTC|[+-]\d\d:?\d\d"
_AT = rf"({TIME}) ?({ZONE})?"
_LOGGER = r"([A-Za-z_][\w.$/-]*)"
_THREAD = r"(?:\[[^\]]*\]\s+)?"
_BEHIND = r" \[[^\]]*\]| - [\w.-]+=[^()]*"
"""The text that patterns put behind the logger: the thread, or keys and values."""

JSON = "json"
JUL = "java.util.logging"
LIBRDKAFKA = "librdkafka"
JUL_HEADER = r"^([A-Z][a-z]{2} \d{1,2}, \d{4},? \d{1,2}:\d\d:\d\d\s?[AP]M) ([\w.$]+)(?: \S+)?$"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_RECORD_START = rf"([^\d\[])(\[?{TIME} ?(?:{ZONE})?\]?,? +(?:{LEVELS})\b)"
"""The beginning of another record inside a line. Pasted logs may hold several records in one line."""
_CUT = "\x1e"


@dataclass(frozen=True)
class Layout:
    """A pattern, and the number of its group for each part; 0: the layout has no such part."""

    name: str
    pattern: str
    time: int
    zone: int
    level: int
    logger: int
    message: int


LAYOUTS = (
    Layout(
        "kafka", rf"^\[{_AT}\] ({LEVELS}) (.*?)(?: \(([A-Za-z_][\w.$]*)(?::\d+)?\)(?:{_BEHIND})?)?\s*$", 1, 2, 3, 5, 4
    ),
    Layout(
        "strimzi", rf"^{_AT} +({LEVELS}) +(.*?) \(([A-Za-z_]\w*(?:\.[\w$]+)+)(?::\d+)?\) \[[^\]]*\]\s*$", 1, 2, 3, 5, 4
    ),
    Layout("spring", rf"^{_AT}\s+({LEVELS}) \d+ --- (?:\[[^\]]*\] *)+(\S+)\s+: (.*)$", 1, 2, 3, 4, 5),
    Layout(
        "log4j",
        rf"^{_AT},?\s+{_THREAD}({LEVELS})\s+{_THREAD}{_LOGGER}(?::\d+)?(?: \[[^\]]*\])?\s*(?:-|:) (.*)$",
        1,
        2,
        3,
        4,
        5,
    ),
    Layout("python", rf"^{_AT}\s*[-:|,]?\s*{_LOGGER}\s*[-:|,]\s*({LEVELS})\s*[-:|,]\s*(.*)$", 1, 2, 4, 3, 5),
    Layout("plain", rf"^{_AT}\s+{_THREAD}({LEVELS}):?\s+(.*)$", 1, 2, 3, 0, 4),
    Layout("time of day", rf"^(\d\d:\d\d:\d\d[.,]\d{{3}}) \[[^\]]*\] ({LEVELS})\s+([\w.$]+) - (.*)$", 1, 0, 2, 3, 4),
    Layout("python without time", rf"^({LEVELS}):([\w.]+):(.*)$", 0, 0, 1, 2, 3),
    Layout(LIBRDKAFKA, r"^%(\d)\|(\d{9,11}\.\d{3})\|(\w+)\|[^|]*\| (?:\[thrd:[^\]]*\]+: )?(.*)$", 2, 0, 1, 3, 4),
    Layout(JSON, r"^(\{.*\})\s*$", 0, 0, 0, 0, 1),
    Layout(JUL, rf"^({LEVELS}): (.*)$", 0, 0, 1, 0, 2),
)
PARTS = ("time", "zone", "level", "logger", "message")
NAMES = tuple(layout.name for layout in LAYOUTS)

_HASH = "[bcdfghjklmnpqrstvwxz2456789]"
"""The characters that Kubernetes takes for the ends of a pod's name."""
PREFIXES = (
    (r"^([^\s:|\[{%]+\.(?:log|out|err|txt)(?:[.-]\d+)*(?:\.gz)?):(?:\d+:)?", 1),  # grep's
    (r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:\d\d) (stdout|stderr) [FP] ", 0),  # a container runtime's
    (r"^(?:<\d+>)?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (\S+ [^\s:\[]+)(?:\[\d+\])?: ", 1),  # syslog's
    (r"^\[pod/([^\s/\]]+)/[^\s\]]+\] ", 1),  # kubectl's
    (rf"^([a-z0-9][a-z0-9-]*-{_HASH}{{8,10}}-{_HASH}{{5}}) [a-z0-9][a-z0-9-]* ", 1),  # stern's: pod and container
    (rf"^\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:{ZONE}) (\S*[^A-Z\s]\S* [^\s:\[]+)(?:\[\d+\])?: ", 1),
    # syslog's, newer; a word in capitals is a level
    (r"^([A-Za-z0-9][\w.\-]*) *\| ", 1),  # that of several containers in one stream
)
"""The prefixes that a line may have, in this order, and the number of the group that names its origin."""

JSON_KEYS = {
    "time": ("@timestamp", "timestamp", "ts", "time", "asctime"),
    "level": ("level", "levelname", "severity", "log.level"),
    "logger": ("logger_name", "logger", "name", "loggerName", "log.logger"),
    "message": ("message", "msg"),
}


def records_in(line: pl.Expr) -> pl.Expr:
    """The records of a line, in a list."""
    is_object = line.str.contains('{"', literal=True)
    cut = replaced(line, _RECORD_START, f"${{1}}{_CUT}${{2}}")
    return pl.when(is_object).then(line).otherwise(cut).str.split(_CUT)


def without_prefix(line: pl.Expr) -> pl.Expr:
    """The line without its prefixes."""
    return without(line, (pattern for pattern, _ in PREFIXES))


def origin(line: pl.Expr) -> pl.Expr:
    """The origin that the prefix names: a container, a host and program, or a file. Null: the line has no prefix."""
    names = []
    for pattern, group in PREFIXES:
        if group:
            names.append(extracted(line, pattern, group))
        line = without(line, (pattern,))
    return pl.coalesce(names[::-1])


def time_in_front(line: pl.Expr) -> pl.Expr:
    """The time, with its zone, that a program that collects lines puts before them."""
    return extracted(line, rf"^(\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{{1,9}})?(?:{ZONE})) ")


def layout_of(record: pl.Expr, only: str | None) -> pl.Expr:
    """The name of the first layout that fits; null: no layout fits. If a layout is named, only that one is tried."""
    wanted = [layout for layout in LAYOUTS if only is None or layout.name == only]
    return pl.coalesce([pl.when(has(record, each.pattern)).then(pl.lit(each.name)) for each in wanted])


def groups_of(record: pl.Expr, layout: pl.Expr) -> dict[str, pl.Expr]:
    """The matches of each layout's pattern in records of that layout, a column per layout: for :func:`parts_of`."""
    mine = {each.name: pl.when(layout == each.name).then(record) for each in LAYOUTS}
    groups = {each.name: mine[each.name].str.extract_groups(regex(each.pattern)) for each in LAYOUTS}
    return groups | {JSON: mine[JSON]}


def parts_of() -> dict[str, pl.Expr]:
    """The ``PARTS`` of a record, from the columns of :func:`groups_of`; null: the record lacks that part."""
    parts: dict[str, list[pl.Expr]] = {part: [] for part in PARTS}
    for each in LAYOUTS:
        for part in PARTS:
            number = getattr(each, part)
            if each.name == JSON:
                keys = JSON_KEYS.get(part, ())
                parts[part] += [pl.col(JSON).str.json_path_match(f"$['{key}']") for key in keys]
            elif number:
                parts[part].append(pl.col(each.name).struct.field(str(number)))
    return {part: filled(pl.coalesce(ways)) for part, ways in parts.items()}


def epoch_at(time: pl.Expr, layout: pl.Expr) -> pl.Expr:
    """The time in µs since 1970, of layouts that print seconds or milliseconds since 1970: librdkafka, some JSON."""
    number = pl.when(layout.is_in((LIBRDKAFKA, JSON))).then(time).cast(pl.Float64, strict=False)
    seconds = pl.when(number > 1e11).then(number / 1000).otherwise(number)
    return pl.when(number > 1e8).then((seconds * 1e6).round().cast(pl.Int64, strict=False))


def local_at(time: pl.Expr) -> pl.Expr:
    """The printed time, without a zone. A first digit that was lost in pasting is restored. Null: there is no date."""
    iso = replaced(time.str.replace_all(",", ".", literal=True), r"^(\d{3}-)", "2${1}")
    iso = extracted(iso, r"^(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?)").str.replace("T", " ", literal=True)
    spoken = replaced(replaced(time, r"(\d{4}),", "${1}"), r"\s?([AP]M)$", " ${1}")
    american = pl.when(has(time, "[AP]M$")).then(spoken)
    ways = ((iso, "%Y-%m-%d %H:%M:%S%.f"), (american, "%b %d, %Y %I:%M:%S %p"))
    return pl.coalesce([text.str.to_datetime(form, time_unit="us", strict=False) for text, form in ways])


def utc_at(local: pl.Expr, zone: pl.Expr) -> pl.Expr:
    """A local time of a printed zone (``+05:30``, ``-0800``, ``Z``, ``UTC``) → UTC, still without a zone."""
    parts = zone.str.extract_groups(regex(r"^([+-])(\d\d):?(\d\d)$")).struct
    minutes = parts.field("2").cast(pl.Int64) * 60 + parts.field("3").cast(pl.Int64)
    east = pl.when(zone.is_in(("Z", "UTC"))).then(0).when(parts.field("1") == "-").then(-minutes).otherwise(minutes)
    return local - pl.duration(minutes=east)


def check_zone(zone: str) -> None:
    """
    Raises:
        InputError: it is neither a name nor an offset of a zone.
    """
    refusal = InputError(f"there is no time zone {zone!r}: give one like Europe/Paris or +05:30")
    if not zone:
        raise refusal
    try:
        pl.select(utc_of(pl.lit(datetime(2000, 1, 1)), zone))
    except pl.exceptions.PolarsError as error:
        raise refusal from error


def utc_of(local: pl.Expr, zone: str) -> pl.Expr:
    """Return :func:`utc_at` with one zone for all, which may be a name. A time that the clocks skip is read as a
    time before the gap. The first of a time that the clocks show twice is taken.
    """
    if re.fullmatch(ZONE, zone):
        return utc_at(local, pl.lit(zone))

    def at(time: pl.Expr) -> pl.Expr:
        placed = time.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
        return placed.dt.convert_time_zone("UTC").dt.replace_time_zone(None)

    hour = pl.duration(hours=1)
    return pl.coalesce(at(local), at(local - hour) + hour)
