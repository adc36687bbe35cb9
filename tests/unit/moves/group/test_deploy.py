"""Deploy commands, real ones: what they are given, what of their output is kept, and how they are ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from kit.engine.commands import FIRST_LINES, GRACE_S, LAST_LINES, LINE_CHARACTERS, _HeldInterrupts
from kit.engine.relay import HEAD_BYTES, TAIL_BYTES
from kit.errors import ProfileError, RunError
from kit.lab.process import wait_until
from kit.moves.group.deploy import VARIABLE, Command, MemberReplacement, deployer_of
from kit.profile import GroupDeploySettings, Profile
from tests.generators.names import SECRET_LIKE

SWAP = MemberReplacement("orders", "orders_host-1", "c-1", "host-1", "OZKCC", "MEZKCC", 1)
HOSTILE = (
    "a b",
    "x member=y",
    "{{ lookup('pipe','id') }}",
    "$(id)",
    "ä",
    "a\nb",
    "a,b",
    "@file",
    "a/b",
    "--extra-vars",
    "-x",
)


PYTHON = (sys.executable, "-I", "-S", "-c")
"""Python without what is installed, which starts in half the time."""


def python(
    code: str, *arguments: str, timeout_s: float = 30, allow_any: bool = False, grace_s: float = GRACE_S
) -> Command:
    words = [*PYTHON, code.replace("{", "{{").replace("}", "}}"), *arguments]
    return Command(words, timeout_s, allow_any, grace_s=grace_s)


def said(command: Command, replacement: MemberReplacement = SWAP) -> str:
    return command.replace(replacement, lambda sentence: None)


def is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_each_placeholder_is_an_argument_and_all_is_in_the_environment():
    code = f"import json,os,sys; print(json.dumps([sys.argv[1:], json.loads(os.environ[{VARIABLE!r}])]))"
    arguments, replacement = json.loads(said(python(code, "{group}", "--to={to_flavour}")))
    assert arguments == ["orders", "--to=MEZKCC"]
    assert replacement == {name: str(getattr(SWAP, name)) for name in MemberReplacement.__dataclass_fields__}


@pytest.mark.parametrize("value", HOSTILE)
def test_a_value_that_could_be_taken_for_something_else_is_refused(tmp_path, value):
    ran = tmp_path / "ran"
    code = f"open({str(ran)!r}, 'w')"
    replacement = replace(SWAP, member=value)
    with pytest.raises(RunError, match=r"was not run: member is .*allow_any_characters = true") as raised:
        said(python(code, "{group}", "{member}"), replacement)
    assert repr(value) in str(raised.value)
    assert not ran.exists()
    shown = "import json,os,sys; print(json.dumps(sys.argv[1:] + [json.loads(os.environ['OFFRAMP_SWAP'])['member']]))"
    assert json.loads(said(python(shown, "{member}", allow_any=True), replacement)) == [value, value]
    assert json.loads(said(python(shown, "{group}"), replacement)) == ["orders", value]


def test_a_value_after_an_options_name_may_begin_with_a_dash():
    assert (
        said(python("import sys; print(sys.argv[1])", "--member={member}"), replace(SWAP, member="-x")) == "--member=-x"
    )


def test_a_member_id_of_librdkafka_is_passed_on_and_no_other_value_with_its_characters():
    """Half of the UUIDs have such a character: an undo by a command with {member} was refused then."""
    uuid = "aDaNb/rfTZiHSFNts6e+og"
    assert said(python("import sys; print(sys.argv[1])", "{member}"), replace(SWAP, member=uuid)) == uuid
    for odd in ("/usr/bin/env+a/b/c/d/e", uuid[:-1], uuid + "AA", f"{uuid[:-1]}h"):
        assert python("", "{member}").refusal(replace(SWAP, member=odd)) is not None
    assert python("", "{group}").refusal(replace(SWAP, group=uuid)) is not None


def test_a_value_that_cannot_be_an_argument_is_reported():
    for value in ("a\0b", "\ud800"):
        with pytest.raises(RunError, match="a value can't be an argument"):
            said(python("", "{member}", allow_any=True), replace(SWAP, member=value))


@pytest.mark.parametrize("name", SECRET_LIKE[:4])
def test_a_name_like_a_secret_is_passed_on(name):
    assert said(python("import sys; print(sys.argv[1])", "{group}"), replace(SWAP, group=name)) == name


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ([], "command is empty"),
        (["swap", "group={group} member={member}"], "several placeholders in one argument.*OFFRAMP_SWAP"),
        (["swap", "{group}{member}"], "several placeholders"),
        (["swap", "{nobody}"], "unknown placeholders: nobody; use client_id"),
        (["swap", "{group.__class__}"], "unknown placeholders"),
        (["swap", "{group:{member}}"], "unknown placeholders"),
        (["swap", "{group!r}"], "unknown placeholders"),
        (["swap", "{"], "write a brace itself twice"),
    ],
)
def test_a_command_that_is_refused_with_the_profile(command, wrong):
    settings = GroupDeploySettings(kind="command", command=command)
    with pytest.raises(ProfileError, match=wrong):
        deployer_of(Profile(name="p", file="/x/offramp.toml", bootstrap_servers="b:1", deploy=settings))


def test_the_instruction_shows_no_secret():
    def told(*command: str) -> str:
        return Command([*command, "{group}"], 1).instruction("g", "OZKCC", "MEZKCC").removeprefix("Run for each: ")

    assert told("swap", "--token", "hunter2") == "swap --token *** {group}"
    assert told("curl", "-u", "ann:hunter2") == "curl -u ann:*** {group}"
    assert told("sshpass", "-p", "hunter2 b", "ssh", "-p", "22") == "sshpass -p '***' ssh -p 22 {group}"
    assert told("ansible-playbook", "-e", "ansible_become_pass=hunter2 b") == (
        "ansible-playbook -e ansible_become_pass='***' {group}"
    )
    assert told("sh", "-c", "curl -u ann:hunter2 x") == "sh -c 'curl -u ann:*** x' {group}"
    assert told("curl", "-u", "ann:it's \\ hunter2") == "curl -u 'ann:***' {group}"
    assert told("docker", "run", "-u", "1000:1000") == "docker run -u 1000:1000 {group}"
    with pytest.raises(ProfileError) as refused:
        Command(["swap", "--password=hunter2{"], 1)
    assert "hunter2" not in str(refused.value)


def test_output_of_any_bytes_is_kept_at_its_ends_without_secrets():
    code = (
        "import sys\n"
        "for number in range(200_000): print('line', number)\n"
        "print('KAFKA_PASSWORD=hunter2 done', flush=True)\n"
        "sys.stdout.buffer.write(b'\\xff\\xfe end\\n')"
    )
    lines = said(python(code)).splitlines()
    assert lines[:FIRST_LINES] == [f"line {number}" for number in range(FIRST_LINES)]
    assert lines[FIRST_LINES] == "(… of 2,288,925 bytes in 200,002 lines the rest is left out …)"
    assert lines[-3:] == ["line 199999", "KAFKA_PASSWORD=*** done", "�� end"]
    assert len(lines) == FIRST_LINES + 1 + LAST_LINES


@pytest.mark.parametrize("n_lines", [FIRST_LINES, FIRST_LINES + LAST_LINES, FIRST_LINES + LAST_LINES + 1])
def test_lines_are_left_out_only_where_there_are_more(n_lines):
    lines = said(python(f"for number in range({n_lines}): print(number)")).splitlines()
    every = [str(number) for number in range(n_lines)]
    if n_lines > FIRST_LINES + LAST_LINES:
        every[FIRST_LINES] = "(… of 68 bytes in 26 lines the rest is left out …)"
    assert lines == every


@pytest.mark.parametrize("before", [0, 1, len("KAFKA_PASSWORD="), 40_000])
def test_the_rest_of_a_secret_whose_name_was_cut_away_is_no_evidence(before):
    """The kept end begins ``before`` bytes after the secret's name does: in the name, or in the secret."""
    gap, secret = 1_000, TAIL_BYTES - len("KAFKA_PASSWORD=") - len("\nend\n") + before
    code = (
        f"print('x' * {HEAD_BYTES + gap}); print('KAFKA_PASSWORD=' + ('hunter2' * {secret})[:{secret}]); print('end')"
    )
    kept = said(python(code)).splitlines()
    assert kept[0].startswith("(… of ")
    assert kept[1:] == ["end"]


