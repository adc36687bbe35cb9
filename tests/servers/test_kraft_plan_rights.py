"""The rights of ``offramp plan kraft``, taken away one by one: each refusal names the right, and no plan is made.

offramp has a login of its own at ZooKeeper, by digest. The nodes log in by SASL, so they keep every right.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from kazoo.client import KazooClient
from kazoo.security import ACL, make_acl, make_digest_acl
from typer.testing import Result

from kit.lab import Lab
from kit.lab.lab import PROTECTED_GROUP
from kit.lab.servers.migrating import connected
from kit.lab.servers.security import USER, ZOOKEEPER_USER
from tests.servers.awaiting import awaited
from tests.servers.kraft_walk import KraftWalk
from tests.servers.sasl_lab import CLUSTER, Right, grant, revoke
from tests.soak import soak_only

pytestmark = [soak_only, pytest.mark.timeout(900)]
CLOSED = ("/config/users", "/config/brokers", "/delegation_token")
"""Nodes with ``zookeeper.set.acl`` close these places, and all below, to everyone else."""
READ, WRITE, CREATE, DELETE = RIGHTS = ("read", "write", "create", "delete")
ADMIN = "admin"
"""Without it ZooKeeper hides the digests of access lists, so that the rights of a session are not known."""
NEEDED: tuple[Right, ...] = (
    ("Describe", "Broker", CLUSTER),
    ("ClusterAction", "Broker", CLUSTER),
    ("DescribeConfigs", "Broker", CLUSTER),
    ("Describe", "Topic", "*"),
)
OF_TOPIC = "login needs the right DESCRIBE on topic orders"
DESCRIBED = {NEEDED[0]: "DESCRIBE on the cluster", NEEDED[3]: OF_TOPIC}
IN_DUAL_WRITE = {**DESCRIBED, NEEDED[1]: "needs the right ClusterAction"}


class Planned(NamedTuple):
    """``overrides``: what the login can't know or do. ``said``: each right at Kafka → the sentence without it."""

    to_phase: str
    in_phase: str
    overrides: tuple[str, ...]
    said: Mapping[Right, str]

    @property
    def words(self) -> tuple[str, ...]:
        return ("plan", "kraft", "--to", self.to_phase)


OF_CONFIGS = {NEEDED[2]: "the right DESCRIBE_CONFIGS on the cluster"}
PLANS = (
    Planned("controllers", "zookeeper", ("preflight_known", "rehearsed"), DESCRIBED | OF_CONFIGS),
    Planned("zookeeper", "dual-write", ("R03_known",), IN_DUAL_WRITE),
    Planned("kraft", "dual-write", (f"old_consumers:{PROTECTED_GROUP}",), IN_DUAL_WRITE),
)
READS = (
    "/controller", "/controller_epoch", "/cluster/id", "/brokers/ids", "/brokers/topics", "/brokers/topics/orders",
    "/brokers/topics/orders/partitions/0/state", "/config/topics", "/config/brokers", "/config/users",
    f"/config/users/{USER}", "/kafka-acl", f"/kafka-acl/Cluster/{CLUSTER}", "/admin/delete_topics",
    "/isr_change_notification", "/log_dir_event_notification", "/latest_producer_id_block",
)  # fmt: skip
ZOOKEEPER = [
    *((READ, path) for path in READS),
    (WRITE, "/controller_epoch"),
    (CREATE, "/"),
    (DELETE, "/"),
]
OLD_GROUP = "/consumers/old/ids"
MORE = {"controllers": (), "zookeeper": ("/migration",), "kraft": ("/migration", "/consumers", OLD_GROUP)}
"""The rights that a plan to this phase needs besides."""


class Scene(KraftWalk):
    """``client``: a session of ZooKeeper that may do all."""

    client: KazooClient

    def access(self, *rights: str) -> list[ACL]:
        """Everything for the nodes, and these rights for offramp's login."""
        user, _, password = self.lab.security.digest.partition(":")
        ours = [make_digest_acl(user, password, **dict.fromkeys((*rights, ADMIN), True))] if rights else []
        return [make_acl("sasl", ZOOKEEPER_USER, all=True), *ours]

    @contextmanager
    def without(self, right: str, path: str) -> Iterator[None]:
        before, _ = self.client.get_acls(path)
        self.client.set_acls(path, self.access(*(each for each in RIGHTS if each != right)))
        try:
            yield
        finally:
            self.client.set_acls(path, before)

    def open(self, path: str) -> None:
        """Give the login the rights of the page at this place and below."""
        self.client.set_acls(path, self.access(*RIGHTS))
        for name in self.client.get_children(path):
            self.open(f"{path}/{name}")

    def plan(self, planned: Planned, *overrides: str) -> Result:
        named = [word for each in overrides for word in ("--override", each)]
        ended = self.run("plan", *planned.words, *named, "--runs", str(self.runs))
        assert isinstance(ended.exception, SystemExit | None), ended.exception
        return ended

    def refuse(self, planned: Planned) -> str:
        """Return the refusal of a plan."""
        ended = self.plan(planned)
        assert ended.exit_code != 0, ended.output
        assert not list((self.runs / "plans").glob("*.json")), ended.output
        return one_line(ended)


def one_line(ended: Result) -> str:
    return " ".join(ended.output.split())


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with Lab(brokers=1, controllers=1, secured=True) as lab:
        found = Scene(lab)
        own = found.file.read_text(encoding="utf-8").rpartition("[clusters.lab.security.zookeeper]")
        digest = [line for line in own[2].splitlines() if not line.startswith(("username", "password"))]
        found.file.write_text(own[0] + own[1] + "\n".join(digest), encoding="utf-8")
        lab.create_topic("orders", 1)
        grant(lab, USER, *NEEDED)
        with connected(lab.zookeeper_connect, lab.security) as found.client:
            found.open("/config")
            found.open("/delegation_token")
            found.client.set_acls("/controller_epoch", found.access(*RIGHTS))
            found.client.ensure_path(OLD_GROUP)
            yield found


@pytest.fixture(scope="module", params=PLANS, ids=lambda each: f"to {each.to_phase}")
def planned(request: pytest.FixtureRequest, scene: Scene) -> Planned:
    """In its phase; with all rights, which every node knows by then, the plan is made."""
    planned: Planned = request.param
    scene.lab.migration.reach(planned.in_phase)
    awaited(
        lambda: ((ended := scene.plan(planned, *planned.overrides)).exit_code, one_line(ended)),
        lambda found: found[0] == 0,
        "the plan of a login with every right",
    )
    shutil.rmtree(scene.runs)
    return planned


def test_a_plan_names_each_right_at_kafka_that_its_login_lacks(scene: Scene, planned: Planned) -> None:
    for right, sentence in planned.said.items():
        revoke(scene.lab, USER, right)
        try:
            awaited(lambda: scene.refuse(planned), lambda output, it=sentence: it in output, sentence)
        finally:
            grant(scene.lab, USER, *NEEDED)


def test_a_plan_names_each_right_at_zookeeper_that_its_login_lacks(scene: Scene, planned: Planned) -> None:
    unnamed = {}
    for right, path in [*ZOOKEEPER, *((READ, each) for each in MORE[planned.to_phase])]:
        with scene.without(right, path):
            output = scene.refuse(planned)
        if not names(output, right, path):
            unnamed[right, path] = output
    assert unnamed == {}


def names(output: str, right: str, path: str) -> bool:
    if right == READ:
        return bool(
            re.search(rf"{re.escape(path)}\b[^;]*(the login needs the right READ there|needs the right READ)", output)
        )
    return f"{right} {'below ' if path == '/' else ''}{path}" in output
