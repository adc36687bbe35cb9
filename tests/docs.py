"""The parts of the docs that say what the code says: made from the code, between two comments of a page.

``python -m tests.docs`` writes them again; ``tests/unit/test_docs.py`` compares.
"""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from pkgutil import resolve_name

from kit import errors
from kit.engine import lock, runs_folder
from kit.engine.model import event, journal, record
from kit.engine.model.approval import Approval
from kit.engine.model.performer import Outcome, StepState
from kit.engine.model.plan import FORMAT, Plan
from kit.engine.model.states import MOVES, RunState
from kit.engine.model.step import Step
from kit.kraft.analyze import preflight
from kit.kraft.move import gates as kraft_gates, rehearsals
from kit.kraft.move.archive import ARCHIVE
from kit.kraft.move.overrides import OLD_CONSUMERS, STOPPED
from kit.profile.security.clients import EXTRAS, IN_WHEEL
from kit.profile.security.settings import KAFKA_KEYS, ZOOKEEPER_KEYS
from kit.protocol import checks
from kit.subjects import merged
from kit.tables import schema
from kit.tables.conditions import INFO, NEVER, OPERATOR, SECOND_PERSON, WARN, Rule
from tests import settings
from tests.servers.provoked import EDITED
from tests.servers.provoked_cases import CASES

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
MADE = re.compile(r"<!-- made by `python -m tests\.docs`: ([a-z_]+) -->.*?<!-- end -->", re.DOTALL)
ERROR = re.compile(r"(\w+)\s+(?:exit code )?(\d+)\s*(.*)")

NEXT = {
    "OfframpError": "read the message",
    "InputError": "`offramp VERB --help`",
    "ProfileError": "correct `offramp.toml`; all keys: [configuration.md](configuration.md)",
    "ConnectError": "examine the addresses in `offramp.toml`, then the network and the servers; run it again",
    "AuthenticationFailed": "examine `security` in `offramp.toml` and the user's rights",
    "WrongCluster": "compare `bootstrap_servers` and `cluster_id` in `offramp.toml`; name a cluster by `--profile`",
    "ReadError": "read the message; run it again",
    "NotFound": "the message names what there is; so do `offramp groups`, `offramp plan list` and `offramp runs`",
    "PartialRead": "read the errors below the rows; the printed rows are right",
    "HistoryError": "name another folder by `--history`",
    "LabError": "`offramp lab status`, `offramp lab down`; the message names the process's log",
    "SetupError": "`make setup`; the message names what could not be had",
    "PlanError": "plan again: `offramp plan …`",
    "NothingToDo": "nothing",
    "UnsafePlan": "correct what the rule names, or plan again with `--override RULE`",
    "ApprovalError": "`offramp approve PLAN`, then `offramp act PLAN`, `offramp resume RUN` or `offramp undo RUN`",
    "StalePlan": "plan again; nothing was written",
    "RunError": "`offramp runs RUN`, then `offramp resume RUN` or `offramp undo RUN`",
    "StepFailed": "`offramp runs RUN`, then `offramp resume RUN` or `offramp undo RUN`; report the traceback",
    "TargetBusy": "wait for the run that is named, or `offramp stop RUN`",
    "LockLost": "`offramp runs RUN`, then `offramp resume RUN` or `offramp undo RUN`",
    "Stopped": "`offramp resume RUN` or `offramp undo RUN`",
    "IllegalMove": "do one of the moves that the message names",
    "EvidenceError": "`offramp verify RUN` names the file and the line; make a new plan from the present state",
    "HandOverError": "read the message (a full disk?); start `offramp consume` again: nothing is lost",
    "OutputClosed": "nothing, if the reader was meant to end; else start `offramp consume` again",
    "StoresDiffer": "`offramp kraft diff` names the values; causes and remedies: [kraft.md](kraft.md#the-diff)",
    "ChildEnded": "correct the program; start `offramp consume` again: it gets the record in hand again",
}
"""The next action by error: tests hold that none is missing and that each command is one."""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: object) -> str:
    return f"`{text}`"


# The floors


def layers() -> list[list[str]]:
    """The floors of the house, the uppermost first, by import-linter's first contract; the wizards beside the verbs."""
    floors = [[f"kit.{room.strip()}" for room in floor.split("|")] for floor in _contract(0)["layers"]]
    return [[*floor, "widgets"] if "kit.cli" in floor else floor for floor in floors]


