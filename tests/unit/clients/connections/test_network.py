"""Addresses with and without a port, and of IPv6, as the checks of a profile try them."""

from __future__ import annotations

import socket

import pytest

from kit.clients.broker_login import refuses
from kit.clients.connections.network import check_network
from kit.text.addresses import host_and_port


@pytest.mark.parametrize(
    ("family", "host", "address"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1:{}"),
        (socket.AF_INET6, "::1", "[::1]:{}"),
        (socket.AF_INET6, "::1", "localhost6:{}"),
        (socket.AF_INET, "127.0.0.1", "localhost"),
        (socket.AF_INET6, "::1", "[::1]"),
    ],
)
def test_each_form_of_an_address_is_reached(family: int, host: str, address: str, monkeypatch) -> None:
    """``localhost6`` stands for a name that has an IPv6 address alone."""
    found = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda name, *rest, **how: found(name.replace("localhost6", "::1"), *rest, **how)
    )
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with server:
        port = server.getsockname()[1]
        rows = list(check_network("ZooKeeper", address.format(port), port, 5, None))
        assert [(row.tried, row.state) for row in rows] == [("DNS", "ok"), ("TCP", "ok")]
        assert refuses(address.format(port), port) is False
    assert refuses(address.format(port), port) is True


@pytest.mark.parametrize("address", ["host", "host:", "host:port", "[::1]"])
def test_an_address_without_a_port_is_refused_where_one_is_needed(address: str) -> None:
    with pytest.raises(ValueError, match="int"):
        host_and_port(address)
