"""The steps of a move's end, and of its end undone half-way, made from their parameters."""

from __future__ import annotations

from kit.engine.model.step import Change, Step
from kit.kraft.move.parameters import KraftParameters, OrderParameters
from kit.kraft.move.steps import ARCHIVE, FINALISE, FLAG_STEP, LIST, OBSERVED, controller_item, performed
from kit.text.naming import named

_ONE_BY_ONE = "controllers {}, one by one,"
_LAST = "controllers {} without the migration flag, the active one last"


def archive_step(step_id: str, parameters: KraftParameters) -> Step:
    return Step(
        step_id=step_id,
        kind=ARCHIVE,
        title="Save what ZooKeeper holds into the run's folder",
        precondition="ZooKeeper answers",
        verification="the file holds every znode of Kafka except /consumers, without secrets, and its SHA-256 is in "
        "the evidence",
        deadline_s=parameters.node_timeout_s,
        undo="There is nothing to undo: the file stays.",
        parameters=parameters.to_json(),
    )


def list_step(step_id: str, parameters: KraftParameters) -> Step:
    return Step(
        step_id=step_id,
        kind=LIST,
        title="List what stays in ZooKeeper; nothing of it is deleted",
        precondition="ZooKeeper answers",
        verification="the evidence lists what stays, by kind: the number of znodes, who still reads them, and who "
        "may delete them",
        deadline_s=parameters.node_timeout_s,
        undo="There is nothing to undo.",
        parameters=parameters.to_json(),
    )


def return_flag_step(step_id: str, parameters: OrderParameters) -> Step:
    return Step(
        step_id=step_id,
        kind=FLAG_STEP,
        title=f"Restart {named(parameters.nodes, 'controller {}', _ONE_BY_ONE)} with the migration flag",
        precondition="before each restart: the log has state 1, every controller answers, and the active controller "
        "has the flag",
        verification="every controller answers with the migration flag, and dual write continues (state 1)",
        deadline_s=parameters.node_timeout_s,
        changes=tuple(Change(controller_item(it), "without the migration flag", "with it") for it in parameters.nodes),
        cannot_be_undone="a controller without the flag finalises the migration as soon as it is elected",
        affects=OBSERVED,
        parameters=parameters.to_json(),
        **performed(parameters),
    )


def finalise_step(step_id: str, parameters: OrderParameters) -> Step:
    nodes = parameters.nodes
    return Step(
        step_id=step_id,
        kind=FINALISE,
        title="Restart " + named(nodes, "controller {} without the migration flag", _LAST),
        precondition="no broker is in /brokers/ids or registered in ZooKeeper mode, all brokers are unfenced, and "
        "both stores, compared again now, hold the same values",
        verification="the log has state 3, every controller answers without the flag, one controller leads, and all "
        "brokers serve requests",
        deadline_s=parameters.node_timeout_s,
        changes=tuple(Change(controller_item(it), "with the migration flag", "without it") for it in nodes),
        cannot_be_undone="the first controller that leads without the flag finalises the migration; ZooKeeper "
        "receives no changes after that",
        affects=OBSERVED,
        parameters=parameters.to_json(),
        **performed(parameters),
    )
