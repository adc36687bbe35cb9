"""The state of the lab that ``offramp lab up`` started: one small file in the cache folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from kit.spark.java import cache_folder


@dataclass(frozen=True, slots=True)
class State:
    """The process that holds the lab, and its profile. The start time (epoch seconds) detects a recycled pid."""

    pid: int
    started_at: float
    folder: str
    profile_file: str
    summary: str

    @classmethod
    def of(cls, pid: int, folder: Path, profile_file: Path, summary: str) -> State:
        """The state of a lab held by process ``pid``."""
        return cls(pid, psutil.Process(pid).create_time(), str(folder), str(profile_file), summary)

    def process(self) -> psutil.Process | None:
        """The holding process; None when it has ended, even if its pid is another's by now."""
        try:
            process = psutil.Process(self.pid)
            same = process.create_time() == self.started_at and process.status() != psutil.STATUS_ZOMBIE
            return process if same else None
        except psutil.NoSuchProcess:
            return None


def home() -> Path:
    """Folder of the state file, the lock and the log of the last start."""
    folder = cache_folder() / "lab"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def state_file() -> Path:
    return home() / "state.json"


def save(state: State) -> None:
    """Write the state in one step."""
    draft = state_file().with_suffix(".draft")
    draft.write_text(json.dumps(asdict(state), indent=1), encoding="utf-8")
    draft.replace(state_file())


def load() -> State | None:
    """The state of the running lab; None when there is none (a file left by one that has ended is removed)."""
    try:
        state = State(**json.loads(state_file().read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    if state.process() is None:
        state_file().unlink(missing_ok=True)
        return None
    return state
