"""A move whose nodes are restarted by the operator's command, and by a person: with files of ``settings_dir``.

The files are those that ``offramp kraft preflight --write-settings`` makes, completed by what it says is missing. The
command and the person reach the lab's processes through a socket, and start them with those files and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Client, Listener
from pathlib import Path

import pytest

from kit.cluster import connect
from kit.errors import OfframpError, RunError, StalePlan, UnsafePlan
from kit.kraft import kraft_status
from kit.lab import Lab, faults
from kit.lab.java.jvm import properties
from kit.profile import load_profile
from kit.text.properties import parse_properties
from tests.interop.kraft_scene import Scene
from tests.soak import soak_only

pytestmark = soak_only
NODE = """
import sys
from multiprocessing.connection import Client

with Client(sys.argv[1], authkey=b"lab") as lab:
    lab.send(sys.argv[2:])
    said = lab.recv()
print(said)
sys.exit(said.startswith("refused"))
"""
ORDER = re.compile(
    r"Now (?P<action>\w+) (?P<role>broker|controller) (?P<node>\d+)(?: in (?P<mode>\w+) mode)?"
    r"(?: with (?P<file>[^,]+?))?(?:, formatted with cluster id .*)?\.$"
)
ORDERS = ("{action}", "{role}", "{node_id}", "{to_mode}", "{settings_file}")


@dataclass
class Hosts:
    """The hosts of the nodes: starts each with the file that it is given."""

    lab: Lab
    orders: list[tuple[str, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.address = str(self.lab.folder / "hosts.sock")
        self._listener = Listener(self.address, authkey=b"lab")
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # Closed.
            while True:
                with self._listener.accept() as asked:
                    asked.send(self.do(*asked.recv()))

    def close(self) -> None:
        """Before the lab's folder goes, with the socket in it."""
        self._listener.close()

    def do(self, action: str, role: str, node: str, mode: str, file: str) -> str:
        self.orders.append((action, role, node, mode, Path(file).name if file else ""))
        found = faults.broker(self.lab, int(node)) if role == "broker" else faults.controller(self.lab, int(node))
        if file:
            found.settings = lambda folder: parse_properties(Path(file).read_text(encoding="utf-8"))
        try:
            return self.lab.move_node(role, int(node), action, mode)
        except OfframpError as error:
            return f"refused: {error}"


def completed(lab: Lab, folder: Path) -> None:
    """What the comments of the made files ask for: secrets, ``super.users``, a controller's own id and places."""
    broker = faults.broker(lab, 1)
    own = broker.settings(lab.folder / broker.name)
    by_hand = {name: own[name] for name in ("super.users", "delegation.token.secret.key")}
    jaas = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    (controller,) = lab.migration.controllers
    place = controller.settings(lab.folder / controller.name)
    mine = {name: place[name] for name in ("node.id", "listeners", "log.dirs", "controller.quorum.voters")}
    for file in sorted(folder.iterdir()):
        held = parse_properties(file.read_text(encoding="utf-8")) | by_hand
        if file.name.startswith("controller."):
            word = file.name.split(".")[1]
            (folder / f"controller-{mine['node.id']}.{word}.properties").write_text(properties(held | mine))
            file.unlink()
        else:
            quorum = (
                {} if file.name.split(".")[1] == "zookeeper" else {"controller.quorum.voters": lab.migration.voters}
            )
            file.write_text(properties(held | quorum | {jaas: own[jaas]}))


@dataclass
class Told:
    scene: Scene
    hosts: Hosts
    phases: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    by_person: list[str] = field(default_factory=list)


def act_with_person(told: Told, to: str) -> None:
    """A person reads what the run says, and does it on the host."""
    digest = told.scene.plan(to)["digest"]
    command = [sys.executable, "-m", "kit", "act", digest[:8], "--profile-file", str(told.scene.profile)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        said = []
        for line in run.stderr:
            said.append(line)
            order = ORDER.match(line.rstrip())  # What the deployer said stands in events too.
            if order:
                told.by_person.append(line.rstrip())
                with Client(told.hosts.address, authkey=b"lab") as host:
                    host.send([order[name] or "" for name in ("action", "role", "node", "mode", "file")])
                    host.recv()
    assert run.returncode == 0, "".join(said)


def refused(told: Told, name: str, error: type[OfframpError], *words: str) -> None:
    ended = told.scene.offramp(*words)
    assert ended.exit_code == error.exit_code, ended.err
    told.refused[name] = ended.err


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> Iterator[Told]:
    with Lab(brokers=1, controllers=1) as lab:
        folder = tmp_path_factory.mktemp("kraft")
        profile, nodes, script = folder / "offramp.toml", folder / "nodes", folder / "node.py"
        hosts = Hosts(lab)
        script.write_text(NODE)
        plain = lab.profile_toml()
        command = json.dumps([sys.executable, str(script), hosts.address, *ORDERS])
        kinds = {"command": f'kind = "command"\ncommand = {command}', "manual": 'kind = "manual"'}

        def use(kind: str) -> None:
            asked = plain.replace(
                '[clusters.lab.deploy.nodes]\nkind = "lab"', f"[clusters.lab.deploy.nodes]\n{kinds[kind]}"
            )
            profile.write_text(asked.replace("[clusters.lab.kraft]", '[clusters.lab.kraft]\nsettings_dir = "nodes"'))

        use("command")
        lab.create_topic("orders", 2)
        seen = Told(Scene(lab, profile), hosts)
        made = seen.scene.offramp("kraft", "preflight", "--write-settings", str(nodes))
        assert "written:" in made.err, made.err
        refused(seen, "incomplete", UnsafePlan, "plan", "kraft", "--to", "controllers", "--override", "preflight_known")
        completed(lab, nodes)
        seen.scene.go("controllers")
        plan = seen.scene.plan("dual write")
        touched = nodes / "broker-1.migration.properties"
        text = touched.read_text()
        touched.write_text(text + "num.network.threads=3\n")
        refused(seen, "edited", StalePlan, "act", plan["digest"][:8])
        touched.write_text(text)
        seen.scene.go("dual write")
        use("manual")
        act_with_person(seen, "kraft")
        plan = seen.scene.plan("zookeeper")
        use("command")
        refused(seen, "other hands", RunError, "act", plan["digest"][:8])
        use("manual")
        act_with_person(seen, "zookeeper")
        with connect(load_profile(file=profile)) as cluster:
            seen.phases.append(kraft_status(cluster).state.phase)
        hosts.close()
        yield seen


def test_the_whole_way_there_and_back_is_walked_with_made_files(told):
    assert told.phases == ["zookeeper"]
    assert told.hosts.orders == [
        ("start", "controller", "3000", "migration", "controller-3000.migration.properties"),
        ("restart", "broker", "1", "migration", "broker-1.migration.properties"),
        ("restart", "broker", "1", "kraft", "broker-1.kraft.properties"),
        ("restart", "broker", "1", "migration", "broker-1.migration.properties"),
        ("stop", "controller", "3000", "", ""),
        ("restart", "broker", "1", "zookeeper", "broker-1.zookeeper.properties"),
        ("wipe", "controller", "3000", "", ""),
    ]


def test_files_that_are_not_complete_are_named(told):
    assert "controller-3000.migration.properties can't be read" in told.refused["incomplete"]


def test_a_file_that_was_edited_after_the_plan_voids_it(told):
    assert "settings files" in told.refused["edited"]


def test_other_hands_than_were_approved_are_refused(told):
    assert "the plan says" in told.refused["other hands"]
