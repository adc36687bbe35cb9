"""The proxy between a client and a server: it delays what the client sends, keeps its order, and can be cut."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from kit.lab.servers.tcp_proxy import TcpProxy


@pytest.fixture
def echo() -> Iterator[str]:
    """``host:port`` of a server that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                while chunk := connection.recv(1024):
                    connection.sendall(chunk)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def connect(proxy: TcpProxy) -> socket.socket:
    host, _, port = proxy.address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=10)


def test_requests_are_delayed_and_keep_their_order(echo):
    with TcpProxy(echo) as proxy, connect(proxy) as client:
        proxy.delay_s = 0.3
        began = time.monotonic()
        client.sendall(b"slow ")
        time.sleep(0.05)
        proxy.delay_s = 0.0
        client.sendall(b"quick")
        answer = b""
        while len(answer) < 10:
            answer += client.recv(1024)
        assert answer == b"slow quick"
        assert time.monotonic() - began >= 0.3


def test_data_sent_during_a_cut_arrives_after_it(echo):
    with TcpProxy(echo) as proxy, connect(proxy) as client:
        proxy.cut()
        client.sendall(b"late")
        client.settimeout(0.1)
        with pytest.raises(TimeoutError):
            client.recv(1024)
        proxy.mend()
        client.settimeout(10)
        assert client.recv(1024) == b"late"


def test_it_outlives_a_server_that_was_down_for_a_while():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with TcpProxy(f"127.0.0.1:{port}") as proxy:
        with connect(proxy) as refused:
            assert refused.recv(1) == b""
        with socket.create_server(("127.0.0.1", port)) as listener, connect(proxy) as client:
            listener.settimeout(10)
            server, _ = listener.accept()
            with server:
                client.sendall(b"back")
                assert server.recv(4) == b"back"
