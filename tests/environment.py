"""``environment.yml`` from ``requirements.lock``: the direct dependencies with the versions of the lock.

``python -m tests.environment`` writes it; a test compares.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = ROOT / "environment.yml"
_HEAD = """# For conda users: the direct dependencies with the versions of requirements.lock. Written by `make lock`.
#   conda env create -f environment.yml && conda activate offramp && pip install --no-deps -e .
# Not tried: the tests have no conda; `make` and tests/browser/test_wheel.py install requirements.lock with pip and uv.
name: offramp
channels:
  - conda-forge
dependencies:
  - python=3.11
  - openjdk=17
  - make
  - pip
  - pip:
"""


def render() -> str:
    """The text of ``environment.yml``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    pins = locked()
    lines = []
    for requirement in sorted(wanted):
        name, extras = re.match(r"([A-Za-z0-9._-]+)(\[[^]]*\])?", requirement).groups()
        lines.append(f"      - {name}{extras or ''}=={pins[name.lower().replace('_', '-')]}\n")
    return _HEAD + "".join(lines)


def locked() -> dict[str, str]:
    """Version by package name in ``requirements.lock``, for the Python of ``environment.yml``."""
    pins = {}
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        found = re.match(r"([a-z0-9._-]+)(?:\[[^]]*\])?==([^ ;]+)", line)
        if found:
            pins.setdefault(found[1], found[2])
    return pins


if __name__ == "__main__":
    FILE.write_text(render())
