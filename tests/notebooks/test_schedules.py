"""The schedules of two pages, ``docs/report.md`` and ``docs/history.md``, with as little as a scheduler gives them.

Each line of the pages is read here, and cron's line for a report is run; ``make soak`` runs all.
"""

from __future__ import annotations

import ast
import configparser
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import papermill
import pytest

from kit.lab import Lab
from kit.lab.lab import QUICK_SPARK
from tests.generators import health_history
from tests.notebooks.executed import NOTEBOOKS, ROOT
from tests.soak import IS_SOAK, soak_only

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("schedules")]

PAGE = (ROOT / "docs/report.md").read_text(encoding="utf-8")
OF_HISTORY = (ROOT / "docs/history.md").read_text(encoding="utf-8")
PROFILE = f'[clusters.lab]\nbootstrap_servers = "127.0.0.1:1"\n{QUICK_SPARK}'
CRON = {"PATH": "/usr/bin:/bin", "SHELL": "/bin/sh"}
"""The variables that cron gives a command, beside HOME and LOGNAME."""
SYSTEMD = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


def block(language: str, first: str) -> str:
    found = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if text.startswith(first)]
    assert len(found) == 1, f"{len(found)} blocks of {language} begin with {first!r}"
    return found[0]


def units() -> dict[str, str]:
    parts = re.split(r"^# /etc/systemd/system/(\S+)\n", block("ini", "# /etc"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.fixture(scope="module")
def secured():
    """A cluster that answers nobody without a password."""
    with Lab(secured=True) as lab:
        lab.create_topic("payments", 1)  # of which the lab's own group has an offset
        lab.produce("payments", 10)
        yield lab


@pytest.fixture
def site(secured, tmp_path):
    """Make the content of /srv/offramp: a profile that needs secrets, the secrets, and offramp."""
    (tmp_path / "offramp.toml").write_text(secured.profile_toml(), encoding="utf-8")
    lines = (f"{name}={shlex.quote(value)}\n" for name, value in secured.secrets.items())
    (tmp_path / "secrets.env").write_text("".join(lines), encoding="utf-8")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/bin").symlink_to(Path(sys.executable).parent)
    return tmp_path


def done(site: Path, command: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    home = {"HOME": str(site), "LOGNAME": "offramp"}
    return subprocess.run(
        ["/bin/sh", "-c", command], cwd=site, env=environment | home, capture_output=True, text=True, check=False
    )


def ran(site: Path, command: str, environment: dict[str, str]) -> None:
    ended = done(site, command, environment)
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"


def crons_command(site: Path) -> str:
    line = block("crontab", "").strip()
    fields = re.fullmatch(r"15 6 \* \* \*\s+(.*)", line)
    assert fields is not None, line
    assert "%" not in fields[1], "cron would end the line there"
    return f"cd / && {fields[1].replace('/srv/offramp', str(site))}"


@soak_only
def test_crons_line_leaves_a_report(site):
    ran(site, crons_command(site), CRON)
    assert (site / "reports/report-lab.html").stat().st_size > 10_000
    assert "newest" in (site / "report.log").read_text(encoding="utf-8")


def commands_of_history() -> list[str]:
    (lines,) = re.findall(r"```crontab\n(.*?)```", OF_HISTORY, re.DOTALL)
    found = [re.fullmatch(r"(?:[\d*]+\s+){5}(cd /srv/offramp && [^%]*)", line) for line in lines.splitlines()]
    assert all(found), lines  # At a "%" cron would end the line.
    return [each[1] for each in found if each]


def test_crons_lines_of_a_history_are_whole():
    verbs = [re.search(r"offramp (history )?(\w+)", each) for each in commands_of_history()]
    assert {each[2] for each in verbs if each} >= {"hours", "compact", "expire", "report"}


@soak_only
def test_crons_lines_keep_a_history_small_and_leave_a_report(tmp_path):
    (tmp_path / "offramp.toml").write_text(PROFILE, encoding="utf-8")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/bin").symlink_to(Path(sys.executable).parent)
    lake = tmp_path / "lake/kafka"
    health_history.write(lake, 120, {("steady", "kafka"): lambda minute: 100 * minute})
    for command in commands_of_history():
        ran(tmp_path, command.replace("/srv/offramp", str(tmp_path)).replace("--days 90", "--days 36500"), CRON)
    log = (tmp_path / "history.log").read_text(encoding="utf-8")
    for told in ("2 hours", "snapshots: ", "Nothing is older", "newest"):
        assert told in log, log
    assert len(list(lake.glob("hours/date=*/hour=*/looks=*"))) == 3
    assert list(lake.glob("days/snapshots/date=*/part=*"))
    assert (tmp_path / "reports/health-lab.html").stat().st_size > 10_000


def test_crons_line_needs_the_secrets(site, secured):
    """Without them it leaves no report, and its log names what is missing."""
    (site / "secrets.env").write_text("", encoding="utf-8")
    assert done(site, crons_command(site), CRON).returncode != 0
    told = (site / "report.log").read_text(encoding="utf-8")
    assert any(name in told for name in secured.secrets), told
    assert not list(site.glob("reports/*.html"))


def test_systemds_units_are_whole_and_their_command_leaves_a_report(site, secured):
    texts = {name: text.replace("/srv/offramp", str(site)) for name, text in units().items()}
    assert set(texts) == {"offramp-report.service", "offramp-report.timer"}
    parsed = {name: configparser.ConfigParser(interpolation=None) for name in texts}
    for name, text in texts.items():
        parsed[name].optionxform = str
        parsed[name].read_string(text)
        (site / name).write_text(text, encoding="utf-8")
    service = parsed["offramp-report.service"]["Service"]
    assert Path(service["EnvironmentFile"]).is_file()
    assert service["WorkingDirectory"] == str(site)
    if verify := shutil.which("systemd-analyze"):
        files = [str(site / name) for name in texts]
        told = subprocess.run([verify, "verify", *files], capture_output=True, text=True, check=False)
        assert (told.returncode, str(site) in told.stderr) == (0, False), told.stderr
    if IS_SOAK:
        ran(site, service["ExecStart"], SYSTEMD | secured.secrets)
        assert (site / "reports/report-lab.html").is_file()


@soak_only
def test_papermills_lines_leave_a_notebook_and_a_history(site, secured):
    lines = block("sh", "offramp notebooks").replace("production", "lab")
    ran(site, f"set -e\n{lines}", CRON | secured.secrets | {"PATH": f"{site / '.venv/bin'}:{CRON['PATH']}"})
    assert (site / "reports/today.ipynb").is_file()
    assert (site / "reports/history/snapshots").is_dir()


def test_airflows_operator_calls_papermill_with_parameters_that_the_notebook_has(site, secured, monkeypatch):
    """The operator hands its arguments to ``papermill.execute_notebook``."""
    calls = [node for node in ast.walk(ast.parse(block("python", "from datetime"))) if isinstance(node, ast.Call)]
    (operator,) = (call for call in calls if getattr(call.func, "id", "") == "PapermillOperator")
    given = {each.arg: ast.literal_eval(each.value) for each in operator.keywords}
    source = NOTEBOOKS / given["input_nb"].removeprefix("/srv/offramp/notebooks/")
    parameters = {name: value.replace("/srv/offramp", str(site)) for name, value in given["parameters"].items()}
    assert parameters.keys() <= papermill.inspect_notebook(source).keys()
    for name, secret in secured.secrets.items():
        monkeypatch.setenv(name, secret)
    if IS_SOAK:
        output = site / "out.ipynb"
        papermill.execute_notebook(
            source, output, parameters | {"profile": "lab"}, language=given["language_name"], progress_bar=False
        )
        assert output.is_file()
