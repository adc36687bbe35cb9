"""Define the parameters of the steps of a move, on which their actors act: one class for each kind of step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

from kit.engine.model.parameters import StepParameters
from kit.engine.model.values import Json

NODE_TIMEOUT_S = 300.0
"""The longest time that one node may take until it runs well in its new mode."""
QUIET_S = 30.0
"""The time in which nothing may change after an order was cancelled, until it counts as not coming any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KraftParameters(StepParameters):
    """The parameters of every step. ``all_brokers``, ``controllers``: id → ``host:port``.

    ``by_person``: a person restarts the nodes. ``left_behind``: groups of old consumers that an operator answers for,
    and that forbid nothing. ``reported_stopped``: addresses of unreachable controllers that a person reports as
    stopped.
    ``reports_voters``: the operator answers for it that ``controllers`` are all voters.
    """

    UNUSED: ClassVar[Mapping[str, Json]] = {
        "nodes": (),
        "from_mode": "",
        "to_mode": "",
        "begins_copy": False,
        "has_claim": False,
        "is_aborted": False,
        "instruction": "",
        "settings": {},
    }

    target: str
    cluster_name: str
    to_phase: str
    all_brokers: Mapping[str, str]
    controllers: Mapping[str, str]
    by_person: bool = False
    node_timeout_s: float = NODE_TIMEOUT_S
    quiet_s: float = QUIET_S
    left_behind: tuple[str, ...] = ()
    reported_stopped: tuple[str, ...] = ()
    reports_voters: bool = False

    @classmethod
    def made_from(cls, common: KraftParameters, **own: Any) -> Self:
        """Return the parameters of one kind of step: what every step knows, and ``own``."""
        return cls(**{each.name: getattr(common, each.name) for each in fields(KraftParameters)}, **own)

    @property
    def broker_addresses(self) -> dict[int, str]:
        return {int(number): address for number, address in self.all_brokers.items()}

    @property
    def controller_addresses(self) -> dict[int, str]:
        return {int(number): address for number, address in self.controllers.items()}

    @property
    def cluster_id(self) -> str:
        return self.target.removeprefix("cluster ")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterParameters(KraftParameters):
    """``nodes``: the broker that is gone."""

    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderParameters(KraftParameters):
    """The parameters of a step that orders nodes to start, stop, restart or wipe. ``nodes``: their ids.

    ``from_mode``, ``to_mode``: of these nodes; empty: they do not run. ``instruction``: the deployer's. ``settings``:
    the operator's files of these nodes and modes, file name → digest, as approved.
    """

    nodes: tuple[int, ...]
    from_mode: str = ""
    to_mode: str = ""
    instruction: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RollParameters(OrderParameters):
    """``begins_copy``: with the last of these brokers the controllers begin to copy."""

    begins_copy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StopParameters(OrderParameters):
    """``has_claim``: a KRaft controller holds ``/controller``; ``is_aborted``: and its copy was aborted."""

    has_claim: bool = False
    is_aborted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HandBackParameters(KraftParameters):
    """The parameters of a transaction in ZooKeeper, without an order to a node; as ``StopParameters``."""

    has_claim: bool = False
    is_aborted: bool = False
