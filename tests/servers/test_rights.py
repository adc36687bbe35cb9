"""Least privilege: a login with exactly the ACLs of docs/security.md can do exactly that; a missing right is named."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import TopicPartition
from typer.testing import CliRunner, Result

from kit.cli.main import app
from kit.clients.cluster import connect
from kit.errors import ConnectError, NotFound, PartialRead, ReadError, RunError, UnsafePlan
from kit.lab.members.new_consumers import NewMember
from kit.lab.members.python import PythonMember
from kit.lab.servers.migrating import connected
from kit.moves.group.toggle import read_toggle
from kit.moves.protocol.group_configs import fetch_configs
from kit.profile import load_profile
from tests.servers.awaiting import SECONDS
from tests.servers.coordinators import await_coordinator, commit, committed
from tests.servers.issuer import SECRET, Issuer
from tests.servers.sasl_lab import FIRST_LOCK, OFFSETS, Right, SaslLab, allowed, by_tokens, grant, revoke
from tests.servers.verb_rights import (
    ALTER_GROUP,
    CONFIGS_OF_CLUSTER,
    DESCRIBE_GROUPS,
    DESCRIBE_TOPICS,
    ELSEWHERE,
    GROUP,
    LOCK_NAMES,
    LOCK_TOPIC,
    MOVING,
    OBSERVED,
    PROTOCOL,
    RUNS,
    VERBS,
    WITH_ZOOKEEPER,
    Verb,
    weaker,
)
from tests.soak import first, soak_only

TOPIC, OTHER = "payments", "refunds"
DESCRIBE_CLUSTER, READ_TOPICS, READ_GROUPS = OFFSETS
DELETE_GROUPS: Right = ("Delete", "Group", "*")
LOCK: tuple[Right, ...] = (("Read", "Group", "offramp.lock."), ("Read", "Topic", "offramp.lock"))
SEEN: tuple[Right, ...] = (("Describe", "Topic", "*"), ("Describe", "Group", "*"))
RESET = ("plan", "offsets", "reset", "--store", "kafka", "--to", "20")


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    with Issuer(tmp_path_factory.mktemp("issuer")) as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLIENT_SECRET", SECRET)
        yield running


@pytest.fixture(scope="module")
def lab(issuer: Issuer) -> Iterator[SaslLab]:
    with SaslLab(by_tokens(issuer), allowed(issuer), kraft=True) as running:
        await_coordinator(running)
        for topic in (TOPIC, OTHER):
            running.create_topic(topic, 1)
            running.produce(topic, 50)
        yield running


class Login(NamedTuple):
    """A user with some rights, and a group of its name with an offset of ``TOPIC``."""

    name: str
    profile: Path
    runs: Path

    def type(self, *words: str) -> Result:
        place = ["--profile-file", str(self.profile), *([] if words[0] == "groups" else ["--runs", str(self.runs)])]
        return CliRunner().invoke(app, [*words, *place])

    def act(self, *words: str) -> Result:
        return self.type("act", self.approved(*words))

    def approved(self, *words: str) -> str:
        """The id of a plan; with an override where the plan is refused because its undo lacks a right."""
        planned = self.type(*words, "--group", self.name)
        if planned.exit_code == UnsafePlan.exit_code and "undo_rights" in planned.output:
            planned = self.type(*words, "--group", self.name, "--override", "undo_rights")
        assert planned.exit_code == 0, planned.output
        (plan,) = (self.runs / "plans").glob("????????????.json")
        approved = self.type("approve", plan.stem, "--subject", self.name, "--digest", plan.stem)
        assert approved.exit_code == 0, approved.output
        return plan.stem

    @property
    def run(self) -> str:
        """The id of the only run."""
        (run,) = [each.name for each in self.runs.iterdir() if (each / "approval.json").exists()]
        return run

    def undo(self) -> Result:
        return self.type("undo", self.run)


def profile_of(lab: SaslLab, issuer: Issuer, name: str, folder: Path) -> Path:
    keys = f'token_url = "{issuer.token_url}"\nclient_id = "{name}"\nclient_secret = {{ env = "CLIENT_SECRET" }}\n'
    profile = folder / f"{name}.toml"
    profile.write_text(lab.sasl_profile("OAUTHBEARER", keys), encoding="utf-8")
    return profile


@pytest.fixture
def login(lab: SaslLab, issuer: Issuer, tmp_path: Path) -> Callable[..., Login]:
    def made(name: str, *rights: Right) -> Login:
        grant(lab, name, *rights)
        commit(lab, name, TopicPartition(TOPIC, 0, 10))
        return Login(name, profile_of(lab, issuer, name, tmp_path), tmp_path / f"runs-{name}")

    return made


def test_the_rights_of_offset_plans_are_enough_and_not_more(login: Callable[..., Login]) -> None:
    """First the topic of the lock is missing; once it is there, CREATE is not needed."""
    without = login("without-create", *OFFSETS).act(*RESET)
    assert without.exit_code == RunError.exit_code
    assert "topic offramp.lock, which offramp's lock needs, can't be created" in without.output
    first = login("first", *OFFSETS, FIRST_LOCK)
    assert first.act(*RESET).exit_code == 0
    assert first.undo().exit_code == 0
    assert login("second", *OFFSETS).act(*RESET).exit_code == 0
    deletion = login("third", *OFFSETS).act("plan", "delete-groups")
    assert deletion.exit_code == RunError.exit_code
    assert "does not have DELETE on group 'third'" in deletion.output


def test_a_reader_reads_and_writes_nothing(login: Callable[..., Login]) -> None:
    reader = login("reader", DESCRIBE_CLUSTER, *SEEN)
    assert "reader" in reader.type("groups").output
    refused = reader.act(*RESET)
    assert refused.exit_code == RunError.exit_code
    assert "--operation Read --group offramp.lock. --resource-pattern-type prefixed" in refused.output


def test_a_topic_that_the_login_does_not_see_is_named_as_a_reason(login: Callable[..., Login]) -> None:
    blind = login("blind", DESCRIBE_CLUSTER, READ_GROUPS)
    planned = blind.type(*RESET, "--group", "blind")
    assert planned.exit_code == NotFound.exit_code, planned.output
    assert "a login needs DESCRIBE on the topic" in planned.output


def test_an_undo_of_a_new_offset_needs_delete_and_reports_it(login: Callable[..., Login], lab: SaslLab) -> None:
    user = login("no-delete", *OFFSETS, FIRST_LOCK)
    assert user.act(*RESET, "--topic", OTHER).exit_code == 0
    halted = user.undo()
    assert halted.exit_code == RunError.exit_code
    assert "does not have DELETE on group 'no-delete'" in halted.output
    grant(lab, "no-delete", DELETE_GROUPS)
    assert user.undo().exit_code == 0


@pytest.fixture(scope="module")
def watched(lab: SaslLab) -> SaslLab:
    """With a group, another one, and the topic of locks."""
    for group, offset in ((GROUP, 10), ("other", 5)):
        commit(lab, group, TopicPartition(TOPIC, 0, offset))
    if "offramp.lock" not in lab.admin.list_topics(timeout=10).topics:
        lab.create_topic("offramp.lock", 1)
    return lab


@pytest.fixture(scope="module")
def moving(watched: SaslLab) -> SaslLab:
    """With a group that has a member of the classic protocol."""
    watched.start_new_consumers([NewMember(MOVING, [TOPIC], f"{MOVING}-1")])
    return watched


@pytest.fixture(scope="module")
def old_lab(issuer: Issuer) -> Iterator[SaslLab]:
    """With ZooKeeper, and a group whose member can be toggled."""
    with SaslLab(by_tokens(issuer)) as running:
        await_coordinator(running)
        running.create_topic(TOPIC, 1)
        running.start_python_members([PythonMember("mezkcc", MOVING, [TOPIC])])
        yield running


@pytest.mark.parametrize("verb", first(list(VERBS), 4))
def test_each_verb_needs_exactly_its_rights(
    watched: SaslLab, issuer: Issuer, tmp_path: Path, verb: str, request: pytest.FixtureRequest
) -> None:
    if MOVING in VERBS[verb].words:
        request.getfixturevalue("moving")
    needs_exactly(watched, issuer, tmp_path, verb, VERBS[verb])


@soak_only
@pytest.mark.parametrize("verb", WITH_ZOOKEEPER)
def test_each_verb_with_zookeeper_needs_exactly_its_rights(
    old_lab: SaslLab, issuer: Issuer, tmp_path: Path, verb: str
) -> None:
    needs_exactly(old_lab, issuer, tmp_path, verb, WITH_ZOOKEEPER[verb])


@soak_only
@pytest.mark.parametrize("moment", ["act", "undo"])
@pytest.mark.parametrize("verb", WITH_ZOOKEEPER)
def test_a_run_of_groups_whose_login_lost_a_right_names_it_and_continues_with_it(
    old_lab: SaslLab, issuer: Issuer, tmp_path: Path, verb: str, moment: str
) -> None:
    """The group is left in the store that it had."""
    said = {DESCRIBE_TOPICS: f"lacks DESCRIBE on the topic {TOPIC}", DESCRIBE_GROUPS: "lacks DESCRIBE on the group"}
    words = [word for word in WITH_ZOOKEEPER[verb].words if word not in ("-g", MOVING, RUNS)]
    for right, sentence in said.items():
        name = f"{verb} {moment} without {' '.join(right)}"
        grant(old_lab, name, *said)
        user = Login(MOVING, profile_of(old_lab, issuer, name, tmp_path), tmp_path / name.replace("*", "every"))
        plan = user.approved(*words)
        if moment == "undo":
            assert user.type("act", plan).exit_code == 0
        before = toggle(old_lab)
        revoke(old_lab, name, right)
        refused = user.type("act", plan) if moment == "act" else user.undo()
        assert refused.exit_code in (RunError.exit_code, ConnectError.exit_code), refused.output
        assert sentence in " ".join(refused.output.split())
        assert toggle(old_lab) == before
        grant(old_lab, name, right)
        if moment == "act":
            assert user.type("resume", user.run).exit_code == 0
        assert user.undo().exit_code == 0
        assert toggle(old_lab) is None


def toggle(lab: SaslLab) -> str | None:
    with connected(lab.zookeeper_connect) as client:
        return read_toggle(client, MOVING).mode


@soak_only
@pytest.mark.parametrize("right", [None, *OBSERVED])
def test_a_report_names_each_right_that_its_login_lacks(
    watched: SaslLab, issuer: Issuer, tmp_path: Path, right: Right | None
) -> None:
    """In the page, or beside it."""
    user = f"reports without {right}"
    grant(watched, user, *(each for each in OBSERVED if each != right))
    file = str(profile_of(watched, issuer, user, tmp_path))
    words = [sys.executable, "-m", "kit", "report", "--output", str(tmp_path / "pages"), "--profile-file", file]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert ended.returncode in (0, PartialRead.exit_code), ended.stderr
    (page,) = (tmp_path / "pages").glob("report-*.html")
    shown = ended.stderr + page.read_text(encoding="utf-8")
    assert [each for each, sentence in OBSERVED.items() if sentence in shown] == ([right] if right else [])


def needs_exactly(lab: SaslLab, issuer: Issuer, tmp_path: Path, verb: str, needed: Verb) -> None:
    """With its rights the verb succeeds; without any one of them its output names this right."""
    words, said, exit_code = needed

    def typed(user: str, rights: tuple[Right, ...]) -> Result:
        grant(lab, user, *rights)
        place = [str(tmp_path / user)] if words[-1] == RUNS else []
        named = [word.replace("{file}", str(tmp_path / user.replace("*", "every"))) for word in words]
        return CliRunner().invoke(app, [*named, *place, "--profile-file", str(profile_of(lab, issuer, user, tmp_path))])

    whole = typed(f"{verb} whole", tuple(said))
    assert whole.exit_code == exit_code, whole.output
    for right, sentence in said.items():
        if sentence != "not before":
            assert sentence not in whole.output
        rest = (*(each for each in said if each != right), *weaker(right))
        lacking = typed(f"{verb} without {' '.join(right)}", rest)
        assert isinstance(lacking.exception, SystemExit | None), lacking.exception
        assert sentence in " ".join(lacking.output.split()), (right, lacking.output)


READ_GROUP: Right = ("Read", "Group", "{group}")
DELETE_GROUP: Right = ("Delete", "Group", "{group}")
READ_TOPIC, READ_OTHER, SEE_TOPICS = ("Read", "Topic", TOPIC), ("Read", "Topic", OTHER), ("Describe", "Topic", "*")
RUNNING: tuple[Right, ...] = (DESCRIBE_CLUSTER, SEE_TOPICS, READ_TOPIC, READ_OTHER, READ_GROUP, DELETE_GROUP, *LOCK)
BOTH = (*RESET, "--topic", TOPIC, "--topic", OTHER)
"""One offset is moved, and one is new: its undo deletes it."""
OFFSETS_GONE = ("plan", "offsets", "delete", "--store", "kafka", "--override", "kept_elsewhere")
GROUP_GONE = ("plan", "delete-groups")
HIDDEN_GROUP, HIDDEN_TOPIC = (READ_GROUP, DELETE_GROUP), (SEE_TOPICS, READ_TOPIC)
LOCK_GROUP_SAID = "--operation Read --group offramp.lock. --resource-pattern-type prefixed"
LOCK_TOPIC_SAID = "--operation Read --topic offramp.lock"
NO_READ_GROUP, NO_DELETE = "does not have READ on group '{group}'", "does not have DELETE on group '{group}'"
NO_READ_TOPIC, NO_READ_OTHER = f"does not have READ on topic '{TOPIC}'", f"does not have READ on topic '{OTHER}'"
SEE_EVERYTHING = "grant the login DESCRIBE on all topics and on the cluster"
LACKING: list[tuple[tuple[str, ...], str, tuple[Right, ...], str]] = [
    (BOTH, "act", (READ_OTHER,), NO_READ_OTHER),
    (BOTH, "act", (LOCK[1],), LOCK_TOPIC_SAID),
    (RESET, "act", HIDDEN_GROUP, "the login lacks DESCRIBE on the group"),
    (BOTH, "undo", (DELETE_GROUP,), NO_DELETE),
    (BOTH, "act", (LOCK[0],), LOCK_GROUP_SAID),
    (BOTH, "act", (READ_GROUP,), NO_READ_GROUP),
    (BOTH, "act", HIDDEN_TOPIC, f"the login may not describe '{TOPIC}'"),
    ((*RESET, "--exclusive"), "act", (READ_GROUP,), NO_READ_GROUP),
    ((*RESET, "--exclusive"), "act", (READ_TOPIC,), NO_READ_TOPIC),
    (BOTH, "undo", (READ_GROUP,), NO_READ_GROUP),
    (BOTH, "undo", (READ_OTHER,), NO_READ_OTHER),
    (BOTH, "undo", HIDDEN_GROUP, NO_READ_GROUP),
    (BOTH, "undo", HIDDEN_TOPIC, NO_READ_TOPIC),
    (BOTH, "undo", (LOCK[0],), LOCK_GROUP_SAID),
    (BOTH, "undo", (LOCK[1],), LOCK_TOPIC_SAID),
    (OFFSETS_GONE, "act", (DELETE_GROUP,), NO_DELETE),
    (OFFSETS_GONE, "act", (READ_TOPIC,), NO_READ_TOPIC),
    (OFFSETS_GONE, "act", HIDDEN_GROUP, "the login lacks DESCRIBE on the group"),
    (OFFSETS_GONE, "act", HIDDEN_TOPIC, f"the login may not describe '{TOPIC}'"),
    (OFFSETS_GONE, "undo", (READ_GROUP,), NO_READ_GROUP),
    (OFFSETS_GONE, "undo", HIDDEN_TOPIC, NO_READ_TOPIC),
    (GROUP_GONE, "act", (DESCRIBE_CLUSTER,), SEE_EVERYTHING),
    (GROUP_GONE, "act", HIDDEN_TOPIC, SEE_EVERYTHING),
    (GROUP_GONE, "act", (DELETE_GROUP,), NO_DELETE),
    (GROUP_GONE, "act", HIDDEN_GROUP, NO_DELETE),
    (GROUP_GONE, "act", (LOCK[0],), LOCK_GROUP_SAID),
    (GROUP_GONE, "act", (LOCK[1],), LOCK_TOPIC_SAID),
    (GROUP_GONE, "undo", (READ_GROUP,), NO_READ_GROUP),
    (GROUP_GONE, "undo", (READ_TOPIC,), NO_READ_TOPIC),
    (GROUP_GONE, "undo", HIDDEN_GROUP, NO_READ_GROUP),
    (GROUP_GONE, "undo", HIDDEN_TOPIC, NO_READ_TOPIC),
]
"""A plan; whether it is executed or undone; which rights its login has lost since; what is said then."""


@pytest.mark.parametrize(("words", "moment", "lost", "said"), first(LACKING, 4))
def test_a_run_whose_login_lost_a_right_names_it_writes_nothing_and_continues_with_it(
    watched: SaslLab,
    login: Callable[..., Login],
    words: tuple[str, ...],
    moment: str,
    lost: tuple[Right, ...],
    said: str,
) -> None:
    name = f"lost-{LACKING.index((words, moment, lost, said))}"

    def of_group(*rights: Right) -> list[Right]:
        return [(operation, kind, resource.format(group=name)) for operation, kind, resource in rights]

    def offsets() -> list[int]:
        return committed(watched, name, TopicPartition(TOPIC, 0), TopicPartition(OTHER, 0))

    user = login(name, *of_group(*RUNNING))
    plan = user.approved(*words)
    if moment == "undo":
        acted = user.type("act", plan)
        assert acted.exit_code == 0, acted.output
    before = offsets()
    revoke(watched, name, *of_group(*lost))
    refused = user.type("act", plan) if moment == "act" else user.undo()
    assert refused.exit_code == RunError.exit_code, refused.output
    assert said.format(group=name) in " ".join(refused.output.split())
    assert offsets() == before
    grant(watched, name, *of_group(*lost))
    again = user.type("resume", user.run) if moment == "act" else user.undo()
    assert again.exit_code == 0, again.output
    assert offsets() != before


SEE_CONFIGS: Right = ("DescribeConfigs", "Group", MOVING)
PROTOCOL_RUNNING: tuple[Right, ...] = (*VERBS["plan protocol with configs"].said, *LOCK)
PROTOCOL_LACKING = (
    ((ALTER_GROUP,), (), "the login lacks DESCRIBE_CONFIGS on the group"),
    ((ALTER_GROUP,), (SEE_CONFIGS,), "the login lacks ALTER_CONFIGS on the group"),
    ((DESCRIBE_GROUPS, ALTER_GROUP), (), "Kafka hides each group that the login may not DESCRIBE"),
    ((DESCRIBE_TOPICS,), (), f"the login lacks DESCRIBE on the topic {TOPIC}"),
    ((CONFIGS_OF_CLUSTER,), (), "Grant the login DESCRIBE_CONFIGS on the cluster"),
)
"""The rights that a login loses after the plan of a protocol was made; what it keeps of them; the sentence."""


@pytest.mark.parametrize(("lost", "kept", "said"), first(PROTOCOL_LACKING))
def test_a_run_of_a_protocol_whose_login_lost_a_right_names_it_and_writes_nothing(
    moving: SaslLab, issuer: Issuer, tmp_path: Path, lost: tuple[Right, ...], kept: tuple[Right, ...], said: str
) -> None:
    name = f"moves-{PROTOCOL_LACKING.index((lost, kept, said))}"
    grant(moving, name, *PROTOCOL_RUNNING, *kept)
    user = Login(MOVING, profile_of(moving, issuer, name, tmp_path), tmp_path / "runs")
    words = (each for each in PROTOCOL if each not in ("-g", MOVING))
    plan = user.approved(*words, "--group-config", "consumer.session.timeout.ms=50000")
    revoke(moving, name, *lost)
    refused = user.type("act", plan)
    assert refused.exit_code == RunError.exit_code, refused.output
    assert said in " ".join(refused.output.split())
    with connect(load_profile(file=user.profile)) as cluster:
        grant(moving, name, *lost)
        own = fetch_configs(cluster, MOVING, ["consumer.session.timeout.ms"])
    assert own == {"consumer.session.timeout.ms": None}
    assert user.undo().exit_code == 0


CONSUMING: dict[Right, str] = {
    ("Read", "Group", "consumed"): "the login lacks READ on the group",
    ("Read", "Topic", TOPIC): f"the login lacks READ on the topic {TOPIC}",
}


@pytest.mark.parametrize("right", [None, *first(list(CONSUMING))])
def test_a_member_needs_read_on_its_group_and_its_topic(
    lab: SaslLab, issuer: Issuer, tmp_path: Path, right: Right | None
) -> None:
    """A member that never gets a record must not stay silently in its group."""
    user = f"consumes without {right}"
    rest = [each for each in CONSUMING if each != right]
    grant(lab, user, *rest, *(weaker(right) if right else ()))
    words = ["consume", "--flavour", "kc", "-g", "consumed", "-t", TOPIC, "--from-beginning", "--max-messages", "1"]
    file = ["--profile-file", str(profile_of(lab, issuer, user, tmp_path))]
    ended = subprocess.run(
        [sys.executable, "-m", "kit", *words, *file], capture_output=True, text=True, timeout=SECONDS
    )
    assert ended.returncode == (ReadError.exit_code if right else 0), ended.stderr
    if right:
        assert CONSUMING[right] in ended.stderr


def test_a_lock_is_broken_by_read_on_its_group(watched: SaslLab, issuer: Issuer, tmp_path: Path) -> None:
    held = tmp_path / "held.toml"
    held.write_text(watched.profile_toml(), encoding="utf-8")
    words = [sys.executable, "-m", "tests.servers.lock_holder", str(held), "30", "locked", "run-1"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        try:
            assert holder.stdout.readline() == "held\n"
            for right, exit_code in ((LOCK_NAMES, RunError.exit_code), (LOCK[0], 0)):
                user = f"breaks by {right[0]}"
                grant(watched, user, LOCK_TOPIC, right)
                file = ["--profile-file", str(profile_of(watched, issuer, user, tmp_path))]
                done = CliRunner().invoke(app, ["lock", "break", "locked", "--run", "run-1", *file])
                assert done.exit_code == exit_code, done.output
                assert ("--operation Read --group offramp.lock." in done.output) == (exit_code != 0)
            holder.stdin.write("\n")
            holder.stdin.flush()
            assert holder.stdout.readline() == "LockLost\n"
        finally:
            holder.kill()


def test_the_rights_of_each_verb_of_the_page_are_tried_or_the_reason_is_given() -> None:
    page = (Path(__file__).parents[2] / "docs/security.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `offramp ")]
    needy = {verb for verbs, _, kafka, _ in rows if kafka != "none" for verb in re.findall("`offramp ([^`]+)`", verbs)}
    assert needy - VERBS.keys() - WITH_ZOOKEEPER.keys() - ELSEWHERE.keys() == {"approve"} & needy
