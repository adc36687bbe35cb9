"""The jars of Kafka's servers and of older consumers: resolved by Ivy, checked by SHA-256, kept in a cache folder.

``python -m kit.lab.java.jars`` fetches what is missing and prints where it lies. No repository is named here: Ivy's own
default is used, or the mirror in ``OFFRAMP_MAVEN_MIRROR``, or the one in ``~/.m2/settings.xml``.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kit.errors import SetupError
from kit.lab.java import resolver
from kit.spark.java import cache_folder
from kit.text.quantity import quantity

CHECKSUMS = Path(__file__).with_name("jars.sha256")
STAMP = "complete.json"


@dataclass(frozen=True, slots=True)
class JarSet:
    """One class path: what is asked of the resolver; modules in ``without`` are left out with what they bring."""

    name: str
    modules: tuple[str, ...]
    without: tuple[str, ...] = ()


SERVERS = JarSet(
    "servers",
    (
        "org.apache.kafka:kafka_2.13:3.9.1",
        "org.apache.kafka:kafka-tools:3.9.1",
        "org.slf4j:slf4j-reload4j:1.7.36",
    ),
    without=("org.apache.kafka:connect-runtime",),
)
# Members of KIP-848 groups by librdkafka >= 2.12 need a broker >= 4.0.
NEWER_SERVERS = JarSet("servers-4.1.1", ("org.apache.kafka:kafka_2.13:4.1.1", "org.slf4j:slf4j-reload4j:1.7.36"))
NEWEST_SERVERS = JarSet(
    "servers-4.4.0",
    (
        "org.apache.kafka:kafka_2.13:4.4.0",
        "org.apache.kafka:kafka-tools:4.4.0",
        "org.slf4j:slf4j-reload4j:1.7.36",
    ),
    without=("org.apache.kafka:connect-runtime",),
)
KAFKA_SETS = {"3.9.1": SERVERS, "4.1.1": NEWER_SERVERS, "4.4.0": NEWEST_SERVERS}
"""Servers by Kafka's version, oldest first. Only the first one can run with ZooKeeper."""
OLD_CONSUMERS = {
    "1.1.1": JarSet("consumer-1.1.1", ("org.apache.kafka:kafka_2.11:1.1.1", "org.slf4j:slf4j-log4j12:1.7.25")),
    "0.10.2.2": JarSet("consumer-0.10.2.2", ("org.apache.kafka:kafka_2.11:0.10.2.2",)),
    "0.8.2.2": JarSet("consumer-0.8.2.2", ("org.apache.kafka:kafka_2.10:0.8.2.2",)),
}
# Java members of new groups, oldest first; most come with other sets.
CLIENTS = {
    "0.9.0.1": JarSet("client-0.9.0.1", ("org.apache.kafka:kafka-clients:0.9.0.1", "org.slf4j:slf4j-reload4j:1.7.36")),
    "0.10.2.2": OLD_CONSUMERS["0.10.2.2"],
    "1.1.1": OLD_CONSUMERS["1.1.1"],
    "2.8.2": JarSet("client-2.8.2", ("org.apache.kafka:kafka-clients:2.8.2", "org.slf4j:slf4j-reload4j:1.7.36")),
    "3.9.1": SERVERS,
    "4.1.1": NEWER_SERVERS,
    "4.4.0": NEWEST_SERVERS,
}
DEMO_SETS = (SERVERS, *OLD_CONSUMERS.values())
ALL_SETS = (*DEMO_SETS, NEWER_SERVERS, NEWEST_SERVERS, CLIENTS["0.9.0.1"], CLIENTS["2.8.2"])


def class_path(jar_set: JarSet, *before: Path) -> str:
    """Class path of a set for ``java -cp``, with ``before`` in front; fetches the set when it is missing.

    Raises SetupError when the jars can't be fetched or have other checksums.
    """
    folder = ensure([jar_set])[jar_set.name]
    return os.pathsep.join([*map(str, before), f"{folder}/*"])


