"""Orders to single nodes of a lab that moves to KRaft: what a deployment tool would do on their hosts."""

from __future__ import annotations

import shutil

from kit.errors import InputError
from kit.lab.process import wait_until
from kit.lab.servers.migrating import KRAFT, Controller, MigratingBroker, connected, is_mode
from kit.lab.servers.migrating_cluster import WAIT_SECONDS, MigratingServers

START, STOP, RESTART, WIPE = ACTIONS = ("start", "stop", "restart", "wipe")
FINALISED = "finalised"
"""The mode of a controller without the migration flag; with it: ``migration``."""


def move_node(servers: MigratingServers, role: str, node_id: int, action: str, mode: str) -> str:
    """Execute one order, without waiting until a started node serves; what was done, in a sentence.

    Raises:
        InputError: there is no such node, action or mode, or a running node's disk would be wiped.
    """
    if action not in ACTIONS:
        raise InputError(f"There is no action {action!r} on a node; there are {', '.join(ACTIONS)}.")
    nodes: dict[str, list[MigratingBroker] | list[Controller]]
    nodes = {"broker": servers.migrating, "controller": servers.controllers}
    matching = [each for each in nodes.get(role, []) if each.broker_id == node_id]
    if not matching:
        raise InputError(f"The lab has no {role} {node_id}.")
    (node,) = matching
    if isinstance(node, Controller):
        _move_controller(node, action, mode)
    else:
        _move_broker(servers, node, action, mode)
    return f"{node.name}: {action}{f' in {mode} mode' if mode else ''}"


def _stop(node: MigratingBroker | Controller) -> None:
    if node.process is not None and node.process.running:
        node.process.stop()


def _move_controller(node: Controller, action: str, mode: str) -> None:
    is_running = node.process is not None and node.process.running
    if action == WIPE:
        if is_running:
            raise InputError(f"{node.name} runs: its disk is not wiped.")
        shutil.rmtree(node.supervisor.folder / node.name / "data", ignore_errors=True)
    if action in (STOP, RESTART):
        _stop(node)
    if action == RESTART or (action == START and not is_running):
        node.has_flag = mode != FINALISED
        node.launch()


def _move_broker(servers: MigratingServers, node: MigratingBroker, action: str, mode: str) -> None:
    if action != RESTART:
        raise InputError(f"Brokers of a lab are only restarted, not {action!r}.")
    _stop(node)
    if node.mode != KRAFT:
        with connected(servers.zookeeper_connect) as client:
            path = f"/brokers/ids/{node.broker_id}"
            wait_until(lambda: client.exists(path) is None, f"the end of {node.name}", WAIT_SECONDS)
    node.mode = is_mode(mode)
    node.launch()
