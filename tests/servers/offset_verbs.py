"""An operator's session with offsets: plan, approve, act and undo by the verbs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from kit.cli.main import app


@dataclass(frozen=True)
class OffsetVerbs:
    profile: Path
    runs: Path

    def typed(self, *words: str) -> str:
        """The output of a verb that succeeds."""
        done = CliRunner().invoke(app, [*words, "--profile-file", str(self.profile)])
        assert done.exit_code == 0, done.output
        return done.output

    def reset(self, group: str, to: int, store: str = "kafka") -> None:
        place = ("--runs", str(self.runs))
        known = set((self.runs / "plans").glob("*.json"))
        self.typed("plan", "offsets", "reset", "--store", store, "--group", group, "--to", str(to), *place)
        (plan,) = set((self.runs / "plans").glob("????????????.json")) - known
        self.typed("approve", plan.stem, "--subject", group, "--digest", plan.stem, *place)
        self.typed("act", plan.stem, *place)

    def undo(self) -> None:
        """Undo the newest run."""
        ended = [each for each in self.runs.iterdir() if (each / "report.html").exists()]
        newest = max(ended, key=lambda each: (each / "report.html").stat().st_mtime_ns)
        self.typed("undo", newest.name, "--runs", str(self.runs))