def ensure(jar_sets: Iterable[JarSet] = ALL_SETS, say: Callable[[str], None] | None = None) -> dict[str, Path]:
    """Folder of every set by name, after fetching the missing ones side by side; ``say`` gets progress lines."""
    tell = say or tell_on_stderr
    wanted = list(jar_sets)
    missing = [jar_set for jar_set in wanted if not is_complete(folder_of(jar_set))]
    if missing:
        with ThreadPoolExecutor(len(missing)) as pool:
            for done in [pool.submit(fetch, jar_set, tell) for jar_set in missing]:
                done.result()
    return {jar_set.name: folder_of(jar_set) for jar_set in wanted}


def tell_on_stderr(line: str) -> None:
    """One write per line: the sets report from several threads."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def folder_of(jar_set: JarSet) -> Path:
    """Return where a set is kept; the name follows the expected checksums, so another list is another folder."""
    lines = sorted(f"{name} {digest}" for name, digest in expected(jar_set.name).items())
    return cache_folder() / "jars" / f"{jar_set.name}-{hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:8]}"


@cache
def all_checksums() -> dict[str, str]:
    """``set/jar`` → SHA-256 in hex, from the committed list."""
    lines = CHECKSUMS.read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in (line.split(maxsplit=1) for line in lines if line)}


def expected(set_name: str) -> dict[str, str]:
    """Jar → SHA-256 in hex of one set."""
    head = f"{set_name}/"
    return {name.removeprefix(head): digest for name, digest in all_checksums().items() if name.startswith(head)}


def is_complete(folder: Path) -> bool:
    """Return whether every jar lies there with the size it had when its checksum was checked."""
    try:
        sizes = json.loads((folder / STAMP).read_text(encoding="utf-8"))
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False


def fetch(jar_set: JarSet, say: Callable[[str], None]) -> None:
    """Resolve a set into a draft folder, check it and move it into place in one step; raises SetupError."""
    target = folder_of(jar_set)
    target.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=".draft-", dir=target.parent) as draft:
        say(f"{jar_set.name}: fetching {quantity(len(expected(jar_set.name)), 'jar')} …")
        libraries = resolver.resolve(
            jar_set.modules, jar_set.without, Path(draft), lambda line: say(f"{jar_set.name}: {line}")
        )
        check(libraries, expected(jar_set.name))
        put_in_place(libraries, target)
    megabytes = sum(jar.stat().st_size for jar in target.glob("*.jar")) / 1e6
    say(f"{jar_set.name}: {megabytes:.0f} MB checked and kept, {time.monotonic() - started:.0f} s")


def put_in_place(libraries: Path, target: Path) -> None:
    """Stamp the checked folder with its sizes and move it to ``target``; a broken older one makes room."""
    sizes = {jar.name: jar.stat().st_size for jar in libraries.glob("*.jar")}
    (libraries / STAMP).write_text(json.dumps(sizes, indent=1, sort_keys=True), encoding="utf-8")
    if is_complete(target):  # another process was faster
        return
    shutil.rmtree(target, ignore_errors=True)
    try:
        libraries.rename(target)
    except OSError:
        if not is_complete(target):
            raise


def check(libraries: Path, wanted: dict[str, str]) -> None:
    """Raise SetupError unless ``libraries`` holds exactly the jars of ``wanted`` with their SHA-256."""
    fetched = {jar.name: digest_of(jar) for jar in libraries.glob("*.jar")}
    wrong = sorted(name for name in fetched.keys() & wanted.keys() if fetched[name] != wanted[name])
    missing = sorted(wanted.keys() - fetched.keys())
    unknown = sorted(fetched.keys() - wanted.keys())
    problems = [
        f"{what}: {', '.join(names)}"
        for what, names in (("other contents", wrong), ("missing", missing), ("not on the list", unknown))
        if names
    ]
    if problems:
        raise SetupError(
            f"The fetched jars aren't the ones of {CHECKSUMS.name} ({'; '.join(problems)}). Nothing was kept. "
            "Try again; if it stays so, examine the mirror the jars come from."
        )


def digest_of(path: Path) -> str:
    """SHA-256 of a file in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def main(jar_sets: Iterable[JarSet] = DEMO_SETS) -> None:
    """Fetch what the demo needs, or other sets; the exit code is SetupError's when that fails."""
    try:
        folders = ensure(jar_sets)
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    for name, folder in folders.items():
        print(f"{name}: {folder}")


if __name__ == "__main__":
    main()
