"""``offramp protocol check``: which groups can change to the consumer protocol (KIP-848) now, or back, and why not."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kit.groups.chosen import ChosenGroup
from kit.terminal.listing import Listing
from kit.terminal.options import with_options
from kit.terminal.progress import waiting
from kit.terminal.protocol_answers import ClientsReady, Monitoring, RemoteAssignor, RightsGranted, tools_of
from kit.terminal.terminal import refusals, tell
from kit.text.quantity import quantity
from kit.text.visible import visible

if TYPE_CHECKING:
    from kit.protocol.facts import ProtocolFacts, Request
    from kit.protocol.read import GroupProtocol
    from kit.tables.conditions import Condition

app = typer.Typer(
    help="Groups between the classic and the consumer protocol (KIP-848).",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_SPARE = ("error", "group_type", "unknown", "warnings", "to_answer", "n_members")
_ORDER = ("no", "unknown", "yes", "done", "without members")


@app.callback()
def _protocol() -> None: ...


@app.command()
@with_options
def check(
    listing: Listing,
    chosen: ChosenGroup,
    to: Annotated[str, typer.Option("--to", help="The protocol of all members: consumer or classic.")] = "consumer",
    how: Annotated[
        str,
        typer.Option(help="With -g: replace members one by one (rolling), or stop all and then start all (stopped)."),
    ] = ("rolling"),
    offsets_topic: Annotated[
        bool, typer.Option("--offsets-topic", help="Read __consumer_offsets for the times of commits.")
    ] = False,
    clients_ready: ClientsReady = None,
    rights_granted: RightsGranted = None,
    monitoring: Monitoring = None,
    assignor: RemoteAssignor = None,
) -> None:
    """Show which groups can change their protocol now, which can't, and why. Writes nothing.

    With -g: every check of one group. Exit code 15: a check forbids the move; 12: a check that could is unknown.
    """
    from kit.clients.cluster import connect
    from kit.groups.read.whole_cluster import chosen_groups
    from kit.protocol.facts import Answers, Request
    from kit.protocol.verdicts import read_facts

    with refusals():
        request = Request(to, how, Answers(clients_ready, rights_granted, tools_of(monitoring), assignor))
        profile = chosen.load()
        accepts = chosen_groups(profile, chosen.pattern if chosen.one is None else re.escape(chosen.one))
        with waiting(f"reading {profile.name}") as at, connect(profile, is_patient=False) as cluster:
            facts = read_facts(cluster, accepts, offsets_topic, at)
        if chosen.one is None:
            _print_all(listing, facts, request)
        else:
            _print_one(listing, facts, chosen.one, request)


def _print_all(listing: Listing, facts: ProtocolFacts, request: Request) -> None:
    from kit.protocol.verdicts import verdict_rows, verdicts, verify_facts

    with waiting("checking"):
        rows = verdict_rows(verdicts(facts, request))
    listing.print(rows, _SPARE)
    if not listing.is_data:
        counts = Counter(rows["rolling"].fill_null("without members"))
        named = ", ".join(f"{counts[word]:,} {word}" for word in _ORDER if counts[word])
        tell(f"{quantity(len(rows), 'group')} to the {request.to} protocol, members replaced one by one: {named}")
    verify_facts(facts)


def _print_one(listing: Listing, facts: ProtocolFacts, group_id: str, request: Request) -> None:
    import polars as pl

    from kit.protocol.checks import check_group
    from kit.protocol.verdicts import group_of, verify_facts, verify_move

    if facts.problems and group_id not in facts.groups:
        verify_facts(facts)
    group = group_of(facts, group_id)
    found = check_group(facts, group, request)
    if listing.is_data:
        listing.print(pl.DataFrame([_row(each) for each in found], infer_schema_length=None))
    else:
        _tell_group(group, found)
    said = verify_move(group_id, found)
    if not listing.is_data:
        tell(said)


def _tell_group(group: GroupProtocol, found: list[Condition]) -> None:
    members = quantity(len(group.members), "member")
    tell(f"Group {visible(group.group_id)}: stage {group.stage}, state {group.state or 'unknown'}, {members}.")
    for answer, heading in ((False, "Not met"), (None, "Unknown")):
        rows = [each for each in found if each.is_met is answer]
        if rows:
            tell("", f"{heading}:")
        for each in rows:
            tell(f"• {each.check_id} ({each.severity}): {each.sentence} {each.remedy}".rstrip())
    met = [each.check_id for each in found if each.is_met]
    tell("", f"Met: {', '.join(met) or 'none'}.")


def _row(found: Condition) -> dict[str, Any]:
    names = ("check_id", "severity", "is_met", "sentence", "remedy", "source")
    return {"group_id": found.subject, **{name: getattr(found, name) for name in names}}
