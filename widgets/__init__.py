"""Wizards for JupyterLab over ``kit.moves``, a monitor, and the models behind them, which need no widget.

    import widgets

    widgets.migrate("production", "shop")                      # a wizard
    choice = widgets.choose_group("production", "", opened)    # any group; opened(name) makes its model
    widgets.group_picker(choice, widgets.wizard)               # a list to search; then the wizard of the chosen one
    migration = widgets.open_group("production", "shop")       # its model, for cells
    widgets.wizard(migration)                                  # a view of that model
    widgets.toggle_wizard(migration)                           # another one
    widgets.rollback_wizard(migration)
    widgets.toggle_fleet("production")                         # many groups; open_fleet, fleet_wizard
    widgets.move_offsets("production")                         # committed offsets; open_offsets, offsets_wizard
    widgets.kraft_wizard(widgets.open_kraft("production"))     # a cluster, from ZooKeeper to KRaft and back
    widgets.move_protocol("production", "shop")                # to KIP-848 or back; open_protocol, protocol_wizard
    widgets.move_protocols("production")                       # many groups; open_protocol_fleet, protocol_fleet_wizard
    widgets.monitor("production")                              # all groups, poll after poll; it only reads

Nothing else is imported before one of these is called.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import ipywidgets
    import polars as pl

    from kit.clients.cluster import Cluster
    from kit.profile import Profile
    from widgets.fleet.model import FleetToggle
    from widgets.fleet.view import FleetWizard
    from widgets.group.choice import GroupChoice
    from widgets.group.model import GroupMigration
    from widgets.group.picker import GroupPicker
    from widgets.group.view import GroupWizard, RollbackWizard, ToggleWizard
    from widgets.kraft.model import KraftMove
    from widgets.kraft.view import KraftWizard
    from widgets.live.model import Monitor
    from widgets.live.view import MonitorView
    from widgets.offsets.model import OffsetMove
    from widgets.offsets.view import OffsetsWizard
    from widgets.protocol.fleet import ProtocolFleet
    from widgets.protocol.fleet_view import ProtocolFleetWizard
    from widgets.protocol.model import ProtocolMove
    from widgets.protocol.view import ProtocolWizard
    from widgets.run.connection import Connection
    from widgets.run.procedure import Procedure

__all__ = [
    "choose_group", "fleet_wizard", "group_picker", "kraft_wizard", "migrate", "monitor", "move_offsets",
    "move_protocol", "move_protocols", "offsets_wizard", "open_fleet", "open_group", "open_kraft", "open_offsets",
    "open_protocol", "open_protocol_fleet", "protocol_fleet_wizard", "protocol_wizard", "rollback_wizard",
    "toggle_fleet", "toggle_wizard", "wizard",
]  # fmt: skip

Model = TypeVar("Model", bound="Procedure")
_opened: list[Procedure] = []
_monitors: dict[str, Monitor] = {}


def choose_group(
    groups: Profile | str | pl.DataFrame | None, group_id: str, opened: Callable[[str], Any] = lambda name: None
) -> GroupChoice:
    """Return which group to work on, as a model; a named one is chosen, and opened, at once.

    Args:
        groups: the cluster whose groups are listed, or rows of ``kit.views.summary``.
        opened: makes of a group's name what the cells below work with, see ``GroupChoice.opened``.

    Raises:
        ProfileError, ConnectError, WrongCluster, ReadError: the groups can't be listed; or as ``opened``.
    """
    import polars as pl

    from widgets.group.choice import GroupChoice
    from widgets.run.connection import fetch_groups

    return GroupChoice(group_id, lambda: groups if isinstance(groups, pl.DataFrame) else fetch_groups(groups), opened)


def group_picker(choice: GroupChoice, show: Callable[[Any], ipywidgets.Widget] | None = None) -> GroupPicker:
    """A list of groups to search; once one is chosen, ``show`` makes the view that is in its place."""
    from widgets.group.picker import GroupPicker

    return GroupPicker(choice, show)


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
    from widgets.group.model import GroupMigration

    return _open(profile, runs, cluster_id, lambda connection: GroupMigration.connected(connection, group_id))


def wizard(migration: GroupMigration) -> GroupWizard:
    """A view of a model; it watches the group until ``migration.close()``."""
    from widgets.group.view import GroupWizard

    return GroupWizard(migration)


def toggle_wizard(migration: GroupMigration) -> ToggleWizard:
    """A view of a model for the toggle alone."""
    from widgets.group.view import ToggleWizard

    return ToggleWizard(migration)


def rollback_wizard(migration: GroupMigration) -> RollbackWizard:
    """A view of a model for the ways to undo alone."""
    from widgets.group.view import RollbackWizard

    return RollbackWizard(migration)


def migrate(profile: Profile | str | None, group_id: str, runs: Path | str = "", cluster_id: str = "") -> GroupWizard:
    """The wizard that moves one group; see :func:`open_group`."""
    return wizard(open_group(profile, group_id, runs, cluster_id))


def open_offsets(profile: Profile | str | None, runs: Path | str = "", cluster_id: str = "") -> OffsetMove:
    """The model of moving committed offsets, connected; arguments and errors as of :func:`open_group`."""
    from widgets.offsets.model import OffsetMove

    return _open(profile, runs, cluster_id, OffsetMove.connected)


def offsets_wizard(moves: OffsetMove) -> OffsetsWizard:
    """A view of a model; it watches what is selected until ``moves.close()``."""
    from widgets.offsets.view import OffsetsWizard

    return OffsetsWizard(moves)


def move_offsets(profile: Profile | str | None, runs: Path | str = "", cluster_id: str = "") -> OffsetsWizard:
    """The wizard that copies, resets and imports committed offsets; see :func:`open_group`."""
    return offsets_wizard(open_offsets(profile, runs, cluster_id))


def open_fleet(profile: Profile | str | None, runs: Path | str = "", cluster_id: str = "") -> FleetToggle:
    """The model of toggling many groups, connected; arguments and errors as of :func:`open_group`."""
    from widgets.fleet.model import FleetToggle

    return _open(profile, runs, cluster_id, FleetToggle.connected)


def fleet_wizard(fleet: FleetToggle) -> FleetWizard:
    """A view of a model; it watches all groups until ``fleet.close()``."""
    from widgets.fleet.view import FleetWizard

    return FleetWizard(fleet)


def toggle_fleet(profile: Profile | str | None, runs: Path | str = "", cluster_id: str = "") -> FleetWizard:
    """The wizard that toggles many groups; see :func:`open_group`."""
    return fleet_wizard(open_fleet(profile, runs, cluster_id))


def open_kraft(profile: Profile | str | None, runs: Path | str = "", cluster_id: str = "") -> KraftMove:
    """The model of moving a cluster to KRaft and back, connected; arguments and errors as of :func:`open_group`."""
    from widgets.kraft.model import KraftMove

    return _open(profile, runs, cluster_id, KraftMove.connected)


def kraft_wizard(move: KraftMove) -> KraftWizard:
    """A view of a model; it watches the cluster until ``move.close()``."""
    from widgets.kraft.view import KraftWizard

    return KraftWizard(move)


def open_protocol(
    profile: Profile | str | None, group_id: str, runs: Path | str = "", cluster_id: str = ""
) -> ProtocolMove:
    """The model of moving one group to the consumer protocol or back, connected; see :func:`open_group`.

    Raises:
        PlanError: the group is not one of consumers; others as :func:`open_group`.
    """
    from widgets.protocol.model import ProtocolMove

    return _open(profile, runs, cluster_id, lambda connection: ProtocolMove.connected(connection, group_id))


def protocol_wizard(move: ProtocolMove) -> ProtocolWizard:
    """A view of a model; it watches the group until ``move.close()``."""
    from widgets.protocol.view import ProtocolWizard

    return ProtocolWizard(move)


def move_protocol(
    profile: Profile | str | None, group_id: str, runs: Path | str = "", cluster_id: str = ""
) -> ProtocolWizard:
    """The wizard that moves one group to the consumer protocol or back; see :func:`open_protocol`."""
    return protocol_wizard(open_protocol(profile, group_id, runs, cluster_id))


def open_protocol_fleet(profile: Profile | str | None, runs: Path | str = "", cluster_id: str = "") -> ProtocolFleet:
    """The model of moving many groups between protocols, connected; arguments and errors as of :func:`open_group`."""
    from widgets.protocol.fleet import ProtocolFleet

    return _open(profile, runs, cluster_id, ProtocolFleet.connected)


def protocol_fleet_wizard(fleet: ProtocolFleet) -> ProtocolFleetWizard:
    """A view of a model; it watches all groups until ``fleet.close()``."""
    from widgets.protocol.fleet_view import ProtocolFleetWizard

    return ProtocolFleetWizard(fleet)


def move_protocols(profile: Profile | str | None, runs: Path | str = "", cluster_id: str = "") -> ProtocolFleetWizard:
    """The wizard that moves many groups to the consumer protocol or back, in waves; see :func:`open_group`."""
    return protocol_fleet_wizard(open_protocol_fleet(profile, runs, cluster_id))


def monitor(cluster: Cluster | Profile | str | None, groups: str = ".*") -> MonitorView:
    """All groups, poll after poll, groups at risk first; on a connection of its own, until ``model.close()``.

    Another monitor of this cluster that was opened here before stops polling.

    Args:
        groups: a regular expression; only groups whose id matches it as a whole are read.

    Raises:
        InputError: ``groups`` is not a regular expression.
        ProfileError, ConnectError, WrongCluster, ReadError: the cluster can't be used.
    """
    from kit.clients.cluster import Cluster, connect
    from kit.health.live import Polls
    from widgets.live.model import Monitor
    from widgets.live.view import MonitorView

    connected = connect(cluster.profile if isinstance(cluster, Cluster) else cluster or None)
    try:
        model = Monitor(connected.name, Polls(connected, groups), connected.close)
    except BaseException:
        connected.close()
        raise
    if connected.cluster_id in _monitors:
        _monitors[connected.cluster_id].close()
    _monitors[connected.cluster_id] = model
    return MonitorView(model)


def _open(
    profile: Profile | str | None, runs: Path | str, cluster_id: str, made: Callable[[Connection], Model]
) -> Model:
    """A model on connections of its own, which end with it, or now if it can't be made."""
    from widgets.run.connection import Connection

    connection = Connection(profile, runs, cluster_id)
    try:
        model = made(connection)
    except BaseException:
        connection.close()
        raise
    for earlier in _opened:  # A cell that is run again must not leave a thread behind each time.
        if (earlier.cluster_id, earlier.about) == (model.cluster_id, model.about):
            earlier.stop_watching()
    _opened.append(model)
    return model
