"""The pictures of README and docs, made new: ``make pictures`` starts the demo's lab and opens its pages in a browser.

Each page is taken in a light and in a dark theme. Examine them before you commit them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page

from kit.engine.model.record import REPORT, list_runs
from kit.groups.report import run_report
from kit.groups.show import charts
from kit.lab import Lab, fleet, scenario
from kit.lab.members.handles import Consumer
from kit.lab.members.java import JavaMember, launch
from kit.lab.process import wait_until
from kit.profile import load_profile
from kit.rebalances.show import rebalance_charts
from kit.rebalances.sources import read_rebalances
from tests.browser.jupyter import Jupyter, jupyter_lab
from tests.browser.notebook_page import NotebookPage
from tests.browser.offline import launched
from tests.browser.wizard import Wizard
from tests.notebooks.executed import ROOT, fill_in

PICTURES = ROOT / "docs" / "pictures"
THEMES = ("light", "dark")
REPORT_SIZE = {"width": 1060, "height": 1500}
EVIDENCE_SIZE = {"width": 1060, "height": 900}
STORY = "order-mails"
"""The group of the timeline, beside the demo's fleet."""


def main() -> None:
    """Make every picture."""
    PICTURES.mkdir(exist_ok=True)
    with lab_with_fleet() as (lab, home), launched() as running:
        say("the story of a rebalance")
        timeline(running, rebalanced(lab))
        say("two reports")
        profile = load_profile(file=profile_file(lab))
        for _ in range(2):
            made = run_report(profile, home / "reports", ".*")
        of_page(running, made.latest, "report", REPORT_SIZE)
        say("a wizard that moves a group, and the run's evidence")
        with jupyter_lab(lab, home / "jupyter") as server:
            wizard(running, server, profile_file(lab))
        runs = profile_file(lab).parent / "runs"
        of_page(running, runs / list_runs(runs)[-1].run_id / REPORT, "evidence", EVIDENCE_SIZE)


def say(text: str) -> None:
    print(f"[pictures] {text}", flush=True)


@contextmanager
def lab_with_fleet() -> Iterator[tuple[Lab, Path]]:
    """The demo's lab, and a folder for what is made."""
    say("starting the lab, about half a minute")
    racks = [scenario.RACKS[number % len(scenario.RACKS)] for number in range(scenario.BROKERS)]
    with TemporaryDirectory(prefix="offramp-pictures-") as home, Lab(scenario.BROKERS, racks) as lab:
        scenario.start(lab)
        profile_file(lab).write_text(lab.profile_toml(), encoding="utf-8")
        yield lab, Path(home)


def profile_file(lab: Lab) -> Path:
    return lab.folder / "offramp.toml"


def rebalanced(lab: Lab) -> list[Path]:
    """The logs of three members: a second one comes and goes, then a third one."""
    first = member(lab, "a")
    for name in ("b", "c"):
        other = member(lab, name)
        wait_until(lambda: len(first.partitions()) == fleet.TOPICS["orders"] // 2, "both to share the topic", 60)
        other.stop()
        wait_until(lambda: len(first.partitions()) == fleet.TOPICS["orders"], "one to have all partitions", 60)
    return sorted(lab.folder.glob(f"{STORY}-*.log"))


def member(lab: Lab, name: str) -> Consumer:
    wanted = JavaMember(STORY, ("orders",), f"{STORY}-{name}", "3.9.1", "kafka")
    started = launch(lab.supervisor, lab.servers.addresses(), wanted)
    started.await_ready()
    return started


def timeline(running: Browser, logs: list[Path]) -> None:
    """Charts are on white in either theme."""
    told = read_rebalances(None, [str(log) for log in logs], group_id=STORY)
    with page(running, "light", {"width": 1100, "height": 600}) as shown:
        shown.set_content(charts.svg(rebalance_charts.rebalance_timeline(told.spans)))
        shown.locator("svg").first.screenshot(path=PICTURES / "timeline.png")


def of_page(running: Browser, file: Path, name: str, size: dict[str, int]) -> None:
    """The upper part of a page."""
    for theme in THEMES:
        with page(running, theme, size) as shown:
            shown.goto(file.as_uri())
            shown.screenshot(path=PICTURES / f"{name}-{theme}.png")


def wizard(running: Browser, server: Jupyter, profile: Path) -> None:
    """One stage forward, and the wizard afterwards."""
    given = {"profile_file": str(profile), "group_id": fleet.MIGRATED.group, "soak_s": 30.0, "min_stable_s": 0.0}
    fill_in("runbook/migrate_group", server.notebooks / "migrate.ipynb", **given)
    with page(running, "light", {"width": 1500, "height": 2400}) as shown:
        notebook, of_group = NotebookPage(shown), Wizard(shown)
        notebook.open(server.address("migrate.ipynb"))
        notebook.run_all("nothing was changed")
        of_group.approve(fleet.MIGRATED.group)
        of_group.carry_out()
        for theme in THEMES:
            notebook.use_theme(f"JupyterLab {theme.capitalize()}", theme == "light")
            of_group.all.screenshot(path=PICTURES / f"wizard-{theme}.png")
        notebook.use_theme("JupyterLab Light", True)


@contextmanager
def page(running: Browser, theme: str, size: dict[str, int]) -> Iterator[Page]:
    context = running.new_context(viewport=size, color_scheme=theme)  # type: ignore[arg-type]
    try:
        yield context.new_page()
    finally:
        context.close()


if __name__ == "__main__":
    main()
