"""The report on the health of the groups of a history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from kit.errors import PartialRead
from kit.presentation.report import Report, new_folder, run_notebook
from kit.profile import Profile
from kit.text.visible import file_name


@dataclass(frozen=True)
class HealthTargets:
    """The targets of ``report/health.ipynb``: see its parameters. ``holes``: topics, a line each."""

    hours: float = 24.0
    target_lag: int = 1000
    target_age_s: float = 0.0
    silence_min: float = 30.0
    every_min: float = 1.0
    holes: str = ""


def run_health_report(
    profile: Profile,
    history: str,
    output: Path,
    targets: HealthTargets,
    logs: Sequence[str] = (),
    zone: str = "",
    at: Callable[[str], None] = lambda place: None,
) -> Report:
    """Run the notebook ``report/health.ipynb`` over a history into a new folder under ``output``.

    The page lies under a fixed name too, ``<output>/health-<cluster>.html``. No cluster is asked.

    Args:
        logs: of the groups' consumers: files, folders or patterns. ``zone``: of times that don't say theirs.
        at: is reported which cell of the notebook begins.

    Raises:
        PartialRead: the newest snapshot could not read something; the report is made all the same.
        OfframpError: as the notebook did; what ran until then is in the notebook named in the message.
        InputError: ``output`` can't be written.
    """
    name = f"health-{file_name(profile.name)}"
    folder = new_folder(output.absolute(), name, datetime.now(UTC))
    parameters: dict[str, str | float] = {
        "history": history if "://" in history else str(Path(history).absolute()),
        "profile": profile.name,
        "profile_file": str(profile.file),
        "logs": "\n".join(str(Path(each).absolute()) for each in logs),
        "zone": zone,
        **asdict(targets),
    }
    title = f"{profile.name}: health of the groups"
    return run_notebook("health.ipynb", folder, parameters, title, f"{name}.html", at, made_anyway=(PartialRead,))
