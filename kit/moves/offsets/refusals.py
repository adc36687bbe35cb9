"""Requests that can't be planned: the error names what is wrong before anything is planned."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kit.errors import InputError, NotFound, ReadError
from kit.moves.offsets.fetch import GroupInStore, Stores
from kit.moves.offsets.moves import Stored, item_of
from kit.moves.offsets.selection import Key, Selection
from kit.text.naming import shortened
from kit.text.quantity import quantity

_SEE = "to see its offsets: offramp lag --group GROUP"


def refuse_unread(selection: Selection, groups: Mapping[str, GroupInStore], store: str) -> dict[str, str]:
    """Groups that could not be read, with the error. Unless the selection names them, a plan leaves them out as a risk.

    Raises:
        ReadError: the selection names one of them.
    """
    unread = {group_id: group.error for group_id, group in sorted(groups.items()) if group.error is not None}
    if unread and selection.groups is not None:
        raise ReadError(f"{store}: {shortened(f'group {group_id!r}: {error}' for group_id, error in unread.items())}")
    return unread


def refuse_if_onto_itself(source: str, target: str, renamed: Mapping[str, str], selection: Selection) -> None:
    """Check that a copy changes the group or the store.

    Raises:
        InputError: every group would be copied onto itself, or a group in ``renamed`` is not selected.
    """
    if source == target and not renamed:
        raise InputError(
            f"a copy from {source} to {target} of each group to itself copies nothing: name another group by --to-group"
            " (in Python: to_groups)"
        )
    strangers = sorted(set(renamed) - (selection.groups if selection.groups is not None else set(renamed)))
    if strangers:
        raise InputError(
            f"group {strangers[0]!r} gets another name (--to-group, in Python: to_groups), but is not "
            "selected. Select this group"
        )


def refuse_merging(source: str, target: str, groups: Mapping[str, str]) -> None:
    """One group can't take the offsets of two. ``groups`` maps the group that is read to the one that is written.

    Raises:
        InputError: two groups would be copied into one, or a group onto itself.
    """
    sources: dict[str, str] = {}
    for group_id, written in groups.items():
        if written in sources:
            raise InputError(
                f"groups {sources[written]!r} and {group_id!r} would both be copied into {written!r}: copy"
                " each by a plan of its own with --to-group (in Python: name another group in to_groups)"
            )
        if written == group_id and source == target:
            raise InputError(
                f"group {group_id!r} would be copied onto itself: name another one by --to-group (in Python: to_groups)"
            )
        sources[written] = group_id


def refuse_unknown_places(selection: Selection, known: Collection[Key], where: str) -> None:
    """A named topic or partition must have an offset; else a typing error would pass as an empty copy.

    Raises:
        NotFound: the first named topic or partition without an offset.
    """
    topics = {(key[0], key[1]) for key in known}
    for group_id in sorted(selection.groups or ()):
        for topic, partition in sorted(selection.named_places(group_id), key=repr):
            if partition is None and (group_id, topic) not in topics:
                raise NotFound(f"group {group_id!r} has no offset of topic {topic!r} in {where}: {_SEE}")
            if partition is not None and (group_id, topic, partition) not in known:
                raise NotFound(f"group {group_id!r} has no offset of {topic}-{partition} in {where}: {_SEE}")
    if not known:
        raise NotFound(f"{where} has no offset of the selection: check the names, or try the other store")


def refuse_unreadable(offsets: Mapping[Key, Stored], groups: Mapping[str, GroupInStore]) -> None:
    broken = [f"{item_of(key)}: {stored.error}" for key, stored in offsets.items() if stored.error is not None]
    broken += [f"group {each!r}: {group.error}" for each, group in groups.items() if group.error is not None]
    if broken:
        raise ReadError(
            f"{quantity(len(broken), 'offset or group', 'offsets or groups')} can't be read; a file without them "
            "would appear complete:"
            f" {shortened(broken)}"
        )


def picked_offsets(stores: Stores, source: str, selection: Selection) -> dict[Key, Stored]:
    """The selected offsets of a store.

    Raises:
        NotFound, ReadError: something named does not exist, or could not be read.
    """
    groups = {group_id: group for group_id, group in stores.groups(source).items() if selection.accepts(group_id)}
    refuse_unread(selection, groups, source)
    selection.refuse_unknown_groups([each for each, group in groups.items() if group.offsets], f"{source}'s offsets")
    picked = {(group_id, *place): it for group_id, group in groups.items() for place, it in group.offsets.items()}
    picked = {key: stored for key, stored in picked.items() if selection.takes(*key)}
    refuse_unknown_places(selection, picked, source)
    return picked
