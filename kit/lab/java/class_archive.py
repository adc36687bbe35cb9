"""The classes of the lab's Java processes, loaded once and kept: a broker or a member then starts in half the CPU time.

Java's application class-data sharing. ``python -m kit.lab.make_archives`` makes the archives in the cache folder; Java
passes over one that is not of its own version or of these jars, and without one a process starts as ever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kit.spark.java import cache_folder, java_home

_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
_made: dict[Path, Path] | None = None


def archive(class_path: str, main: str) -> Path:
    """Return where the archive of one class path and main class lies, or would lie."""
    return cache_folder() / "archives" / f"{main.rpartition('.')[2]}-{_digest(java_home(), class_path, main)}.jsa"


def options(class_path: str, main: str) -> tuple[str, ...]:
    """Options of Java: none where there is no archive."""
    kept = archive(class_path, main)
    if kept.exists():
        return (f"-XX:SharedArchiveFile={kept}", *_QUIET)
    if _made is None or kept in _made:
        return ()
    _made[kept] = kept.with_name(f".draft-{kept.name}")
    return (f"-XX:ArchiveClassesAtExit={_made[kept]}", *_QUIET)


@contextmanager
def being_made(jar_folders: list[str]) -> Iterator[bool]:
    """Inside, the first process of each kind that ends by itself or by SIGTERM leaves its archive.

    Yields whether that is needed: not when it was done before with this Java, these jars and this code.
    """
    global _made
    folder = cache_folder() / "archives"
    done = folder / f"made-{_digest(java_home(), *sorted(jar_folders), *sorted(_sources()))}"
    if done.exists():
        yield False
        return
    folder.mkdir(parents=True, exist_ok=True)
    _made = {}
    try:
        yield True
        for kept, draft in _made.items():
            if draft.exists():
                draft.replace(kept)
        done.touch()
    finally:
        for draft in _made.values():
            draft.unlink(missing_ok=True)
        _made = None


def _sources() -> list[str]:
    return [file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("*.java")]


def _digest(*parts: object) -> str:
    return hashlib.sha256(" ".join(map(str, parts)).encode()).hexdigest()[:12]
