"""The wheel in an empty environment outside the checkout: verbs, report, a dry runbook, a wizard in a browser."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import expect
from uv import find_uv_bin

from kit.lab.process import wait_until
from kit.spark.java import cache_folder
from tests.browser.jupyter import START_SECONDS, Jupyter
from tests.browser.notebook_page import RUN_MS, NotebookPage
from tests.notebooks.executed import ROOT
from tests.notebooks.process_tree import end_all
from tests.soak import soak_only

pytestmark = pytest.mark.timeout(900)
GROUP = "checkout"
QUICK = ("--config-settings-package", "pyspark:--build-option=--compression=stored")
"""The options by which the Makefile installs pyspark: uv has kept the wheel that it built then. An index may make
it build a new one.
"""


@dataclass(frozen=True)
class Installed:
    """``home``: a folder with nothing of the checkout; ``env``: variables that name nothing of it either."""

    home: Path
    env: dict[str, str]

    def program(self, name: str) -> str:
        return str(self.home / "env" / "bin" / name)

    def run(self, program: str, *words: str | Path) -> str:
        """Its standard output; it must end well."""
        ended = subprocess.run(
            [self.program(program), *map(str, words)],
            cwd=self.home,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=400,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Installed:
    home = tmp_path_factory.mktemp("wheel")
    build(home)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "OFFRAMP", "VIRTUAL"))}
    return Installed(home, {**kept, "OFFRAMP_CACHE": str(own_cache(home)), "COLUMNS": "200"})


def build(home: Path) -> None:
    """By way of the source archive, so that nothing which an earlier build left in the checkout gets in."""
    python = home / "env" / "bin" / "python"
    install = ("pip", "install", "--quiet", "--python", python)
    uv("build", "--quiet", "--no-build-isolation", "--python", sys.executable, "--out-dir", home / "dist", ROOT)
    (wheel,) = (home / "dist").glob("*.whl")
    uv("venv", "--quiet", "--python", sys.executable, home / "env")
    locked = (*install, *QUICK, "--require-hashes", "--requirements", ROOT / "requirements.lock")
    if not uv_succeeds("--offline", *locked):
        uv(*locked)
    uv(*install, "--no-deps", wheel)


def uv_succeeds(*words: str | Path) -> bool:
    return _run_uv(*words).returncode == 0


def uv(*words: str | Path) -> None:
    ended = _run_uv(*words)
    assert ended.returncode == 0, ended.stderr


def _run_uv(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([find_uv_bin(), *map(str, words)], cwd=ROOT, capture_output=True, text=True, timeout=500)


def own_cache(home: Path) -> Path:
    """With the jars that are there, and no lab but this test's."""
    folder = home / "cache"
    folder.mkdir()
    for each in cache_folder().iterdir():
        if each.name != "lab":
            (folder / each.name).symlink_to(each)
    return folder


@pytest.fixture(scope="module")
def lab(installed) -> Iterator[Installed]:
    installed.run("offramp", "lab", "up")
    try:
        installed.env["OFFRAMP_PROFILE_FILE"] = installed.run("offramp", "lab", "profile").strip()
        yield installed
    finally:
        installed.run("offramp", "lab", "down")


@pytest.fixture(scope="module")
def notebooks(installed) -> Path:
    installed.run("offramp", "notebooks", "work")
    return installed.home / "work"


def test_nothing_comes_from_the_checkout(installed, notebooks):
    where = installed.run("python", "-c", "import kit, widgets; print(kit.__file__, widgets.__file__)").split()
    assert [Path(each).is_relative_to(installed.home / "env") for each in where] == [True, True]
    exported = Path(where[0]).parent / "health/export"
    assert {path.name for path in exported.iterdir()} >= {"alerts.yml", "dashboard.json"}
    names = {str(path.relative_to(notebooks)) for path in notebooks.glob("*/*.ipynb")}
    assert names == {str(path.relative_to(ROOT / "notebooks")) for path in (ROOT / "notebooks").glob("*/*.ipynb")}


