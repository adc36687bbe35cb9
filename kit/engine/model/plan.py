"""A plan: what was observed and what will change, as data, under one digest that an approval names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from kit.engine.model.files import write_atomic
from kit.engine.model.observation import Observation
from kit.engine.model.step import Change, Step
from kit.engine.model.values import Json, digest_of, frozen_mapping, parse_json, readable
from kit.errors import InputError, NothingToDo, OfframpError, PlanError
from kit.profile.identity.login import system_user
from kit.text.regular_file import read_regular

FORMAT = 3
OLDER_FORMATS = (1, 2)
"""They are read and shown; nothing is executed or undone by them: their steps' parameters have other names."""
WAY_BACK_S = 24 * 3600.0
LONGEST_WAY_BACK_S = 366 * WAY_BACK_S
STOP = "stop"
UNDO = "undo"


@dataclass(frozen=True, slots=True)
class Consent:
    """The demands of a kind of plan on its approval, whatever the profile requires.

    ``subject``: what an approver types. ``second_person``: the planner may not approve. ``longest_hours``: the longest
    validity; None: the profile's.

    Raises:
        PlanError: there is nothing to type, or the validity is no time.
    """

    subject: str
    second_person: bool = False
    longest_hours: float | None = None

    def __post_init__(self) -> None:
        if not self.subject.strip():
            raise PlanError("a plan's consent has nothing to type")
        if self.longest_hours is not None and not 0 < self.longest_hours < float("inf"):
            raise PlanError(f"an approval can't be valid for {self.longest_hours} h")

    def to_json(self) -> dict[str, Json]:
        return {"subject": self.subject, "second_person": self.second_person, "longest_hours": self.longest_hours}


