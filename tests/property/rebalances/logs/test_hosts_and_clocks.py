"""A group on several hosts, with clocks of several zones and wrapped logs: no host, list or time is mistaken."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings, strategies as st

from kit.rebalances.sources import Rebalances, read_rebalances

LINE = "[2025-01-{:02d} {:02d}:{:02d}:{:02d},000] INFO [Consumer clientId=app, groupId=orders] {} (a.b.C)"
GENERATIONS = 3


@dataclass(frozen=True)
class Host:
    """``quarters``: of an hour, that its clock is ahead; ``width``: where its lines are wrapped, or None."""

    number: int
    quarters: int
    width: int | None

    @property
    def member(self) -> str:
        return f"app-{self.number:08d}-0000-4000-8000-000000000000"

    @property
    def partitions(self) -> list[str]:
        return sorted(f"clicks-{partition}" for partition in (self.number, self.number + 10, self.number + 20))

    def lines(self) -> list[str]:
        said = f"generationId={{}}, memberId='{self.member}', protocol='range'"
        steps = [
            (1 + self.number, "(Re-)joining group"),
            (20, f"Successfully joined group with generation Generation{{{said}}}"),
            (30, f"Adding newly assigned partitions: {', '.join(self.partitions)}"),
        ]
        whole = []
        for generation in range(1, GENERATIONS + 1):
            for second, text in steps:
                minutes = 12 * 60 + generation + 15 * self.quarters
                at = (2 + minutes // 1440, minutes % 1440 // 60, minutes % 60, second)
                whole.append(LINE.format(*at, text.replace("{}", str(generation))))
        return [piece for line in whole for piece in self._wrapped(line)]

    def _wrapped(self, line: str) -> list[str]:
        width = self.width or len(line)
        return [line[start : start + width] for start in range(0, len(line), width)]


HOSTS = st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 4, -4, 22, 23, 36]), st.sampled_from([None, None, 110, 120, 140, 160])),
    min_size=2,
    max_size=5,
).map(lambda every: [Host(number, *each) for number, each in enumerate(every)])


def read(hosts: list[Host]) -> Rebalances:
    with tempfile.TemporaryDirectory() as folder:
        for host in hosts:
            Path(folder, f"host-{host.number}.log").write_text("\n".join(host.lines()) + "\n")
        return read_rebalances(None, [str(Path(folder, f"host-{host.number}.log")) for host in hosts])


@settings(max_examples=12, deadline=None)
@given(HOSTS)
def test_hosts_of_one_client_id_are_members_of_their_own_whatever_their_clocks_and_lines(hosts):
    found = read(hosts)
    members = {host.member: host for host in hosts}
    for row in found.members.rows(named=True):
        assert row["member_id"] in (None, *members)
        if row["member_id"] and row["owned"] is not None:
            assert row["owned"] == members[row["member_id"]].partitions
    whole = [host for host in hosts if host.width is None]
    for host in whole:
        mine = found.members.filter(member_id=host.member)
        assert mine["generation"].to_list() == list(range(1, GENERATIONS + 1))
        assert mine["consumer"].unique().to_list() == [f"app in host-{host.number}.log"]
    assert "owned_twice" not in set(found.findings["finding"])
    assert set(found.generations["life"]) == {1}


@settings(max_examples=12, deadline=None)
@given(HOSTS)
def test_clocks_of_other_zones_are_named_and_not_compared(hosts):
    hosts = [Host(host.number, host.quarters, None) for host in hosts]
    found = read(hosts)
    apart = found.findings.filter(finding="clocks_apart")["sentence"].to_list()
    ahead = [host for host in hosts if host.quarters != hosts[0].quarters]
    assert len(apart) == len(ahead)
    for host, sentence in zip(ahead, apart):
        hours = (host.quarters - hosts[0].quarters) / 4
        assert f"host-{host.number}.log prints times {abs(hours):g} h" in sentence
    for row in found.generations.rows(named=True):
        assert row["duration_ms"] is None if ahead else row["duration_ms"] == 29_000
    assert found.members["join_ms"].to_list().count(None) == 0