def test_the_wheel_has_the_version_of_its_build_and_reports_its_packages(installed):
    (wheel,) = (installed.home / "dist").glob("*.whl")
    told = installed.run("offramp", "--version").split()[1]
    assert wheel.name.split("-")[1] == told
    assert not told.startswith("0.0.0")
    assert installed.run("python", "-c", PACKAGES).split() == ["kit", "widgets"]


PACKAGES = "from importlib.metadata import distribution as d; print(d('offramp').read_text('top_level.txt'))"


LICENCE = "from importlib.metadata import distribution as d; print(*(d('offramp').read_text(n) for n in {}), sep='')"


def test_the_wheel_carries_the_licence_and_the_notice(installed):
    names = ["licenses/LICENSE", "licenses/NOTICE"]
    files = [ROOT / "LICENSE", ROOT / "NOTICE"]
    carried = installed.run("python", "-c", LICENCE.format(names))
    assert carried.rstrip("\n") == "".join(each.read_text(encoding="utf-8") for each in files).rstrip("\n")


@soak_only
def test_groups_and_rebalances(lab):
    groups = {row["group_id"]: row for row in json.loads(lab.run("offramp", "groups", "--json"))}
    assert groups[GROUP]["stage"] == "OZKCC"
    logs = Path(lab.env["OFFRAMP_PROFILE_FILE"]).parent / "ops-console-*.log"
    assert "Group ops-console" in lab.run("offramp", "rebalances", logs, "--zone", "UTC")


@soak_only
def test_the_report(lab):
    told = dict(line.split(maxsplit=1) for line in lab.run("offramp", "report", "--output", "reports").splitlines())
    page = Path(told["report"]).read_text(encoding="utf-8")
    assert GROUP in page
    assert "<svg" in page


def test_a_dry_runbook_by_papermill(lab, notebooks):
    source, target = notebooks / "runbook" / "migrate_group.ipynb", lab.home / "dry.ipynb"
    lab.run("papermill", "--cwd", lab.home, source, target, "-p", "group_id", GROUP, "-p", "min_stable_s", "0")
    cells = json.loads(target.read_text(encoding="utf-8"))["cells"]
    last = "".join("".join(each.get("text", "")) for each in cells[-1]["outputs"])
    assert "dry run" in last.lower(), last


@soak_only
def test_a_wizard_in_a_browser(lab, notebooks, tab):
    jupyter = Jupyter.in_folder(lab.home / "jupyter")
    source, target = notebooks / "runbook" / "migrate_group.ipynb", jupyter.notebooks / "wizard.ipynb"
    lab.run("papermill", "--prepare-only", source, target, "-p", "group_id", GROUP)
    words, own = jupyter.command(lab.program("python")), {**lab.env, **jupyter.environment}
    with (lab.home / "jupyter.log").open("wb") as log:
        server = subprocess.Popen(words, cwd=lab.home, env=own, stdout=log, stderr=log)
    try:
        wait_until(jupyter.answers, f"the first answer of JupyterLab, whose log is {log.name},", START_SECONDS)
        notebook = NotebookPage(tab.page)
        notebook.open(jupyter.address("wizard.ipynb"))
        notebook.start_all()
        wizard = tab.page.locator(".offramp")
        make = wizard.get_by_role("button", name="Make the plan", exact=True)
        expect(make.or_(notebook.errors).first).to_be_visible(timeout=RUN_MS)
        assert notebook.errors.all_inner_texts() == []
        assert tab.elsewhere == []
    finally:
        end(server)


def end(server: subprocess.Popen[bytes]) -> None:
    """With the kernels that it started."""
    started = psutil.Process(server.pid).children(recursive=True)
    server.terminate()
    end_all([psutil.Process(server.pid), *started], 30)