@dataclass(frozen=True, slots=True)
class Plan:
    """The writes to ``targets`` (group ids, or the cluster's lock) of one cluster, and the facts that they rest on.

    ``observed`` names what was read, with how far it may move until the plan is executed. ``overridden`` holds the
    rules that were overridden by name, with what they reported. ``on_failure`` is ``stop`` or ``undo``: whether a step
    that fails makes the run undo by itself what it did. ``way_back_s``: for how long after a run began it may be taken
    back without a new approval. ``digest`` covers everything else, so a plan can't be altered and stay approved.
    ``made_by`` was typed, ``made_as`` is whom the operating system knew (None: in older plans). ``consent``: what its
    kind asks of an approval (None: the group's name is typed, and the profile decides the rest).

    Raises:
        NothingToDo: no step changes anything.
        PlanError: it contradicts itself.
        InputError: a value is no JSON.
    """

    kind: str
    cluster_id: str
    targets: tuple[str, ...]
    made_by: str
    made_at: datetime
    observed: Mapping[str, Observation]
    steps: tuple[Step, ...]
    parameters: Mapping[str, Json] = field(default_factory=dict)
    risks: tuple[str, ...] = ()
    overridden: Mapping[str, str] = field(default_factory=dict)
    on_failure: str = STOP
    way_back_s: float = WAY_BACK_S
    format: int = FORMAT
    made_as: str | None = field(default_factory=system_user)
    consent: Consent | None = None
    digest: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("targets", "steps", "risks"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        _refuse_contradictions(self)
        object.__setattr__(self, "made_at", utc(self.made_at, "made_at"))
        object.__setattr__(self, "parameters", frozen_mapping(self.parameters, "parameters"))
        object.__setattr__(self, "overridden", frozen_mapping(self.overridden, "overridden"))
        object.__setattr__(self, "observed", MappingProxyType(dict(self.observed)))
        object.__setattr__(self, "digest", digest_of(_content(self)))

    @property
    def subject(self) -> str:
        """Return what an approver types: the consent's text, else the group's name, or how many groups."""
        if self.consent is not None:
            return self.consent.subject
        return self.targets[0] if len(self.targets) == 1 else f"{len(self.targets)} groups"

    @property
    def name(self) -> str:
        """The kind and the subject of the plan, for people; of a plan with a consent the phrase to type names both."""
        return f"{self.kind} of {self.subject}" if self.consent is None else f"{self.kind}, {self.subject!r},"

    def to_json(self) -> dict[str, Json]:
        return {**_content(self), "digest": self.digest}


def save_plan(plan: Plan, path: Path) -> None:
    """Raises EvidenceError: it was not written."""
    write_atomic(path, readable(plan.to_json()))


def load_plan(path: Path) -> Plan:
    """The plan of a file, if it is as it was saved.

    Raises:
        PlanError: it can't be read, is no plan, or was edited.
    """
    try:
        data = parse_json(read_regular(path).decode())
    except OSError as error:
        raise PlanError(f"{path} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise PlanError(f"{path} is not a plan: {error}") from error
    return parse_plan(data, str(path))


def parse_plan(data: Any, where: str) -> Plan:
    """The plan in JSON that was read; ``where`` is for the message.

    Raises:
        PlanError: it is no plan, of another format, or its digest is not its own.
    """
    if not isinstance(data, dict) or "digest" not in data:
        raise PlanError(f"{where} is not a plan")
    if data.get("format") not in (FORMAT, *OLDER_FORMATS):
        raise PlanError(
            f"{where} is a plan of format {data.get('format')!r}; this version of offramp reads format "
            f"{FORMAT}. Make a new plan"
        )
    content = {name: value for name, value in data.items() if name != "digest"}
    if digest_of(content) != data["digest"]:
        raise PlanError(f"{where} was edited after it was made: its digest is not the one it names; make a new plan")
    try:
        plan = _built(content)
    except (KeyError, TypeError, ValueError, AttributeError, OfframpError) as error:
        raise PlanError(f"{where} is not a plan: {type(error).__name__}: {error}") from error
    if plan.digest != data["digest"]:
        raise PlanError(f"{where} has a field that no plan has; make a new plan")
    return plan


def refuse_older_format(plan: Plan) -> None:
    """Refuse to execute a plan of an older format.

    Raises:
        PlanError: it was made by an older version, so today's rules can't be held against it.
    """
    if plan.format != FORMAT:
        raise PlanError(
            f"the plan {plan.digest[:8]} for {plan.subject} is of format {plan.format}, made by an older version."
            " This version shows the plan, but neither executes nor undoes it. Make a new plan from the"
            f" present stage of {plan.subject}: offramp plan"
        )


def utc(at: datetime, what: str) -> datetime:
    """The same instant in UTC.

    Raises:
        InputError: it doesn't report in which time zone it is.
    """
    if at.tzinfo is None:
        raise InputError(f"{what} is {at.isoformat()} without a time zone")
    return at.astimezone(UTC)


def _refuse_contradictions(plan: Plan) -> None:
    for name in ("kind", "cluster_id", "made_by"):
        if not getattr(plan, name).strip():
            raise PlanError(f"a plan needs its {name}")
    if not plan.targets or not all(plan.targets) or len(set(plan.targets)) < len(plan.targets):
        raise PlanError("a plan needs the groups or the cluster it concerns, each once")
    if not any(step.changes for step in plan.steps):
        raise NothingToDo(f"{plan.kind} of {plan.subject}: nothing would change, so there is no plan")
    if not 0 < plan.way_back_s <= LONGEST_WAY_BACK_S:
        raise PlanError(
            f"the time limit of an undo is {plan.way_back_s / 3600:g} h: it must be more than 0 and at most"
            f" {LONGEST_WAY_BACK_S / 3600:g} h"
        )
    if plan.on_failure not in (STOP, UNDO):
        raise PlanError(f"on_failure is {plan.on_failure!r}; it can be {STOP!r} or {UNDO!r}")
    stuck = [step.step_id for step in plan.steps if step.changes and step.undo is None]
    if plan.on_failure == UNDO and stuck:
        raise PlanError(f"on_failure is {UNDO!r}, but step {stuck[0]!r} cannot be undone")
    names = [step.step_id for step in plan.steps]
    if len(set(names)) < len(names):
        raise PlanError("two steps have the same step_id")
    for step in plan.steps:
        for name in step.affects:
            if name not in plan.observed:
                raise PlanError(f"step {step.step_id!r} affects {name!r}, which was not observed")


def _content(plan: Plan) -> dict[str, Json]:
    content: dict[str, Json] = {
        "format": plan.format,
        "kind": plan.kind,
        "cluster_id": plan.cluster_id,
        "targets": plan.targets,
        "made_by": plan.made_by,
        "made_at": plan.made_at.isoformat(),
        "parameters": plan.parameters,
        "observed": {name: observation.to_json() for name, observation in plan.observed.items()},
        "steps": tuple(step.to_json() for step in plan.steps),
        "risks": plan.risks,
        "overridden": plan.overridden,
        "on_failure": plan.on_failure,
        "way_back_s": plan.way_back_s,
        **({} if plan.made_as is None else {"made_as": plan.made_as}),
        **({} if plan.consent is None else {"consent": plan.consent.to_json()}),
    }
    return _of_format_1(content) if plan.format == 1 else content


def _of_format_1(content: Mapping[str, Json]) -> dict[str, Json]:
    """Without what plans did not have then."""
    steps = cast("tuple[dict[str, Json], ...]", content["steps"])
    kept = tuple({name: value for name, value in step.items() if name != "performed_by"} for step in steps)
    return {name: kept if name == "steps" else value for name, value in content.items() if name != "way_back_s"}


def _built(content: dict[str, Any]) -> Plan:
    return Plan(
        **{
            **content,
            "made_as": content.get("made_as"),
            "consent": Consent(**content["consent"]) if "consent" in content else None,
            "made_at": datetime.fromisoformat(content["made_at"]),
            "observed": {name: Observation(**observation) for name, observation in content["observed"].items()},
            "steps": tuple(_step(step) for step in content["steps"]),
        }
    )


def _step(data: dict[str, Any]) -> Step:
    changes = tuple(Change(**change) for change in data["changes"])
    return Step(**{**data, "changes": changes})
