"""Group, topic and member names as parts of znode paths. A name that can't be a znode's name is refused.

Kafka accepts any text as a group's name, ZooKeeper does not: the group ``a/b`` has no znode, and ``/consumers/a/b``
belongs to the group ``a``. kazoo drops empty parts of a path, so the group without a name would be ``/consumers``.
"""

from __future__ import annotations

import re

from kit.errors import InputError

CONSUMERS = "/consumers"
_RELATIVE = ("", ".", "..")
_REFUSED = re.compile("[\x00-\x1f/\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")
"""ZooKeeper's ``PathUtils.validatePath``; it examines UTF-16 units, so every character beyond U+FFFF is a refused
surrogate to it. The slash is our own: it would begin another znode."""


def is_znode_name(name: str) -> bool:
    """Return whether ZooKeeper can hold one znode of exactly this name."""
    return name not in _RELATIVE and _REFUSED.search(name) is None


def znode_name(name: str, noun: str) -> str:
    """``name``, if a znode can have it; ``noun`` is the word for it in the error.

    Raises:
        InputError: no znode can have this name.
    """
    if not is_znode_name(name):
        raise InputError(
            f"the {noun} {name!r} can't be the name of a znode (a slash, '.', '..', empty, control characters or "
            "characters beyond U+FFFF): ZooKeeper can't store anything for it"
        )
    return name


def group_path(group_id: str) -> str:
    """``/consumers/<group>``; raises InputError as :func:`znode_name`."""
    return f"{CONSUMERS}/{znode_name(group_id, 'group')}"


def partition_path(group_id: str, branch: str, topic: str, partition: int) -> str:
    """``/consumers/<group>/<branch>/<topic>/<partition>``; raises InputError as :func:`znode_name`."""
    return f"{group_path(group_id)}/{branch}/{znode_name(topic, 'topic')}/{partition}"
