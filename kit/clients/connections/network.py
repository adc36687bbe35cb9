"""Names, TCP and TLS of one address."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from kit.clients.connections.check import OK, SOON_S, WARNING, Check, failed
from kit.errors import AuthenticationFailed, ConnectError, OfframpError
from kit.profile.security.settings import section_of
from kit.profile.security.tls_files import TlsSettings, client_context
from kit.text.addresses import host_and_port

_EXPIRED, _NOT_YET, _NAME_DIFFERS, _ADDRESS_DIFFERS = 10, 9, 62, 64
"""X509_V_ERR_… of OpenSSL."""
_OWN_REFUSED = {
    "SSLV3_ALERT_BAD_CERTIFICATE",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED",
    "TLSV1_ALERT_UNKNOWN_CA",
}
"""OpenSSL's names of the alerts by which a server refuses a client's certificate, or that there is none."""


def check_network(
    component: str, address: str, default_port: int, timeout_s: float, tls: TlsSettings | None
) -> Iterator[Check]:
    """Yield a row per layer, up to the first that fails."""
    try:
        host, port = host_and_port(address, default_port)
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:
        problem = ConnectError(f"{address!r} has no address ({error}). Check the profile and the DNS.")
        yield failed(component, "DNS", problem)
        return
    yield Check(component, "DNS", OK, f"{host} is {', '.join(sorted({str(each[4][0]) for each in found}))}.")
    try:
        connection = socket.create_connection((host, port), timeout_s)
    except OSError as error:
        problem = ConnectError(
            f"Nothing accepts connections at {address} ({error}). Check the port, the server and firewalls."
        )
        yield failed(component, "TCP", problem)
        return
    with connection:
        yield Check(component, "TCP", OK, f"{address} accepts connections.")
        if tls is not None:
            yield _check_tls(component, host, connection, tls)


def _check_tls(component: str, host: str, connection: socket.socket, tls: TlsSettings) -> Check:
    try:
        with client_context(tls).wrap_socket(connection, server_hostname=host) as secured:
            certificate = secured.getpeercert() or {}
            version = secured.version()
    except OfframpError as error:
        return failed(component, "TLS", error)
    except ssl.SSLCertVerificationError as error:
        return failed(component, "TLS", AuthenticationFailed(_untrusted(host, error)))
    except ssl.SSLError as error:
        if error.reason in _OWN_REFUSED:
            return failed(component, "TLS", AuthenticationFailed(_own_refused(tls, error.reason)))
        problem = ConnectError(f"The TLS handshake failed ({error.reason}). Check whether this port speaks TLS.")
        return failed(component, "TLS", problem)
    except OSError as error:
        problem = ConnectError(f"The server ended the TLS handshake ({error}). Check whether this port speaks TLS.")
        return failed(component, "TLS", problem)
    return ending(component, "TLS", f"{version}; the server's certificate", _end_of(certificate))


def _untrusted(host: str, error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code == _EXPIRED:
        return "The server's certificate has expired. Renew it on the server, or correct the clock of this machine."
    if error.verify_code == _NOT_YET:
        return "The server's certificate is not valid yet. Correct the clock of this machine."
    if error.verify_code in (_NAME_DIFFERS, _ADDRESS_DIFFERS):
        return f"The server's certificate is not for {host!r}. Use a name that the certificate has."
    return f"No authority in ca_file has signed the server's certificate ({error.verify_message}). Check ca_file."


def _own_refused(tls: TlsSettings, alert: str) -> str:
    section = section_of(tls)
    if tls.certificate_file is None:
        return f"The server asks for a client certificate. Set certificate_file and key_file in {section}."
    return (
        f"The server refused the certificate in {section}.certificate_file ({alert}). Check whether the server trusts "
        "the authority that signed it, and whether it is made for clients."
    )


def _end_of(certificate: dict[str, Any]) -> float | None:
    text = certificate.get("notAfter")
    return ssl.cert_time_to_seconds(text) if isinstance(text, str) else None


def ending(component: str, tried: str, what: str, ends_at_s: float | None) -> Check:
    """A row on something that ends: a warning where it ends soon."""
    if ends_at_s is None:
        return Check(component, tried, OK, f"{what} was accepted.")
    left_s = ends_at_s - time.time()
    validity = f"{what} ends at {datetime.fromtimestamp(ends_at_s, UTC):%Y-%m-%d %H:%M} UTC"
    if left_s <= 0:
        return failed(component, tried, AuthenticationFailed(f"{validity}: it has expired. Get a new one."))
    if left_s < SOON_S:
        return Check(component, tried, WARNING, f"{validity}, in {_duration(left_s)}. Renew it before.")
    return Check(component, tried, OK, f"{validity}.")


def _duration(seconds: float) -> str:
    days = int(seconds // 86_400)
    return f"{days} d" if days else f"{int(seconds // 60)} min"
