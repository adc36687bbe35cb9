"""``offramp plan``: its verbs."""

from __future__ import annotations

import typer

from kit.terminal.verbs import Verb, group_of

VERBS = {
    "list": Verb(
        "kit.operations.verbs.runs:plan_app", "List all plans: first those whose run did not end well, then the newest."
    ),
    "show": Verb("kit.operations.verbs.operate:plan_app", "Print a plan, and what has changed since it was made."),
    "group": Verb(
        "kit.operations.verbs.operate:plan_app",
        "Move one group along KIP-125's path, one stage or several, forward or back.",
    ),
    "protocol": Verb(
        "kit.operations.verbs.protocol_plan:app",
        "Move one group to the consumer protocol (KIP-848), or back to the classic one.",
    ),
    "fleet": Verb(
        "kit.operations.verbs.operate:plan_app",
        "Toggle all stable groups with only migration-enabled members, in waves.",
    ),
    "kraft": Verb(
        "kit.operations.verbs.kraft_plan:app",
        "Move a cluster from ZooKeeper to KRaft, one phase per plan, or back from any of them.",
    ),
    "delete-groups": Verb(
        "kit.operations.verbs.delete_groups:app", "Delete groups without members from Kafka, with all their offsets."
    ),
    "delete-znodes": Verb(
        "kit.operations.verbs.delete_znodes:app",
        "Delete persistent registrations and owner znodes of groups in ZooKeeper.",
    ),
    "offsets": Verb("kit.operations.verbs.offsets:app", "Copy, reset, import, delete or export committed offsets."),
}

app = typer.Typer(
    cls=group_of(VERBS),
    help="Say what would be done, and keep that as a plan to approve. Writes nothing to the cluster.",
    no_args_is_help=True,
    rich_markup_mode=None,
    callback=lambda: None,
)