def _contracts() -> list[dict[str, list[str]]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return project["tool"]["importlinter"]["contracts"]


def _contract(number: int) -> dict[str, list[str]]:
    return _contracts()[number]


def floors() -> str:
    names = [" · ".join(room.removeprefix("kit.") for room in floor) for floor in layers()]
    boxes = [f'    f{number}["{name}"]' for number, name in enumerate(names)]
    arrows = " --> ".join(f"f{number}" for number in range(len(names)))
    return "\n".join(["```mermaid", "flowchart TD", *boxes, f"    {arrows}", "```"])


# Errors


def error_tree() -> list[tuple[str, int, str]]:
    """(class, exit code, sentence) in the order of ``kit.errors``' docstring."""
    lines = (errors.__doc__ or "").splitlines()
    found = [ERROR.search(line) for line in lines if re.search(r"[├└]──|OfframpError", line)]
    return [(each[1], int(each[2]), each[3]) for each in found if each]


def exit_codes() -> str:
    rows = [
        (number, code(name), sentence.partition(": ")[0] or "any other error of offramp's own", NEXT[name])
        for name, number, sentence in sorted(error_tree(), key=lambda each: each[1])
    ]
    return table(["exit code", "error", "what happened", "what to do next"], rows)


# States


def documented(kind: type[StrEnum]) -> dict[str, str]:
    """Each member's value with the sentence below it in the source."""
    body = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(body, ast.ClassDef)
    names, said = [], {}
    for node in body.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names.append(node.targets[0].id)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and names:
            said[names[-1]] = inspect.cleandoc(str(node.value.value)).replace("\n", " ")
    return {str(kind[name]): said.get(name, "") for name in names}


def run_states() -> str:
    said = documented(RunState)
    rows = [
        (code(state), said[state] or "–", ", ".join(code(to) for to in sorted(MOVES[state])) or "–")
        for state in RunState
    ]
    return table(["state", "what it means", "may become"], rows)


def outcomes() -> str:
    return table(["outcome of an item", "what it means"], [(code(n), said) for n, said in documented(Outcome).items()])


def step_states() -> str:
    return ", ".join(code(state) for state in StepState)


# Rules


def rules() -> str:
    """Every rule that a subject registers, once for each place that asks for it."""
    rows = [
        (code(rule.check_id), where, rule.holds.rstrip("."), rule.severity, _overridden(rule), rule.source)
        for where, place in merged("RULES").items()
        for rule in resolve_name(place)
    ]
    return table(["id", "asked by", "what must hold", "if not", "overridden by", "known by"], rows)


# Files and znodes


def files() -> str:
    plan, run = f"{runs_folder.PLANS}/<first {runs_folder.PREFIX} of the digest>", "<run id>"
    rows = [
        (f"{plan}.json", "the plan", "`offramp plan …`"),
        (f"{runs_folder.approval_file(Path(plan + '.json'), 1)}", "its approval", "`offramp approve`"),
        (f"{runs_folder.approval_file(Path(plan + '.json'), 2)}, …", "further approvals; none is replaced", "same"),
        (f"{plan}.seen", "the latest time at which an approval was examined", "`offramp act`"),
        (f"{plan}.expired-…", "when an approval was first seen expired", "`offramp act`, `resume`, `undo`"),
        (
            f"{plan}.offsets.jsonl",
            "the offsets that the plan deletes",
            "`offramp plan offsets delete`, `offramp plan delete-groups`",
        ),
        (f"{run}/{journal.PLAN}", "the plan that the run executes", "`offramp act`"),
        (
            f"{run}/{journal.APPROVAL}, approval-2.json, …",
            "the approvals of the run",
            "`act`, `resume`, `undo`",
        ),
        (
            f"{run}/expired-…",
            "when an approval, or the permission to undo, was first seen expired",
            "`resume`, `undo`",
        ),
        (f"{run}/{journal.EVENTS}", "the journal: a line per event, each chained to the one before", "same"),
        (f"{run}/{record.VERDICT}", "how the run ended, with hashes of its other files; written at each end", "same"),
        (f"{run}/{record.REPORT}", "the same for people; written at each end", "same"),
        (f"{run}/{ARCHIVE}", "what ZooKeeper held before a move to KRaft was finalised; without secrets", "`act`"),
        (
            f"{run}/differences-<step>.parquet",
            "values that differed, or were expected to, in the step's last diff",
            "`act`",
        ),
        (
            f"{rehearsals.REHEARSALS}/<cluster id>-<first 12 of the save's SHA-256>.json",
            "how a rehearsal ended",
            "`offramp kraft rehearse`",
        ),
        (
            f"{run}/{journal.STOP}",
            "asks the run to stop; the run removes it when it has read it",
            "`offramp stop`",
        ),
    ]
    return table(["file under `runs/`", "what it holds", "written by"], [(code(f), what, by) for f, what, by in rows])


def znodes() -> str:
    rows = [
        (f"{lock.LOCKS}/<group>", "ephemeral: the run, host and time that hold the group's lock"),
        (
            f"{lock.RUNS}/<group>",
            "persistent: the last run that changed the group; older runs can't be undone any more",
        ),
        (f"{lock.CLUSTER_LOCKS}/<cluster>", "ephemeral: the same lock of a move to KRaft, for the whole cluster"),
        (f"{lock.CLUSTER_RUNS}/<cluster>", "persistent: the last run that moved it, and whether that came to rest"),
    ]
    return table(["znode", "what it holds"], [(code(path), what) for path, what in rows])


def keys() -> str:
    rows = [
        (f"plan (format {FORMAT})", _names(Plan)),
        ("a step of a plan", _names(Step)),
        ("approval", _names(Approval)),
        (journal.EVENTS, ", ".join(f"`{name}` {kind}" for name, kind in event.COLUMNS.items())),
    ]
    return table(["file", "keys"], rows)


def _names(kind: type) -> str:
    return ", ".join(code(field.name) for field in fields(kind))


def tables() -> str:
    named = [table for table in vars(schema).values() if isinstance(table, schema.Table)]
    rows = [(code(each.name), code(each.row.__name__), ", ".join(map(code, each.schema.names))) for each in named]
    return table(["table", "row class in `kit/tables`", "columns"], rows)


def settings_of_a_cluster() -> str:
    return table(["key", "kind", "default", "what it is"], settings.rows())


def preflight_checks() -> str:
    rows = [
        (code(each.check_id), each.severity, each.phase, each.holds.rstrip("."), each.source)
        for each in preflight.RULES
    ]
    return table(["check", "if not", "before", "what must be so", "known by"], rows)


def protocol_checks() -> str:
    rows = [
        (
            code(each.rule.check_id),
            _by_way(each),
            " or ".join(each.to),
            each.rule.holds.rstrip("."),
            each.rule.source,
        )
        for each in checks.CHECKS
    ]
    return table(["check", "if not", "move to", "what must hold", "known by"], rows)


def _by_way(check: checks.Check) -> str:
    rolling = check.rule.severity
    return rolling if rolling == check.stopped else f"{rolling}, {check.stopped} if stopped"


def provoked_checks() -> str:
    names = {EDITED: "preflight of an edited copy"}
    rows = {(code(each.check_id), names.get(each.look, each.look), each.how, code(each.test)) for each in CASES}
    return table(["check", "found by", "what was done", "in `tests/servers`"], sorted(rows))


def kraft_plan_gates() -> str:
    """A row per gate, sentence and override: which plans have it, and in which phases alone."""
    plans: dict[tuple[str, str, str], dict[str, str]] = {}
    for to, gates in kraft_gates.GATES.items():
        for each in gates:
            row = plans.setdefault((code(each.rule.check_id), each.rule.holds, _overridden(each.rule)), {})
            row[to] = f"{to} (in {', '.join(each.where)})" if each.where else to
    rows = [(gate, holds, _plans(asked), override) for (gate, holds, override), asked in plans.items()]
    return table(("gate", "must hold", "plans to", "override"), rows)


def _plans(asked: dict[str, str]) -> str:
    left_out = [to for to in kraft_gates.GATES if to not in asked]
    if len(left_out) < 4 and all(to == said for to, said in asked.items()):
        return "all" + (f" but {', '.join(left_out)}" if left_out else "")
    return ", ".join(asked.values())


def _overridden(rule: Rule) -> str:
    if rule is OLD_CONSUMERS:
        return f"a second person, by group (`{rule.check_id}:GROUP`)"
    if rule is STOPPED:
        return f"a second person, by address (`{rule.check_id}:HOST:PORT`)"
    if rule.severity in (WARN, INFO):
        return "–"
    return {OPERATOR: "the operator", SECOND_PERSON: "a second person", NEVER: "never"}[rule.overridden_by]


def logins() -> str:
    """Return what works with each login: the clients' own tables of mechanisms."""
    rows = [("none, or TLS with or without a client certificate", "yes", "yes", "yes", "")]
    for mechanism in dict.fromkeys([*KAFKA_KEYS, *ZOOKEEPER_KEYS]):
        is_kafka, extra = mechanism in KAFKA_KEYS, EXTRAS.get(mechanism)
        records = "yes" if mechanism in IN_WHEEL else "own build of confluent-kafka" if is_kafka else "–"
        needs = code(f"pip install 'offramp[{extra}]'") if extra else ""
        at_zookeeper = "yes" if mechanism in ZOOKEEPER_KEYS else "–"
        rows.append((code(mechanism), "yes" if is_kafka else "–", records, at_zookeeper, needs))
    head = ("login", "brokers: groups, offsets, plans, runs, locks", "brokers: records", "ZooKeeper", "needs")
    return table(head, rows)


BLOCKS: dict[str, Callable[[], str]] = {
    each.__name__: each
    for each in (
        floors, exit_codes, run_states, outcomes, step_states, rules, files, znodes,
        keys, tables, settings_of_a_cluster, preflight_checks, protocol_checks, provoked_checks,
        kraft_plan_gates, logins,
    )
}  # fmt: skip


def render(page: str) -> str:
    """A page with everything in it that is made, made again."""
    return MADE.sub(lambda found: _block(found[1]), page)


def _block(name: str) -> str:
    return f"<!-- made by `python -m tests.docs`: {name} -->\n\n{BLOCKS[name]()}\n\n<!-- end -->"


def main() -> None:
    for path in PAGES:
        path.write_text(render(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
