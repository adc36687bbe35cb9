"""All znodes below one of a live ZooKeeper, by few requests: level by level, after a sync."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pyarrow as pa
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from kit.clients.multiread import catch_up, fetch_children, fetch_data
from kit.clients.znode_columns import is_session, times
from kit.clients.znode_secrets import shown_column
from kit.tables import schema as tables
from kit.text.fingerprints import Hide, stars


def fetch_znodes(client: KazooClient, top: str = "/", hide: Hide = stars, strangers: Hide | None = None) -> pa.Table:
    """``tables.ZNODES``: a znode and everything below it; none when it isn't there. A refused one has its error.

    ``hide``, ``strangers``: the replacement of a secret of Kafka's, and for the data of other applications (None: only
    what resembles a secret is redacted there).

    Raises:
        ConnectError: the connection was lost, or the server did not answer in time.
    """
    catch_up(client)
    levels, refused = [], dict[str, str]()
    level = [top]
    while level:
        levels.append(level)
        names = fetch_children(client, level)
        refused |= {path: _error(each) for path, each in zip(level, names) if isinstance(each, KazooException)}
        below = ((path.rstrip("/"), each) for path, each in zip(level, names) if isinstance(each, list))
        level = [f"{path}/{name}" for path, children in below for name in children]
    return _table(client, list(chain.from_iterable(levels)), refused, hide, strangers)


def _table(
    client: KazooClient, paths: list[str], refused: dict[str, str], hide: Hide, strangers: Hide | None
) -> pa.Table:
    znodes = fetch_data(client, paths)
    errors = [refused.get(path) for path in paths]
    for at, error in znodes.refusals.items():
        errors[at] = _error(error)
    column = pa.array(paths, pa.string())
    ephemeral_owners = znodes.stat("ephemeral_owner")
    is_there = np.array([each is not None for each in ephemeral_owners], np.bool_)
    owners = np.array([each or 0 for each in ephemeral_owners], np.int64)
    modified_ms = np.array([-1 if each is None else each for each in znodes.stat("modified_ms")], np.int64)
    table = tables.ZNODES.from_columns(
        {
            "path": column,
            "data": shown_column(column, pa.array(znodes.data, pa.binary()), hide, strangers),
            "version": pa.array(znodes.stat("version"), pa.int32()),
            "czxid": pa.array(znodes.stat("czxid"), pa.int64()),
            "mzxid": pa.array(znodes.stat("mzxid"), pa.int64()),
            "ephemeral_owner": pa.array(owners, mask=~is_session(owners)),
            "modified_at": times(modified_ms),
            "error": errors,
        }
    )
    is_known = is_there | np.array([each is not None for each in errors], np.bool_)
    return table.filter(pa.array(is_known))


def _error(error: KazooException) -> str:
    return f"ZooKeeper refused: {type(error).__name__}"
