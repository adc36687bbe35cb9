"""Persistent registrations and owner znodes deleted by plans: what goes, what is never touched, how it comes back."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta

import pytest
from kazoo.client import KazooClient

from kit import connect
from kit.engine.model.performer import Outcome
from kit.engine.model.states import RunState
from kit.errors import NothingToDo, UnsafePlan
from kit.groups import views
from kit.groups.snapshot import observe
from kit.moves.znodes.deleter import ZnodeDeleter
from kit.moves.znodes.plan import DeleteZnodesRequest
from kit.moves.znodes.read import fetch_znodes
from kit.operations.operations import Operations
from kit.profile import load_profile

OWNER, ID, BOTH_ID = "owners/orders/0", "ids/{}_dead-1", "migration/ids/{}_dead-1"
TEXT = '{{"version":1,"subscription":{{"orders":1}},"pattern":"static","timestamp":"1"}}'


class Site:
    def __init__(self, cluster, operations, names) -> None:
        self.cluster, self.operations, self.zookeeper = cluster, operations, cluster.zookeeper
        self._names = names

    def group(self, name: str) -> str:
        """A group whose owner znode and registrations are persistent."""
        group = f"persistent-{name}"
        self._names.append(group)
        for path, text in self.dead(group).items():
            self.zookeeper.create(f"/consumers/{group}/{path}", text.encode(), makepath=True)
        return group

    def dead(self, group: str) -> dict[str, str]:
        return {OWNER: f"{group}_dead-1-0", ID.format(group): TEXT.format(), BOTH_ID.format(group): TEXT.format()}

    def held(self, group: str) -> dict[str, tuple[str, int]]:
        """Text and session of each of its registrations and owner znodes."""
        paths = [*self.dead(group), "owners/orders/1"]
        found = {path: f"/consumers/{group}/{path}" for path in paths}
        answers = {path: self.zookeeper.get(it) for path, it in found.items() if self.zookeeper.exists(it)}
        return {path: (data.decode(), stat.ephemeralOwner) for path, (data, stat) in answers.items()}

    def plan(self, *groups: str, overrides=()):
        return self.operations.make_plan(DeleteZnodesRequest(groups), overrides, "ann")

    def begin(self, plan):
        self.operations.approve(plan, plan.subject, plan.digest[:8], "bob", timedelta(hours=1))
        return self.operations.begin(plan)


@pytest.fixture(scope="module")
def site(lab, tmp_path_factory):
    folder, names = tmp_path_factory.mktemp("znodes"), list[str]()
    (folder / "offramp.toml").write_text(lab.profile_toml())
    with connect(load_profile(file=folder / "offramp.toml")) as cluster:
        yield Site(cluster, Operations(cluster, folder), names)
        for group in names:
            cluster.zookeeper.delete(f"/consumers/{group}", recursive=True)


@contextmanager
def session(lab):
    client = KazooClient(lab.zookeeper_connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def test_persistent_znodes_are_deleted_and_come_back(site):
    group = site.group("back")
    before = site.held(group)
    plan = site.plan(group)
    assert {change.item: change.before for change in plan.steps[0].changes} == site.dead(group)
    run = site.begin(plan)
    run.act().raise_unless(RunState.VERIFIED)
    assert site.held(group) == {}
    with pytest.raises(NothingToDo):
        site.plan(group)
    site.operations.run(run.record.run_id).undo().raise_unless(RunState.UNDONE)
    assert site.held(group) == before
    assert {owner for _, owner in before.values()} == {0}


def test_a_live_members_znodes_stay(site, lab):
    """By the rule, and with the rule overridden."""
    group = site.group("live")
    with session(lab) as member:
        for path in (f"ids/{group}_live-1", "owners/orders/1"):
            member.create(f"/consumers/{group}/{path}", f"{group}_live-1-0".encode(), ephemeral=True, makepath=True)
        with pytest.raises(UnsafePlan, match="no_live_members"):
            site.plan(group)
        plan = site.plan(group, overrides=["no_live_members"])
        assert {change.item for change in plan.steps[0].changes} == set(site.dead(group))
        site.begin(plan).act().raise_unless(RunState.VERIFIED)
        assert set(site.held(group)) == {"owners/orders/1"}
        assert member.exists(f"/consumers/{group}/ids/{group}_live-1") is not None


def test_a_znode_that_changed_since_the_plan_is_left_alone(site, lab):
    """Written again; made again; made by a member; and made by a member after the last read, with the same version."""
    group = site.group("changed")
    owners = [f"owners/orders/{number}" for number in range(4)]
    paths = [f"/consumers/{group}/{each}" for each in owners]
    for path in paths[1:]:
        site.zookeeper.create(path, b"dead-0")
    plan = site.plan(group)
    site.zookeeper.set(paths[0], b"x-0")
    with session(lab) as member, pytest.MonkeyPatch.context() as patched:
        stale = fetch_znodes(site.zookeeper, [paths[3]])[paths[3]]
        for path, client in zip(paths[1:], (site.zookeeper, member, member)):
            client.delete(path)
            client.create(path, b"new-0", ephemeral=client is member)
        read = ZnodeDeleter._found
        patched.setattr(ZnodeDeleter, "_found", lambda self, path: stale if path == paths[3] else read(self, path))
        run = site.begin(plan)
        run.act()
        outcomes = {it.item: it for it in run.record.acted(plan.steps[0]).outcomes}
        assert {outcomes[each].outcome for each in owners} == {Outcome.REFUSED}
        assert "ephemeral" in outcomes[owners[3]].error
        assert {outcomes[each].outcome for each in outcomes.keys() - owners} == {Outcome.CONFIRMED}
        assert all(site.zookeeper.exists(path) for path in paths)


def test_a_group_of_persistent_znodes_has_no_active_member(site):
    group = site.group("counted")
    snapshot = observe(site.cluster, group)
    (row,) = views.summary(snapshot).to_dicts()
    assert (row["n_members"], row["stage"]) == (0, "empty")
