"""The report on the soak of a move to KRaft."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from kit.errors import PartialRead, StoresDiffer
from kit.presentation.report import Report, new_folder, run_notebook
from kit.text.visible import file_name


def run_soak_report(history: Path, output: Path, cluster: str, last_hours: float = 0.0) -> Report:
    """Run the notebook ``report/kraft_soak.ipynb`` over the observations of one cluster into a new folder under
    ``output``.

    The page lies under a fixed name too, ``<output>/soak-<cluster>.html``. No cluster is asked.

    Raises:
        StoresDiffer: the last observation shows diverged values; the report is made all the same.
        PartialRead: the last observation was not read; the same.
        OfframpError: as the notebook did; what ran until then is in the notebook named in the message.
        InputError: ``output`` can't be written.
    """
    name = f"soak-{file_name(cluster)}"
    folder = new_folder(output.absolute(), name, datetime.now(UTC))
    parameters: dict[str, str | float] = {
        "history": str(history.absolute()),
        "cluster": cluster,
        "last_hours": last_hours,
    }
    title = f"{cluster}: soak of the move to KRaft"
    return run_notebook(
        "kraft_soak.ipynb", folder, parameters, title, f"{name}.html", made_anyway=(PartialRead, StoresDiffer)
    )
