"""Options by which a person answers what no request reports, for the verbs about the consumer protocol (KIP-848)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import typer

ClientsReady: TypeAlias = Annotated[
    bool | None,
    typer.Option("--clients-ready/--clients-not-ready", help="Your answer: every client supports the protocol."),
]
RightsGranted: TypeAlias = Annotated[
    bool | None,
    typer.Option("--rights-granted/--rights-missing", help="Your answer: the clients have the rights they need."),
]
Monitoring: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="Your answer: a tool that reads groups by DescribeGroups alone, or none; can be repeated."),
]
RemoteAssignor: TypeAlias = Annotated[
    str | None, typer.Option(help="Your answer: group.remote.assignor of the new members.")
]
_NO_TOOL = "none"


def tools_of(monitoring: Sequence[str] | None) -> tuple[str, ...] | None:
    """The tools that were named; empty: there is none, None: not answered."""
    return None if monitoring is None else tuple(each for each in monitoring if each != _NO_TOOL)
