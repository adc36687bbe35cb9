"""Kerberos: the client's side of SASL's GSSAPI mechanism (RFC 4752), once for Kafka and for ZooKeeper.

The package ``gssapi`` has no wheel for Linux. So it is an extra of offramp, and imported where a login needs it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.errors import AuthenticationFailed, ConnectError, OfframpError, ProfileError, SetupError
from kit.profile.security.settings import KafkaSecurity, ZookeeperSecurity, section_of
from kit.text.regular_file import open_regular

if TYPE_CHECKING:
    from types import ModuleType

PACKAGES = (
    "pip install 'offramp[kerberos]'. It is compiled on this machine and needs a C compiler and, first, on Debian: "
    "apt-get install gcc python3-dev libkrb5-dev krb5-user; on Red Hat: yum install gcc python3-devel krb5-devel "
    "krb5-workstation"
)
_KEYTAB = b"\x05\x02"
"""The first two octets of each keytab: its version."""
_NO_LAYER = b"\x01\x00\x00\x00"
"""Security layer: none; largest message: 0, as RFC 4752 asks then."""
_KRB5 = -1765328384
"""The first error code of libkrb5 (``krb5_err.et``); the numbers below are added to it."""
_ROUTINE_ERRORS, _EXPIRED = 0xFF << 16, 11 << 16
"""GSS_S_CREDENTIALS_EXPIRED (RFC 2744, 3.9.1), for which libkrb5 gives no code of its own."""
_CODES = {
    6: "client unknown",
    7: "server unknown",
    18: "client disabled",
    23: "password expired",
    24: "wrong key",
    14: "no common encryption",
    32: "ticket expired",
    33: "ticket not yet valid",
    37: "clock skew",
    154: "realm unknown",
    156: "no answer",
    181: "no such key",
    141: "no tickets",
    195: "no tickets",
}


@dataclass(frozen=True)
class KerberosLogin:
    """The principal, the service, and the place of the key or the tickets; ``section``: where the profile has them."""

    service_name: str
    principal: str | None = None
    keytab: Path | None = None
    ticket_cache: str | None = None
    section: str = field(default="security.kafka", compare=False)

    @property
    def tickets(self) -> str:
        """The place of the key or of the tickets, for people."""
        return f"keytab {self.keytab}" if self.keytab else f"ticket cache {self.ticket_cache or '(default)'}"


def login_of(security: KafkaSecurity | ZookeeperSecurity, service_name: str) -> KerberosLogin:
    """The login of this section; ``service_name`` where it names none."""
    name = security.service_name or service_name
    return KerberosLogin(name, security.principal, security.keytab, security.ticket_cache, section_of(security))


def library() -> ModuleType:
    """The package ``gssapi``. Raises SetupError where it is not installed."""
    try:
        import gssapi
    except (ImportError, OSError):
        raise SetupError(f"Kerberos needs the package gssapi. Install it: {PACKAGES}.") from None
    module: ModuleType = gssapi
    return module


def credentials(login: KerberosLogin) -> Any:
    """The credentials for new connections. Tickets from a keytab are kept in this process, and renewed by libkrb5.

    Raises:
        SetupError: the package is missing.
        ProfileError: the keytab can't be read, or is none.
        AuthenticationFailed: there are no valid tickets, or the KDC refused.
        ConnectError: the KDC did not answer.
    """
    gssapi = library()
    store = {}
    if login.keytab is not None:
        _check_keytab(login, login.keytab)
        own = sha256(f"{login.keytab}\n{login.principal}".encode()).hexdigest()[:16]
        store = {"client_keytab": f"FILE:{login.keytab}", "ccache": f"MEMORY:offramp-{own}"}
    elif login.ticket_cache is not None:
        store = {"ccache": login.ticket_cache}
    try:
        name = login.principal and gssapi.Name(login.principal, gssapi.NameType.kerberos_principal)
        found = gssapi.Credentials(name=name or None, usage="initiate", store=store or None)
        remaining_s = found.lifetime
    except gssapi.exceptions.GSSError as error:
        raise failure(error, login, None) from None
    if remaining_s <= 0:
        raise AuthenticationFailed(_sentence("ticket expired", login, None))
    return found


def ticket_end_s(found: Any) -> float:
    """POSIX time at which the tickets end."""
    return time.time() + float(found.lifetime)


def _check_keytab(login: KerberosLogin, keytab: Path) -> None:
    """libkrb5 has one code for a keytab that is absent, closed or damaged."""
    try:
        with open_regular(keytab) as file:
            begin = file.read(len(_KEYTAB))
    except OSError as error:
        raise ProfileError(
            f"{login.section}.keytab: the keytab {keytab} can't be read: {error.strerror}. Check its path and its "
            "owner; its mode must let this user read it."
        ) from None
    if begin != _KEYTAB:
        raise ProfileError(
            f"{login.section}.keytab: {keytab} is no keytab. Name a file that kadmin's ktadd or ktutil wrote: klist -k "
            f"{keytab}"
        )


def failure(error: Any, login: KerberosLogin, host: str | None) -> OfframpError:
    """The error of offramp for one of libkrb5; ``host``: of the service that a ticket was asked for."""
    code = (error.min_code + 2**31) % 2**32 - 2**31 - _KRB5
    kind = "ticket expired" if error.maj_code & _ROUTINE_ERRORS == _EXPIRED else _CODES.get(code)
    if kind == "no tickets" and login.keytab is not None:
        kind = "no such key"
    if kind is None:
        return AuthenticationFailed(f"Kerberos failed with {login.tickets}: {error.gen_message()}. Try kinit.")
    sentence = _sentence(kind, login, host)
    return ConnectError(sentence) if kind == "no answer" else AuthenticationFailed(sentence)


def _sentence(kind: str, login: KerberosLogin, host: str | None) -> str:
    who = login.principal or "the default principal"
    service = f"{login.service_name}/{host}"
    renew = f"kinit -k -t {login.keytab} {who}" if login.keytab else f"kinit {login.principal or ''}".strip()
    return {
        "client unknown": f"The KDC does not know the principal {who}. Check principal in the profile.",
        "server unknown": f"The KDC does not know the service {service}. Check service_name, and the host names that "
        "the servers advertise; they must be the names in the servers' keytabs.",
        "client disabled": f"The principal {who} is disabled or has expired. Ask the administrator of the KDC.",
        "password expired": f"The password of {who} has expired. Ask the administrator of the KDC.",
        "wrong key": f"The key in {login.tickets} is not the key of {who} any more. Get a new keytab.",
        "no common encryption": f"The KDC takes no encryption type of {login.tickets}. Get a new keytab.",
        "ticket expired": f"The tickets in {login.tickets} have expired. Get new ones: {renew}",
        "ticket not yet valid": f"The tickets in {login.tickets} are not valid yet. Correct the clock of this machine.",
        "clock skew": "The clock of this machine and the clock of the KDC or the server differ by more than 5 min. "
        "Correct the clock.",
        "realm unknown": f"No KDC is known for the realm of {who} or of {service}. Check krb5.conf.",
        "no answer": "No KDC answered. Check the network, and kdc in krb5.conf.",
        "no such key": f"The keytab {login.keytab} has no key of {who}. List its keys: klist -k {login.keytab}",
        "no tickets": f"There are no tickets of {who} in {login.tickets}. Get tickets: {renew}",
    }[kind]


class Exchange:
    """One login: ``step`` returns the answer to each challenge of the server, the first of which is None."""

    def __init__(self, login: KerberosLogin, host: str) -> None:
        self.is_complete = False
        self._login, self._host = login, host
        self._context: Any = None

    def step(self, challenge: bytes | None) -> bytes:
        """Raise as ``credentials``, and AuthenticationFailed for a server that insists on a security layer."""
        gssapi = library()
        try:
            if self._context is None:
                self._context = self._started(gssapi)
            if not self._context.complete:
                return bytes(self._context.step(challenge) or b"")
            return self._answer_layers(challenge or b"")
        except gssapi.exceptions.GSSError as error:
            raise failure(error, self._login, self._host) from None

    def _started(self, gssapi: ModuleType) -> Any:
        service = gssapi.Name(f"{self._login.service_name}@{self._host}", gssapi.NameType.hostbased_service)
        return gssapi.SecurityContext(
            name=service.canonicalize(gssapi.MechType.kerberos),
            creds=credentials(self._login),
            mech=gssapi.MechType.kerberos,
            usage="initiate",
        )

    def _answer_layers(self, challenge: bytes) -> bytes:
        offered = self._context.unwrap(challenge).message
        if len(offered) != 4 or not offered[0] & 1:
            raise AuthenticationFailed(
                f"{self._login.service_name}/{self._host} wants a security layer of SASL; use TLS."
            )
        self.is_complete = True
        return bytes(self._context.wrap(_NO_LAYER, False).message)
