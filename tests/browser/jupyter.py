"""A JupyterLab in a folder of its own: its notebooks, its settings, its address."""

from __future__ import annotations

import json
import secrets
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbformat

from kit.lab import Lab
from kit.lab.ports import free_ports
from tests.notebooks.process_tree import ended

SETTINGS = {
    # Both would be asked for on the network, the first after a question that lies over the page.
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    # A notebook that is opened again would show the outputs that were saved before, as if they were new ones.
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
}
FOLDERS = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime"}
START_SECONDS = 180
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}}
"""Without it JupyterLab asks which kernel a notebook is for."""


@dataclass(frozen=True)
class Jupyter:
    """A JupyterLab in the folder ``home``, at work or not yet."""

    home: Path
    port: int
    token: str

    @classmethod
    def in_folder(cls, home: Path) -> Jupyter:
        """Choose a port and a token, and write the settings. ``notebooks`` is there then."""
        settings = home / FOLDERS["JUPYTER_CONFIG_DIR"] / "labconfig" / "default_setting_overrides.json"
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps(SETTINGS), encoding="utf-8")
        (home / "notebooks").mkdir(exist_ok=True)
        return cls(home, free_ports(1)[0], secrets.token_hex(16))

    @property
    def notebooks(self) -> Path:
        return self.home / "notebooks"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self, python: str = sys.executable) -> list[str]:
        settings = {"ip": "127.0.0.1", "port": self.port, "port_retries": 0, "open_browser": False}
        options = [f"--ServerApp.{name}={value}" for name, value in settings.items()]
        root = f"--ServerApp.root_dir={self.notebooks}"
        return [python, "-m", "jupyterlab", "--allow-root", "--expose-app-in-browser", *options, root]

    @property
    def environment(self) -> dict[str, str]:
        """Variables that name nothing but its own folders."""
        own = {name: str(self.home / folder) for name, folder in {**FOLDERS, "IPYTHONDIR": "ipython"}.items()}
        return {**own, "JUPYTER_TOKEN": self.token}

    def address(self, notebook: str) -> str:
        """Return the address of a notebook by its path below ``notebooks``; what was open before is not opened
        again.
        """
        return f"{self.url}/lab/tree/{notebook}?token={self.token}&reset"

    def keep(self, notebook: str, *cells: str) -> None:
        """Write a notebook of these cells."""
        code = [nbformat.v4.new_code_cell(cell) for cell in cells]
        nbformat.write(nbformat.v4.new_notebook(cells=code, metadata=KERNEL), self.notebooks / notebook)

    def answers(self) -> bool:
        request = urllib.request.Request(f"{self.url}/api/status", headers={"Authorization": f"token {self.token}"})
        try:
            with urllib.request.urlopen(request, timeout=5) as response:
                return response.status == 200
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


@contextmanager
def jupyter_lab(lab: Lab, home: Path, environment: Mapping[str, str] | None = None) -> Iterator[Jupyter]:
    """A JupyterLab beside a lab, on the notebooks in ``home / "notebooks"``; its kernels end with the block."""
    jupyter = Jupyter.in_folder(home)
    variables = {**jupyter.environment, **(environment or {})}
    with ended(lab.supervisor.start("jupyter", jupyter.command(), variables)) as server:
        server.wait_until(jupyter.answers, "its first answer", START_SECONDS)
        yield jupyter
