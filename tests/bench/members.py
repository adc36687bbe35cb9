"""Members beside JVM members: how soon a rebalance of many partitions settles, and what an idle one costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import psutil
from kazoo.client import KazooClient

from kit.clients.multiread import Znode, fetch_children, fetch_data
from kit.consumer.zookeeper.assignors import assign_range
from kit.lab.members.handles import Consumer
from kit.lab.members.old_consumers import OldMember
from kit.lab.members.python import PythonMember
from kit.lab.process import wait_until
from tests.bench.clock import compare, say
from tests.bench.rows import Row
from tests.bench.site import Site

MEMBERS, PARTITIONS, PER_PROCESS = 16, 512, 5
SETTLE_SECONDS = 120.0
IDLE_SECONDS = 15.0
IDLE_PERCENT = 3.0
TOPIC = "many"


def compared(site: Site) -> Iterator[Row]:
    site.lab.create_topic(TOPIC, PARTITIONS)
    site.lab.produce(TOPIC, PARTITIONS)
    for flavour in ("ozkcc", "mezkcc"):
        yield _idle(site, flavour)
    client = KazooClient(site.lab.zookeeper_connect)
    client.start(15)
    try:
        yield from _rebalances(site, client)
    finally:
        client.stop()
        client.close()


def _idle(site: Site, flavour: str) -> Row:
    """Processor time of a member that owns 4 partitions of a topic nobody writes to, in percent of a core."""
    topic = f"idle-{flavour}"
    site.lab.create_topic(topic, 4)
    member = site.lab.start_python_member(flavour, f"{topic}-g", topic)
    process = psutil.Process(member.process.pid)
    say(f"an idle {flavour} for {IDLE_SECONDS:g} s")
    wait_until(lambda: bool(member.events("METRICS")), f"{topic} settled", 30)
    before, started = process.cpu_times(), time.monotonic()
    time.sleep(IDLE_SECONDS)
    after, seconds = process.cpu_times(), time.monotonic() - started
    member.stop()
    used = 100 * (after.user + after.system - before.user - before.system) / seconds
    return Row(f"an idle {flavour}, percent of a core", used, IDLE_PERCENT, "%", 1)


def _rebalances(site: Site, client: KazooClient) -> Iterator[Row]:
    """One member leaves, the others share what it had: from the end of its registration to the last owner znode."""
    ours = _Members(client, "ours", partial(_python, site))
    theirs = _Members(client, "theirs", partial(_jvm, site))
    name = f"{MEMBERS} members × {PARTITIONS} partitions"
    yield compare(f"{name}: one leaves, vs JVM members", ours.leave, theirs.leave, 1, 3)
    ours.stop()
    theirs.stop()


def _python(site: Site, group: str, count: int) -> list[Consumer]:
    return site.lab.start_python_members([PythonMember("ozkcc", group, [TOPIC])] * count)


def _jvm(site: Site, group: str, count: int) -> list[Consumer]:
    return site.lab.start_old_consumers([OldMember(group, TOPIC)] * count)


class _Members:
    """A group of 15 members in three processes, and one that comes and goes."""

    def __init__(self, client: KazooClient, group: str, start: Callable[[str, int], list[Consumer]]) -> None:
        say(f"starting {MEMBERS} members of {group}")
        self._client, self._group, self._start = client, f"bench-{group}", start
        self._stay = [each for _ in range(MEMBERS // PER_PROCESS) for each in start(self._group, PER_PROCESS)]

    def leave(self) -> float:
        """Seconds from the leaver's last znode until the others own everything as the assignor says."""
        (leaver,) = self._start(self._group, 1)
        everyone = [*(each.consumer_id for each in self._stay), leaver.consumer_id]
        wait_until(lambda: self._is_settled(everyone), f"{self._group} settled", SETTLE_SECONDS)
        path = f"/consumers/{self._group}/ids/{leaver.consumer_id}"
        leaver.process.kill()
        wait_until(lambda: self._client.exists(path) is None, "the leaver's session over", SETTLE_SECONDS)
        started = time.perf_counter()
        wait_until(lambda: self._is_settled(everyone[:-1]), f"{self._group} settled", SETTLE_SECONDS)
        return time.perf_counter() - started

    def _is_settled(self, members: list[str]) -> bool:
        wanted = assign_range({each: {TOPIC: 1} for each in members}, {TOPIC: range(PARTITIONS)})
        base = f"/consumers/{self._group}/owners/{TOPIC}"
        (names,) = fetch_children(self._client, [base])
        numbers = names if isinstance(names, list) else []
        found = fetch_data(self._client, [f"{base}/{number}" for number in numbers])
        owners = {
            (TOPIC, int(number)): znode.data.decode()
            for number, znode in zip(numbers, found)
            if isinstance(znode, Znode)
        }
        return owners == wanted

    def stop(self) -> None:
        for process in {each.process.pid: each.process for each in self._stay}.values():
            process.kill()
