"""The choice of the browser of these tests, and what is tried where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from kit.errors import SetupError
from kit.lab.process import wait_until
from tests.browser import chromium


def browser(path: Path, answer: str = "Chromium 1.2.3", exit_code: int = 0) -> Path:
    """A script that answers as a browser does."""
    path.write_text(f"#!/bin/sh\necho '{answer}'\nexit {exit_code}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def empty(monkeypatch, tmp_path):
    """A PATH with one empty folder, no browser of Playwright's, no choice of the user's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "playwright"))
    monkeypatch.delenv(chromium.VARIABLE, raising=False)
    return folder


def test_the_first_name_on_path_is_taken(empty):
    browser(empty / "google-chrome")
    assert chromium.find() == empty / "google-chrome"
    browser(empty / "chromium")
    assert chromium.find() == empty / "chromium"


def test_one_that_does_not_run_is_passed_over(empty):
    browser(empty / "chromium", exit_code=1)
    browser(empty / "google-chrome")
    assert chromium.find() == empty / "google-chrome"


def test_the_users_choice_comes_first(empty, monkeypatch, tmp_path):
    browser(empty / "chromium")
    monkeypatch.setenv(chromium.VARIABLE, str(browser(tmp_path / "mine")))
    assert chromium.find() == tmp_path / "mine"


def test_a_wrong_choice_of_the_user_is_reported_and_nothing_installed(empty, monkeypatch, tmp_path):
    browser(empty / "chromium")
    monkeypatch.setenv(chromium.VARIABLE, str(tmp_path / "nothing"))
    tried = []
    with pytest.raises(SetupError, match=f"{chromium.VARIABLE} is .*nothing"):
        chromium.provide(lambda step: tried.append(step) or True)
    assert tried == []


def test_playwrights_own_is_found(empty, tmp_path):
    expected = own_path(tmp_path / "playwright")
    expected.parent.mkdir(parents=True)
    browser(expected)
    assert chromium.find() == expected


def own_path(browsers: Path) -> Path:
    """Return where Playwright would put its Chromium, by its own word."""
    environment = {**os.environ, "PLAYWRIGHT_BROWSERS_PATH": str(browsers)}
    path = Path(subprocess.check_output([sys.executable, "-c", chromium.ASK], env=environment, text=True).strip())
    assert path.is_relative_to(browsers)
    return path


def test_nothing_found_reports_what_to_do(empty):
    with pytest.raises(SetupError) as raised:
        chromium.find()
    assert chromium.VARIABLE in str(raised.value)
    assert "\n" not in str(raised.value)


def test_without_apt_only_playwright_is_tried(empty):
    (way,) = chromium.ways()
    assert [step.command[1:] for step in way] == [["-m", "playwright", "install", "chromium"]]


@pytest.mark.parametrize(
    ("user", "sudo", "prefix"), [(0, None, []), (1000, 0, ["sudo", "-n"]), (1000, 1, None), (1000, None, None)]
)
def test_apt_is_tried_by_who_may(empty, monkeypatch, user, sudo, prefix):
    browser(empty / "apt-get")
    monkeypatch.setattr(chromium.os, "geteuid", lambda: user)
    if sudo is not None:
        browser(empty / "sudo", exit_code=sudo)
    *apt, _ = chromium.ways()
    commands = [list(step.command) for way in apt for step in way]
    environment = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    packages = ["--no-install-recommends", "chromium", "fonts-liberation"]
    wanted = [["update", "-qq"], ["install", "-y", "-qq", *packages]]
    assert commands == ([] if prefix is None else [[*prefix, *environment, *words] for words in wanted])


def test_ways_are_tried_in_order_until_one_gives_a_browser(empty, monkeypatch, capsys):
    browser(empty / "apt-get")
    monkeypatch.setattr(chromium, "as_root", list)
    tried = []

    def run(step):
        tried.append(step.command[-1])
        if "playwright" in step.command:
            browser(empty / "chromium")
        return "playwright" in step.command

    assert chromium.provide(run) == empty / "chromium"
    assert tried == ["-qq", "chromium"]
    printed = capsys.readouterr().out
    assert printed.count("(at most ") == 2
    assert printed.index("apt-get update") < printed.index("that failed") < printed.index("playwright install")


def test_a_failed_step_ends_its_way(empty, monkeypatch):
    browser(empty / "apt-get")
    monkeypatch.setattr(chromium, "as_root", list)
    tried = []

    def run(step):
        tried.append(step.command[-1])
        return False

    with pytest.raises(SetupError):
        chromium.provide(run)
    assert tried == ["-qq", "chromium"]


def test_an_installed_browser_that_does_not_run_is_none(empty, capsys):
    def run(step):
        browser(empty / "chromium", exit_code=127)
        return True

    with pytest.raises(SetupError):
        chromium.provide(run)
    assert "does not run" in capsys.readouterr().out


def test_a_step_that_takes_too_long_is_ended_with_what_it_started(tmp_path, capsys):
    note = tmp_path / "pid"
    script = f"sleep 600 & echo $! > {note}.new; mv {note}.new {note}; wait"
    for seconds in (1, 10, 100):  # A busy machine may need longer to start the child.
        assert not chromium.run(chromium.Step(["sh", "-c", script], seconds))
        assert f"did not end in {seconds} s" in capsys.readouterr().out
        if note.exists():
            break
    child = int(note.read_text())

    def is_gone():
        # There may be no process that waits for an orphan: a zombie has ended.
        return not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE

    wait_until(is_gone, "the end of what it started", 20)


def test_a_step_reports_how_it_ended(capsys):
    assert chromium.run(chromium.Step(["true"], 20))
    assert not chromium.run(chromium.Step(["false"], 20))
    assert not chromium.run(chromium.Step(["no-such-command-of-offramp"], 20))
    assert "can't be started" in capsys.readouterr().out


def test_the_command_reports_what_it_found(empty, monkeypatch, capsys):
    browser(empty / "chromium", "Chromium 9.8.7")
    chromium.main()
    assert capsys.readouterr().out == f"[setup] browser: {empty / 'chromium'} (Chromium 9.8.7)\n"


def test_in_ci_the_command_fails_with_one_sentence(empty, monkeypatch, capsys):
    monkeypatch.setattr(chromium, "ways", list)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(SystemExit) as raised:
        chromium.main()
    assert raised.value.code == SetupError.exit_code
    assert capsys.readouterr().err == f"[setup] {chromium.WHAT_TO_DO}\n"


def test_elsewhere_the_command_reports_that_the_tests_with_a_browser_are_left_out(empty, monkeypatch, capsys):
    monkeypatch.setattr(chromium, "ways", list)
    monkeypatch.delenv("CI", raising=False)
    chromium.main()
    printed = capsys.readouterr()
    assert printed.err == f"[setup] {chromium.WHAT_TO_DO}\n"
    assert printed.out.endswith("[setup] browser: the tests that need a browser are left out\n")
