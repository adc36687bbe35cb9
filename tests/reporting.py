"""A report for an actor that is tested without a run: it permits everything and remembers what was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from kit.engine.model.performer import ActedRecord, ItemOutcome
from kit.engine.model.values import Json


class Permissive:
    def __init__(self, acted: ActedRecord | None = None) -> None:
        self.acted = acted or ActedRecord("", ())
        self.attempted: list[str] = []
        self.told: list[ItemOutcome] = []

    def attempt(self, items: Sequence[str], details: Json = None) -> None:
        self.attempted += items

    def __call__(self, outcomes: Sequence[ItemOutcome]) -> None:
        self.told += outcomes
