"""ZooKeeper's rights, taken one by one from a login by digest: each refusal names the znode and the right.

The znodes of a cluster are copied below a chroot, so that the lab's broker never sees the closed access lists.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import TopicPartition
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.security import ACL, make_digest_acl
from typer.testing import CliRunner, Result

from kit.cli.main import app
from kit.engine.model.performer import Outcome
from kit.errors import AuthenticationFailed, ConnectError, OfframpError, RunError, UnsafePlan
from kit.lab import Lab
from kit.lab.members.python import PythonMember, launch
from kit.moves.group.toggle import read_toggle, set_toggle, unset_toggle
from tests.reporting import Permissive
from tests.servers.awaiting import awaited
from tests.servers.coordinators import commit
from tests.soak import first, soak_only

ROOT, LOGIN = "root:pw", "ops:pw"
READ, WRITE, CREATE, DELETE, ADMIN = RIGHTS = ("read", "write", "create", "delete", "admin")
CHROOT, GROUP, DEAD, TOPIC = "/znode-rights", "watched", "dead", "znode-rights"
MOVING = "moving"
OFFSETS = f"/consumers/{GROUP}/offsets/{TOPIC}"
OWNERS = f"/consumers/{DEAD}/owners/{TOPIC}"
COPIED = ("/cluster", "/controller", "/controller_epoch", "/brokers")
MADE: Mapping[str, bytes] = {
    f"{OFFSETS}/0": b"10",
    f"/consumers/{GROUP}/ids": b"",
    f"/consumers/{GROUP}/owners/{TOPIC}": b"",
    f"{OWNERS}/0": b"dead_x-0",
    f"/consumers/{DEAD}/ids": b"",
    "/offramp/locks": b"",
    "/offramp/runs": b"",
    "/offramp/cluster_locks": b"",
}


def access(*rights: str) -> list[ACL]:
    """Everything for the test, and these rights for the login."""
    root, _, password = ROOT.partition(":")
    login, _, its = LOGIN.partition(":")
    ours = [make_digest_acl(login, its, **dict.fromkeys(rights, True))] if rights else []
    return [make_digest_acl(root, password, all=True), *ours]


class World(NamedTuple):
    """A cluster's znodes below a chroot; ``client`` may do all."""

    client: KazooClient
    profile: Path
    znodes: Mapping[str, bytes]

    def fill(self, everywhere: tuple[str, ...] = RIGHTS, more: Mapping[str, tuple[str, ...]] = {}) -> None:
        """Make all znodes again; the login has the rights ``everywhere``, and those of ``more`` by path."""
        for name in self.client.get_children("/"):
            self.client.delete(f"/{name}", recursive=True)
        for path, data in {**self.znodes, **MADE}.items():
            self.client.ensure_path(path, acl=access(*everywhere))
            self.client.set(path, data)
        self.client.set_acls("/", access(*everywhere))
        for path, rights in more.items():
            self.client.set_acls(path, access(*everywhere, *rights))

    @contextmanager
    def without(self, right: str, path: str) -> Iterator[None]:
        before, _ = self.client.get_acls(path)
        self.client.set_acls(path, access(*(each for each in RIGHTS if each != right)))
        try:
            yield
        finally:
            self.client.set_acls(path, before)

    def type(self, words: tuple[str, ...], runs: Path) -> Result:
        is_run = words[0] in ("act", "approve", "undo", "plan") and "export" not in words
        place = ["--runs", str(runs)] if is_run else []
        if words[0] == "snapshot":
            place = ["--history", str(runs / "history")]
        result = CliRunner().invoke(app, [*words, *place, "--profile-file", str(self.profile)])
        assert isinstance(result.exception, SystemExit | None), result.exception
        return result

    def plan(self, words: tuple[str, ...], runs: Path) -> str:
        """The id of a plan that is approved."""
        planned = self.type(words, runs)
        assert planned.exit_code == 0, planned.output
        (plan,) = (each.stem for each in (runs / "plans").glob("????????????.json"))
        subject = words[words.index("--to-group" if "--to-group" in words else "-g") + 1]
        approved = self.type(("approve", plan, "--subject", subject, "--digest", plan), runs)
        assert approved.exit_code == 0, approved.output
        return plan


