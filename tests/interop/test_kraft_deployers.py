"""A move whose nodes are restarted by the operator's command, and by a person: with files of ``settings_dir``.

The files are those that ``offramp kraft preflight --write-settings`` makes, completed by what it says is missing. The
command and the person reach the lab's processes through a socket, and start them with those files and nothing else.

Then two brokers and one controller, and a deployer that restarts another broker than it was told, starts one in a mode
that nobody wants, or comes after its order was called off; hosts that changed places, and a file edited in a roll.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

import pytest

from kit.errors import OfframpError, RunError, StalePlan, UnsafePlan
from kit.kraft.status import KraftStatus
from kit.lab import Lab, faults
from kit.lab.java.jvm import properties
from kit.lab.process import wait_until
from kit.lab.servers.migrating import connected
from kit.text.properties import parse_properties
from tests.interop.kraft_scene import KILLED, KraftScene
from tests.servers.kraft_walk import Ended
from tests.soak import soak_only

pytestmark = [soak_only, pytest.mark.timeout(900)]
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
    """Return the made files with what their comments ask for: secrets, ``super.users``, a controller's own id and
    places.
    """
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


def act_with_person(scene: KraftScene, hosts: Hosts, to: str) -> None:
    """A person reads what the run says, and does it on the host."""
    digest = scene.plan(to)["digest"]
    command = [sys.executable, "-m", "kit", "act", digest[:8], "--profile-file", str(scene.file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        said = []
        for line in run.stderr:
            said.append(line)
            order = ORDER.match(line.rstrip())  # The deployer's output is in events too.
            if order:
                with Client(hosts.address, authkey=b"lab") as host:
                    host.send([order[name] or "" for name in ("action", "role", "node", "mode", "file")])
                    host.recv()
    assert run.returncode == 0, "".join(said)


@pytest.fixture(scope="module")
def scene() -> KraftScene:
    """``noted``: the orders that the hosts were given."""
    with Lab(brokers=1, controllers=1) as lab:
        lab.create_topic("orders", 2)
        seen, hosts = KraftScene(lab), Hosts(lab)
        nodes, script = lab.folder / "nodes", lab.folder / "node.py"
        script.write_text(NODE)
        plain = seen.file.read_text()
        command = json.dumps([sys.executable, str(script), hosts.address, *ORDERS])
        kinds = {"command": f'kind = "command"\ncommand = {command}', "manual": 'kind = "manual"'}

        def use(kind: str) -> None:
            asked = plain.replace(
                '[clusters.lab.deploy.nodes]\nkind = "lab"', f"[clusters.lab.deploy.nodes]\n{kinds[kind]}"
            )
            seen.file.write_text(asked.replace("[clusters.lab.kraft]", '[clusters.lab.kraft]\nsettings_dir = "nodes"'))

        use("command")
        write_settings(seen, nodes)
        incomplete = ("plan", "kraft", "--to", "controllers", "--override", "preflight_known")
        seen.refuse("incomplete", UnsafePlan, *incomplete)
        completed(lab, nodes)
        seen.go("controllers")
        plan = seen.plan("dual write")
        touched = nodes / "broker-1.migration.properties"
        text = touched.read_text()
        touched.write_text(text + "num.network.threads=3\n")
        seen.refuse("edited", StalePlan, "act", plan["digest"][:8])
        touched.write_text(text)
        seen.go("dual write")
        use("manual")
        act_with_person(seen, hosts, "kraft")
        plan = seen.plan("zookeeper")
        use("command")
        seen.refuse("other operators or tools", RunError, "act", plan["digest"][:8])
        use("manual")
        act_with_person(seen, hosts, "zookeeper")
        seen.status("back")
        hosts.close()
        seen.noted["orders"] = hosts.orders
    return seen


def write_settings(scene: KraftScene, nodes: Path) -> None:
    made = scene.offramp("kraft", "preflight", "--write-settings", str(nodes))
    assert "written:" in made.stderr, made.stderr


def test_the_whole_way_there_and_back_is_walked_with_made_files(scene):
    assert scene.phases == {"back": "zookeeper"}
    assert scene.noted["orders"] == [
        ("start", "controller", "3000", "migration", "controller-3000.migration.properties"),
        ("restart", "broker", "1", "migration", "broker-1.migration.properties"),
        ("restart", "broker", "1", "kraft", "broker-1.kraft.properties"),
        ("restart", "broker", "1", "migration", "broker-1.migration.properties"),
        ("stop", "controller", "3000", "", ""),
        ("restart", "broker", "1", "zookeeper", "broker-1.zookeeper.properties"),
        ("wipe", "controller", "3000", "", ""),
    ]


def test_files_that_are_not_complete_are_named(scene):
    assert "controller-3000.migration.properties can't be read" in scene.refusals["incomplete"]


def test_a_file_that_was_edited_after_the_plan_voids_it(scene):
    assert "settings files" in scene.refusals["edited"]


def test_other_tools_than_were_approved_are_refused(scene):
    assert "the plan has the instruction" in scene.refusals["other operators or tools"]


# Deployers that lie


@dataclass
class Liar:
    """Carries orders out as ``kit.lab`` does, but for what is said here.

    ``instead``: the broker that is restarted whichever was ordered; ``mode``: in which one is started; ``held``: until
    when an order waits; ``first``: what happens before the next order.
    """

    lab: Lab
    orders: list[tuple[int, str]] = field(default_factory=list)
    instead: dict[int, int] = field(default_factory=dict)
    mode: str | None = None
    held: threading.Event | None = None
    first: Callable[[int], None] | None = None

    def __call__(self, role: str, node: int, action: str, mode: str) -> str:
        if role != "broker":
            return self.lab.move_node(role, node, action, mode)
        self.orders.append((node, mode))
        first, self.first = self.first, None
        if first is not None:
            first(node)
        if self.held is not None:
            self.held.wait(300)
        return self.lab.move_node(role, self.instead.get(node, node), action, self.mode or mode)


@dataclass
class Lies(KraftScene):
    """``said``: what runs said of each lie; ``ordered``: the orders since the last one."""

    deployer: Liar = field(kw_only=True)
    said: dict[str, Ended] = field(default_factory=dict)
    ordered: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def note(self, name: str, ended: Ended) -> Ended:
        self.said[name], self.ordered[name] = ended, [*self.deployer.orders]
        self.deployer.orders.clear()
        return ended

    def lie(self, name: str, to: str, **kill: Any) -> str:
        run, ended = self.begin(to, **kill)
        self.note(name, ended)
        return run

    def await_mode(self, broker: int, mode: str) -> None:
        """And every ISR full."""

        def is_in_mode(status: KraftStatus) -> bool:
            return mode in [it.mode for it in status.read.brokers if it.node_id == broker]

        self.await_status(f"broker {broker} in {mode} mode", is_in_mode, f"broker {broker} in {mode} mode")
        self.await_sound()

    def restart(self, broker: int, mode: str) -> None:
        """Manually, as the run asks for it."""
        self.lab.move_node("broker", broker, "restart", mode)
        self.await_mode(broker, mode)


def change_places(lies: Lies) -> None:
    """Each broker on the other's port, as if on the other's host; who holds ``/controller`` holds it again."""
    lab, holder = lies.lab, lies.status("places").read.control.controller_id
    one, two = sorted(lab.migration.migrating, key=lambda it: it.broker_id != holder)
    for each in (one, two):
        each.process.stop()
        faults.await_gone(lab, f"/brokers/ids/{each.broker_id}")
    one.added["listeners"], two.added["listeners"] = two.added["listeners"], one.added["listeners"]
    one.launch()
    with connected(lab.zookeeper_connect) as client:
        wait_until(lambda: client.exists("/controller"), "its election", 90)
    two.launch()
    lies.await_sound()


def hosts_that_changed_places(lies: Lies) -> None:
    digest = lies.plan("dual write")["digest"]
    change_places(lies)
    lies.note("swapped", lies.offramp("act", digest[:8]))
    change_places(lies)


def another_broker_is_restarted(lies: Lies) -> None:
    """The undo is refused until the other broker is as before."""
    lies.deployer.instead = {1: 2, 2: 1}
    run = lies.lie("stray", "dual write")
    lies.deployer.instead = {}
    for number in (1, 2):
        lies.note(f"undo {number}", lies.resume(run, verb="undo"))
    lies.note("resume", lies.resume(run))
    ((ordered, _),) = lies.ordered["stray"]
    lies.restart(3 - ordered, "zookeeper")
    lies.note("undone", lies.resume(run, verb="undo"))
    lies.status("undone")


def a_broker_is_down_and_a_file_is_edited(lies: Lies, nodes: Path) -> None:
    """The one that is down was to be the second; the file is edited while it is started."""
    lab = lies.lab
    run = lies.lie("killed", "kraft", kill_at="attempted/01-roll-to-kraft/broker *")
    (first,) = {int(it["item"][-1]) for it in lies.events(run) if it["event"] == "attempted"}
    faults.kill(faults.broker(lab, 3 - first))
    file = nodes / f"broker-{first}.kraft.properties"
    text = file.read_text()
    lies.deployer.first = lambda node: file.write_text(text + "num.network.threads=3\n") and None
    lies.note("edited", lies.resume(run))
    file.write_text(text)
    lies.note("restored", lies.resume(run))
    lies.status("kraft")


def a_broker_is_started_in_a_third_mode(lies: Lies) -> None:
    """In the first roll of the way back, which is undone."""
    lies.deployer.mode = "zookeeper"
    run = lies.lie("third mode", "zookeeper")
    lies.deployer.mode = None
    lies.note("third mode resumed", lies.resume(run))
    ((ordered, _),) = lies.ordered["third mode"]
    lies.restart(ordered, "migration")
    lies.note("third mode repaired", lies.resume(run, verb="undo"))


def an_order_comes_after_the_undo(lies: Lies) -> None:
    lies.deployer.held = threading.Event()
    run = lies.lie("late", "kraft", kill_at="attempted/01-roll-to-kraft/broker *", after_s=5.0)
    lies.note("late, undone", lies.resume(run, verb="undo"))
    ((ordered, _),) = lies.ordered["late"]
    lies.deployer.held.set()
    lies.await_mode(ordered, "kraft")
    lies.deployer.held = None
    lies.noted["risks"] = lies.plan("kraft")["risks"]
    lies.restart(ordered, "migration")


@pytest.fixture(scope="module")
def lies() -> Lies:
    with Lab(brokers=2, controllers=1) as lab:
        lab.create_topic("orders", 2, 2)
        nodes, deployer = lab.folder / "nodes", Liar(lab)
        lab._control._move = deployer
        seen = Lies(lab, deployer=deployer)
        seen.go("controllers")
        hosts_that_changed_places(seen)
        another_broker_is_restarted(seen)
        seen.go("dual write")
        deployer.orders.clear()
        an_order_comes_after_the_undo(seen)
        write_settings(seen, nodes)
        plain = seen.file.read_text()
        seen.file.write_text(plain.replace("[clusters.lab.kraft]", '[clusters.lab.kraft]\nsettings_dir = "nodes"'))
        a_broker_is_down_and_a_file_is_edited(seen, nodes)
        seen.file.write_text(plain)
        a_broker_is_started_in_a_third_mode(seen)
    return seen


def test_brokers_that_changed_places_are_named_and_nothing_is_ordered(lies):
    assert lies.said["swapped"].exit_code == RunError.exit_code
    assert "in the plan broker 2 has this address" in lies.said["swapped"].stderr
    assert "Restore the addresses, or make a new plan" in lies.said["swapped"].stderr
    assert lies.ordered["swapped"] == []


def test_a_broker_that_was_restarted_instead_is_named_with_the_one_that_was_ordered(lies):
    ((ordered, _),) = lies.ordered["stray"]
    told = (
        f"broker {ordered} was to go to migration mode, but another broker changed, which this run did not order: "
        "broker"
    )
    assert f"{told} {3 - ordered} from zookeeper to migration mode" in lies.said["stray"].stderr


def test_nothing_is_undone_or_ordered_until_the_other_broker_is_as_before(lies):
    ((ordered, _),) = lies.ordered["stray"]
    for name in ("undo 1", "undo 2", "resume"):
        assert (lies.said[name].exit_code, lies.ordered[name]) == (RunError.exit_code, []), lies.said[name].stderr
        assert f"Start broker {3 - ordered} in zookeeper mode, then continue" in lies.said[name].stderr
    assert lies.said["undone"].exit_code == 0, lies.said["undone"].stderr
    assert {it.mode for it in lies.statuses["undone"].read.brokers} == {"zookeeper"}


def test_a_broker_that_is_down_is_started_first_into_the_mode_that_is_wanted(lies):
    assert lies.said["killed"].exit_code == KILLED
    ((down, mode), (first, _)) = lies.ordered["edited"] + lies.ordered["restored"]
    assert (down, mode) == (3 - first, "kraft")
    assert lies.statuses["kraft"].state.phase == "kraft"


def test_a_file_that_is_edited_in_a_roll_is_refused_before_its_broker_is_ordered(lies):
    (first, _) = lies.ordered["restored"][0]
    assert lies.said["edited"].exit_code == RunError.exit_code
    told = f"broker-{first}.kraft.properties, with which broker {first} would be started, was edited after the plan"
    assert told in lies.said["edited"].stderr
    assert lies.said["restored"].exit_code == 0, lies.said["restored"].stderr


def test_a_mode_that_no_step_expects_is_named_and_not_waited_for(lies):
    ((ordered, _),) = lies.ordered["third mode"]
    told = f"broker {ordered} was to go from kraft to migration mode, but runs in zookeeper mode"
    assert told in lies.said["third mode"].stderr
    again = lies.said["third mode resumed"].stderr
    assert f"broker {ordered} is in zookeeper mode, which this step does not expect" in again
    assert lies.ordered["third mode resumed"] == []
    assert lies.said["third mode repaired"].exit_code == 0, lies.said["third mode repaired"].stderr


def test_an_order_that_comes_after_its_undo_is_reported_by_the_next_plan(lies):
    ((ordered, _),) = lies.ordered["late"]
    assert lies.said["late, undone"].exit_code == 0, lies.said["late, undone"].stderr
    (told,) = [each for each in lies.noted["risks"] if each.startswith("The brokers are in different modes")]
    assert f"broker {ordered} is in kraft mode" in told
