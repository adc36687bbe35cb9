"""The report on all groups of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from kit.clients.cluster import connect
from kit.errors import InputError
from kit.groups.chosen import hidden_topics
from kit.groups.read.rights import fetch_unseen_groups
from kit.presentation.report import Report, forget_older, new_folder, run_notebook
from kit.profile import Profile
from kit.text.quantity import quantity
from kit.text.visible import file_name


def run_report(
    profile: Profile,
    output: Path,
    groups: str,
    history: str = "",
    say: Callable[[str], None] = lambda text: None,
    keep: int | None = None,
) -> Report:
    """Run the notebook ``report/groups.ipynb`` of this release for one cluster into a new folder under ``output``.

    The page lies under a fixed name too, ``<output>/report-<cluster>.html``.

    Args:
        history: a folder or URL that Spark can write to; by default ``<output>/history``.
        keep: how many folders of this cluster's reports stay, this one included; None: all. The history stays whole.

    Raises:
        OfframpError: as the notebook did; what ran until then is in the notebook named in the message.
        InputError: ``output`` can't be written, or ``keep`` is less than 1.
    """
    if keep is not None and keep < 1:
        raise InputError(f"{quantity(keep, 'report')} can't be kept. Give --keep 1 or more: the new report is kept")
    with connect(profile, is_patient=False) as cluster:
        say(f"reporting on {cluster.name} ({cluster.cluster_id})")
        for line in filter(None, [*hidden_topics(cluster), fetch_unseen_groups(cluster.broker_client)]):
            say(line)
    name = file_name(profile.name)
    folder = new_folder(output.absolute(), name, datetime.now(UTC))
    kept_in = history if "://" in history else str(Path(history).absolute() if history else folder.parent / "history")
    parameters = {"profile": profile.name, "profile_file": str(profile.file), "groups": groups, "history": kept_in}
    say("running the notebook: starting Spark, reading, analysing …")
    title = f"{profile.name}: consumer groups"
    made = run_notebook("groups.ipynb", folder, parameters, title, f"report-{name}.html")
    if keep is not None:
        forget_older(folder, keep)
    return made
