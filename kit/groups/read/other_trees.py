"""Trees of other systems below ``/consumers``: Storm's spouts and recipes of Spark keep their own offsets there.

Storm: ``<zkRoot>/<id>/partition_<n>`` (``storm-kafka``, ``PartitionManager.committedPath``); with the zkRoot
``/consumers`` the id is where a group would be. Recipes of Spark Streaming write all offsets of a topic as one text
into ``/consumers/<group>/offsets/<topic>``, which holds no partitions. Neither is a group of Kafka's consumers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kazoo.client import KazooClient

from kit.clients.multiread import Znode, fetch_children, fetch_data
from kit.clients.paths import CONSUMERS
from kit.text.naming import listed
from kit.text.quantity import quantity

_SHOWN = 3


def fetch_other_trees(client: KazooClient, bare: Sequence[str], topics: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return the names below ``/consumers`` that are no groups.

    Args:
        bare: names that have no ``ids``, ``owners`` or ``offsets``, and nothing below ``migration``. One without any
            child may be a group whose znodes were deleted, and stays a group.
        topics: name and topic of each ``offsets/<topic>``, of names that have nothing else and no partition there.

    Raises:
        ConnectError: ZooKeeper stopped answering.
    """
    children = fetch_children(client, [f"{CONSUMERS}/{each}" for each in bare])
    asked = list(topics)
    texts = fetch_data(client, [f"{CONSUMERS}/{name}/offsets/{topic}" for name, topic in asked])
    with_text = {name for (name, _), each in zip(asked, texts) if isinstance(each, Znode) and each.data}
    others = {name for name, names in zip(bare, children) if isinstance(names, list) and names}
    kept = {name for name, names in zip(bare, children) if isinstance(names, list) and "migration" in names}
    return frozenset((others - kept) | with_text)


def other_trees_sentence(names: Iterable[str]) -> str | None:
    """Return what a listing leaves out, as a sentence; None: nothing."""
    ordered = sorted(names)
    if not ordered:
        return None
    shown = [f"{CONSUMERS}/{each}" for each in ordered[:_SHOWN]]
    more = f" and {len(ordered) - _SHOWN:,} more" if len(ordered) > _SHOWN else ""
    count = quantity(len(ordered), "tree")
    return f"{count} below {CONSUMERS} not understood, because no consumer of Kafka made it: {listed(shown)}{more}"
