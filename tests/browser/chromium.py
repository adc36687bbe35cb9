"""The Chromium of the tests: the system's, else Playwright's; as a command it installs one where there is none."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kit.errors import SetupError

VARIABLE = "OFFRAMP_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WHAT_TO_DO = (
    "No Chromium could be found or installed: install Chromium or Google Chrome with this system's package manager, "
    f"or set {VARIABLE} to the path of one, and run make again."
)
ANSWER_SECONDS = 60
ASK = "from playwright.sync_api import sync_playwright as run\nwith run() as its: print(its.chromium.executable_path)"


@dataclass(frozen=True)
class Step:
    """One command of the installation, and how long it may take."""

    command: Sequence[str]
    seconds: int


def find() -> Path:
    """Path of a Chromium that answers: ``OFFRAMP_CHROMIUM``, the first on PATH, Playwright's own.

    Raises SetupError, saying what to do.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        if not version(Path(chosen)):
            raise SetupError(f"{VARIABLE} is {chosen}, which does not run as a browser: correct or unset it.")
        return Path(chosen)
    for path in [*on_path(), own()]:
        if path is not None and version(path):
            return path
    raise SetupError(WHAT_TO_DO)


def on_path() -> list[Path]:
    return [Path(found) for name in NAMES if (found := shutil.which(name))]


def own() -> Path | None:
    """Return where Playwright keeps the Chromium it installs, if it did. A process of its own: two at once refuse to
    run.
    """
    try:
        answer = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, timeout=ANSWER_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    path = Path(answer.stdout.strip())
    return path if path.is_file() else None


def version(path: Path) -> str:
    """Return the browser's version by itself; empty when it can't be run (libraries missing, a mere pointer to a
    snap).
    """
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=ANSWER_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""


def ways() -> list[list[Step]]:
    """Return what can be tried on this system: the system's packages where this user may install them, then
    Playwright.
    """
    possible = []
    root = as_root()
    if shutil.which("apt-get") and root is not None:
        apt = [*root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
        install = [*apt, "install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-liberation"]
        possible.append([Step([*apt, "update", "-qq"], 180), Step(install, 600)])
    return [*possible, [Step([sys.executable, "-m", "playwright", "install", "chromium"], 300)]]


def as_root() -> list[str] | None:
    """Return what to put before a command that needs root; None when that can't be had without a password."""
    if os.geteuid() == 0:
        return []
    asks_nothing = shutil.which("sudo") and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0
    return ["sudo", "-n"] if asks_nothing else None


def run(step: Step) -> bool:
    """Return whether the command ended well in time; what it prints is shown. Ended with all it started when it did
    not.
    """
    try:
        process = subprocess.Popen(step.command, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        say(f"it can't be started: {error}")
        return False
    try:
        return process.wait(step.seconds) == 0
    except subprocess.TimeoutExpired:
        say(f"it did not end in {step.seconds} s and is stopped")
        return False
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def provide(run: Callable[[Step], bool] = run) -> Path:
    """Find a Chromium; else install one, way after way, until one is found. Raises SetupError."""
    try:
        return find()
    except SetupError:
        if os.environ.get(VARIABLE):
            raise
    say("no Chromium or Chrome is on PATH")
    for way in ways():
        for step in way:
            say(f"{' '.join(step.command)} (at most {step.seconds} s)")
            if not run(step):
                say("that failed")
                break
        else:
            try:
                return find()
            except SetupError:
                say("what it installed does not run")
    raise SetupError(WHAT_TO_DO)


def say(text: str) -> None:
    print(f"[setup] browser: {text}", flush=True)


def main() -> None:
    """Provide a Chromium and name it; else print one sentence, and exit with an error if it is required."""
    try:
        path = provide()
    except SetupError as error:
        print(f"[setup] {error}", file=sys.stderr)
        if is_required():
            raise SystemExit(error.exit_code) from None
        say("the tests that need a browser are left out")
        return
    say(f"{path} ({version(path)})")


def is_required() -> bool:
    """Return whether a missing browser is an error: in CI, and where the user has named one."""
    return bool(os.environ.get("CI") or os.environ.get(VARIABLE))


if __name__ == "__main__":
    main()
