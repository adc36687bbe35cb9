"""A JupyterLab on the shop's notebooks and a Chromium that reaches nothing but this machine."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from kit.lab.ports import free_ports
from tests.browser import chromium
from tests.notebooks import fleet_site
from tests.notebooks.shop import NOTEBOOKS, ROOT, Shop, ended, register

SCREENSHOTS = ROOT / "build" / "screenshots"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
NO_NAMES = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
ELSEWHERE = re.compile(r"^(?!(https?|wss?)://127\.0\.0\.1[:/]|data:|blob:|file:|about:)")
SETTINGS = {
    # Both would be asked for on the network, the first after a question that lies over the page.
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}
}
START_SECONDS = 90


def pytest_configure(config: pytest.Config) -> None:
    register(config)
    fleet_site.register(config)


@dataclass(frozen=True)
class Jupyter:
    """A running JupyterLab."""

    url: str
    token: str

    def address(self, notebook: str) -> str:
        """Of a notebook by its path below ``notebooks``; what was open before is not opened again."""
        return f"{self.url}/lab/tree/{notebook}?token={self.token}&reset"

    def keep(self, notebook: str, *cells: str) -> None:
        """Write a notebook of these cells."""
        code = [nbformat.v4.new_code_cell(cell) for cell in cells]
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}  # Without it JupyterLab asks for one.
        source = nbformat.v4.new_notebook(cells=code, metadata=kernel)
        body = json.dumps({"type": "notebook", "format": "json", "content": source}).encode()
        headers = {"Authorization": f"token {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/contents/{notebook}", body, headers, method="PUT")
        urllib.request.urlopen(request, timeout=5).close()

    def answers(self) -> bool:
        request = urllib.request.Request(f"{self.url}/api/status", headers={"Authorization": f"token {self.token}"})
        try:
            with urllib.request.urlopen(request, timeout=5) as response:
                return response.status == 200
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


@dataclass
class Tab:
    """A page that can't leave this machine, and every address elsewhere that it asked for."""

    page: Page
    elsewhere: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def jupyter(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    """JupyterLab on a copy of the notebooks, with settings of its own."""
    home = tmp_path_factory.mktemp("jupyter")
    shutil.copytree(NOTEBOOKS, home / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints", "runs"))
    settings = home / "config" / "labconfig" / "default_setting_overrides.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps(SETTINGS), encoding="utf-8")
    (port,) = free_ports(1)
    running = Jupyter(f"http://127.0.0.1:{port}", secrets.token_hex(16))
    with ended(shop.start("jupyter", command(port, home / "notebooks"), environment(home, running.token))) as server:
        server.wait_until(running.answers, "its first answer", START_SECONDS)
        yield running


def command(port: int, notebooks: Path) -> list[str]:
    settings = {"ip": "127.0.0.1", "port": port, "port_retries": 0, "root_dir": notebooks, "open_browser": False}
    options = [f"--ServerApp.{name}={value}" for name, value in settings.items()]
    return [sys.executable, "-m", "jupyterlab", "--allow-root", "--expose-app-in-browser", *options]


def environment(home: Path, token: str) -> dict[str, str]:
    folders = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime"}
    own = {name: str(home / folder) for name, folder in {**folders, "IPYTHONDIR": "ipython"}.items()}
    return {**own, "JUPYTER_TOKEN": token}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium.find()
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=[*FLAGS, NO_NAMES])
        try:
            yield running
        finally:
            running.close()


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    """One page in a profile of its own; what it asks of other machines is noted and refused."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    try:
        opened = Tab(context.new_page())
        context.route(ELSEWHERE, lambda route: (opened.elsewhere.append(route.request.url), route.abort()))
        opened.page.on("websocket", lambda socket: opened.elsewhere.extend(filter(ELSEWHERE.match, [socket.url])))
        yield opened
    finally:
        context.close()
