"""The SASL mechanisms that a broker's listener enables, by its own answer to SaslHandshake.

The request holds no credentials. kafka-python asks it too, but drops the answer if the broker has closed the connection
meanwhile, as brokers do after a mechanism that is not enabled.
"""

from __future__ import annotations

import socket
import ssl
import struct
from typing import Any, BinaryIO

from kit.text.addresses import host_and_port
from kit.text.naming import listed
from kit.text.visible import visible

KAFKA_PORT = 9092
"""The port of an address that names none, as kafka-python has it."""
_HEADER = struct.Struct(">hhi")
_SASL_HANDSHAKE = (17, 1, 0)
"""API key, version (since Kafka 1.0), correlation id: ``SaslHandshakeRequest.json``."""
_LARGEST_ANSWER = 1 << 16
_TIMEOUT_S = 3.0


def remedy(settings: dict[str, Any], otherwise: str) -> str:
    """Return what to do about a refused login: choose a mechanism that is enabled, ``otherwise`` what is given."""
    return missing_mechanism(settings) or otherwise


def missing_mechanism(settings: dict[str, Any]) -> str | None:
    """Return which server does not enable the mechanism of these settings of kafka-python, and what it enables; else
    None.

    None as well if no server answered: then the mechanisms are unknown.
    """
    servers = settings["bootstrap_servers"] if "SASL" in settings["security_protocol"] else []
    wanted = settings.get("sasl_mechanism")
    for server in servers:
        enabled = enabled_mechanisms(settings, server)
        if enabled is not None and wanted not in enabled:
            offered = f"enables {listed([visible(each) for each in enabled])}" if enabled else "names no mechanism"
            return (
                f"the listener {server} does not enable the mechanism {wanted}; it {offered}. Set mechanism in "
                "security.kafka to one that is enabled, or name the listener of this mechanism"
            )
    return None


def enabled_mechanisms(settings: dict[str, Any], server: str) -> list[str] | None:
    """The mechanisms in the order of the broker; None: it did not answer so."""
    try:
        host, port = host_and_port(server, KAFKA_PORT)
        with socket.create_connection((host, port), _TIMEOUT_S) as plain:
            if settings["security_protocol"] != "SASL_SSL":
                return _ask(plain, settings["sasl_mechanism"])
            with _tls(settings).wrap_socket(plain, server_hostname=host) as secured:
                return _ask(secured, settings["sasl_mechanism"])
    except (OSError, ValueError, struct.error):
        return None


def _tls(settings: dict[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.get("ssl_cafile"))
    if "ssl_certfile" in settings:
        context.load_cert_chain(settings["ssl_certfile"], settings.get("ssl_keyfile"), settings.get("ssl_password"))
    return context


def _ask(connection: socket.socket, mechanism: str) -> list[str]:
    """Raise struct.error for an answer that is too short."""
    request = _HEADER.pack(*_SASL_HANDSHAKE) + _text("offramp") + _text(mechanism)
    connection.sendall(struct.pack(">i", len(request)) + request)
    with connection.makefile("rb") as answer:
        (size,) = struct.unpack(">i", answer.read(4))
        if not 0 < size <= _LARGEST_ANSWER:
            raise ValueError("the answer is not of Kafka's protocol")
        _, _, n_mechanisms = struct.unpack(">ihi", answer.read(10))  # Correlation id and error code before it.
        return [_read_text(answer) for _ in range(n_mechanisms)]


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def _read_text(answer: BinaryIO) -> str:
    (size,) = struct.unpack(">h", answer.read(2))
    return answer.read(size).decode()
