"""``offramp`` ends in order when its reader has gone, when Ctrl-C comes, and when the call is wrong; plans and runs
by name.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kit.cli import main as cli
from kit.cli.main import app
from kit.engine.model.approval import save_approval
from kit.engine.model.plan import save_plan
from kit.engine.model.states import RunState
from kit.engine.runs_folder import PLANS, PREFIX, list_plans
from kit.errors import OfframpError, RunError
from kit.moves.group.plan import GroupPlanRequest
from kit.operations.verbs import operate
from kit.terminal.terminal import say
from tests.generators import hostile
from tests.models.engine import Killed, ModelRun, make_plan
from tests.models.operations import GROUP, ToyGroup, ToyOperations
from tests.unit.cli.opened import find_open

pytestmark = pytest.mark.slow

OFFRAMP = [sys.executable, "-m", "kit"]
SLOW_IMPORT = "import signal, os\nos.kill(os.getpid(), signal.SIGINT)\n"


def run(*words, **options):
    return subprocess.run([*OFFRAMP, *words], capture_output=True, timeout=60, **options)


@pytest.fixture(autouse=True)
def _ctrl_c():
    """A command line that ended is deaf to it; these tests continue."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def closed_pipe():
    """The writing end of a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize("closing", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_the_caller_closed_are_no_traceback(closing):
    command = f'"$0" -m kit rebalances - {closing}'
    ended = subprocess.run(["sh", "-c", command, sys.executable], input=b"", capture_output=True, timeout=60)
    assert ended.returncode == 2
    assert b"Traceback" not in ended.stderr
    if "2>" not in closing:
        assert b"standard input, which is empty" in ended.stderr


@pytest.mark.parametrize("words", [("--help",), ("groups", "--help")])
def test_a_closed_pipe_is_the_conventional_exit(words):
    writer = closed_pipe()
    try:
        ended = subprocess.run([*OFFRAMP, *words], stdout=writer, stderr=subprocess.PIPE, timeout=60)
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_rows_into_a_closed_pipe(tmp_path):
    folder = with_plan(tmp_path)
    for options in ((), ("--json",)):
        writer = closed_pipe()
        try:
            words = ("plan", "list", "--runs", str(folder), *options)
            ended = subprocess.run([*OFFRAMP, *words], stdout=writer, stderr=subprocess.PIPE, timeout=60)
        finally:
            os.close(writer)
        assert (ended.returncode, ended.stderr) == (141, b"")


def test_a_full_disk_is_one_line():
    with open("/dev/full", "wb") as full:
        ended = subprocess.run([*OFFRAMP, "--help"], stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.decode().splitlines() == ["offramp: the output can't be written: No space left on device"]


def test_ctrl_c_while_modules_are_loaded_is_one_line(tmp_path):
    """The first module that is loaded sends it."""
    (tmp_path / "typer.py").write_text(SLOW_IMPORT, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")]), os.getcwd()])
    ended = run("groups", env={**os.environ, "PYTHONPATH": path})
    assert (ended.returncode, ended.stderr, ended.stdout) == (130, b"offramp: interrupted\n", b"")


def test_ctrl_c_in_a_verb_is_one_line(tmp_path):
    """While it waits for a ZooKeeper that takes the connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        profile = tmp_path / "offramp.toml"
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        profile.write_text(
            f'[clusters.x]\nbootstrap_servers = "{address}"\nzookeeper_connect = "{address}"\n', encoding="utf-8"
        )
        words = [*OFFRAMP, "groups", "--profile-file", str(profile)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            silent.accept()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
    assert (process.returncode, err, out) == (130, b"offramp: interrupted\n", b"")


@pytest.mark.parametrize("place", [closed_pipe, lambda: "/dev/full"], ids=["closed pipe", "full disk"])
def test_ctrl_c_stops_a_run_whose_messages_can_not_be_written(monkeypatch, tmp_path, place):
    """``offramp act … 2>&1 | tee``: Ctrl-C ends tee too, and a message into its closed pipe interrupted a write."""
    world = ModelRun(tmp_path)

    def act(going):
        os.kill(os.getpid(), signal.SIGINT)
        say("an event of the run")
        return going.act()

    nobody = open(place(), "w", encoding="utf-8")  # noqa: SIM115 - closing it raises
    try:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", nobody)
            with pytest.raises(RunError):
                operate._carry_out(world.run, act, RunState.VERIFIED)
    finally:
        with suppress(OSError):
            nobody.close()
    assert world.run.record.state == RunState.STOPPED


@pytest.mark.parametrize(("attempted", "offered"), [([], False), (["i00"], True)])
def test_an_interrupted_run_offers_an_undo_only_after_a_write_was_attempted(tmp_path, attempted, offered):
    world = ModelRun(tmp_path)

    def interrupted(step, report):
        if attempted:
            report.attempt(attempted)
        raise KeyboardInterrupt

    world.performer.act = interrupted
    with pytest.raises(OfframpError, match="was interrupted") as raised:
        operate._carry_out(world.run, lambda going: going.act(), RunState.VERIFIED)
    assert (f"offramp undo {world.folder.name}" in str(raised.value)) == offered


@pytest.mark.parametrize(("attempted", "offered"), [([], False), (["i00"], True)])
def test_a_failed_run_offers_an_undo_only_after_a_write_was_attempted(tmp_path, capfd, attempted, offered):
    world = ModelRun(tmp_path)

    def failed(step, report):
        if attempted:
            report.attempt(attempted)
        raise RunError("the broker is gone")

    world.performer.act = failed
    with pytest.raises(RunError, match="the broker is gone"):
        operate._carry_out(world.run, lambda going: going.act(), RunState.VERIFIED)
    assert (f"undo: offramp undo {world.folder.name}" in capfd.readouterr().err) == offered


def test_a_question_that_no_one_answers_is_one_line(monkeypatch, capfd, tmp_path):
    operations = ToyOperations(ToyGroup(), tmp_path, lambda sentence: None, None)
    plan = operations.make_plan(GroupPlanRequest(GROUP, "all MEZKCC", soak_s=0.1, min_stable_s=0.0, observe_s=0.0))
    find_open(monkeypatch, operations)
    monkeypatch.setattr(sys, "argv", ["offramp", "approve", plan.digest[:8]])
    with Path(os.devnull).open(encoding="utf-8") as nobody:
        monkeypatch.setattr(sys, "stdin", nobody)
        with pytest.raises(SystemExit) as ended:
            cli.main()
    told = capfd.readouterr()
    assert (ended.value.code, told.err.count("\n")) == (130, 1)
    assert told.err.endswith("offramp: interrupted\n")
    assert "Replace 1 OZKCC" in told.out
    assert operations.approvals(plan) == ()


def test_a_wrong_call_shows_what_was_typed(monkeypatch, capfd):
    """In Typer's frame: an option, a verb and an argument that don't exist."""
    typed = [
        "".join(hostile.SCRIPTS),
        "".join(hostile.MARKUP),
        "x" + "".join(hostile.CONTROLS[2:]),
        *hostile.SURROGATES,
    ]
    for words in [each for name in typed for each in ([f"--{name}"], [name], ["groups", "--", name])]:
        monkeypatch.setattr(sys, "argv", ["offramp", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        told = capfd.readouterr()
        assert ended.value.code in (0, 2), words
        assert all(char.isprintable() or char == "\n" for char in told.out + told.err), words


def with_plan(home: Path, **changed) -> Path:
    plan = make_plan(**changed)
    (home / PLANS).mkdir(parents=True, exist_ok=True)
    save_plan(plan, home / PLANS / f"{plan.digest[:PREFIX]}.json")
    return home


def test_plans_are_listed_with_what_became_of_them(tmp_path):
    world = ModelRun(tmp_path)
    world.run.act()
    plan = world.run.record.plan
    root = world.folder.parent
    (root / "plans").mkdir(exist_ok=True)
    file = root / "plans" / f"{plan.digest[:12]}.json"
    save_plan(plan, file)
    save_approval(world.run.record.approvals[0], file.with_suffix(".approval.json"))
    (root / "plans" / "0000.json").write_text("{", encoding="utf-8")
    bad, good = list_plans(root)
    assert (bad.plan, bad.kind) == ("0000", None)
    assert "is not a plan" in bad.error
    assert (good.plan, good.subject, good.made_by) == (plan.digest[:12], plan.subject, plan.made_by)
    assert (good.approved_by, good.state, good.run_id) == ("Bob", "VERIFIED", world.folder.name)
    ended = CliRunner().invoke(app, ["plan", "list", "--runs", str(root), "--json"])
    assert [row["plan"] for row in json.loads(ended.stdout)] == ["0000", plan.digest[:12]]


@pytest.mark.parametrize("verb", ["runs", "verify"])
def test_a_missing_run_is_an_error_that_lists_the_runs(tmp_path, verb):
    world = ModelRun(tmp_path)
    with_plan(world.folder.parent)
    controls = "".join(hostile.CONTROLS)
    for name in (
        "nosuch",
        "plans",
        "../..",
        "/",
        "",
        controls,
        "[/x]",
        "x" * 10_000,
        *hostile.SURROGATES,
        *hostile.PATHS,
    ):
        ended = CliRunner().invoke(app, [verb, "--runs", str(world.folder.parent), "--", name])
        assert ended.exit_code == 8, ended.output
        assert f"there is {world.folder.name}" in ended.stderr
        assert ended.stderr.count("\n") == 1
    empty = CliRunner().invoke(app, [verb, "--runs", str(tmp_path / "none"), "nosuch"])
    assert empty.exit_code == 8
    assert "there is no run at all" in empty.stderr


def test_a_run_is_asked_to_stop_from_another_terminal(tmp_path):
    world = ModelRun(tmp_path)
    world.hazard.arm(20, world.kill)
    with pytest.raises(Killed):
        world.run.act()
    words = ["stop", world.folder.name, "--runs", str(tmp_path)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert (world.folder / "stop.json").exists()
    world.process().undo()
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 23
    assert "no process executes it, so nothing has to stop; see offramp runs" in ended.output
