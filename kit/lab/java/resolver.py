"""Ivy, as PySpark's wheel carries it: from coordinates to a folder of jars, by its default repository or a mirror."""

from __future__ import annotations

import os
import re
import subprocess
from collections import deque
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from kit.errors import SetupError
from kit.spark.java import java_command

MIRROR_VARIABLE = "OFFRAMP_MAVEN_MIRROR"
MEGABYTES_PER_LINE = 10
QUICK = ("-Divy.checksums=none", "-Divy.maven.lookup.sources=false", "-Divy.maven.lookup.javadoc=false")
"""Ivy asks for four more files of each jar by default. ``jars.check`` compares each jar with its SHA-256 instead."""
FETCHED = re.compile(r"^[\s.]*\((\d+)kB\)")


def resolve(modules: Iterable[str], without: Iterable[str], work: Path, say: Callable[[str], None]) -> Path:
    """Resolve ``group:module:version`` coordinates with what they need at run time; returns the folder of jars.

    ``work`` is an empty folder that also takes Ivy's own cache. Raises SetupError with Ivy's last lines.
    """
    (work / "ivy.xml").write_text(module_file(modules, without), encoding="utf-8")
    command = [java_command(), "-Xmx256m", *QUICK, "-jar", str(spark_jar("ivy-*.jar")), "-cache", str(work / "cache")]
    command += settings_options(work)
    command += ["-ivy", str(work / "ivy.xml"), "-confs", "default", "-types", "jar", "bundle"]
    command += ["-retrieve", f"{work}/libraries/[artifact]-[revision](-[classifier]).[ext]"]
    last = run(command, say)
    libraries = work / "libraries"
    if not libraries.is_dir():
        raise SetupError(
            "The jars of Kafka could not be fetched. Examine the network or proxy; behind a mirror set "
            f"{MIRROR_VARIABLE} to its address. The resolver's last lines:\n  " + "\n  ".join(last)
        )
    return libraries


def run(command: list[str], say: Callable[[str], None]) -> list[str]:
    """Run Ivy, with a line for each 10 MB; returns its last lines when it failed, else nothing."""
    last: deque[str] = deque(maxlen=12)
    kilobytes = reported = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        assert ivy.stdout is not None
        for line in ivy.stdout:
            last.append(line.rstrip())
            sized = FETCHED.match(line)
            kilobytes += int(sized.group(1)) if sized else 0
            if kilobytes // (MEGABYTES_PER_LINE * 1000) > reported:
                reported = kilobytes // (MEGABYTES_PER_LINE * 1000)
                say(f"{kilobytes // 1000} MB …")
    return list(last)


def spark_jar(pattern: str) -> Path:
    """One jar of PySpark's wheel; raises SetupError when the wheel has none of that name."""
    # Asked for without importing it: PySpark's import costs more than a warm start of the lab may.
    package = find_spec("pyspark")
    folders = list(package.submodule_search_locations or []) if package else []
    jars = sorted(jar for folder in folders for jar in (Path(folder) / "jars").glob(pattern))
    if not jars:
        raise SetupError(f"The installed PySpark carries no {pattern}: install the locked requirements again.")
    return jars[-1]


def module_file(modules: Iterable[str], without: Iterable[str]) -> str:
    """An Ivy module that depends on ``modules`` and leaves ``without`` (``group:module``) out."""
    lines = ['<ivy-module version="2.0">', '<info organisation="offramp" module="lab"/>']
    lines += ['<configurations><conf name="default"/></configurations>', "<dependencies>"]
    for group, name, version in (module.split(":") for module in modules):
        lines.append(f'<dependency org="{group}" name="{name}" rev="{version}" conf="default->default"/>')
    for group, name in (module.split(":") for module in without):
        lines.append(f'<exclude org="{group}" module="{name}"/>')
    return "\n".join([*lines, "</dependencies>", "</ivy-module>"])


def settings_options(work: Path) -> list[str]:
    """Ivy's options for a configured mirror; none without one, so that Ivy's own default holds."""
    mirror = configured_mirror()
    if mirror is None:
        return []
    (work / "settings.xml").write_text(settings_file(mirror), encoding="utf-8")
    return ["-settings", str(work / "settings.xml")]


def settings_file(mirror: str) -> str:
    """Ivy settings with one Maven repository at ``mirror``."""
    root = quoteattr(mirror.rstrip("/") + "/")
    return (
        '<ivysettings><settings defaultResolver="mirror"/>'
        f'<resolvers><ibiblio name="mirror" m2compatible="true" root={root}/></resolvers></ivysettings>'
    )


def configured_mirror() -> str | None:
    """Address of the mirror to use: the environment variable's, else the one Maven is reported to use, else None."""
    named = os.environ.get(MIRROR_VARIABLE)
    if named:
        return named
    settings = Path.home() / ".m2" / "settings.xml"
    return parse_mirror(settings.read_text(encoding="utf-8")) if settings.exists() else None


def parse_mirror(settings: str) -> str | None:
    """The mirror of Maven's central repository in a ``settings.xml``; None when it has none or can't be read."""
    try:
        root = ElementTree.fromstring(settings)
    except ElementTree.ParseError:
        return None
    for mirror in root.iterfind(".//{*}mirror"):
        covered = {part.strip() for part in (mirror.findtext("{*}mirrorOf") or "").split(",")}
        if covered & {"*", "central", "external:*"} and "!central" not in covered:
            return (mirror.findtext("{*}url") or "").strip() or None
    return None
