"""Waiting until a group is quiet after an order was called off: what was ordered may still come for a while."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kit.engine.model.clock import Clock
from kit.engine.model.performer import Report, Waiting
from kit.errors import AuthenticationFailed, ConnectError, RunError
from kit.moves.group.group_state import MemberState


@dataclass(frozen=True, slots=True)
class MembersWatch:
    """Reads the members of one group every ``poll_s`` seconds.

    ``members``: how they are read; it raises ConnectError while the cluster does not answer.
    """

    group: str
    members: Callable[[], Sequence[MemberState]]
    say: Callable[[str], None]
    clock: Clock
    poll_s: float

    def seen(self) -> Sequence[MemberState] | None:
        """The members; None while the cluster does not answer.

        Raises:
            AuthenticationFailed: the cluster refuses the login.
        """
        try:
            return self.members()
        except AuthenticationFailed:
            raise
        except ConnectError:
            return None

    def await_quiet(self, quiet_s: float, step_timeout_s: float, report: Report) -> None:
        """Wait until no member has come or gone for ``quiet_s`` seconds.

        Raises:
            RunError: the members still change after ``quiet_s + step_timeout_s`` seconds.
            ConnectError: the cluster does not answer at the first read.
        """
        self.say(Waiting(f"waiting until nothing has changed in group {self.group} for {quiet_s:g} s"))
        began = since = self.clock.monotonic()
        last = _who(self.members())
        while self.clock.monotonic() - since < quiet_s:
            if self.clock.monotonic() - began > quiet_s + step_timeout_s:
                raise RunError(
                    f"a replacement was cancelled, and its group has not been quiet for {quiet_s:g} s since: the"
                    " deployer may still work. Make sure that it does not, then resume or undo the run"
                )
            report([])
            self.clock.sleep(self.poll_s)
            members = self.seen()
            if members is None or _who(members) != last:
                last, since = last if members is None else _who(members), self.clock.monotonic()


def _who(members: Sequence[MemberState]) -> set[tuple[str, str]]:
    return {(member.member_id, member.flavour) for member in members}
