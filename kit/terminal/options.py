"""Options that verbs share, as one parameter: a frozen dataclass, whose fields are the options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from kit.profile import Profile


def with_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Return the verb with the options of each parameter that is a dataclass instead of that parameter, last."""
    own = inspect.signature(verb, eval_str=True)
    shared: dict[str, Any] = {
        name: each.annotation for name, each in own.parameters.items() if is_dataclass(each.annotation)
    }
    kept = [each.replace(kind=_BY_NAME) for name, each in own.parameters.items() if name not in shared]
    options = {name: _options_of(kind) for name, kind in shared.items()}

    @wraps(verb)
    def with_each(*arguments: Any, **typed: Any) -> None:
        for name, kind in shared.items():
            typed[name] = kind(**{each.name: typed.pop(each.name, each.default) for each in options[name]})
        verb(*arguments, **typed)

    del with_each.__wrapped__  # Typer would examine the verb's own parameters.
    together = [*kept, *(each for of_one in options.values() for each in of_one)]
    with_each.__signature__ = own.replace(parameters=together)  # type: ignore[attr-defined]
    with_each.__annotations__ = {parameter.name: parameter.annotation for parameter in together}
    return with_each


_BY_NAME = inspect.Parameter.KEYWORD_ONLY


def _options_of(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(each.name, _BY_NAME, default=each.default, annotation=hints[each.name])
        for each in fields(kind)
    ]


@dataclass(frozen=True, kw_only=True)
class ChosenProfile:
    """The options that name a cluster."""

    profile: Annotated[
        str | None, typer.Option("--profile", "-p", help="Cluster of offramp.toml; by default its only one.")
    ] = None
    profile_file: Annotated[Path | None, typer.Option("--profile-file", help="offramp.toml to read.")] = None

    def load(self) -> Profile:
        """Read the profile from its file; raises as ``kit.profile.load_profile``."""
        from kit.profile import load_profile

        return load_profile(self.profile, self.profile_file)