@pytest.fixture(scope="module")
def world(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    lab.create_topic(TOPIC, 1)
    lab.produce(TOPIC, 50)
    commit(lab, GROUP, TopicPartition(TOPIC, 0, 30))
    profile = tmp_path_factory.mktemp("znode-rights") / "offramp.toml"
    text = lab.profile_toml().replace(lab.zookeeper_connect, lab.zookeeper_connect + CHROOT)
    profile.write_text(f'{text}\n[clusters.lab.security.zookeeper]\ndigest = {{ env = "LOGIN_DIGEST" }}\n')
    outside = KazooClient(lab.zookeeper_connect, auth_data=[("digest", ROOT)])
    client = KazooClient(lab.zookeeper_connect + CHROOT, auth_data=[("digest", ROOT)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOGIN_DIGEST", LOGIN)
        outside.start()
        outside.create(CHROOT, acl=access(*RIGHTS))
        client.start()
        try:
            yield World(client, profile, dict(copied(outside, COPIED)))
        finally:
            client.stop()
            client.close()
            outside.delete(CHROOT, recursive=True)
            outside.stop()
            outside.close()


def copied(client: KazooClient, paths: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        try:
            yield path, client.get(path)[0]
            names = sorted(client.get_children(path))
        except NoNodeError:
            continue
        yield from copied(client, tuple(f"{path}/{name}" for name in names))


def names(output: str, right: str, path: str) -> bool:
    """Return whether the output has the sentence that names this right and this znode."""
    text, named = " ".join(output.split()), re.escape(path[1:])
    if right == ADMIN:
        return bool(re.search(rf"the access list of /{named}, but .* lack ADMIN", text))
    known = rf"the login needs the right {right.upper()} on /{named}\b"
    read = (
        rf"{named}:?( of ZooKeeper \S+)? (can't be (read|listed): NoAuthError \()?the login needs the right READ there"
    )
    return bool(re.search(f"{known}|{read}" if right == READ else known, text.replace(f"{path}: the", f"{path} the")))


RESET = ("plan", "offsets", "reset", "--store", "zookeeper", "-g", GROUP, "--to", "20")
DELETION = ("plan", "offsets", "delete", "--store", "zookeeper", "-g", GROUP, "--override", "kept_elsewhere")
COPY = ("plan", "offsets", "copy", "-g", GROUP, "--from", "kafka", "--to", "zookeeper")
ZNODES = ("plan", "delete-znodes", "-g", DEAD)
OF_GROUP = [f"/consumers/{GROUP}/{each}" for each in ("ids", "owners", "offsets")]
OBSERVED = ["/cluster/id", "/controller", "/brokers/ids", "/brokers/topics", "/consumers", *OF_GROUP, OFFSETS]
READS = [
    (("groups",), f"{OFFSETS}/0"),
    (RESET, f"/consumers/{GROUP}/ids"),
    (("lock", "show"), "/offramp/locks"),
    (ZNODES, f"{OWNERS}/0"),
    *((("groups",), path) for path in OBSERVED),
    *((("snapshot",), path) for path in (*OBSERVED, f"{OFFSETS}/0")),
    *((RESET, path) for path in ("/cluster/id", "/consumers", f"/consumers/{GROUP}/offsets", OFFSETS, f"{OFFSETS}/0")),
    *((("lock", "show"), path) for path in ("/cluster/id", "/offramp/cluster_locks")),
    *((ZNODES, path) for path in (f"/consumers/{DEAD}/ids", f"/consumers/{DEAD}/owners", OWNERS)),
]
ACTS = [
    (RESET, WRITE, f"{OFFSETS}/0"),
    (RESET, CREATE, "/offramp/locks"),
    (ZNODES, CREATE, f"{OWNERS}/0"),
    (RESET, READ, "/offramp/locks"),
    (RESET, ADMIN, "/offramp/locks"),
    (RESET, CREATE, "/offramp/runs"),
    (RESET, READ, "/offramp/cluster_locks"),
    (RESET, READ, f"{OFFSETS}/0"),
    (RESET, READ, f"/consumers/{GROUP}/ids"),
    (DELETION, DELETE, OFFSETS),
    (COPY, WRITE, f"{OFFSETS}/0"),
    ((*COPY, "--to-group", "fresh"), CREATE, "/consumers"),
    ((*COPY, "--to-group", "fresh"), ADMIN, "/consumers"),
    (ZNODES, DELETE, OWNERS),
    (ZNODES, DELETE, f"{OWNERS}/0"),
    (ZNODES, READ, f"{OWNERS}/0"),
    (ZNODES, READ, f"/consumers/{DEAD}/ids"),
]
UNDOS = [
    (DELETION, CREATE, OFFSETS),
    (DELETION, ADMIN, OFFSETS),
    (RESET, WRITE, f"{OFFSETS}/0"),
    (RESET, READ, f"/offramp/runs/{GROUP}"),
    (RESET, WRITE, f"/offramp/runs/{GROUP}"),
    ((*COPY, "--to-group", "fresh"), DELETE, f"/consumers/fresh/offsets/{TOPIC}"),
    (ZNODES, CREATE, OWNERS),
    (ZNODES, ADMIN, OWNERS),
]


@pytest.mark.parametrize(("words", "path"), first(READS, 4))
def test_a_verb_names_each_znode_that_its_login_may_not_read(
    world: World, tmp_path: Path, words: tuple[str, ...], path: str
) -> None:
    world.fill()
    with world.without(READ, path):
        ended = world.type(words, tmp_path)
    assert ended.exit_code != 0, ended.output
    assert names(ended.output, READ, path), ended.output


@pytest.mark.parametrize(("words", "right", "path"), first(ACTS, 3))
def test_a_run_names_each_right_that_its_login_lacks(
    world: World, tmp_path: Path, words: tuple[str, ...], right: str, path: str
) -> None:
    world.fill()
    plan = world.plan(words, tmp_path)
    with world.without(right, path):
        ended = world.type(("act", plan), tmp_path)
    assert ended.exit_code != 0, ended.output
    assert names(ended.output, right, path), ended.output


@pytest.mark.parametrize(("words", "right", "path"), first(UNDOS))
def test_an_undo_names_each_right_that_its_login_lacks(
    world: World, tmp_path: Path, words: tuple[str, ...], right: str, path: str
) -> None:
    world.fill()
    acted = world.type(("act", world.plan(words, tmp_path)), tmp_path)
    assert acted.exit_code == 0, acted.output
    (run,) = (each.name for each in tmp_path.iterdir() if (each / "report.html").exists())
    with world.without(right, path):
        ended = world.type(("undo", run), tmp_path)
    assert ended.exit_code != 0, ended.output
    assert names(ended.output, right, path), ended.output
    again = world.type(("undo", run), tmp_path)
    assert again.exit_code == 0, again.output


MEMBERS = [
    (flavour, right, path, shown)
    for flavour in ("ozkcc", "mezkcc")
    for right, path, shown in (
        (WRITE, f"{OFFSETS}/0", f"{OFFSETS}/0"),
        (CREATE, f"/consumers/{GROUP}/owners/{TOPIC}", f"each topic's znode below /consumers/{GROUP}/owners"),
        (CREATE, f"/consumers/{GROUP}/ids", f"/consumers/{GROUP}/ids"),
        (READ, f"/consumers/{GROUP}/ids", f"/consumers/{GROUP}/ids"),
        (READ, f"/brokers/topics/{TOPIC}", f"/brokers/topics/{TOPIC}"),
        (READ, "/brokers/ids", "/brokers/ids"),
    )
]


@pytest.mark.parametrize(("flavour", "right", "path", "shown"), first(MEMBERS))
def test_a_member_names_each_right_that_its_login_lacks(
    world: World, tmp_path: Path, flavour: str, right: str, path: str, shown: str
) -> None:
    """A member without a right tries again: it is in the group as soon as the right is granted."""
    world.fill()
    words = ["consume", "--flavour", flavour, "-g", GROUP, "-t", TOPIC, "--from-beginning", "--max-messages", "1"]
    said = tmp_path / "stderr"
    with world.without(right, path), said.open("w") as stderr:
        command = [sys.executable, "-m", "kit", *words, "--profile-file", str(world.profile)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr) as member:
            try:
                needed = f"the login needs the right {right.upper()} on {shown}:"
                awaited(lambda: said.read_text()[-600:], lambda text: needed in text, "the sentence of the member")
            finally:
                member.kill()


def test_exactly_the_rights_of_the_page_are_enough_for_a_reset_and_its_undo(world: World, tmp_path: Path) -> None:
    """ADMIN is there because the access lists have digests."""
    lock = (CREATE, DELETE, ADMIN)
    world.fill((READ,), {f"{OFFSETS}/0": (WRITE,), "/offramp/locks": lock, "/offramp/runs": (CREATE, ADMIN)})
    for words in (("groups",), ("snapshot",), ("lock", "show")):
        done = world.type(words, tmp_path)
        assert done.exit_code == 0, done.output
    acted = world.type(("act", world.plan(RESET, tmp_path)), tmp_path)
    assert acted.exit_code == 0, acted.output
    world.client.set_acls(f"/offramp/runs/{GROUP}", access(READ, WRITE))
    (run,) = (each.name for each in tmp_path.iterdir() if (each / "report.html").exists())
    undone = world.type(("undo", run), tmp_path)
    assert undone.exit_code == 0, undone.output


def test_a_toggle_that_the_login_may_not_write_is_refused_at_once_and_the_right_is_named(
    world: World, lab: Lab
) -> None:
    """The outcome of such a write is known: the run must not wait for members that follow it."""
    world.fill()
    parent = f"/consumers/{GROUP}/migration"
    mode, report = f"{parent}/mode", Permissive()
    world.client.ensure_path(parent, acl=access(*RIGHTS))
    login = KazooClient(lab.zookeeper_connect + CHROOT, auth_data=[("digest", LOGIN)])
    login.start()
    try:

        def refused(right: str, path: str, write) -> None:
            with world.without(right, path):
                outcome = write()
            assert (outcome.outcome, names(outcome.error, right, path)) == (Outcome.REFUSED, True), outcome

        def put(after: str):
            return set_toggle(login, read_toggle(login, GROUP), GROUP, after, report)

        refused(CREATE, parent, lambda: put("kafka"))
        refused(ADMIN, parent, lambda: put("kafka"))
        made = put("kafka")
        assert made.outcome == Outcome.CONFIRMED, made
        refused(WRITE, mode, lambda: put("zookeeper"))
        refused(DELETE, parent, lambda: unset_toggle(login, made, GROUP, None, report))
        with world.without(READ, mode), pytest.raises(AuthenticationFailed) as caught:
            read_toggle(login, GROUP)
        assert names(str(caught.value), READ, mode)
        assert unset_toggle(login, made, GROUP, None, report).outcome == Outcome.CONFIRMED
    finally:
        login.stop()
        login.close()


@pytest.fixture(scope="module")
def moving(world: World, lab: Lab) -> Iterator[World]:
    """With a group whose only member can be toggled; the member has a login of its own, with all rights."""
    world.fill()
    own = world.profile.with_name("member.toml")
    own.write_text(world.profile.read_text(encoding="utf-8").replace("LOGIN_DIGEST", "ROOT_DIGEST"), encoding="utf-8")
    member = PythonMember("mezkcc", MOVING, [TOPIC])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROOT_DIGEST", ROOT)
        (consumer,) = launch(
            lab.supervisor, lab.zookeeper_connect + CHROOT, lab.servers.addresses(), [member], profile=own
        )
        consumer.await_ready()
        yield world
        consumer.stop()


TO_KAFKA = ("plan", "group", "-g", MOVING, "--to", "Kafka coordination", "--min-stable", "0", "--observe", "1")
TO_ZOOKEEPER = (*TO_KAFKA[:5], "all MEZKCC", *TO_KAFKA[6:])
MIGRATION = f"/consumers/{MOVING}/migration"
MODE = f"{MIGRATION}/mode"
OF_MOVING = [f"/consumers/{MOVING}/{each}" for each in ("ids", "owners", f"owners/{TOPIC}")]
PLANNING = [
    (DELETE, MIGRATION, UnsafePlan),
    *((READ, path, ConnectError) for path in (*OF_MOVING, "/brokers/ids", "/brokers/topics")),
    *((READ, path, AuthenticationFailed) for path in ("/consumers", "/cluster/id")),
]
TOGGLING = [
    (CREATE, MIGRATION, RunError),
    (ADMIN, MIGRATION, RunError),
    (READ, f"/consumers/{MOVING}/ids", RunError),
    (READ, "/cluster/id", AuthenticationFailed),
    (CREATE, "/offramp/locks", AuthenticationFailed),
]


@soak_only
@pytest.mark.parametrize(("right", "path", "error"), PLANNING)
def test_no_toggle_is_planned_without_a_right(
    moving: World, tmp_path: Path, right: str, path: str, error: type[OfframpError]
) -> None:
    with moving.without(right, path):
        ended = moving.type(TO_KAFKA, tmp_path)
    is_named = names(ended.output, right, path) or f"let the login {right} below {path}" in ended.output
    assert (ended.exit_code, is_named) == (error.exit_code, True), ended.output
    assert not list((tmp_path / "plans").glob("*.json")), ended.output


@pytest.mark.parametrize(("right", "path", "error"), first(TOGGLING))
def test_a_run_that_may_not_toggle_leaves_the_group_as_it_is_and_names_the_right(
    moving: World, tmp_path: Path, right: str, path: str, error: type[OfframpError]
) -> None:
    plan = moving.plan(TO_KAFKA, tmp_path)
    with moving.without(right, path):
        ended = moving.type(("act", plan), tmp_path)
    assert (ended.exit_code, names(ended.output, right, path)) == (error.exit_code, True), ended.output
    assert moving.client.exists(MODE) is None


@soak_only
def test_a_toggle_there_and_back_names_each_right_that_its_login_lacks(moving: World, tmp_path: Path) -> None:
    """A toggle that offramp made is deleted by its undo, and written by a plan back."""
    there, back = tmp_path / "there", tmp_path / "back"
    acted = moving.type(("act", moving.plan(TO_KAFKA, there)), there)
    assert acted.exit_code == 0, acted.output
    (run,) = (each.name for each in there.iterdir() if (each / "report.html").exists())

    def refused(right: str, path: str, words: tuple[str, ...], runs: Path) -> None:
        with moving.without(right, path):
            ended = moving.type(words, runs)
        assert ended.exit_code in (RunError.exit_code, AuthenticationFailed.exit_code), ended.output
        assert names(ended.output, right, path), (right, words, ended.output)
        assert moving.client.get(MODE)[0] == b"kafka"

    refused(DELETE, MIGRATION, ("undo", run), there)
    refused(READ, MODE, ("undo", run), there)
    refused(READ, MODE, ("act", moving.plan(TO_ZOOKEEPER, back / "1")), back / "1")
    refused(WRITE, MODE, ("act", moving.plan(TO_ZOOKEEPER, back / "2")), back / "2")
    returned = moving.type(("act", moving.plan(TO_ZOOKEEPER, back / "3")), back / "3")
    assert returned.exit_code == 0, returned.output
    assert moving.client.get(MODE)[0] == b"zookeeper"
