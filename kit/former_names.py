"""Modules by the names that notebooks imported before 1.0: they continue working for one release.

The one list of them. A module that was moved is added here if a notebook of users may import it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

FORMER_NAMES = {
    "kit.analyze.known_sum": "kit.text.known_sum",
    "kit.analyze.metadata.soak": "kit.kraft.analyze.soak",
    "kit.cluster": "kit.clients.cluster",
    "kit.kraft_watch": "kit.kraft.watch",
    "kit.live": "kit.health.live",
    "kit.metadata_file": "kit.kraft.metadata_file",
    "kit.migrate.evidence": "kit.operations.evidence",
    "kit.migrate.frames": "kit.operations.frames",
    "kit.migrate.kraft.rehearsals": "kit.kraft.move.rehearsals",
    "kit.migrate.offsets.changes": "kit.moves.offsets.changes",
    "kit.migrate.offsets.delete_groups": "kit.moves.offsets.delete_groups",
    "kit.migrate.operations": "kit.operations.operations",
    "kit.migrate.rendering.text": "kit.engine.rendering.text",
    "kit.offsets_topic": "kit.rebalances.offsets_topic",
    "kit.preflight": "kit.kraft.preflight",
    "kit.rehearsal": "kit.kraft.rehearsal",
    "kit.report": "kit.groups.report",
    "kit.settings_files": "kit.kraft.settings_files",
    "kit.show.brackets": "kit.health.show.brackets",
    "kit.show.brief": "kit.groups.show.brief",
    "kit.show.charts": "kit.groups.show.charts",
    "kit.show.display": "kit.groups.show.display",
    "kit.show.health_brief": "kit.health.show.health_brief",
    "kit.show.health_charts": "kit.health.show.health_charts",
    "kit.show.idle_charts": "kit.health.show.idle_charts",
    "kit.show.kraft_brief": "kit.kraft.show.kraft_brief",
    "kit.show.kraft_charts": "kit.kraft.show.kraft_charts",
    "kit.show.rebalance_charts": "kit.rebalances.show.rebalance_charts",
    "kit.show.searchable": "kit.groups.show.searchable",
    "kit.show.sparkline": "kit.groups.show.sparkline",
    "kit.snapshot": "kit.groups.snapshot",
    "kit.views": "kit.groups.views",
    "kit.zookeeper_files": "kit.kraft.zookeeper_history",
}
"""Name before → name now."""
_PACKAGES = {
    "kit.analyze.metadata",
    "kit.migrate",
    "kit.migrate.kraft",
    "kit.migrate.offsets",
    "kit.migrate.rendering",
    "kit.show",
}
"""Folders that are no more: nothing is in them but the former names."""


def install() -> None:
    """Let ``import`` find the modules by their former names."""
    if not any(isinstance(each, _FormerNames) for each in sys.meta_path):
        sys.meta_path.insert(0, _FormerNames())


class _FormerNames(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in FORMER_NAMES or fullname in _PACKAGES:
            return ModuleSpec(fullname, self, is_package=fullname in _PACKAGES)
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module itself in the place of the one that the import made: there is one of it, not two."""
        if module.__name__ in FORMER_NAMES:
            sys.modules[module.__name__] = import_module(FORMER_NAMES[module.__name__])
