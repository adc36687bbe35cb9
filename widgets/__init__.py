"""Wizards for JupyterLab over ``kit.migrate``, and the models behind them, which need no widget.

    import widgets

    widgets.migrate("production", "shop")                      # the wizard
    migration = widgets.open_group("production", "shop")       # its model, for cells
    widgets.wizard(migration)                                  # a view of that model

Nothing else is imported before one of these is called.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kit.profile import Profile
    from widgets.group_migration import GroupMigration
    from widgets.group_wizard import GroupWizard

__all__ = ["migrate", "open_group", "wizard"]

_opened: list[GroupMigration] = []


def open_group(
    profile: Profile | str | None, group_id: str, runs: Path | str = "", cluster_id: str = ""
) -> GroupMigration:
    """The model of one group's migration, connected. One of this group that was opened here before watches no more.

    Args:
        runs: the folder of plans and evidence; empty: ``runs`` beside ``offramp.toml``.
        cluster_id: the cluster that must answer; empty: the one of the profile.

    Raises:
        InputError, NotFound: no group is named, or there is none of that name.
        ProfileError, ConnectError, WrongCluster, ReadError: the cluster can't be used.
    """
    from widgets.connection import Connection
    from widgets.group_migration import GroupMigration

    connection = Connection(profile, runs, cluster_id)
    try:
        migration = GroupMigration(connection.desk, connection.look, group_id, connection.close)
    except BaseException:
        connection.close()
        raise
    for earlier in _opened:  # A cell that is run again must not leave a thread behind each time.
        if (earlier.cluster_id, earlier.group_id) == (migration.cluster_id, group_id):
            earlier.stop_watching()
    _opened.append(migration)
    return migration


def wizard(migration: GroupMigration) -> GroupWizard:
    """A view of a model; it watches the group until ``migration.close()``."""
    from widgets.group_wizard import GroupWizard

    return GroupWizard(migration)


def migrate(profile: Profile | str | None, group_id: str, runs: Path | str = "", cluster_id: str = "") -> GroupWizard:
    """The wizard that moves one group; see :func:`open_group`."""
    return wizard(open_group(profile, group_id, runs, cluster_id))
