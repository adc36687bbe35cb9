"""Layouts of log lines: where a line says its time, level, logger and message; and what may stand in front of it.

A layout is found per line, so that files may mix them. A time without a zone stays unknown in UTC unless the caller
says the zone or the file proves it (0.9's request dumps hold epoch milliseconds beside the printed time).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kit.logs import sql

LEVELS = "TRACE|DEBUG|INFO|WARNING|WARN|ERROR|FATAL|CRITICAL|SEVERE|CONFIG|FINEST|FINER|FINE"
TIME = r"\d{3,4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
ZONE = r"Z|UTC|[+-]\d\d:?\d\d"
_AT = rf"({TIME}) ?({ZONE})?"
_LOGGER = r"([A-Za-z_][\w.$/-]*)"
_THREAD = r"(?:\[[^\]]*\]\s+)?"

JSON = "json"
JUL = "java.util.logging"
LIBRDKAFKA = "librdkafka"
JUL_HEADER = r"^([A-Z][a-z]{2} \d{1,2}, \d{4},? \d{1,2}:\d\d:\d\d\s?[AP]M) ([\w.$]+)(?: \S+)?$"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
RECORD_START = rf"(?<![\d\[])(?=\[?{TIME} ?(?:{ZONE})?\]?,? +(?:{LEVELS})\b)"
"""Where another record begins inside a line: pasted logs hold several."""


@dataclass(frozen=True)
class Layout:
    """A pattern, and which of its groups is what; 0: the layout doesn't say it."""

    name: str
    pattern: str
    time: int
    zone: int
    level: int
    logger: int
    message: int


LAYOUTS = (
    Layout("kafka", rf"^\[{_AT}\] ({LEVELS}) (.*?)(?: \(([A-Za-z_][\w.$]*)(?::\d+)?\))?\s*$", 1, 2, 3, 5, 4),
    Layout("spring", rf"^{_AT}\s+({LEVELS}) \d+ --- (?:\[[^\]]*\] *)+(\S+)\s+: (.*)$", 1, 2, 3, 4, 5),
    Layout("log4j", rf"^{_AT},?\s+{_THREAD}({LEVELS})\s+{_THREAD}{_LOGGER}(?::\d+)?\s*(?:-|:) (.*)$", 1, 2, 3, 4, 5),
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

PREFIXES = (
    (r"^([^\s:|\[{%]+\.(?:log|out|err|txt)(?:[.-]\d+)*(?:\.gz)?):(?:\d+:)?", 1),  # grep's
    (r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:\d\d) (stdout|stderr) [FP] ", 0),  # a container runtime's
    (r"^(?:<\d+>)?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (\S+ [^\s:\[]+)(?:\[\d+\])?: ", 1),  # syslog's
    (rf"^\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:{ZONE}) (\S+ [^\s:\[]+)(?:\[\d+\])?: ", 1),  # syslog's, newer
    (r"^([A-Za-z0-9][\w.\-]*) *\| ", 1),  # that of several containers in one stream
)
"""What may stand in front of a line, in this order, and the group that names whose line it is."""

_JSON_KEYS = {
    "time": ("@timestamp", "timestamp", "ts", "time", "asctime"),
    "level": ("level", "levelname", "severity", "log.level"),
    "logger": ("logger_name", "logger", "name", "loggerName", "log.logger"),
    "message": ("message", "msg"),
}


def without_prefix(line: str) -> str:
    """The line without what stands in front of its record."""
    return sql.without(line, (pattern for pattern, _ in PREFIXES))


def origin(line: str) -> str:
    """Who the prefix says the line is from: a container, a host and program, a file. Null: no prefix."""
    names = []
    for pattern, group in PREFIXES:
        if group:
            names.append(sql.extracted(line, pattern, group))
        line = sql.without(line, (pattern,))
    return f"coalesce({', '.join(reversed(names))})"


def layout_of(record: str, given: str | None) -> str:
    """The name of the first layout that fits; null: none does. Given a name: that one or none."""
    wanted = [layout for layout in LAYOUTS if given is None or layout.name == given]
    cases = [f"WHEN {record} RLIKE {sql.regex(each.pattern)} THEN '{each.name}'" for each in wanted]
    return f"CASE {' '.join(cases)} END"


def parts_of(record: str, layout: str) -> str:
    """The ``PARTS`` of a record of that layout, as an array of texts that are empty where it has none."""
    fitting = [each for each in LAYOUTS if each.name != JSON]
    cases = [f"WHEN '{each.name}' THEN {sql.replaced(record, each.pattern, _lines_of(each))}" for each in fitting]
    of_json = [_of_json(record, _JSON_KEYS.get(part, ())) for part in PARTS]
    return f"if({layout} = '{JSON}', array({', '.join(of_json)}), split(CASE {layout} {' '.join(cases)} END, r'\n'))"


def _lines_of(layout: Layout) -> str:
    """What to put for a record to have its parts in lines of their own."""
    groups = [getattr(layout, part) for part in PARTS]
    return "".join(f"${group}\\n" if group else "\\n" for group in groups)


def _of_json(record: str, keys: Iterable[str]) -> str:
    values = [f"get_json_object({record}, r\"$['{key}']\")" for key in keys]
    return f"coalesce({', '.join([*values, repr('')])})"


def epoch_at(time: str, layout: str) -> str:
    """The moment where the layout writes seconds or milliseconds since 1970: librdkafka, some JSON."""
    number = f"try_cast({time} AS double)"
    seconds = f"if({number} > 1e11, {number} / 1000, {number})"
    is_epoch = f"{layout} IN ('{LIBRDKAFKA}', '{JSON}') AND {number} > 1e8"
    return f"if({is_epoch}, timestamp_micros(cast(round({seconds} * 1e6) AS bigint)), NULL)"


def local_at(time: str) -> str:
    """The printed time as a timestamp without zone; a first digit that pasting lost is put back. Null: no date."""
    iso = sql.replaced(f"replace({time}, ',', '.')", r"^(\d{3}-)", "2$1")
    iso = sql.extracted(iso, r"^(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?)")
    spoken = sql.replaced(sql.replaced(time, r"(\d{4}),", "$1"), r"\s?([AP]M)$", " $1")
    american = f"if({time} RLIKE '[AP]M$', try_to_timestamp({spoken}, 'MMM d, yyyy h:mm:ss a'), NULL)"
    return f"coalesce(try_cast({iso} AS timestamp_ntz), cast({american} AS timestamp_ntz))"


def utc_at(local: str, zone: str) -> str:
    """A local time of a zone (a name, ``+05:30``, ``Z``) → UTC; independent of the session's time zone."""
    with_colon = sql.replaced(zone, r"^([+-]\d\d)(\d\d)$", "$1:$2")
    name = f"if({zone} IN ('Z', 'UTC'), '+00:00', {with_colon})"
    return f"try_cast(convert_timezone({name}, 'UTC', {local}) || '+00:00' AS timestamp)"
