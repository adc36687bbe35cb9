"""A node's answer to ApiVersions shows its version."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest

from kit.clients.nodes import fetch_node_facts, finalized_level


@pytest.mark.parametrize(
    ("levels", "epoch", "expected"),
    [
        ({"metadata.version": 21}, 17, 21),
        ({"metadata.version": 21, "kraft.version": 1}, 0, 21),
        ({"metadata.version": 1}, -1, None),  # It has read nothing of the log yet.
        ({}, 5, None),
        (None, -1, None),
    ],
)
def test_a_level_is_known_once_the_log_was_read(levels, epoch, expected):
    features = [SimpleNamespace(name=name, max_version_level=level) for name, level in (levels or {}).items()]
    told = SimpleNamespace(finalized_features=levels and features, finalized_features_epoch=epoch)
    assert finalized_level(told) == expected


def test_a_node_that_nothing_listens_for_does_not_run_and_a_silent_one_may():
    """A node is a row with its error, whatever its host does; only a refused connection says that none runs."""
    with socket.socket() as kept, socket.create_server(("127.0.0.1", 0)) as mute:
        kept.bind(("127.0.0.1", 0))  # And does not listen: no other operator or tool gets the port meanwhile.
        port = kept.getsockname()[1]
        addresses = [f"127.0.0.1:{port}", "no-such-host.invalid:9093", f"127.0.0.1:{mute.getsockname()[1]}"]
        (closed, unknown, silent) = fetch_node_facts({}, [], addresses, timeout_s=0.5)
    assert closed.error == f"127.0.0.1:{port} does not answer as a controller: no server listens there"
    assert [each.is_listening for each in (closed, unknown, silent)] == [False, None, True]
    assert "no-such-host.invalid:9093 does not answer as a controller" in unknown.error
