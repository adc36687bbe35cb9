"""Verbs that are loaded when they are called: ``offramp --help`` pays for none of them, and no verb for another."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_group

from kit.subjects import Verb


def group_of(verbs: Mapping[str, Verb]) -> type[TyperGroup]:
    """The class of a group that has these verbs, in this order."""
    return type("Verbs", (_Verbs,), {"verbs": verbs})


class _Verbs(TyperGroup):
    verbs: ClassVar[Mapping[str, Verb]]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.verbs)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.verbs:
            return None
        app: typer.Typer = pkgutil.resolve_name(self.verbs[cmd_name].home)
        group = get_group(app)
        return group.commands.get(cmd_name, group)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.help) for name, verb in self.verbs.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Typer's own guess at what was meant examines commands that are loaded."""
        near = get_close_matches(args[0], self.verbs)
        if args[0] not in self.verbs and near:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {', '.join(map(repr, near))}?")
        return super().resolve_command(ctx, args)