@pytest.mark.parametrize("at", [HEAD_BYTES - 20, HEAD_BYTES - 10, HEAD_BYTES])
def test_a_secret_at_the_end_of_the_kept_beginning_is_no_evidence(at):
    """The beginning ends before the secret, or in it: its line is not kept."""
    filler = "".join(f"{'x' * 99}\n" for _ in range(at // 100))
    code = f"print({filler!r} + 'KAFKA_PASSWORD=' + 'hunter2' * {TAIL_BYTES}); print('end')"
    kept = said(python(code)).splitlines()
    assert kept[:FIRST_LINES] == ["x" * 99] * FIRST_LINES
    assert kept[-1] == "end"
    assert "hunter" not in "".join(kept)


def test_a_secret_in_output_of_one_line_that_was_cut_is_no_evidence():
    code = f"import sys; sys.stdout.write('KAFKA_PASSWORD=' + 'hunter2' * {TAIL_BYTES}); sys.exit(3)"
    with pytest.raises(RunError) as raised:
        said(python(code))
    gap = "(… of 458,767 bytes in 1 line the rest is left out …)"
    assert str(raised.value) == f"{sys.executable} ended with exit code 3: {gap}"


def test_a_long_line_is_shortened_with_a_mark():
    kept = said(python(f"print('x' * {LINE_CHARACTERS}); print('y' * {LINE_CHARACTERS + 1_234})"))
    assert kept.splitlines() == ["x" * LINE_CHARACTERS, "y" * LINE_CHARACTERS + " … (1,234 more characters)"]


def test_standard_error_is_evidence():
    code = "import sys; print('done'); print('RuntimeWarning: x', file=sys.stderr); sys.exit(int(sys.argv[1]))"
    assert said(python(code, "0")) == "done\nRuntimeWarning: x"
    with pytest.raises(RunError, match="ended with exit code 3: RuntimeWarning: x\ndone"):
        said(python(code, "3"))


def test_a_failure_reports_what_was_reported_without_secrets():
    with pytest.raises(RunError, match=r"ended with exit code 3: no route for https://u:\*\*\*@h"):
        said(python("import sys; print('no route for https://u:hunter2@h'); sys.exit(3)"))
    with pytest.raises(RunError, match="can't be run: No such file"):
        said(Command(["/nowhere/swap"], 1))


@pytest.mark.parametrize(("number", "name"), [(signal.SIGKILL, "SIGKILL"), (40, "signal 40")])
def test_a_command_that_is_killed_is_reported_by_its_signal(number, name):
    code = f"import os; print('half-way', flush=True); os.kill(os.getpid(), {int(number)})"
    with pytest.raises(RunError, match=f"was killed by {name}; its effect is not known. Its last output: half-way"):
        said(python(code))


def test_the_last_lines_of_fifty_megabytes_of_output_are_kept():
    code = (
        "import sys\n"
        "for number in range(50): sys.stdout.write(f'{number} ' + 'x' * (1 << 20) + chr(10))\n"
        "print('restarted')\n"
        "sys.exit(int(sys.argv[1]))"
    )
    kept = said(python(code, "0"))
    assert kept.splitlines() == ["(… of 52,429,000 bytes in 51 lines the rest is left out …)", "restarted"]
    with pytest.raises(RunError, match="ended with exit code 3: restarted"):
        said(python(code, "3"))


def test_a_command_that_prints_without_end_fills_no_disk_and_is_ended_in_time(tmp_path, monkeypatch):
    """Its own files, and ours: nothing is on a disk, and it was never held up by what it wrote."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # Python reads $TMPDIR once in a process.
    seen = tmp_path / "written"
    seen.touch()
    code = (
        "import os\n"
        "line, n = b'still at it\\n' * 5_000, 0\n"
        "print('began', flush=True)\n"
        "while True:\n"
        "    os.write(1, line); n += 1\n"
        f"    n % 100 or os.truncate({str(seen)!r}, n)"
    )
    with pytest.raises(RunError, match="did not end within 2 s") as raised:
        said(python(code, timeout_s=2, grace_s=0.2))
    assert "the rest is left out" in str(raised.value)
    assert "\nbegan\n" in str(raised.value)
    assert seen.stat().st_size * 60_000 > 50 << 20  # Its size counts the writes.
    assert list(tmp_path.iterdir()) == [seen]


def test_a_command_whose_operator_is_killed_continues_and_may_print_anything(tmp_path):
    """The node was stopped and is to be started: the end of offramp must not end it, nor delay it."""
    began, go, done = (tmp_path / name for name in ("began", "go", "done"))
    code = (
        "import os,time\n"
        f"open({str(began)!r}, 'w').close()\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
        f"for _ in range(50): print('x' * 1_000_000, flush=True)\n"
        f"open({str(done)!r}, 'w').close()"
    )
    operations = (
        "import sys\n"
        "from kit.moves.group.deploy import Command, MemberReplacement\n"
        "replacement = MemberReplacement('g', 'm', 'c', 'h', 'OZKCC', 'MEZKCC', 1)\n"
        f"Command([*{PYTHON!r}, {code!r}], 60).replace(replacement, print)"
    )
    process = subprocess.Popen([sys.executable, "-c", operations], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        wait_until(began.exists, "it began", 30)
    finally:
        process.kill()
        assert process.communicate(timeout=30)[0] == b""  # No process that outlives us holds our output open.
    go.touch()
    wait_until(done.exists, "it came to its end", 30)


def test_a_command_that_closes_its_output_and_hangs_is_ended_all_the_same():
    with pytest.raises(RunError, match=r"did not end within 0\.5 s and was ended, .* Its last output: nothing"):
        said(python("import os, signal; os.close(1); os.close(2); signal.pause()", timeout_s=0.5, grace_s=0.2))


def test_nothing_is_read_from_the_terminal():
    operations = (
        "import sys; from kit.moves.group.deploy import Command, MemberReplacement\n"
        "command = Command([sys.executable, '-c', 'import sys; print(repr(sys.stdin.read()))'], 30)\n"
        "print(command.replace(MemberReplacement('g', 'm', 'c', 'h', 'OZKCC', 'MEZKCC', 1), print))"
    )
    done = subprocess.run([sys.executable, "-c", operations], input="typed", capture_output=True, text=True, check=True)
    assert done.stdout == "''\n"


def test_a_process_left_running_is_not_waited_for_and_not_ended():
    """A command may start the new consumer itself, which then has its output too."""
    child = "import signal; print('up', flush=True); signal.pause()"
    code = f"import subprocess,sys; print(subprocess.Popen([sys.executable, '-c', {child!r}]).pid)"
    pid = int(next(line for line in said(python(code)).splitlines() if line.isdigit()))
    try:
        assert is_alive(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("ignores", [False, True])
def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path, ignores):
    """Grandchildren too, also those that don't listen; what was said so far is reported."""
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN); " if ignores else ""
    ready = tmp_path / "ready"
    child = f"import signal; {deaf}open({str(ready)!r}, 'w').close(); signal.pause()"
    code = (
        "import os,signal,subprocess,sys,time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        f"while not os.path.exists({str(ready)!r}): time.sleep(0.01)\n"
        "print('pid', os.getpid(), child.pid, flush=True)\n"
        "signal.pause()"
    )
    with pytest.raises(RunError, match="did not end within 3 s and was ended") as raised:
        said(python(code, timeout_s=3, grace_s=0.5))
    words = str(raised.value).split()
    pids = [int(word) for word in words[words.index("pid") + 1 :]]
    assert len(pids) == 2
    wait_until(lambda: not any(map(is_alive, pids)), "both are ended", 10)


def test_ctrl_c_does_not_reach_it(tmp_path):
    """The terminal sends SIGINT to its whole foreground process group; the command continues to its end."""
    began, done = tmp_path / "began", tmp_path / "done"
    code = (
        "import os,time\n"
        f"open({str(began)!r}, 'w').close()\n"
        f"while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.01)\n"
        f"print('swapped'); open({str(done)!r}, 'w').close()"
    )
    operations = (
        "import signal, sys\n"
        "from kit.moves.group.deploy import Command, MemberReplacement\n"
        "signal.signal(signal.SIGINT, lambda *_: print('stopping', flush=True))\n"  # `offramp act` does this.
        "replacement = MemberReplacement('g', 'm', 'c', 'h', 'OZKCC', 'MEZKCC', 1)\n"
        f"print(Command([*{PYTHON!r}, {code!r}], 60).replace(replacement, print))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", operations], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        wait_until(began.exists, "it began", 30)
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout is not None
        assert process.stdout.readline() == "stopping\n"
        (tmp_path / "go").touch()
        assert process.communicate(timeout=30)[0] == "swapped\n"
    finally:
        process.kill()
    assert done.exists()


def test_a_second_ctrl_c_leaves_it_to_itself_and_reports_it(tmp_path):
    told: list[str] = []
    began, go, done = (tmp_path / name for name in ("began", "go", "done"))
    code = (
        "import os,time\n"
        f"open({str(began)!r}, 'w').close()\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
        f"print('x' * 100_000, flush=True); open({str(done)!r}, 'w').close()"
    )

    def interrupt() -> None:
        wait_until(began.exists, "it began", 20)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        python(code).replace(SWAP, told.append)
    thread.join()
    go.touch()
    assert "still runs, as process" in told[0]
    wait_until(done.exists, "it came to its end", 10)


def test_ctrl_c_while_a_command_is_started_waits_for_the_start():
    """It fell into the start, and the run's end did not say that the command continues."""
    held = _HeldInterrupts()
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        held.let_go()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
