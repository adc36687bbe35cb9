"""What is asked for and can't be planned, told by name before anything is planned."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kit.errors import InputError, NotFound, ReadError
from kit.migrate.offsets.fetch import GroupInStore
from kit.migrate.offsets.moves import Stored, item_of, shortened
from kit.migrate.offsets.selection import Key, Selection


def refuse_unread(selection: Selection, groups: Mapping[str, GroupInStore], store: str) -> dict[str, str]:
    """Groups that could not be read, with the error: of a selection that doesn't name them they are left out, and told.

    Raises:
        ReadError: one of them is named.
    """
    unread = {group_id: group.error for group_id, group in sorted(groups.items()) if group.error is not None}
    if unread and selection.groups is not None:
        raise ReadError(f"{store}: {shortened(f'group {group_id!r}: {error}' for group_id, error in unread.items())}")
    return unread


def refuse_if_onto_itself(source: str, target: str, renamed: Mapping[str, str], selection: Selection) -> None:
    """Raises:
    InputError: no group would be written elsewhere than it is read, or one is renamed that isn't read.
    """
    if source == target and not renamed:
        raise InputError(f"{source} to {target}, each group to itself: that copies nothing; name to_groups")
    strangers = sorted(set(renamed) - (selection.groups if selection.groups is not None else set(renamed)))
    if strangers:
        raise InputError(f"to_groups names group {strangers[0]!r}, which is not selected")


def refuse_merging(source: str, target: str, groups: Mapping[str, str]) -> None:
    """Of two groups' offsets for one partition, neither is right for both. ``groups``: written, by the one read.

    Raises:
        InputError: two groups would be written as one, or one onto itself.
    """
    sources: dict[str, str] = {}
    for group_id, written in groups.items():
        if written in sources:
            raise InputError(f"groups {sources[written]!r} and {group_id!r} would both be copied into {written!r}")
        if written == group_id and source == target:
            raise InputError(f"group {group_id!r} would be copied onto itself; name another one in to_groups")
        sources[written] = group_id


def refuse_unknown_places(selection: Selection, found: Collection[Key], where: str) -> None:
    """What is selected by name has to be there; else a typing error would pass as an empty copy.

    Raises:
        NotFound: the first group, topic or partition without an offset.
    """
    topics = {(key[0], key[1]) for key in found}
    for group_id in sorted(selection.groups or ()):
        for topic, partition in sorted(selection.named_places(group_id), key=repr):
            if partition is None and (group_id, topic) not in topics:
                raise NotFound(f"group {group_id!r} has no offset of topic {topic!r} in {where}")
            if partition is not None and (group_id, topic, partition) not in found:
                raise NotFound(f"group {group_id!r} has no offset of {topic}-{partition} in {where}")
    if not found:
        raise NotFound(f"{where} has no offset of what is selected: look for a typing error, or for another store")


def refuse_unreadable(offsets: Mapping[Key, Stored], groups: Mapping[str, GroupInStore]) -> None:
    broken = [f"{item_of(key)}: {stored.error}" for key, stored in offsets.items() if stored.error is not None]
    broken += [f"group {each!r}: {group.error}" for each, group in groups.items() if group.error is not None]
    if broken:
        raise ReadError(f"{len(broken)} things can't be read, so the file would lack them: {shortened(broken)}")
